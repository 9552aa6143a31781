"""Networks on open cells, and their sparse forms: only the cells that can change are computed.

    >>> fast = SparseRule(net)                            # SparseMaxPlus for a max-plus network
    >>> last(think(fast, inputs, steps=1000)).prediction  # as by the network itself

Most of a maze is wall, and the state of walls never changes: the open cells of a batch are the rows
of one matrix. Each sample has as many rows as the sample with the most open cells, and one more,
which stands for walls and the outside.

The next state of a cell depends only on itself and its neighbours. If none of them changed in the
last iteration, the cell does not change either. In a rule with messages a cell reads only the
messages of its neighbours, so it is computed only if one of those changed: in a large maze about
six times in thousands of iterations. Even the smallest change counts, so a state at rest here is a
state at rest of the rule itself, up to rounding.

Shapes: B batch, W width, H hidden, K classes, D sides of a cell, *S space in pixels, *Q space in
cells, N rows of a sample, n active cells, X any number of channels, R parts of rows that a
cell reads: the message of each neighbour, or without messages the whole rows of itself and them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from iterant.errors import NetError
from iterant.nets.local_rule import (
    LocalRule,
    bias_of,
    in_pixels,
    message_layouts,
    neighbours_of_cells,
)
from iterant.nets.max_plus import UNIT, UNREACHED, MaxPlus, choose_sides, distance_values


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
    def from_mask(cls, is_open: Tensor) -> Cells:
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
    sides = neighbours_of_cells(numbers[:, None], outside=wall)  # D times (B, 1, *Q)
    return torch.stack([side[:, 0][is_open] for side in sides], dim=1)


class Packed:
    """A network on packed cells; subclasses define the iteration and copy the weights.

    Features are (B, N, W), and memory (B, N, X) is that of the network at the same cells.

    It keeps tables of the inputs read last and of the features returned last. Features of another
    origin (an intervention, a stored state) are allowed at every iteration, at some cost.
    """

    depth: int | None = None
    _wall: Tensor
    """(W,): the state of walls, and of every cell before the first iteration"""
    _head: Tensor
    """(K, W)"""
    _head_bias: Tensor

    def __init__(self, net: LocalRule | MaxPlus) -> None:
        self.net, self.config, self.readout = net, net.config, net.readout
        self.last_change: Tensor | None = None
        """(B,): the largest change of a feature in the latest iteration"""
        self._inputs: Tensor | None = None
        self._features: Tensor | None = None

    def start(self, inputs: Tensor) -> Tensor:
        """(B, N, W)"""
        memory = self.read(inputs)
        self._features, self.last_change = None, None
        return self._wall.expand(*memory.shape[:2], -1).clone()

    @torch.no_grad()
    def read(self, inputs: Tensor) -> Tensor:
        """What the network reads, of every cell; its last channel is positive at open cells."""
        if inputs is not self._inputs:
            memory = self.net.read(inputs)
            cells = Cells.from_mask(memory[:, -1] > 0)
            self._set_tables(inputs, cells, cells.pack(memory))
            self._features = None
        return self._memory

    @torch.no_grad()
    def answer(self, features: Tensor) -> Tensor:
        """Logits (B, K, *S)."""
        if features.shape[:2] != self._memory.shape[:2]:
            raise NetError("these features belong to other inputs than those read last")
        logits = torch.nn.functional.linear(features, self._head, self._head_bias)
        wall = torch.nn.functional.linear(self._wall, self._head, self._head_bias)
        return in_pixels(self._cells.unpack(logits, wall), self.config.stem)

    def select_samples(self, which: Tensor, inputs: Tensor, features: Tensor) -> None:
        """Continue with some samples, given their rows of the last inputs and features."""
        if self._features is not None:
            old = self._cells
            cells = Cells(old.space, old.position[which], old.neighbours[which])
            self._set_tables(inputs, cells, self._memory[which])
            self._features = features

    def _check_memory(self, memory: Tensor | None) -> None:
        if memory is not self._memory:
            raise NetError("this network works on the inputs that it read last; read them again")

    def _set_tables(self, inputs: Tensor, cells: Cells, memory: Tensor) -> None:
        """Set the tables for these samples."""
        self._inputs, self._cells, self._memory = inputs, cells, memory
        self._is_cell = (cells.position < math.prod(cells.space))[..., None]  # (B, N, 1)

    def _with_walls(self, features: Tensor) -> Tensor:
        """Features of another origin, with the state of walls in rows without a cell."""
        return features.detach().where(self._is_cell, self._wall)


class PackedRule(Packed):
    """A local rule on packed cells: what its forms for CPU and GPU (`cuda.FusedRule`) share."""

    def __init__(self, net: LocalRule) -> None:
        """The rule's two layers as matrices over what a cell reads."""
        super().__init__(net)
        config, layout = net.config, message_layouts(net.config)[0]
        # Channels that neighbours do not read; 0: a rule without messages.
        self._own_channels = layout.own if config.messages else 0
        self._part_channels = layout.each if config.messages else config.width  # see `_read_index`
        self._parts_of_row = config.width // self._part_channels
        sight, mix, head = net.sight.weight.detach().flatten(1), net.mix, net.head
        if config.summed:  # the same weights for every neighbour
            own, around = sight.chunk(2, dim=1)
            sight = torch.cat([own, *[around] * (2 * config.dims)], dim=1)
        self._sight = sight.T.contiguous()
        self._mix, self._bias = mix.weight.detach().flatten(1).T.contiguous(), bias_of(mix).detach()
        self._head, self._head_bias = head.weight.detach().flatten(1), bias_of(head).detach()
        self._wall = self._head.new_zeros(config.width)

    def _read_index(self) -> Tensor:
        """(B, N, R): the parts that a cell reads, numbered over the rows of its sample.

        With messages, a row has several parts: each of its messages is one. Without, the whole row
        is one part, and a cell reads its own and those of its neighbours.
        """
        neighbours = self._cells.neighbours
        if self._own_channels:
            sides = torch.arange(neighbours.shape[2], device=neighbours.device)
            first_message = self._own_channels // self._part_channels
            # The neighbour on a side sends through its opposite side.
            return neighbours * self._parts_of_row + first_message + (sides ^ 1)
        itself = torch.arange(neighbours.shape[1], device=neighbours.device)[:, None]
        return torch.cat([itself.expand(len(neighbours), -1, -1), neighbours], dim=2)


