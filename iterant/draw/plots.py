"""Line plots: results of studies, and accuracy against iterations.

    >>> plot = Plot("noise", x_label="iterations since iteration 1", y_label="solved (%)")
    >>> panels_figure([(plot, [Line(Trace(steps, values), "dt-recall")])], regime=30)
    >>> save_curves({"mazes": curve}, "curve.png", regime=30)

The training regime is shaded. Studies have one colour per model (Okabe and Ito's, for every kind of
colour vision). Curves run from dark to light with different line styles, so that they can be read
without colours.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from iterant.draw.figure import figure_png, write_figure
from iterant.errors import UsageError
from iterant.evaluation import Curve
from iterant.formatting import counted
from iterant.io.files import PathLike

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000")
_STROKES = ("-", "--", "-.", ":", (0, (3, 1, 1, 1, 1, 1)))
_INCHES = {1: (7.0, 3.7), 2: (4.7, 3.4), 3: (3.5, 3.2)}
"""Size of a panel by the number of panels, so that text stays legible at the width of a page."""
_DPI = 130
_LIGHTEST = 0.8
"""The end of the colour map of curves: lighter lines are invisible on white."""


_LEAST_RANGE = 0.01
"""Smallest range of a y-axis, relative to its values."""


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
    shade: bool = True
    """Whether x counts iterations, of which the training regime is shaded"""
    offset: int = 0
    """Iterations before the origin of the x-axis"""
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
    colour: int | str = 0
    """An index into the palette, or any colour of matplotlib"""
    stroke: int = 0
    """An index into the line styles"""
    marker: str = ""
    """A marker at every point instead of a line: matplotlib's ``x``, ``o`` …"""
    spread: Sequence[float] = ()
    """The error of each point; drawn as a band, or as error bars at markers"""
    thin: bool = False
    """A thin line, in the background"""


@dataclass(frozen=True)
class HeatMap:
    """A grid of percentages."""

    name: str
    """Its title"""
    x_label: str
    y_label: str
    columns: Sequence[str]
    rows: Sequence[str]
    """From the bottom"""
    values: Sequence[Sequence[float]]
    """By row; NaN: not measured"""


Panels = Sequence[tuple[Plot, Sequence[Line]]]


def panels_figure(panels: Panels, *, regime: int | None = None) -> Figure:
    """Plots side by side with one legend; ``regime``: iterations in training."""
    from matplotlib.figure import Figure

    if not any(lines for _, lines in panels):
        names = ", ".join(plot.name for plot, _ in panels)
        raise UsageError(f"there is no line to draw for {names}; run a study first")
    width, height = _INCHES[min(len(panels), max(_INCHES))]
    figure = Figure(figsize=(width * len(panels), height), dpi=_DPI, layout="constrained")
    for axes, (plot, lines) in zip(
        figure.subplots(1, len(panels), squeeze=False).flat, panels, strict=True
    ):
        draw_lines(axes, plot, lines, regime=regime)
        axes.set_title(plot.name, fontsize=11 if len(panels) < 3 else 10, parse_math=False)
    _add_legend(figure, [line for _, lines in panels for line in lines])
    return figure


def draw_lines(axes: Axes, plot: Plot, lines: Sequence[Line], *, regime: int | None = None) -> None:
    """Draw lines on axes, without a title and a legend."""
    from matplotlib.patheffects import withStroke

    axes.set_xlabel(plot.x_label, parse_math=False)
    axes.set_ylabel(plot.y_label, parse_math=False)
    if not lines:
        axes.set(xticks=[], yticks=[])
        axes.text(0.5, 0.5, "not measured yet", ha="center", va="center", color="0.45",
                  transform=axes.transAxes)  # fmt: skip
        return
    for line in lines:
        colour = line.colour
        if isinstance(colour, int):
            colour = _COLOURS[colour % len(_COLOURS)]
        x, y, spread = line.trace.x, np.asarray(line.trace.y), np.asarray(line.spread)
        if line.spread and line.marker:
            axes.errorbar(x, y, yerr=spread, fmt="none", capsize=3, elinewidth=1.2, alpha=0.85,
                          zorder=4, ecolor=colour)  # fmt: skip
        elif line.spread:
            axes.fill_between(x, y - spread, y + spread, alpha=0.18, linewidth=0, color=colour)
        (drawn,) = axes.plot(x, y, label=line.label, color=colour, alpha=0.85,
                             linewidth=1 if line.thin else 2)  # fmt: skip
        if line.marker:
            drawn.set(marker=line.marker, linestyle="", zorder=3)
        else:  # a line of a single point would be invisible
            stroke = _STROKES[line.stroke % len(_STROKES)]
            drawn.set(linestyle=stroke, marker="o" if len(x) == 1 else "")
        if line.marker in ("x", "+"):  # on a line of the same colour it would be invisible
            drawn.set_path_effects([withStroke(linewidth=3.5, foreground="white")])
    if plot.log and any(value > 0 for line in lines for value in line.trace.y):
        axes.set_yscale("log", nonpositive="mask")
    else:
        axes.ticklabel_format(axis="y", useOffset=False)
        low, high = axes.get_ylim()
        if high - low < _LEAST_RANGE * max(abs(low), abs(high)):  # a constant, but for rounding
            room = _LEAST_RANGE * max(abs(low), abs(high))
            axes.set_ylim(low - room, high + room)
    if plot.share:
        axes.set_ylim(-3, 104)  # room for whole markers at both ends
    if plot.ticks:
        axes.set_xticks(range(len(plot.ticks)), plot.ticks)
        axes.set_xlim(-0.25, len(plot.ticks) - 0.75)
        for tick in axes.get_xticklabels():
            tick.set_parse_math(False)
    if regime is not None and plot.shade and regime > plot.offset:
        low, high = axes.get_xlim()
        label = f"training regime ({counted(regime, 'iteration')})"
        axes.axvspan(0, regime - plot.offset, color="0.9", zorder=0, label=label)
        axes.set_xlim(min(0.0, low), high)
    axes.grid(color="0.92", linewidth=0.8)
    axes.set_axisbelow(True)


