"""The paper's claims as data, with a verdict on each that is computed from the records.

    >>> CLAIMS["n-zero"].check(records).verdict
    'not seen'

A claim is the paper's sentence, its place in the paper, the numbers given there, the tables of
RESULTS.md with our numbers, and checks, each of which turns records into a verdict. None of our
numbers is written here.

Intervals are 95 % over seeds (see statistics.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import correlation
from typing import Any

from iterant.experiments.catalogue import INTERVENTIONS, PEAKS
from iterant.experiments.measures import (
    Changes,
    IterationsNeeded,
    Lost,
    Measure,
    Peaks,
    Recovered,
    RecoveryByIndex,
    Solved,
)
from iterant.experiments.models import MODELS
from iterant.experiments.records import Records
from iterant.experiments.statistics import LEAST_SEEDS, difference, problem_interval
from iterant.formatting import counted

REPRODUCED, NOT_SEEN, CONTRARY = "reproduced", "not seen", "contrary"
TOO_FEW, NOT_RUN = "too few seeds", "not run"
VERDICTS = (REPRODUCED, CONTRARY, NOT_SEEN, TOO_FEW, NOT_RUN)

MARGIN = 5.0
"""Points of accuracy that matter where the paper gives a picture and no number."""

AT_REST = 0.01
"""Features converge where the last change is at most this share of the first."""

LINEAR = 0.9
"""A curve counts as a straight line from this r² on."""


@dataclass(frozen=True)
class ClaimVerdict:
    """A verdict on a claim."""

    verdict: str
    ours: tuple[str, ...] = ()
    """Our numbers, one line per comparison"""


Check = Callable[[Records], ClaimVerdict]


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper, and its checks."""

    text: str
    place: str
    theirs: str
    tables: tuple[str, ...]
    """Names of experiments whose tables have our numbers"""
    checks: tuple[Check, ...]

    def check(self, records: Records) -> ClaimVerdict:
        """Contrary where one check is, reproduced where all are.

        Otherwise the reason: not run, too few seeds, not seen, in this order.
        """
        verdicts = [check(records) for check in self.checks]
        order = (CONTRARY, NOT_RUN, TOO_FEW, NOT_SEEN, REPRODUCED)
        worst = min((result.verdict for result in verdicts), key=order.index)
        return ClaimVerdict(worst, tuple(line for result in verdicts for line in result.ours))


# Checks


def within(
    measure: Measure,
    *models: str,
    at_least: float = -math.inf,
    at_most: float = math.inf,
    effect: float = 0.0,
    middle_at_least: float = -math.inf,
    names: tuple[str, ...] = (),
    shown: bool = True,
) -> Check:
    """Check that the mean of one model, or the difference of two means, is between two bounds.

    Reproduced: the whole interval is, and its middle is at least ``middle_at_least``. Contrary: no
    part of the interval is. Otherwise not seen; or too few seeds, where the interval reaches
    further than ``effect`` from its middle, so that an effect of that size could not have shown.
    """

    def decide(low: float, middle: float, high: float) -> str:
        if at_least < low and high < at_most:
            return REPRODUCED if middle >= middle_at_least else NOT_SEEN
        if high < at_least or low > at_most:
            return CONTRARY
        return TOO_FEW if max(middle - low, high - middle) > effect else NOT_SEEN

    def check(records: Records) -> ClaimVerdict:
        values = [_as_in_the_paper(measure, model).of(records.of(model)).value for model in models]
        titles = [MODELS[model].ours for model in models]
        heading = f"{measure.key}: " if isinstance(measure, Recovered) else ""
        numbers = heading + ", ".join(
            f"{name} {'not run' if value is None else measure.number(value)}"
            for name, value in zip(names or titles, values, strict=True)
        )
        known = [value for value in values if value is not None]
        if len(known) < len(models):
            return ClaimVerdict(NOT_RUN, (numbers,) if known else ())
        *others, last = dict.fromkeys(value.seeds for value in known)
        seeds = " and ".join([*map(str, others), counted(last, "seed")])
        line, verdict = f"{numbers} ({seeds})", TOO_FEW
        if min(value.seeds for value in known) >= LEAST_SEEDS:
            low, middle, high = difference(*known)
            verdict = decide(low, middle, high)
            if len(known) > 1:
                line = f"{numbers}: {measure.difference(low, middle, high)}; {seeds}"
        return ClaimVerdict(verdict, (line,) if shown else ())

    return check