class Sparse(Packed):
    """A network that computes only active cells; for batches on a CPU."""

    threads = 1

    def __init__(self, net: LocalRule | MaxPlus, *, reuse: bool = False) -> None:
        """The sparse form of this network; ``reuse``: overwrite the features of the step before."""
        super().__init__(net)
        self.reuse = reuse
        self._computed = 0
        """Cells computed since the start, over all iterations"""
        self._cells_at_start = 0
        self._active: Tensor
        """(n,): the cells to compute next, numbered over the rows of all samples"""
        self._overwritten: tuple[Tensor, Tensor] | None = None
        """(n,), (n, W): the cells of the latest iteration, and their states before it"""

    @property
    def updates_per_cell(self) -> float:
        """How often a cell was computed since the start, on average over the batch."""
        return self._computed / max(1, self._cells_at_start)

    def start(self, inputs: Tensor) -> Tensor:
        features = super().start(inputs)
        self._computed, self._cells_at_start = 0, len(self._all_cells)
        return features

    @torch.no_grad()
    def step(self, features: Tensor, memory: Tensor | None, index: int) -> Tensor:
        """One iteration of the active cells; of all cells where the features come from elsewhere.

        ``memory`` is what `read` returned last.
        """
        self._check_memory(memory)
        if features is not self._features:
            features, active = self._with_walls(features), self._all_cells
        else:
            active = self._active
            # A view, not the same object: `answer` then tells the latest features from older ones,
            # which share its memory and have been overwritten.
            features = features.view(features.shape) if self.reuse else features.clone()
        self._features = features
        self.last_change = features.new_zeros(len(features))
        self._overwritten = None
        if len(active):
            self._computed += len(active)
            rows = features.view(-1, features.shape[2])  # (B * N, W)
            change, self._active = self._compute(rows, active)
            # (n,) to (B,); a change that is NaN makes the largest NaN.
            sample = active.div(features.shape[1], rounding_mode="floor")
            self.last_change.scatter_reduce_(0, sample, change, "amax")
        return features

    def previous_features(self, before: Tensor) -> Tensor:
        """The features before the latest iteration, rebuilt if it has overwritten them."""
        if not self.reuse or self._features is None:
            return before
        if self._overwritten is None:  # no cell was active
            return self._features
        features = self._features.clone()
        features.view(-1, features.shape[2]).index_copy_(0, *self._overwritten)
        return features

    def answer(self, features: Tensor) -> Tensor:
        latest = self._features
        in_place = self.reuse and latest is not None and features.data_ptr() == latest.data_ptr()
        if in_place and features is not latest:
            raise NetError("these features have been overwritten by a later iteration")
        return super().answer(features)

    def select_samples(self, which: Tensor, inputs: Tensor, features: Tensor) -> None:
        if self._features is not None:
            rows, active = self._features.shape[1], self._active
            sample = active.div(rows, rounding_mode="floor")
            new_sample = torch.full((len(self._features),), -1)  # (B,): its index from now on
            new_sample[which] = torch.arange(len(which))
            stays = new_sample[sample] >= 0
            super().select_samples(which, inputs, features)
            self._active = (new_sample[sample] * rows + active.remainder(rows))[stays]

    def _set_tables(self, inputs: Tensor, cells: Cells, memory: Tensor) -> None:
        super()._set_tables(inputs, cells, memory)
        count, rows = memory.shape[:2]
        # Tables over the rows of all samples together.
        self._first_rows = torch.arange(count) * rows  # (B,)
        first = self._first_rows[:, None, None]
        self._neighbours = (cells.neighbours + first).flatten(0, 1)  # (B * N, D)
        self._wall_rows = self._first_rows + rows - 1  # (B,)
        self._is_reader = torch.zeros(count * rows, dtype=torch.bool)
        self._active = self._all_cells = self._is_cell.flatten().nonzero().flatten()

    def _compute(self, states: Tensor, active: Tensor) -> tuple[Tensor, Tensor]:
        """Write the next states of the active cells into ``states`` (B * N, W).

        Returns their largest changes (n,), and the cells that are active next.
        """
        raise NotImplementedError

    def _write(self, states: Tensor, active: Tensor, new: Tensor) -> Tensor:
        """Write the new states (n, W) of the active cells; returns |change|, (n, W)."""
        before = states.index_select(0, active)
        self._overwritten = active, before
        # All reads are done: writing in place cannot affect this iteration any more.
        states.index_copy_(0, active, new)
        return new.sub_(before).abs_()

    def _distinct(self, readers: Tensor) -> Tensor:
        """The distinct cells among these rows, in order, without walls."""
        self._is_reader[readers] = True
        self._is_reader[self._wall_rows] = False
        distinct = self._is_reader.nonzero().flatten()
        self._is_reader[distinct] = False
        return distinct


