"""Every table and figure of the paper, as data: its numbers, rows and panels.

>>> EXPERIMENTS["compare-n-zero"].rows[0].paper.text
'90.27 ± 5.95 %'
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from iterant.experiments.measures import (
    Accuracy,
    Cell,
    Changes,
    Measure,
    PeakMeasure,
    Peaks,
    Recovered,
    RecoveryByIndex,
    Solved,
)
from iterant.experiments.models import MODELS, Model
from iterant.experiments.records import Records, TableRow, precisions
from iterant.experiments.statistics import Value, verdict
from iterant.formatting import counted

# The paper's numbers: from its tables of peaks, of accuracies in distribution and of interventions,
# and from its text. Curves, and the grids of width and depth, are pictures there.

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


def paper_cell(measure: Measure, model: str) -> Cell:
    """The paper's number, and its text in tables.

    >>> paper_cell(Peaks("512"), "sums-recall-a1").text
    '97.12 ± 1.88 % at 237'
    """
    value = None
    match measure:
        case Recovered(study):
            if study not in INTERVENTIONS.get(model, {}):
                return Cell()
            steps, height = INTERVENTIONS[model][study]
            first = "–" if steps is None else f"{steps:.2f}"
            return Cell(Value(height), f"{first} ({height:g} %)")
        case Accuracy(which):
            value = IN_DISTRIBUTION.get(model, {}).get(which)
        case Solved(size):
            value = PEAKS.get(size, {}).get(model)
        case Peaks(size, confident) if confident == MODELS[model].confident:
            # Of plain DT the paper's number is that of the most confident iteration.
            value = PEAKS.get(size, {}).get(model)
    return Cell() if value is None else Cell(value, value.text)


# Tables and figures


@dataclass(frozen=True)
class Row:
    """One line of a table: a measure of a model."""

    model: str
    measure: Measure
    name: str = ""
    """Shown instead of the model's label: "m = 30" in a grid of m"""

    @property
    def paper(self) -> Cell:
        """The paper's number."""
        return paper_cell(self.measure, self.model)

    def cells(self, all_records: Records, task: str = "") -> TableRow:
        """Its texts by column; ``task``: named with what is measured."""
        model, records = MODELS[self.model], all_records.of(self.model)
        cell = self.measure.of(records)
        # Some studies are made on the first seeds only; a run that diverged solves nothing.
        is_peak = isinstance(self.measure, PeakMeasure)
        measured = [
            one for one in records if self.measure.of([one]).seeds or (is_peak and one.failed)
        ]
        runs = [one for one in measured if one.is_run]
        converged = [one for one in runs if one.converged]
        text = cell.text
        if isinstance(self.measure, Peaks) and cell.value and cell.value.mean > 0:
            text = cell.value.text  # with the iteration of the peak
        if len(converged) == len(runs):
            filtered = "all" if runs else ""
        else:
            number = self.measure.of(converged).text
            filtered = f"{number} ({len(converged)} of {len(runs)})" if converged else "none"
        seeds = ", ".join(filter(None, (str(cell.seeds), precisions(measured))))
        return {
            "model": self.name or model.ours,
            "measured": task + ", ".join(filter(None, (self.measure.title, cell.tests))),
            "all seeds": text,
            "95 %": "" if cell.value is None else cell.value.interval_text,
            "seeds": seeds if cell.seeds else "not run",
            "converged": filtered,
            "the paper": self.paper.text,
            "beside the paper": "" if model.shortened else verdict(cell.value, self.paper.value),
        }


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
    panels: tuple[Panel, ...] = ()
    note: str = ""
    table: tuple[Row, ...] = ()
    """Its rows where they are not those of its panels"""

    @property
    def anchor(self) -> str:
        """The target of links to its heading in RESULTS.md."""
        return re.sub(r"[^\w\- ]", "", self.title.lower()).replace(" ", "-")

    @property
    def rows(self) -> tuple[Row, ...]:
        """The rows of its table: a measure of every panel, for every model."""
        of_panels = (row for panel in self.panels for row in _rows(panel.measure, panel.models))
        return self.table or tuple(of_panels)

    @property
    def models(self) -> tuple[Model, ...]:
        """The models whose runs its rows need; those of `Solved` are later tests of other runs."""
        keys = [row.model for row in self.rows if not isinstance(row.measure, Solved)]
        return tuple(MODELS[key] for key in dict.fromkeys(keys))

    def make_table(self, records: Records) -> list[TableRow]:
        """Ours beside the paper's, a row for each of `rows`."""
        # Labels repeat between tasks, so rows name the task too.
        tasks = [MODELS[row.model].task for row in self.rows]
        several = len({*tasks}) > 1
        return [
            row.cells(records, f"{task}: " if several else "")
            for row, task in zip(self.rows, tasks, strict=True)
        ]

    def state(self, records: Records) -> str:
        """How much of it is there: ``29 of 30 runs``; ``3 networks`` of later tests."""
        if not self.models:
            tested = (row.measure.of(records.of(row.model)).seeds for row in self.rows)
            return counted(sum(tested), "network")
        runs = [records.runs(model.key)[: model.seeds] for model in self.models]
        text = f"{sum(map(len, runs))} of {sum(model.seeds for model in self.models)} runs"
        older = sum(one.older for some in runs for one in some)
        return text + (f", {older} by an older recipe" if older else "")


