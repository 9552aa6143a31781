"""The numbers of the paper, and of others on mazes unlike the paper's (`PUBLISHED`).

    >>> PEAKS["512"]["sums-recall-a1"].text
    '97.12 ± 1.88 % at 237'

They are from its tables of peaks, of accuracies in distribution and of interventions, and from its
text. Curves, and the grids of width and depth, are pictures there.
"""

from __future__ import annotations

from dataclasses import dataclass

from iterant.experiments.statistics import Value

PEAKS: dict[str, dict[str, Value]] = {
    "48": {
        "sums-dt-a0": Value(94.61, 1.19, 42),
        "sums-dt-a1": Value(97.73, 1.80, 27),
        "sums-recall-a0": Value(99.97, 0.01, 46),
        "sums-recall-a1": Value(99.96, 0.02, 26),
        "sums-ff": Value(27.15, 2.56, 30),
    },
    "512": {
        "sums-dt-a0": Value(0.0, 0.0),
        "sums-dt-a1": Value(11.26, 6.90, 171),
        "sums-recall-a0": Value(96.19, 3.73, 466),
        "sums-recall-a1": Value(97.12, 1.88, 237),
        "sums-ff": Value(0.0, 0.0, 30),
        "sums-n0": Value(90.27, 5.95),
        "sums-run-time": Value(72.45, 8.91),
    },
    "13": {
        "mazes-dt-a0": Value(85.59, 2.81, 40),
        "mazes-dt-a0.01": Value(86.08, 3.96, 38),
        "mazes-recall-a0": Value(99.94, 0.03, 94),
        "mazes-recall-a0.01": Value(99.88, 0.05, 70),
        "mazes-ff": Value(38.22, 5.28),
    },
    "33": {"mazes-run-time": Value(93.8)},
    "59": {
        "mazes-dt-a0": Value(0.0, 0.0),
        "mazes-dt-a0.01": Value(0.0, 0.0),
        "mazes-recall-a0": Value(82.72, 15.14, 999),
        "mazes-recall-a0.01": Value(97.30, 0.68, 984),
        "mazes-ff": Value(0.0, 0.0),
        "mazes-run-time": Value(0.0),
    },
    "201": {"mazes-recall-a0.01": Value(74.0, None, 2000, problems=100)},
    "600000:700000": {
        "chess-dt-a0": Value(78.81, 1.04, 32),
        "chess-dt-a0.5": Value(82.32, 0.10, 43),
        "chess-recall-a0": Value(82.12, 0.69, 29),
        "chess-recall-a0.5": Value(82.69, 0.27, 57),
        "chess-ff": Value(61.17, 1.76, 30),
    },
}
"""The paper's peak accuracies in per cent, by size, then by model."""

IN_DISTRIBUTION: dict[str, dict[str, Value]] = {
    "sums-dt-a0": {"train": Value(99.98, 0.01), "validation": Value(100.0, 0.0)},
    "sums-dt-a1": {"train": Value(99.57, 0.38), "validation": Value(97.73, 1.80)},
    "sums-recall-a0": {"train": Value(99.95, 0.02), "validation": Value(100.0, 0.0)},
    "sums-recall-a1": {"train": Value(99.98, 0.01), "validation": Value(100.0, 0.0)},
    "sums-ff": {"train": Value(99.76, 0.14), "validation": Value(99.76, 0.14)},
    "mazes-dt-a0": {"train": Value(100.0, 0.0), "validation": Value(100.0, 0.0)},
    "mazes-dt-a0.01": {"train": Value(99.98, 0.01), "validation": Value(99.98, 0.01)},
    "mazes-recall-a0": {"train": Value(99.91, 0.07), "validation": Value(99.92, 0.06)},
    "mazes-recall-a0.01": {"train": Value(99.77, 0.15), "validation": Value(99.74, 0.17)},
    "mazes-ff": {"train": Value(99.94, 0.01), "validation": Value(99.93, 0.05)},
    "chess-dt-a0": {"train": Value(99.98, 0.02), "validation": Value(92.94, 0.34)},
    "chess-dt-a0.5": {"train": Value(99.90, 0.01), "validation": Value(94.16, 0.02)},
    "chess-recall-a0": {"train": Value(99.77, 0.02), "validation": Value(94.16, 0.03)},
    "chess-recall-a0.5": {"train": Value(99.34, 0.02), "validation": Value(94.18, 0.07)},
    "chess-ff": {"train": Value(96.89, 0.58), "validation": Value(83.24, 1.22)},
}
"""Training and validation accuracy by model, in per cent."""

