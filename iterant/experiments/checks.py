"""How a verdict on a claim is reached: numbers of seeds, and rules over them.

    >>> check = Higher(Peak("512"), "sums-recall-a1", "sums-n0", effect=6.85)
    >>> check(Evidence(records, counts)).verdict
    'not seen'

A `Quantity` is a number of every seed of a model; a `Check` turns quantities into a verdict. There
are five kinds (`Higher`, `Same`, `Bound`, `EverySeed`, `Solved`), and `All` joins several.

Intervals are 95 % over seeds (see statistics.py). That of a difference of two means joins the
intervals of both: its lower end lies below the difference by the root of the sum of squares of
what the first reaches down and the second reaches up, and the other way round for its upper end.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from iterant.experiments.counts import Counts
from iterant.experiments.measures import Peaks, Recovered
from iterant.experiments.models import MODELS
from iterant.experiments.records import Record, Records
from iterant.experiments.statistics import LEAST_SEEDS, Summary, Value, summary

REPRODUCED = "reproduced"
NOT_SEEN = "not seen"
CONTRARY = "contrary"
TOO_FEW = "too few seeds"
NOT_RUN = "not run"

MARGIN = 5.0
"""Points of accuracy that matter where the paper gives a picture and no number."""

REACHED = 0.99
"""A curve has reached its final accuracy at this share of its peak."""


@dataclass(frozen=True)
class Evidence:
    """What a verdict is computed from."""

    records: Records
    counts: Counts = field(default_factory=Counts)


@dataclass(frozen=True)
class Finding:
    """What was found about a claim."""

    verdict: str
    ours: tuple[str, ...] = ()
    """Our numbers, a line a comparison"""


class Check(Protocol):
    """How a verdict is reached."""

    def __call__(self, evidence: Evidence) -> Finding:
        """The verdict, with the numbers it rests on."""


class Quantity(Protocol):
    """A number of every seed of a model."""

    @property
    def heading(self) -> str:
        """What stands before the numbers."""

    def of(self, evidence: Evidence, model: str) -> Summary | None:
        """Its mean over all finished seeds; None: not measured."""

    def text(self, value: Summary) -> str:
        """As the table has it."""

    def difference(self, low: float, middle: float, high: float) -> str:
        """A difference of two means with its interval."""


@dataclass(frozen=True)
class _Percent:
    """Accuracies on problems of one size."""

    size: str

    @property
    def heading(self) -> str:
        """What stands before the numbers."""
        return ""

    def text(self, value: Summary) -> str:
        """``99.90 ± 0.10 %``."""
        return Value(value.mean, value.error).told

    def difference(self, low: float, middle: float, high: float) -> str:
        """In points, within what shares can differ by."""
        low, high = max(low, -100.0), min(high, 100.0)
        return f"{middle:+.2f} points ({low:+.2f} to {high:+.2f})"


@dataclass(frozen=True)
class Peak(_Percent):
    """The peak of the accuracy averaged over seeds, as in the paper's tables.

    Plain DT is shown by its most confident iteration there, and so it is here.
    """

    def of(self, evidence: Evidence, model: str) -> Summary | None:
        """In per cent."""
        measure = Peaks(self.size, MODELS[model].confident)
        return measure.of(evidence.records.of(model)).every


@dataclass(frozen=True)
class PeakAfter(_Percent):
    """The peak after an intervention on mazes of 13×13 or strings of 48 bits."""

    study: str = ""

    def of(self, evidence: Evidence, model: str) -> Summary | None:
        """In per cent."""
        return Recovered(self.study).of(evidence.records.of(model)).every

    @property
    def heading(self) -> str:
        """What was done."""
        return f"{self.study}: "


@dataclass(frozen=True)
class Fall(_Percent):
    """From the peak of a seed's curve to its last iteration: overthinking."""

    def of(self, evidence: Evidence, model: str) -> Summary | None:
        """In points of accuracy."""
        records = evidence.records.of(model)
        tests = [one.tests[self.size]["problems"] for one in records if self.size in one.tests]
        falls = [max(curve) - curve[-1] for curve in Peaks(self.size).curves(records)]
        return summary(falls, min(tests, default=0))

    def text(self, value: Summary) -> str:
        """``55.10 ± 3.00 points lost``."""
        error = "" if value.error is None else f" ± {value.error:.2f}"
        return f"{value.mean:.2f}{error} points lost"


