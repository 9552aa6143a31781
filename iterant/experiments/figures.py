"""The figures and their captions, from records alone.

>>> save_figure(EXPERIMENTS["fig-width"], records, "results/figures")

A line is the mean over all finished seeds, none left out, with a band of one standard error where
there are several; crosses are the paper's peaks, with its errors. As in the paper, networks without
recall are dashed and those with it solid; without the progressive loss they are lighter, so that
all can be distinguished in greyscale.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from iterant.draw.figure import write_figure
from iterant.draw.plots import Line, Plot, Trace, panels_figure, stamp
from iterant.errors import RunError
from iterant.experiments.catalogue import Experiment, Panel
from iterant.experiments.measures import Changes, Indices, Measure, Peaks, Recovered, summary
from iterant.experiments.models import MODELS
from iterant.experiments.paper_numbers import PEAKS
from iterant.experiments.records import Record, Records, Timed
from iterant.io import read_result
from iterant.io.files import PathLike, make_folder, quoted
from iterant.nets import paper_net

CAPTION = "Means over all finished runs, none filtered out; the table has the numbers of seeds."
"""The line below a figure."""
CHANGES_CAPTION = (
    " A line of ‖Δφ‖ ends where its features come to rest, since 0 has no place on the axis, or "
    "where those of a seed overflow."
)


def caption(experiment: Experiment) -> str:
    """The text below a figure."""
    changes = any(isinstance(panel.measure, Changes) for panel in experiment.panels)
    return CAPTION + (CHANGES_CAPTION if changes else "")


REGIME = 30
"""Iterations in training, in all of the paper's figures."""

LEAST_RECOVERED, ALL_RECOVERED = 0.05, 0.995
"""Share of flipped bits recovered: least for a line, and from which its label is plain."""

BY_TIME = "by-time"
"""Ends the names of figures of networks trained for a time."""

_STYLES = {"DT": (0, 4, 1), "DT-Recall": (1, 5, 0), "FF": (2, 2, 3), "ours": (3, 3, 2)}
"""By family: colour, the lighter one without the progressive loss, and stroke"""
_GRID, _PAPER = 6, 5
"""Colours of a grid's points, which lines beside them do not have"""
_OTHER = 4
"""The stroke of lines with more training time."""

Panels = list[tuple[Plot, list[Line]]]


def save_figure(experiment: Experiment, records: Records, folder: PathLike) -> list[Path]:
    """Write the figure as PNG and SVG; nothing where no panel has a line."""
    return save_panels(figure_panels(experiment, records), experiment.name, folder)


def save_timed(experiment: Experiment, records: Records, folder: PathLike) -> list[Path]:
    """The same for networks trained for a time."""
    return save_panels(timed_panels(experiment, records), f"{experiment.name}-{BY_TIME}", folder)


def save_panels(
    panels: Sequence[tuple[Plot, Sequence[Line]]],
    name: str,
    folder: PathLike,
    regime: int | None = REGIME,
) -> list[Path]:
    """Write panels as PNG, and as SVG with a stamp of their numbers; nothing without a line."""
    if not any(lines for _, lines in panels):
        return []
    figure, target = panels_figure(panels, regime=regime), make_folder(folder)
    return [
        write_figure(figure, target / f"{name}{ending}", about=stamp(panels))
        for ending in (".png", ".svg")
    ]


def figure_panels(experiment: Experiment, records: Records) -> Panels:
    """The panels of the figure."""
    return [(_plot(panel), lines_of(panel, records)) for panel in experiment.panels]


def has_figure(experiment: Experiment, *records: Records) -> bool:
    """Whether there is something to draw of any of these."""
    return any(lines_of(panel, some) for panel in experiment.panels for some in records)


def timed_panels(experiment: Experiment, records: Records) -> Panels:
    """The panels of the figure of networks trained for a time."""
    panels: Panels = []
    for panel in experiment.panels:
        groups = [(group.time, _timed_lines(panel, group)) for group in records.timed]
        (time, first), *others = [group for group in groups if group[1]] or [("", [])]
        # The axis ends where the networks with the least time do; others have another stroke.
        reach = max((line.trace.x[-1] for line in first), default=0.0)
        lines = [replace(line, label=line.label.replace(f", {time}", "")) for line in first]
        for line in (line for _, some in others for line in some):
            length = sum(x <= reach for x in line.trace.x)
            trace = Trace(line.trace.x[:length], line.trace.y[:length])
            lines.append(replace(line, trace=trace, spread=line.spread[:length], stroke=_OTHER))
        panels.append((_plot(replace(panel, title=f"{panel.title}, {time} of training")), lines))
    return panels


