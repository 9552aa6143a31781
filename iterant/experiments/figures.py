"""The figures, from records alone: as in the paper dashed without recall, solid with it.

>>> save_figure(EXPERIMENTS["fig-width"], records, "results/figures")

A line is the mean over all finished seeds, none left out, with a band of one standard error where
there are several; crosses are the paper's peaks, with its errors. Networks without the progressive
loss are lighter, so that print in grey tells all of them apart.

What stands below a figure: how many seeds its lines are means of, and that none was left out.

The authors' own maze run, epoch by epoch, with ours beside it.

Theirs comes from files that they published, kept in ``results/reference-maze-run.json``; ours from
records, and from the first run, which was made before records were kept.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from iterant.draw.plots import Line, Plot, Trace, panels_figure, png, stamp, svg
from iterant.experiments.catalogue import Experiment, Panel
from iterant.experiments.measures import Changes, Indices, Peaks, Recovered, curves_of_all
from iterant.experiments.models import MODELS
from iterant.experiments.paper_numbers import PEAKS
from iterant.experiments.records import Record, Records, as_written
from iterant.experiments.statistics import Value, summary
from iterant.experiments.timed import Timed, setting
from iterant.io import read_result, write_atomic
from iterant.io.files import PathLike, make_folder
from iterant.nets.factory import paper_net

_OF = "Means over all finished runs, none filtered out"
_AT_REST = (
    " A line of ‖Δφ‖ that ends has come to rest: its change is 0, which has no place on the axis."
)


def caption(experiment: Experiment, records: Records) -> str:
    """The line below its figure; panels that do not have the same seeds are named."""
    told: dict[str, list[str]] = {}
    for panel in experiment.panels:
        if not panel.grid:  # whose curves are a panel of their own
            told.setdefault(_seeds(panel, records), []).append(panel.title)
    rest = _AT_REST if any(_rests(panel, records) for panel in experiment.panels) else ""
    rest += "".join(_lost(panel, records) for panel in experiment.panels)
    if len(told) == 1:
        return f"{_OF}: {next(iter(told))}.{rest}"
    parts = [f"{'; '.join(where)}: {seeds}." for seeds, where in told.items()]
    return f"{_OF}. {' '.join(parts)}{rest}"


def caption_by_time(experiment: Experiment, groups: Sequence[Timed]) -> str:
    """The same of networks that had a time each."""
    counts = {
        count
        for group in groups
        for panel in experiment.panels
        for key in panel.models
        if (count := len(curves_of_all(panel.measure, group.records.of(key))))
    }
    least, most = min(counts), max(counts)
    return f"{_OF}: {_number(most) if least == most else f'{least} to {most} seeds'} of each."


def _rests(panel: Panel, records: Records) -> bool:
    """Whether all seeds of a model come to a change of nothing."""
    if not isinstance(panel.measure, Changes):
        return False
    drawn = [panel.measure.curves(records.of(key)) for key in panel.models]
    return any(curves and not any(curve[-1] for curve in curves) for curves in drawn)


def _lost(panel: Panel, records: Records) -> str:
    """Of which models features overflow before the end: a mean falls where its largest is gone."""
    if not isinstance(panel.measure, Changes):
        return ""
    told = []
    for key in panel.models:
        ends = panel.measure.features(records.of(key))
        if lost := sum(end.get("broken", 0) for end in ends):
            told.append(f"{lost} of {sum(sum(end.values()) for end in ends)} of {_name(key)}")
    if not told:
        return ""
    return f" Problems whose features overflow are left out from there on: {_list(told)}."


def _seeds(panel: Panel, records: Records) -> str:
    """Of every model of a panel, those with as many together."""
    counted: dict[int, list[str]] = {}
    names = panel.names or tuple(map(_name, panel.models))
    for key, name in zip(panel.models, names, strict=True):
        count = len(curves_of_all(panel.measure, records.of(key)))
        counted.setdefault(count, []).append(name)
    missing = counted.pop(0, [])
    if not counted:
        return "not run yet"
    alike = len(counted) == 1 and not missing
    parts = [
        f"{_number(count)} of {'each' if alike else _list(counted[count])}"
        for count in sorted(counted, reverse=True)
    ]
    return "; ".join([*parts, *([f"not run: {_list(missing)}"] if missing else [])])


def _number(count: int) -> str:
    return "one seed" if count == 1 else f"{count} seeds"


def _name(key: str) -> str:
    model = MODELS[key]
    none = model.alpha is None or model.label == "FF"
    return model.label if none else f"{model.label} α = {model.alpha:g}"


def _list(names: Sequence[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


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


NAME = "reference-maze-run"
MODEL = "mazes-recall-a0.01"
_THEIRS = 6
"""The authors' colour: black"""
_SIGNS = ("o", "s", "^", "D", "v")
"""Of our seeds, which have a stroke each, too: print has no colours"""
_FIRST = "train-mazes-paper-h200-s0-by-epoch"
"""Our first run, seed 0, epoch by epoch"""
_FIRST_PRECISION = "fp16"

