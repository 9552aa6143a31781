"""Networks built by hand, whose every answer is known before they are run.

    >>> net = exact_prefix_sums()
    >>> first_right(batch.targets)       # the iteration from which each string is answered rightly

`DeadEnds` solves mazes without loops. All others solve prefix sums with the same written-down
weights: at every iteration a position takes what is known of its left neighbour's parity, turns it
over where its own bit is 1, and so knowledge moves one position to the right an iteration. Features
are 0 and 1 exactly, in every precision. Numbering is from 0 for positions and from 1 for
iterations, L is the number of bits.

What is true of `exact_prefix_sums`, with t the right answer of a string:

- after k iterations positions 0 … k-1 are known and right, the others are answered 0: the answer
  is right from iteration `first_right` on, and stays so;
- features change at iterations 1 … L and never after: Δφ = 0 exactly from iteration L+1 on;
- the problem is recalled, so whatever is done to the features is gone L iterations later at the
  latest: zeros leave as from the start (`first_right`), Gaussian noise within L iterations;
- a bit flipped at position i once features rest is answered for after exactly L - i iterations,
  and never before (all positions from i on must turn over, one an iteration);
- features or inputs of another string, swapped in once both rest, are gone after exactly
  `swap_recovery` iterations: L less the length of the beginning that the two have in common;
- the confidence of an iteration grows up to iteration L and is constant from then on.

`two_cycle` answers the same, but one channel alternates: period 2, Δφ is never 0.
`forgetting` answers the same, but reads the problem at the start only: after zeros the
answer stays 0, after a swap it stays that of the other problem; a changed input has no effect.
`poisoned` answers the same until features of strings that begin with 1 become NaN.

Shapes: B strings or mazes, L bits, *Q space in cells, *S in pixels.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from iterant.nets import ArgmaxOpen
from iterant.nets.local_rule import in_cells, in_pixels, neighbours_of_cells

EVEN, ODD = 0, 1
"""The first two features: 1 where the parity so far is known to be that; both 0: not known."""


class ByHand(nn.Module):
    """Prefix sums with written-down weights; options: no recall, a channel that alternates, NaN."""

    def __init__(
        self, *, recall: bool = True, blinks: bool = False, nan_after: int | None = None
    ) -> None:
        super().__init__()
        self.recall, self.blinks, self.nan_after = recall, blinks, nan_after
        # Columns: even, odd, one, zero, first. A bit that is one is not zero, so `- one` is what
        # `zero and` comes to under a ReLU.
        left = torch.tensor([[1, 0, 0, 0, 0], [0, 1, 0, 0, 0]]).repeat(2, 1)
        here = [[0, 0, -1, 0, 1], [0, 0, 0, -1, 0], [0, 0, 0, -1, 1], [0, 0, -1, 0, 0]]
        gather = torch.stack([left, torch.tensor(here), torch.zeros_like(left)], dim=2)
        join = torch.tensor([[1, 1, 0, 0], [0, 0, 1, 1]])[..., None]
        self.gather = nn.Parameter(gather.float(), requires_grad=False)
        self.join = nn.Parameter(join.float(), requires_grad=False)

    @staticmethod
    def problem(inputs: Tensor) -> Tensor:
        """(B, 3, L): bit is one, bit is zero, position is the first."""
        one, zero = torch.relu(2 * inputs), torch.relu(-2 * inputs)
        inside = one + zero
        return torch.cat([one, zero, inside - functional.pad(inside, (1, -1))], dim=1)

    def read(self, inputs: Tensor) -> Tensor | None:
        return self.problem(inputs) if self.recall else None

    def start(self, inputs: Tensor) -> Tensor:
        nothing = torch.zeros_like(inputs)
        kept = [nothing] if self.blinks else []
        kept += [] if self.recall else [self.problem(inputs)]
        return torch.cat([nothing, nothing, *kept], dim=1)

    def step(self, features: Tensor, memory: Tensor | None, index: int) -> Tensor:
        problem = features[:, -3:] if memory is None else memory
        joined = torch.cat([features[:, :2], problem], dim=1)
        known = torch.relu(functional.conv1d(joined, self.gather, padding=1))
        parts = [functional.conv1d(known, self.join)]
        if self.blinks:
            parts.append(torch.relu(problem[:, :2].sum(1, keepdim=True) - features[:, 2:3]))
        if memory is None:
            parts.append(problem)
        made = torch.cat(parts, dim=1)
        if self.nan_after is not None and index >= self.nan_after:
            made = made.masked_fill(problem[:, :1, :1] == 1, float("nan"))
        return made

    def answer(self, features: Tensor) -> Tensor:
        return features[:, :2]


def exact_prefix_sums() -> ByHand:
    """Right after L iterations at the latest, rests exactly, recovers from anything."""
    return ByHand()


def two_cycle() -> ByHand:
    """As right as `exact_prefix_sums`; features alternate between two states."""
    return ByHand(blinks=True)


def forgetting() -> ByHand:
    """As right as `exact_prefix_sums` while left alone; without recall, never recovers."""
    return ByHand(recall=False)


def poisoned(after: int) -> ByHand:
    """Features of strings that begin with 1 are NaN from iteration ``after`` + 1 on."""
    return ByHand(nan_after=after)


def first_right(targets: Tensor) -> Tensor:
    """(B,): the iteration from which the answer is right, from the start or from zeros.

    That of the last 1 in the right answer (what is not known is answered 0), at least 1.
    """
    places = torch.arange(1, targets.shape[1] + 1)
    return (targets * places).amax(dim=1).clamp_min(1)


def swap_recovery(targets: Tensor, others: Tensor) -> Tensor:
    """(B,): iterations until features (or inputs) of others, swapped in at rest, are gone."""
    same = (targets == others).int().cumprod(dim=1).sum(dim=1)
    return (targets.shape[1] - same).clamp_min(1)


class DeadEnds(nn.Module):
    """Right on every maze without loops, after as many iterations as its longest dead end.

    Every iteration closes the open cells with fewer than two open neighbours, but for the ends.
    """

    readout = ArgmaxOpen()

    def read(self, inputs: Tensor) -> Tensor:
        """(B, 2, *Q): 1 where a cell is open; 1 at the ends."""
        cells = in_cells(inputs, 2) > 0
        is_open = cells.any(dim=1, keepdim=True)
        return torch.cat([is_open, is_open & ~cells.all(dim=1, keepdim=True)], dim=1).to(inputs)

    def start(self, inputs: Tensor) -> Tensor:
        return self.read(inputs)[:, :1]

    def step(self, features: Tensor, memory: Tensor | None, index: int) -> Tensor:
        assert memory is not None
        around = torch.stack(neighbours_of_cells(features)).sum(dim=0)
        return features * ((around >= 2) | (memory[:, 1:] > 0))

    def answer(self, features: Tensor) -> Tensor:
        on_way = in_pixels(8 * features - 4, 2)
        return torch.cat([-on_way, on_way], dim=1)