def _timed_lines(panel: Panel, group: Timed) -> list[Line]:
    """Lines of networks trained for one time, with their settings where these differ."""
    if not group.mixed:
        return lines_of(panel, group.records, group.time)
    lines = []
    for key in panel.models:
        mine = Records(group.records.of(key))
        for line in lines_of(panel, mine, group.time):
            setting = "" if line.marker else f", {mine.all[0].setting}"
            lines.append(replace(line, label=line.label + setting))
    return lines


def _plot(panel: Panel) -> Plot:
    measure = panel.measure
    if panel.grid:
        label = {"iterations": "m", "alpha": "α"}.get(panel.grid, panel.grid)
        return Plot(panel.title, label, "peak, problems solved (%)", share=True, shade=False,
                    ticks=_even_ticks(panel))  # fmt: skip
    if isinstance(measure, Changes):
        return Plot(panel.title, "iterations", "mean ‖Δφ‖", log=True)
    if isinstance(measure, Indices):
        return Plot(panel.title, "index of the flipped bit", "iterations to recover",
                    shade=False)  # fmt: skip
    if panel.names and len({MODELS[key].recipe().iterations for key in panel.models}) > 1:
        return Plot(panel.title, "iterations", "problems solved (%)", share=True, shade=False)
    start = 0
    if isinstance(measure, Recovered):
        start = {"noise": 1, "zeros": 1}.get(measure.study, 50)
    label = f"iterations since iteration {start}" if start else "iterations"
    return Plot(panel.title, label, "problems solved (%)", share=True, begun=start)


def lines_of(panel: Panel, records: Records, time: str = "") -> list[Line]:
    """The lines of a panel's models, and the paper's peaks of those that have one."""
    if panel.grid:
        return _grid_lines(panel, records)
    lines: list[Line | None] = []
    measure = panel.measure
    for place, key in enumerate(panel.models):
        runs = records.of(key)
        line = _line(key, measure, runs, time)
        if panel.names:
            # Errors are at the points of the panel beside it; bands would hide the lines.
            lines += [line and replace(line, label=panel.names[place], colour=place, stroke=place,
                                       spread=())]  # fmt: skip
            continue
        drawn = [line]
        if isinstance(measure, Peaks) and MODELS[key].confident:
            # The paper shows plain DT by its most confident iteration; without it is behind.
            confident = _line(key, replace(measure, confident=True), runs, time)
            drawn = [confident, line and replace(line, thin=True, spread=())]
        lines += drawn
        if isinstance(measure, Peaks) and any(drawn):
            lines += _papers_peak(key, measure.size, time)
    return [line for line in lines if line is not None]


def _line(key: str, measure: Measure, records: Sequence[Record], time: str) -> Line | None:
    """The mean of a model's curves; None where there is nothing to show."""
    # A mean of changes needs every seed: where one overflows, the others alone would be less.
    steps, means, errors = _mean(measure.curves(records), whole=isinstance(measure, Changes))
    if all(map(math.isnan, means)):
        return None
    model = MODELS[key]
    label = model.label + (", most confident" if getattr(measure, "confident", False) else "")
    if model.alpha is not None and model.label != "FF":
        label += f", α = {model.alpha:g}"
    label += f", {time}" if time else ""
    if isinstance(measure, Indices):
        share = measure.mean(records, "recovered")
        if share is None or share.mean < LEAST_RECOVERED:
            return None
        # The same label as in other panels where nearly all recover: one entry in the legend.
        label += "" if share.mean >= ALL_RECOVERED else f" ({100 * share.mean:.0f} % recovered)"
        steps = [step - 1 for step in steps]  # indices start at 0
    # A band on a logarithmic axis would reach below 0.
    spread = () if isinstance(measure, Changes) else errors
    return Line(Trace(steps, means), label, **style_of(key), spread=spread)


def _papers_peak(key: str, size: str, time: str) -> list[Line]:
    value, alpha = PEAKS.get(size, {}).get(key), MODELS[key].alpha
    if value is None or value.step is None:
        return []
    label = f"the paper's peak, {'α > 0' if alpha else 'α = 0'}"
    label += ", on its puzzles" if time else ""
    spread = () if value.error is None else (value.error,)
    point = Trace([value.step], [value.mean])
    return [Line(point, label, marker="+" if alpha else "x", spread=spread, **style_of(key))]


