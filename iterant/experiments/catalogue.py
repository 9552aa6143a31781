"""Every table and figure of the paper, as data: the paper's numbers, rows and panels.

>>> PEAKS["512"]["sums-recall-a1"].text
'97.12 ± 1.88 % at 237'
>>> EXPERIMENTS["compare-n-zero"].rows[0].paper.text
'90.27 ± 5.95 %'

The numbers are from the paper's tables of peaks, of accuracies in distribution and of
interventions, and from its text. Curves, and the grids of width and depth, are pictures there.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from iterant import registry
from iterant.errors import UnknownName
from iterant.experiments.measures import (
    Accuracy,
    Changes,
    Measure,
    Peaks,
    Recovered,
    RecoveryByIndex,
    Value,
)
from iterant.experiments.models import MODELS, Model

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

FITTED: dict[str, tuple[Value, Value]] = {
    "sums-dt-a0": (Value(99.98, 0.01), Value(100.0, 0.0)),
    "sums-dt-a1": (Value(99.57, 0.38), Value(97.73, 1.80)),
    "sums-recall-a0": (Value(99.95, 0.02), Value(100.0, 0.0)),
    "sums-recall-a1": (Value(99.98, 0.01), Value(100.0, 0.0)),
    "sums-ff": (Value(99.76, 0.14), Value(99.76, 0.14)),
    "mazes-dt-a0": (Value(100.0, 0.0), Value(100.0, 0.0)),
    "mazes-dt-a0.01": (Value(99.98, 0.01), Value(99.98, 0.01)),
    "mazes-recall-a0": (Value(99.91, 0.07), Value(99.92, 0.06)),
    "mazes-recall-a0.01": (Value(99.77, 0.15), Value(99.74, 0.17)),
    "mazes-ff": (Value(99.94, 0.01), Value(99.93, 0.05)),
    "chess-dt-a0": (Value(99.98, 0.02), Value(92.94, 0.34)),
    "chess-dt-a0.5": (Value(99.90, 0.01), Value(94.16, 0.02)),
    "chess-recall-a0": (Value(99.77, 0.02), Value(94.16, 0.03)),
    "chess-recall-a0.5": (Value(99.34, 0.02), Value(94.18, 0.07)),
    "chess-ff": (Value(96.89, 0.58), Value(83.24, 1.22)),
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

SEEDS: dict[str, str] = {
    "prefix-sums": "not stated (of DT with α = 1, 14 of 20 were converged, elsewhere all)",
    "mazes": "not stated (with recall 4 in 5 were converged, elsewhere all)",
    "chess": "not stated (about half were converged)",
}
"""How many seeds the paper's means are over, and what it says of those left out."""


@dataclass(frozen=True)
class Row:
    """One line of a table."""

    model: str
    measure: Measure
    paper: Value | None = None
    text: str = ""
    """The paper's number as text, where it is not that of ``paper``"""
    name: str = ""
    """Shown instead of the model's label: "m = 30" in a grid of m"""


@dataclass(frozen=True)
class CountRow:
    """A row of a table from tests without a curve: problems solved after a few iteration counts."""

    model: str
    size: str
    seeds: int = 0
    """Planned seeds; 0: plan none, show the results that exist"""
    problems: int = 0
    """Problems per planned test"""
    iterations: int = 0
    """Iterations before the first check; the second is after twice as many"""
    seconds: float = 0.0
    """Duration of one test: on an H200, for local rules on a CPU"""
    paper: Value | None = None
    text: str = ""
    """The paper's result as text, where it gives no number"""


@dataclass(frozen=True)
class Panel:
    """One panel of a figure."""

    title: str
    measure: Measure
    models: tuple[str, ...]
    grid: str = ""
    """The recipe field on the x-axis; "": iterations"""
    names: tuple[str, ...] = ()
    """Labels of the lines where they are variants of one model; each gets its own colour"""


