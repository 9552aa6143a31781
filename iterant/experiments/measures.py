"""What a cell of a table is, taken from records: a peak, an accuracy, an intervention.

    >>> Peaks("512").of(records.of("sums-recall-a1")).step
    237

Every measure gives a `Cell`: the mean over seeds, filtered as in the paper and not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from iterant.experiments.records import Record
from iterant.experiments.statistics import Peak, Summary, peak, summary

Curve = list[float]


@dataclass(frozen=True)
class Cell:
    """What some seeds say, in per cent or in iterations."""

    every: Summary | None
    """All finished seeds"""
    filtered: Summary | None
    """Those with at least 99 % training accuracy"""
    step: int | None = None
    """The iteration of the peak, over all seeds"""
    text: str = ""
    """What stands beside the number: mean iterations to solution, the share that recovered"""
    filtered_text: str = ""
    """The same of the filtered ones"""
    seeds: int = 0
    """How many were measured, where none of them gives a number"""


class Measure(Protocol):
    """How a number is taken from the records of one model."""

    @property
    def title(self) -> str:
        """What is measured, as a heading."""

    @property
    def needs(self) -> str:
        """The name of the test or study that it is taken from; "": none."""

    def of(self, records: Sequence[Record]) -> Cell:
        """The number."""


@dataclass(frozen=True)
class Peaks:
    """The peak of accuracy by iteration on problems of one size."""

    size: str
    confident: bool = False
    """By the rule of the most confident iteration"""

    @property
    def needs(self) -> str:
        """The test or study."""
        return self.size

    @property
    def title(self) -> str:
        """As a heading."""
        sort = "puzzles" if ":" in self.size else "size"
        return f"{sort} {self.size}" + (", most confident iteration" if self.confident else "")

    def curves(self, records: Sequence[Record]) -> list[Curve]:
        """Per cent solved by iteration, a curve a seed."""
        key = "solved by the most confident" if self.confident else "solved"
        found = [record.tests.get(self.size, {}) for record in records]
        return [
            [100 * solved / test["problems"] for solved in test[key]]
            for test in found
            if key in test
        ]

    def of(self, records: Sequence[Record]) -> Cell:
        """The peak of all, and the filtered one's height at its own peak."""
        return _peaks(self, records, lambda one: one.tests.get(self.size, {}).get("problems"))


@dataclass(frozen=True)
class Accuracy:
    """Accuracy of the tested weights at the training size, after m iterations."""

    which: str
    """train or validation"""

    @property
    def needs(self) -> str:
        """The test or study."""
        return ""

    @property
    def title(self) -> str:
        """As a heading."""
        return f"{self.which} accuracy"

    def of(self, records: Sequence[Record]) -> Cell:
        """The mean, no surer than the number of problems allows."""

        def judged(record: Record) -> int:
            return int(record.figures["training"].get(self.which, {}).get("of", 0))

        return _both(records, lambda record: record.accuracy(self.which), problems=judged)


@dataclass(frozen=True)
class Recovered:
    """Peak accuracy after an intervention, and mean iterations to solution."""

    study: str

    @property
    def needs(self) -> str:
        """The test or study."""
        return self.study

    @property
    def title(self) -> str:
        """As a heading."""
        return self.study

    def curves(self, records: Sequence[Record]) -> list[Curve]:
        """Per cent right by iteration since the intervention, a curve a seed."""
        found = [record.studies.get(self.study, {}) for record in records]
        return [
            [100 * right / study["samples"] for right in study["right"]]
            for study in found
            if "right" in study
        ]

    def of(self, records: Sequence[Record]) -> Cell:
        """The peak, with the iterations in front: until a problem is right for the first time.

        The paper has a number there for networks that forget all answers again.
        """

        def judged(record: Record) -> int | None:
            found: int | None = record.studies.get(self.study, {}).get("samples")
            return found

        found = _peaks(self, records, judged)
        return replace(found, text=self._taken(records), filtered_text=self._taken(_fit(records)))

    def _taken(self, records: Sequence[Record]) -> str:
        studies = [record.studies.get(self.study, {}) for record in records]
        taken = [one.get("mean iterations to first", one.get("mean iterations")) for one in studies]
        mean = summary([steps for steps in taken if steps is not None])
        return "–" if mean is None else f"{mean.mean:.2f}"


