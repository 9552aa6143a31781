"""Accuracy by kind of problem, and how wrong the wrong answers are.

    >>> by_kind(net, task, batch, steps=300).accuracy["rated 1000 to 1500"]
    >>> misses = near_misses(net, task, batch, steps=300)
    >>> misses.wrong.double().mean(), misses.failures[0].title

Kinds (ratings and themes of puzzles, lengths of paths) need a task with `HasKinds`; whether a wrong
answer is still a connected or valid path needs one with `HasNearMisses` (mazes).

Shapes: N problems, T iterations.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from iterant.analysis.interventions import Tick, is_correct, no_tick, parts
from iterant.draw.plots import Plot, Trace
from iterant.engine import think
from iterant.errors import UsageError
from iterant.evaluation import is_finite, like, wilson
from iterant.nets.fast import fused
from iterant.nets.protocol import Net
from iterant.tasks.protocol import Batch, Description, HasKinds, HasNearMisses, Kind, NearMiss, Task


@dataclass(frozen=True)
class ByKind:
    """Correct problems after each iteration, by kind."""

    kinds: tuple[Kind, ...]
    solved: NDArray[np.int64]
    """(kinds, T): correct problems of a kind after an iteration"""
    counts: NDArray[np.int64]
    """(kinds,)"""

    @property
    def accuracy(self) -> dict[str, NDArray[np.float64]]:
        """(T,) accuracy of each kind that occurs."""
        return {
            kind.name: right / count
            for kind, right, count in zip(self.kinds, self.solved, self.counts, strict=True)
            if count
        }

    def figures(self) -> dict[str, Any]:
        """All numbers, as JSON."""
        figures: dict[str, Any] = {}
        for kind, right, count in zip(self.kinds, self.solved, self.counts, strict=True):
            if count:
                low, high = wilson(torch.tensor(right[-1]), int(count)).tolist()
                figures[kind.name] = {
                    "problems": int(count),
                    "at the end": float(right[-1] / count),
                    "95 %": [low, high],
                    "solved by iteration": right.tolist(),
                }
        return figures

    def headline(self) -> dict[str, str]:
        """Accuracy at the end, one cell per kind."""
        return {name: f"{100 * curve[-1]:.1f} %" for name, curve in self.accuracy.items()}

    def plots(self) -> list[tuple[Plot, Trace]]:
        """Accuracy at the end along each scale of which kinds are ranges."""
        accuracy = self.accuracy
        plots = []
        for scale in dict.fromkeys(kind.scale for kind in self.kinds if kind.scale):
            ends = [
                (kind.at, 100 * float(accuracy[kind.name][-1]))
                for kind in self.kinds
                if kind.scale == scale and kind.name in accuracy
            ]
            plot = Plot(
                f"accuracy by {scale}", scale, "solved at the end (%)", share=True, shade=False
            )
            plots.append((plot, Trace(*map(list, zip(*ends, strict=True)))))
        return plots


@torch.no_grad()
def by_kind(net: Net, task: Task, batch: Batch, *, steps: int, tick: Tick = no_tick) -> ByKind:
    """Iterate ``steps`` times and count correct problems of each kind after each iteration."""
    if not isinstance(task, HasKinds):
        raise UsageError(
            f"{task.spec.name} does not tell kinds of problem apart: it offers no kinds(); "
            "see iterant.tasks.protocol"
        )
    if steps < 1:
        raise UsageError(f"accuracy by kind needs at least 1 iteration, got {steps}")
    kinds = tuple(task.kinds(batch))
    right = np.zeros((len(batch), steps), dtype=bool)
    fast, first, batches = fused(net), 0, list(parts(batch))
    for place, part in enumerate(batches):
        for thought in think(fast, like(net, part.inputs), steps=steps):
            correct = is_correct(task, thought, part).numpy()
            right[first : first + len(part), thought.step - 1] = correct
            tick(place * steps + thought.step, len(batches) * steps)
        first += len(part)
    solved = [right[kind.among.numpy()].sum(axis=0) for kind in kinds]
    return ByKind(
        kinds,
        np.array(solved, dtype=np.int64).reshape(len(kinds), steps),
        np.array([int(kind.among.sum()) for kind in kinds], dtype=np.int64),
    )


PICTURED = 64
"""The number of failures that are kept for drawing; all are counted."""


@dataclass(frozen=True)
class NearMisses:
    """How wrong each answer is."""

    wrong: Tensor
    """(N,) int64: wrong positions; 0 is solved"""
    broken: Tensor
    """(N,) bool: features are NaN or infinite"""
    ways: NearMiss | None = None
    """Whether answers are paths, for tasks with `HasNearMisses`"""
    failures: tuple[Description, ...] = ()
    """The first failures, with their errors marked"""

    @property
    def missed(self) -> Tensor:
        """(N,) bool: unsolved problems."""
        return self.wrong > 0

    def _paths(self) -> dict[str, int]:
        """The numbers of failures that are connected and valid paths."""
        if self.ways is None:
            return {}
        kinds = {"connected": self.ways.connected, "valid": self.ways.valid}
        return {word: int((self.missed & among).sum()) for word, among in kinds.items()}

    def figures(self) -> dict[str, Any]:
        """All numbers, as JSON."""
        counted = Counter(self.wrong.tolist())
        return {
            "problems": len(self.wrong),
            "failures": int(self.missed.sum()),
            **{f"failures that are {word}": number for word, number in self._paths().items()},
            "broken": int(self.broken.sum()),
            "problems by wrong positions": {str(n): counted[n] for n in sorted(counted)},
        }

    def headline(self) -> dict[str, str]:
        """The main numbers as cells of a table."""
        figures, wrong = self.figures(), self.wrong[self.missed].double()
        return {
            "problems": str(len(self.wrong)),
            "failures": str(figures["failures"]),
            **{f"of them {word}": str(number) for word, number in self._paths().items()},
            "wrong positions a failure (median)": f"{float(wrong.median()):.0f}"
            if len(wrong)
            else "–",
            "NaN": str(figures["broken"]),
        }

    def plots(self) -> list[tuple[Plot, Trace]]:
        """The share of problems with at most x wrong positions."""
        counted = Counter(self.wrong.tolist())
        x, y = [0], [0.0]
        for wrong in sorted(counted):  # a step function
            x += [wrong, wrong]
            y += [y[-1], y[-1] + 100 * counted[wrong] / len(self.wrong)]
        if not self.missed.any():  # avoid an axis from 0 to 0
            x, y = [*x, 1], [*y, y[-1]]
        plot = Plot(
            "near misses",
            x_label="wrong positions",
            y_label="problems with at most so many (%)",
            share=True,
            shade=False,
        )
        return [(plot, Trace(x, y))]


@torch.no_grad()
def near_misses(
    net: Net, task: Task, batch: Batch, *, steps: int, tick: Tick = no_tick
) -> NearMisses:
    """Iterate ``steps`` times and examine the answers that are wrong then."""
    if steps < 1:
        raise UsageError(f"near misses need at least 1 iteration, got {steps}")
    wrong, broken = [], []
    ways: list[NearMiss] = []
    failures: list[Description] = []
    fast, first, batches = fused(net), 0, list(parts(batch))
    for place, part in enumerate(batches):
        for thought in think(fast, like(net, part.inputs), steps=steps):
            tick(place * steps + thought.step, len(batches) * steps)
        prediction = thought.prediction.cpu()
        if isinstance(task, HasNearMisses):
            ways.append(task.misses(prediction, part))
            wrong.append(ways[-1].wrong)
        else:
            positions = (prediction != part.targets.cpu()).flatten(1).sum(dim=1)
            wrong.append(positions * ~task.solved(prediction, part).cpu())
        broken.append(~is_finite(thought.features).cpu())
        for row in wrong[-1].nonzero().flatten().tolist()[: PICTURED - len(failures)]:
            failure = task.describe(part, row, prediction)
            failures.append(replace(failure, title=f"{failure.title}, problem {first + row}"))
        first += len(part)
    columns = zip(*((way.wrong, way.connected, way.valid) for way in ways), strict=True)
    return NearMisses(
        torch.cat(wrong),
        torch.cat(broken),
        NearMiss(*map(torch.cat, columns)) if ways else None,
        tuple(failures),
    )
