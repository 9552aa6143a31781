"""Numbers of tables and curves of figures, taken from the records of a model's seeds.

    >>> Peaks("512").of(records.of("sums-recall-a1")).step
    237
    >>> summary([0.97, 0.99, 1.0]).error
    0.008819171036881976

Every measure gives a `Cell`: the mean over all seeds, and over those that pass the paper's filter.
As in the paper, a peak is that of the curve averaged over seeds, with the standard error there.
Intervals are 95 % by Student's t, because seeds are few, and no narrower than the number of test
problems allows: seeds that all solve the same 200 of 200 do not show 100.00 %. A difference is
called one only where the intervals are apart, and its absence only where seeds could have shown it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from iterant.evaluation import wilson
from iterant.experiments.records import Record

Curve = list[float]

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
    def number(self) -> str:
        """``99.90 ± 0.10``."""
        return f"{self.mean:.2f}" + ("" if self.error is None else f" ± {self.error:.2f}")

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
    """How the two compare; "": no statement.

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


@dataclass(frozen=True)
class Cell:
    """A number over seeds, in per cent or in iterations."""

    every: Summary | None
    """All finished seeds"""
    filtered: Summary | None
    """Seeds with at least 99 % training accuracy"""
    step: int | None = None
    """The iteration of the peak, over all seeds"""
    text: str = ""
    """Shown beside the number: mean iterations to solution, the share that recovered"""
    filtered_text: str = ""
    seeds: int = 0
    """Seeds measured, where none of them gives a number"""


class Measure:
    """How a number is taken from the records of one model."""

    @property
    def title(self) -> str:
        """What is measured, as a heading."""
        return ""

    @property
    def needs(self) -> str:
        """The name of the test or study it is taken from; "": none."""
        return ""

    def parts(self, records: Sequence[Record]) -> list[Mapping[str, Any]]:
        """That test or study of each record; {} where there is none."""
        return [{**one.tests, **one.studies}.get(self.needs, {}) for one in records]

    def curves(self, records: Sequence[Record]) -> list[Curve]:
        """One curve per seed, for figures; a gap is NaN."""
        return []

    def of(self, records: Sequence[Record]) -> Cell:
        """The number."""
        raise NotImplementedError


@dataclass(frozen=True)
class Accuracy(Measure):
    """Accuracy of the tested weights at the training size, after m iterations."""

    which: str
    """train or validation"""

    @property
    def title(self) -> str:
        """As a heading."""
        return f"{self.which} accuracy"

    def of(self, records: Sequence[Record]) -> Cell:
        """The mean, with an interval no narrower than the number of problems allows."""

        def mean(some: Sequence[Record]) -> Summary | None:
            fits = [fit for one in some if (fit := one.figures["training"].get(self.which))]
            shares = [100.0 * (fit["solved"] / fit["of"]) for fit in fits]
            return summary(shares, min((fit["of"] for fit in fits), default=0))

        return Cell(mean(records), mean(_converged(records)))


class PeakMeasure(Measure):
    """The peak of a curve of problems solved."""

    @property
    def keys(self) -> tuple[str, str]:
        """Of the problems solved after every iteration, and of their number."""
        return "solved", "problems"

    def curves(self, records: Sequence[Record]) -> list[Curve]:
        """Per cent solved by iteration."""
        solved, total = self.keys
        parts = [part for part in self.parts(records) if solved in part]
        return [[100 * count / part[total] for count in part[solved]] for part in parts]

    def of(self, records: Sequence[Record]) -> Cell:
        """The peak of the mean curve over all seeds, and over the filtered ones."""
        total = self.keys[1]
        every, fit = (
            # All seeds have the same problems: more seeds are not more of them.
            peak(
                curves_with_failed(self, some),
                min((part[total] for part in self.parts(some) if part.get(total)), default=0),
            )
            for some in (records, _converged(records))
        )
        if every is None:
            return Cell(None, None)
        return Cell(every.height, None if fit is None else fit.height, every.step)


@dataclass(frozen=True)
class Peaks(PeakMeasure):
    """The peak of the accuracy by iteration on problems of one size."""

    size: str
    confident: bool = False
    """By the rule of the most confident iteration"""

    @property
    def needs(self) -> str:
        """The test."""
        return self.size

    @property
    def keys(self) -> tuple[str, str]:
        """Of a test."""
        return ("solved by the most confident" if self.confident else "solved"), "problems"

    @property
    def title(self) -> str:
        """As a heading."""
        kind = "puzzles" if ":" in self.size else "size"
        return f"{kind} {self.size}" + (", most confident iteration" if self.confident else "")


