"""Line plots: the very numbers, a colour a model, a stroke an alpha, the regime shaded."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from matplotlib import _pylab_helpers
from matplotlib.lines import Line2D
from matplotlib.text import Text
from PIL import Image

from iterant.draw.plots import Line, Plot, Trace, lines_figure, panels_figure, png
from iterant.errors import UsageError

PLOT = Plot("noise", x_label="iterations", y_label="solved (%)", share=True)


def line(label: str, colour: int = 0, stroke: int = 0) -> Line:
    return Line(Trace([1, 2, 3], [0.0, 50.0, 100.0]), label, colour, stroke)


def test_lines_hold_the_numbers_and_look_as_told() -> None:
    drawn = [line("a", 0, 0), line("b", 0, 1), line("c", 1, 0)]
    (axes,) = lines_figure(PLOT, drawn).axes
    first, second, third = axes.lines
    assert np.asarray(first.get_ydata()).tolist() == [0, 50, 100]
    assert first.get_color() == second.get_color() != third.get_color()
    assert first.get_linestyle() == third.get_linestyle() != second.get_linestyle()


def test_lines_of_one_label_share_an_entry() -> None:
    figure = lines_figure(PLOT, [line("a"), line("a"), line("b", 1)], regime=2)
    (legend,) = figure.legends
    shown = [text.get_text() for text in legend.get_texts()]
    assert shown == ["a", "b", "training regime (2 iterations)"]


def test_a_panel_without_lines_keeps_its_place_and_one_figure_without_any_is_refused() -> None:
    first, second = panels_figure([(PLOT, [line("a")]), (PLOT, [])]).axes
    assert (len(first.lines), len(second.lines)) == (1, 0)
    assert [text.get_text() for text in second.texts] == ["not measured yet"]
    with pytest.raises(UsageError, match="no line to draw for noise, noise"):
        panels_figure([(PLOT, []), (PLOT, [])])


@pytest.mark.parametrize("panels", [1, 2, 3])
@pytest.mark.parametrize("letters", [3, 10, 40])
def test_the_legend_lies_within_the_picture(panels: int, letters: int) -> None:
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
def test_letters_are_legible_on_a_page_of_seven_inches(panels: int) -> None:
    figure = panels_figure([(PLOT, [line("a")])] * panels, regime=2)
    shrunk = min(1.0, 7.0 / figure.get_figwidth())
    letters = [float(text.get_fontsize()) for text in figure.findobj(Text) if text.get_text()]
    assert shrunk * min(letters) >= 6


def test_signs_have_bars_and_lines_have_bands() -> None:
    sign = Line(Trace([1, 2], [40.0, 60.0]), "s", marker="x", spread=(5.0, 0.0))
    band = Line(Trace([1, 2], [40.0, 60.0]), "b", spread=(5.0, 0.0))
    (axes,) = lines_figure(PLOT, [sign]).axes
    assert len(axes.collections) == 1
    bars = np.asarray(axes.collections[0].get_paths()[0].vertices)
    assert bars[:, 1].tolist() == [35, 45]
    (axes,) = lines_figure(PLOT, [band]).axes
    assert type(axes.collections[0]).__name__ in ("PolyCollection", "FillBetweenPolyCollection")


def test_a_sign_is_seen_on_a_line_of_its_own_colour() -> None:
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


def test_a_sign_of_many_colours_is_grey_in_the_legend() -> None:
    signs = [Line(Trace([1], [2.0]), "peak", colour=colour, marker="x") for colour in (0, 1)]
    (legend,) = lines_figure(PLOT, [*signs, line("a")]).legends
    assert [text.get_text() for text in legend.get_texts()] == ["a", "peak"]
    grey = legend.legend_handles[1]
    assert isinstance(grey, Line2D)
    assert grey.get_color() == "0.3"


@pytest.mark.parametrize(("axis", "patches"), [("x", 1), ("y", 1), ("", 0)])
def test_the_regime_is_shaded_on_the_axis_of_iterations(axis: str, patches: int) -> None:
    plot = Plot("p", x_label="x", y_label="y", regime_axis=axis)
    (axes,) = lines_figure(plot, [line("a")], regime=2).axes
    assert len(axes.patches) == patches
    for patch in axes.patches:
        box = patch.get_extents().transformed(axes.transData.inverted())
        assert (box.y1 if axis == "y" else box.x1) == pytest.approx(2)


@pytest.mark.parametrize("values", [[0.0, 0.0], [float("nan")] * 2, [1e-9, 1e30], [1.0, 0.0]])
def test_values_that_are_no_use_on_a_log_scale_are_drawn_all_the_same(values: list[float]) -> None:
    plot = Plot("p", x_label="x", y_label="y", log=True)
    assert png(lines_figure(plot, [Line(Trace([1, 2], values), "a")], regime=1))[:4] == b"\x89PNG"


def test_signs_in_names_are_no_mathematics() -> None:
    odd = Plot("$name", x_label="$x", y_label="$y$")
    assert png(lines_figure(odd, [line("$\\frac{$")]))


def test_a_picture_is_the_same_every_time_and_pyplot_knows_nothing_of_it() -> None:
    before = list(_pylab_helpers.Gcf.figs)
    pictures = [png(lines_figure(PLOT, [line("a")], regime=3)) for _ in range(2)]
    assert pictures[0] == pictures[1]
    assert list(_pylab_helpers.Gcf.figs) == before


def test_no_line_is_refused() -> None:
    with pytest.raises(UsageError, match="no line to draw for noise"):
        lines_figure(PLOT, [])


@pytest.mark.parametrize(("begun", "width"), [(0, 30.0), (1, 29.0), (30, None), (50, None)])
def test_the_regime_ends_where_training_did(begun: int, width: float | None) -> None:
    plot = Plot("p", x_label="x", y_label="y", begun=begun)
    (axes,) = lines_figure(plot, [line("a")], regime=30).axes
    assert [patch.get_extents().width > 0 for patch in axes.patches] == ([True] if width else [])
    for patch in axes.patches:
        assert axes.transData.inverted().transform_bbox(patch.get_window_extent()).width == (
            pytest.approx(width)
        )


def test_a_spread_is_a_band_around_the_line() -> None:
    shown = Line(Trace([1, 2], [10.0, 20.0]), "a", spread=[1.0, 2.0])
    (axes,) = lines_figure(PLOT, [shown]).axes
    (band,) = axes.collections
    edges = {(float(x), float(y)) for x, y in np.asarray(band.get_paths()[0].vertices)}
    assert {(1, 9), (1, 11), (2, 18), (2, 22)} <= edges
    assert not lines_figure(PLOT, [line("a")]).axes[0].collections
