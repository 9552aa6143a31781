"""Line plots of any study, the way the paper draws them: a colour a model, a stroke an alpha.

    >>> plot = Plot("noise", x_label="iterations since iteration 1", y_label="solved (%)")
    >>> png(lines_figure(plot, [Line(Trace(steps, values), "dt-recall", colour=0)], regime=30))

The training regime is shaded. Colours are Okabe and Ito's, apart for every kind of colour vision.

Accuracy against iterations: the picture of thinking longer.

The training regime is shaded. Colours run from dark to light in the order of the curves and the
strokes differ too, so that the picture can be read without seeing colours.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from iterant.draw.figure import check_png
from iterant.errors import UsageError
from iterant.evaluation import Curve
from iterant.formatting import counted
from iterant.io.files import PathLike, write_atomic

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000")
_STROKES = ("-", "--", "-.", ":", (0, (3, 1, 1, 1, 1, 1)))
_INCHES = {1: (7.0, 3.7), 2: (4.7, 3.4), 3: (3.5, 3.2)}
"""Of a panel, by how many there are: letters stay legible where all share the width of a page"""
_ENTRY, _ROW, _LETTERS = 0.62, 0.19, 9
"""Inches of a legend's entry without its words, and of a row; the size of its letters"""
_TITLES = {1: 11, 2: 11, 3: 10}
"""The size of headings, by how many stand side by side"""
_DOTS = 130
_CROSSES = ("x", "+")
"""Signs that are strokes themselves"""


@dataclass(frozen=True)
class Plot:
    """What a picture shows, before there are lines in it."""

    name: str
    """For its file and its heading"""
    x_label: str
    y_label: str
    log: bool = False
    """Values over many powers of ten"""
    share: bool = False
    """Values are per cent"""
    regime_axis: str = "x"
    """The axis that counts iterations, on which the training regime is shaded; "": none"""
    begun: int = 0
    """Iterations that were done where the axis begins to count"""
    ticks: tuple[str, ...] = ()
    """Names for 0, 1, 2 … on the x-axis, where its numbers would lie too close"""


@dataclass(frozen=True)
class Trace:
    """The numbers of one line."""

    x: Sequence[float]
    y: Sequence[float]


@dataclass(frozen=True)
class Line:
    """A line with its looks; lines of one label share an entry of the legend."""

    trace: Trace
    label: str
    colour: int = 0
    stroke: int = 0
    marker: str = ""
    """A sign at every point instead of a line: matplotlib's ``x``, ``o`` …"""
    spread: Sequence[float] = ()
    """How far the numbers may be off, a number a point; drawn as a band, or as bars at signs"""
    thin: bool = False
    """What stands behind another line"""


def lines_figure(plot: Plot, lines: Sequence[Line], *, regime: int | None = None) -> Figure:
    """A figure of its own; ``regime``: iterations in training."""
    return panels_figure([(plot, lines)], regime=regime)


def panels_figure(
    panels: Sequence[tuple[Plot, Sequence[Line]]], *, regime: int | None = None
) -> Figure:
    """Several plots side by side with one legend; one that has no lines yet keeps its place."""
    from matplotlib.figure import Figure

    if not any(lines for _, lines in panels):
        named = ", ".join(plot.name for plot, _ in panels)
        raise UsageError(f"there is no line to draw for {named}; run a study first")
    beside = min(len(panels), max(_INCHES))
    width, height = _INCHES[beside]
    size = (width * len(panels), height)
    figure = Figure(figsize=size, dpi=_DOTS, layout="constrained")
    for place, (plot, lines) in enumerate(panels, start=1):
        axes = figure.add_subplot(1, len(panels), place)
        if lines:
            _draw(axes, plot, lines, regime)
        else:
            _leave_empty(axes, plot)
        axes.set_title(plot.name, fontsize=_TITLES[beside], parse_math=False)
    _explain(figure, [line for _, lines in panels for line in lines], size[0])
    return figure


