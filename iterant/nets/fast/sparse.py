"""The sparse form of a local rule: an iteration computes only the cells that can change.

    >>> fast = SparseRule(net)
    >>> last(think(fast, inputs, steps=1000)).prediction     # as by the rule itself

What a cell holds next depends on itself and its neighbours alone. Where none of them changed in the
last iteration, the cell would come out the same; cells that are walls hold zero for ever. In a
rule with messages a cell reads only what its neighbours write to it, so it is computed only if one
of those messages changed: in a large maze about six times, in thousands of iterations.

No change is too small to count, so a state at rest here is a state at rest of the rule itself, up
to rounding: matrix products of other shapes add in another order.

The cells of all samples are rows of one matrix. Each sample has as many rows as the sample with
most cells, and one more, which is always zero and stands for walls and what lies outside.

Shapes: B batch, W width, H hidden, K classes, D sides of a cell, *S space in pixels, *Q space in
cells, N rows of a sample, n active cells.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeGuard

import torch
from torch import Tensor

from iterant.errors import NetError
from iterant.nets.local_rule import LocalRule
from iterant.nets.messages import OWN_WIDTH, Shares


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
        count, space = len(is_open), tuple(is_open.shape[1:])
        flat = is_open.flatten(1)
        most = int(flat.sum(dim=1).max()) if count else 0
        wall = most  # the row behind the last cell
        row = torch.where(flat, flat.cumsum(dim=1) - 1, wall).view(is_open.shape)
        sample, place = flat.nonzero(as_tuple=True)
        here = row.flatten(1)[sample, place]
        position = torch.full((count, most + 1), flat.shape[1], device=flat.device)
        position[sample, here] = place
        sides = 2 * len(space)
        neighbours = torch.full((count, most + 1, sides), wall, device=flat.device)
        for axis in range(len(space)):
            for side, shift in enumerate((1, -1)):
                # What rolls in at an edge comes from the opposite one: a wall takes its place.
                rolled = row.roll(shift, axis + 1)
                rolled.select(axis + 1, 0 if shift == 1 else -1).fill_(wall)
                neighbours[sample, here, 2 * axis + side] = rolled.flatten(1)[sample, place]
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


class SparseRule:
    """A local rule that computes only active cells; for batches, without gradients."""

    depth: int | None = None
    threads = 1

    def __init__(self, net: LocalRule, *, reuse: bool = False) -> None:
        """The sparse form of this rule; ``reuse``: overwrite the features of the step before."""
        self.net, self.readout, self.reuse = net, net.readout, reuse
        self.moved: Tensor | None = None
        """(B,): the largest change of a number in the latest iteration"""
        self.computed = 0
        """Cells computed since the start, over all iterations"""
        self._inputs: Tensor | None = None
        self._active: Tensor
        self._features: Tensor | None = None
        self._load_weights(net)

    @property
    def cells(self) -> int:
        """Open cells of all samples."""
        return len(self._every)

    def check(self, inputs: Tensor) -> None:
        """Raise NetError where the inputs cannot be read by this network."""
        self.net.check(inputs)

    def start(self, inputs: Tensor) -> Tensor:
        """Zeros, (B, N, W)."""
        memory = self.read(inputs)
        self._features, self.moved, self.computed = None, None, 0
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

    @torch.no_grad()
    def step(self, features: Tensor, memory: Tensor | None, index: int) -> Tensor:
        """One iteration of the active cells; of all cells where the features come from elsewhere.

        ``memory`` is what `read` returned last.
        """
        if memory is not self._memory:
            raise NetError("a sparse rule works on the inputs that it read last; read them again")
        if features is not self._features:
            # Somebody else's features: rows without a cell must be zero, as walls are.
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

    @torch.no_grad()
    def answer(self, features: Tensor) -> Tensor:
        """Logits (B, K, *S)."""
        if self.reuse and features is not self._features and self._features is not None:
            raise NetError("these features have been overwritten by a later iteration")
        if features.shape[:2] != self._memory.shape[:2]:
            raise NetError("these features belong to other inputs than those read last")
        logits = torch.nn.functional.linear(features, self._head, self._head_bias)
        return self.net.in_pixels(self._cells.unpack(logits, self._head_bias))

    def keep(self, which: Tensor, inputs: Tensor, features: Tensor) -> None:
        """Go on with some samples: these rows of the inputs read last and of the last features."""
        if self._features is None:
            return
        rows, active = self._features.shape[1], self._active
        sample = active.div(rows, rounding_mode="floor")
        place = which.cumsum(0) - 1
        stays = which[sample]
        self._lay_out(inputs, self._cells.rows(which), self._memory[which])
        self._active = (place[sample] * rows + active.remainder(rows))[stays]
        self._features = features

    def _lay_out(self, inputs: Tensor, cells: Cells, memory: Tensor) -> None:
        """Take these samples: tables over the rows of all of them together."""
        self._inputs, self._cells, self._memory = inputs, cells, memory
        count, rows = memory.shape[:2]
        is_cell = cells.position < math.prod(cells.space)
        self._is_cell = is_cell[..., None].to(memory.dtype)
        self._every = is_cell.flatten().nonzero().flatten()
        first = torch.arange(count, device=memory.device) * rows
        self._neighbours = (cells.neighbours + first[:, None, None]).flatten(0, 1)
        # Which parts of which rows a cell reads: messages, or all of itself and its neighbours.
        if self.net.config.messages:
            sides = torch.arange(self._neighbours.shape[1], device=memory.device)
            self._parts = self.net.config.width // self._each
            self._reads = self._neighbours * self._parts + self._own // self._each + (sides ^ 1)
        else:
            itself = torch.arange(count * rows, device=memory.device)[:, None]
            self._parts, self._reads = 1, torch.cat([itself, self._neighbours], dim=1)
        self._term = memory.flatten(0, 1)
        self._walls = first + rows - 1
        self._mark = torch.zeros(count * rows, dtype=torch.bool, device=memory.device)
        self._active = self._every

    def _load_weights(self, net: LocalRule) -> None:
        """The rule's two layers as matrices over what a cell reads."""
        config, sides = net.config, 2 * net.config.dims
        sight = net.sight.weight.detach().flatten(1)
        if config.summed:  # the same weights for every neighbour
            own, around = sight[:, : config.width], sight[:, config.width :]
            sight = torch.cat([own, *[around] * sides], dim=1)
        if config.messages:
            # Of the neighbour on a side, only the message on its opposite side is read.
            shares = Shares.of(config.width, sides, OWN_WIDTH)
            self._own, self._each = shares.own, shares.each
            read = [
                (1 + side) * config.width + column
                for side in range(sides)
                for column in shares.of_side(side ^ 1)
            ]
            sight = sight[:, read]
        if net.mix.bias is None or net.head.bias is None:
            raise TypeError("the mixing layer and the head of a local rule have a bias")
        self._head, self._head_bias = net.head.weight.detach().flatten(1), net.head.bias.detach()
        self._sight, self._bias = sight.T.contiguous(), net.mix.bias.detach()
        self._mix = net.mix.weight.detach().flatten(1).T.contiguous()

    def _compute(self, held: Tensor, active: Tensor) -> tuple[Tensor, Tensor]:
        """Write the next state of the active cells; their changes (n,) and the next active ones."""
        count, messages = len(active), self.net.config.messages
        reads = self._reads.index_select(0, active)
        parts = held.view(len(held) * self._parts, -1)
        seen = parts.index_select(0, reads.view(-1)).view(count, -1)
        hidden = torch.addmm(self._term.index_select(0, active), seen, self._sight).relu_()
        new = torch.addmm(self._bias, hidden, self._mix).tanh_()
        before = held.index_select(0, active)
        held.index_copy_(0, active, new)
        change = new.sub_(before).abs_()
        largest = change.amax(dim=1)
        # Exactly zero is unchanged; NaN counts as changed.
        if messages:
            # What I read on a side and who reads what I wrote there are the same neighbour.
            changed = change[:, self._own :].view(count, -1, self._each).amax(dim=2) != 0
            readers = self._neighbours.index_select(0, active)[changed]
        else:
            readers = reads[largest != 0].flatten()
        return largest, self._marked(readers)

    def _marked(self, rows: Tensor) -> Tensor:
        """The cells among these rows, each once and in order."""
        self._mark[rows] = True
        self._mark[self._walls] = False
        marked = self._mark.nonzero().flatten()
        self._mark[marked] = False
        return marked


def has_sparse_form(net: object) -> TypeGuard[LocalRule]:
    """Whether most of this network's work can be left out: a local rule among walls."""
    return type(net) is LocalRule and net.config.masked
