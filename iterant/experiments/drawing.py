"""The figures, from records alone: as in the paper dashed without recall, solid with it.

>>> save_figure(EXPERIMENTS["fig-width"], records, "results/figures")

A line is the mean over all finished seeds, none left out, with a band of one standard error where
there are several; crosses are the paper's peaks, with its errors. Networks without the progressive
loss are lighter, so that print in grey tells all of them apart.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from iterant.draw.lines import Line, Plot, Trace, panels_figure, png, stamp, svg
from iterant.experiments.layout import Experiment, Panel
from iterant.experiments.measures import Changes, Indices, Peaks, Recovered, curves_of_all
from iterant.experiments.models import MODELS
from iterant.experiments.paper import PEAKS
from iterant.experiments.records import Record, Records
from iterant.experiments.statistics import Value, summary
from iterant.experiments.timed import Timed, setting
from iterant.nets.catalogue import paper_net
from iterant.runs import write_atomic
from iterant.runs.files import PathLike, make_folder

REGIME = 30
"""Iterations in training, in all of the paper's figures."""

ENOUGH_RECOVER = 5.0
"""Per cent of flipped bits from which a mean over those recovered from is drawn."""

ALL_RECOVER = 99.5
"""Per cent from which nothing is said of the others."""

BY_TIME = "by-time"
"""How names of pictures end that show networks which had a time each."""

_LOOKS = {"DT": (0, 4, 1), "DT-Recall": (1, 5, 0), "FF": (2, 2, 3), "ours": (3, 3, 2)}
"""By family: its colour, the lighter one without the progressive loss, and its stroke"""
_GRID, _PAPER = 6, 5
"""Colours of a grid's points, which lines beside them do not have"""

_OTHER = 4
"""The stroke of those that are not the main ones."""


Panels = list[tuple[Plot, list[Line]]]


def save_figure(experiment: Experiment, records: Records, folder: PathLike) -> list[Path]:
    """Write the figure as PNG and SVG; nothing where no panel has a line."""
    return save_panels(figure_panels(experiment, records), experiment.name, folder)


def save_by_time(experiment: Experiment, groups: Sequence[Timed], folder: PathLike) -> list[Path]:
    """The same of networks that had a time each, in a picture of its own."""
    name = f"{experiment.name}-{BY_TIME}"
    return save_panels(by_time_panels(experiment, groups), name, folder)


def figure_panels(experiment: Experiment, records: Records) -> Panels:
    """What the figure shows."""
    return [(_plot(panel), _lines(panel, records)) for panel in experiment.panels]


def by_time_panels(experiment: Experiment, groups: Sequence[Timed]) -> Panels:
    """What the picture of networks that had a time each shows."""
    panels: Panels = []
    for panel in experiment.panels:
        sets = [(group.told, _timed_lines(panel, group)) for group in groups]
        (told, first), *others = [one for one in sets if one[1]] or [("", [])]
        # As far as the networks with the least time go; the others are strokes of another kind.
        reach = max((line.trace.x[-1] for line in first), default=0.0)
        more = [replace(_until(line, reach), stroke=_OTHER) for _, some in others for line in some]
        least = [replace(line, label=line.label.replace(f", {told}", "")) for line in first]
        plot = _plot(replace(panel, title=f"{panel.title}, {told} of training"))
        panels.append((plot, least + more))
    return panels


def _timed_lines(panel: Panel, group: Timed) -> list[Line]:
    """The lines of networks of one time; with their settings where these differ."""
    if not group.mixed:
        return _lines(panel, group.records, group.told)
    lines = []
    for key in panel.models:
        mine = Records(group.records.of(key))
        for line in _lines(panel, mine, group.told):
            told = "" if line.marker else f", {setting(mine.all[0])}"
            lines.append(replace(line, label=line.label + told))
    return lines