class SparseRule(Sparse, PackedRule):
    """A local rule that computes only active cells."""

    def _set_tables(self, inputs: Tensor, cells: Cells, memory: Tensor) -> None:
        super()._set_tables(inputs, cells, memory)
        self._recall_term = memory[..., :-1].flatten(0, 1)  # (B * N, H)
        read_index = self._read_index() + self._parts_of_row * self._first_rows[:, None, None]
        self._read_table = read_index.flatten(0, 1)  # (B * N, R)

    def _compute(self, states: Tensor, active: Tensor) -> tuple[Tensor, Tensor]:
        count = len(active)
        reads = self._read_table.index_select(0, active)  # (n, R)
        parts = states.view(-1, self._part_channels)
        seen = parts.index_select(0, reads.view(-1)).view(count, -1)  # (n, R * part)
        hidden = torch.addmm(self._recall_term.index_select(0, active), seen, self._sight).relu_()
        new = torch.addmm(self._bias, hidden, self._mix).tanh_()  # (n, W)
        change = self._write(states, active, new)
        largest = change.amax(dim=1)
        # Exactly zero is unchanged; NaN counts as changed.
        if self._own_channels:
            # The neighbour whose message a cell reads on a side also reads the message sent there.
            messages = change[:, self._own_channels :].view(count, -1, self._part_channels)
            readers = self._neighbours.index_select(0, active)[messages.amax(dim=2) != 0]  # (n, D)
        else:
            readers = reads[largest != 0].flatten()
        return largest, self._distinct(readers)


