"""What an evaluation shows: accuracy by iteration, what was lost, and what it cost.

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

_Z = 1.959963984540054
"""Of a normal distribution, 95 % lies within so many standard deviations."""


def wilson(solved: Tensor, count: int) -> Tensor:
    """(…, 2) float64: the 95 % score interval of a share of ``count``, sensible at 0 and 1 too.

    >>> wilson(torch.tensor(1000), 1000)
    tensor([0.9962, 1.0000], dtype=torch.float64)
    """
    share, z = solved.double() / count, _Z
    centre = share + z * z / (2 * count)
    half = z * (share * (1 - share) / count + z * z / (4 * count * count)).sqrt()
    low, high = ((centre + side * half) / (1 + z * z / count) for side in (-1, 1))
    # Rounding must not leave the share itself outside: at 0 and 1 it is an end.
    ends = [torch.minimum(low, share), torch.maximum(high, share)]
    return torch.stack(ends, dim=-1).clamp(0.0, 1.0)


@dataclass(frozen=True)
class Curve:
    """How many problems were solved after each iteration that was asked for.

        >>> curve = iterant.evaluate(net, task, size=9, count=20, max_steps=60)
        >>> curve.peak[1], curve.end, curve.lost
        (1.0, 1.0, 0.0)

    Under a halting rule, "after k iterations" means with a budget of k: problems that stopped
    before keep their answer, the others answer as they stand.
    """

    steps: tuple[int, ...]
    """The iterations, from the first"""
    solved: Tensor
    """(steps,) int64: problems solved after each"""
    count: int
    """Problems in all"""
    change: float
    """Mean over problems of ‖Δφ‖ / ‖φ‖ at their last iteration: 0 at rest"""
    broken: int = 0
    """Problems whose features stopped being finite numbers; such a problem is never solved"""
    right: Tensor | None = None
    """(problems,) bool: solved at the end"""
    taken: Tensor | None = None
    """(problems,) int64: iterations that each problem took"""
    stopped: Tensor | None = None
    """(problems,) bool: whether the rule was met within the budget"""
    seconds: Tensor | None = None
    """(steps,) float64: time that all problems together took up to each"""
    operations: Operations | None = None
    """Floating-point operations of one problem's parts"""
    looks: bool = False
    """Whether the rule looks at the answer at every iteration, which then is a part of the cost"""
    shrunk: int | None = None
    """Problems at a time, where memory was not enough for the portions asked for"""

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
        """The iteration with the highest accuracy, the earliest of equals, and that accuracy."""
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
        """How much accuracy was lost after the peak: overthinking."""
        return self.peak[1] - self.end

    def at(self, step: int) -> float:
        """The accuracy after an iteration that was asked for."""
        return float(self.accuracy[self._place(step)])

    def interval_at(self, step: int) -> tuple[float, float]:
        """The 95 % interval of the accuracy after an iteration that was asked for."""
        low, high = self.interval[self._place(step)].tolist()
        return low, high

    def _place(self, step: int) -> int:
        if step not in self.steps:
            few = f"{self.steps[0]} … {self.steps[-1]}" if len(self.steps) > 8 else self.steps
            raise UsageError(f"iteration {step} was not evaluated; there are {few}")
        return self.steps.index(step)

    @property
    def iterations(self) -> Tensor:
        """(steps,) float64: mean iterations a problem spent, with a budget of each."""
        budgets = torch.tensor(self.steps)
        if self.taken is None:
            return budgets.double()
        longest = int(self.taken.max())
        # How many problems took at least k iterations, summed up to each budget.
        ended = torch.bincount(self.taken.cpu(), minlength=longest + 1)
        thinking = (self.count - ended.cumsum(0))[:-1]
        spent = torch.cat([torch.zeros(1, dtype=torch.int64), thinking.cumsum(0)])
        return spent[budgets.clamp(max=longest)].double() / self.count

    @property
    def work(self) -> Tensor | None:
        """(steps,) float64: mean floating-point operations a problem, with a budget of each."""
        return None if self.operations is None else self.operations.of(self.iterations, self.looks)

    def _repr_png_(self) -> bytes:
        """What a notebook shows."""
        drawn: bytes = registry.find("picture", "curve")(self)
        return drawn

    def described(self) -> dict[str, Any]:
        """Everything, for `iterant.io.write_result`; steps only where they are not 1, 2, 3 …"""
        step, height = self.peak
        made: dict[str, Any] = {
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
            made["steps"] = list(self.steps)
        if self.stopped is not None:
            made["stopped by the rule"] = int(self.stopped.sum())
        if self.taken is not None and int(self.taken.min()) < self.steps[-1]:
            made["iterations of each"] = self.taken.tolist()
            made["mean iterations by budget"] = [
                round(mean, 4) for mean in self.iterations.tolist()
            ]
        if self.work is not None:
            made["operations a problem"] = self.work.tolist()
        if self.shrunk is not None:
            made["problems at a time, for want of memory"] = self.shrunk
        if self.seconds is not None:
            made["seconds"] = [round(second, 4) for second in self.seconds.tolist()]
        return made
