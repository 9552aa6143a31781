"""How wrong the wrong answers are: positions, and whether a way is connected or valid all the same.

    >>> found = near_misses(net, task, batch, steps=300)
    >>> found.wrong.double().mean(), found.failures[0].title

Ways are those of tasks that can tell (`iterant.tasks.edits.Traces`): mazes.

Shapes: N problems.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from iterant.analysis.parts import Tick, no_tick, parts
from iterant.draw.lines import Plot, Trace
from iterant.engine import Thought, think
from iterant.errors import UsageError
from iterant.evaluation.judging import is_finite, like
from iterant.nets.fast import fused
from iterant.nets.protocol import Net
from iterant.tasks.edits import Misses, Traces
from iterant.tasks.protocol import Batch, Description, Task

PICTURED = 64
"""Failures that are kept as pictures; all are counted."""


@dataclass(frozen=True)
class NearMisses:
    """How each answer is wrong, a row a problem."""

    wrong: Tensor
    """(N,) int64: wrong positions; 0 is solved"""
    broken: Tensor
    """(N,) bool: features are NaN or infinite"""
    ways: Misses | None = None
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
    ways: list[Misses] = []
    failures: list[Description] = []
    pieces, done, fast = list(parts(batch)), 0, fused(net)
    for place, part in enumerate(pieces):
        thought: Thought
        for thought in think(fast, like(net, part.inputs), steps=steps):
            tick(place * steps + thought.step, len(pieces) * steps)
        prediction = thought.prediction.cpu()
        if isinstance(task, Traces):
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


def _joined(ways: list[Misses]) -> Misses | None:
    """The same of all problems together."""
    if not ways:
        return None
    columns = zip(*((way.wrong, way.connected, way.valid) for way in ways), strict=True)
    return Misses(*map(torch.cat, columns))