def _rows(measure: Measure, models: Sequence[str]) -> tuple[Row, ...]:
    """A row for every model; plain DT also with the exit rule with which the paper shows it."""
    rows: list[Row] = []
    for model in models:
        if isinstance(measure, Peaks) and MODELS[model].confident:
            rows.append(Row(model, replace(measure, confident=True)))
        rows.append(Row(model, measure))
    return tuple(rows)


def _study(
    name: str, title: str, place: str, models: Sequence[str], measure: Measure, note: str = ""
) -> Experiment:
    """A figure of one panel that shows a study."""
    return Experiment(name, title, place, (Panel(title, measure, tuple(models)),), note or PICTURE)


def _grid(
    name: str,
    title: str,
    place: str,
    models: dict[str, str],
    measure: Measure,
    field: str,
    note: str,
) -> Experiment:
    """Peaks by a field of the recipe, and the curves behind them.

    Our own recipe has no value on this axis, so it is a row only.
    """
    keys = tuple(models.values())
    ours = f"{keys[0].partition('-')[0]}-ours"
    names = {} if field == "alpha" else {key: name for name, key in models.items()}
    curves = f"{title.partition(' by ')[0]} by iteration"
    panels = (
        Panel(title, measure, keys, grid=field),
        Panel(curves, measure, keys, names=tuple(models)),
    )
    rows = tuple(Row(key, measure, names.get(key, "")) for key in (*keys, ours))
    return Experiment(name, title, place, panels, note, rows)


SUMS = ("sums-dt-a0", "sums-dt-a1", "sums-recall-a0", "sums-recall-a1", "sums-ff", "sums-ours")
MAZES = ("mazes-dt-a0", "mazes-dt-a0.01", "mazes-recall-a0", "mazes-recall-a0.01", "mazes-ff",
         "mazes-ours")  # fmt: skip
CHESS = ("chess-dt-a0", "chess-dt-a0.5", "chess-recall-a0", "chess-recall-a0.5", "chess-ff",
         "chess-ours")  # fmt: skip