@dataclass(frozen=True)
class Experiment:
    """A table or a figure of the paper."""

    name: str
    title: str
    place: str
    """Where it is in the paper: ``Figure 3``"""
    rows: tuple[Row, ...] = ()
    panels: tuple[Panel, ...] = ()
    note: str = ""
    count_rows: tuple[CountRow, ...] = ()

    @property
    def anchor(self) -> str:
        """The link target of its heading in RESULTS.md."""
        return re.sub(r"[^\w\- ]", "", self.title.lower()).replace(" ", "-")

    @property
    def needs(self) -> dict[str, set[str]]:
        """The names of the tests and studies that it shows, by model."""
        measures = [(row.model, row.measure) for row in self.rows]
        measures += [(key, panel.measure) for panel in self.panels for key in panel.models]
        needs: dict[str, set[str]] = {}
        for key, measure in measures:
            needs.setdefault(key, set()).add(measure.needs)
        return needs

    @property
    def models(self) -> tuple[Model, ...]:
        """The models whose runs its rows and panels need."""
        return tuple(MODELS[key] for key in self.needs)

    @property
    def tasks(self) -> tuple[str, ...]:
        """The tasks of all its models, also those of rows without curves."""
        models = [*self.models, *(MODELS[row.model] for row in self.count_rows)]
        return tuple(dict.fromkeys(model.task for model in models))


SUMS = ("sums-dt-a0", "sums-dt-a1", "sums-recall-a0", "sums-recall-a1", "sums-ff")
MAZES = ("mazes-dt-a0", "mazes-dt-a0.01", "mazes-recall-a0", "mazes-recall-a0.01", "mazes-ff")
CHESS = ("chess-dt-a0", "chess-dt-a0.5", "chess-recall-a0", "chess-recall-a0.5", "chess-ff")
PICTURE = "The paper gives a picture only; there are no numbers to compare."
IN_TABLE = "The paper gives a picture here; its numbers are those of Table 7, without errors."
ZEROED = (
    "The paper gives a picture only. Its numbers in Table 7 (`table-interventions`) are of "
    "features zeroed after iteration 1; ours are the same there, because zeros erase the whole "
    "state."
)
CHESS_RECIPE = (
    "The paper's recipe takes about five hours a seed on an H200; docs/chess.md compares networks "
    "that were trained for 70 s each, on other puzzles."
)
GRID = (
    "The paper gives a picture only, and the grid is our choice; its number is that of its own "
    "network, from Table 3."
)


def _ours(model: str) -> str:
    """Our own recipe for the task of a model."""
    return f"{model.partition('-')[0]}-ours"


def _with_ours(models: Sequence[str]) -> tuple[str, ...]:
    """The same models and our own recipe for their task."""
    return (*models, _ours(models[0]))


def _recovered(model: str, study: str) -> Row:
    """The row of an intervention, with the paper's number where it has one."""
    paper = INTERVENTIONS.get(model, {}).get(study)
    if paper is None:
        return Row(model, Recovered(study))
    steps, height = paper
    text = f"{'–' if steps is None else f'{steps:.2f}'} ({height:g} %)"
    return Row(model, Recovered(study), Value(height), text)


def _peaks(models: Sequence[str], *sizes: str) -> tuple[Row, ...]:
    rows: list[Row] = []
    for size in sizes:
        for model in _with_ours(models):
            paper = PEAKS.get(size, {}).get(model)
            # The paper shows plain DT with the exit rule; ours is shown with it and without.
            if MODELS[model].confident:
                rows.append(Row(model, Peaks(size, confident=True), paper))
                rows.append(Row(model, Peaks(size)))
            else:
                rows.append(Row(model, Peaks(size), paper))
    return tuple(rows)


def _curves(title: str, size: str, models: Sequence[str]) -> Panel:
    return Panel(title, Peaks(size), _with_ours(models))


def _study(
    name: str, title: str, place: str, models: Sequence[str], measure: Measure, note: str = PICTURE
) -> Experiment:
    chosen = tuple(model for model in _with_ours(models) if MODELS[model].studies)
    rows = tuple(
        _recovered(model, measure.study) if isinstance(measure, Recovered) else Row(model, measure)
        for model in chosen
    )
    return Experiment(name, title, place, rows, (Panel(title, measure, chosen),), note)


def _grid(
    name: str,
    title: str,
    place: str,
    models: dict[str, str],
    size: str,
    field: str,
    note: str = GRID,
) -> Experiment:
    """Peaks by a field of the recipe, and the curves behind them.

    Our own recipe has no value on this axis, so it is a row only.
    """
    keys = tuple(models.values())
    rows = tuple(
        Row(model, Peaks(size), PEAKS[size].get(model), name="" if field == "alpha" else name)
        for name, model in models.items()
    )
    panels = (
        Panel(title, Peaks(size), keys, grid=field),
        Panel(f"{title.partition(' by ')[0]} by iteration", Peaks(size), keys, names=tuple(models)),
    )
    ours = Row(_ours(keys[0]), Peaks(size))
    return Experiment(name, title, place, (*rows, ours), panels, note)


