"""Line plots and curves: exact numbers, styles, the shaded regime, no global state."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from matplotlib import _pylab_helpers
from matplotlib.figure import Figure

from iterant.draw.figure import figure_png
from iterant.draw.plots import (
    Line,
    Plot,
    Trace,
    curves_figure,
    draw_curves,
    panels_figure,
    save_curves,
)
from iterant.errors import UsageError
from iterant.evaluation import Curve


def curve(*solved: int) -> Curve:
    steps, right_at = len(solved), torch.arange(8) < torch.tensor(solved)[:, None]
    return Curve(tuple(range(1, steps + 1)), right_at, torch.full((8,), steps))


CURVES = {f"{bits} bits": curve(0, place, 4 + place, 8) for place, bits in enumerate((8, 16, 32))}
PLOT = Plot("noise", x_label="iterations", y_label="solved (%)", share=True)


def line(label: str) -> Line:
    return Line(Trace([1, 2, 3], [0.0, 50.0, 100.0]), label)


def figure_of(*lines: Line, plot: Plot = PLOT, regime: int | None = None) -> Figure:
    return panels_figure([(plot, lines)], regime=regime)


def test_curves() -> None:
    figure = curves_figure(CURVES, regime=2, title="so")
    (axes,) = figure.axes
    for drawn, (label, data) in zip(axes.lines, CURVES.items(), strict=True):
        assert drawn.get_label() == label
        assert np.asarray(drawn.get_xdata()).tolist() == list(data.steps)
        assert np.asarray(drawn.get_ydata()) == pytest.approx(100 * data.solved.numpy() / 8)
    (legend,) = figure.legends
    labels = [text.get_text() for text in legend.get_texts()]
    assert labels == [*CURVES, "training regime (2 iterations)"]
    assert len({drawn.get_linestyle() for drawn in axes.lines}) == len(CURVES), "without colours"
    own = Figure().add_subplot()
    draw_curves(own, CURVES)
    assert len(own.lines) == 3
    assert own.get_legend() is not None


def test_save_curves(tmp_path: Path) -> None:
    before = list(_pylab_helpers.Gcf.figs)
    for suffix in (".png", ".svg"):
        path = save_curves(CURVES, tmp_path / f"accuracy{suffix}", regime=2, title="so")
        again = save_curves(CURVES, tmp_path / f"again{suffix}", regime=2, title="so")
        assert again.read_bytes() == path.read_bytes()
    assert list(_pylab_helpers.Gcf.figs) == before
    assert save_curves({"one": curve(8)}, tmp_path / "one.png").exists()
    with pytest.raises(UsageError):
        save_curves(CURVES, tmp_path / "accuracy.pdf")
    with pytest.raises(UsageError):
        save_curves({}, tmp_path / "none.png")


def test_empty_panel() -> None:
    first, second = panels_figure([(PLOT, [line("a")]), (PLOT, [])]).axes
    assert (len(first.lines), len(second.lines)) == (1, 0)
    assert [text.get_text() for text in second.texts] == ["not measured yet"]
    with pytest.raises(UsageError):
        panels_figure([(PLOT, []), (PLOT, [])])


@pytest.mark.parametrize(("panels", "letters"), [(1, 40), (2, 10), (3, 3), (3, 40)])
def test_legend_is_inside_the_figure(panels: int, letters: int) -> None:
    lines = [line("mi" * letters + str(number)) for number in range(9)]
    figure = panels_figure([(PLOT, lines)] * panels, regime=2)
    figure_png(figure)
    (legend,) = figure.legends
    box = legend.get_window_extent()
    assert box.x0 >= 0
    assert box.x1 <= figure.bbox.x1
    assert box.y1 < figure.axes[0].get_window_extent().y0


def test_a_range_of_rounding_errors_is_not_magnified() -> None:
    figure = panels_figure([(Plot("p", "x", "y"), [Line(Trace([0, 1], [1, 1 + 1e-12]), "a")])])
    figure.canvas.draw()
    axis = figure.axes[0].yaxis
    assert axis.get_offset_text().get_text() == ""
    assert len({label.get_text() for label in axis.get_ticklabels()}) > 2


def test_error_bars_and_bands() -> None:
    trace = Trace([1, 2], [40.0, 60.0])
    (axes,) = figure_of(Line(trace, "s", marker="x", spread=(5.0, 0.0))).axes
    (bars,) = axes.collections
    assert np.asarray(bars.get_paths()[0].vertices)[:, 1].tolist() == [35, 45]
    (axes,) = figure_of(Line(trace, "b", spread=(5.0, 1.0))).axes
    (band,) = axes.collections
    edges = {(float(x), float(y)) for x, y in np.asarray(band.get_paths()[0].vertices)}
    assert {(1, 35), (1, 45), (2, 59), (2, 61)} <= edges


@pytest.mark.parametrize(
    ("options", "width"),
    [({}, 30), ({"offset": 1}, 29), ({"offset": 30}, 0), ({"shade": False}, 0)],
)
def test_training_regime(options: dict[str, Any], width: float) -> None:
    (axes,) = figure_of(line("a"), plot=Plot("p", "x", "y", **options), regime=30).axes
    widths = [
        axes.transData.inverted().transform_bbox(patch.get_window_extent()).width
        for patch in axes.patches
    ]
    assert widths == pytest.approx([width] if width else [])
    assert axes.get_xlim()[1] < 4, "the axis ends with the lines"


@pytest.mark.parametrize("values", [[0.0, 0.0], [float("nan")] * 2, [1e-9, 1e30], [1.0, 0.0]])
def test_log_scale_with_zeros_and_nan(values: list[float]) -> None:
    plot = Plot("$name", "$x", "$y$", log=True)  # not mathematics
    figure = figure_of(Line(Trace([1, 2], values), "$\\frac{$"), plot=plot, regime=1)
    assert figure_png(figure)[:4] == b"\x89PNG"