def _as_in_the_paper(measure: Measure, model: str) -> Measure:
    """Of plain DT the paper's peaks are those of the most confident iteration."""
    is_peak = type(measure) is Peaks
    return Peaks(measure.key, MODELS[model].confident) if is_peak else measure


def higher(measure: Measure, more: str, less: str, effect: float = MARGIN, **options: Any) -> Check:
    """Check that the first model is above the other; ``effect``: the paper's difference."""
    return within(measure, more, less, at_least=0.0, effect=effect, **options)


def every_seed(
    models: Sequence[str], measure: Measure, has: Callable[[list[float]], bool], what: str
) -> Check:
    """Check that the curve of every seed of some models has a property.

    Reproduced: all have it; contrary: none has; not seen: some have; too few seeds: a model has
    fewer than `LEAST_SEEDS`.
    """

    def check(records: Records) -> ClaimVerdict:
        by_model = {
            model: [has(curve) for curve in measure.curves(records.of(model))] for model in models
        }
        if not any(by_model.values()):
            return ClaimVerdict(NOT_RUN)
        ours = tuple(
            f"{MODELS[model].ours}: {sum(seeds)} of {counted(len(seeds), 'seed')} {what}"
            for model, seeds in by_model.items()
        )
        if min(map(len, by_model.values())) < LEAST_SEEDS:
            return ClaimVerdict(TOO_FEW, ours)
        if all(map(all, by_model.values())):
            return ClaimVerdict(REPRODUCED, ours)
        return ClaimVerdict(NOT_SEEN if any(map(any, by_model.values())) else CONTRARY, ours)

    return check


def any_solved(model: str, size: str) -> Check:
    """Check that some problem of this size is solved; one network is enough."""

    def check(records: Records) -> ClaimVerdict:
        measure, tested = Solved(size), records.of(model)
        tests = measure.counts(tested)
        if not tests:
            return ClaimVerdict(NOT_RUN)
        cell = measure.of(tested)
        ours = f"{MODELS[model].ours}: {cell.text} iterations ({cell.tests})"
        is_solved = any(count for one in tests for count in one.solved.values())
        return ClaimVerdict(REPRODUCED if is_solved else NOT_SEEN, (ours,))

    return check


def _falls_linearly(curve: list[float]) -> bool:
    # NaN: an index at which no flip was recovered from.
    if any(map(math.isnan, curve)) or len(set(curve)) < 2:
        return False
    r = correlation(range(len(curve)), curve)
    return r < 0 and r * r >= LINEAR


def _converges(curve: list[float]) -> bool:
    return curve[-1] <= AT_REST * curve[0]


def _grows(curve: list[float]) -> bool:
    return not curve[-1] <= curve[0]  # negated, so that NaN (overflow) counts as growth


# Claims of several kinds

_STUDIES = ("noise", "zeros", "swap")


def _paper(size: str, *models: str) -> str:
    """The paper's peaks of these models, as text."""
    return ", ".join(f"{MODELS[model].title} {PEAKS[size][model].text}" for model in models)


def _higher_peak(
    text: str, place: str, tables: tuple[str, ...], size: str, *pairs: tuple[str, str]
) -> Claim:
    """The claim that of each pair of models the first has the higher peak, as in the paper."""
    peaks = PEAKS[size]
    checks = [
        higher(Peaks(size), more, less, peaks[more].mean - peaks[less].mean) for more, less in pairs
    ]
    models = dict.fromkeys(model for pair in pairs for model in pair)
    return Claim(text, place, _paper(size, *models), tables, tuple(checks))


def _keeps(size: str, recall: str, *without: str) -> tuple[Check, ...]:
    """Check that one model keeps its accuracy to the last iteration and others lose more."""
    falls = [higher(Lost(size), other, recall) for other in without]
    return (*falls, within(Lost(size), recall, at_most=MARGIN, shown=False))


def _recovers(recall: str, without: str) -> tuple[Check, ...]:
    """Check that after each intervention of Table 7 recall is above the same net without it."""
    high, low = INTERVENTIONS[recall], INTERVENTIONS[without]
    return tuple(
        higher(Recovered(study), recall, without, high[study][1] - low[study][1])
        for study in _STUDIES
    )


