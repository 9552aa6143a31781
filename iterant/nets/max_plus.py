"""Waves and pointers: a max over neighbours, and attention to one of them.

    >>> net = MaxPlus(MaxPlusConfig(dims=2, channels=3))

A cell holds the values of a few waves and a few marks. In one iteration

- a **wave** is the largest value of the neighbours minus a learned amount (a linear layer of
  max-plus algebra); it starts, with value 0, at the cells of a problem whose input has the highest
  learned score. So its value falls with the distance from its source;
- a **pointer** attends to one neighbour or to the cell itself: the one with the highest learned
  score of the waves' values there, plus a learned bias for each direction, which breaks ties;
- a **mark** starts at cells by a learned score of their input, and moves to where the cell's
  pointer points. The head reads the marks.

Built in: signals travel by a maximum over neighbours, lose a constant amount per cell, and are
followed by attention to one neighbour. Learned: where each wave starts, which wave a pointer
follows and whether up or down, the order of directions among equals, where marks start, and what
they mean. Training on small mazes finds that marks must run from the start down the distance to the
end; nothing here says so.

Every wave falls by a fixed amount per cell, so the values have one fixed point on any problem, with
loops or without, and cells that a source can reach come to it from any state, after as many
iterations as the farthest is away. Pointers that climb a wave form no cycle, so their marks come to
a fixed point as well. Cells that no source can reach keep what an intervention wrote into them.

Values are stored in units of 2**24, between -1 (not reached) and 0, so that features are bounded;
a power of two makes this exact. Pointers compare differences, which are exact at any distance.

Shapes: B batch, C channels, W waves, P pointers, D sides of a cell, K classes, *S space in pixels,
*Q space in cells. Features are (B, W + P + D * P, *Q): waves, marks, marks sent to each side.
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

UNIT = 2.0**-24
"""The amount 1 of a wave, in features."""
UNREACHED = -1.0
"""The value where a wave has not arrived."""
_SOURCE_GRADIENT = 10.0
"""Slope of a wave's value in the probability that a cell is its source."""
_MARK_GAIN = 4.0
"""Slope of the sigmoid by which a cell starts a mark."""