@dataclass(frozen=True)
class Recovered(PeakMeasure):
    """Peak accuracy after an intervention, and mean iterations to solution."""

    study: str
    keys = ("right", "samples")

    @property
    def needs(self) -> str:
        """The study."""
        return self.study

    title = needs

    def of(self, records: Sequence[Record]) -> Cell:
        """The peak; as text, the iterations until a problem is right for the first time.

        The paper has such a number for networks whose answers are all wrong again at the end.
        """

        def text(some: Sequence[Record]) -> str:
            steps = [part.get("mean iterations to first", part.get("mean iterations"))
                     for part in self.parts(some)]  # fmt: skip
            mean = summary([step for step in steps if step is not None])
            return "–" if mean is None else f"{mean.mean:.2f}"

        return replace(super().of(records), text=text(records),
                       filtered_text=text(_converged(records)))  # fmt: skip


@dataclass(frozen=True)
class Changes(Measure):
    """‖Δφ‖ by iteration, on problems or on random inputs; its last value as the number."""

    inputs: str
    needs = "convergence"

    @property
    def title(self) -> str:
        """As a heading."""
        return f"last ‖Δφ‖ on {self.inputs}"

    def curves(self, records: Sequence[Record]) -> list[Curve]:
        """‖Δφ‖ by iteration."""
        studies = [part.get(self.inputs) for part in self.parts(records)]
        # Otherwise it is a number of problems.
        return [_with_gaps(study["change"]) for study in studies if isinstance(study, dict)]

    def of(self, records: Sequence[Record]) -> Cell:
        """The change at the end; no mean where some seeds overflow.

        Seeds differ by powers of ten, so the mean is nearly the largest: text has both ends.
        """
        last, fit = (
            [curve[-1] for curve in self.curves(some)] for some in (records, _converged(records))
        )
        if overflows := sum(map(math.isnan, last)):
            text = f"overflow in {overflows} of {len(last)}"
            return Cell(None, None, text=text, filtered_text=text, seeds=len(last))
        ends, fit_ends = (
            f"{min(some):.2g} to {max(some):.2g}" if len(set(some)) > 1 else ""
            for some in (last, fit)
        )
        return Cell(summary(last), summary(fit), text=ends, filtered_text=fit_ends)


@dataclass(frozen=True)
class Indices(Measure):
    """Mean iterations to recover from a flipped bit, by its index; their mean as the number."""

    needs = "bit-flip"
    title = "iterations to recover from a flipped bit"

    def curves(self, records: Sequence[Record]) -> list[Curve]:
        """Iterations by index."""
        key = "mean iterations by index"
        return [_with_gaps(part[key]) for part in self.parts(records) if key in part]

    def mean(self, records: Sequence[Record], key: str) -> Summary | None:
        """The mean of a number over the seeds that have it."""
        values = [part.get(key) for part in self.parts(records)]
        return summary([value for value in values if value is not None])

    def of(self, records: Sequence[Record]) -> Cell:
        """The mean over all indices, of flips recovered from; their share as text."""
        (mean, share), (fit, fit_share) = (
            (self.mean(some, "mean iterations"), self.mean(some, "recovered"))
            for some in (records, _converged(records))
        )
        texts = ["" if one is None else f"{100 * one.mean:.1f} % recovered"
                 for one in (share, fit_share)]  # fmt: skip
        seeds = 0 if share is None else share.seeds
        return Cell(mean, fit, text=texts[0], filtered_text=texts[1], seeds=seeds)


def curves_with_failed(measure: Measure, records: Sequence[Record]) -> list[Curve]:
    """One curve per run; for accuracies, a run that diverged solves nothing at any iteration."""
    curves = measure.curves(records)
    if not curves or not isinstance(measure, PeakMeasure):
        return curves
    return [*curves, *([0.0] * len(curves[0]) for record in records if record.failed)]


def _with_gaps(values: Sequence[float | None]) -> Curve:
    return [float("nan") if value is None else value for value in values]


def _converged(records: Sequence[Record]) -> list[Record]:
    """Those that pass the paper's filter."""
    return [record for record in records if record.converged]
