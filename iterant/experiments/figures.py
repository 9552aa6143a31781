"""The figures, from records alone.

>>> save_pictures(EXPERIMENTS["fig-width"], records, "results/figures")

A line is the mean over all finished seeds, none left out, with a band of one standard error where
there are several; crosses are the paper's peaks, with its errors. As in the paper, networks without
recall are dashed and those with it solid; without the progressive loss they are lighter, so that
all can be distinguished in greyscale.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

from iterant.draw.figure import write_figure
from iterant.draw.plots import (
    HeatMap,
    Line,
    Panels,
    Plot,
    Trace,
    heat_maps_figure,
    panels_figure,
    stamp,
)
from iterant.experiments.catalogue import Experiment, Panel, paper_cell
from iterant.experiments.measures import Changes, Measure, Peaks, Recovered, RecoveryByIndex
from iterant.experiments.models import MODELS
from iterant.experiments.records import Record, Records
from iterant.experiments.shifts import (
    CELLS,
    LOOPS,
    STARTS,
    MazeExperiment,
    Results,
    any_path,
    network_title,
)
from iterant.experiments.statistics import Value, mean_of
from iterant.io.files import PathLike, make_folder
from iterant.nets import paper_net

REGIME = 30
"""Iterations in training, in all of the paper's figures."""

LEAST_RECOVERED, ALL_RECOVERED = 0.05, 0.995
"""Shares of flipped bits recovered from: below the first no line is drawn; from the second on its
label does not give the share."""

_STYLES = {"DT": (0, 4, 1), "DT-Recall": (1, 5, 0), "FF": (2, 2, 3), "ours": (3, 3, 2)}
"""By label: colour, the lighter colour for α = 0, line style"""
_GRID, _PAPER = 6, 5
"""Colours of our and the paper's points in a grid; no other line has them."""


def save_pictures(
    experiment: Experiment | MazeExperiment, records: Records, folder: PathLike
) -> list[Path]:
    """Write its pictures as PNG, and as SVG with a hash of their numbers."""
    paths = []
    for name, content in pictures(experiment, records).items():
        if isinstance(experiment, MazeExperiment):
            figure = heat_maps_figure(content)
        else:
            figure = panels_figure(content, regime=REGIME)
        paths += [
            write_figure(figure, make_folder(folder) / f"{name}{ending}", about=stamp(content))
            for ending in (".png", ".svg")
        ]
    return paths


def pictures(experiment: Experiment | MazeExperiment, records: Records) -> dict[str, Any]:
    """Panels, or heat maps, by file name; {} where there is nothing to draw."""
    if isinstance(experiment, MazeExperiment):
        results = experiment.results(records)
        maps = {model: heat_maps(model, tests) for model, tests in results.items()}
        # A file name cannot leave the folder, whatever a record calls its model.
        return {re.sub(r"[^\w.-]", "_", f"{experiment.name}-{model}"): pair
                for model, pair in maps.items() if pair}  # fmt: skip
    panels = figure_panels(experiment, records)
    return {experiment.name: panels} if any(lines for _, lines in panels) else {}


def heat_maps(model: str, results: Results) -> list[HeatMap]:
    """One network on the grid, a map for each kind of start; [] if it was not tested there."""
    means = {
        CELLS[name]: fmean(map(any_path, tests)) for name, tests in results.items() if name in CELLS
    }
    sizes = sorted({n for n, _, _ in means})
    return [
        HeatMap(f"{network_title(model)}, {about}", "size n", "loops p",
                [str(n) for n in sizes], [f"{p:g}" for p in LOOPS],
                [[means.get((n, p, start), math.nan) for n in sizes] for p in LOOPS])
        for start, about in STARTS.items() if means
    ]  # fmt: skip


def figure_panels(experiment: Experiment, records: Records) -> Panels:
    """The panels of the figure with their lines."""
    return [(_plot(panel), lines_of(panel, records)) for panel in experiment.panels]


def _plot(panel: Panel) -> Plot:
    measure, solved = panel.measure, "problems solved (%)"
    if panel.grid:
        label = {"iterations": "m", "alpha": "α"}.get(panel.grid, panel.grid)
        # Some values of α are very close: their points are at even distances.
        values = panel.models if panel.grid == "alpha" else ()
        ticks = tuple(f"{MODELS[key].alpha:g}" for key in values)
        return Plot(panel.title, label, f"peak, {solved}", share=True, shade=False, ticks=ticks)
    if isinstance(measure, Changes):
        return Plot(panel.title, "iterations", "mean ‖Δφ‖", log=True)
    if isinstance(measure, RecoveryByIndex):
        label = "index of the flipped bit"
        return Plot(panel.title, label, "iterations to recover", shade=False)
    if isinstance(measure, Recovered):
        studies = (study for key in panel.models for study in MODELS[key].studies)
        start = next(study.iteration for study in studies if study.name == measure.key) or 0
        label = f"iterations since iteration {start}"
        return Plot(panel.title, label, solved, share=True, offset=start)
    # Lines that were trained with different numbers of iterations have no common regime.
    one_regime = len({MODELS[key].recipe.iterations for key in panel.models}) == 1
    return Plot(panel.title, "iterations", solved, share=True, shade=one_regime or not panel.names)


