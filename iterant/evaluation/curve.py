"""The result of an evaluation: accuracy by iteration, overthinking and cost.

>>> curve.peak, curve.end, curve.lost        # (step, accuracy), accuracy, accuracy
>>> curve.interval[curve.steps.index(30)]    # 95 % interval of the accuracy after 30 iterations
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from iterant import registry
from iterant.errors import UsageError
from iterant.evaluation.cost import Operations
from iterant.formatting import counted


def wilson(solved: Tensor, count: int) -> Tensor:
    """(…, 2) float64: the 95 % Wilson score interval of a share of ``count``.

    >>> wilson(torch.tensor(1000), 1000)
    tensor([0.9962, 1.0000], dtype=torch.float64)
    """
    share, z = solved.double() / count, 1.959963984540054
    centre = share + z * z / (2 * count)
    half = z * (share * (1 - share) / count + z * z / (4 * count * count)).sqrt()
    low, high = ((centre + side * half) / (1 + z * z / count) for side in (-1, 1))
    # At shares of 0 and 1 the share is an end; rounding must not leave it outside.
    ends = [torch.minimum(low, share), torch.maximum(high, share)]
    return torch.stack(ends, dim=-1).clamp(0.0, 1.0)


@dataclass(frozen=True)
class Curve:
    """How many problems were solved after each evaluated iteration.

        >>> curve = iterant.evaluate(net, task, size=9, count=20, max_steps=60)
        >>> curve.peak[1], curve.end, curve.lost
        (1.0, 1.0, 0.0)

    Under a halting rule, "after k iterations" means with a budget of k: problems that stopped
    before keep their answer, the others answer as they stand.
    """

    steps: tuple[int, ...]
    """The evaluated iterations, counted from 1"""
    solved: Tensor
    """(steps,) int64: problems solved after each"""
    count: int
    """Problems in all"""
    change: float
    """Mean over problems of ‖Δφ‖ / ‖φ‖ at their last iteration"""
    broken: int = 0
    """Problems whose features became NaN or infinite; these count as not solved"""
    right: Tensor | None = None
    """(problems,) bool: solved at the end"""
    taken: Tensor | None = None
    """(problems,) int64: iterations of each problem"""
    stopped: Tensor | None = None
    """(problems,) bool: whether the rule was met within the budget"""
    seconds: Tensor | None = None
    """(steps,) float64: time for all problems up to each iteration"""
    operations: Operations | None = None
    """Floating-point operations of one problem"""
    looks: bool = False
    """Whether the rule decodes the answer at every iteration, which then is part of the cost"""
    shrunk: int | None = None
    """Problems in a batch, where memory was short for the usual number"""

    @property
    def accuracy(self) -> Tensor:
        """(steps,) float64: the share solved after each iteration."""
        return self.solved.double() / self.count

    @property
    def interval(self) -> Tensor:
        """(steps, 2) float64: the 95 % interval of each accuracy (Wilson's)."""
        return wilson(self.solved, self.count)

    @property
    def peak(self) -> tuple[int, float]:
        """The iteration with the highest accuracy, the first of equals, and that accuracy."""
        best = int(self.solved.argmax())
        return self.steps[best], float(self.accuracy[best])

    def __repr__(self) -> str:
        """The peak and the end, in one line."""
        best, height = self.peak
        return (
            f"Curve({counted(self.count, 'problem')}: {height:.1%} solved after "
            f"{counted(best, 'iteration')}, "
            f"{self.end:.1%} after {self.steps[-1]})"
        )

    @property
    def end(self) -> float:
        """The accuracy after the last iteration."""
        return float(self.accuracy[-1])

    @property
    def lost(self) -> float:
        """Accuracy lost after the peak: overthinking."""
        return self.peak[1] - self.end

    def at(self, step: int) -> float:
        """The accuracy after an evaluated iteration."""
        return float(self.accuracy[self._place(step)])

    def interval_at(self, step: int) -> tuple[float, float]:
        """The 95 % interval of the accuracy after an evaluated iteration."""
        low, high = self.interval[self._place(step)].tolist()
        return low, high

    def _place(self, step: int) -> int:
        if step not in self.steps:
            few = f"{self.steps[0]} … {self.steps[-1]}" if len(self.steps) > 8 else self.steps
            raise UsageError(f"iteration {step} was not evaluated; there are {few}")
        return self.steps.index(step)

    @property
    def iterations(self) -> Tensor:
        """(steps,) float64: mean iterations of a problem, with a budget of each."""
        budgets = torch.tensor(self.steps)
        if self.taken is None:
            return budgets.double()
        longest = int(self.taken.max())
        # A budget of k costs the sum over i ≤ k of the problems that took i iterations or more.
        ended = torch.bincount(self.taken.cpu(), minlength=longest + 1)
        active = (self.count - ended.cumsum(0))[:-1]
        spent = torch.cat([torch.zeros(1, dtype=torch.int64), active.cumsum(0)])
        return spent[budgets.clamp(max=longest)].double() / self.count

    @property
    def work(self) -> Tensor | None:
        """(steps,) float64: mean floating-point operations of a problem, with a budget of each."""
        return None if self.operations is None else self.operations.of(self.iterations, self.looks)

    def _repr_png_(self) -> bytes:
        """The plot that a notebook shows."""
        image: bytes = registry.find("picture", "curve")(self)
        return image

    def described(self) -> dict[str, Any]:
        """Everything, for `iterant.io.write_result`; steps only where they are not 1, 2, 3 …"""
        step, height = self.peak
        figures: dict[str, Any] = {
            "problems": self.count,
            "peak": {"step": step, "accuracy": height, "interval": self.interval_at(step)},
            "end": {
                "step": self.steps[-1],
                "accuracy": self.end,
                "interval": self.interval_at(self.steps[-1]),
            },
            "lost": self.lost,
            "mean iterations": float(self.iterations[-1]),
            "change at the end": self.change,
            "not finite": self.broken,
            "solved": self.solved.tolist(),
        }
        if self.steps != tuple(range(1, len(self.steps) + 1)):
            figures["steps"] = list(self.steps)
        if self.stopped is not None:
            figures["stopped by the rule"] = int(self.stopped.sum())
        if self.taken is not None and int(self.taken.min()) < self.steps[-1]:
            figures["iterations of each"] = self.taken.tolist()
            figures["mean iterations by budget"] = [
                round(mean, 4) for mean in self.iterations.tolist()
            ]
        if self.work is not None:
            figures["operations a problem"] = self.work.tolist()
        if self.shrunk is not None:
            figures["problems at a time, for want of memory"] = self.shrunk
        if self.seconds is not None:
            figures["seconds"] = [round(second, 4) for second in self.seconds.tolist()]
        return figures
