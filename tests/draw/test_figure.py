"""Pictures: exact to the pixel, complete files or none, no global state."""

from __future__ import annotations

import os
import sys
import types
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.figure import Figure
from matplotlib.image import imread

from iterant import draw
from iterant.draw.figure import sheet
from iterant.errors import RunError, UsageError
from iterant.tasks.protocol import Arrow, Description, Glyph


def checkered(rows: int, columns: int, **more: Any) -> Description:
    """Cells of which no two are alike, so that one out of place is seen."""
    numbers = np.arange(rows * columns).reshape(rows, columns)
    cells = np.stack([numbers * 37 % 251, numbers * 91 % 241, numbers % 253], axis=-1)
    return Description("", "", cells.astype(np.uint8), **more)


def block_of(image: np.ndarray, cells: np.ndarray, scale: int) -> np.ndarray:
    """The part of a picture that lies behind its margin."""
    rows, columns = cells.shape[:2]
    return image[14 : 14 + rows * scale, 14 : 14 + columns * scale]


@given(st.integers(1, 40), st.integers(1, 40), st.integers(1, 9))
def test_cells_are_whole_pixels(rows: int, columns: int, scale: int) -> None:
    description = checkered(rows, columns)
    image = draw.pixels(description, scale=scale)
    wanted = np.repeat(np.repeat(description.cells, scale, axis=0), scale, axis=1)
    assert np.array_equal(block_of(image, description.cells, scale), wanted)
    assert image.shape == (rows * scale + 28, columns * scale + 28, 3)


def test_rc_settings_are_ignored() -> None:
    description = checkered(5, 7)
    plain = draw.pixels(description, scale=6)
    with mpl.rc_context({"image.interpolation": "bilinear", "savefig.bbox": "tight"}):
        assert np.array_equal(draw.pixels(description, scale=6), plain)


def test_positions_of_glyphs_and_arrows() -> None:
    cells = np.full((4, 4, 3), 255, dtype=np.uint8)
    scale = 40
    bare = draw.pixels(Description("", "", cells), scale=scale)

    def changed(**more: Any) -> set[tuple[int, int]]:
        image = draw.pixels(Description("", "", cells, **more), scale=scale)
        rows, columns = np.nonzero((image != bare).any(axis=-1))
        return {
            (int(row - 14) // scale, int(column - 14) // scale)
            for row, column in zip(rows, columns, strict=True)
        }

    assert changed(glyphs=(Glyph(1, 2, "♞"),)) == {(1, 2)}
    assert changed(glyphs=(Glyph(3, 0, "1"),)) == {(3, 0)}
    assert changed(arrows=(Arrow((0, 3), (2, 3)),)) == {(0, 3), (1, 3), (2, 3)}
    assert changed(arrows=(Arrow((1, 1), (1, 1)),)) == set()


def test_colour_of_a_glyph() -> None:
    cells = np.full((1, 1, 3), 255, dtype=np.uint8)
    sign = Description("", "", cells, (Glyph(0, 0, "■", "#d02040"),))
    assert draw.pixels(sign, scale=41)[14 + 20, 14 + 20].tolist() == [0xD0, 0x20, 0x40]


@pytest.mark.parametrize(
    "more", [{"caption": "nine by nine"}, {"row_labels": ("1", "2")}, {"column_labels": ("a", "b")}]
)
def test_captions_and_labels(more: dict[str, Any]) -> None:
    bare, labelled = checkered(2, 2), checkered(2, 2, **more)
    small, large = draw.pixels(bare, scale=50), draw.pixels(labelled, scale=50)
    assert large.shape[0] > small.shape[0] or large.shape[1] > small.shape[1]
    dark = (large < 100).all(axis=-1).sum() - (small < 100).all(axis=-1).sum()
    assert dark > 10


def test_long_title() -> None:
    description = Description("m" * 60, "", np.zeros((1, 1, 3), dtype=np.uint8))
    image = draw.pixels(description, scale=4)
    assert (image[:, -5:] == 255).all(), "ink touches the right edge"
    assert (image[:30] < 100).any()


def test_dollar_signs_are_not_math() -> None:
    assert draw.pixels(Description("$x", "", np.zeros((1, 1, 3), np.uint8), caption="a_$1$")).any()


def test_save_png(tmp_path: Path) -> None:
    description = checkered(3, 4)
    path = draw.save_png(description, tmp_path / "board.PNG", scale=5)
    saved = np.round(imread(path)[..., :3] * 255).astype(np.uint8)
    assert np.array_equal(saved, draw.pixels(description, scale=5))
    assert [entry.name for entry in tmp_path.iterdir()] == ["board.PNG"]


def test_svg(tmp_path: Path) -> None:
    board = Description("board", "", np.zeros((2, 2, 3), np.uint8), glyphs=(Glyph(0, 1, "♔"),))
    path = draw.save_picture([board, checkered(2, 2)], tmp_path / "board.svg")
    assert path.read_bytes().rstrip().endswith(b"</svg>")
    assert path.read_bytes().count(b"<image") == 2, "cells of each"
    assert path.read_bytes() == draw.save_picture([board, checkered(2, 2)], path).read_bytes()
    plain = draw.save_picture(checkered(2, 2), tmp_path / "plain.svg")
    shapes = [content.count(b"<path") for content in (path.read_bytes(), plain.read_bytes())]
    assert shapes[0] > shapes[1], "pieces are drawn as lines"
    drawn = draw.save_picture(board, tmp_path / "board.png")
    assert drawn.read_bytes() == draw.png(board)
    with pytest.raises(UsageError, match="there is no folder"):
        draw.save_picture(board, tmp_path / "nowhere" / "board.svg")


def test_failed_save_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = draw.save_png(checkered(2, 2), tmp_path / "kept.png")
    before = path.read_bytes()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(RunError, match="the disk is full"):
        draw.save_png(checkered(3, 3), path)
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["kept.png"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("maze.jpg", r"written as \.png, got '.*maze\.jpg'; try '.*maze\.png'"),
        ("maze", r"written as \.png"),
        ("nowhere/maze.png", "there is no folder '.*nowhere'; make it first"),
        ("folder.png", "it is a folder"),
    ],
)
def test_invalid_paths(tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / "folder.png").mkdir()
    with pytest.raises(UsageError, match=message):
        draw.save_png(checkered(1, 1), tmp_path / name)