def _fitted() -> tuple[Row, ...]:
    return tuple(
        Row(model, Accuracy(which), value)
        for models in (SUMS, MAZES, CHESS)
        for model in _with_ours(models)
        for which, value in zip(
            ("train", "validation"), FITTED.get(model, (None, None)), strict=True
        )
    )


def _interventions() -> tuple[Row, ...]:
    return tuple(
        _recovered(model, study)
        for model in _with_ours(tuple(INTERVENTIONS))
        for study in ("clean", "noise", "zeros", "swap")
    )


_WIDTHS = {f"width {w}": f"sums-recall-a1-w{w}" for w in (50, 100, 200, 300)}
_WIDTHS["width 400"] = "sums-recall-a1"
_DEPTHS = {
    "m = 10": "sums-recall-a1-m10",
    "m = 20": "sums-recall-a1-m20",
    "m = 30": "sums-recall-a1",
    "m = 40": "sums-recall-a1-m40",
}
_ALPHAS = {f"α = {a}": f"sums-recall-a{a}" for a in ("0", "0.25", "0.5", "0.75", "1")}
_MAZE_ALPHAS = {f"α = {a}": f"mazes-recall-a{a}" for a in ("0", "0.01", "0.1", "0.5", "1")}
_SEARCHED = (
    "The paper chose α from this grid; it gives numbers for two of the points, in its tables of "
    "peaks."
)

