"""Accuracy against iterations: the picture of thinking longer.

    >>> curves = {f"{bits} bits": evaluate(net, task, size=bits, max_steps=300) for bits in sizes}
    >>> save_curves(curves, "accuracy.png", regime=30)

The training regime is shaded. Colours run from dark to light in the order of the curves and the
strokes differ too, so that the picture can be read without seeing colours.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from iterant.draw.pictures import check_png
from iterant.errors import UsageError
from iterant.evaluation import Curve
from iterant.runs.files import PathLike, write_atomic

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_STROKES = ("-", "--", "-.", ":")
_LIGHTEST = 0.8
"""Of the colour map: beyond that, lines vanish on white."""
_INCHES = (7.0, 4.2)
_DOTS = 150


def curves_figure(
    curves: Mapping[str, Curve], *, regime: int | None = None, title: str = ""
) -> Figure:
    """A figure of its own with one line a curve, by label; ``regime``: iterations in training."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=_INCHES, dpi=_DOTS, layout="constrained")
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
            linestyle=_STROKES[place % len(_STROKES)],
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
