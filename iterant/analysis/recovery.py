"""Accuracy after an intervention, and how many iterations recovery takes.

    >>> cases = [Case(batch, batch, (After(1, features=torch.zeros_like),))]
    >>> recovery = recover(net, task, cases, what="zeros", after=1, steps=300)
    >>> recovery.peak, recovery.recovered, recovery.mean_to_solution

Iterations count from the intervention. A sample has recovered if its answer is correct at the
end; its time is the first iteration from which it stayed correct.

Shapes: N samples, T iterations after the intervention. For flipped bits, L is the length of a
string, and sample n * L + i is string n with bit i flipped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from iterant.analysis.interventions import Case, Tick, no_tick
from iterant.draw.plots import Plot, Trace
from iterant.engine import think
from iterant.errors import UsageError
from iterant.evaluation import is_finite, like
from iterant.formatting import counted
from iterant.nets.fast import fused
from iterant.nets.protocol import Net
from iterant.tasks.protocol import Task


@dataclass(frozen=True)
class Recovery:
    """Accuracy by iteration and the recovery time of every sample."""

    what: str
    after: int
    """Iterations before the intervention; 0: none, or before the first iteration"""
    right: Tensor
    """(T,) int64: correct samples after each iteration"""
    first: Tensor
    """(N,) int64: the first iteration with the correct answer; 0: none"""
    since: Tensor
    """(N,) int64: the first iteration from which the answer stayed correct; 0: wrong at the end"""
    broken: Tensor
    """(N,) bool: features became NaN or infinite; the answer then counts as wrong"""
    before: float
    """Accuracy at the intervention; NaN if it came before the first iteration"""
    left_out: int = 0
    """Problems on which the intervention is not possible"""
    length: int | None = None
    """L, for flipped bits"""

    @property
    def count(self) -> int:
        """The number of samples."""
        return len(self.since)

    @property
    def accuracy(self) -> Tensor:
        """(T,) float64: accuracy after each iteration."""
        return self.right.double() / self.count

    @property
    def peak(self) -> tuple[int, float]:
        """The first iteration with the highest accuracy, and that accuracy."""
        best = int(self.right.argmax())
        return best + 1, float(self.accuracy[best])

    @property
    def recovered(self) -> float:
        """The share that is correct at the end."""
        return float((self.since > 0).double().mean())

    @property
    def mean_to_solution(self) -> float:
        """Mean recovery time of the recovered samples; NaN if there are none."""
        return float(self.since[self.since > 0].double().mean())

    @property
    def mean_to_first(self) -> float:
        """Mean of the first correct iteration, of samples that have one; NaN if there are none."""
        return float(self.first[self.first > 0].double().mean())

    @property
    def mean_by_index(self) -> Tensor:
        """(L,) float64: mean recovery time by index of the flipped bit; NaN if none recovered."""
        since = self.since.view(-1, self._length).double()
        return torch.where(since > 0, since, torch.nan).nanmean(dim=0)

    @property
    def recovered_by_index(self) -> Tensor:
        """(L,) float64: the share recovered, by index of the flipped bit."""
        return (self.since.view(-1, self._length) > 0).double().mean(dim=0)

    @property
    def _length(self) -> int:
        if self.length is None:
            raise UsageError(f"{self.what} has no index; take the study bit-flip")
        return self.length

    def figures(self) -> dict[str, Any]:
        """All numbers, as JSON."""
        figures: dict[str, Any] = {
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
        if self.length is not None:
            figures["by index"] = {
                "mean iterations to solution": self.mean_by_index.tolist(),
                "recovered": self.recovered_by_index.tolist(),
            }
        return figures

    def headline(self) -> dict[str, str]:
        """The main numbers as cells of a table."""
        return {
            "recovered": _percent(self.recovered),
            "peak": f"{_percent(self.peak[1])} at {self.peak[0]}",
            "iterations to solution": _number(self.mean_to_solution),
            "to first right answer": _number(self.mean_to_first),
            "right before": _percent(self.before),
            "NaN": str(int(self.broken.sum())),
            "left out": str(self.left_out),
        }

    def plots(self) -> list[tuple[Plot, Trace]]:
        """Accuracy by iteration since the intervention; for flipped bits, time by index first."""
        axis = f"iterations since iteration {self.after}" if self.after else "iterations"
        plot = Plot(self.what, axis, "problems solved (%)", share=True, begun=self.after)
        steps = list(range(1, len(self.right) + 1))
        plots = [(plot, Trace(steps, (100 * self.accuracy).tolist()))]
        if self.length is not None:
            plot = Plot(
                f"{self.what} recovery time",
                x_label="index of the flipped bit",
                y_label="mean iterations to solution",
                shade=False,
            )
            plots.insert(0, (plot, Trace(list(range(self.length)), self.mean_by_index.tolist())))
        return plots


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
    length: int | None = None,
    tick: Tick = no_tick,
) -> Recovery:
    """Iterate ``steps`` times on every case and evaluate those past the first ``after``."""
    if not 0 <= after < steps:
        raise UsageError(
            f"{what} after iteration {after} leaves nothing to see of "
            f"{counted(steps, 'iteration')}; "
            f"intervene earlier, or think for at least {after + 1}"
        )
    fast, solved_before = fused(net), 0
    rights, firsts, sinces, brokens = [], [], [], []
    for place, case in enumerate(cases):
        inputs = like(net, case.batch.inputs)
        target, batch = case.target.to(inputs.device), case.batch.to(inputs.device)
        right = torch.zeros(steps - after, dtype=torch.int64, device=inputs.device)
        first = torch.zeros(len(target), dtype=torch.int64, device=inputs.device)
        since, broken = torch.zeros_like(first), torch.zeros_like(first, dtype=torch.bool)
        for thought in think(fast, inputs, steps=steps, intervene=case.intervene):
            iteration = thought.step - after
            if iteration > 0:
                broken |= ~is_finite(thought.features)
                solved = task.solved(thought.prediction, target) & ~broken
                right[iteration - 1] = solved.sum()
                first[solved & (first == 0)] = iteration
                since[solved & (since == 0)] = iteration
                since[~solved] = 0
            elif iteration == 0:
                solved = task.solved(thought.prediction, batch) & is_finite(thought.features)
                solved_before += int(solved.sum())
            tick(place * steps + thought.step, len(cases) * steps)
        rights.append(right.cpu())
        firsts.append(first.cpu())
        sinces.append(since.cpu())
        brokens.append(broken.cpu())
    return Recovery(
        what=what,
        after=after,
        right=torch.stack(rights).sum(dim=0),
        first=torch.cat(firsts),
        since=torch.cat(sinces),
        broken=torch.cat(brokens),
        before=solved_before / sum(len(case.batch) for case in cases) if after else float("nan"),
        left_out=left_out,
        length=length,
    )


def _percent(value: float) -> str:
    return "–" if value != value else f"{100 * value:.1f} %"


def _number(value: float) -> str:
    return "–" if value != value else f"{value:.1f}"
