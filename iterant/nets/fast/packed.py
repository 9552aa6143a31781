"""The open cells of a batch as rows of one matrix, for local rules that compute nothing else.

Most of a maze is wall, and walls hold zero for ever. Each sample has as many rows as the sample
with most open cells, and one more, which is always zero: it stands for walls and what lies outside.

Shapes: B batch, W width, H hidden, K classes, D sides of a cell, *S space in pixels, *Q space in
cells, N rows of a sample.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from iterant.errors import NetError
from iterant.nets.local_rule import OWN_WIDTH, LocalRule, MessageLayout


@dataclass(frozen=True)
class Cells:
    """Where the open cells of a batch lie, and which are neighbours."""

    space: tuple[int, ...]
    """*Q"""
    position: Tensor
    """(B, N): the cell of a row, counted over *Q; of rows without a cell, one behind the last"""
    neighbours: Tensor
    """(B, N, D): the row, within the sample, of the neighbour on each side"""

    @classmethod
    def of(cls, is_open: Tensor) -> Cells:
        """The cells that are open, (B, *Q) bool."""
        count, space, device = len(is_open), tuple(is_open.shape[1:]), is_open.device
        flat = is_open.flatten(1)
        of_each = flat.sum(dim=1)
        wall = int(of_each.max()) if count else 0  # the row behind the last cell
        sample, place = flat.nonzero(as_tuple=True)
        before = (of_each.cumsum(dim=0) - of_each)[sample]  # cells of earlier samples
        row = torch.arange(len(sample), device=device) - before
        position = torch.full((count, wall + 1), flat.shape[1], device=device)
        position[sample, row] = place
        beside = neighbours_of(is_open)
        there = beside < len(sample)
        neighbours = torch.full((count, wall + 1, beside.shape[1]), wall, device=device)
        neighbours[sample, row] = torch.where(there, beside - before[:, None], wall)
        return cls(space, position, neighbours)

    def rows(self, which: Tensor) -> Cells:
        """Those of some samples."""
        return Cells(self.space, self.position[which], self.neighbours[which])

    def pack(self, values: Tensor) -> Tensor:
        """(B, X, *Q) to (B, N, X), zero in rows without a cell."""
        flat = values.flatten(2).movedim(1, 2)
        padded = torch.cat([flat, flat.new_zeros(len(flat), 1, flat.shape[2])], dim=1)
        return padded.gather(1, self.position[..., None].expand(-1, -1, flat.shape[2]))

    def unpack(self, packed: Tensor, elsewhere: Tensor) -> Tensor:
        """(B, N, X) to (B, X, *Q); ``elsewhere`` (X,) where there is no cell."""
        count, _, numbers = packed.shape
        size = math.prod(self.space)
        flat = elsewhere.expand(count, size + 1, -1).clone()
        flat.scatter_(1, self.position[..., None].expand(-1, -1, numbers), packed)
        return flat[:, :size].movedim(1, 2).reshape(count, numbers, *self.space)


def neighbours_of(is_open: Tensor) -> Tensor:
    """(M, D): the numbers of the neighbours of all M open cells of a batch, (B, *Q) bool.

    Cells are numbered in order; M where a neighbour is a wall or outside.
    """
    count = int(is_open.sum())
    numbers = torch.full(is_open.shape, count, device=is_open.device)
    numbers[is_open] = torch.arange(count, device=is_open.device)
    sides = []
    for axis in range(1, is_open.dim()):
        for shift in (1, -1):
            # What rolls in at an edge comes from the opposite one: a wall takes its place.
            rolled = numbers.roll(shift, axis)
            rolled.select(axis, 0 if shift == 1 else -1).fill_(count)
            sides.append(rolled[is_open])
    return torch.stack(sides, dim=1)


class PackedRule:
    """A local rule on packed cells, without gradients; what an iteration does is a subclass's.

    It keeps tables of the inputs read last and of the features returned last. Features of another
    origin (an intervention, a stored state) are allowed at every iteration, at some cost.
    """

    depth: int | None = None

    def __init__(self, net: LocalRule) -> None:
        """Take the weights of that rule, as they are now."""
        self.net, self.readout = net, net.readout
        self.moved: Tensor | None = None
        """(B,): the largest change of a number in the latest iteration"""
        self._inputs: Tensor | None = None
        self._features: Tensor | None = None
        self._load_weights(net)

    def check(self, inputs: Tensor) -> None:
        """Raise NetError where the inputs cannot be read by this network."""
        self.net.check(inputs)

    def start(self, inputs: Tensor) -> Tensor:
        """Zeros, (B, N, W)."""
        memory = self.read(inputs)
        self._features, self.moved = None, None
        return memory.new_zeros(*memory.shape[:2], self.net.config.width)

    @torch.no_grad()
    def read(self, inputs: Tensor) -> Tensor:
        """What every cell makes of the problem, (B, N, H)."""
        if inputs is not self._inputs:
            memory = self.net.read(inputs)
            cells = Cells.of(memory[:, -1].bool())
            self._lay_out(inputs, cells, cells.pack(memory[:, :-1]))
            self._features = None
        return self._memory

    def step(self, features: Tensor, memory: Tensor | None, index: int) -> Tensor:
        """One iteration; ``memory`` is what `read` returned last."""
        raise NotImplementedError

    @torch.no_grad()
    def answer(self, features: Tensor) -> Tensor:
        """Logits (B, K, *S)."""
        if features.shape[:2] != self._memory.shape[:2]:
            raise NetError("these features belong to other inputs than those read last")
        logits = torch.nn.functional.linear(features, self._head, self._head_bias)
        return self.net.in_pixels(self._cells.unpack(logits, self._head_bias))

    def keep(self, which: Tensor, inputs: Tensor, features: Tensor) -> None:
        """Go on with some samples: these rows of the inputs read last and of the last features."""
        if self._features is not None:
            self._lay_out(inputs, self._cells.rows(which), self._memory[which])
            self._features = features

    def _check_memory(self, memory: Tensor | None) -> None:
        if memory is not self._memory:
            raise NetError("this network works on the inputs that it read last; read them again")

    def _lay_out(self, inputs: Tensor, cells: Cells, memory: Tensor) -> None:
        """Take these samples."""
        self._inputs, self._cells, self._memory = inputs, cells, memory
        is_cell = cells.position < math.prod(cells.space)
        self._is_cell = is_cell[..., None].to(memory.dtype)

    def _reads(self) -> Tensor:
        """(B, N, R): which parts of which rows of its sample a cell reads.

        Parts are messages, or all that a row holds: of the cell itself and of its neighbours.
        """
        neighbours = self._cells.neighbours
        if self.net.config.messages:
            sides = torch.arange(neighbours.shape[2], device=neighbours.device)
            parts = self.net.config.width // self._each
            return neighbours * parts + self._own // self._each + (sides ^ 1)
        itself = torch.arange(neighbours.shape[1], device=neighbours.device)[:, None]
        return torch.cat([itself.expand(len(neighbours), -1, -1), neighbours], dim=2)

    def _load_weights(self, net: LocalRule) -> None:
        """The rule's two layers as matrices over what a cell reads."""
        config, sides = net.config, 2 * net.config.dims
        sight = net.sight.weight.detach().flatten(1)
        if config.summed:  # the same weights for every neighbour
            own, around = sight[:, : config.width], sight[:, config.width :]
            sight = torch.cat([own, *[around] * sides], dim=1)
        if config.messages:
            # Of the neighbour on a side, only the message on its opposite side is read.
            shares = MessageLayout.of(config.width, sides, OWN_WIDTH)
            self._own, self._each = shares.own, shares.each
            read = [
                (1 + side) * config.width + column
                for side in range(sides)
                for column in shares.of_side(side ^ 1)
            ]
            sight = sight[:, read]
        else:
            self._own, self._each = 0, config.width
        if net.mix.bias is None or net.head.bias is None:
            raise TypeError("the mixing layer and the head of a local rule have a bias")
        self._head, self._head_bias = net.head.weight.detach().flatten(1), net.head.bias.detach()
        self._sight, self._bias = sight.T.contiguous(), net.mix.bias.detach()
        self._mix = net.mix.weight.detach().flatten(1).T.contiguous()