def _even_ticks(panel: Panel) -> tuple[str, ...]:
    """Ticks at even distances on the axis of a grid of α, where some values are very close."""
    if panel.grid != "alpha":
        return ()
    return tuple(f"{MODELS[key].alpha:g}" for key in panel.models)


def _grid_lines(panel: Panel, records: Records) -> list[Line]:
    """Peaks against a field of the recipe, and the paper's where it gives any."""
    ours: list[tuple[float, float, float]] = []  # place, mean, error
    papers: list[tuple[float, float, float]] = []
    for number, key in enumerate(panel.models):
        model = MODELS[key]
        field = number if _even_ticks(panel) else getattr(model.recipe(), panel.grid)
        place = paper_net(model.task).width if field is None else field
        cell = panel.measure.of(records.of(key))
        if cell.value is not None:
            ours.append((place, cell.value.mean, cell.value.error or 0.0))
        if isinstance(panel.measure, Peaks) and key in PEAKS.get(panel.measure.size, {}):
            value = PEAKS[panel.measure.size][key]
            papers.append((place, value.mean, value.error or 0.0))
    if not ours:
        return []
    name = "mean over seeds ± standard error"
    places, means, errors = (list(column) for column in zip(*sorted(ours), strict=True))
    lines = [Line(Trace(places, means), name, colour=_GRID),
             Line(Trace(places, means), name, colour=_GRID, marker="o", spread=errors)]  # fmt: skip
    if papers:
        places, means, errors = (list(column) for column in zip(*sorted(papers), strict=True))
        points = Trace(places, means)
        lines.append(Line(points, "the paper's peak", colour=_PAPER, marker="x", spread=errors))
    return lines


def _mean(
    curves: list[list[float]], *, whole: bool = False
) -> tuple[list[float], list[float], list[float]]:
    """Steps from 1, means and standard errors ([] for one seed).

    Gaps are left out seed by seed; ``whole``: there is no mean where any seed has a gap.
    """
    means, errors = [], []
    for column in zip(*curves, strict=False):
        known = [value for value in column if not math.isnan(value)]
        mean = summary(known if not whole or len(known) == len(column) else [])
        means.append(float("nan") if mean is None else mean.mean)
        errors.append(0.0 if mean is None or mean.error is None else mean.error)
    steps = [float(step) for step in range(1, len(means) + 1)]
    return steps, means, errors if any(errors) else []


def style_of(key: str) -> dict[str, Any]:
    """Colour and stroke of a model's line."""
    model = MODELS[key]
    progressive, without, stroke = _STYLES.get(model.label, (6, 6, 0))
    return {"colour": without if model.alpha == 0 else progressive, "stroke": stroke}


NAME = "reference-maze-run"
"""The authors' own maze run, from files that they published."""
MODEL = "mazes-recall-a0.01"
_AUTHORS = 6
"""The authors' colour: black"""
_MARKERS = ("o", "s", "^", "D", "v")
"""Of our seeds, with a stroke each, for grey print"""
_FIRST = "train-mazes-paper-h200-s0-by-epoch"
"""Our first run, seed 0, made before records were kept"""
_FIRST_PRECISION = "fp16"
_VALIDATION, _LARGER = "validation accuracy (%)", "33x33 by iteration (%)"
"""Keys of the authors' run; the second is their one test on larger mazes"""

History = Sequence[Mapping[str, Any]]
"""Per epoch the training loss and, where there was one, the validation accuracy"""
Points = list[tuple[float, float]]


