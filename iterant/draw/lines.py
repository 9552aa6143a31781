"""Line plots of any study, the way the paper draws them: a colour a model, a stroke an alpha.

    >>> plot = Plot("noise", x_label="iterations since iteration 1", y_label="solved (%)")
    >>> png(lines_figure(plot, [Line(Trace(steps, values), "dt-recall", colour=0)], regime=30))

The training regime is shaded. Colours are Okabe and Ito's, apart for every kind of colour vision.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from iterant.errors import UsageError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000")
_STROKES = ("-", "--", "-.", ":", (0, (3, 1, 1, 1, 1, 1)))
_INCHES = (7.0, 4.2)
_DOTS = 130


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


def lines_figure(plot: Plot, lines: Sequence[Line], *, regime: int | None = None) -> Figure:
    """A figure of its own; ``regime``: iterations in training."""
    from matplotlib.figure import Figure

    if not lines:
        raise UsageError(f"there is no line to draw for {plot.name}; run a study first")
    figure = Figure(figsize=_INCHES, dpi=_DOTS, layout="constrained")
    axes = figure.add_subplot()
    for line in lines:
        first = line.label not in axes.get_legend_handles_labels()[1]
        axes.plot(
            line.trace.x,
            line.trace.y,
            label=line.label if first else None,
            color=_COLOURS[line.colour % len(_COLOURS)],
            linestyle=_STROKES[line.stroke % len(_STROKES)],
            linewidth=2,
            alpha=0.85,
            # A single point would be no line.
            marker="o" if len(line.trace.x) == 1 else None,
        )
    if plot.log and any(value > 0 for line in lines for value in line.trace.y):
        axes.set_yscale("log", nonpositive="mask")
    if plot.share:
        axes.set_ylim(-2, 102)
    _shade(axes, plot, regime)
    axes.set_xlabel(plot.x_label, parse_math=False)
    axes.set_ylabel(plot.y_label, parse_math=False)
    axes.grid(color="0.92", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.set_title(plot.name, fontsize=11, parse_math=False)
    # Below the axes, where it hides no line.
    legend = figure.legend(loc="outside lower center", ncols=3, fontsize=9, frameon=False)
    for text in legend.get_texts():
        text.set_parse_math(False)
    return figure


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
        label=f"training regime ({regime} iterations)",
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
