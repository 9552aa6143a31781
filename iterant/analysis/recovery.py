"""How thinking goes on after somebody has meddled with it.

    >>> found = recover(net, task, [Case(batch, batch, (After(1, features=torch.zeros_like),))],
    ...                 what="zeros", after=1, steps=300)
    >>> found.peak, found.recovered, found.mean_to_solution

Iterations count from the intervention. A sample is recovered where its answer is right at the
end; it took as many iterations as there were up to the first from which it stayed right.

Shapes: N problems judged, T iterations after the intervention.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from iterant import names
from iterant.analysis.parts import Tick, no_tick
from iterant.draw.lines import Plot, Trace
from iterant.engine import Intervention, Thought, think
from iterant.errors import UsageError
from iterant.evaluation.judging import is_finite, like
from iterant.nets.fast import fused
from iterant.nets.protocol import Net
from iterant.tasks.protocol import Batch, Task


@dataclass(frozen=True)
class Case:
    """Some problems, what is done to them, and the problems that are then to be solved."""

    begun: Batch
    judged: Batch
    """What is right after the intervention, a row a sample that there is then"""
    intervene: tuple[Intervention, ...] = ()


@dataclass(frozen=True)
class Recovery:
    """What became of every sample."""

    what: str
    after: int
    """Iterations before the intervention; 0: nothing was done, or before the first"""
    right: Tensor
    """(T,) int64: how many were right after each iteration"""
    first: Tensor
    """(N,) int64: the first iteration with the right answer; 0: none"""
    since: Tensor
    """(N,) int64: the first iteration from which the answer stayed right; 0: wrong at the end"""
    broken: Tensor
    """(N,) bool: features became NaN or infinite; the answer then counts as wrong"""
    before: float
    """The share that was right when the intervention came; NaN where it came first"""
    left_out: int = 0
    """Problems that the intervention cannot be made on"""

    @property
    def count(self) -> int:
        """Samples in all."""
        return len(self.since)

    @property
    def accuracy(self) -> Tensor:
        """(T,) float64: the share that was right after each iteration."""
        return self.right.double() / self.count

    @property
    def peak(self) -> tuple[int, float]:
        """The iteration with the highest accuracy, the earliest of equals, and that accuracy."""
        best = int(self.right.argmax())
        return best + 1, float(self.accuracy[best])

    @property
    def recovered(self) -> float:
        """The share that is right at the end."""
        return float((self.since > 0).double().mean())

    @property
    def mean_to_solution(self) -> float:
        """Mean iterations until the answer stayed right, of those recovered; NaN where none is."""
        return _mean(self.since)

    @property
    def mean_to_first(self) -> float:
        """Mean iterations until the answer was right for the first time, of those it ever was."""
        return _mean(self.first)

    def figures(self) -> dict[str, Any]:
        """Everything, as JSON holds it."""
        return {
            "after": self.after,
            "problems": self.count,
            "left out": self.left_out,
            "broken": int(self.broken.sum()),
            "accuracy before": self.before,
            "accuracy": self.accuracy.tolist(),
            "peak": {"iteration": self.peak[0], "accuracy": self.peak[1]},
            "recovered": self.recovered,
            "mean iterations to solution": self.mean_to_solution,
            "mean iterations to first right answer": self.mean_to_first,
            "iterations to solution": self.since.tolist(),
            "iterations to first right answer": self.first.tolist(),
        }

    def headline(self) -> dict[str, str]:
        """The same in a few words, a cell each."""
        return {
            "recovered": _share(self.recovered),
            "peak": f"{_share(self.peak[1])} at {self.peak[0]}",
            "iterations to solution": _figure(self.mean_to_solution),
            "to first right answer": _figure(self.mean_to_first),
            "right before": _share(self.before),
            "NaN": str(int(self.broken.sum())),
            "left out": str(self.left_out),
        }

    def plots(self) -> list[tuple[Plot, Trace]]:
        """Accuracy by iteration since the intervention."""
        since = f"iterations since iteration {self.after}" if self.after else "iterations"
        plot = Plot(
            self.what,
            x_label=since,
            y_label="problems solved (%)",
            share=True,
            begun=self.after,
        )
        steps = list(range(1, len(self.right) + 1))
        return [(plot, Trace(steps, (100 * self.accuracy).tolist()))]


class _Tally:
    """Who is right and since when; nothing else is kept of an iteration."""

    def __init__(self, count: int, steps: int, device: torch.device) -> None:
        self.right = torch.zeros(steps, dtype=torch.int64, device=device)
        self.first = torch.zeros(count, dtype=torch.int64, device=device)
        self.since = torch.zeros_like(self.first)
        self.broken = torch.zeros(count, dtype=torch.bool, device=device)

    def see(self, thought: Thought, iteration: int, task: Task, judged: Batch) -> None:
        self.broken |= ~is_finite(thought.features)
        right = task.solved(thought.prediction, judged) & ~self.broken
        self.right[iteration - 1] = right.sum()
        self.first[right & (self.first == 0)] = iteration
        self.since[right & (self.since == 0)] = iteration
        self.since[~right] = 0


@torch.no_grad()
def recover(
    net: Net,
    task: Task,
    cases: Sequence[Case],
    *,
    what: str,
    after: int,
    steps: int,
    left_out: int = 0,
    tick: Tick = no_tick,
) -> Recovery:
    """Think ``steps`` iterations about every case and tally those after the first ``after``."""
    if not 0 <= after < steps:
        raise UsageError(
            f"{what} after iteration {after} leaves nothing to see of "
            f"{names.counted(steps, 'iteration')}; "
            f"intervene earlier, or think for at least {after + 1}"
        )
    tallies, before, fast = [], 0, fused(net)
    for place, case in enumerate(cases):
        inputs = like(net, case.begun.inputs)
        judged, begun = case.judged.to(inputs.device), case.begun.to(inputs.device)
        tally = _Tally(len(judged), steps - after, inputs.device)
        for thought in think(fast, inputs, steps=steps, intervene=case.intervene):
            if thought.step > after:
                tally.see(thought, thought.step - after, task, judged)
            elif thought.step == after:
                solved = task.solved(thought.prediction, begun) & is_finite(thought.features)
                before += int(solved.sum())
            tick(place * steps + thought.step, len(cases) * steps)
        tallies.append(tally)
    begun_count = sum(len(case.begun) for case in cases)
    return Recovery(
        what=what,
        after=after,
        right=torch.stack([tally.right.cpu() for tally in tallies]).sum(dim=0),
        first=torch.cat([tally.first.cpu() for tally in tallies]),
        since=torch.cat([tally.since.cpu() for tally in tallies]),
        broken=torch.cat([tally.broken.cpu() for tally in tallies]),
        before=before / begun_count if after else float("nan"),
        left_out=left_out,
    )


def _mean(steps: Tensor) -> float:
    met = steps[steps > 0].double()
    return float(met.mean()) if len(met) else float("nan")


def _share(value: float) -> str:
    return "–" if value != value else f"{100 * value:.1f} %"


def _figure(value: float) -> str:
    return "–" if value != value else f"{value:.1f}"
