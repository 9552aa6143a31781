"""Accuracy by kind of problem: ratings and themes of puzzles, lengths of ways.

    >>> found = by_kind(net, task, batch, steps=100)
    >>> found.accuracy["mateIn2"][-1]

For tasks that tell kinds apart (`iterant.tasks.edits.Sorts`).

Shapes: N problems, T iterations.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from iterant.analysis.parts import Tick, no_tick, parts
from iterant.draw.lines import Plot, Trace
from iterant.engine import think
from iterant.errors import UsageError
from iterant.evaluation.curve import wilson
from iterant.evaluation.judging import is_finite, like
from iterant.nets.fast import fused
from iterant.nets.protocol import Net
from iterant.tasks.edits import Kind, Sorts
from iterant.tasks.protocol import Batch, Task


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
    if not isinstance(task, Sorts):
        raise UsageError(
            f"{task.spec.name} does not tell kinds of problem apart: it offers no kinds(); "
            "see iterant.tasks.edits"
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
