"""Pictures: exact to the pixel, complete files or none, no global state."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.figure import Figure
from matplotlib.image import imread

import iterant
from iterant import draw
from iterant.analysis import Subject
from iterant.errors import UsageError
from iterant.evaluation import Curve
from iterant.nets import build
from iterant.tasks.protocol import Arrow, Description, Glyph

PNG = b"\x89PNG\r\n\x1a\n"
WHITE = np.full((4, 4, 3), 255, dtype=np.uint8)


def checkered(rows: int, columns: int, **more: Any) -> Description:
    """Cells of different colours, to detect one out of place."""
    numbers = np.arange(rows * columns).reshape(rows, columns)
    cells = np.stack([numbers * 37 % 251, numbers * 91 % 241, numbers % 253], axis=-1)
    return Description("", "", cells.astype(np.uint8), **more)


@given(st.integers(1, 40), st.integers(1, 40), st.integers(1, 9))
def test_cells_are_whole_pixels(rows: int, columns: int, scale: int) -> None:
    description = checkered(rows, columns)
    image = draw.pixels(description, scale=scale)
    wanted = description.cells.repeat(scale, axis=0).repeat(scale, axis=1)
    assert np.array_equal(image[14:-14, 14:-14], wanted)


def test_rc_settings_are_ignored() -> None:
    description = checkered(5, 7, caption="caption", row_labels=("a", "b"))
    plain = draw.png(description)
    with mpl.rc_context({"image.interpolation": "bilinear", "axes.labelsize": 30}):
        assert draw.png(description) == plain


def test_positions_of_glyphs_and_arrows() -> None:
    scale = 40
    bare = draw.pixels(Description("", "", WHITE), scale=scale)

    def changed(**more: Any) -> set[tuple[int, int]]:
        image = draw.pixels(Description("", "", WHITE, **more), scale=scale)
        return {
            (int(row - 14) // scale, int(column - 14) // scale)
            for row, column in np.argwhere((image != bare).any(axis=-1))
        }

    assert changed(glyphs=(Glyph(1, 2, "♞"),)) == {(1, 2)}
    assert changed(glyphs=(Glyph(3, 0, "1"),)) == {(3, 0)}
    assert changed(arrows=(Arrow((0, 3), (2, 3)),)) == {(0, 3), (1, 3), (2, 3)}
    assert changed(arrows=(Arrow((1, 1), (1, 1)),)) == set()


def test_save_png(tmp_path: Path) -> None:
    description = checkered(3, 4)
    path = draw.save_png(description, tmp_path / "board.PNG", scale=5)
    saved = np.round(imread(path)[..., :3] * 255).astype(np.uint8)
    assert np.array_equal(saved, draw.pixels(description, scale=5))
    assert path.read_bytes() == draw.png(description, scale=5)
    assert [entry.name for entry in tmp_path.iterdir()] == ["board.PNG"]


def test_svg(tmp_path: Path) -> None:
    board = Description("board", "", WHITE, glyphs=(Glyph(0, 1, "♔"),))
    path = draw.save_picture([board, checkered(2, 2)], tmp_path / "board.svg")
    assert path.read_bytes().rstrip().endswith(b"</svg>")
    assert path.read_bytes().count(b"<image") == 2, "cells of each"
    assert path.read_bytes() == draw.save_picture([board, checkered(2, 2)], path).read_bytes()


@pytest.mark.parametrize("name", ["maze.jpg", "maze", "nowhere/maze.png", "folder.png"])
def test_invalid_paths(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder.png").mkdir()
    with pytest.raises(UsageError):
        draw.save_png(checkered(1, 1), tmp_path / name)


@pytest.mark.parametrize(("count", "scale"), [(0, None), (1, -2), (1, 9000)])
def test_invalid_pictures(count: int, scale: int | None) -> None:
    with pytest.raises(UsageError):
        draw.picture([checkered(3, 3)] * count, scale=scale)


def test_show_on_existing_axes() -> None:
    figure = Figure(figsize=(12, 4))
    wide, narrow = figure.add_axes((0, 0, 0.9, 1)), figure.add_axes((0, 0, 0.25, 1))
    caption = "13 by 13 squares, path of 9 squares, 316 squares wrong $1$"
    description = Description("$title", "", WHITE[:2, :3], caption=caption)
    assert draw.show(description, ax=wide) is wide
    assert (wide.get_title(), wide.get_xlabel()) == ("$title", caption)
    assert (wide.get_xlim(), wide.get_ylim()) == ((-0.5, 2.5), (1.5, -0.5))
    wrapped = draw.show(description, ax=narrow).get_xlabel()
    assert wrapped.count("\n") == 1
    assert wrapped.replace("\n", " ") == caption
    figure.draw_without_rendering()  # $ is not parsed


sizes = st.lists(st.tuples(st.integers(1, 30), st.integers(1, 30)), min_size=1, max_size=7)


@settings(max_examples=12)
@given(sizes)
def test_panels_do_not_overlap(shapes: list[tuple[int, int]]) -> None:
    words: dict[str, Any] = {"caption": "caption", "row_labels": ("label",)}
    figure = draw.picture([checkered(*shape, **words) for shape in shapes], scale=10)
    boxes = [axes.get_tightbbox() or axes.bbox for axes in figure.axes]
    assert len(boxes) == len(shapes)
    for place, box in enumerate(boxes):
        assert 0 <= box.x0 < box.x1 <= figure.bbox.x1
        assert 0 <= box.y0 < box.y1 <= figure.bbox.y1
        for other in boxes[:place]:
            assert other.x1 < box.x0 or other.y0 > box.y1, "panels overlap or are out of order"


def test_notebooks_show_results(tmp_path: Path) -> None:
    assert checkered(3, 4)._repr_png_() == draw.png(checkered(3, 4))
    low, high = (
        Curve((1, 2, 3), torch.arange(10) < torch.tensor(solved)[:, None], torch.full((10,), 3))
        for solved in ([0, 1, 2], [0, 9, 10])
    )
    assert low._repr_png_().startswith(PNG)
    assert low._repr_png_() != high._repr_png_()
    sums = iterant.task("prefix-sums")
    subject = Subject(build("local-rule", {"dims": 1, "channels": 1}, seed=0), sums, "<mine>")
    html = iterant.analyze(subject, what="zeros", size=8, count=2, max_steps=4)._repr_html_()
    assert "&lt;mine&gt;" in html
    assert "<html" not in html, "it is part of another page"


def test_no_warning_without_a_writable_home(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    folders = ("XDG_CONFIG_HOME", "XDG_CACHE_HOME", "MPLCONFIGDIR")
    environment = {name: value for name, value in os.environ.items() if name not in folders}
    program = (
        "from iterant import draw, task; sums = task('prefix-sums');"
        "draw.save_png(sums.describe(sums.sample(1, size=4)), 'a.png')"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, check=True, capture_output=True, text=True,
        env={**environment, "HOME": str(tmp_path / "file" / "home")},
    )  # fmt: skip
    assert done.stderr == ""
    assert (tmp_path / "a.png").exists()