@dataclass(frozen=True)
class IterationsNeeded(_Percent):
    """Iterations until `REACHED` of a seed's peak, as binary logarithms: the claim is a ratio."""

    def of(self, evidence: Evidence, model: str) -> Summary | None:
        """Of the seeds that solve anything."""
        curves = Peaks(self.size).curves(evidence.records.of(model))
        steps = [
            next(step for step, value in enumerate(curve, 1) if value >= REACHED * max(curve))
            for curve in curves
            if max(curve) > 0
        ]
        return summary([math.log2(step) for step in steps])

    def text(self, value: Summary) -> str:
        """The geometric mean."""
        return f"{2**value.mean:.0f} iterations"

    def difference(self, low: float, middle: float, high: float) -> str:
        """A ratio."""
        return f"{2**middle:.2f} times ({2**low:.2f} to {2**high:.2f})"


@dataclass(frozen=True)
class SolvedAfter(_Percent):
    """Large problems judged once after some iterations, without a curve."""

    iterations: int = 0

    def of(self, evidence: Evidence, model: str) -> Summary | None:
        """Per cent by seed; of several tests of one, that of the most problems."""
        shares: dict[int | None, tuple[int, float]] = {}
        for one in evidence.counts.of(model, self.size):
            looks = {one.iterations: one.solved, 2 * one.iterations: one.twice}
            if self.iterations in looks:
                share = 100 * looks[self.iterations] / one.problems
                shares[one.seed] = max(shares.get(one.seed, (0, 0.0)), (one.problems, share))
        fewest = min((problems for problems, _ in shares.values()), default=0)
        return summary([share for _, share in shares.values()], fewest)

    def text(self, value: Summary) -> str:
        """With the iterations."""
        return f"{super().text(value)} after {self.iterations:,} iterations"


@dataclass(frozen=True)
class Higher:
    """One model is above another.

    Reproduced: the interval of the difference lies above 0, and the difference is at least
    ``least``. Contrary: it lies below 0. Too few seeds: it reaches further than ``effect`` from
    its middle, so that even the paper's effect could not have been told from none.
    """

    quantity: Quantity
    more: str
    less: str
    effect: float = MARGIN
    """What the paper reports; `MARGIN` where it gives a picture"""
    least: float = 0.0
    names: tuple[str, str] | None = None
    """What the two are called instead of their labels"""

    def __call__(self, evidence: Evidence) -> Finding:
        """See the class."""
        models = (self.more, self.less)
        return _compared(self.quantity, models, self.names, evidence, self._verdict)

    def _verdict(self, low: float, middle: float, high: float) -> str:
        if low > 0:
            return REPRODUCED if middle >= self.least else NOT_SEEN
        if high < 0:
            return CONTRARY
        return TOO_FEW if max(middle - low, high - middle) > self.effect else NOT_SEEN


@dataclass(frozen=True)
class Same:
    """Two models are equal within a margin.

    Reproduced: the interval of the difference lies within the margin; contrary: all of it lies
    beyond; otherwise there are too few seeds.
    """

    quantity: Quantity
    one: str
    other: str
    margin: float = MARGIN
    names: tuple[str, str] | None = None

    def __call__(self, evidence: Evidence) -> Finding:
        """See the class."""
        models = (self.one, self.other)
        return _compared(self.quantity, models, self.names, evidence, self._verdict)

    def _verdict(self, low: float, middle: float, high: float) -> str:
        if -self.margin <= low and high <= self.margin:
            return REPRODUCED
        return CONTRARY if low > self.margin or high < -self.margin else TOO_FEW


@dataclass(frozen=True)
class Bound:
    """A mean is at least, or at most, a number.

    Reproduced: so is its whole interval; contrary: none of it is; otherwise there are too few
    seeds.
    """

    quantity: Quantity
    model: str
    at_most: float = math.inf
    at_least: float = -math.inf
    shown: bool = True
    """Whether its number is shown; another check may have it already"""

    def __call__(self, evidence: Evidence) -> Finding:
        """See the class."""
        value = self.quantity.of(evidence, self.model)
        if value is None:
            return Finding(NOT_RUN)
        line = f"{label(self.model)} {self.quantity.text(value)} ({_seeds(value.seeds)})"
        ours = (line,) if self.shown else ()
        if value.seeds < LEAST_SEEDS or value.interval is None:
            return Finding(TOO_FEW, ours)
        low, high = value.interval
        if self.at_least <= max(low, 0.0) and high <= self.at_most:
            return Finding(REPRODUCED, ours)
        beyond = high < self.at_least or low > self.at_most
        return Finding(CONTRARY if beyond else TOO_FEW, ours)


