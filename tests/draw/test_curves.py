"""Curves: the very numbers, readable without colours, and pyplot left alone."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from matplotlib import _pylab_helpers
from matplotlib.colors import to_rgb
from matplotlib.image import imread

from iterant.draw.plots import curves_figure, save_curves
from iterant.errors import UsageError
from iterant.evaluation import Curve


def curve(*solved: int, first: int = 1) -> Curve:
    steps = tuple(range(first, first + len(solved)))
    return Curve(steps, torch.tensor(solved), count=8, change=0.0)


CURVES = {f"{bits} bits": curve(0, place, 4 + place, 8) for place, bits in enumerate((8, 16, 32))}


def lightness(colour: Any) -> float:
    red, green, blue = to_rgb(colour)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_lines_hold_the_accuracies_in_per_cent() -> None:
    (axes,) = curves_figure(CURVES, regime=2).axes
    for line, (label, made) in zip(axes.lines, CURVES.items(), strict=True):
        assert line.get_label() == label
        assert np.asarray(line.get_xdata()).tolist() == list(made.steps)
        accuracies = [100 * solved / 8 for solved in made.solved.tolist()]
        assert np.asarray(line.get_ydata()).tolist() == accuracies


def test_lines_differ_in_lightness_and_in_stroke() -> None:
    (axes,) = curves_figure(CURVES).axes
    shades = [lightness(line.get_color()) for line in axes.lines]
    assert shades == sorted(shades)
    assert all(later - earlier > 0.1 for earlier, later in pairwise(shades))
    assert len({line.get_linestyle() for line in axes.lines}) == len(CURVES)
    assert shades[-1] < 0.75, "a light line on white cannot be seen"


@pytest.mark.parametrize(("regime", "shaded"), [(2, 2), (99, 4)])
def test_the_training_regime_is_shaded(regime: int, shaded: float) -> None:
    (axes,) = curves_figure(CURVES, regime=regime).axes
    (patch,) = axes.patches
    box = patch.get_extents().transformed(axes.transData.inverted())
    assert (box.x0, box.x1) == pytest.approx((0, shaded))
    legend = axes.get_legend()
    assert legend is not None
    assert "training regime" in [text.get_text() for text in legend.get_texts()]
    assert list(curves_figure(CURVES).axes[0].patches) == []


def test_no_curve_is_refused() -> None:
    with pytest.raises(UsageError, match="no curve to draw"):
        curves_figure({})


def test_one_curve_of_one_point_is_drawn(tmp_path: Path) -> None:
    assert save_curves({"one": curve(8)}, tmp_path / "one.png").exists()


def test_a_picture_is_written_whole_and_pyplot_knows_nothing_of_it(tmp_path: Path) -> None:
    before = list(_pylab_helpers.Gcf.figs)
    path = save_curves(CURVES, tmp_path / "accuracy.png", regime=2, title="so")
    assert [file.name for file in tmp_path.iterdir()] == ["accuracy.png"]
    height, width, _ = imread(path).shape
    assert (height, width) == (630, 1050)
    assert list(_pylab_helpers.Gcf.figs) == before
    again = save_curves(CURVES, tmp_path / "again.png", regime=2, title="so")
    assert again.read_bytes() == path.read_bytes()


def test_a_path_that_is_no_picture_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"written as \.png"):
        save_curves(CURVES, tmp_path / "accuracy.pdf")
