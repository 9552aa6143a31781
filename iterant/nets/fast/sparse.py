"""Local rules on open cells, and their sparse form: only the cells that can change are computed.

    >>> fast = SparseRule(net)
    >>> last(think(fast, inputs, steps=1000)).prediction     # as by the rule itself

Most of a maze is wall, and walls stay zero: the open cells of a batch are the rows of one
matrix. Each sample has as many rows as the sample with the most open cells, and one more, which
is always zero and stands for walls and the outside.

The next state of a cell depends only on itself and its neighbours. If none of them changed in the
last iteration, the cell does not change either. In a rule with messages a cell reads only the
messages of its neighbours, so it is computed only if one of those changed: in a large maze about
six times in thousands of iterations. Even the smallest change counts, so a state at rest here is a
state at rest of the rule itself, up to rounding.

Shapes: B batch, W width, H hidden, K classes, D sides of a cell, *S space in pixels, *Q space in
cells, N rows of a sample, n active cells.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from iterant.errors import NetError
from iterant.nets.local_rule import LocalRule, bias_of, message_layouts


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
        flat = is_open.flatten(1)
        wall = int(flat.sum(dim=1).max())  # the row behind the last cell
        numbers = (flat.cumsum(dim=1) - 1).where(flat, wall).view_as(is_open)
        sample, cell = flat.nonzero(as_tuple=True)
        row, around = numbers[is_open], neighbours_of(is_open, numbers, wall)
        position = row.new_full((len(flat), wall + 1), flat.shape[1])
        position[sample, row] = cell
        neighbours = row.new_full((len(flat), wall + 1, around.shape[1]), wall)
        neighbours[sample, row] = around
        return cls(tuple(is_open.shape[1:]), position, neighbours)

    def pack(self, values: Tensor) -> Tensor:
        """(B, X, *Q) to (B, N, X), zero in rows without a cell."""
        flat = values.flatten(2).movedim(1, 2)
        padded = torch.cat([flat, flat.new_zeros(len(flat), 1, flat.shape[2])], dim=1)
        return padded.gather(1, self.position[..., None].expand(-1, -1, flat.shape[2]))

    def unpack(self, packed: Tensor, elsewhere: Tensor) -> Tensor:
        """(B, N, X) to (B, X, *Q); ``elsewhere`` (X,) where there is no cell."""
        count, _, channels = packed.shape
        size = math.prod(self.space)
        flat = elsewhere.expand(count, size + 1, -1).clone()
        flat.scatter_(1, self.position[..., None].expand(-1, -1, channels), packed)
        return flat[:, :size].movedim(1, 2).reshape(count, channels, *self.space)


def neighbours_of(is_open: Tensor, numbers: Tensor, wall: int) -> Tensor:
    """(M, D): the numbers of the neighbours of all M open cells of a batch.

    ``numbers`` (B, *Q) are those of the cells, ``wall`` where a cell is not ``is_open``, and
    outside.
    """
    sides = []
    for axis in range(1, is_open.dim()):
        for shift in (1, -1):
            # roll() wraps around: overwrite what comes in from the opposite edge with a wall.
            rolled = numbers.roll(shift, axis)
            rolled.select(axis, 0 if shift == 1 else -1).fill_(wall)
            sides.append(rolled[is_open])
    return torch.stack(sides, dim=1)


class PackedRule:
    """A local rule on packed cells, with a copy of its weights; subclasses define the iteration.

    It keeps tables of the inputs read last and of the features returned last. Features of another
    origin (an intervention, a stored state) are allowed at every iteration, at some cost.
    """

    depth: int | None = None

    def __init__(self, net: LocalRule) -> None:
        self.net, self.config, self.readout = net, net.config, net.readout
        self.moved: Tensor | None = None
        """(B,): the largest change of a feature in the latest iteration"""
        self._inputs: Tensor | None = None
        self._features: Tensor | None = None
        self._load_weights(net)

    def start(self, inputs: Tensor) -> Tensor:
        """Zeros, (B, N, W)."""
        memory = self.read(inputs)
        self._features, self.moved = None, None
        return memory.new_zeros(*memory.shape[:2], self.net.config.width)

    @torch.no_grad()
    def read(self, inputs: Tensor) -> Tensor:
        """The recall term of every cell, (B, N, H)."""
        if inputs is not self._inputs:
            memory = self.net.read(inputs)
            cells = Cells.of(memory[:, -1].bool())
            self._lay_out(inputs, cells, cells.pack(memory[:, :-1]))
            self._features = None
        return self._memory

    @torch.no_grad()
    def answer(self, features: Tensor) -> Tensor:
        """Logits (B, K, *S)."""
        if features.shape[:2] != self._memory.shape[:2]:
            raise NetError("these features belong to other inputs than those read last")
        logits = torch.nn.functional.linear(features, self._head, self._head_bias)
        return self.net.in_pixels(self._cells.unpack(logits, self._head_bias))

    def keep(self, which: Tensor, inputs: Tensor, features: Tensor) -> None:
        """Continue with some samples, given their rows of the last inputs and features."""
        if self._features is not None:
            old = self._cells
            cells = Cells(old.space, old.position[which], old.neighbours[which])
            self._lay_out(inputs, cells, self._memory[which])
            self._features = features

    def _check_memory(self, memory: Tensor | None) -> None:
        if memory is not self._memory:
            raise NetError("this network works on the inputs that it read last; read them again")

    def _lay_out(self, inputs: Tensor, cells: Cells, memory: Tensor) -> None:
        """Set the tables for these samples."""
        self._inputs, self._cells, self._memory = inputs, cells, memory
        is_cell = cells.position < math.prod(cells.space)
        self._is_cell = is_cell[..., None].to(memory.dtype)

    def _reads(self) -> Tensor:
        """(B, N, R): the parts that a cell reads, numbered over the rows of its sample.

        With messages, a row has several parts: each of its messages is one. Without, the whole row
        is one part, and a cell reads its own and those of its neighbours.
        """
        neighbours = self._cells.neighbours
        if self._own:
            sides = torch.arange(neighbours.shape[2], device=neighbours.device)
            return neighbours * self._parts + self._own // self._each + (sides ^ 1)
        itself = torch.arange(neighbours.shape[1], device=neighbours.device)[:, None]
        return torch.cat([itself.expand(len(neighbours), -1, -1), neighbours], dim=2)

    def _load_weights(self, net: LocalRule) -> None:
        """The rule's two layers as matrices over what a cell reads."""
        config, layout = net.config, message_layouts(net.config)[0]
        # Channels of a cell that others do not read, of a part, and the number of parts of a cell.
        self._own, self._each = (layout.own, layout.each) if config.messages else (0, config.width)
        self._parts = config.width // self._each
        sight, mix, head = net.sight.weight.detach().flatten(1), net.mix, net.head
        if config.summed:  # the same weights for every neighbour
            own, around = sight.chunk(2, dim=1)
            sight = torch.cat([own, *[around] * (2 * config.dims)], dim=1)
        self._sight = sight.T.contiguous()
        self._mix, self._bias = mix.weight.detach().flatten(1).T.contiguous(), bias_of(mix).detach()
        self._head, self._head_bias = head.weight.detach().flatten(1), bias_of(head).detach()


