"""The sparse form of a local rule: an iteration computes only the cells that can change.

    >>> fast = SparseRule(net)
    >>> last(think(fast, inputs, steps=1000)).prediction     # as by the rule itself

What a cell holds next depends on itself and its neighbours alone. Where none of them changed in the
last iteration, the cell would come out the same; cells that are walls hold zero for ever. In a
rule with messages a cell reads only what its neighbours write to it, so it is computed only if one
of those messages changed: in a large maze about six times, in thousands of iterations.

No change is too small to count, so a state at rest here is a state at rest of the rule itself, up
to rounding: matrix products of other shapes add in another order.

Shapes: B batch, W width, N rows of a sample, n active cells.
"""

from __future__ import annotations

from typing import TypeGuard

import torch
from torch import Tensor

from iterant.errors import NetError
from iterant.nets.fast.packed import Cells, PackedRule
from iterant.nets.local_rule import LocalRule


class SparseRule(PackedRule):
    """A local rule that computes only active cells; for batches on a CPU."""

    threads = 1

    def __init__(self, net: LocalRule, *, reuse: bool = False) -> None:
        """The sparse form of this rule; ``reuse``: overwrite the features of the step before."""
        super().__init__(net)
        self.reuse = reuse
        self.computed = 0
        """Cells computed since the start, over all iterations"""
        self._active: Tensor

    @property
    def cells(self) -> int:
        """Open cells of all samples."""
        return len(self._every)

    def start(self, inputs: Tensor) -> Tensor:
        """Zeros, (B, N, W)."""
        self.computed = 0
        return super().start(inputs)

    @torch.no_grad()
    def step(self, features: Tensor, memory: Tensor | None, index: int) -> Tensor:
        """One iteration of the active cells; of all cells where the features come from elsewhere.

        ``memory`` is what `read` returned last.
        """
        self._check_memory(memory)
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

    def answer(self, features: Tensor) -> Tensor:
        """Logits (B, K, *S)."""
        if self.reuse and features is not self._features and self._features is not None:
            raise NetError("these features have been overwritten by a later iteration")
        return super().answer(features)

    def keep(self, which: Tensor, inputs: Tensor, features: Tensor) -> None:
        """Go on with some samples: these rows of the inputs read last and of the last features."""
        if self._features is not None:
            rows, active = self._features.shape[1], self._active
            sample = active.div(rows, rounding_mode="floor")
            place = torch.full((len(self._features),), -1)
            place[which] = torch.arange(len(which))
            stays = place[sample] >= 0
            super().keep(which, inputs, features)
            self._active = (place[sample] * rows + active.remainder(rows))[stays]

    def _lay_out(self, inputs: Tensor, cells: Cells, memory: Tensor) -> None:
        super()._lay_out(inputs, cells, memory)
        count, rows = memory.shape[:2]
        self._term = memory.flatten(0, 1)
        # Tables over the rows of all samples together.
        first = torch.arange(count) * rows
        self._neighbours = (cells.neighbours + first[:, None, None]).flatten(0, 1)
        parts = self.net.config.width // self._each if self.net.config.messages else 1
        self._read = (self._reads() + parts * first[:, None, None]).flatten(0, 1)
        self._walls = first + rows - 1
        self._mark = torch.zeros(count * rows, dtype=torch.bool)
        self._active = self._every = self._is_cell.flatten().nonzero().flatten()

    def _compute(self, held: Tensor, active: Tensor) -> tuple[Tensor, Tensor]:
        """Write the next state of the active cells; their changes (n,) and the next active ones."""
        count, messages = len(active), self.net.config.messages
        reads = self._read.index_select(0, active)
        parts = held.view(-1, self._each)
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
    """Whether `SparseRule` computes the same; a subclass may compute something else."""
    return type(net) is LocalRule