class SparseMaxPlus(Sparse):
    """A max-plus network that computes only active cells; W distances and P pointers of it."""

    def __init__(self, net: MaxPlus, *, reuse: bool = False) -> None:
        super().__init__(net, reuse=reuse)
        distances, pointers, sides = net.config.width, net.config.hidden, 2 * net.config.dims
        self._split = [distances, pointers, sides * pointers]
        weights = net.mark_weights.detach()
        self._is_read = (weights > 0).to(weights.dtype)  # (P,)
        head = net.head.weight.detach().flatten(1) * weights
        self._head = torch.nn.functional.pad(head, (distances, sides * pointers))
        self._head_bias = bias_of(net.head).detach()
        self._growth, self._attention = net.growth.detach(), net.attention.detach().T
        self._bias = net.direction.detach().T  # (D + 1, P)
        self._wall = head.new_zeros(sum(self._split))
        self._wall[:distances] = UNREACHED

    def _set_tables(self, inputs: Tensor, cells: Cells, memory: Tensor) -> None:
        super()._set_tables(inputs, cells, memory)
        self._memory_rows = memory.flatten(0, 1)  # (B * N, W + P + 1)
        self._has_cell = self._is_cell.flatten()

    def _compute(self, states: Tensor, active: Tensor) -> tuple[Tensor, Tensor]:
        distances, pointers, _ = self._split
        around = self._neighbours.index_select(0, active)  # (n, D)
        count, sides = around.shape
        memory = self._memory_rows.index_select(0, active)
        emitted, marks, limit = memory[:, :distances], memory[:, distances:-1], memory[:, -1:]
        rows = states.index_select(
            0, torch.cat([active, around.view(-1)])
        )  # of the cells, then the neighbours
        values = distance_values(rows[:, :distances])
        there = values[count:].view(count, sides, distances)  # (n, D, W)
        new_values = torch.maximum(emitted, there.amax(dim=1) - self._growth)
        stored = (-new_values * UNIT).where(new_values >= -limit * self._growth, UNREACHED)
        # The neighbour on a side sends through its opposite side.
        sent = rows[count:, distances + pointers :].view(count, sides, sides, pointers)
        side = torch.arange(sides)
        received = sent[:, side, side ^ 1].clamp_(min=0.0, max=1.0).amax(dim=1)
        new_marks = torch.maximum(marks, received) * self._is_read
        scores = (there - values[:count, None]) @ self._attention + self._bias[:-1]  # (n, D, P)
        scores.masked_fill_(~self._has_cell[around][..., None], -torch.inf)
        shares = choose_sides(scores.unbind(1), self._bias[-1])  # D times (n, P)
        new = torch.cat([stored, new_marks, *[share * new_marks for share in shares]], dim=1)
        largest = self._write(states, active, new).amax(dim=1)
        # Exactly zero is unchanged; NaN counts as changed.
        changed = largest != 0
        readers = torch.cat([active[changed], around[changed].view(-1)])
        return largest, self._distinct(readers)