_SERIES = ("loss", "validation accuracy (%)")
"""What the authors' logs have of every epoch"""

_LARGER, _SIZE = "33x33 by iteration (%)", "33"
"""The one test of larger mazes in the authors' files, and what records call its size"""

History = list[dict[str, Any]]
"""An epoch a row: its training loss and, where there was one, its validation"""


@dataclass(frozen=True)
class Reference:
    """What the authors' files say, and our first run."""

    theirs: dict[str, Any]
    first: History

    @classmethod
    def read(cls, folder: PathLike) -> Reference | None:
        """From a folder of results; None where the authors' run is not there."""
        theirs, ours = (Path(folder) / f"{name}.json" for name in (NAME, _FIRST))
        if not theirs.exists():
            return None
        with as_written(ours, "scripts/train-and-test"):
            first = read_result(ours)["figures"]["history"] if ours.exists() else []
            _pairs(first, "validation", 100.0)
        with as_written(theirs, "files of the authors' run"):
            read = read_result(theirs)["figures"]
            for name in _SERIES:
                math.fsum(read["by epoch"][name])
            math.fsum(value for _, value in _by_iteration(read))
        return cls(read, first)

    def ours(self, records: Records) -> dict[str, History]:
        """Every run of ours by its name."""
        found = {
            f"ours, seed {record.seed}": record.figures["training"].get("history", [])
            for record in records.of(MODEL)
        }
        if self.first and "ours, seed 0" not in found:
            found = {"ours, seed 0, in two legs": self.first, **found}
        return found

    def larger(self, records: Records) -> dict[str, list[tuple[int, float]]]:
        """Per cent of 33×33 solved by ours after every iteration, run by run."""
        return {
            f"ours, seed {record.seed}": [
                (step, 100 * count / test["problems"])
                for step, count in enumerate(test["solved"], start=1)
            ]
            for record in records.of(MODEL)
            if (test := record.tests.get(_SIZE))
        }

    def section(self, records: Records, figures: str) -> str:
        """As Markdown; ``figures``: where the picture is."""
        held, picture = self.theirs["by epoch"]["validation accuracy (%)"], f"{figures}/{NAME}"
        about = (
            "One run of DT-Recall, α = 0.01, whose logs they published; ours beside it. Validated "
            "after every epoch; the table has every tenth and the one whose weights are tested, "
            "the first of the best. At 33×33 they looked after 30 to 40 iterations only; of ours, "
            "which went on, the peak is last."
        )
        theirs, larger = _by_iteration(self.theirs), self.larger(records)
        trained_in = {f"ours, seed {one.seed}": one.precision for one in records.of(MODEL)}
        looked = (theirs[0][0], theirs[-1][0])
        lines = [
            "## The authors' own maze run", "", about, "",
            f"[![Loss, validation and 33×33]({picture}.png)]({picture}.svg)", "",
            "| run | precision | validated at epoch: % | 33×33 after iterations: % |",
            "| --- | --- | --- | --- |",
            _epoch_line("theirs | fp32",
                        _excerpt([(float(e), value) for e, value in enumerate(held, 1)]),
                  [theirs[0], theirs[-1]]),
        ]  # fmt: skip
        for name, history in self.ours(records).items():
            curve = larger.get(name, [])
            peak = [max(curve, key=lambda point: point[1])] if curve else []
            points = [point for point in curve if point[0] in looked] + peak
            label = f"{name} | {trained_in.get(name, _FIRST_PRECISION)}"
            lines.append(_epoch_line(label, _excerpt(_pairs(history, "validation", 100.0)), points))
        return "\n".join([*lines, ""])

    def save(self, records: Records, folder: PathLike) -> list[Path]:
        """Draw it as PNG and SVG: the loss and the validation of every epoch."""
        return save_panels(self.panels(records), NAME, folder, regime=None)

    def panels(self, records: Records) -> list[tuple[Plot, list[Line]]]:
        """What its picture shows."""
        theirs = self.theirs["by epoch"]
        epochs = [float(epoch) for epoch in range(1, len(theirs["loss"]) + 1)]
        panels = []
        for key, plot, scale in (
            ("loss", Plot("loss in training", "epoch", "loss", log=True, regime_axis=""), 1.0),
            ("validation", Plot("9×9 mazes held out, by epoch", "epoch", "problems solved (%)",
                                share=True, regime_axis=""), 100.0),
        ):  # fmt: skip
            known = theirs["loss" if key == "loss" else "validation accuracy (%)"]
            lines = [Line(Trace(epochs, known), "the authors' run", colour=_THEIRS)]
            for place, (name, history) in enumerate(self.ours(records).items()):
                trace = _trace(_pairs(history, key, scale))
                sign = _SIGNS[place % len(_SIGNS)] if key == "validation" else ""
                lines.append(Line(trace, name, colour=place, stroke=place + 1, marker=sign))
            panels.append((plot, lines))
        return [*panels, self._larger_panel(records)]

    def _larger_panel(self, records: Records) -> tuple[Plot, list[Line]]:
        """33×33 after the iterations that the authors looked at."""
        theirs, larger = _by_iteration(self.theirs), self.larger(records)
        steps = {step for step, _ in theirs}
        lines = [Line(_trace(theirs), "the authors' run", colour=_THEIRS)]
        for place, name in enumerate(self.ours(records)):
            if points := [point for point in larger.get(name, []) if point[0] in steps]:
                lines.append(Line(_trace(points), name, colour=place, stroke=place + 1))
        plot = Plot("33×33, by iteration", "iterations", "problems solved (%)", regime_axis="")
        return plot, lines


def _by_iteration(theirs: dict[str, Any]) -> list[tuple[int, float]]:
    """Iterations and per cent of 33×33 in the authors' files."""
    return sorted((int(step), value) for step, value in theirs[_LARGER].items())


def _excerpt(validated: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Every tenth epoch, and the first of the best, whose weights are tested."""
    best = max(validated, key=lambda point: point[1], default=None)
    return [point for point in validated if point[0] % 10 == 0 or point == best]


def _trace(pairs: Sequence[tuple[float, float]]) -> Trace:
    return Trace([x for x, _ in pairs], [y for _, y in pairs])


def _epoch_line(name: str, *cells: Sequence[tuple[float, float]]) -> str:
    """A row of the table."""
    told = [", ".join(f"{x:.0f}: {y:.2f}" for x, y in cell) for cell in cells]
    return f"| {' | '.join([name, *told])} |"


def _pairs(history: History, key: str, scale: float) -> list[tuple[float, float]]:
    """Epochs and values, where there are any."""
    return [(float(row["epoch"]), scale * row[key]) for row in history if row.get(key) is not None]
