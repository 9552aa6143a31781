"""The paper's claims as data, with a verdict on each that is computed from the records.

    >>> CLAIMS["n-zero"].check(records).verdict
    'not seen'

A claim is the sentence, where the paper makes it, the numbers it gives, the tables of RESULTS.md
that have ours, and a check. None of our numbers is written here.

A `Quantity` is a number of every seed of a model; a `Check` turns quantities into a verdict. There
are five kinds (`Higher`, `Same`, `Bound`, `EverySeed`, `Solved`), and `All` joins several.

Intervals are 95 % over seeds (see statistics.py). The interval of a difference of two means joins
both: its lower end is below the difference by the root of the sum of squares of how far the first
reaches down and the second reaches up, and the other way round for its upper end.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from iterant.experiments.measures import Changes, Indices, Peaks, Recovered
from iterant.experiments.models import MODELS
from iterant.experiments.paper_numbers import INTERVENTIONS, PEAKS
from iterant.experiments.records import Record, Records
from iterant.experiments.statistics import LEAST_SEEDS, Summary, Value, summary
from iterant.formatting import counted

REPRODUCED = "reproduced"
NOT_SEEN = "not seen"
CONTRARY = "contrary"
TOO_FEW = "too few seeds"
NOT_RUN = "not run"

MARGIN = 5.0
"""Points of accuracy that matter where the paper gives a picture and no number."""

REACHED = 0.99
"""A curve has reached its final accuracy at this share of its peak."""

AT_REST = 0.01
"""Features converge where the last change is at most this share of the first."""

LINEAR = 0.9
"""The least r² of a straight line."""


@dataclass(frozen=True)
class Verdict:
    """A verdict on a claim."""

    verdict: str
    ours: tuple[str, ...] = ()
    """Our numbers, one line per comparison"""


Check = Callable[[Records], Verdict]
"""How a verdict is reached."""


@dataclass(frozen=True)
class Quantity(ABC):
    """A number of every seed of a model, by default an accuracy on problems of one size."""

    size: str
    heading: ClassVar[str] = ""
    """Text before the numbers"""

    @abstractmethod
    def of(self, records: Records, model: str) -> Summary | None:
        """Its mean over all finished seeds; None: not measured."""

    def text(self, value: Summary) -> str:
        """As the table has it: ``99.90 ± 0.10 %``."""
        return Value(value.mean, value.error).text

    def difference(self, low: float, middle: float, high: float) -> str:
        """A difference of two means with its interval; shares differ by at most 100."""
        return f"{middle:+.2f} points ({max(low, -100.0):+.2f} to {min(high, 100.0):+.2f})"


class Peak(Quantity):
    """The peak of the accuracy averaged over seeds, as in the paper's tables.

    Plain DT is shown by its most confident iteration there, and so it is here.
    """

    def of(self, records: Records, model: str) -> Summary | None:
        """In per cent."""
        return Peaks(self.size, MODELS[model].confident).of(records.of(model)).every


@dataclass(frozen=True)
class PeakAfter(Quantity):
    """The peak after an intervention on mazes of 13×13 or strings of 48 bits."""

    study: str = ""

    def of(self, records: Records, model: str) -> Summary | None:
        """In per cent."""
        return Recovered(self.study).of(records.of(model)).every

    @property
    def heading(self) -> str:  # type: ignore[override]
        """The intervention."""
        return f"{self.study}: "


class Fall(Quantity):
    """From the peak of a seed's curve to its last iteration: overthinking."""

    def of(self, records: Records, model: str) -> Summary | None:
        """In points of accuracy."""
        runs = records.of(model)
        tests = [one.tests[self.size]["problems"] for one in runs if self.size in one.tests]
        falls = [max(curve) - curve[-1] for curve in Peaks(self.size).curves(runs)]
        return summary(falls, min(tests, default=0))

    def text(self, value: Summary) -> str:
        """``55.10 ± 3.00 points lost``."""
        error = "" if value.error is None else f" ± {value.error:.2f}"
        return f"{value.mean:.2f}{error} points lost"


