"""Max-plus networks with one ingredient changed: train each as the recipe does, then compare.

    python examples/max_plus_ablations.py

Four to eight minutes for each on one core of a CPU. docs/mazes.md has the results.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

import iterant
from iterant import training
from iterant.nets.local_rule import CONV, in_pixels
from iterant.nets.max_plus import MaxPlus, MaxPlusConfig


class Whole(MaxPlus):
    """Nothing changed: the network of the recipe."""


class SumOfNeighbours(Whole):
    """Signals add up instead of the largest being taken: exp(value) is a diffusion with decay."""

    def _gather(self, around: list[Tensor]) -> Tensor:
        return torch.stack(around).logsumexp(dim=0)


class SoftAttention(Whole):
    """A mark is divided among all sides by a softmax, instead of going to one."""

    def _shares(self, scores: Tensor, own: Tensor) -> Tensor:
        return torch.softmax(torch.cat([scores, own[None]]), dim=0)[:-1]


class SourcesByThreshold(Whole):
    """Every cell with a positive score is a source, instead of those with the highest."""

    def _sources(self, scores: Tensor, is_open: Tensor) -> tuple[Tensor, Tensor]:
        probability = torch.sigmoid(scores).where(is_open, 0.0)
        chosen = ((scores > 0) & is_open).to(scores.dtype) + probability - probability.detach()
        values, marks = chosen[:, : len(self.source)], chosen[:, len(self.source) :]
        return 2.0**24 * (values.detach() - 1) + 10.0 * (values - values.detach()), marks


class FreeHead(Whole):
    """A linear head on all marks, instead of a weighted mean."""

    def __init__(self, config: MaxPlusConfig) -> None:
        super().__init__(config)
        self.head = CONV[config.dims](config.hidden, config.classes, 1)
        nn.init.constant_(self.head.weight[0], -1.0)
        nn.init.constant_(self.head.weight[1], 1.0)

    def answer(self, features: Tensor) -> Tensor:
        distances, pointers = self.config.width, self.config.hidden
        marks = features[:, distances : distances + pointers]
        return in_pixels(self.head(marks), self.config.stem)


class NoPairs(Whole):
    """Distances and pointers are initialised independently, not in pairs of opposite sources."""

    def __init__(self, config: MaxPlusConfig) -> None:
        super().__init__(config)
        with torch.no_grad():
            for scores in (self.source, self.mark):
                scores.normal_()
                scores -= scores.mean(dim=1, keepdim=True)
            self.decay.normal_(0.5, 0.5)
            self.attention.normal_()
            self.direction.normal_(0.0, 0.3)


NETWORKS = (Whole, SumOfNeighbours, SoftAttention, SourcesByThreshold, FreeHead, NoPairs)

if __name__ == "__main__":
    recipe = training.recipe("best", "mazes", "max-plus").changed(restart_below=0.0)
    task = iterant.task("mazes", problems="start=any,p=0.1")
    for net_class in NETWORKS:
        name = net_class.__name__
        run = iterant.train("mazes", net=net_class, recipe=recipe, out=f"runs/{name}")
        curve = iterant.evaluate(iterant.load(run.path), task, size=33, count=20, max_steps=400)
        print(name, f"{curve.end:.0%} of mazes of 33 by 33 with loops")