def _explain(figure: Figure, lines: Sequence[Line], width: float) -> None:
    """The legend, below the axes, where it hides no line: lines, then signs, then shades."""
    from matplotlib.lines import Line2D

    entries: dict[str, Any] = {}
    for axes in figure.axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            entries.setdefault(label, handle)
    signs = {line.label: line.marker for line in lines if line.marker}
    for label, sign in signs.items():
        if len({line.colour for line in lines if line.label == label}) > 1:  # any colour's
            entries[label] = Line2D([], [], linestyle="", marker=sign, color="0.3")
    known = [line.label for line in lines]
    ordered = sorted(entries, key=lambda label: (label not in known, label in signs))
    columns = _columns(ordered, width)
    legend = figure.legend(
        [entries[label] for label in ordered], ordered, loc="outside lower center",
        ncols=columns, fontsize=_LETTERS, frameon=False,
    )  # fmt: skip
    figure.set_figheight(figure.get_figheight() + _ROW * -(-len(ordered) // columns))
    for text in legend.get_texts():
        text.set_parse_math(False)


def _columns(labels: Sequence[str], width: float) -> int:
    """The most columns that fit so many inches; the first of them are one entry longer."""
    for columns in range(len(labels), 1, -1):
        rows, longer = divmod(len(labels), columns)
        ends = [(place + 1) * rows + min(place + 1, longer) for place in range(columns)]
        parts = [labels[start:end] for start, end in zip([0, *ends], ends, strict=False)]
        if sum(_ENTRY + max(map(_length, part)) for part in parts) <= width:
            return columns
    return 1


def _length(label: str) -> float:
    """Of the words of an entry, in inches."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextToPath

    font = FontProperties(size=_LETTERS)
    wide, _, _ = TextToPath().get_text_width_height_descent(label, font, ismath=False)
    return float(wide) / 72


def _leave_empty(axes: Axes, plot: Plot) -> None:
    axes.set_xticks([])
    axes.set_yticks([])
    axes.text(0.5, 0.5, "not measured yet", ha="center", va="center", color="0.45",
              transform=axes.transAxes)  # fmt: skip
    _name(axes, plot)


def _name(axes: Axes, plot: Plot) -> None:
    axes.set_xlabel(plot.x_label, parse_math=False)
    axes.set_ylabel(plot.y_label, parse_math=False)


def _draw(axes: Axes, plot: Plot, lines: Sequence[Line], regime: int | None) -> None:
    for line in lines:
        if line.spread and line.marker:
            axes.errorbar(line.trace.x, line.trace.y, yerr=line.spread, fmt="none", capsize=3,
                          elinewidth=1.2, alpha=0.85, zorder=4,
                          ecolor=_COLOURS[line.colour % len(_COLOURS)])  # fmt: skip
        elif line.spread:
            pairs = list(zip(line.trace.y, line.spread, strict=True))
            axes.fill_between(line.trace.x, [y - off for y, off in pairs],
                              [y + off for y, off in pairs], alpha=0.18, linewidth=0,
                              color=_COLOURS[line.colour % len(_COLOURS)])  # fmt: skip
        first = line.label not in axes.get_legend_handles_labels()[1]
        axes.plot(
            line.trace.x,
            line.trace.y,
            label=line.label if first else None,
            color=_COLOURS[line.colour % len(_COLOURS)],
            linestyle="" if line.marker else _STROKES[line.stroke % len(_STROKES)],
            linewidth=1 if line.thin else 2,
            alpha=0.85,
            # A single point would be no line.
            marker=line.marker or ("o" if len(line.trace.x) == 1 else None),
            # A cross on a line of its own colour would not be seen.
            path_effects=_outlined() if line.marker in _CROSSES else None,
            zorder=3 if line.marker else 2,
        )
    if plot.log and any(value > 0 for line in lines for value in line.trace.y):
        axes.set_yscale("log", nonpositive="mask")
    if plot.share:
        axes.set_ylim(-3, 104)  # signs at either end are seen whole
    if plot.ticks:
        axes.set_xticks(range(len(plot.ticks)), plot.ticks)
        axes.set_xlim(-0.25, len(plot.ticks) - 0.75)
    _shade(axes, plot, regime)
    axes.grid(color="0.92", linewidth=0.8)
    axes.set_axisbelow(True)
    _name(axes, plot)


def _outlined() -> list[Any]:
    """A white edge around what is drawn."""
    from matplotlib.patheffects import Normal, Stroke

    return [Stroke(linewidth=3.5, foreground="white"), Normal()]


def _shade(axes: Axes, plot: Plot, regime: int | None) -> None:
    """Shade the iterations that training saw, as far as the picture goes."""
    if regime is None or not plot.regime_axis or regime <= plot.begun:
        return
    along_x = plot.regime_axis == "x"
    low, high = axes.get_xlim() if along_x else axes.get_ylim()
    span = axes.axvspan if along_x else axes.axhspan
    span(
        0,
        regime - plot.begun,
        color="0.9",
        zorder=0,
        label=f"training regime ({counted(regime, 'iteration')})",
    )
    if along_x:
        axes.set_xlim(min(0.0, low), high)
    else:
        axes.set_ylim(0, max(high, 1.0))


def png(figure: Figure) -> bytes:
    """The figure as a picture, whatever backend and settings the user has chosen."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    file = io.BytesIO()
    FigureCanvasAgg(figure).print_png(file, metadata={"Software": "iterant"})
    return file.getvalue()


def stamp(panels: Sequence[tuple[Plot, Sequence[Line]]]) -> str:
    """A few letters that change with the numbers drawn, by which a stale picture is known."""
    numbers = [
        (plot.name, line.label, [*line.trace.x], [*line.trace.y], [*line.spread])
        for plot, lines in panels
        for line in lines
    ]
    return f"drawn from {hashlib.sha256(repr(numbers).encode()).hexdigest()[:16]}"


def svg(figure: Figure, about: str = "") -> bytes:
    """The figure as lines and letters that scale; the same bytes for the same figure."""
    from matplotlib import rc_context
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    file = io.BytesIO()
    told = {"Date": None, "Creator": "iterant", "Description": about or None}
    with rc_context({"svg.hashsalt": "iterant", "svg.fonttype": "path"}):
        FigureCanvasSVG(figure).print_svg(file, metadata=told)
    return file.getvalue()


_STROKES_CURVES = ("-", "--", "-.", ":")
_LIGHTEST = 0.8
"""Of the colour map: beyond that, lines vanish on white."""
_INCHES_CURVES = (7.0, 4.2)
_DOTS_CURVES = 150


def curves_figure(
    curves: Mapping[str, Curve], *, regime: int | None = None, title: str = ""
) -> Figure:
    """A figure of its own with one line a curve, by label; ``regime``: iterations in training."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=_INCHES_CURVES, dpi=_DOTS_CURVES, layout="constrained")
    draw_curves(figure.add_subplot(), curves, regime=regime)
    if title:
        figure.suptitle(title, fontsize=11)
    return figure


def draw_curves(axes: Axes, curves: Mapping[str, Curve], *, regime: int | None = None) -> None:
    """The same on axes among your own plots."""
    from matplotlib import colormaps

    if not curves:
        raise UsageError("there is no curve to draw; evaluate a network first")
    colours = colormaps["viridis"]
    last = max(curve.steps[-1] for curve in curves.values())
    if regime is not None:
        axes.axvspan(0, min(regime, last), color="0.9", zorder=0, label="training regime")
    for place, (label, curve) in enumerate(curves.items()):
        axes.plot(
            curve.steps,
            (100 * curve.accuracy).tolist(),
            label=label,
            color=colours(_LIGHTEST * place / max(1, len(curves) - 1)),
            linestyle=_STROKES_CURVES[place % len(_STROKES_CURVES)],
            linewidth=2,
        )
    axes.set_xlim(0, last)
    axes.set_ylim(-2, 102)
    axes.set_xlabel("iterations")
    axes.set_ylabel("problems solved (%)")
    axes.grid(color="0.92", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.legend(loc="center right", fontsize=9, framealpha=0.95)


def curve_png(curve: Curve) -> bytes:
    """One curve as the bytes of a PNG file: what a notebook shows of it."""
    step, height = curve.peak
    return _png({f"{height:.1%} at iteration {step}": curve})


def save_curves(
    curves: Mapping[str, Curve], path: PathLike, *, regime: int | None = None, title: str = ""
) -> Path:
    """Write the figure as a picture, whole or not at all, and give its path back."""
    target = check_png(path)
    write_atomic(target, _png(curves, regime=regime, title=title))
    return target


def _png(curves: Mapping[str, Curve], *, regime: int | None = None, title: str = "") -> bytes:
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    file = io.BytesIO()
    canvas = FigureCanvasAgg(curves_figure(curves, regime=regime, title=title))
    canvas.print_png(file, metadata={"Software": "iterant"})
    return file.getvalue()
