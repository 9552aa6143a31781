"""Iterations of a local rule on open cells, with gradients: what training on a CPU runs.

    >>> path = unroll_cells(net, inputs, features, steps=30)
    >>> path.logits([30])                    # (1, N, K), of open cells only
    >>> path.features(30)                    # (B, W, *Q), detached

Open cells of all samples are the rows of one matrix. `CellPath` works for every local rule. In a
rule with messages and equal sides, every message comes from the same small layer, and only the
head reads a cell's own channels: `MessagePath` computes just the messages between open cells, and
the rest on demand. Both equal the dense iterations up to rounding.

Shapes: B batch, C channels, W width, K classes, *Q space in cells, N open cells, D sides of a cell,
M messages between open cells, E channels of a message, O own channels of a cell, H hidden channels
of a side, T iterations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from iterant.nets.fast.sparse import neighbours_of
from iterant.nets.local_rule import (
    LocalRule,
    MessageWeights,
    bias_of,
    has_equal_messages,
    sum_over_other_sides,
)


def unroll_cells(
    net: LocalRule, inputs: Tensor, features: Tensor, steps: int, noise: Tensor | None = None
) -> CellPath | MessagePath:
    """Iterate from these features, (B, W, *Q); ``noise`` is added before every iteration."""
    path = MessagePath if has_equal_messages(net) else CellPath
    return path(net, inputs, features, steps, noise)


def cell_rows(values: Tensor) -> Tensor:
    """(B, X, *Q) to (cells of all samples, X)."""
    return values.movedim(1, -1).flatten(0, -2)


class CellPath:
    """Open cells as rows: an iteration is two matrix products."""

    def __init__(
        self, net: LocalRule, inputs: Tensor, features: Tensor, steps: int, noise: Tensor | None
    ) -> None:
        """Run all iterations."""
        memory = net.read(inputs)
        self.is_open = memory[:, -1].detach().bool()
        self.cells = self.is_open.flatten().nonzero().flatten()
        self._net = net
        term = cell_rows(memory[:, :-1])[self.cells]
        neighbours = neighbours_of(self.is_open)
        added = 0.0 if noise is None else cell_rows(noise)[self.cells]
        self.states = [cell_rows(features)[self.cells]]
        for _ in range(steps):
            self.states.append(_step(net, self.states[-1] + added, term, neighbours))

    def logits(self, iterations: Sequence[int]) -> Tensor:
        """(len(iterations), N, K): logits of open cells after these, counted from 1."""
        states = torch.stack([self.states[iteration] for iteration in iterations])
        return functional.linear(states, self._net.head.weight.flatten(1), self._net.head.bias)

    def features(self, iteration: int) -> Tensor:
        """(B, W, *Q): detached features after that iteration, 0 for the start; walls are zero."""
        return _unpack(self.states[iteration].detach(), self.cells, self.is_open)

    def total_change(self) -> Tensor:
        """The sum of absolute changes over all features and iterations."""
        states = torch.stack(self.states)
        return (states[1:] - states[:-1]).abs().sum()


def _step(net: LocalRule, states: Tensor, term: Tensor, neighbours: Tensor) -> Tensor:
    """One iteration of all open cells, (N, W)."""
    gather: Any = _NeighbourStates
    seen = gather.apply(states, neighbours)  # (N, D, W)
    seen = seen.sum(dim=1) if net.config.summed else seen.flatten(1)
    sight, mix = net.sight.weight.flatten(1), net.mix.weight.flatten(1)
    hidden = torch.relu(torch.addmm(term, torch.cat([states, seen], dim=1), sight.T))
    return torch.tanh(functional.linear(hidden, mix, net.mix.bias))


class _NeighbourStates(torch.autograd.Function):
    """(N, W) to (N, D, W): the states of the neighbours on each side, zero where there is none.

    If A is on the left of B, then B is on the right of A: the backward pass gathers from the
    opposite side, where scattering would be slower and add in any order.
    """

    @staticmethod
    def forward(ctx: Any, states: Tensor, neighbours: Tensor) -> Tensor:
        ctx.save_for_backward(neighbours)
        return _with_wall(states)[neighbours]

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        (neighbours,), (gradient,) = ctx.saved_tensors, gradients
        total = _with_wall(gradient[:, 0])[neighbours[:, 1]]
        for side in range(1, neighbours.shape[1]):
            total = total + _with_wall(gradient[:, side])[neighbours[:, side ^ 1]]
        return total, None


def _with_wall(states: Tensor) -> Tensor:
    return torch.cat([states, states.new_zeros(1, states.shape[1])])


def _unpack(rows: Tensor, cells: Tensor, is_open: Tensor) -> Tensor:
    """(N, W) to (B, W, *Q), zero at walls."""
    dense = rows.new_zeros(is_open.numel(), rows.shape[1])
    dense[cells] = rows
    return dense.view(*is_open.shape, -1).movedim(-1, 1)


@dataclass(frozen=True)
class MessageGraph:
    """Which messages there are between the open cells of a batch, and which depend on which."""

    slot: Tensor
    """(M,): where a message stands among the N * D of all cells and sides"""
    receiver: Tensor
    """(M,): the cell that receives it"""
    incoming: Tensor
    """(D, N): the message that comes in from each side; M where there is none"""
    first: Tensor
    """(M,): one message that the sender received from its other neighbours; M: there is none"""
    more: tuple[tuple[Tensor, Tensor], ...]
    """(m,), (m,) for the second, third … such message: which messages have one, and its number"""
    reverse: Tensor
    """(M,): the message that goes the other way"""

    @classmethod
    def between(cls, neighbours: Tensor) -> MessageGraph:
        """Of cells with these neighbours, (N, D); N where there is none."""
        cells, sides = neighbours.shape
        exists = neighbours < cells
        slot = exists.flatten().nonzero().flatten()
        count = len(slot)
        number = torch.full((cells * sides + 1,), count, device=neighbours.device)
        number[slot] = torch.arange(count, device=neighbours.device)
        # The neighbour on a side sends to me on its opposite side.
        opposite = torch.arange(sides, device=neighbours.device) ^ 1
        incoming = number[(neighbours * sides + opposite).where(exists, cells * sides)]
        sender, side = slot // sides, slot % sides
        # Sorted, so that the messages that exist come first.
        others = incoming[sender].scatter(1, side[:, None], count).sort(dim=1).values
        more = []
        for column in others.unbind(1)[1:-1]:
            rows = (column < count).nonzero().flatten()
            more.append((rows, column[rows]))
        return cls(slot, neighbours.flatten()[slot], incoming.T.contiguous(), others[:, 0],
                   tuple(more), incoming[sender, side])  # fmt: skip

    def sum_others(self, messages: Tensor) -> Tensor:
        """(E, M) to (E, M): for every message, what its sender received from all other sides."""
        total = functional.pad(messages, (0, 1)).index_select(1, self.first)
        for rows, which in self.more:
            total.index_add_(1, rows, messages.index_select(1, which))
        return total

    def sum_others_transposed(self, gradient: Tensor) -> Tensor:
        """The transpose of `sum_others`: the same along reversed messages."""
        return self.sum_others(gradient.index_select(1, self.reverse)).index_select(1, self.reverse)

    def received(self, messages: Tensor) -> Tensor:
        """(…, E, M) to (…, E, D, N): what every cell receives from each side."""
        padded = functional.pad(messages, (0, 1))
        received = padded.index_select(-1, self.incoming.flatten())
        return received.view(*messages.shape[:-1], *self.incoming.shape)


class _PassMessages(torch.autograd.Function):
    """All messages before the first iteration and after each: (T + 1, E, M)."""

    @staticmethod
    def forward(
        ctx: Any,
        start: Tensor,
        term: Tensor,
        weight_in: Tensor,
        weight_out: Tensor,
        bias: Tensor,
        graph: MessageGraph,
        noise: Tensor | None,
        steps: int,
    ) -> Tensor:
        sums, hidden, path = [], [], [start]
        for _ in range(steps):
            messages = path[-1] if noise is None else path[-1] + noise
            sums.append(graph.sum_others(messages))
            hidden.append(torch.addmm(term, weight_in, sums[-1]).relu_())
            path.append(torch.addmm(bias[:, None], weight_out, hidden[-1]).tanh_())
        ctx.save_for_backward(weight_in, weight_out)
        ctx.graph, ctx.sums, ctx.hidden, ctx.path = graph, sums, hidden, path
        return torch.stack(path)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        weight_in, weight_out = ctx.saved_tensors
        (gradient,) = gradients
        below = gradient[-1]
        d_term = torch.zeros_like(ctx.hidden[0])
        d_in, d_out = torch.zeros_like(weight_in.T), torch.zeros_like(weight_out)
        d_bias = weight_out.new_zeros(len(weight_out))
        for step in reversed(range(len(ctx.hidden))):
            hidden = ctx.hidden[step]
            d_sent = torch.ops.aten.tanh_backward(below, ctx.path[step + 1])
            d_bias += d_sent.sum(dim=1)
            d_out.addmm_(d_sent, hidden.T)
            d_hidden = torch.ops.aten.threshold_backward(weight_out.T @ d_sent, hidden, 0)
            d_term += d_hidden
            d_in.addmm_(ctx.sums[step], d_hidden.T)
            below = gradient[step] + ctx.graph.sum_others_transposed(weight_in.T @ d_hidden)
        return below, d_term, d_in.T, d_out, d_bias, None, None, None


class _Receive(torch.autograd.Function):
    """(…, E, M) to (…, E, N): the sum of all messages that a cell receives."""

    @staticmethod
    def forward(ctx: Any, messages: Tensor, graph: MessageGraph) -> Tensor:
        ctx.graph = graph
        return graph.received(messages).sum(dim=-2)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return gradients[0].index_select(-1, ctx.graph.receiver), None


class MessagePath:
    """Messages between open cells as columns; a rule with messages and equal sides."""

    def __init__(
        self, net: LocalRule, inputs: Tensor, features: Tensor, steps: int, noise: Tensor | None
    ) -> None:
        """Run all iterations."""
        seen, is_open = net.view(inputs)
        self.is_open = is_open[:, 0].bool()
        self.cells = self.is_open.flatten().nonzero().flatten()
        self._net, self._start = net, features
        self._layers = layers = MessageWeights.of(net)
        self._graph = graph = MessageGraph.between(neighbours_of(self.is_open))
        self._read(net, cell_rows(seen)[self.cells].view(len(self.cells), -1, inputs.shape[1]))
        added = None if noise is None else self._messages(noise)
        run: Any = _PassMessages
        weights = (layers.message_in, layers.message_out, layers.message_bias)
        path = run.apply(
            self._messages(features), self._terms(graph.slot), *weights, graph, added, steps
        )
        self._inputs = path[:-1] if added is None else path[:-1] + added
        """(T, E, M): the messages that every iteration reads"""

    def logits(self, iterations: Sequence[int]) -> Tensor:
        """(len(iterations), N, K): logits of open cells after these, counted from 1."""
        own = self._own(self._inputs[[iteration - 1 for iteration in iterations]])
        head, bias = self._net.head.weight.flatten(1), bias_of(self._net.head)
        # The head of such a rule reads only a cell's own channels.
        return (head[:, : self._layers.state.own] @ own + bias[:, None]).movedim(1, -1)

    @torch.no_grad()
    def features(self, iteration: int) -> Tensor:
        """(B, W, *Q): detached features after that iteration, 0 for the start; walls are zero."""
        if iteration == 0:
            return (self._start * self.is_open[:, None]).detach()
        # The whole state of every cell, messages to walls included.
        layers, messages = self._layers, self._inputs[iteration - 1]
        received = self._graph.received(messages)
        sums = torch.stack(sum_over_other_sides(received.unbind(1)), dim=-1)
        hidden = torch.relu(layers.message_in @ sums.flatten(1) + self._terms())
        sent = torch.tanh(layers.message_out @ hidden + layers.message_bias[:, None])
        sent = sent.view(len(sent), -1, received.shape[1]).movedim(0, -1).flatten(1)
        rows = torch.cat([self._own(messages).T, sent], dim=1)
        return _unpack(rows, self.cells, self.is_open)

    def _messages(self, features: Tensor) -> Tensor:
        """(B, W, *Q) to (E, M)."""
        sent = cell_rows(features)[self.cells][:, self._layers.state.own :]
        by_side = sent.reshape(-1, self._layers.state.each)
        return by_side.index_select(0, self._graph.slot).T.contiguous()

    def _read(self, net: LocalRule, seen: Tensor) -> None:
        """Prepare the recall terms from the problem ``seen`` (N, 1 + D, C), the cell first."""
        hidden, channels = self._layers.hidden, net.config.channels
        recall, bias = net.recall.weight.flatten(1), bias_of(net.recall)
        # Sides are equal: side 0 stands for all, and what it sees of side 1 for all other sides.
        one, own = slice(hidden.own, hidden.own + hidden.each), slice(hidden.own)
        here, there = seen[:, :1].expand_as(seen[:, 1:]), seen[:, 1:]
        others = there.sum(dim=1, keepdim=True) - there
        # (N * D, 3 C): the cell, the neighbour on that side, and the sum of the other neighbours.
        self._views = torch.cat([here, there, others], dim=2).flatten(0, 1)
        self._recall, self._base = recall[one, : 3 * channels], bias[one, None]
        around = torch.cat([seen[:, 0], seen[:, 1:].sum(dim=1)], dim=1)
        self._own_term = bias[own, None] + recall[own, : 2 * channels] @ around.T

    def _terms(self, slots: Tensor | None = None) -> Tensor:
        """(H, M): the problem's part of the hidden layer for these slots, or all."""
        views = self._views if slots is None else self._views.index_select(0, slots)
        return self._base + self._recall @ views.T

    def _own(self, messages: Tensor) -> Tensor:
        """(…, E, M) to (…, O, N): the own channels of cells that receive these messages."""
        receive: Any = _Receive
        layers = self._layers
        hidden = torch.relu(layers.own_in @ receive.apply(messages, self._graph) + self._own_term)
        return torch.tanh(layers.own_out @ hidden + layers.own_bias[:, None])