def _until(line: Line, reach: float) -> Line:
    kept = sum(x <= reach for x in line.trace.x)
    trace = Trace(line.trace.x[:kept], line.trace.y[:kept])
    return replace(line, trace=trace, spread=line.spread[:kept])


def save_panels(
    panels: Sequence[tuple[Plot, Sequence[Line]]],
    name: str,
    folder: PathLike,
    regime: int | None = REGIME,
) -> list[Path]:
    """Write them as PNG, and as SVG with a stamp of their numbers; nothing without a line."""
    if not any(lines for _, lines in panels):
        return []
    figure = panels_figure(panels, regime=regime)
    target, made = make_folder(folder), []
    for ending, content in ((".png", png(figure)), (".svg", svg(figure, stamp(panels)))):
        write_atomic(target / f"{name}{ending}", content)
        made.append(target / f"{name}{ending}")
    return made


def has_figure(experiment: Experiment, *records: Records) -> bool:
    """Whether there is something to draw of any of these."""
    return any(_lines(panel, some) for panel in experiment.panels for some in records)


def _plot(panel: Panel) -> Plot:
    measure = panel.measure
    if panel.grid:
        label = {"iterations": "m", "alpha": "α"}.get(panel.grid, panel.grid)
        return Plot(panel.title, label, "peak, problems solved (%)", share=True, regime_axis="",
                    ticks=_even(panel))  # fmt: skip
    if isinstance(measure, Changes):
        return Plot(panel.title, "iterations", "mean ‖Δφ‖", log=True)
    if isinstance(measure, Indices):
        return Plot(panel.title, "index of the flipped bit", "iterations to recover",
                    regime_axis="")  # fmt: skip
    if panel.names and len({MODELS[key].recipe().iterations for key in panel.models}) > 1:
        return Plot(panel.title, "iterations", "problems solved (%)", share=True, regime_axis="")
    begun = 0
    if isinstance(measure, Recovered):
        begun = {"noise": 1, "zeros": 1}.get(measure.study, 50)
    label = f"iterations since iteration {begun}" if begun else "iterations"
    return Plot(panel.title, label, "problems solved (%)", share=True, begun=begun)


def _lines(panel: Panel, records: Records, trained: str = "") -> list[Line]:
    """What the models of a panel did, and the paper's peaks of those that have a line."""
    if panel.grid:
        return _grid_lines(panel, records)
    lines = []
    for place, key in enumerate(panel.models):
        measure, mine = panel.measure, records.of(key)
        drawn = [_line(key, measure, mine, trained)]
        if panel.names:
            name = panel.names[place]
            # Their errors stand at the points beside them; bands upon bands would hide the lines.
            lines += [
                replace(one, label=name, colour=place, stroke=place, spread=())
                for one in drawn
                if one
            ]
            continue
        if isinstance(measure, Peaks) and MODELS[key].confident:
            # The paper shows plain DT by its most confident iteration; without it stands behind.
            sure = _line(key, replace(measure, confident=True), mine, trained)
            drawn = [sure, *(replace(line, thin=True, spread=()) for line in drawn if line)]
        lines += [line for line in drawn if line is not None]
        if isinstance(measure, Peaks) and any(drawn):
            lines += _their_peak(key, measure.size, trained)
    return lines


def _line(key: str, measure: Any, records: Sequence[Record], trained: str) -> Line | None:
    """The mean of a model's curves; None where there is nothing to show."""
    curves = curves_of_all(measure, records)
    # Features beyond all numbers have no change any more, and the others alone would be less.
    xs, means, errors = _mean(curves, whole=isinstance(measure, Changes))
    if all(map(math.isnan, means)):
        return None
    label = _label(key, getattr(measure, "confident", False)) + (f", {trained}" if trained else "")
    if isinstance(measure, Indices):
        share = measure.recovered(records)
        if share is None or share.mean < ENOUGH_RECOVER:
            return None
        # An entry of its own only where it says something: other panels have the same lines.
        label += "" if share.mean >= ALL_RECOVER else f" ({share.mean:.0f} % recovered)"
        xs = [x - 1 for x in xs]  # indices begin at 0
    # A band on a logarithmic axis would reach below nothing.
    spread = () if isinstance(measure, Changes) else errors
    return Line(Trace(xs, means), label, **_looks(key), spread=spread)


