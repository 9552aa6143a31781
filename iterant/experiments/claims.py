"""The paper's claims as data, with a verdict on each that is computed from the records.

    >>> CLAIMS["n-zero"].check(Evidence(records, counts)).verdict
    'not seen'

A claim is the sentence, where the paper makes it, the numbers it gives, the tables of RESULTS.md
that hold ours, and a check (see checks.py). No number of ours is written here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from iterant.experiments.catalogue import EXPERIMENTS
from iterant.experiments.checks import (
    MARGIN,
    All,
    Bound,
    Check,
    EverySeed,
    Evidence,
    Fall,
    Finding,
    Higher,
    IterationsNeeded,
    Peak,
    PeakAfter,
    Same,
    Solved,
    SolvedAfter,
    label,
)
from iterant.experiments.measures import Changes, Indices
from iterant.experiments.paper_numbers import INTERVENTIONS, PEAKS
from iterant.experiments.records import Record

AT_REST = 0.01
"""Features converge where the last change is at most this share of the first."""

LINEAR = 0.9
"""The least r² of a straight line."""

_INTERVENTIONS = ("noise", "zeros", "swap")


@dataclass(frozen=True)
class Claim:
    """What the paper says, and how it is checked."""

    text: str
    place: str
    theirs: str
    rows: tuple[str, ...]
    """Names of experiments whose tables hold our numbers"""
    check: Check

    def __post_init__(self) -> None:
        """Every table it points to exists."""
        for name in self.rows:
            EXPERIMENTS[name]


def _linear(record: Record) -> bool | None:
    """Whether recovery from a flipped bit falls in a straight line with its index."""
    found = Indices().curves([record])
    if not found:
        return None
    points = [(float(x), y) for x, y in enumerate(found[0]) if not math.isnan(y)]
    if len(points) < len(found[0]):
        return False  # no flip at some index was recovered from
    n = len(points)
    mean_x, mean_y = (math.fsum(part) / n for part in zip(*points, strict=True))
    xx = math.fsum((x - mean_x) ** 2 for x, _ in points)
    yy = math.fsum((y - mean_y) ** 2 for _, y in points)
    xy = math.fsum((x - mean_x) * (y - mean_y) for x, y in points)
    return xy < 0 and xx > 0 and yy > 0 and xy * xy / (xx * yy) >= LINEAR


def _converges(record: Record) -> bool | None:
    """Whether ‖Δφ‖ on test problems ends at a hundredth of where it began."""
    found = Changes("problems").curves([record])
    return found[0][-1] <= AT_REST * found[0][0] if found else None


def _grows(record: Record) -> bool | None:
    """Whether ‖Δφ‖ on test problems ends above where it began; overflow counts."""
    found = Changes("problems").curves([record])
    return not found[0][-1] <= found[0][0] if found else None


def _paper(size: str, *models: str) -> str:
    """The paper's peaks."""
    return ", ".join(f"{label(model)} {PEAKS[size][model].told}" for model in models)


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
            for study in _INTERVENTIONS
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
            f"{label(model)} {', '.join(f'{found[study][1]:g}' for study in _INTERVENTIONS)} %"
            for model, found in INTERVENTIONS.items()
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


def findings(evidence: Evidence) -> dict[str, Finding]:
    """The verdict on every claim."""
    return {name: claim.check(evidence) for name, claim in CLAIMS.items()}
