"""Line plots and curves: exact numbers, styles, the shaded regime, no global state."""

from __future__ import annotations

import io
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from matplotlib import _pylab_helpers
from matplotlib.colors import to_rgb
from matplotlib.image import imread
from matplotlib.lines import Line2D
from matplotlib.text import Text
from PIL import Image

from iterant.draw.plots import (
    Line,
    Plot,
    Trace,
    curves_figure,
    lines_figure,
    panels_figure,
    png,
    save_curves,
)
from iterant.errors import UsageError
from iterant.evaluation import Curve


def curve(*solved: int, first: int = 1) -> Curve:
    steps = tuple(range(first, first + len(solved)))
    return Curve(steps, torch.tensor(solved), count=8, change=0.0)


CURVES = {f"{bits} bits": curve(0, place, 4 + place, 8) for place, bits in enumerate((8, 16, 32))}


def lightness(colour: Any) -> float:
    red, green, blue = to_rgb(colour)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_curves_are_percentages() -> None:
    (axes,) = curves_figure(CURVES, regime=2).axes
    for line, (label, made) in zip(axes.lines, CURVES.items(), strict=True):
        assert line.get_label() == label
        assert np.asarray(line.get_xdata()).tolist() == list(made.steps)
        accuracies = [100 * solved / 8 for solved in made.solved.tolist()]
        assert np.asarray(line.get_ydata()).tolist() == accuracies


def test_curves_differ_in_lightness_and_style() -> None:
    (axes,) = curves_figure(CURVES).axes
    shades = [lightness(line.get_color()) for line in axes.lines]
    assert shades == sorted(shades)
    assert all(later - earlier > 0.1 for earlier, later in pairwise(shades))
    assert len({line.get_linestyle() for line in axes.lines}) == len(CURVES)
    assert shades[-1] < 0.75, "a light line on white cannot be seen"


@pytest.mark.parametrize(("regime", "shaded"), [(2, 2), (99, 4)])
def test_training_regime_of_curves(regime: int, shaded: float) -> None:
    (axes,) = curves_figure(CURVES, regime=regime).axes
    (patch,) = axes.patches
    box = patch.get_extents().transformed(axes.transData.inverted())
    assert (box.x0, box.x1) == pytest.approx((0, shaded))
    legend = axes.get_legend()
    assert legend is not None
    assert "training regime" in [text.get_text() for text in legend.get_texts()]
    assert list(curves_figure(CURVES).axes[0].patches) == []


def test_no_curve() -> None:
    with pytest.raises(UsageError, match="no curve to draw"):
        curves_figure({})


def test_curve_of_one_point(tmp_path: Path) -> None:
    assert save_curves({"one": curve(8)}, tmp_path / "one.png").exists()


def test_save_curves(tmp_path: Path) -> None:
    before = list(_pylab_helpers.Gcf.figs)
    path = save_curves(CURVES, tmp_path / "accuracy.png", regime=2, title="so")
    assert [file.name for file in tmp_path.iterdir()] == ["accuracy.png"]
    height, width, _ = imread(path).shape
    assert (height, width) == (630, 1050)
    assert list(_pylab_helpers.Gcf.figs) == before
    again = save_curves(CURVES, tmp_path / "again.png", regime=2, title="so")
    assert again.read_bytes() == path.read_bytes()


def test_invalid_suffix(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"written as \.png"):
        save_curves(CURVES, tmp_path / "accuracy.pdf")


PLOT = Plot("noise", x_label="iterations", y_label="solved (%)", share=True)


def line(label: str, colour: int = 0, stroke: int = 0) -> Line:
    return Line(Trace([1, 2, 3], [0.0, 50.0, 100.0]), label, colour, stroke)


def test_lines_and_styles() -> None:
    drawn = [line("a", 0, 0), line("b", 0, 1), line("c", 1, 0)]
    (axes,) = lines_figure(PLOT, drawn).axes
    first, second, third = axes.lines
    assert np.asarray(first.get_ydata()).tolist() == [0, 50, 100]
    assert first.get_color() == second.get_color() != third.get_color()
    assert first.get_linestyle() == third.get_linestyle() != second.get_linestyle()


def test_legend_entries_are_shared() -> None:
    figure = lines_figure(PLOT, [line("a"), line("a"), line("b", 1)], regime=2)
    (legend,) = figure.legends
    shown = [text.get_text() for text in legend.get_texts()]
    assert shown == ["a", "b", "training regime (2 iterations)"]


def test_empty_panel() -> None:
    first, second = panels_figure([(PLOT, [line("a")]), (PLOT, [])]).axes
    assert (len(first.lines), len(second.lines)) == (1, 0)
    assert [text.get_text() for text in second.texts] == ["not measured yet"]
    with pytest.raises(UsageError, match="no line to draw for noise, noise"):
        panels_figure([(PLOT, []), (PLOT, [])])


@pytest.mark.parametrize("panels", [1, 2, 3])
@pytest.mark.parametrize("letters", [3, 10, 40])
def test_legend_is_inside_the_figure(panels: int, letters: int) -> None:
    drawn = [line("mi" * letters + str(number)) for number in range(9)]
    figure = panels_figure([(PLOT, drawn)] * panels, regime=2)
    png(figure)
    (legend,) = figure.legends
    box = legend.get_window_extent()
    assert box.x0 >= 0
    assert box.x1 <= figure.bbox.x1
    assert legend.get_window_extent().y1 < figure.axes[0].get_window_extent().y0
    assert figure.axes[0].get_window_extent().height > 300, "however long the legend is"