class SparseRule(PackedRule):
    """A local rule that computes only active cells; for batches on a CPU."""

    threads = 1

    def __init__(self, net: LocalRule, *, reuse: bool = False) -> None:
        """The sparse form of this rule; ``reuse``: overwrite the features of the step before."""
        super().__init__(net)
        self.reuse = reuse
        self.computed = 0
        """Cells computed since the start, over all iterations; `evaluate_long` reports them"""
        self._active: Tensor

    @property
    def cells(self) -> int:
        """Open cells of all samples."""
        return len(self._every)

    def start(self, inputs: Tensor) -> Tensor:
        self.computed = 0
        return super().start(inputs)

    @torch.no_grad()
    def step(self, features: Tensor, memory: Tensor | None, index: int) -> Tensor:
        """One iteration of the active cells; of all cells where the features come from elsewhere.

        ``memory`` is what `read` returned last.
        """
        self._check_memory(memory)
        if features is not self._features:
            # Features of another origin: rows without a cell must be zero, as walls are.
            features, active = features * self._is_cell, self._every
        else:
            active = self._active
            features = features.view(features.shape) if self.reuse else features.clone()
        self._features = features
        self.moved = features.new_zeros(len(features))
        if len(active):
            self.computed += len(active)
            rows = features.view(-1, features.shape[2])
            change, self._active = self._compute(rows, active)
            # (n,) to (B,); a change that is NaN makes the largest NaN.
            sample = active.div(features.shape[1], rounding_mode="floor")
            self.moved.scatter_reduce_(0, sample, change, "amax")
        return features

    def answer(self, features: Tensor) -> Tensor:
        if self.reuse and features is not self._features and self._features is not None:
            raise NetError("these features have been overwritten by a later iteration")
        return super().answer(features)

    def keep(self, which: Tensor, inputs: Tensor, features: Tensor) -> None:
        if self._features is not None:
            rows, active = self._features.shape[1], self._active
            sample = active.div(rows, rounding_mode="floor")
            new_row = torch.full((len(self._features),), -1)
            new_row[which] = torch.arange(len(which))
            stays = new_row[sample] >= 0
            super().keep(which, inputs, features)
            self._active = (new_row[sample] * rows + active.remainder(rows))[stays]

    def _lay_out(self, inputs: Tensor, cells: Cells, memory: Tensor) -> None:
        super()._lay_out(inputs, cells, memory)
        count, rows = memory.shape[:2]
        self._term = memory.flatten(0, 1)  # (B * N, H)
        # Tables over the rows of all samples together: (B * N, D), (B * N, R).
        first = torch.arange(count) * rows  # (B,): the first row of every sample
        self._neighbours = (cells.neighbours + first[:, None, None]).flatten(0, 1)
        self._read = (self._reads() + self._parts * first[:, None, None]).flatten(0, 1)
        self._walls = first + rows - 1
        self._mark = torch.zeros(count * rows, dtype=torch.bool)
        self._active = self._every = self._is_cell.flatten().nonzero().flatten()

    def _compute(self, states: Tensor, active: Tensor) -> tuple[Tensor, Tensor]:
        """Write the next states of the active cells into ``states`` (B * N, W).

        Returns their largest changes (n,), and the cells that are active next.
        """
        count = len(active)
        reads = self._read.index_select(0, active)  # (n, R)
        parts = states.view(-1, self._each)
        seen = parts.index_select(0, reads.view(-1)).view(count, -1)  # (n, R * each)
        hidden = torch.addmm(self._term.index_select(0, active), seen, self._sight).relu_()
        new = torch.addmm(self._bias, hidden, self._mix).tanh_()  # (n, W)
        before = states.index_select(0, active)
        # All reads are done: writing in place cannot affect this iteration any more.
        states.index_copy_(0, active, new)
        change = new.sub_(before).abs_()
        largest = change.amax(dim=1)
        # Exactly zero is unchanged; NaN counts as changed.
        if self._own:
            # The neighbour whose message a cell reads on a side also reads the message sent there.
            changed = change[:, self._own :].view(count, -1, self._each).amax(dim=2) != 0  # (n, D)
            readers = self._neighbours.index_select(0, active)[changed]
        else:
            readers = reads[largest != 0].flatten()
        # The distinct readers in order, without walls.
        self._mark[readers] = True
        self._mark[self._walls] = False
        marked = self._mark.nonzero().flatten()
        self._mark[marked] = False
        return largest, marked