def test_show_on_existing_axes() -> None:
    axes = Figure().add_subplot()
    description = Description("title", "", np.zeros((2, 3, 3), np.uint8), caption="caption")
    assert draw.show(description, ax=axes) is axes
    assert (axes.get_title(), axes.get_xlabel()) == ("title", "caption")
    assert axes.get_xlim() == (-0.5, 2.5)
    assert axes.get_ylim() == (1.5, -0.5)
    assert len(axes.images) == 1


def test_caption_wraps_to_the_axes() -> None:
    figure = Figure(figsize=(12, 4))
    wide, narrow = figure.add_axes((0, 0, 0.9, 1)), figure.add_axes((0, 0, 0.25, 1))
    long = checkered(3, 3, caption="13 by 13 squares, path of 8 steps, 316 pixels wrong")
    assert draw.show(long, ax=wide).get_xlabel() == long.caption
    folded = draw.show(long, ax=narrow).get_xlabel()
    assert folded.count("\n") == 1
    assert folded.replace("\n", " ") == long.caption


def test_show_does_not_register_with_pyplot() -> None:
    axes = draw.show(checkered(2, 2))
    assert axes.get_figure() is not None
    pyplot = sys.modules.get("matplotlib.pyplot")
    assert pyplot is None or pyplot.get_fignums() == []


def test_show_in_a_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[dict[str, bytes]] = []
    notebook = types.ModuleType("IPython")
    display = types.ModuleType("IPython.display")
    monkeypatch.setattr(notebook, "get_ipython", object, raising=False)
    monkeypatch.setattr(display, "display", lambda data, raw: shown.append(data), raising=False)
    monkeypatch.setitem(sys.modules, "IPython", notebook)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    draw.show(checkered(2, 2))
    assert [data["image/png"][:4] for data in shown] == [b"\x89PNG"]
    draw.show(checkered(2, 2), ax=Figure().add_subplot())
    assert len(shown) == 1, "the user's own figure is the user's to show"


def plain(rows: int, columns: int, **more: Any) -> Description:
    return Description("a problem", "", np.zeros((rows, columns, 3), np.uint8), **more)


sizes = st.lists(st.tuples(st.integers(1, 30), st.integers(1, 30)), min_size=1, max_size=7)


@settings(max_examples=12)
@given(sizes, st.none() | st.integers(1, 8))
def test_panels_do_not_overlap(shapes: list[tuple[int, int]], columns: int | None) -> None:
    figure = sheet([plain(*shape) for shape in shapes], columns=columns, scale=10)
    boxes = [axes.get_position() for axes in figure.axes]
    assert len(boxes) == len(shapes)
    for place, box in enumerate(boxes):
        assert 0 <= box.x0 < box.x1 <= 1
        assert 0 <= box.y0 < box.y1 <= 1
        for other in boxes[:place]:
            assert other.x1 < box.x0 or other.y0 > box.y1, "panels overlap or are out of order"


def test_columns() -> None:
    figure = sheet([plain(4, 4)] * 6, columns=3)
    assert len({round(axes.get_position().x0, 6) for axes in figure.axes}) == 3


def test_default_columns() -> None:
    strips = sheet([plain(2, 64)] * 2)
    squares = sheet([plain(20, 20)] * 2)
    assert len({axes.get_position().x0 for axes in strips.axes}) == 1
    assert len({axes.get_position().y0 for axes in squares.axes}) == 1


def test_glyph_cells_are_readable() -> None:
    with_signs = sheet([plain(1, 64, glyphs=(Glyph(0, 0, "1"),))])
    without = sheet([plain(1, 64)])
    width = with_signs.axes[0].get_window_extent().width
    assert width / 64 >= 20
    assert without.axes[0].get_window_extent().width < width


@pytest.mark.parametrize(
    ("count", "options", "message"),
    [
        (0, {}, "nothing to draw"),
        (1, {"columns": 0}, "columns must be at least 1, got 0"),
        (1, {"scale": -2}, "scale must be at least 1, got -2"),
        (1, {"scale": 9000}, "pixels and at most 20000 a side"),
    ],
)
def test_invalid_sheets(count: int, options: dict[str, int], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        sheet([plain(3, 3)] * count, **options)