def _their_peak(key: str, size: str, trained: str) -> list[Line]:
    value, alpha = PEAKS.get(size, {}).get(key), MODELS[key].alpha
    if value is None or value.step is None:
        return []
    sort = "α > 0" if alpha else "α = 0"
    label = f"the paper's peak, {sort}" + (", on its puzzles" if trained else "")
    spread = () if value.error is None else (value.error,)
    point = Trace([value.step], [value.mean])
    return [Line(point, label, marker="+" if alpha else "x", spread=spread, **_looks(key))]


def _even(panel: Panel) -> tuple[str, ...]:
    """What stands at even distances on the axis of a grid, where some are very close."""
    if panel.grid != "alpha":
        return ()
    return tuple(f"{MODELS[key].alpha:g}" for key in panel.models)


def _grid_lines(panel: Panel, records: Records) -> list[Line]:
    """Peaks against a field of the recipe, and the paper's where it gives any."""
    found: list[tuple[float, float]] = []
    spread: list[tuple[float, float]] = []
    theirs: list[tuple[float, Value]] = []
    for number, key in enumerate(panel.models):
        model = MODELS[key]
        recipe = model.recipe()
        field = number if _even(panel) else getattr(recipe, panel.grid)
        place = paper_net(model.task).width if field is None else field
        cell = panel.measure.of(records.of(key))
        if cell.every is not None:
            found.append((place, cell.every.mean))
            spread.append((place, cell.every.error or 0.0))
        if isinstance(panel.measure, Peaks) and key in PEAKS.get(panel.measure.size, {}):
            theirs.append((place, PEAKS[panel.measure.size][key]))
    if not found:
        return []
    name = "mean over seeds ± standard error"
    lines = [Line(_points(found), name, colour=_GRID),
             Line(_points(found), name, colour=_GRID, marker="o",
                  spread=_points(spread).y)]  # fmt: skip
    if theirs:
        points = _points([(place, value.mean) for place, value in theirs])
        errors = _points([(place, value.error or 0.0) for place, value in theirs])
        lines.append(Line(points, "the paper's peak", colour=_PAPER, marker="x", spread=errors.y))
    return lines


def _points(pairs: Sequence[tuple[float, float]]) -> Trace:
    ordered = sorted(pairs)
    return Trace([x for x, _ in ordered], [y for _, y in ordered])


def _mean(
    curves: list[list[float]], *, whole: bool = False
) -> tuple[list[float], list[float], list[float]]:
    """Steps from 1, the mean and its standard error; one seed has no error.

    Gaps are left out seed by seed; ``whole``: there is no mean where one has a gap.
    """
    means, errors = [], []
    for column in zip(*curves, strict=False):
        known = [value for value in column if not math.isnan(value)]
        found = summary(known if not whole or len(known) == len(column) else [])
        means.append(float("nan") if found is None else found.mean)
        errors.append(0.0 if found is None or found.error is None else found.error)
    steps = [float(step) for step in range(1, len(means) + 1)]
    return steps, means, errors if any(errors) else []


def _label(key: str, confident: bool) -> str:
    model = MODELS[key]
    name = model.label + (", most confident" if confident else "")
    return name if model.alpha is None or model.label == "FF" else f"{name}, α = {model.alpha:g}"


def _looks(key: str) -> dict[str, Any]:
    model = MODELS[key]
    with_it, without, stroke = _LOOKS.get(model.label, (6, 6, 0))
    return {"colour": without if model.alpha == 0 else with_it, "stroke": stroke}
