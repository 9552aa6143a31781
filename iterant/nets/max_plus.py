"""Distances and pointers: a maximum over neighbours, and attention to one of them.

    >>> net = MaxPlus(MaxPlusConfig(dims=2, channels=3))

A cell holds a few distances and a few marks. In one iteration

- a **distance** becomes the smallest distance of the neighbours plus a learned amount (a linear
  layer of max-plus algebra, with the sign reversed). It is 0 at its sources;
- a **pointer** attends to one neighbour or to the cell itself: the one with the highest learned
  score of the differences of all distances, plus a learned bias for each direction, which breaks
  ties;
- a **mark** is 1 at its sources, and moves to where the cell's pointer points.

The head reads a weighted mean of the marks, with weights by a softmax: where they disagree, the
mark with more than half of the weight decides, so the others need not be unlearned. After training
that mark is the only one that is computed.

The sources of a distance or a mark are the cells of a problem whose input has the highest learned
score.

docs/mazes.md says what is built in and what is learned.

A new network is symmetric: distances and pointers come in pairs that differ by opposite sources
only. So paths from the start to the end and paths from the end to the start are learned at the same
pace. They differ only by how ties are broken, and the head learns which are right.

A distance grows by a fixed amount per cell, and one that exceeds the number of open cells is
dropped. So distances have one fixed point on any problem, with loops or without, and come to it
from any state after at most as many iterations as there are open cells. Pointers that follow a
distance form no cycle, so their marks come to a fixed point as well; marks in cells that this
distance does not reach may circulate.

Distances are stored in units of 1,024, and -1 where the cell has not been reached: an iteration
that changes one by 1 is then visible to halting rules, and so are the marks beside distances of
100,000. Pointers compare differences of neighbours, which are exact in float32.

Shapes: B batch, C channels, W distances, P pointers, D sides of a cell, K classes, *S space in
pixels, *Q space in cells. Features are (B, W + P + D * P, *Q): distances, marks, marks sent to each
side.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from iterant.errors import NetError
from iterant.nets.local_rule import CONV, bias_of, in_cells, in_pixels, neighbours_of_cells
from iterant.nets.protocol import NetConfig, NetModule

UNIT = 2.0**-10
"""The distance 1, in features; a power of two, so that scaling is exact."""
UNREACHED = -1.0
"""The feature of a distance where the cell has not been reached."""
_FAR = 2.0**24
"""The distance of such cells, for comparisons."""
_SOURCE_GRADIENT = 10.0
"""Slope of a distance in the probability that a cell is its source; that of a mark is 1."""
_LEAST_GROWTH = 0.125
"""Of a distance per cell. Times `UNIT` it exceeds the tolerance of `Resting`, so that a growing
distance is never taken for rest."""
_TEMPERATURE = 0.25
"""Of the softmax over marks. At 1, some networks keep averaging two marks that differ at ties."""


@dataclass(frozen=True)
class MaxPlusConfig(NetConfig):
    """The configuration."""

    kind: ClassVar[str] = "max-plus"

    width: int = 4
    """Distances"""
    hidden: int = 8
    """Pointers, and so marks"""
    stem: int = 1
    """Pixels per side of a cell; 2 for images whose cells are 2×2 with half a cell of border"""
    classes: int = 2
    readout: str = "argmax"

    def __post_init__(self) -> None:
        self.check_sizes("channels", "width", "hidden", "classes")
        if self.width % 2 or self.hidden % 2:
            raise NetError(
                "distances (width) and pointers (hidden) come in pairs, so both are even, got "
                f"{self.width} and {self.hidden}"
            )


class MaxPlus(NetModule):
    """Distances by a maximum over neighbours, marks that follow pointers."""

    Config = MaxPlusConfig
    config: MaxPlusConfig
    uses_index = False
    exact_precision = True
    """Half precision has no integers above 2,048"""

    def __init__(self, config: MaxPlusConfig) -> None:
        super().__init__(config)
        pairs, pointer_pairs = config.width // 2, config.hidden // 2
        self.source = nn.Parameter(_opposite_scores(pairs, config.channels))
        self.mark = nn.Parameter(_opposite_scores(pointer_pairs, config.channels))
        self.decay = nn.Parameter((0.5 + 0.5 * torch.randn(pairs)).repeat(2))
        attention = torch.randn(pointer_pairs, config.width)
        # The twin of a pointer follows the twins of the distances.
        self.attention = nn.Parameter(torch.cat([attention, attention.roll(pairs, dims=1)]))
        direction = 0.3 * torch.randn(pointer_pairs, 2 * config.dims + 1)
        self.direction = nn.Parameter(direction.repeat(2, 1))
        self.choice = nn.Parameter(torch.zeros(config.hidden))
        self.head = CONV[config.dims](1, config.classes, 1)
        with torch.no_grad():  # class 1 where the mean of the marks exceeds 1/2
            self.head.weight.fill_(-2.0)[1] = 2.0
            bias_of(self.head).fill_(1.0)[1] = -1.0

    @property
    def growth(self) -> Tensor:
        """(W,): what a distance grows by per cell."""
        return functional.softplus(self.decay).clamp(min=_LEAST_GROWTH)

    @property
    def mark_weights(self) -> Tensor:
        """(P,): the weight of each mark in the mean that the head reads.

        Outside training a mark with more than half of the weight gets all: it decides alone.
        """
        weights = torch.softmax(self.choice / _TEMPERATURE, dim=0)
        if self.training:
            return weights
        decides = weights > 0.5
        return torch.where(decides.any(), decides.to(weights.dtype), weights)

    def read(self, inputs: Tensor) -> Tensor:
        """(B, W + P + 1, *Q): minus the distances of sources, marks at theirs, and limits.

        The limit is the number of open cells of the problem, at open cells; 0 at walls.
        """
        cells = in_cells(inputs, self.config.stem)
        is_open = (cells > 0).any(dim=1, keepdim=True)
        weights = torch.cat([self.source, self.mark])
        scores = weigh("wc,bcn->bwn", weights, cells).masked_fill(~is_open, -torch.inf)
        values, marks = self._sources(scores, is_open)
        limit = is_open.flatten(1).sum(dim=1).view(-1, *[1] * (cells.dim() - 1)) * is_open
        return torch.cat([values, marks, limit.to(cells.dtype)], dim=1)

    # `_sources`, `_gather` and `_shares` are replaced in examples/max_plus_ablations.py.

    def _sources(self, scores: Tensor, is_open: Tensor) -> tuple[Tensor, Tensor]:
        """(B, W, *Q), (B, P, *Q): minus the distances of sources, and marks, 1 at sources.

        The sources are the open cells with the highest score, (B, W + P, *Q), of the problem.
        """
        flat = scores.flatten(2)
        is_source = (flat == flat.amax(dim=2, keepdim=True)) & is_open.flatten(2)
        chosen = is_source.to(scores.dtype)
        values, marks = _FAR * (chosen[:, : len(self.source)] - 1), chosen[:, len(self.source) :]
        if torch.is_grad_enabled():  # straight-through: the gradient of a softmax over cells
            probability = torch.softmax(flat, dim=2)
            slope = probability - probability.detach()
            values = values + _SOURCE_GRADIENT * slope[:, : len(self.source)]
            marks = marks + slope[:, len(self.source) :]
        space = scores.shape[2:]
        return values.view(*values.shape[:2], *space), marks.view(*marks.shape[:2], *space)

    def start(self, inputs: Tensor) -> Tensor:
        """No cell has been reached, nothing is marked: (B, W + P + D * P, *Q)."""
        cells = in_cells(inputs, self.config.stem)
        distances, pointers = self.config.width, self.config.hidden
        width = distances + pointers * (1 + 2 * self.config.dims)
        features = cells.new_zeros(cells.shape[0], width, *cells.shape[2:])
        features[:, :distances] = UNREACHED
        return features

    def step(self, features: Tensor, memory: Tensor | None, index: int) -> Tensor:
        """One iteration, (B, W + P + D * P, *Q) to the same shape; the same at every index."""
        if memory is None:
            raise NetError("this network recalls the problem at every iteration")
        distances, pointers = self.config.width, self.config.hidden
        # (B, W, *Q), (B, P, *Q), (B, 1, *Q); emitted: 0 at sources, -_FAR elsewhere
        emitted, marks, limit = memory[:, :distances], memory[:, distances:-1], memory[:, -1:]
        is_open = limit > 0
        # Interventions may write anything, also into walls.
        values = distance_values(features[:, :distances]).where(is_open, -_FAR)
        sent = features[:, distances + pointers :].clamp(min=0.0, max=1.0) * is_open
        around = neighbours_of_cells(values, outside=-_FAR)
        growth = self.growth.view(-1, *[1] * self.config.dims)
        new_values = torch.maximum(emitted, self._gather(around) - growth)
        is_near = is_open & (new_values >= -limit * growth)
        # The neighbour on a side sends through its opposite side.
        received = [
            there[:, (side ^ 1) * pointers : ((side ^ 1) + 1) * pointers]
            for side, there in enumerate(neighbours_of_cells(sent))
        ]
        # Marks that are not read are dropped: their pointers may form cycles and never rest.
        is_read = (self.mark_weights > 0).view(-1, *[1] * self.config.dims)
        new_marks = torch.stack([marks, *received]).amax(dim=0) * (is_open & is_read)
        shares = self._attend(values, around, is_open)  # (D, B, P, *Q)
        new_sent = (shares * new_marks).transpose(0, 1).flatten(1, 2)
        return torch.cat(
            [(-new_values * UNIT).where(is_near, UNREACHED), new_marks, new_sent], dim=1
        )

    def _gather(self, around: list[Tensor]) -> Tensor:
        """(B, W, *Q): what a cell takes from the values of its neighbours, before they lose any."""
        return torch.stack(around).amax(dim=0)

    def _attend(self, values: Tensor, around: list[Tensor], is_open: Tensor) -> Tensor:
        """(D, B, P, *Q): 1 at the side that a pointer points to; 0 at all if at the cell itself."""
        # Differences of neighbours are exact at any distance from the source.
        differences = torch.stack([there - values for there in around])
        scores = weigh("pw,dbwn->dbpn", self.attention, differences)
        bias = self.direction.T.view(-1, 1, len(self.attention), *[1] * self.config.dims)
        open_around = torch.stack(neighbours_of_cells(is_open.to(values.dtype))) > 0
        scores = (scores + bias[:-1]).where(open_around, -torch.inf)  # (D, B, P, *Q)
        return self._shares(scores, bias[-1].expand_as(scores[0]))

    def _shares(self, scores: Tensor, own: Tensor) -> Tensor:
        """(D, B, P, *Q): 1 at the side with the highest score; ``own`` is that of the cell."""
        shares = torch.stack(choose_sides(scores.detach().unbind(), own.detach()))
        if torch.is_grad_enabled():  # straight-through: the gradient of a softmax over sides
            probability = torch.softmax(torch.cat([scores, own[None]]), dim=0)[:-1]
            shares = shares + probability - probability.detach()
        return shares

    def answer(self, features: Tensor) -> Tensor:
        """Logits (B, K, *S), from the marks."""
        distances, pointers = self.config.width, self.config.hidden
        marks = features[:, distances : distances + pointers]
        mean = weigh("p,bpn->bn", self.mark_weights, marks)
        return in_pixels(self.head(mean.unsqueeze(1)), self.config.stem)


def weigh(equation: str, weights: Tensor, values: Tensor) -> Tensor:
    """`torch.einsum`, with one index n for all of the space of ``values``.

    Not ``...``: onnxruntime-web computes that wrongly with WebGPU.
    """
    axes = equation.index("n") - equation.index(",") - 1
    result: Tensor = torch.einsum(equation, weights, values.flatten(axes))
    return result.view(*result.shape[:-1], *values.shape[axes:])


def distance_values(stored: Tensor) -> Tensor:
    """Minus the distances that features hold, of any shape, so that the largest is the nearest."""
    return (-stored / UNIT).where(stored >= 0, -_FAR)


def choose_sides(scores: Sequence[Tensor], own: Tensor) -> list[Tensor]:
    """For each side 1 where its score is the highest, the first among equals; else 0.

    All are 0 where ``own``, the score of the cell itself, is higher. argmax takes longer.
    """
    best = own
    for score in scores:
        best = torch.maximum(best, score)
    chosen, undecided = [], torch.ones_like(best)
    for score in scores:
        chosen.append((score == best) * undecided)
        undecided = undecided - chosen[-1]
    return chosen


def _opposite_scores(pairs: int, channels: int) -> Tensor:
    """(2 * pairs, C): scores of inputs in pairs of opposite sign.

    Zero in sum over channels, so that a new network has sources at different rare inputs, not at
    those where all channels are high.
    """
    scores = torch.randn(pairs, channels)
    scores = scores - scores.mean(dim=1, keepdim=True)
    return torch.cat([scores, -scores])