def lines_of(panel: Panel, records: Records) -> list[Line]:
    """The lines of a panel's models, and the paper's peaks of those that have one."""
    if panel.grid:
        return _grid_lines(panel, records)
    lines: list[Line | None] = []
    measure = panel.measure
    for index, key in enumerate(panel.models):
        runs = records.of(key)
        line = _line(key, measure, runs)
        if panel.names:
            # Errors are at the points of the panel beside it; bands would hide the lines.
            lines += [line and replace(line, label=panel.names[index], colour=index, stroke=index,
                                       spread=())]  # fmt: skip
            continue
        model_lines = [line]
        if isinstance(measure, Peaks) and MODELS[key].confident:
            # The paper shows plain DT at its most confident iteration; without is a thin line.
            confident = _line(key, replace(measure, confident=True), runs)
            model_lines = [confident, line and replace(line, thin=True, spread=())]
        lines += model_lines
        if isinstance(measure, Peaks) and any(model_lines):
            lines += _paper_peak(key, measure)
    return [line for line in lines if line is not None]


def _line(key: str, measure: Measure, records: Sequence[Record]) -> Line | None:
    """The mean of a model's curves; None where there is nothing to show."""
    # ‖Δφ‖ needs every seed: where one overflows, the mean of the others would be too low.
    steps, means, errors = _mean(measure.curves(records), whole=isinstance(measure, Changes))
    if all(map(math.isnan, means)):
        return None
    model = MODELS[key]
    label = model.label + (", most confident" if getattr(measure, "confident", False) else "")
    if model.alpha is not None and model.label != "FF":
        label += f", α = {model.alpha:g}"
    label += f", {model.shortened}" if model.shortened else ""
    if isinstance(measure, RecoveryByIndex):
        share = measure.mean(records, "recovered")
        if share is None or share.mean < LEAST_RECOVERED:
            return None
        # The same label as in other panels where nearly all recover: one entry in the legend.
        label += "" if share.mean >= ALL_RECOVERED else f" ({100 * share.mean:.0f} % recovered)"
        steps = [step - 1 for step in steps]  # indices start at 0
    # A band on a logarithmic axis would reach below 0.
    spread = () if isinstance(measure, Changes) else errors
    return Line(Trace(steps, means), label, **style_of(key), spread=spread)


def _paper_peak(key: str, measure: Peaks) -> list[Line]:
    model = MODELS[key]
    value = paper_cell(replace(measure, confident=model.confident), key).value
    alpha = model.alpha
    if value is None or value.step is None or model.shortened:
        return []
    label = f"the paper's peak, {'α > 0' if alpha else 'α = 0'}"
    spread = () if value.error is None else (value.error,)
    point = Trace([value.step], [value.mean])
    return [Line(point, label, marker="+" if alpha else "x", spread=spread, **style_of(key))]


def _grid_lines(panel: Panel, records: Records) -> list[Line]:
    """Peaks by a field of the recipe, and the paper's where it gives any."""
    ours: dict[float, Value] = {}  # by x
    paper: dict[float, Value] = {}
    for index, key in enumerate(panel.models):
        model = MODELS[key]
        field = index if panel.grid == "alpha" else getattr(model.recipe, panel.grid)
        x = paper_net(model.task).width if field is None else field
        if value := panel.measure.of(records.of(key)).value:
            ours[x] = value
        if value := paper_cell(panel.measure, key).value:
            paper[x] = value

    def line(values: dict[float, Value], label: str, colour: int, marker: str = "") -> Line:
        xs = sorted(values)
        errors = [values[x].error or 0.0 for x in xs]
        trace = Trace(xs, [values[x].mean for x in xs])
        return Line(trace, label, colour, marker=marker, spread=errors if marker else ())

    name = "mean over seeds ± standard error"
    lines = [line(ours, name, _GRID), line(ours, name, _GRID, "o")] if ours else []
    return lines + ([line(paper, "the paper's peak", _PAPER, "x")] if ours and paper else [])


def _mean(
    curves: list[list[float]], *, whole: bool = False
) -> tuple[list[float], list[float], list[float]]:
    """Steps from 1, means and standard errors ([] for one seed).

    The mean is over the seeds that are not NaN; with ``whole`` it is NaN where any seed is.
    """
    means, errors = [], []
    for column in zip(*curves, strict=False):
        known = [value for value in column if not math.isnan(value)]
        mean = mean_of(known if not whole or len(known) == len(column) else [])
        means.append(float("nan") if mean is None else mean.mean)
        errors.append(0.0 if mean is None or mean.error is None else mean.error)
    steps = [float(step) for step in range(1, len(means) + 1)]
    return steps, means, errors if any(errors) else []


def style_of(key: str) -> dict[str, Any]:
    """Colour and stroke of a model's line."""
    model = MODELS[key]
    progressive, without, stroke = _STYLES.get(model.label, (6, 6, 0))
    return {"colour": without if model.alpha == 0 else progressive, "stroke": stroke}
