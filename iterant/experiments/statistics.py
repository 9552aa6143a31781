"""Means over seeds, their intervals, and when two means differ.

    >>> mean_of([97.0, 99.0, 100.0]).number
    '98.67 ± 0.88'

Intervals are 95 % over seeds. As in the paper, a peak is that of the curve averaged over seeds,
with the standard error there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from iterant.evaluation import wilson

_T = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
      2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086)  # fmt: skip
"""Student's t for 95 %, two-sided, by degrees of freedom from 1."""
_Z = 1.96

LEAST_SEEDS = 3
"""The fewest seeds for a statement about a difference."""

VISIBLE = 10.0
"""The difference in points that seeds must be able to show before "no difference" is reported."""


@dataclass(frozen=True)
class Value:
    """A mean over seeds with its standard error: ours, or a number of the paper."""

    mean: float
    error: float | None = None
    """The standard error of the mean; None for one seed, or where the paper gives none"""
    step: int | None = None
    """The iteration of a peak"""
    problems: int = 0
    """Test problems (the same for all seeds) if the mean is a share of them; 0: it is not"""
    seeds: int = 0
    """0: not stated, as in the paper"""

    @property
    def number(self) -> str:
        """``99.90 ± 0.10``."""
        return f"{self.mean:.2f}" + ("" if self.error is None else f" ± {self.error:.2f}")

    @property
    def percent(self) -> str:
        """``99.90 ± 0.10 %``."""
        return f"{self.number} %"

    @property
    def text(self) -> str:
        """With the iteration of the peak: ``97.12 ± 1.88 % at 237``."""
        return self.percent + ("" if self.step is None else f" at {self.step}")

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % confidence interval; without an error that over the problems, if there are any.

        Half its width is Student's t times the error, or 1.96 times where seeds are many or their
        number is not stated. It is no narrower than the problems allow: seeds that all solve the
        same 200 of 200 do not show 100.00 %.
        """
        over_problems = problem_interval(self.mean, self.problems) if self.problems else None
        if self.error is None:
            return over_problems
        half = self.error * (_T[self.seeds - 2] if 2 <= self.seeds < len(_T) + 2 else _Z)
        low, high = self.mean - half, self.mean + half
        if over_problems is None:
            return low, high
        return min(low, over_problems[0]), max(high, over_problems[1])

    @property
    def interval_text(self) -> str:
        """``96.30 to 100.00``; only for shares of problems."""
        if not self.problems or self.interval is None:
            return ""
        low, high = self.interval
        return f"{max(low, 0.0):.2f} to {min(high, 100.0):.2f}"


def mean_of(values: Sequence[float], problems: int = 0) -> Value | None:
    """Mean and standard error over seeds; None without values."""
    count = len(values)
    if count == 0:
        return None
    mean = math.fsum(values) / count
    if count == 1:
        return Value(mean, problems=problems, seeds=1)
    variance = math.fsum((value - mean) ** 2 for value in values) / (count - 1)
    return Value(mean, math.sqrt(variance / count), problems=problems, seeds=count)


def peak(curves: Sequence[Sequence[float]], problems: int = 0) -> Value | None:
    """The first peak of the mean curve, up to the end of the shortest curve."""
    columns = list(zip(*curves, strict=False))
    means = [math.fsum(column) / len(column) for column in columns]
    if not means:
        return None
    best = means.index(max(means))
    height = mean_of(columns[best], problems)
    return height and replace(height, step=best + 1)


def difference(one: Value, other: Value | None = None) -> tuple[float, float, float]:
    """Lower end, middle and upper end of a mean, or of the difference of two means.

    The half-widths of the two intervals that point the same way add in quadrature: the first mean's
    lower one with the second's upper one, and the reverse.
    """
    low, high = one.interval or (one.mean, one.mean)
    if other is None:
        return low, one.mean, high
    other_low, other_high = other.interval or (other.mean, other.mean)
    middle = one.mean - other.mean
    down = math.hypot(one.mean - low, other_high - other.mean)
    up = math.hypot(high - one.mean, other.mean - other_low)
    return middle - down, middle, middle + up


def verdict(ours: Value | None, paper: Value | None) -> str:
    """Our number compared with the paper's; "": no statement.

    "above" and "below" where the interval of the difference lies on one side of 0. "no difference
    shown" only where one could have been shown: at least `LEAST_SEEDS` seeds, and an interval that
    reaches no further than `VISIBLE` points from its middle. Otherwise "too few seeds".
    """
    if ours is None or paper is None or paper.interval is None:
        return ""
    if ours.error is None:
        return "too few seeds"
    low, middle, high = difference(ours, paper)
    if low > 0 or high < 0:
        return "above" if low > 0 else "below"
    conclusive = ours.seeds >= LEAST_SEEDS and max(middle - low, high - middle) <= VISIBLE
    return "no difference shown" if conclusive else "too few seeds"


def problem_interval(mean: float, problems: int) -> tuple[float, float]:
    """The 95 % Wilson interval, in per cent, of a share of ``problems``."""
    solved = torch.tensor(mean / 100 * problems, dtype=torch.float64)
    low, high = (100 * wilson(solved, problems)).tolist()
    return low, high
