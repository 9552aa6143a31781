"""Line plots: results of studies, and accuracy against iterations.

    >>> plot = Plot("noise", x_label="iterations since iteration 1", y_label="solved (%)")
    >>> png(lines_figure(plot, [Line(Trace(steps, values), "dt-recall", colour=0)], regime=30))
    >>> save_curves({"mazes": curve}, "curve.png", regime=30)

The training regime is shaded. Studies have, as in the paper, one colour per model (Okabe and Ito's,
for every kind of colour vision) and one line style per alpha. Curves run from dark to light with
different line styles, so that they can be read without colours.
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
"""Size of a panel by the number of panels, so that text stays legible at the width of a page"""
_ENTRY, _ROW, _FONT_SIZE = 0.62, 0.19, 9
"""Legend: inches of an entry without its text and of a row; font size"""
_TITLES = {1: 11, 2: 11, 3: 10}
"""Font size of titles by the number of panels"""
_DPI = 130


@dataclass(frozen=True)
class Plot:
    """The axes of a plot."""

    name: str
    """Its title and file name"""
    x_label: str
    y_label: str
    log: bool = False
    """Logarithmic y-axis"""
    share: bool = False
    """Values are percentages"""
    regime_axis: str = "x"
    """The axis of iterations, on which the training regime is shaded; "": none"""
    begun: int = 0
    """Iterations before the origin of the axis"""
    ticks: tuple[str, ...] = ()
    """Labels for 0, 1, 2 … on the x-axis"""


@dataclass(frozen=True)
class Trace:
    """The points of a line."""

    x: Sequence[float]
    y: Sequence[float]


@dataclass(frozen=True)
class Line:
    """A line with its style; lines of the same label share an entry of the legend."""

    trace: Trace
    label: str
    colour: int = 0
    stroke: int = 0
    marker: str = ""
    """A marker at every point instead of a line: matplotlib's ``x``, ``o`` …"""
    spread: Sequence[float] = ()
    """The error of each point; drawn as a band, or as error bars at markers"""
    thin: bool = False
    """A thin line, in the background"""


def lines_figure(plot: Plot, lines: Sequence[Line], *, regime: int | None = None) -> Figure:
    """A figure with one plot; ``regime``: iterations in training."""
    return panels_figure([(plot, lines)], regime=regime)


def panels_figure(
    panels: Sequence[tuple[Plot, Sequence[Line]]], *, regime: int | None = None
) -> Figure:
    """Several plots side by side with one legend; one without lines stays empty."""
    from matplotlib.figure import Figure

    if not any(lines for _, lines in panels):
        names = ", ".join(plot.name for plot, _ in panels)
        raise UsageError(f"there is no line to draw for {names}; run a study first")
    beside = min(len(panels), max(_INCHES))
    width, height = _INCHES[beside]
    size = (width * len(panels), height)
    figure = Figure(figsize=size, dpi=_DPI, layout="constrained")
    for place, (plot, lines) in enumerate(panels, start=1):
        axes = figure.add_subplot(1, len(panels), place)
        if lines:
            _draw(axes, plot, lines, regime)
        else:
            axes.set_xticks([])
            axes.set_yticks([])
            axes.text(0.5, 0.5, "not measured yet", ha="center", va="center", color="0.45",
                      transform=axes.transAxes)  # fmt: skip
        axes.set_xlabel(plot.x_label, parse_math=False)
        axes.set_ylabel(plot.y_label, parse_math=False)
        axes.set_title(plot.name, fontsize=_TITLES[beside], parse_math=False)
    _add_legend(figure, [line for _, lines in panels for line in lines], size[0])
    return figure