@dataclass(frozen=True)
class Changes:
    """‖Δφ‖ by iteration, on problems or on random inputs; its last value as the number."""

    inputs: str

    @property
    def needs(self) -> str:
        """The test or study."""
        return "convergence"

    @property
    def title(self) -> str:
        """As a heading."""
        return f"last ‖Δφ‖ on {self.inputs}"

    def curves(self, records: Sequence[Record]) -> list[Curve]:
        """‖Δφ‖ by iteration, a curve a seed; a gap is not a number."""
        return [
            [float("nan") if value is None else value for value in study["change"]]
            for study in self._studies(records)
        ]

    def features(self, records: Sequence[Record]) -> list[dict[str, int]]:
        """How many problems' features are settled, cycling, moving, broken at the end, a seed."""
        return [study.get("features", {}) for study in self._studies(records)]

    def _studies(self, records: Sequence[Record]) -> list[dict[str, Any]]:
        found = [record.studies.get("convergence", {}).get(self.inputs) for record in records]
        return [study for study in found if isinstance(study, dict)]  # else a count of problems

    def of(self, records: Sequence[Record]) -> Cell:
        """The change at the end, of all; no mean where some went beyond all numbers.

        Seeds differ by powers of ten, so that the largest is nearly the mean: both ends are told.
        """
        last, fit = (
            [curve[-1] for curve in self.curves(some)] for some in (records, _fit(records))
        )
        if beyond := sum(map(math.isnan, last)):
            text = f"overflow in {beyond} of {len(last)}"
            return Cell(None, None, text=text, filtered_text=text, seeds=len(last))
        return Cell(summary(last), summary(fit), text=_ends(last), filtered_text=_ends(fit))


@dataclass(frozen=True)
class Indices:
    """Mean iterations to recover from a flipped bit, by its index; their mean as the number."""

    @property
    def needs(self) -> str:
        """The test or study."""
        return "bit-flip"

    @property
    def title(self) -> str:
        """As a heading."""
        return "iterations to recover from a flipped bit"

    def curves(self, records: Sequence[Record]) -> list[Curve]:
        """Iterations by index, a curve a seed."""
        found = [record.studies.get("bit-flip", {}) for record in records]
        return [
            [float("nan") if value is None else value for value in study[_BY_INDEX]]
            for study in found
            if _BY_INDEX in study
        ]

    def recovered(self, records: Sequence[Record]) -> Summary | None:
        """Per cent of all flips that were recovered from."""
        found = [record.studies.get("bit-flip", {}).get("recovered") for record in records]
        return summary([100 * share for share in found if share is not None])

    def of(self, records: Sequence[Record]) -> Cell:
        """The mean over all indices, of those recovered from; their share in front."""
        found = _both(records, lambda record: record.studies.get("bit-flip", {}).get(
            "mean iterations"), scale=1.0)  # fmt: skip
        share = self.recovered(records)
        if share is None:
            return found
        fit = self.recovered(_fit(records))
        return replace(
            found,
            text=f"{share.mean:.1f} % recovered",
            filtered_text="" if fit is None else f"{fit.mean:.1f} % recovered",
            seeds=share.seeds,
        )


_BY_INDEX = "mean iterations by index"


def curves_of_all(measure: Any, records: Sequence[Record]) -> list[Curve]:
    """A curve a run; of an accuracy, one that broke down solves nothing, at any iteration."""
    found: list[Curve] = measure.curves(records)
    if not found or not isinstance(measure, Peaks | Recovered):
        return found
    return [*found, *([0.0] * len(found[0]) for record in records if record.failed)]


def _peaks(
    measure: Peaks | Recovered,
    records: Sequence[Record],
    problems: Callable[[Record], int | None],
) -> Cell:
    """The peak of all, and the height of the filtered ones at their own."""

    def over(some: Sequence[Record]) -> Peak | None:
        # All seeds have the same problems: more seeds are not more of them.
        counts = [count for one in some if (count := problems(one))]
        return peak(curves_of_all(measure, some), min(counts, default=0))

    every, fit = over(records), over(_fit(records))
    if every is None:
        return Cell(None, None)
    return Cell(every.height, None if fit is None else fit.height, every.step)


def _both(
    records: Sequence[Record],
    take: Any,
    scale: float = 100.0,
    problems: Callable[[Record], int] = lambda record: 0,
) -> Cell:
    def over(some: Sequence[Record]) -> Summary | None:
        values = [take(record) for record in some]
        found = [scale * value for value in values if value is not None]
        return summary(found, min((count for one in some if (count := problems(one))), default=0))

    return Cell(over(records), over(_fit(records)))


def _ends(values: Sequence[float]) -> str:
    """From where to where they reach; "" where they do not differ."""
    return f"{min(values):.2g} to {max(values):.2g}" if len(set(values)) > 1 else ""


def _fit(records: Sequence[Record]) -> list[Record]:
    """Those that pass the paper's filter."""
    return [record for record in records if record.converged]
