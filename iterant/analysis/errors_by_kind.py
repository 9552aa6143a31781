"""How wrong the wrong answers are: positions, and whether a way is connected or valid all the same.

    >>> found = near_misses(net, task, batch, steps=300)
    >>> found.wrong.double().mean(), found.failures[0].title

Ways are those of tasks that can tell (`iterant.tasks.protocol.HasNearMisses`): mazes.

Accuracy by kind of problem: ratings and themes of puzzles, lengths of ways.

For tasks that tell kinds apart (`iterant.tasks.protocol.HasKinds`).

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

from iterant.analysis.recovery import Tick, no_tick, parts
from iterant.draw.plots import Plot, Trace
from iterant.engine import Thought, think
from iterant.errors import UsageError
from iterant.evaluation.curve import wilson
from iterant.evaluation.evaluator import is_finite, like
from iterant.nets.fast import fused
from iterant.nets.protocol import Net
from iterant.tasks.protocol import Batch, Description, HasKinds, HasNearMisses, Kind, NearMiss, Task


@dataclass(frozen=True)
class ByKind:
    """Who is right after each iteration, by kind."""

    kinds: tuple[Kind, ...]
    solved: NDArray[np.int64]
    """(kinds, T): problems of a kind that are right after an iteration"""
    counts: NDArray[np.int64]
    """(kinds,)"""

    @property
    def accuracy(self) -> dict[str, NDArray[np.float64]]:
        """(T,) for each kind that occurs."""
        return {
            kind.name: right / count
            for kind, right, count in zip(self.kinds, self.solved, self.counts, strict=True)
            if count
        }

    def figures(self) -> dict[str, Any]:
        """Everything, as JSON holds it."""
        made: dict[str, Any] = {}
        for kind, right, count in zip(self.kinds, self.solved, self.counts, strict=True):
            if count:
                low, high = wilson(torch.tensor(right[-1]), int(count)).tolist()
                made[kind.name] = {
                    "problems": int(count),
                    "at the end": float(right[-1] / count),
                    "95 %": [low, high],
                    "solved by iteration": right.tolist(),
                }
        return made

    def headline(self) -> dict[str, str]:
        """The accuracy at the end, a cell a kind."""
        return {name: f"{100 * curve[-1]:.1f} %" for name, curve in self.accuracy.items()}

    def plots(self) -> list[tuple[Plot, Trace]]:
        """Accuracy at the end along each scale that kinds are ranges of."""
        accuracy = self.accuracy
        made = []
        for scale in dict.fromkeys(kind.scale for kind in self.kinds if kind.scale):
            ends = [
                (kind.at, 100 * float(accuracy[kind.name][-1]))
                for kind in self.kinds
                if kind.scale == scale and kind.name in accuracy
            ]
            plot = Plot(
                f"accuracy by {scale}",
                x_label=scale,
                y_label="solved at the end (%)",
                share=True,
                regime_axis="",
            )
            made.append((plot, Trace(*map(list, zip(*ends, strict=True)))))
        return made


@torch.no_grad()
def by_kind(net: Net, task: Task, batch: Batch, *, steps: int, tick: Tick = no_tick) -> ByKind:
    """Think ``steps`` iterations about every problem and sort who is right after each."""
    if not isinstance(task, HasKinds):
        raise UsageError(
            f"{task.spec.name} does not tell kinds of problem apart: it offers no kinds(); "
            "see iterant.tasks.protocol"
        )
    if steps < 1:
        raise UsageError(f"accuracy by kind needs at least 1 iteration, got {steps}")
    kinds = tuple(task.kinds(batch))
    right = np.zeros((len(batch), steps), dtype=bool)
    pieces, fast, first = list(parts(batch)), fused(net), 0
    for place, part in enumerate(pieces):
        for thought in think(fast, like(net, part.inputs), steps=steps):
            good = task.solved(thought.prediction.cpu(), part) & is_finite(thought.features).cpu()
            right[first : first + len(part), thought.step - 1] = good.numpy()
            tick(place * steps + thought.step, len(pieces) * steps)
        first += len(part)
    solved = [right[kind.among.numpy()].sum(axis=0) for kind in kinds]
    return ByKind(
        kinds,
        np.array(solved, dtype=np.int64).reshape(len(kinds), steps),
        np.array([int(kind.among.sum()) for kind in kinds], dtype=np.int64),
    )


PICTURED = 64
"""Failures that are kept as pictures; all are counted."""


@dataclass(frozen=True)
class NearMisses:
    """How each answer is wrong, a row a problem."""

    wrong: Tensor
    """(N,) int64: wrong positions; 0 is solved"""
    broken: Tensor
    """(N,) bool: features are NaN or infinite"""
    ways: NearMiss | None = None
    """Whether answers are ways all the same, for tasks that can tell"""
    failures: tuple[Description, ...] = ()
    """The first failures, each drawn with its errors marked"""

    @property
    def missed(self) -> Tensor:
        """(N,) bool: problems that are not solved."""
        return self.wrong > 0

    def _ways(self) -> dict[str, int]:
        """How many failures are ways of a kind."""
        if self.ways is None:
            return {}
        kinds = {"connected": self.ways.connected, "valid": self.ways.valid}
        return {word: int((self.missed & among).sum()) for word, among in kinds.items()}

    def figures(self) -> dict[str, Any]:
        """Everything, as JSON holds it."""
        counted = Counter(self.wrong.tolist())
        return {
            "problems": len(self.wrong),
            "failures": int(self.missed.sum()),
            **{f"failures that are {word}": number for word, number in self._ways().items()},
            "broken": int(self.broken.sum()),
            "problems by wrong positions": {str(n): counted[n] for n in sorted(counted)},
        }

    def headline(self) -> dict[str, str]:
        """The same in a few words, a cell each."""
        figures, wrong = self.figures(), self.wrong[self.missed].double()
        return {
            "problems": str(len(self.wrong)),
            "failures": str(figures["failures"]),
            **{f"of them {word}": str(number) for word, number in self._ways().items()},
            "wrong positions a failure (median)": f"{float(wrong.median()):.0f}"
            if len(wrong)
            else "–",
            "NaN": str(figures["broken"]),
        }

    def plots(self) -> list[tuple[Plot, Trace]]:
        """The share of problems with at most so many wrong positions."""
        counted = Counter(self.wrong.tolist())
        x, y = [0], [0.0]
        for wrong in sorted(counted):  # a staircase: level up to the next count, then up
            x += [wrong, wrong]
            y += [y[-1], y[-1] + 100 * counted[wrong] / len(self.wrong)]
        if not self.missed.any():  # an axis from 0 to 0 shows nothing
            x, y = [*x, 1], [*y, y[-1]]
        plot = Plot(
            "near misses",
            x_label="wrong positions",
            y_label="problems with at most so many (%)",
            share=True,
            regime_axis="",
        )
        return [(plot, Trace(x, y))]


@torch.no_grad()
def near_misses(
    net: Net, task: Task, batch: Batch, *, steps: int, tick: Tick = no_tick
) -> NearMisses:
    """Think ``steps`` iterations, and look at the answers that are wrong then."""
    if steps < 1:
        raise UsageError(f"near misses need at least 1 iteration, got {steps}")
    wrong, broken = [], []
    ways: list[NearMiss] = []
    failures: list[Description] = []
    pieces, done, fast = list(parts(batch)), 0, fused(net)
    for place, part in enumerate(pieces):
        thought: Thought
        for thought in think(fast, like(net, part.inputs), steps=steps):
            tick(place * steps + thought.step, len(pieces) * steps)
        prediction = thought.prediction.cpu()
        if isinstance(task, HasNearMisses):
            ways.append(task.misses(prediction, part))
        wrong.append(ways[-1].wrong if ways else _wrong_positions(task, prediction, part))
        broken.append(~is_finite(thought.features).cpu())
        for row in wrong[-1].nonzero().flatten().tolist()[: PICTURED - len(failures)]:
            said = task.describe(part, row, prediction)
            failures.append(replace(said, title=f"{said.title}, problem {done + row}"))
        done += len(part)
    return NearMisses(torch.cat(wrong), torch.cat(broken), _joined(ways), tuple(failures))


def _wrong_positions(task: Task, prediction: Tensor, batch: Batch) -> Tensor:
    """(N,) int64: how many positions of each answer differ from the true one; 0 is solved."""
    wrong = (prediction != batch.targets.cpu()).flatten(1).sum(dim=1)
    return wrong * ~task.solved(prediction, batch).cpu()


def _joined(ways: list[NearMiss]) -> NearMiss | None:
    """The same of all problems together."""
    if not ways:
        return None
    columns = zip(*((way.wrong, way.connected, way.valid) for way in ways), strict=True)
    return NearMiss(*map(torch.cat, columns))