def _add_legend(figure: Figure, lines: Sequence[Line]) -> None:
    """Add a legend below the axes, in as many columns as fit: lines, then markers, then shades."""
    from matplotlib.lines import Line2D

    entries: dict[str, Any] = {}
    for axes in figure.axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            entries.setdefault(label, handle)
    markers = {line.label: line.marker for line in lines if line.marker}
    for label, marker in markers.items():
        if len({line.colour for line in lines if line.label == label}) > 1:
            entries[label] = Line2D([], [], linestyle="", marker=marker, color="0.3")
    known = [line.label for line in lines]
    ordered = sorted(entries, key=lambda label: (label not in known, label in markers))
    for columns in range(len(ordered), 0, -1):
        legend = figure.legend(
            [entries[label] for label in ordered], ordered, loc="outside lower center",
            ncols=columns, fontsize=9, frameon=False,
        )  # fmt: skip
        for text in legend.get_texts():
            text.set_parse_math(False)
        extent = legend.get_window_extent()
        if extent.width <= figure.bbox.width or columns == 1:
            break
        legend.remove()
    figure.set_figheight(figure.get_figheight() + extent.height / _DPI)


def heat_maps_figure(maps: Sequence[HeatMap]) -> Figure:
    """Grids side by side, with the number in every cell; 100 stands for all of them only."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.6 * len(maps), 4.6), dpi=_DPI, layout="constrained")
    for axes, one in zip(figure.subplots(1, len(maps), squeeze=False).flat, maps, strict=True):
        # cividis: dark to light for every kind of colour vision
        image = axes.imshow(one.values, vmin=0, vmax=100, cmap="cividis", origin="lower",
                            aspect="auto")  # fmt: skip
        axes.set_title(one.name, fontsize=11, parse_math=False)
        axes.set(xlabel=one.x_label, ylabel=one.y_label)
        axes.set_xticks(range(len(one.columns)), one.columns)
        axes.set_yticks(range(len(one.rows)), one.rows)
        for y, row in enumerate(one.values):
            for x, value in enumerate(row):
                if not np.isnan(value):
                    # Rounded down, so that 99.96 is not shown as 100.
                    shown = f"{int(10 * value + 1e-6) / 10:g}" if value > 90 else f"{int(value)}"
                    axes.text(x, y, shown, ha="center", va="center", fontsize=8,
                              color="white" if value < 55 else "black")  # fmt: skip
    figure.colorbar(image, ax=figure.axes, label="shortest path found (%)", shrink=0.9, pad=0.01)
    return figure


def stamp(panels: Panels | Sequence[HeatMap]) -> str:
    """A hash of the numbers drawn, to detect an outdated picture."""
    numbers: list[Any] = []
    for panel in panels:
        if isinstance(panel, HeatMap):
            numbers.append(
                (panel.name, [*panel.columns], [*panel.rows], [*map(list, panel.values)])
            )
            continue
        plot, lines = panel
        numbers += [
            (plot.name, line.label, [*line.trace.x], [*line.trace.y], [*line.spread])
            for line in lines
        ]
    return f"drawn from {hashlib.sha256(repr(numbers).encode()).hexdigest()[:16]}"


def _curve_lines(curves: Mapping[str, Curve], title: str) -> tuple[Plot, list[Line]]:
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    shades = colormaps["viridis"](np.linspace(0, _LIGHTEST, len(curves)))
    lines = [
        Line(Trace(curve.steps, (100 * curve.accuracy).tolist()), label, to_hex(shade), stroke)
        for stroke, (shade, (label, curve)) in enumerate(zip(shades, curves.items(), strict=True))
    ]
    return Plot(title, "iterations", "problems solved (%)", share=True), lines


def curves_figure(
    curves: Mapping[str, Curve], *, regime: int | None = None, title: str = ""
) -> Figure:
    """A figure with one line per curve, by label; ``regime``: iterations in training."""
    return panels_figure([_curve_lines(curves, title)], regime=regime)


def draw_curves(axes: Axes, curves: Mapping[str, Curve], *, regime: int | None = None) -> None:
    """Draw the curves on existing axes, with a legend."""
    draw_lines(axes, *_curve_lines(curves, ""), regime=regime)
    axes.legend(fontsize=9)


def curve_png(curve: Curve) -> bytes:
    """One curve as the bytes of a PNG file, as notebooks show it."""
    step, height = curve.peak
    return figure_png(curves_figure({f"{height:.1%} at iteration {step}": curve}))


def save_curves(
    curves: Mapping[str, Curve], path: PathLike, *, regime: int | None = None, title: str = ""
) -> Path:
    """Write the figure as a .png or .svg and return its path."""
    return write_figure(curves_figure(curves, regime=regime, title=title), path)