def _fixed_point(text: str, place: str, table: str, recall: list[str], without: list[str]) -> Claim:
    """The claim that ‖Δφ‖ falls to nearly 0 with recall and grows without."""
    rest = f"end at {100 * AT_REST:g} % of the first ‖Δφ‖ or less"
    checks = (
        every_seed(recall, Changes("problems"), _converges, rest),
        every_seed(without, Changes("problems"), _grows, "end above the first ‖Δφ‖"),
    )
    theirs = "a picture: with recall ‖Δφ‖ falls, without it explodes"
    return Claim(text, place, theirs, (table,), checks)


_LARGE = PEAKS["201"]["mazes-recall-a0.01"]
_SLOW, _FAST = (PEAKS["512"][f"sums-recall-a{alpha}"].step or 0 for alpha in (0, 1))
_PUZZLES, _BEST = "600000:700000", "chess-recall-a0.5"
_FALLS = "a picture: without recall the curves fall, with recall they stay"

CLAIMS: dict[str, Claim] = {
    "overthinking-sums": Claim(
        "Recall stops overthinking: 48 bits", "Section 5, Figure 6", _FALLS,
        ("fig-easy-problems",),
        (*_keeps("48", "sums-recall-a0", "sums-dt-a0"),
         *_keeps("48", "sums-recall-a1", "sums-dt-a1")),
    ),
    "overthinking-mazes": Claim(
        "Recall stops overthinking: mazes of 13×13", "Section 5, Figure 6", _FALLS,
        ("fig-easy-problems",),
        (*_keeps("13", "mazes-recall-a0", "mazes-dt-a0"),
         *_keeps("13", "mazes-recall-a0.01", "mazes-dt-a0.01")),
    ),
    "recall-sums": _higher_peak(
        "512 bits need recall", "Section 4, Figure 3, Table 3",
        ("fig-arch-loss-ablation", "table-prefix-peaks"), "512",
        ("sums-recall-a0", "sums-dt-a0"), ("sums-recall-a1", "sums-dt-a1"),
    ),
    "recall-mazes": _higher_peak(
        "Mazes of 59×59 need recall", "Section 4, Figure 4, Table 4",
        ("fig-mazes-ablation", "table-maze-peaks"), "59",
        ("mazes-recall-a0", "mazes-dt-a0"), ("mazes-recall-a0.01", "mazes-dt-a0.01"),
    ),
    "feed-forward": Claim(
        "Feed-forward networks do not extrapolate to 512 bits", "Section 4, Table 3",
        _paper("512", "sums-ff"), ("table-prefix-peaks",),
        (within(Peaks("512"), "sums-ff", at_most=MARGIN),),
    ),
    "same-accuracy": Claim(
        "Recall reaches the same accuracy on 512 bits without the progressive loss",
        "Section 4, Figure 3", _paper("512", "sums-recall-a0", "sums-recall-a1"),
        ("fig-arch-loss-ablation",),
        (within(Peaks("512"), "sums-recall-a0", "sums-recall-a1", at_least=-MARGIN,
                at_most=MARGIN),),
    ),
    "twice-the-iterations": Claim(
        "… but needs about twice the iterations", "Section 4, Figure 3",
        f"peaks at {_SLOW} and {_FAST}: {_SLOW / _FAST:.2f} times", ("fig-arch-loss-ablation",),
        (higher(IterationsNeeded("512"), "sums-recall-a0", "sums-recall-a1",
                math.log2(_SLOW / _FAST), middle_at_least=math.log2(1.5)),),
    ),
    "n-zero": _higher_peak(
        "n = 0 in the progressive loss is worse than random n", "Section 4, appendix A.4",
        ("compare-n-zero",), "512", ("sums-recall-a1", "sums-n0"),
    ),
    "run-time-sums": _higher_peak(
        "The run-time-weighted loss is worse: 512 bits", "Appendix A.3",
        ("compare-run-time-weighted",), "512", ("sums-recall-a1", "sums-run-time"),
    ),
    "run-time-mazes": _higher_peak(
        "The run-time-weighted loss is worse: mazes of 59×59", "Appendix A.3",
        ("compare-run-time-weighted",), "59", ("mazes-recall-a0.01", "mazes-run-time"),
    ),
    "width": Claim(
        "Accuracy on 512 bits rises with width", "Appendix A.4, Figure 8", "a picture",
        ("fig-width",),
        (higher(Peaks("512"), "sums-recall-a1", "sums-recall-a1-w50",
                names=("width 400", "width 50")),),
    ),
    "depth": Claim(
        "Accuracy on 512 bits rises with m up to 30", "Appendix A.4, Figure 8", "a picture",
        ("fig-depth",),
        (higher(Peaks("512"), "sums-recall-a1", "sums-recall-a1-m10",
                names=("m = 30", "m = 10")),),
    ),
    "depth-plateau": Claim(
        "… and no further beyond 30", "Appendix A.4, Figure 8", "a picture", ("fig-depth",),
        (within(Peaks("512"), "sums-recall-a1-m40", "sums-recall-a1", at_least=-MARGIN,
                at_most=MARGIN, names=("m = 40", "m = 30")),),
    ),
    "progressive-mazes": _higher_peak(
        "The progressive loss helps on mazes of 59×59", "Section 4, Figure 4, Table 4",
        ("fig-mazes-ablation", "table-maze-peaks"), "59", ("mazes-recall-a0.01", "mazes-recall-a0"),
    ),
    "bit-flip": Claim(
        "Recovery from a flipped bit falls linearly with its index", "Section 5.2, Figure 7",
        "a picture: a falling line", ("fig-overthinking",),
        (every_seed(("sums-recall-a0", "sums-recall-a1"), RecoveryByIndex(), _falls_linearly,
                    f"on a falling line (r² ≥ {LINEAR:g})"),),
    ),
    "interventions": Claim(
        "With recall, mazes recover from noise, zeros and swapped features", "Section 5, Table 7",
        "; ".join(
            f"{MODELS[model].title} {', '.join(f'{known[study][1]:g}' for study in _STUDIES)} %"
            for model, known in INTERVENTIONS.items()
        ),
        ("table-interventions",),
        (*_recovers("mazes-recall-a0", "mazes-dt-a0"),
         *_recovers("mazes-recall-a0.01", "mazes-dt-a0.01")),
    ),
    "fixed-point-mazes": _fixed_point(
        "With recall, features come to a fixed point: 13×13", "Section 5.3, Figure 7",
        "fig-overthinking", ["mazes-recall-a0", "mazes-recall-a0.01"],
        ["mazes-dt-a0", "mazes-dt-a0.01"],
    ),
    "fixed-point-sums": _fixed_point(
        "With recall, features come to a fixed point: 48 bits", "Appendix A.8, Figure 17",
        "fig-prefix-delta", ["sums-recall-a0", "sums-recall-a1"], ["sums-dt-a0", "sums-dt-a1"],
    ),
    "mazes-201": Claim(
        "74 % of mazes of 201×201 are solved", "Section 4",
        f"{_LARGE.mean:g} of {_LARGE.problems} after {_LARGE.step:,} iterations", ("mazes-201",),
        (within(Solved("201"), "mazes-recall-a0.01",
                at_least=problem_interval(_LARGE.mean, _LARGE.problems)[0]),),
    ),
    "mazes-801": Claim(
        "A maze of 801×801 is solved", "Section 4, Figure 19",
        "one, after 20,000 iterations (10,000 in the caption)", ("mazes-801",),
        (any_solved("mazes-recall-a0.01", "801"),),
    ),
    "chess-order": _higher_peak(
        "Chess: recall and the progressive loss together are best, feed-forward is last",
        "Section 4, Figure 5, Table 5", ("table-chess-peaks",), _PUZZLES,
        *((_BEST, other) for other in ("chess-dt-a0.5", "chess-recall-a0", "chess-dt-a0",
                                       "chess-ff")),
    ),
    "chess-overthinking": Claim(
        "Chess: only recall with the progressive loss keeps its accuracy", "Section 4, Figure 5",
        "a picture: the others fall after about 70 iterations", ("fig-chess",),
        _keeps(_PUZZLES, _BEST, "chess-dt-a0", "chess-dt-a0.5", "chess-recall-a0"),
    ),
}  # fmt: skip
"""All claims by name, in the order of RESULTS.md."""