@pytest.mark.parametrize("panels", [1, 2, 3])
def test_text_is_legible(panels: int) -> None:
    figure = panels_figure([(PLOT, [line("a")])] * panels, regime=2)
    shrunk = min(1.0, 7.0 / figure.get_figwidth())
    letters = [float(text.get_fontsize()) for text in figure.findobj(Text) if text.get_text()]
    assert shrunk * min(letters) >= 6


def test_error_bars_and_bands() -> None:
    sign = Line(Trace([1, 2], [40.0, 60.0]), "s", marker="x", spread=(5.0, 0.0))
    band = Line(Trace([1, 2], [40.0, 60.0]), "b", spread=(5.0, 0.0))
    (axes,) = lines_figure(PLOT, [sign]).axes
    assert len(axes.collections) == 1
    bars = np.asarray(axes.collections[0].get_paths()[0].vertices)
    assert bars[:, 1].tolist() == [35, 45]
    (axes,) = lines_figure(PLOT, [band]).axes
    assert type(axes.collections[0]).__name__ in ("PolyCollection", "FillBetweenPolyCollection")


def test_cross_on_a_line_is_visible() -> None:
    """White pixels around the sign, right where the line goes on otherwise."""
    line, sign = Trace([0, 1, 2], [50, 50, 50]), Trace([1], [50])

    def pixels(*lines: Line) -> np.ndarray[Any, Any]:
        figure = lines_figure(Plot("x", "x", "y", share=True), lines)
        file = io.BytesIO(png(figure))
        return np.asarray(Image.open(file).convert("RGB")).astype(int)

    plain, marked = pixels(Line(line, "a")), pixels(Line(line, "a"), Line(sign, "a", marker="x"))
    assert plain.shape == marked.shape
    brighter = (marked.sum(axis=-1) > 740) & (plain.sum(axis=-1) < 600)
    assert brighter.sum() > 10


def test_marker_of_several_colours_is_grey_in_the_legend() -> None:
    signs = [Line(Trace([1], [2.0]), "peak", colour=colour, marker="x") for colour in (0, 1)]
    (legend,) = lines_figure(PLOT, [*signs, line("a")]).legends
    assert [text.get_text() for text in legend.get_texts()] == ["a", "peak"]
    grey = legend.legend_handles[1]
    assert isinstance(grey, Line2D)
    assert grey.get_color() == "0.3"


@pytest.mark.parametrize(("axis", "patches"), [("x", 1), ("y", 1), ("", 0)])
def test_regime_axis(axis: str, patches: int) -> None:
    plot = Plot("p", x_label="x", y_label="y", regime_axis=axis)
    (axes,) = lines_figure(plot, [line("a")], regime=2).axes
    assert len(axes.patches) == patches
    for patch in axes.patches:
        box = patch.get_extents().transformed(axes.transData.inverted())
        assert (box.y1 if axis == "y" else box.x1) == pytest.approx(2)


@pytest.mark.parametrize("values", [[0.0, 0.0], [float("nan")] * 2, [1e-9, 1e30], [1.0, 0.0]])
def test_log_scale_with_zeros_and_nan(values: list[float]) -> None:
    plot = Plot("p", x_label="x", y_label="y", log=True)
    assert png(lines_figure(plot, [Line(Trace([1, 2], values), "a")], regime=1))[:4] == b"\x89PNG"


def test_names_are_not_parsed_as_math() -> None:
    odd = Plot("$name", x_label="$x", y_label="$y$")
    assert png(lines_figure(odd, [line("$\\frac{$")]))


def test_png_is_reproducible() -> None:
    before = list(_pylab_helpers.Gcf.figs)
    pictures = [png(lines_figure(PLOT, [line("a")], regime=3)) for _ in range(2)]
    assert pictures[0] == pictures[1]
    assert list(_pylab_helpers.Gcf.figs) == before


def test_no_line() -> None:
    with pytest.raises(UsageError, match="no line to draw for noise"):
        lines_figure(PLOT, [])


@pytest.mark.parametrize(("begun", "width"), [(0, 30.0), (1, 29.0), (30, None), (50, None)])
def test_width_of_the_regime(begun: int, width: float | None) -> None:
    plot = Plot("p", x_label="x", y_label="y", begun=begun)
    (axes,) = lines_figure(plot, [line("a")], regime=30).axes
    assert [patch.get_extents().width > 0 for patch in axes.patches] == ([True] if width else [])
    for patch in axes.patches:
        assert axes.transData.inverted().transform_bbox(patch.get_window_extent()).width == (
            pytest.approx(width)
        )


def test_spread_is_a_band() -> None:
    shown = Line(Trace([1, 2], [10.0, 20.0]), "a", spread=[1.0, 2.0])
    (axes,) = lines_figure(PLOT, [shown]).axes
    (band,) = axes.collections
    edges = {(float(x), float(y)) for x, y in np.asarray(band.get_paths()[0].vertices)}
    assert {(1, 9), (1, 11), (2, 18), (2, 22)} <= edges
    assert not lines_figure(PLOT, [line("a")]).axes[0].collections
