"""Training a local rule with message passing on a CPU: only messages between open cells.

    >>> trajectory = MessageTrajectory(net, inputs, features, steps=30)
    >>> trajectory.logits([30])              # (B, K, *S)
    >>> trajectory.features(30)              # (B, W, *Q), detached

If all sides are equal, every message comes from the same small layer, and only the head reads a
cell's own channels: the messages between open cells are computed, and the rest on demand.

Losses, gradients and states equal those of all cells up to rounding: walls stay zero, whatever
noise or corruption is added to them.

Shapes: B batch, W width, K classes, *S space in pixels, *Q space in cells, N open cells, D sides of
a cell, M messages between open cells, E channels of a message, O own channels of a cell, H hidden
channels, I some of T iterations.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from iterant.nets.fast.sparse import neighbours_of
from iterant.nets.local_rule import bias_of, in_pixels, message_layouts


class MessageGraph:
    """Which messages there are between the open cells of a batch, and which depend on which.

    The message of a cell to one neighbour is computed from those of its other neighbours::

            b            message c → d has the inputs a → c and b → c:
            ↓            ``first_input`` is one of them, ``extra_inputs`` has the other
        a → c → d
    """

    def __init__(self, is_open: Tensor) -> None:
        """Of the cells that are open, (B, *Q) bool; they are counted over all samples."""
        flat = is_open.flatten()
        cells = int(flat.sum())
        numbers = (flat.cumsum(dim=0) - 1).where(flat, cells).view_as(is_open)
        neighbours = neighbours_of(is_open, numbers, cells)  # (N, D); N where there is none
        sides = neighbours.shape[1]
        exists = neighbours < cells
        self.slot = exists.flatten().nonzero().flatten()
        """(M,): where a message stands among the N * D of all cells and sides"""
        count = len(self.slot)
        number = torch.full((cells * sides + 1,), count, device=neighbours.device)
        number[self.slot] = torch.arange(count, device=neighbours.device)
        # The neighbour on a side sends to me on its opposite side.
        opposite = torch.arange(sides, device=neighbours.device) ^ 1
        incoming = number[(neighbours * sides + opposite).where(exists, cells * sides)]
        self.incoming = incoming.T.contiguous()
        """(D, N): the message that comes in from each side; M where there is none"""
        sender, side = self.slot // sides, self.slot % sides
        # Sorted, so that the messages that exist come first.
        others = incoming[sender].scatter(1, side[:, None], count).sort(dim=1).values
        self.first_input = others[:, 0]
        """(M,): the first input of every message; M where it has none"""
        self.extra_inputs: list[tuple[Tensor, Tensor]] = []
        """(m,), (m,) for the second, third … input: which messages have one, and which it is"""
        for column in others.unbind(1)[1:-1]:
            rows = (column < count).nonzero().flatten()
            self.extra_inputs.append((rows, column[rows]))

    def sum_others(self, messages: Tensor) -> Tensor:
        """(E, M) to (E, M): for every message, what its sender received from all other sides."""
        total = functional.pad(messages, (0, 1)).index_select(1, self.first_input)
        for rows, which in self.extra_inputs:
            total = total.index_add(1, rows, messages.index_select(1, which))
        return total

    def received(self, messages: Tensor) -> Tensor:
        """(…, E, M) to (…, E, D, N): what every cell receives from each side."""
        padded = functional.pad(messages, (0, 1))
        received = padded.index_select(-1, self.incoming.flatten())
        return received.view(*messages.shape[:-1], *self.incoming.shape)


class MessageTrajectory:
    """The iterations of a segment, with their graph; messages between open cells are columns."""

    def __init__(
        self, net: Any, inputs: Tensor, features: Tensor, steps: int, noise: Tensor | None = None
    ) -> None:
        """Run all iterations from features (B, W, *Q); ``noise`` is added before every one."""
        problem, is_open = net.neighbourhood(inputs)
        self._net, self._is_open = net, is_open[:, 0].bool()  # (B, *Q)
        self._cells = self._is_open.flatten().nonzero().flatten()  # (N,)
        recall = net.recall.weight.flatten(1)
        self._term = functional.linear(self._rows(problem), recall, net.recall.bias)  # (N, H)
        self._state, self._hidden = state, hidden = message_layouts(net.config)
        self._graph = graph = MessageGraph(self._is_open)
        by_side = self._term[:, hidden.own :].reshape(-1, hidden.each)
        term = by_side.index_select(0, graph.slot).T.contiguous()  # (H of a side, M)
        added = None if noise is None else self._messages(noise)
        # All sides share their weights. Take those of the message to side 0, and of what it reads
        # the message from side 1: it reads all but the one from side 0.
        sight, mix, bias = net.sight.weight.flatten(1), net.mix.weight.flatten(1), bias_of(net.mix)
        self._received = sight[:, state.each : 2 * state.each]  # (all H, E)
        message, inner = state.channels_of(0), hidden.channels_of(0)
        weight_in, weight_out = self._received[inner], mix[message, inner]  # (H, E), (E, H)
        messages = self._messages(features)
        self._inputs: list[Tensor] = []
        """T times (E, M): the messages that every iteration reads"""
        for _ in range(steps):
            messages = messages if added is None else messages + added
            self._inputs.append(messages)
            layer = torch.relu(torch.addmm(term, weight_in, graph.sum_others(messages)))  # (H, M)
            messages = torch.tanh(torch.addmm(bias[message, None], weight_out, layer))

    def logits(self, iterations: Sequence[int]) -> Tensor:
        """(I * B, K, *S): the answers after these iterations, counted from 1."""
        net, own, inner = self._net, self._state.own, self._hidden.own
        messages = torch.stack([self._inputs[iteration - 1] for iteration in iterations])
        sums = self._graph.received(messages).sum(dim=-2)  # (I, E, N)
        hidden = torch.relu(self._received[:inner] @ sums + self._term[:, :inner].T)
        mix, bias = net.mix.weight.flatten(1)[:own, :inner], bias_of(net.mix)[:own]
        states = torch.tanh(mix @ hidden + bias[:, None])  # (I, O, N)
        # The head of such a rule reads only a cell's own channels.
        head = net.head.weight.flatten(1)[:, :own]
        rows = (head @ states + bias_of(net.head)[:, None]).movedim(1, -1)  # (I, N, K)
        # The state of walls is zero, so the bias alone makes their logits.
        walls = bias_of(net.head).expand(len(rows), self._is_open.numel(), -1)
        logits = walls.index_copy(1, self._cells, rows)
        logits = logits.view(-1, *self._is_open.shape[1:], rows.shape[-1]).movedim(-1, 1)
        return in_pixels(logits, net.config.stem)

    @torch.no_grad()
    def features(self, iteration: int) -> Tensor:
        """(B, W, *Q): the whole state after that iteration, detached; walls are zero."""
        sight, mix = self._net.sight.weight.flatten(1), self._net.mix.weight.flatten(1)
        received = self._graph.received(self._inputs[iteration - 1])  # (E, D, N)
        seen = received.permute(2, 1, 0).flatten(1)  # (N, D * E)
        hidden = torch.relu(torch.addmm(self._term, seen, sight.T))
        rows = torch.tanh(functional.linear(hidden, mix, self._net.mix.bias))  # (N, W)
        dense = rows.new_zeros(self._is_open.numel(), rows.shape[1])
        dense[self._cells] = rows
        return dense.view(*self._is_open.shape, -1).movedim(-1, 1)

    def _rows(self, values: Tensor) -> Tensor:
        """(B, X, *Q) to (N, X)."""
        return values.movedim(1, -1).flatten(0, -2)[self._cells]

    def _messages(self, features: Tensor) -> Tensor:
        """(B, W, *Q) to (E, M)."""
        sent = self._rows(features)[:, self._state.own :].reshape(-1, self._state.each)
        return sent.index_select(0, self._graph.slot).T.contiguous()