STUDIED_SUMS, STUDIED_MAZES = (
    tuple(key for key in keys if MODELS[key].studies) for keys in (SUMS, MAZES)
)
EASY, HARDER, HARDEST = "600000:700000", "700000:800000", "1000000:1100000"
PICTURE = "The paper gives a picture only; there are no numbers to compare."
CHESS_RECIPE = (
    "Ours have the paper's network, optimizer, loss and order of problems, but 12 of its 120 "
    "epochs, with milestones at 10 and 11, because the whole schedule takes about five hours per "
    "seed on an H200; and other puzzles. Compare them with each other, not with the paper's "
    "numbers. docs/chess.md compares networks that were trained for 70 s each."
)
GRID = (
    "The paper gives a picture only, and the grid is our choice; its number is that of its own "
    "network, from Table 3."
)
SEARCHED = (
    "The paper chose α from this grid; it gives numbers for two of the points, in its tables of "
    "peaks."
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


_ALL = (
    Experiment("fig-arch-loss-ablation", "Prefix sums of 512 bits by iteration", "Figure 3",
               (Panel("512 bits", Peaks("512"), SUMS),)),
    Experiment("fig-mazes-ablation", "Mazes of 59×59 by iteration", "Figure 4",
               (Panel("59×59", Peaks("59"), MAZES),)),
    Experiment("fig-chess", "Chess puzzles 600K–700K by iteration", "Figure 5",
               (Panel("Puzzles 600K–700K", Peaks(EASY), CHESS),), CHESS_RECIPE),
    Experiment("fig-chess-harder", "Harder chess puzzles", "Figure 9",
               (Panel("Puzzles 700K–800K", Peaks(HARDER), CHESS),
                Panel("Puzzles 1.0M–1.1M", Peaks(HARDEST), CHESS)), CHESS_RECIPE),
    Experiment("fig-easy-problems", "Somewhat harder problems: 48 bits and 13×13", "Figure 6",
               (Panel("48 bits", Peaks("48"), SUMS), Panel("13×13", Peaks("13"), MAZES))),
    Experiment("fig-overthinking", "Flipped bits, swapped features, and convergence",
               "Figure 7",
               (Panel("48 bits, one flipped after 50 iterations", RecoveryByIndex(), STUDIED_SUMS),
                Panel("13×13, features swapped after 50 iterations", Recovered("swap"),
                      STUDIED_MAZES),
                Panel("13×13, change of the features", Changes("problems"), STUDIED_MAZES)),
               "The paper gives pictures here; its numbers of the swapped features are those of "
               "Table 7, without errors. Networks that recover from fewer than one flip in twenty "
               "have no line."),
    Experiment("table-prefix-peaks", "Peaks on prefix sums", "Table 3",
               table=(*_rows(Peaks("48"), SUMS), *_rows(Peaks("512"), SUMS))),
    Experiment("table-maze-peaks", "Peaks on mazes", "Table 4",
               table=(*_rows(Peaks("13"), MAZES), *_rows(Peaks("59"), MAZES))),
    Experiment("table-chess-peaks", "Peaks on chess puzzles", "Table 5",
               table=_rows(Peaks(EASY), CHESS), note=CHESS_RECIPE),
    Experiment("table-in-distribution", "Accuracy at the training size", "Table 6",
               table=tuple(Row(key, Accuracy(which)) for key in (*SUMS, *MAZES, *CHESS)
                           for which in ("train", "validation")),
               note="Ours is the accuracy of the tested weights on at most 10,000 training "
               "problems. The paper's validation accuracy of DT with α = 1 repeats its 48-bit "
               "peak."),
    Experiment("table-interventions", "Interventions on mazes of 13×13", "Table 7",
               table=tuple(Row(key, Recovered(study)) for key in STUDIED_MAZES
                           for study in ("clean", "noise", "zeros", "swap")),
               note="Mean iterations until a maze is solved for the first time, counted from the "
               "intervention, with the peak accuracy. The paper gives no errors."),
    _grid("fig-depth", "512 bits by the iterations m of training", "Figure 8, top",
          _DEPTHS, Peaks("512"), "iterations", GRID),
    _grid("fig-width", "512 bits by width", "Figure 8, bottom",
          _WIDTHS, Peaks("512"), "width", GRID),
    Experiment("fig-hard-to-easy", "From 32 bits to the easier 24", "Figure 10",
               (Panel("24 bits", Peaks("24"), SUMS),), PICTURE),
    _study("fig-maze-noise", "13×13, noise on the features after iteration 1",
           "Figure 11", STUDIED_MAZES, Recovered("noise"),
           "The paper gives a picture here; its numbers are those of Table 7, without errors."),
    _study("fig-maze-zeros", "13×13, features zeroed after iteration 50",
           "Figure 12", STUDIED_MAZES, Recovered("zeros after 50"),
           "The paper gives a picture only. Its numbers in Table 7 (`table-interventions`) are of "
           "features zeroed after iteration 1; ours are the same there, because zeros erase the "
           "whole state."),
    _study("fig-maze-moved-end", "13×13, the end moved nearer after iteration 50",
           "Figure 13", STUDIED_MAZES, Recovered("move-end")),
    _study("fig-maze-delta", "Change of the features on random images",
           "Figure 14", STUDIED_MAZES, Changes("random inputs")),
    _study("fig-prefix-noise", "48 bits, noise on the features after iteration 1",
           "Figure 15", STUDIED_SUMS, Recovered("noise")),
    _study("fig-prefix-zeros", "48 bits, features zeroed after iteration 1",
           "Figure 16", STUDIED_SUMS, Recovered("zeros")),
    _study("fig-prefix-delta", "48 bits, change of the features", "Figure 17",
           STUDIED_SUMS, Changes("problems")),
    Experiment("compare-n-zero", "The progressive loss from n = 0 only",
               "Text, section 4 and appendix A.4",
               table=_rows(Peaks("512"), ("sums-n0", "sums-recall-a1", "sums-ours"))),
    Experiment("compare-run-time-weighted", "A loss that grows with the iteration",
               "Text, appendix A.3",
               table=(*_rows(Peaks("512"), ("sums-run-time", "sums-ours")),
                      *_rows(Peaks("33"), ("mazes-run-time", "mazes-ours")),
                      *_rows(Peaks("59"), ("mazes-run-time", "mazes-ours"))),
               note="The paper calls these preliminary, gives no errors for mazes and does not say "
               "of which network nor how the weights grow: ours is DT-Recall, iteration i weighs "
               "i."),
    _grid("grid-alpha-prefix", "512 bits by α", "Text, appendix A.4",
          _ALPHAS, Peaks("512"), "alpha", SEARCHED),
    _grid("grid-alpha-mazes", "59×59 by α", "Text, appendix A.4",
          _MAZE_ALPHAS, Peaks("59"), "alpha", SEARCHED),
    Experiment("mazes-201", "Mazes of 201×201", "Text, section 4",
               note="The paper: 74 of its 100 mazes with 2,000 iterations; 20 more have one pixel "
               "wrong and none has more than seven. It does not say from how many models.",
               table=(Row("mazes-recall-a0.01", Solved("201")),
                      Row("mazes-ours", Solved("201")))),
    Experiment("mazes-801", "A maze of 801×801", "Text, section 4, and Figure 19",
               note="The paper solves one. Its text has 20,000 iterations; its caption 10,000, but "
               "as many layers as 20,000 have.",
               table=(Row("mazes-recall-a0.01", Solved("801")),
                      Row("mazes-ours", Solved("801")))),
)  # fmt: skip

EXPERIMENTS: dict[str, Experiment] = {experiment.name: experiment for experiment in _ALL}
"""All tables and figures by name, in the paper's order."""