@dataclass(frozen=True)
class MaxPlusConfig:
    """The configuration; saved as JSON beside the weights."""

    kind: ClassVar[str] = "max-plus"

    dims: int
    channels: int
    width: int = 8
    """Waves"""
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
    """Waves by a maximum over neighbours, marks that follow pointers."""

    Config = MaxPlusConfig
    depth: int | None = None
    moved: Tensor | None = None
    """(B,): the largest change of the latest iteration; 1 if any wave changed, by however little"""

    def __init__(self, config: MaxPlusConfig) -> None:
        super().__init__()
        self.config, self.readout = config, readout(config.readout)
        waves, pointers = config.width, config.hidden
        # Zero in sum over channels, in pairs of opposite sign: so that waves of a new network start
        # at different rare inputs, not at those where all channels are high.
        source = torch.randn((waves + 1) // 2, config.channels)
        source = source - source.mean(dim=1, keepdim=True)
        self.source = nn.Parameter(torch.cat([source, -source])[:waves])
        self.decay = nn.Parameter(0.5 + 0.5 * torch.randn(waves))
        self.attention = nn.Parameter(torch.randn(pointers, waves))
        self.direction = nn.Parameter(0.3 * torch.randn(pointers, 2 * config.dims + 1))
        self.mark = nn.Linear(config.channels, pointers)
        self.head = CONV[config.dims](pointers, config.classes, 1)
        with torch.no_grad():
            self.mark.bias.fill_(-0.5)
            self.head.weight[1].fill_(1.0)
            self.head.weight[0].fill_(-1.0)

    def read(self, inputs: Tensor) -> Tensor:
        """(B, W + P + 1, *Q): a wave's value at its sources, marks at theirs, 1 at open cells."""
        cells = in_cells(inputs, self.config.stem)
        is_open = (cells > 0).any(dim=1, keepdim=True)
        scores = torch.einsum("wc,bc...->bw...", self.source, cells).masked_fill(
            ~is_open, -torch.inf
        )
        flat = scores.flatten(2)
        is_source = (flat == flat.amax(dim=2, keepdim=True)) & is_open.flatten(2)
        values = torch.where(is_source, 0.0, UNREACHED).to(cells.dtype)
        if torch.is_grad_enabled():  # straight-through: the gradient of a softmax over cells
            probability = torch.softmax(flat, dim=2)
            values = values + _SOURCE_GRADIENT * UNIT * (probability - probability.detach())
        marks = torch.sigmoid(_MARK_GAIN * self.mark(cells.movedim(1, -1))).movedim(-1, 1)
        return torch.cat([values.view_as(scores), marks * is_open, is_open.to(cells.dtype)], dim=1)

    def start(self, inputs: Tensor) -> Tensor:
        """No wave has reached any cell, nothing is marked: (B, W + P + D * P, *Q)."""
        cells = in_cells(inputs, self.config.stem)
        waves, pointers = self.config.width, self.config.hidden
        width = waves + pointers * (1 + 2 * self.config.dims)
        features = cells.new_zeros(cells.shape[0], width, *cells.shape[2:])
        features[:, :waves] = UNREACHED
        return features

    def step(self, features: Tensor, memory: Tensor | None, index: int) -> Tensor:
        """One iteration, (B, W + P + D * P, *Q) to the same shape; the same at every index."""
        if memory is None:
            raise NetError("this network recalls the problem at every iteration")
        waves, pointers = self.config.width, self.config.hidden
        emitted, marks, is_open = memory[:, :waves], memory[:, waves:-1], memory[:, -1:]
        # Interventions may write anything, also into walls.
        values = features[:, :waves].clamp(min=UNREACHED, max=0.0).where(is_open > 0, UNREACHED)
        sent = features[:, waves + pointers :].clamp(min=0.0, max=1.0) * is_open
        around = neighbours_of_cells(values, outside=UNREACHED)
        decay = functional.softplus(self.decay).view(-1, *[1] * self.config.dims) * UNIT
        best = torch.stack(around).amax(dim=0)
        new_values = torch.maximum(emitted, best - decay).clamp_min(UNREACHED)
        new_values = new_values.where(is_open > 0, UNREACHED)
        # The neighbour on a side sends through its opposite side.
        received = [
            there[:, (side ^ 1) * pointers : ((side ^ 1) + 1) * pointers]
            for side, there in enumerate(neighbours_of_cells(sent))
        ]
        new_marks = torch.stack([marks, *received]).amax(dim=0) * is_open
        shares = self._attend(values, around, is_open)  # (D, B, P, *Q)
        new_sent = (shares * new_marks).transpose(0, 1).flatten(1, 2)
        new = torch.cat([new_values, new_marks, new_sent], dim=1)
        if torch.is_grad_enabled():
            self.moved = None
        else:
            rest = (new[:, waves:] - features[:, waves:]).flatten(1).abs().amax(dim=1)
            changed = (new[:, :waves] != features[:, :waves]).flatten(1).any(dim=1)
            self.moved = torch.maximum(rest, changed.to(rest.dtype))
        return new

    def _attend(self, values: Tensor, around: list[Tensor], is_open: Tensor) -> Tensor:
        """(D, B, P, *Q): 1 at the side that a pointer points to; 0 at all if at the cell itself."""
        # Differences of neighbours are exact at any distance from the source.
        differences = torch.stack([*[there - values for there in around], torch.zeros_like(values)])
        scores = torch.einsum("pw,dbw...->dbp...", self.attention, differences / UNIT)
        scores = scores + self.direction.T.view(-1, 1, len(self.attention), *[1] * self.config.dims)
        open_around = torch.stack([*neighbours_of_cells(is_open), torch.ones_like(is_open)])
        scores = scores.masked_fill(open_around == 0, -torch.inf)
        chosen = functional.one_hot(scores.argmax(dim=0), len(scores)).movedim(-1, 0)
        chosen = chosen.to(values.dtype)
        if torch.is_grad_enabled():  # straight-through: the gradient of a softmax over sides
            probability = torch.softmax(scores, dim=0)
            chosen = chosen + probability - probability.detach()
        return chosen[:-1]

    def answer(self, features: Tensor) -> Tensor:
        """Logits (B, K, *S), from the marks."""
        waves, pointers = self.config.width, self.config.hidden
        return in_pixels(self.head(features[:, waves : waves + pointers]), self.config.stem)