def _add_legend(figure: Figure, lines: Sequence[Line], width: float) -> None:
    """Add a legend below the axes: lines, then markers, then shades."""
    from matplotlib.lines import Line2D

    entries: dict[str, Any] = {}
    for axes in figure.axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            entries.setdefault(label, handle)
    markers = {line.label: line.marker for line in lines if line.marker}
    for label, marker in markers.items():
        if len({line.colour for line in lines if line.label == label}) > 1:  # of several colours
            entries[label] = Line2D([], [], linestyle="", marker=marker, color="0.3")
    known = [line.label for line in lines]
    ordered = sorted(entries, key=lambda label: (label not in known, label in markers))
    columns = _columns(ordered, width)
    legend = figure.legend(
        [entries[label] for label in ordered], ordered, loc="outside lower center",
        ncols=columns, fontsize=_FONT_SIZE, frameon=False,
    )  # fmt: skip
    figure.set_figheight(figure.get_figheight() + _ROW * -(-len(ordered) // columns))
    for text in legend.get_texts():
        text.set_parse_math(False)


def _columns(labels: Sequence[str], width: float) -> int:
    """The most columns of a legend that fit ``width`` inches."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextToPath

    def inches(label: str) -> float:
        font = FontProperties(size=_FONT_SIZE)
        points, _, _ = TextToPath().get_text_width_height_descent(label, font, ismath=False)
        return float(points) / 72

    # The first columns are one entry longer where they cannot be equal.
    for columns in range(len(labels), 1, -1):
        rows, longer = divmod(len(labels), columns)
        ends = [(place + 1) * rows + min(place + 1, longer) for place in range(columns)]
        parts = [labels[start:end] for start, end in zip([0, *ends], ends, strict=False)]
        if sum(_ENTRY + max(map(inches, part)) for part in parts) <= width:
            return columns
    return 1


def _draw(axes: Axes, plot: Plot, lines: Sequence[Line], regime: int | None) -> None:
    from matplotlib.patheffects import Normal, Stroke

    white_edge = [Stroke(linewidth=3.5, foreground="white"), Normal()]
    for line in lines:
        colour = _COLOURS[line.colour % len(_COLOURS)]
        if line.spread and line.marker:
            axes.errorbar(line.trace.x, line.trace.y, yerr=line.spread, fmt="none", capsize=3,
                          elinewidth=1.2, alpha=0.85, zorder=4,
                          ecolor=colour)  # fmt: skip
        elif line.spread:
            pairs = list(zip(line.trace.y, line.spread, strict=True))
            axes.fill_between(line.trace.x, [y - off for y, off in pairs],
                              [y + off for y, off in pairs], alpha=0.18, linewidth=0,
                              color=colour)  # fmt: skip
        first = line.label not in axes.get_legend_handles_labels()[1]
        axes.plot(
            line.trace.x,
            line.trace.y,
            label=line.label if first else None,
            color=colour,
            linestyle="" if line.marker else _STROKES[line.stroke % len(_STROKES)],
            linewidth=1 if line.thin else 2,
            alpha=0.85,
            # A line of a single point would be invisible.
            marker=line.marker or ("o" if len(line.trace.x) == 1 else None),
            # A cross on a line of the same colour would be invisible.
            path_effects=white_edge if line.marker in ("x", "+") else None,
            zorder=3 if line.marker else 2,
        )
    if plot.log and any(value > 0 for line in lines for value in line.trace.y):
        axes.set_yscale("log", nonpositive="mask")
    if plot.share:
        axes.set_ylim(-3, 104)  # room for whole markers at both ends
    if plot.ticks:
        axes.set_xticks(range(len(plot.ticks)), plot.ticks)
        axes.set_xlim(-0.25, len(plot.ticks) - 0.75)
    _shade(axes, plot, regime)
    axes.grid(color="0.92", linewidth=0.8)
    axes.set_axisbelow(True)


def _shade(axes: Axes, plot: Plot, regime: int | None) -> None:
    """Shade the iterations of training."""
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
    """The figure as the bytes of a PNG file, independent of the backend in use."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    file = io.BytesIO()
    FigureCanvasAgg(figure).print_png(file, metadata={"Software": "iterant"})
    return file.getvalue()


def stamp(panels: Sequence[tuple[Plot, Sequence[Line]]]) -> str:
    """A hash of the numbers drawn, by which an outdated picture is recognised."""
    numbers = [
        (plot.name, line.label, [*line.trace.x], [*line.trace.y], [*line.spread])
        for plot, lines in panels
        for line in lines
    ]
    return f"drawn from {hashlib.sha256(repr(numbers).encode()).hexdigest()[:16]}"


def svg(figure: Figure, about: str = "") -> bytes:
    """The figure as the bytes of an SVG file; the same bytes for the same figure."""
    from matplotlib import rc_context
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    file = io.BytesIO()
    metadata = {"Date": None, "Creator": "iterant", "Description": about or None}
    with rc_context({"svg.hashsalt": "iterant", "svg.fonttype": "path"}):
        FigureCanvasSVG(figure).print_svg(file, metadata=metadata)
    return file.getvalue()


_STROKES_CURVES = ("-", "--", "-.", ":")
_LIGHTEST = 0.8
"""The end of the colour map: lighter lines are invisible on white."""
_INCHES_CURVES = (7.0, 4.2)
_DOTS_CURVES = 150


def curves_figure(
    curves: Mapping[str, Curve], *, regime: int | None = None, title: str = ""
) -> Figure:
    """A figure with one line per curve, by label; ``regime``: iterations in training."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=_INCHES_CURVES, dpi=_DOTS_CURVES, layout="constrained")
    draw_curves(figure.add_subplot(), curves, regime=regime)
    if title:
        figure.suptitle(title, fontsize=11)
    return figure


def draw_curves(axes: Axes, curves: Mapping[str, Curve], *, regime: int | None = None) -> None:
    """The same on existing axes."""
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
    """One curve as the bytes of a PNG file, as notebooks show it."""
    step, height = curve.peak
    return png(curves_figure({f"{height:.1%} at iteration {step}": curve}))


def save_curves(
    curves: Mapping[str, Curve], path: PathLike, *, regime: int | None = None, title: str = ""
) -> Path:
    """Write the figure as a .png atomically and return its path."""
    target = check_png(path)
    write_atomic(target, png(curves_figure(curves, regime=regime, title=title)))
    return target
