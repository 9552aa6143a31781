"""Numbers of tables and curves of figures, taken from the records of a model's seeds.

    >>> Peaks("512").of(records.of("sums-recall-a1")).value.text
    '100.00 ± 0.00 % at 313'

Every measure gives a `Cell`: the mean over some seeds, and the text that tables show. Measures take
the records that have what they need and skip the others.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from iterant.experiments.records import CONFIDENT, Count, Record, largest_tests
from iterant.experiments.statistics import Value, mean_of, peak
from iterant.formatting import counted

REACHED = 0.99
"""A curve has reached its final accuracy at this share of its peak."""


@dataclass(frozen=True)
class Cell:
    """A number over seeds for a cell of a table, in per cent or in iterations."""

    value: Value | None = None
    text: str = ""
    """As tables show it, without the iteration of a peak"""
    seeds: int = 0
    """Seeds measured, also where none of them gives a number"""
    tests: str = ""
    """The tests that it is from, where they are not those of the model: ``20 problems``"""

    @classmethod
    def of(cls, mean: Value | None) -> Cell:
        """A share of problems over its seeds; None: not measured."""
        return cls() if mean is None else cls(mean, mean.percent, mean.seeds)


class Measure(ABC):
    """Takes a number for tables, and curves for figures, from the records of one model."""

    key: str
    """Of the test, study or accuracy in a record that it is taken from"""

    @property
    @abstractmethod
    def title(self) -> str:
        """What is measured, as a heading."""

    def parts(self, records: Sequence[Record]) -> list[Mapping[str, Any]]:
        """The test or study `key` of each record; {} where it is missing."""
        return [{**one.tests, **one.studies}.get(self.key, {}) for one in records]

    def curves(self, records: Sequence[Record]) -> list[list[float]]:
        """One curve per seed, for figures; a gap is NaN."""
        return []

    @abstractmethod
    def of(self, records: Sequence[Record]) -> Cell:
        """The number over all of these records."""

    def number(self, value: Value) -> str:
        """A mean with its unit: ``99.90 ± 0.10 %``."""
        return value.percent

    def difference(self, low: float, middle: float, high: float) -> str:
        """A difference of two means, with its interval clipped to ±100."""
        return f"{middle:+.2f} points ({max(low, -100.0):+.2f} to {min(high, 100.0):+.2f})"


@dataclass(frozen=True)
class Accuracy(Measure):
    """Accuracy of the tested weights at the training size, after m iterations."""

    key: str
    """train or validation"""

    @property
    def title(self) -> str:
        return f"{self.key} accuracy"

    def of(self, records: Sequence[Record]) -> Cell:
        """The mean, with an interval no narrower than the number of problems allows."""
        parts = [one.training.get(self.key) for one in records]
        known = [part for part in parts if part]
        shares = [100.0 * (part["solved"] / part["of"]) for part in known]
        return Cell.of(mean_of(shares, min((part["of"] for part in known), default=0)))


class PeakMeasure(Measure):
    """The peak of a curve of problems solved."""

    @property
    @abstractmethod
    def keys(self) -> tuple[str, str]:
        """The keys of the problems solved by iteration and of the number of problems."""

    def curves(self, records: Sequence[Record]) -> list[list[float]]:
        """Per cent solved by iteration; 0 throughout for a run that diverged."""
        solved, total = self.keys
        parts = [part for part in self.parts(records) if solved in part]
        curves = [[100 * count / part[total] for count in part[solved]] for part in parts]
        failed = [[0.0] * len(curves[0]) for one in records if one.failed] if curves else []
        return curves + failed

    def of(self, records: Sequence[Record]) -> Cell:
        # All seeds have the same test problems, so their numbers do not add up.
        totals = [part[self.keys[1]] for part in self.parts(records) if part.get(self.keys[1])]
        return Cell.of(peak(self.curves(records), min(totals, default=0)))


@dataclass(frozen=True)
class Peaks(PeakMeasure):
    """The peak of the accuracy by iteration on problems of one size."""

    key: str
    """The size"""
    confident: bool = False
    """With the most confident iteration as the exit rule"""

    @property
    def keys(self) -> tuple[str, str]:
        return (CONFIDENT if self.confident else "solved"), "problems"

    @property
    def title(self) -> str:
        kind = "puzzles" if ":" in self.key else "size"
        return f"{kind} {self.key}" + (", most confident iteration" if self.confident else "")


@dataclass(frozen=True)
class Lost(Peaks):
    """Points of accuracy from the peak of a seed's curve to its last iteration: overthinking.

    A run that diverged has no such number.
    """

    def of(self, records: Sequence[Record]) -> Cell:
        runs = [one for one in records if self.key in one.tests]
        falls = [max(curve) - curve[-1] for curve in self.curves(runs)]
        problems = (one.tests[self.key]["problems"] for one in runs)
        return Cell(mean_of(falls, min(problems, default=0)))

    def number(self, value: Value) -> str:
        return f"{value.number} points lost"


@dataclass(frozen=True)
class IterationsNeeded(Peaks):
    """log2 of the iterations until `REACHED` of a seed's peak, so that differences are ratios.

    Seeds that solve nothing are left out.
    """

    def of(self, records: Sequence[Record]) -> Cell:
        steps = [
            next(step for step, value in enumerate(curve, 1) if value >= REACHED * max(curve))
            for curve in self.curves(records)
            if max(curve) > 0
        ]
        return Cell(mean_of([math.log2(step) for step in steps]))

    def number(self, value: Value) -> str:
        return f"{2**value.mean:.0f} iterations"

    def difference(self, low: float, middle: float, high: float) -> str:
        return f"{2**middle:.2f} times ({2**low:.2f} to {2**high:.2f})"


@dataclass(frozen=True)
class Solved(Measure):
    """Problems too large for a curve: per cent solved after some iterations and twice as many."""

    key: str
    """The size"""

    @property
    def title(self) -> str:
        return f"size {self.key}"

    def counts(self, records: Sequence[Record]) -> list[Count]:
        """All tests on problems of this size."""
        return [count for one in records for count in one.counts if count.name == self.key]

    def after(self, steps: int, records: Sequence[Record]) -> Value | None:
        """The mean after these iterations."""
        tests = largest_tests(one for one in self.counts(records) if steps in one.solved)
        shares = [100 * one.solved[steps] / one.problems for one in tests]
        return mean_of(shares, min((one.problems for one in tests), default=0))

    def of(self, records: Sequence[Record]) -> Cell:
        """The mean after the fewest iterations; the text has it after all numbers of them."""
        counts = self.counts(records)
        if not counts:
            return Cell()
        all_steps = sorted({steps for one in counts for steps in one.solved})
        values = {steps: value for steps in all_steps if (value := self.after(steps, records))}
        texts = (f"{value.percent} after {steps:,}" for steps, value in values.items())
        problems = {counted(one.problems, "problem") for one in counts}
        precisions = {f"tested in {name}" for one in counts if (name := one.precision) != "fp32"}
        tests = ", ".join([*sorted(problems), *sorted(precisions)])
        seeds = {one.seed for one in counts}
        fewest = all_steps[0]
        return Cell(replace(values[fewest], step=fewest), ", ".join(texts), len(seeds), tests)

    def number(self, value: Value) -> str:
        return f"{value.percent} after {value.step:,} iterations"


@dataclass(frozen=True)
class Recovered(PeakMeasure):
    """Peak accuracy after an intervention, with the mean iterations to the first right answer.

    Later wrong answers do not count: the paper gives such means for networks whose answers are all
    wrong at the end.
    """

    key: str
    """The study"""
    keys = ("right", "samples")

    @property
    def title(self) -> str:
        return self.key

    def of(self, records: Sequence[Record]) -> Cell:
        cell = super().of(records)
        steps = [part.get("mean iterations to first") for part in self.parts(records)]
        mean = mean_of([step for step in steps if step is not None])
        first = "–" if mean is None else f"{mean.mean:.2f}"
        return replace(cell, text=cell.text and f"{first} ({cell.text})")


@dataclass(frozen=True)
class Changes(Measure):
    """‖Δφ‖ by iteration, on problems or on random inputs; its last value as the number."""

    inputs: str
    key = "convergence"

    @property
    def title(self) -> str:
        return f"last ‖Δφ‖ on {self.inputs}"

    def curves(self, records: Sequence[Record]) -> list[list[float]]:
        studies = [part.get(self.inputs) for part in self.parts(records)]
        # The key "problems" may also hold a number of problems.
        return [_with_gaps(study["change"]) for study in studies if isinstance(study, dict)]

    def of(self, records: Sequence[Record]) -> Cell:
        """The change at the end; no mean where some seeds overflow.

        Seeds differ by powers of ten and the mean is close to the largest, so the text has the
        lowest and the highest too.
        """
        last = [curve[-1] for curve in self.curves(records)]
        if overflows := sum(map(math.isnan, last)):
            return Cell(None, f"– (overflow in {overflows} of {len(last)})", len(last))
        mean = mean_of(last)
        if mean is None:
            return Cell()
        ends = f" ({min(last):.2g} to {max(last):.2g})" if len(set(last)) > 1 else ""
        return Cell(mean, f"{mean.mean:.2g}{ends}", mean.seeds)


@dataclass(frozen=True)
class RecoveryByIndex(Measure):
    """Mean iterations to recover from a flipped bit, by its index; their mean as the number."""

    key = "bit-flip"
    title = "iterations to recover from a flipped bit"

    def curves(self, records: Sequence[Record]) -> list[list[float]]:
        key = "mean iterations by index"
        return [_with_gaps(part[key]) for part in self.parts(records) if key in part]

    def mean(self, records: Sequence[Record], key: str) -> Value | None:
        """The mean of a number over the seeds that have it."""
        values = [part.get(key) for part in self.parts(records)]
        return mean_of([value for value in values if value is not None])

    def of(self, records: Sequence[Record]) -> Cell:
        """Mean iterations over the flips that were recovered from, and the share of these."""
        mean, share = self.mean(records, "mean iterations"), self.mean(records, "recovered")
        if share is None:
            return Cell()
        number = "–" if mean is None else mean.number
        return Cell(mean, f"{number} ({100 * share.mean:.1f} % recovered)", (mean or share).seeds)


def _with_gaps(values: Sequence[float | None]) -> list[float]:
    return [float("nan") if value is None else value for value in values]
