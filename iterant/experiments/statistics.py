"""Means over seeds, their standard errors and intervals, and when two numbers differ.

    >>> summary([0.97, 0.99, 1.0]).error
    0.008819171036881976
    >>> peak([[0.0, 0.5, 1.0], [0.0, 0.7, 0.6]]).step
    3

As in the paper, a peak is that of the curve averaged over seeds, with the standard error there.
Intervals are 95 % by Student's t, because seeds are few, and no narrower than the number of test
problems allows: seeds that all solve the same 200 of 200 do not show 100.00 %. A difference is
called one only where the intervals are apart, and its absence only where seeds could have shown it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from iterant.evaluation import wilson

_T = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
      2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086)  # fmt: skip
"""Student's t for 95 %, two-sided, by degrees of freedom from 1."""
_Z = 1.96

LEAST_SEEDS = 3
"""Fewer say nothing about a difference."""

VISIBLE = 10.0
"""The difference in per cent that seeds must be able to show before "none" is said."""


@dataclass(frozen=True)
class Summary:
    """Some seeds in a few numbers."""

    mean: float
    error: float | None
    """The standard error of the mean; None: one seed has none"""
    seeds: int
    problems: int = 0
    """Test problems, the same for all seeds, where the mean is a share of them; 0: it is none"""

    @property
    def interval(self) -> tuple[float, float] | None:
        """Where the mean of many seeds lies, with 95 %; None: one seed does not say."""
        if self.error is None:
            return None
        half = self.error * (_T[self.seeds - 2] if self.seeds - 2 < len(_T) else _Z)
        low, high = self.mean - half, self.mean + half
        if self.problems:
            least, most = over_problems(self.mean, self.problems)
            low, high = min(low, least), max(high, most)
        return low, high

    @property
    def interval_text(self) -> str:
        """As tables have it: ``96.30 to 100.00``; of one seed, what its problems allow."""
        if not self.problems:
            return ""
        low, high = self.interval or over_problems(self.mean, self.problems)
        return f"{max(low, 0.0):.2f} to {min(high, 100.0):.2f}"


@dataclass(frozen=True)
class Peak:
    """The highest point of an averaged curve, the earliest of equals."""

    step: int
    height: Summary


@dataclass(frozen=True)
class Value:
    """A number of the paper, with its standard error where it gives one."""

    mean: float
    error: float | None = None
    step: int | None = None
    """At which iteration"""
    problems: int = 0
    """How many it is of, where the paper gives no error but says so"""

    @property
    def text(self) -> str:
        """As tables have it: ``97.12 ± 1.88 % at 237``."""
        error = "" if self.error is None else f" ± {self.error:.2f}"
        return f"{self.mean:.2f}{error} %" + ("" if self.step is None else f" at {self.step}")

    @property
    def interval(self) -> tuple[float, float] | None:
        """Within 1.96 standard errors; the paper does not say how many seeds."""
        if self.error is None:
            return over_problems(self.mean, self.problems) if self.problems else None
        return self.mean - _Z * self.error, self.mean + _Z * self.error


def summary(values: Sequence[float], problems: int = 0) -> Summary | None:
    """Mean and standard error; None where there is nothing."""
    count = len(values)
    if not count:
        return None
    mean = math.fsum(values) / count
    if count == 1:
        return Summary(mean, None, 1, problems)
    variance = math.fsum((value - mean) ** 2 for value in values) / (count - 1)
    return Summary(mean, math.sqrt(variance / count), count, problems)


def averaged(curves: Sequence[Sequence[float]]) -> list[float]:
    """The mean of curves of one length; of others, as far as all go."""
    return [math.fsum(column) / len(curves) for column in zip(*curves, strict=False)]


def peak(curves: Sequence[Sequence[float]], problems: int = 0) -> Peak | None:
    """The peak of the averaged curve; None where there is no curve."""
    mean = averaged(curves)
    if not mean:
        return None
    place = mean.index(max(mean))
    height = summary([curve[place] for curve in curves], problems)
    return None if height is None else Peak(place + 1, height)


def verdict(ours: Summary | None, paper: Value | None) -> str:
    """What the two allow to be said; "": nothing.

    "above" and "below" where the intervals are apart. "no difference shown" only where one could
    have been shown: at least `LEAST_SEEDS` seeds, and both intervals together reach no further
    than `VISIBLE` points. Otherwise "too few seeds".
    """
    if ours is None or paper is None or paper.interval is None:
        return ""
    mine, (low, high) = ours.interval, paper.interval
    if mine is None:
        return "too few seeds"
    if mine[0] > high:
        return "above"
    if mine[1] < low:
        return "below"
    reach = math.hypot((mine[1] - mine[0]) / 2, (high - low) / 2)
    able = ours.seeds >= LEAST_SEEDS and reach <= VISIBLE
    return "no difference shown" if able else "too few seeds"


def over_problems(mean: float, problems: int) -> tuple[float, float]:
    """Where a share in per cent lies, with 95 %, by the number of problems alone."""
    solved = torch.tensor(mean / 100 * problems, dtype=torch.float64)
    low, high = (100 * wilson(solved, problems)).tolist()
    return low, high