INTERVENTIONS: dict[str, dict[str, tuple[float | None, float]]] = {
    "mazes-dt-a0": {
        "clean": (27.68, 87), "noise": (None, 0), "zeros": (None, 0), "swap": (None, 0),
    },
    "mazes-dt-a0.01": {
        "clean": (16.87, 95), "noise": (None, 0), "zeros": (None, 0), "swap": (None, 0),
    },
    "mazes-recall-a0": {
        "clean": (23.54, 100), "noise": (35.70, 100), "zeros": (35.04, 96), "swap": (33.92, 97),
    },
    "mazes-recall-a0.01": {
        "clean": (22.10, 100), "noise": (25.10, 100), "zeros": (22.48, 100), "swap": (28.79, 100),
    },
}  # fmt: skip
"""Mean iterations to solution (None: none was) and peak accuracy in per cent, on mazes of 13."""


@dataclass(frozen=True)
class Published:
    """A number of another paper, on mazes unlike this paper's; see `iterant.experiments.shifts`."""

    system: str
    test: str
    """SIZE KIND of a test, or only its kind"""
    exact: float | None = None
    """Per cent of the answers that equal the label"""
    any_path: float | None = None
    """Per cent of the answers that are a shortest path, whichever"""
    parameters: str = ""
    note: str = ""
    source: str = ""
    """Where it is published; "": reported, but we did not find where"""


_KNUTSON = "arXiv 2410.03020"
_EQR_CODE = "github.com/locuslab/EqR, supplements/maze_unique"
_PEAK = "best checkpoint of a selected run, after more tuning than in the papers"
_HARD, _UNIQUE = "30 maze-hard", "29 start=any,path=100-140"

PUBLISHED: tuple[Published, ...] = (
    Published("DT-Net (DT-Recall)", "start=dead-end,p=0", any_path=100.0, source=_KNUTSON,
              note="up to 99×99 with 3,000 iterations"),
    Published("DT-Net (DT-Recall)", "start=any,p=0", any_path=72.0, source=_KNUTSON,
              note="falls with the number of ways out of the start"),
    Published("PI-Net", "start=any,p=0", any_path=94.0, source=_KNUTSON),
    Published("HRM", _HARD, 74.5, 81.6, "27M", "any shortest path: the released weights, reported "
              "by others", source="arXiv 2506.21734"),
    Published("TRM", _HARD, 85.3, 90.7, "7M", "reproductions 75 to 84; any shortest path: the "
              "released weights, reported by others", source="arXiv 2510.04871"),
    Published("FPRM", _HARD, 87.0, parameters="7M", source="arXiv 2606.18206"),
    Published("Attractor", _HARD, 93.1, parameters="27M", source="arXiv 2605.12466"),
    Published("HRM", _UNIQUE, 0.3),
    Published("TRM", _UNIQUE, 44.9),
    Published("URM", _UNIQUE, 51.4),
    Published("EqR", _UNIQUE, 93.0, source="arXiv 2605.21488"),
    Published("TRM, tuned", _UNIQUE, 99.4, parameters="42.2K", source=_EQR_CODE, note=_PEAK),
    Published("EqR, tuned", _UNIQUE, 99.6, parameters="42.2K", source=_EQR_CODE, note=_PEAK),
    Published("EqR, tuned", _UNIQUE, 100.0, parameters="66.4K", source=_EQR_CODE, note=_PEAK),
    Published("FRM", _UNIQUE, 98.0, note="± 1.8, peak 99.9"),
)  # fmt: skip
"""Numbers of others on these mazes, as reported: we repeated none. Those of Maze-Hard are of its
test half; the best reproduction of TRM, 83.67 ± 2.28 %, is alphaXiv's (paper-implementations).
"""
