"""How wrong the wrong answers are: positions, connected, valid all the same.

    >>> found = near_misses(net, task, batch, steps=300)
    >>> found.wrong.double().mean(), found.failures[0].title

For tasks whose answer is a way (`iterant.tasks.edits.Traces`): mazes.

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
from iterant.evaluation.judging import is_finite, like, swift
from iterant.nets.protocol import Net
from iterant.tasks.edits import Traces
from iterant.tasks.protocol import Batch, Description, Task

PICTURED = 64
"""Failures that are kept as pictures; all are counted."""


@dataclass(frozen=True)
class NearMisses:
    """How each answer is wrong, a row a problem."""

    wrong: Tensor
    """(N,) int64: wrong positions"""
    connected: Tensor
    """(N,) bool: the answer joins start and end"""
    valid: Tensor
    """(N,) bool: it is one whole way, labelled or not"""
    broken: Tensor
    """(N,) bool: features are NaN or infinite"""
    failures: tuple[Description, ...] = ()
    """The first failures, each drawn with its errors marked"""

    @property
    def missed(self) -> Tensor:
        """(N,) bool: problems that are not solved."""
        return self.wrong > 0

    def figures(self) -> dict[str, Any]:
        """Everything, as JSON holds it."""
        counted = Counter(self.wrong.tolist())
        return {
            "problems": len(self.wrong),
            "failures": int(self.missed.sum()),
            "failures that are connected": int((self.missed & self.connected).sum()),
            "failures that are valid": int((self.missed & self.valid).sum()),
            "broken": int(self.broken.sum()),
            "problems by wrong positions": {str(n): counted[n] for n in sorted(counted)},
        }

    def headline(self) -> dict[str, str]:
        """The same in a few words, a cell each."""
        figures, wrong = self.figures(), self.wrong[self.missed].double()
        return {
            "problems": str(len(self.wrong)),
            "failures": str(figures["failures"]),
            "of them connected": str(figures["failures that are connected"]),
            "of them valid": str(figures["failures that are valid"]),
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
    if not isinstance(task, Traces):
        raise UsageError(
            f"near misses are told of tasks whose answer is a way, and {task.spec.name} offers no "
            "misses(); see iterant.tasks.edits"
        )
    if steps < 1:
        raise UsageError(f"near misses need at least 1 iteration, got {steps}")
    rows: list[tuple[Tensor, ...]] = []
    failures: list[Description] = []
    pieces, done, fast = list(parts(batch)), 0, swift(net)
    for place, part in enumerate(pieces):
        thought: Thought
        for thought in think(fast, like(net, part.inputs), steps=steps):
            tick(place * steps + thought.step, len(pieces) * steps)
        prediction = thought.prediction.cpu()
        found = task.misses(prediction, part)
        rows.append((found.wrong, found.connected, found.valid, ~is_finite(thought.features).cpu()))
        for row in found.wrong.nonzero().flatten().tolist()[: PICTURED - len(failures)]:
            said = task.describe(part, row, prediction)
            failures.append(replace(said, title=f"{said.title}, problem {done + row}"))
        done += len(part)
    wrong, connected, valid, broken = (torch.cat(column) for column in zip(*rows, strict=True))
    return NearMisses(wrong, connected, valid, broken, tuple(failures))