class IterationsNeeded(Quantity):
    """Iterations until `REACHED` of a seed's peak, as binary logarithms: the claim is a ratio."""

    def of(self, records: Records, model: str) -> Summary | None:
        """Of the seeds that solve anything."""
        steps = [
            next(step for step, value in enumerate(curve, 1) if value >= REACHED * max(curve))
            for curve in Peaks(self.size).curves(records.of(model))
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
class SolvedAfter(Quantity):
    """Large problems tested after some iterations, without a curve."""

    iterations: int = 0

    def of(self, records: Records, model: str) -> Summary | None:
        """Per cent by seed; of several tests of a seed, the one with the most problems."""
        shares: dict[int, tuple[int, float]] = {}
        for one in records.counts(model, self.size):
            if self.iterations in one.solved:
                share = 100 * one.solved[self.iterations] / one.problems
                shares[one.seed] = max(shares.get(one.seed, (0, 0.0)), (one.problems, share))
        fewest = min((problems for problems, _ in shares.values()), default=0)
        return summary([share for _, share in shares.values()], fewest)

    def text(self, value: Summary) -> str:
        """With the iterations."""
        return f"{super().text(value)} after {self.iterations:,} iterations"


@dataclass(frozen=True)
class Comparison(ABC):
    """Two models, compared by the interval of the difference of their means."""

    quantity: Quantity
    one: str
    other: str
    effect: float = MARGIN
    """What the paper reports; `MARGIN` where it gives a picture"""
    least: float = 0.0
    names: tuple[str, str] | None = None
    """What the two are called instead of their labels"""

    @abstractmethod
    def decide(self, low: float, middle: float, high: float) -> str:
        """The verdict on a difference."""

    def __call__(self, records: Records) -> Verdict:
        """Both numbers, and the verdict on their difference."""
        quantity, models = self.quantity, (self.one, self.other)
        first, second = (quantity.of(records, model) for model in models)
        numbers = quantity.heading + ", ".join(
            f"{name} {'not run' if value is None else quantity.text(value)}"
            for name, value in zip(self.names or map(label, models), (first, second), strict=True)
        )
        if first is None or second is None:
            return Verdict(NOT_RUN, () if first is second is None else (numbers,))
        seeds = counted(second.seeds, "seed")
        seeds = seeds if first.seeds == second.seeds else f"{first.seeds} and {seeds}"
        if min(first.seeds, second.seeds) < LEAST_SEEDS or not (first.interval and second.interval):
            return Verdict(TOO_FEW, (f"{numbers} ({seeds})",))
        (low_1, high_1), (low_2, high_2) = first.interval, second.interval
        middle = first.mean - second.mean
        low = middle - math.hypot(first.mean - low_1, high_2 - second.mean)
        high = middle + math.hypot(high_1 - first.mean, second.mean - low_2)
        line = f"{numbers}: {quantity.difference(low, middle, high)}; {seeds}"
        return Verdict(self.decide(low, middle, high), (line,))


class Higher(Comparison):
    """The first model is above the other.

    Reproduced: the interval of the difference is above 0, and the difference is at least
    ``least``. Contrary: the interval is below 0. Too few seeds: it reaches further than ``effect``
    from its middle, so that even the paper's effect could not have been told from none.
    """

    def decide(self, low: float, middle: float, high: float) -> str:
        """See the class."""
        if low > 0:
            return REPRODUCED if middle >= self.least else NOT_SEEN
        if high < 0:
            return CONTRARY
        return TOO_FEW if max(middle - low, high - middle) > self.effect else NOT_SEEN


class Same(Comparison):
    """Two models are equal within a margin, ``effect``.

    Reproduced: the interval of the difference is within the margin; contrary: all of it is
    beyond; otherwise there are too few seeds.
    """

    def decide(self, low: float, middle: float, high: float) -> str:
        """See the class."""
        if -self.effect <= low and high <= self.effect:
            return REPRODUCED
        return CONTRARY if low > self.effect or high < -self.effect else TOO_FEW


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
    """Whether its number is shown; another check may show it already"""

    def __call__(self, records: Records) -> Verdict:
        """See the class."""
        value = self.quantity.of(records, self.model)
        if value is None:
            return Verdict(NOT_RUN)
        line = f"{label(self.model)} {self.quantity.text(value)} ({counted(value.seeds, 'seed')})"
        ours = (line,) if self.shown else ()
        if value.seeds < LEAST_SEEDS or value.interval is None:
            return Verdict(TOO_FEW, ours)
        low, high = value.interval
        if self.at_least <= max(low, 0.0) and high <= self.at_most:
            return Verdict(REPRODUCED, ours)
        beyond = high < self.at_least or low > self.at_most
        return Verdict(CONTRARY if beyond else TOO_FEW, ours)


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

    def __call__(self, records: Records) -> Verdict:
        """See the class."""
        by_model = {
            model: [has for one in records.of(model) if (has := self.has(one)) is not None]
            for model in self.models
        }
        if not any(by_model.values()):
            return Verdict(NOT_RUN)
        ours = tuple(
            f"{label(model)}: {sum(seeds)} of {counted(len(seeds), 'seed')} {self.what}"
            for model, seeds in by_model.items()
        )
        if min(map(len, by_model.values())) < LEAST_SEEDS:
            return Verdict(TOO_FEW, ours)
        every = [has for seeds in by_model.values() for has in seeds]
        return Verdict(REPRODUCED if all(every) else NOT_SEEN if any(every) else CONTRARY, ours)


@dataclass(frozen=True)
class Solved:
    """A problem of that size is solved at all: one network is enough."""

    model: str
    size: str

    def __call__(self, records: Records) -> Verdict:
        """See the class."""
        looks = [
            (solved, one.problems, steps)
            for one in records.counts(self.model, self.size)
            for steps, solved in one.solved.items()
        ]
        if not looks:
            return Verdict(NOT_RUN)
        solved, problems, steps = max(looks, key=lambda look: (look[0] / look[1], -look[2]))
        ours = f"{label(self.model)}: {solved} of {problems} after {steps:,} iterations"
        return Verdict(REPRODUCED if solved else NOT_SEEN, (ours,))


@dataclass(frozen=True)
class All:
    """Several checks: contrary where one is, reproduced where all are.

    Otherwise the reason: not run, too few seeds, not seen, in this order.
    """

    checks: tuple[Check, ...]

    def __call__(self, records: Records) -> Verdict:
        """See the class."""
        verdicts = [check(records) for check in self.checks]
        order = (CONTRARY, NOT_RUN, TOO_FEW, NOT_SEEN, REPRODUCED)
        worst = min((one.verdict for one in verdicts), key=order.index)
        return Verdict(worst, tuple(line for one in verdicts for line in one.ours))


def label(key: str) -> str:
    """What a model is called."""
    return MODELS[key].title


@dataclass(frozen=True)
class Claim:
    """What the paper says, and how it is checked."""

    text: str
    place: str
    theirs: str
    rows: tuple[str, ...]
    """Names of experiments whose tables have our numbers"""
    check: Check


def _linear(record: Record) -> bool | None:
    """Whether recovery from a flipped bit falls in a straight line with its index."""
    curves = Indices().curves([record])
    if not curves:
        return None
    points = [(float(x), y) for x, y in enumerate(curves[0]) if not math.isnan(y)]
    if len(points) < len(curves[0]):
        return False  # at some index no flip was recovered from
    n = len(points)
    mean_x, mean_y = (math.fsum(part) / n for part in zip(*points, strict=True))
    xx = math.fsum((x - mean_x) ** 2 for x, _ in points)
    yy = math.fsum((y - mean_y) ** 2 for _, y in points)
    xy = math.fsum((x - mean_x) * (y - mean_y) for x, y in points)
    return xy < 0 and xx > 0 and yy > 0 and xy * xy / (xx * yy) >= LINEAR


def _converges(record: Record) -> bool | None:
    """Whether ‖Δφ‖ on test problems ends at a hundredth of where it began."""
    curves = Changes("problems").curves([record])
    return curves[0][-1] <= AT_REST * curves[0][0] if curves else None


def _grows(record: Record) -> bool | None:
    """Whether ‖Δφ‖ on test problems ends above where it began; overflow counts."""
    curves = Changes("problems").curves([record])
    return not curves[0][-1] <= curves[0][0] if curves else None


_STUDIES = ("noise", "zeros", "swap")


def _paper(size: str, *models: str) -> str:
    """The paper's peaks."""
    return ", ".join(f"{label(model)} {PEAKS[size][model].text}" for model in models)


def _effect(size: str, more: str, less: str) -> float:
    """By how much the paper's means differ."""
    return PEAKS[size][more].mean - PEAKS[size][less].mean


def _higher(size: str, more: str, less: str) -> Higher:
    """A difference of peaks for which the paper gives numbers."""
    return Higher(Peak(size), more, less, _effect(size, more, less))


def _keeps(size: str, recall: str, *without: str) -> All:
    """One model keeps its accuracy to the last iteration; others lose more of theirs."""
    falls = (Higher(Fall(size), other, recall) for other in without)
    return All((*falls, Bound(Fall(size), recall, at_most=MARGIN, shown=False)))


def _recovers(recall: str, without: str) -> All:
    """After each intervention of Table 7, recall is above the same network without it."""
    known, lost = INTERVENTIONS[recall], INTERVENTIONS[without]
    return All(
        tuple(
            Higher(PeakAfter("13", study), recall, without, known[study][1] - lost[study][1])
            for study in _STUDIES
        )
    )


_RESTING = f"end at {100 * AT_REST:g} % of the first ‖Δφ‖ or less"
_GROWING = "end above the first ‖Δφ‖"
_LARGE = PEAKS["201"]["mazes-recall-a0.01"]
_RATIO = (PEAKS["512"]["sums-recall-a0"].step or 0) / (PEAKS["512"]["sums-recall-a1"].step or 1)
_PUZZLES, _BEST = "600000:700000", "chess-recall-a0.5"
_FALLS = "a picture: without recall the curves fall, with recall they stay"
_RESTS = "a picture: with recall ‖Δφ‖ falls, without it explodes"

CLAIMS: dict[str, Claim] = {
    "overthinking-sums": Claim(
        "Recall stops overthinking: 48 bits", "Section 5, Figure 6", _FALLS,
        ("fig-easy-problems",),
        All((_keeps("48", "sums-recall-a0", "sums-dt-a0"),
             _keeps("48", "sums-recall-a1", "sums-dt-a1"))),
    ),
    "overthinking-mazes": Claim(
        "Recall stops overthinking: mazes of 13×13", "Section 5, Figure 6", _FALLS,
        ("fig-easy-problems",),
        All((_keeps("13", "mazes-recall-a0", "mazes-dt-a0"),
             _keeps("13", "mazes-recall-a0.01", "mazes-dt-a0.01"))),
    ),
    "recall-sums": Claim(
        "512 bits need recall", "Section 4, Figure 3, Table 3",
        _paper("512", "sums-recall-a0", "sums-dt-a0", "sums-recall-a1", "sums-dt-a1"),
        ("fig-arch-loss-ablation", "table-prefix-peaks"),
        All((_higher("512", "sums-recall-a0", "sums-dt-a0"),
             _higher("512", "sums-recall-a1", "sums-dt-a1"))),
    ),
    "recall-mazes": Claim(
        "Mazes of 59×59 need recall", "Section 4, Figure 4, Table 4",
        _paper("59", "mazes-recall-a0", "mazes-dt-a0", "mazes-recall-a0.01", "mazes-dt-a0.01"),
        ("fig-mazes-ablation", "table-maze-peaks"),
        All((_higher("59", "mazes-recall-a0", "mazes-dt-a0"),
             _higher("59", "mazes-recall-a0.01", "mazes-dt-a0.01"))),
    ),
    "feed-forward": Claim(
        "Feed-forward networks do not extrapolate to 512 bits", "Section 4, Table 3",
        _paper("512", "sums-ff"), ("table-prefix-peaks",),
        Bound(Peak("512"), "sums-ff", at_most=MARGIN),
    ),
    "same-accuracy": Claim(
        "Recall reaches the same accuracy on 512 bits without the progressive loss",
        "Section 4, Figure 3", _paper("512", "sums-recall-a0", "sums-recall-a1"),
        ("fig-arch-loss-ablation",), Same(Peak("512"), "sums-recall-a0", "sums-recall-a1"),
    ),
    "twice-the-iterations": Claim(
        "… but needs about twice the iterations", "Section 4, Figure 3",
        f"peaks at {PEAKS['512']['sums-recall-a0'].step} and "
        f"{PEAKS['512']['sums-recall-a1'].step}: {_RATIO:.2f} times",
        ("fig-arch-loss-ablation",),
        Higher(IterationsNeeded("512"), "sums-recall-a0", "sums-recall-a1", math.log2(_RATIO),
               least=math.log2(1.5)),
    ),
    "n-zero": Claim(
        "n = 0 in the progressive loss is worse than random n", "Section 4, appendix A.4",
        _paper("512", "sums-recall-a1", "sums-n0"), ("compare-n-zero",),
        _higher("512", "sums-recall-a1", "sums-n0"),
    ),
    "run-time-sums": Claim(
        "The run-time-weighted loss is worse: 512 bits", "Appendix A.3",
        _paper("512", "sums-recall-a1", "sums-run-time"), ("compare-run-time-weighted",),
        _higher("512", "sums-recall-a1", "sums-run-time"),
    ),
    "run-time-mazes": Claim(
        "The run-time-weighted loss is worse: mazes of 59×59", "Appendix A.3",
        _paper("59", "mazes-recall-a0.01", "mazes-run-time"), ("compare-run-time-weighted",),
        _higher("59", "mazes-recall-a0.01", "mazes-run-time"),
    ),
    "width": Claim(
        "Accuracy on 512 bits rises with width", "Appendix A.4, Figure 8", "a picture",
        ("fig-width",), Higher(Peak("512"), "sums-recall-a1", "sums-recall-a1-w50",
                              names=("width 400", "width 50")),
    ),
    "depth": Claim(
        "Accuracy on 512 bits rises with m up to 30", "Appendix A.4, Figure 8", "a picture",
        ("fig-depth",), Higher(Peak("512"), "sums-recall-a1", "sums-recall-a1-m10",
                              names=("m = 30", "m = 10")),
    ),
    "depth-plateau": Claim(
        "… and no further beyond 30", "Appendix A.4, Figure 8", "a picture",
        ("fig-depth",), Same(Peak("512"), "sums-recall-a1-m40", "sums-recall-a1",
                            names=("m = 40", "m = 30")),
    ),
    "progressive-mazes": Claim(
        "The progressive loss helps on mazes of 59×59", "Section 4, Figure 4, Table 4",
        _paper("59", "mazes-recall-a0.01", "mazes-recall-a0"),
        ("fig-mazes-ablation", "table-maze-peaks"),
        _higher("59", "mazes-recall-a0.01", "mazes-recall-a0"),
    ),
    "bit-flip": Claim(
        "Recovery from a flipped bit falls linearly with its index", "Section 5.2, Figure 7",
        "a picture: a falling line", ("fig-overthinking",),
        EverySeed(("sums-recall-a0", "sums-recall-a1"), _linear,
                  f"on a falling line (r² ≥ {LINEAR:g})"),
    ),
    "interventions": Claim(
        "With recall, mazes recover from noise, zeros and swapped features", "Section 5, Table 7",
        "; ".join(
            f"{label(model)} {', '.join(f'{known[study][1]:g}' for study in _STUDIES)} %"
            for model, known in INTERVENTIONS.items()
        ),
        ("table-interventions",),
        All((_recovers("mazes-recall-a0", "mazes-dt-a0"),
             _recovers("mazes-recall-a0.01", "mazes-dt-a0.01"))),
    ),
    "fixed-point-mazes": Claim(
        "With recall, features come to a fixed point: 13×13", "Section 5.3, Figure 7", _RESTS,
        ("fig-overthinking",),
        All((EverySeed(("mazes-recall-a0", "mazes-recall-a0.01"), _converges, _RESTING),
             EverySeed(("mazes-dt-a0", "mazes-dt-a0.01"), _grows, _GROWING))),
    ),
    "fixed-point-sums": Claim(
        "With recall, features come to a fixed point: 48 bits", "Appendix A.8, Figure 17", _RESTS,
        ("fig-prefix-delta",),
        All((EverySeed(("sums-recall-a0", "sums-recall-a1"), _converges, _RESTING),
             EverySeed(("sums-dt-a0", "sums-dt-a1"), _grows, _GROWING))),
    ),
    "mazes-201": Claim(
        "74 % of mazes of 201×201 are solved", "Section 4",
        f"{_LARGE.mean:g} of {_LARGE.problems} after {_LARGE.step:,} iterations", ("mazes-201",),
        Bound(SolvedAfter("201", _LARGE.step or 0), "mazes-recall-a0.01",
              at_least=(_LARGE.interval or (_LARGE.mean, 0))[0]),
    ),
    "mazes-801": Claim(
        "A maze of 801×801 is solved", "Section 4, Figure 19",
        "one, after 20,000 iterations (10,000 in the caption)", ("mazes-801",),
        Solved("mazes-recall-a0.01", "801"),
    ),
    "chess-order": Claim(
        "Chess: recall and the progressive loss together are best, feed-forward is last",
        "Section 4, Figure 5, Table 5",
        _paper(_PUZZLES, _BEST, "chess-dt-a0.5", "chess-recall-a0", "chess-dt-a0", "chess-ff"),
        ("table-chess-peaks",),
        All(tuple(_higher(_PUZZLES, _BEST, other)
                  for other in ("chess-dt-a0.5", "chess-recall-a0", "chess-dt-a0", "chess-ff"))),
    ),
    "chess-overthinking": Claim(
        "Chess: only recall with the progressive loss keeps its accuracy", "Section 4, Figure 5",
        "a picture: the others fall after about 70 iterations", ("fig-chess",),
        _keeps(_PUZZLES, _BEST, "chess-dt-a0", "chess-dt-a0.5", "chess-recall-a0"),
    ),
}  # fmt: skip
"""All that is checked, in the order of RESULTS.md."""