@dataclass(frozen=True)
class EverySeed:
    """Every seed of some models has a property.

    Reproduced: all have it; contrary: none has; not seen: some have; each model needs
    `LEAST_SEEDS`.
    """

    models: tuple[str, ...]
    has: Callable[[Record], bool | None]
    """None: not measured"""
    what: str

    def __call__(self, evidence: Evidence) -> Finding:
        """See the class."""
        by_model = {
            model: [found for one in evidence.records.of(model)
                    if (found := self.has(one)) is not None]
            for model in self.models
        }  # fmt: skip
        if not any(by_model.values()):
            return Finding(NOT_RUN)
        ours = tuple(
            f"{label(model)}: {sum(found)} of {_seeds(len(found))} {self.what}"
            for model, found in by_model.items()
        )
        if min(map(len, by_model.values())) < LEAST_SEEDS:
            return Finding(TOO_FEW, ours)
        every = [found for some in by_model.values() for found in some]
        verdict = REPRODUCED if all(every) else NOT_SEEN if any(every) else CONTRARY
        return Finding(verdict, ours)


@dataclass(frozen=True)
class Solved:
    """A problem of that size is solved at all: one network is enough."""

    model: str
    size: str

    def __call__(self, evidence: Evidence) -> Finding:
        """See the class."""
        counts = evidence.counts.of(self.model, self.size)
        looks = [(one.solved, one.problems, one.iterations) for one in counts]
        looks += [(one.twice, one.problems, 2 * one.iterations) for one in counts]
        if not looks:
            return Finding(NOT_RUN)
        solved, problems, iterations = max(looks, key=lambda look: (look[0] / look[1], -look[2]))
        ours = f"{label(self.model)}: {solved} of {problems} after {iterations:,} iterations"
        return Finding(REPRODUCED if solved else NOT_SEEN, (ours,))


@dataclass(frozen=True)
class All:
    """Several checks: contrary where one is, reproduced where all are.

    Otherwise what holds it back: not run, too few seeds, not seen, in this order.
    """

    checks: tuple[Check, ...]

    def __call__(self, evidence: Evidence) -> Finding:
        """See the class."""
        findings = [check(evidence) for check in self.checks]
        order = (CONTRARY, NOT_RUN, TOO_FEW, NOT_SEEN, REPRODUCED)
        verdict = min((one.verdict for one in findings), key=order.index)
        return Finding(verdict, tuple(line for one in findings for line in one.ours))


def _compared(
    quantity: Quantity,
    models: tuple[str, str],
    names: tuple[str, str] | None,
    evidence: Evidence,
    judge: Callable[[float, float, float], str],
) -> Finding:
    """Two models side by side, and what the difference of their means says."""
    first, second = (quantity.of(evidence, model) for model in models)
    numbers = quantity.heading + ", ".join(
        f"{name} {'not run' if value is None else quantity.text(value)}"
        for name, value in zip(names or map(label, models), (first, second), strict=True)
    )
    if first is None or second is None:
        return Finding(NOT_RUN, () if first is second is None else (numbers,))
    equal = first.seeds == second.seeds
    seeds = _seeds(first.seeds) if equal else f"{first.seeds} and {_seeds(second.seeds)}"
    if min(first.seeds, second.seeds) < LEAST_SEEDS or not (first.interval and second.interval):
        return Finding(TOO_FEW, (f"{numbers} ({seeds})",))
    (low_1, high_1), (low_2, high_2) = first.interval, second.interval
    middle = first.mean - second.mean
    low = middle - math.hypot(first.mean - low_1, high_2 - second.mean)
    high = middle + math.hypot(high_1 - first.mean, second.mean - low_2)
    line = f"{numbers}: {quantity.difference(low, middle, high)}; {seeds}"
    return Finding(judge(low, middle, high), (line,))


def _seeds(count: int) -> str:
    return "1 seed" if count == 1 else f"{count} seeds"


def label(key: str) -> str:
    """``DT-Recall α = 1``; what varies in a grid says enough alone."""
    model = MODELS[key]
    plain = model.alpha is None or model.label not in ("DT", "DT-Recall")
    return model.label if plain else f"{model.label} α = {model.alpha:g}"