@dataclass(frozen=True)
class Reference:
    """The authors' maze run by epoch, with ours beside it."""

    losses: list[float]
    validations: list[float]
    larger: Points
    """Iterations and per cent of 33×33"""
    first: History
    """Our first run"""

    @classmethod
    def read(cls, results: PathLike) -> Reference | None:
        """From a folder of results; None where the authors' run is not there."""
        theirs, ours = (Path(results) / "paper" / f"{name}.json" for name in (NAME, _FIRST))
        if not theirs.exists():
            return None
        try:
            figures = read_result(theirs)["figures"]
            epochs = figures["by epoch"]
            larger: Points = [(int(steps), share) for steps, share in figures[_LARGER].items()]
            math.fsum([*epochs["loss"], *epochs[_VALIDATION], *(share for _, share in larger)])
            first = read_result(ours)["figures"]["history"] if ours.exists() else []
            _points(first, "validation", 100.0)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise RunError(
                f"{quoted(theirs)} or {quoted(ours)} is damaged ({type(error).__name__}: {error}); "
                "restore it from a copy"
            ) from error
        return cls(epochs["loss"], epochs[_VALIDATION], sorted(larger), first)

    def _ours(self, records: Records) -> Iterator[tuple[str, str, History, Points]]:
        """Our runs: name, precision, history, and per cent of 33×33 after every iteration."""
        runs = records.of(MODEL)
        if self.first and not any(one.seed == 0 for one in runs):
            yield "ours, seed 0, in two legs", _FIRST_PRECISION, self.first, []
        for one in runs:
            (curve,) = Peaks("33").curves([one]) or [[]]
            history = one.figures["training"].get("history", [])
            yield f"ours, seed {one.seed}", one.precision, history, list(enumerate(curve, 1))

    def section(self, records: Records, figures: str) -> str:
        """As Markdown; ``figures``: the folder of pictures."""
        picture = f"{figures}/{NAME}"
        about = (
            "One run of DT-Recall, α = 0.01, whose logs they published; ours beside it. Validated "
            "after every epoch; the table has every tenth and the one whose weights are tested, "
            "the first of the best. At 33×33 they looked after 30 to 40 iterations only; of ours, "
            "which went on, the peak is last."
        )
        ends = [self.larger[0], self.larger[-1]]
        validated = [(float(epoch), value) for epoch, value in enumerate(self.validations, 1)]
        lines = [
            "## The authors' own maze run", "", about, "",
            f"[![Loss, validation and 33×33]({picture}.png)]({picture}.svg)", "",
            "| run | precision | validated at epoch: % | 33×33 after iterations: % |",
            "| --- | --- | --- | --- |",
            _row("theirs | fp32", _excerpt(validated), ends),
        ]  # fmt: skip
        for name, precision, history, curve in self._ours(records):
            peak = [max(curve, key=lambda point: point[1])] if curve else []
            points = [point for point in curve if point[0] in (ends[0][0], ends[1][0])] + peak
            validated = _points(history, "validation", 100.0)
            lines.append(_row(f"{name} | {precision}", _excerpt(validated), points))
        return "\n".join([*lines, ""])

    def save(self, records: Records, folder: PathLike) -> list[Path]:
        """Draw it as PNG and SVG."""
        return save_panels(self.panels(records), NAME, folder, regime=None)

    def panels(self, records: Records) -> Panels:
        """Loss and validation by epoch, and 33×33 after the authors' numbers of iterations."""
        epochs = [float(epoch) for epoch in range(1, len(self.losses) + 1)]
        loss = Plot("loss in training", "epoch", "loss", log=True, shade=False)
        held_out = Plot("9×9 mazes held out, by epoch", "epoch", "problems solved (%)", share=True,
                        shade=False)  # fmt: skip
        large = Plot("33×33, by iteration", "iterations", "problems solved (%)", shade=False)
        panels: Panels = [
            (plot, [Line(trace, "the authors' run", colour=_AUTHORS)])
            for plot, trace in ((loss, Trace(epochs, self.losses)),
                                (held_out, Trace(epochs, self.validations)),
                                (large, _trace(self.larger)))
        ]  # fmt: skip
        steps = {step for step, _ in self.larger}
        for place, (name, _, history, curve) in enumerate(self._ours(records)):
            points = [point for point in curve if point[0] in steps]
            style: dict[str, Any] = {"colour": place, "stroke": place + 1}
            marker = _MARKERS[place % len(_MARKERS)]
            panels[0][1].append(Line(_trace(_points(history, "loss", 1.0)), name, **style))
            validation = _trace(_points(history, "validation", 100.0))
            panels[1][1].append(Line(validation, name, marker=marker, **style))
            if points:
                panels[2][1].append(Line(_trace(points), name, **style))
        return panels


def _excerpt(points: Points) -> Points:
    """Every tenth epoch, and the first of the best, whose weights are tested."""
    best = max(points, key=lambda point: point[1], default=None)
    return [point for point in points if point[0] % 10 == 0 or point == best]


def _trace(points: Points) -> Trace:
    return Trace([x for x, _ in points], [y for _, y in points])


def _row(name: str, *cells: Points) -> str:
    texts = [", ".join(f"{x:.0f}: {y:.2f}" for x, y in cell) for cell in cells]
    return f"| {' | '.join([name, *texts])} |"


def _points(history: History, key: str, scale: float) -> Points:
    """Epochs and values, where there are any."""
    return [(float(row["epoch"]), scale * row[key]) for row in history if row.get(key) is not None]
