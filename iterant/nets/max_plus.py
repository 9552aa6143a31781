"""Distances and pointers: a maximum over neighbours, and attention to one of them.

    >>> net = MaxPlus(MaxPlusConfig(dims=2, channels=3))

A cell holds a few distances and a few marks. In one iteration

- a **distance** becomes the smallest distance of the neighbours plus a learned amount (a linear
  layer of max-plus algebra, with the sign reversed). It is 0 at its sources: the cells of a problem
  whose input has the highest learned score;
- a **pointer** attends to one neighbour or to the cell itself: the one with the highest learned
  score of the differences of all distances, plus a learned bias for each direction, which breaks
  ties;
- a **mark** starts at cells by a learned score of their input, and moves to where the cell's
  pointer points. The head reads the marks.

Built in: signals travel by a maximum over neighbours, lose a constant amount per cell, and are
followed by attention to one neighbour. Learned: the sources of each distance, which of them a
pointer follows and whether up or down, the order of directions among equals, where marks start, and
what they mean. Training on small mazes finds that marks must run from the start down the distance
to the end; nothing here says so.

A distance grows by a fixed amount per cell, and one that exceeds the number of open cells is
dropped. So distances have one fixed point on any problem, with loops or without, and come to it
from any state after at most as many iterations as there are open cells. Pointers that follow a
distance form no cycle, so their marks come to a fixed point as well; marks in cells that this
distance does not reach may circulate.

Distances are stored in units of 1,024, and -1 where the cell has not been reached: an iteration
that changes one by 1 is then visible to halting rules, and so are the marks beside distances of
100,000. Pointers compare differences of neighbours, in float32, because half precision has no
integers above 2,048.

Shapes: B batch, C channels, W distances, P pointers, D sides of a cell, K classes, *S space in
pixels, *Q space in cells. Features are (B, W + P + D * P, *Q): distances, marks, marks sent to each
side.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from iterant.errors import NetError
from iterant.nets.local_rule import CONV, in_cells, in_pixels, neighbours_of_cells
from iterant.nets.protocol import check_sizes, readout

UNIT = 2.0**-10
"""The distance 1, in features; a power of two, so that scaling is exact."""
UNREACHED = -1.0
"""The feature of a distance where the cell has not been reached."""
_FAR = 2.0**24
"""The distance of such cells, for comparisons."""
_SOURCE_GRADIENT = 10.0
"""Slope of a distance in the probability that a cell is its source."""
_MARK_GAIN = 4.0
"""Slope of the sigmoid by which a cell starts a mark."""


@dataclass(frozen=True)
class MaxPlusConfig:
    """The configuration; saved as JSON beside the weights."""

    kind: ClassVar[str] = "max-plus"

    dims: int
    channels: int
    width: int = 8
    """Distances"""
    hidden: int = 4
    """Pointers, and so marks"""
    stem: int = 1
    """Pixels per side of a cell; 2 for images whose cells are 2×2 with half a cell of border"""
    classes: int = 2
    readout: str = "argmax"

    def __post_init__(self) -> None:
        check_sizes(self, "channels", "width", "hidden", "classes")

    def described(self) -> dict[str, Any]:
        return asdict(self)


class MaxPlus(nn.Module):
    """Distances by a maximum over neighbours, marks that follow pointers."""

    Config = MaxPlusConfig
    depth: int | None = None

    def __init__(self, config: MaxPlusConfig) -> None:
        super().__init__()
        self.config, self.readout = config, readout(config.readout)
        distances, pointers = config.width, config.hidden
        # Zero in sum over channels, in pairs of opposite sign: so that a new network has sources at
        # different rare inputs, not at those where all channels are high.
        source = torch.randn((distances + 1) // 2, config.channels)
        source = source - source.mean(dim=1, keepdim=True)
        self.source = nn.Parameter(torch.cat([source, -source])[:distances])
        self.decay = nn.Parameter(0.5 + 0.5 * torch.randn(distances))
        self.attention = nn.Parameter(torch.randn(pointers, distances))
        self.direction = nn.Parameter(0.3 * torch.randn(pointers, 2 * config.dims + 1))
        self.mark = nn.Linear(config.channels, pointers)
        self.head = CONV[config.dims](pointers, config.classes, 1)
        with torch.no_grad():
            self.mark.bias.fill_(-0.5)
            self.head.weight[1].fill_(1.0)
            self.head.weight[0].fill_(-1.0)

    @property
    def growth(self) -> Tensor:
        """(W,): what a distance grows by per cell; positive."""
        return functional.softplus(self.decay)

    def read(self, inputs: Tensor) -> Tensor:
        """(B, W + P + 1, *Q): minus the distances of sources, marks where they start, and limits.

        The limit is the number of open cells of the problem, at open cells; 0 at walls.
        """
        cells = in_cells(inputs, self.config.stem)
        is_open = (cells > 0).any(dim=1, keepdim=True)
        scores = torch.einsum("wc,bc...->bw...", self.source, cells).masked_fill(
            ~is_open, -torch.inf
        )
        flat = scores.flatten(2)
        is_source = (flat == flat.amax(dim=2, keepdim=True)) & is_open.flatten(2)
        values = torch.where(is_source, 0.0, -_FAR).to(cells.dtype)
        if torch.is_grad_enabled():  # straight-through: the gradient of a softmax over cells
            probability = torch.softmax(flat, dim=2)
            values = values + _SOURCE_GRADIENT * (probability - probability.detach())
        marks = torch.sigmoid(_MARK_GAIN * self.mark(cells.movedim(1, -1))).movedim(-1, 1)
        mask = is_open.to(cells.dtype)
        limit = mask * mask.flatten(1).sum(dim=1).view(-1, *[1] * (mask.dim() - 1))
        return torch.cat([values.view_as(scores), marks * mask, limit], dim=1)

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
        emitted, marks, limit = memory[:, :distances], memory[:, distances:-1], memory[:, -1:]
        is_open = limit > 0
        # Interventions may write anything, also into walls.
        stored = features[:, :distances]
        values = (-stored / UNIT).where((stored >= 0) & is_open, -_FAR)
        sent = features[:, distances + pointers :].clamp(min=0.0, max=1.0) * is_open
        around = neighbours_of_cells(values, outside=-_FAR)
        growth = self.growth.view(-1, *[1] * self.config.dims)
        new_values = torch.maximum(emitted, torch.stack(around).amax(dim=0) - growth)
        is_near = is_open & (new_values >= -limit * growth)
        # The neighbour on a side sends through its opposite side.
        received = [
            there[:, (side ^ 1) * pointers : ((side ^ 1) + 1) * pointers]
            for side, there in enumerate(neighbours_of_cells(sent))
        ]
        new_marks = torch.stack([marks, *received]).amax(dim=0) * is_open
        shares = self._attend(values, around, is_open)  # (D, B, P, *Q)
        new_sent = (shares * new_marks).transpose(0, 1).flatten(1, 2)
        return torch.cat(
            [(-new_values * UNIT).where(is_near, UNREACHED), new_marks, new_sent], dim=1
        )

    def _attend(self, values: Tensor, around: list[Tensor], is_open: Tensor) -> Tensor:
        """(D, B, P, *Q): 1 at the side that a pointer points to; 0 at all if at the cell itself."""
        # Differences of neighbours are exact at any distance from the source.
        differences = torch.stack([there - values for there in around])
        scores = torch.einsum("pw,dbw...->dbp...", self.attention, differences)
        bias = self.direction.T.view(-1, 1, len(self.attention), *[1] * self.config.dims)
        open_around = torch.stack(neighbours_of_cells(is_open.to(values.dtype))) > 0
        scores = (scores + bias[:-1]).where(open_around, -torch.inf)  # (D, B, P, *Q)
        with torch.no_grad():
            best = torch.maximum(scores.amax(dim=0), bias[-1])
            chosen, undecided = [], torch.ones_like(best)
            for score in scores:  # the first of equals; argmax takes longer
                chosen.append((score == best) * undecided)
                undecided = undecided - chosen[-1]
            shares = torch.stack(chosen)
        if torch.is_grad_enabled():  # straight-through: the gradient of a softmax over sides
            exponentials = (scores - best).exp()
            probability = exponentials / (exponentials.sum(dim=0) + (bias[-1] - best).exp())
            shares = shares + probability - probability.detach()
        return shares

    def answer(self, features: Tensor) -> Tensor:
        """Logits (B, K, *S), from the marks."""
        distances, pointers = self.config.width, self.config.hidden
        marks = features[:, distances : distances + pointers]
        return in_pixels(self.head(marks), self.config.stem)