_ALL = (
    Experiment("fig-arch-loss-ablation", "Prefix sums of 512 bits by iteration", "Figure 3",
               _peaks(SUMS, "512"), (_curves("512 bits", "512", SUMS),)),
    Experiment("fig-mazes-ablation", "Mazes of 59×59 by iteration", "Figure 4",
               _peaks(MAZES, "59"), (_curves("59×59", "59", MAZES),)),
    Experiment("fig-chess", "Chess puzzles 600K–700K by iteration", "Figure 5",
               _peaks(CHESS, "600000:700000"),
               (_curves("Puzzles 600K–700K", "600000:700000", CHESS),), CHESS_RECIPE),
    Experiment("fig-chess-harder", "Harder chess puzzles", "Figure 9",
               _peaks(CHESS, "700000:800000", "1000000:1100000"),
               (_curves("Puzzles 700K–800K", "700000:800000", CHESS),
                _curves("Puzzles 1.0M–1.1M", "1000000:1100000", CHESS)), CHESS_RECIPE),
    Experiment("fig-easy-problems", "Somewhat harder problems: 48 bits and 13×13", "Figure 6",
               (*_peaks(SUMS, "48"), *_peaks(MAZES, "13")),
               (_curves("48 bits", "48", SUMS), _curves("13×13", "13", MAZES))),
    Experiment("fig-overthinking", "Flipped bits, swapped features, and convergence",
               "Figure 7",
               (*(Row(model, RecoveryByIndex()) for model in _with_ours(SUMS[:4])),
                *(_recovered(model, "swap") for model in _with_ours(MAZES[:4])),
                *(Row(model, Changes("problems")) for model in _with_ours(MAZES[:4]))),
               (Panel("48 bits, one flipped after 50 iterations", RecoveryByIndex(),
                      _with_ours(SUMS[:4])),
                Panel("13×13, features swapped after 50 iterations", Recovered("swap"),
                      _with_ours(MAZES[:4])),
                Panel("13×13, change of the features", Changes("problems"),
                      _with_ours(MAZES[:4]))),
               "The paper gives pictures here; its numbers of the swapped features are those of "
               "Table 7, without errors. Networks that recover from fewer than one flip in twenty "
               "have no line."),
    Experiment("table-prefix-peaks", "Peaks on prefix sums", "Table 3",
               _peaks(SUMS, "48", "512")),
    Experiment("table-maze-peaks", "Peaks on mazes", "Table 4",
               _peaks(MAZES, "13", "59")),
    Experiment("table-chess-peaks", "Peaks on chess puzzles", "Table 5",
               _peaks(CHESS, "600000:700000"), note=CHESS_RECIPE),
    Experiment("table-in-distribution", "Accuracy at the training size",
               "Table 6", _fitted(), (),
               "Ours is the accuracy of the tested weights on at most 10,000 training problems. "
               "The paper's validation accuracy of DT with α = 1 repeats its 48-bit peak."),
    Experiment("table-interventions", "Interventions on mazes of 13×13",
               "Table 7", _interventions(), (),
               "Mean iterations until a maze is solved for the first time, counted from the "
               "intervention, with the peak accuracy. The paper gives no errors."),
    _grid("fig-depth", "512 bits by the iterations m of training", "Figure 8, top",
          _DEPTHS, "512", "iterations"),
    _grid("fig-width", "512 bits by width", "Figure 8, bottom", _WIDTHS, "512", "width"),
    Experiment("fig-hard-to-easy", "From 32 bits to the easier 24", "Figure 10",
               _peaks(SUMS, "24"), (_curves("24 bits", "24", SUMS),), PICTURE),
    _study("fig-maze-noise", "13×13, noise on the features after iteration 1",
           "Figure 11", MAZES, Recovered("noise"), IN_TABLE),
    _study("fig-maze-zeros", "13×13, features zeroed after iteration 50",
           "Figure 12", MAZES, Recovered("zeros after 50"), ZEROED),
    _study("fig-maze-moved-end", "13×13, the end moved nearer after iteration 50",
           "Figure 13", MAZES, Recovered("move-end")),
    _study("fig-maze-delta", "Change of the features on random images",
           "Figure 14", MAZES, Changes("random inputs")),
    _study("fig-prefix-noise", "48 bits, noise on the features after iteration 1",
           "Figure 15", SUMS, Recovered("noise")),
    _study("fig-prefix-zeros", "48 bits, features zeroed after iteration 1",
           "Figure 16", SUMS, Recovered("zeros")),
    _study("fig-prefix-delta", "48 bits, change of the features", "Figure 17",
           SUMS, Changes("problems")),
    Experiment("compare-n-zero", "The progressive loss from n = 0 only",
               "Text, section 4 and appendix A.4",
               (Row("sums-n0", Peaks("512"), PEAKS["512"]["sums-n0"]),
                Row("sums-recall-a1", Peaks("512"), PEAKS["512"]["sums-recall-a1"]),
                Row("sums-ours", Peaks("512")))),
    Experiment("compare-run-time-weighted", "A loss that grows with the iteration",
               "Text, appendix A.3",
               (Row("sums-run-time", Peaks("512"), PEAKS["512"]["sums-run-time"]),
                Row("sums-ours", Peaks("512")),
                Row("mazes-run-time", Peaks("33"), PEAKS["33"]["mazes-run-time"]),
                Row("mazes-ours", Peaks("33")),
                Row("mazes-run-time", Peaks("59"), PEAKS["59"]["mazes-run-time"]),
                Row("mazes-ours", Peaks("59"))), (),
               "The paper calls these preliminary, gives no errors for mazes and does not say of "
               "which network nor how the weights grow: ours is DT-Recall, iteration i weighs i."),
    _grid("grid-alpha-prefix", "512 bits by α", "Text, appendix A.4", _ALPHAS, "512", "alpha",
          _SEARCHED),
    _grid("grid-alpha-mazes", "59×59 by α", "Text, appendix A.4", _MAZE_ALPHAS, "59", "alpha",
          _SEARCHED),
    Experiment("mazes-201", "Mazes of 201×201", "Text, section 4",
               note="The paper: 74 of its 100 mazes with 2,000 iterations; 20 more have one pixel "
               "wrong and none has more than seven. It does not say from how many models.",
               count_rows=(CountRow("mazes-recall-a0.01", "201", 3, 20, 2000, 50.0,
                                PEAKS["201"]["mazes-recall-a0.01"]),
                        CountRow("mazes-ours", "201", 8, 100, 12_000, 100.0))),
    Experiment("mazes-801", "A maze of 801×801", "Text, section 4, and Figure 19",
               note="The paper solves one. Its text has 20,000 iterations; its caption 10,000, but "
               "as many layers as 20,000 have.",
               count_rows=(CountRow("mazes-recall-a0.01", "801", 1, 1, 10_000, 190.0,
                                    text="one maze"),
                           CountRow("mazes-ours", "801", 1, 3, 150_000, 220.0))),
)  # fmt: skip

EXPERIMENTS: dict[str, Experiment] = {experiment.name: experiment for experiment in _ALL}
"""All tables and figures by name, in the paper's order."""


def experiment(name: str) -> Experiment:
    """The experiment of that name."""
    if name not in EXPERIMENTS:
        raise UnknownName(registry.unknown_name("table or figure", name, tuple(EXPERIMENTS)))
    return EXPERIMENTS[name]
