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

import torch
from torch import Tensor

from iterant.analysis.interventions import Case, Tick, no_tick, parts, recover, run_cases, text
from iterant.draw.plots import Plot, Trace
from iterant.errors import UsageError
from iterant.evaluation import is_finite, wilson
from iterant.nets.protocol import Net
from iterant.tasks.protocol import Batch, Description, HasKinds, HasNearMisses, Kind, NearMiss, Task

PICTURED = 64
"""The number of failures that are kept for drawing; all are counted."""


@dataclass(frozen=True)
class ByKind:
    """Correct problems after each iteration, by kind."""

    kinds: tuple[Kind, ...]
    """Those of which there is a problem"""
    correct: Tensor
    """(N, T) bool"""

    @property
    def solved(self) -> dict[str, Tensor]:
        """(T,) int64: correct problems of each kind."""
        return {kind.name: self.correct[kind.among].sum(dim=0) for kind in self.kinds}

    @property
    def accuracy(self) -> dict[str, Tensor]:
        """(T,) float64: accuracy of each kind."""
        return {kind.name: self.correct[kind.among].double().mean(dim=0) for kind in self.kinds}

    def figures(self) -> dict[str, Any]:
        """All numbers, as JSON."""
        figures: dict[str, Any] = {}
        for kind, solved in zip(self.kinds, self.solved.values(), strict=True):
            count = int(kind.among.sum())
            figures[kind.name] = {
                "problems": count,
                "at the end": int(solved[-1]) / count,
                "95 %": wilson(solved[-1], count).tolist(),
                "solved by iteration": solved.tolist(),
            }
        return figures

    def headline(self) -> dict[str, str]:
        """Accuracy at the end, one cell per kind."""
        return {name: f"{100 * curve[-1]:.1f} %" for name, curve in self.accuracy.items()}

    def plots(self) -> list[tuple[Plot, Trace]]:
        """Accuracy at the end along each scale of which kinds are ranges."""
        plots = []
        for scale in dict.fromkeys(kind.scale for kind in self.kinds if kind.scale):
            ranges = [kind for kind in self.kinds if kind.scale == scale]
            ends = [100 * float(self.accuracy[kind.name][-1]) for kind in ranges]
            plot = Plot(f"accuracy by {scale}", scale, "solved at the end (%)", share=True,
                        shade=False)  # fmt: skip
            plots.append((plot, Trace([kind.at for kind in ranges], ends)))
        return plots


def by_kind(net: Net, task: Task, batch: Batch, *, steps: int, tick: Tick = no_tick) -> ByKind:
    """Iterate ``steps`` times and find the correct problems of each kind after each iteration."""
    if not isinstance(task, HasKinds):
        raise UsageError(f"{task.spec.name} offers no kinds(); see iterant.tasks.protocol")
    cases = [Case(part, part) for part in parts(batch)]
    result = recover(net, task, cases, steps=steps, tick=tick)
    return ByKind(tuple(kind for kind in task.kinds(batch) if kind.among.any()), result.correct)


@dataclass(frozen=True)
class NearMisses:
    """How wrong each answer is."""

    wrong: Tensor
    """(N,) int64: wrong positions; 0 is solved"""
    broken: Tensor
    """(N,) bool: features are NaN or infinite"""
    paths: NearMiss | None = None
    """Whether answers are paths, for tasks with `HasNearMisses`"""
    failures: tuple[Description, ...] = ()
    """The first failures, with their errors marked"""

    def figures(self) -> dict[str, Any]:
        """All numbers, as JSON."""
        missed = self.wrong > 0
        figures: dict[str, Any] = {"problems": len(self.wrong), "failures": int(missed.sum())}
        if self.paths is not None:
            figures["failures that are connected"] = int((missed & self.paths.connected).sum())
            figures["failures that are valid"] = int((missed & self.paths.valid).sum())
        figures["broken"] = int(self.broken.sum())
        figures["problems by wrong positions"] = {str(n): count for n, count in self._counts()}
        return figures

    def _counts(self) -> list[tuple[int, int]]:
        """Numbers of wrong positions, and the problems with as many."""
        return sorted(Counter(self.wrong.tolist()).items())

    def headline(self) -> dict[str, str]:
        """The main numbers as cells of a table."""
        *counts, broken, _ = self.figures().items()
        cells = {name.replace("failures that are", "of them"): str(n) for name, n in counts}
        median = self.wrong[self.wrong > 0].double().nanmedian()
        cells["wrong positions a failure (median)"] = text(float(median), ".0f")
        return {**cells, "NaN": str(broken[1])}

    def plots(self) -> list[tuple[Plot, Trace]]:
        """The share of problems with at most x wrong positions, a step function."""
        x, y = [0], [0.0]
        for wrong, count in self._counts():
            x += [wrong, wrong]
            y += [y[-1], y[-1] + 100 * count / len(self.wrong)]
        if x[-1] == 0:  # avoid an axis from 0 to 0
            x, y = [*x, 1], [*y, y[-1]]
        plot = Plot("near misses", "wrong positions", "problems with at most this many (%)",
                    share=True, shade=False)  # fmt: skip
        return [(plot, Trace(x, y))]


@torch.no_grad()
def near_misses(
    net: Net, task: Task, batch: Batch, *, steps: int, tick: Tick = no_tick
) -> NearMisses:
    """Iterate ``steps`` times and examine the answers that are wrong then."""
    wrong, broken = [], []
    paths: list[NearMiss] = []
    failures: list[Description] = []
    first = 0
    cases = [Case(part, part) for part in parts(batch)]
    for case, thoughts in run_cases(net, cases, steps, tick):
        *_, thought = thoughts
        prediction, part = thought.prediction.cpu(), case.batch.to(torch.device("cpu"))
        if isinstance(task, HasNearMisses):
            paths.append(task.near_misses(prediction, part))
            wrong.append(paths[-1].wrong)
        else:
            positions = (prediction != part.targets).flatten(1).sum(dim=1)
            wrong.append(positions * ~task.solved(prediction, part))
        broken.append(~is_finite(thought.features).cpu())
        for row in wrong[-1].nonzero().flatten().tolist()[: PICTURED - len(failures)]:
            failure = task.describe(part, row, prediction)
            failures.append(replace(failure, title=f"{failure.title}, problem {first + row}"))
        first += len(part)
    columns = zip(*((path.wrong, path.connected, path.valid) for path in paths), strict=True)
    return NearMisses(
        torch.cat(wrong),
        torch.cat(broken),
        NearMiss(*map(torch.cat, columns)) if paths else None,
        tuple(failures),
    )
