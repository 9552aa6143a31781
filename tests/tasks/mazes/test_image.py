"""Mazes in drawn and photographed pictures, and pictures of anything else."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFilter

import iterant
from iterant import draw
from iterant.errors import DataError, TaskError
from iterant.tasks.mazes.generate import WALL, to_lattice
from iterant.tasks.mazes.image import read_picture

TASK = iterant.task("mazes")
CLOSE = np.array([[30, 28, 60], [238, 232, 214], [40, 190, 70], [214, 52, 40]], dtype=np.uint8)


def maze(size: int, seed: int = 0) -> NDArray[np.uint8]:
    """(s, s) codes of a maze's squares."""
    found: NDArray[np.uint8] = to_lattice(TASK.sample(1, size=size, seed=seed).inputs)[0]
    return found


def saved(colours: NDArray[np.uint8], kind: str = "PNG", **how: Any) -> bytes:
    file = io.BytesIO()
    Image.fromarray(colours).save(file, kind, **how)
    return file.getvalue()


def drawn(squares: NDArray[np.uint8], scale: int, wall: int = 1) -> NDArray[np.uint8]:
    """Colours of the squares, `scale` pixels each, with a wall around."""
    return CLOSE[np.pad(squares, wall).repeat(scale, axis=0).repeat(scale, axis=1)]


@given(st.sampled_from([5, 7, 9, 13]), st.integers(0, 50), st.integers(2, 9), st.integers(0, 30))
def test_any_scale_and_any_margin(size: int, seed: int, scale: int, margin: int) -> None:
    squares = maze(size, seed)
    paper = ((margin, margin + 3), (margin, margin), (0, 0))
    picture = np.pad(drawn(squares, scale), paper, constant_values=250)
    found, notes = read_picture(saved(picture))
    assert np.array_equal(found, squares)
    assert notes[0].startswith(f"{size} by {size} squares of {scale} pixels, start at row ")


@pytest.mark.parametrize("size", [9, 33])
def test_benchmark_image_and_one_pixel_per_square(size: int) -> None:
    squares = maze(size)
    image = TASK.sample(1, size=size).inputs[0].numpy().transpose(1, 2, 0)
    assert np.array_equal(read_picture(saved((image * 255).astype(np.uint8)))[0], squares)
    assert np.array_equal(read_picture(saved(drawn(squares, 1)))[0], squares)


@pytest.mark.parametrize("factor", [1.3, 1.37, 1.7, 2.5])
@pytest.mark.parametrize("how", [Image.Resampling.NEAREST, Image.Resampling.BICUBIC])
def test_a_picture_that_was_scaled_and_blurred(factor: float, how: Image.Resampling) -> None:
    squares = maze(21, 4)
    picture = Image.fromarray(np.pad(drawn(squares, 6), ((15, 15), (15, 15), (0, 0)), mode="edge"))
    side = int(picture.width * factor)
    found, _ = read_picture(saved(np.asarray(picture.resize((side, side), how))))
    assert np.array_equal(found, squares)


def test_a_lossy_picture() -> None:
    squares = maze(13, 2)
    assert np.array_equal(read_picture(saved(drawn(squares, 8), "JPEG", quality=75))[0], squares)


@pytest.mark.parametrize(("path", "wall"), [(9, 2), (3, 1), (12, 5)])
@pytest.mark.parametrize("size", [5, 13])
def test_walls_that_are_lines(path: int, wall: int, size: int) -> None:
    squares = np.pad(maze(size, 1), 1)
    widths = [path if place % 2 else wall for place in range(len(squares))]
    picture = CLOSE[squares.repeat(widths, axis=0).repeat(widths, axis=1)]
    found, notes = read_picture(saved(picture))
    assert np.array_equal(found, squares[1:-1, 1:-1])
    assert "thin walls" in notes[0]


@pytest.mark.parametrize(
    ("size", "path", "wall", "factor", "blur"),
    [
        (21, 14, 2, 1.03, 0),
        (21, 20, 4, 0.97, 0),
        (21, 13, 2, 0.93, 0),
        (9, 18, 4, 0.7, 0.8),
        (9, 24, 5, 0.7, 0.8),
    ],
)
def test_blurred_lines(size: int, path: int, wall: int, factor: float, blur: float) -> None:
    squares = np.pad(maze(size, 2), 1)
    widths = [path if place % 2 else wall for place in range(len(squares))]
    picture = CLOSE[squares.repeat(widths, axis=0).repeat(widths, axis=1)]
    paper = np.pad(picture, ((9, 9), (9, 9), (0, 0)), constant_values=250)
    side = int(len(paper) * factor)
    how = Image.Resampling.BILINEAR if blur else Image.Resampling.BICUBIC
    scaled = Image.fromarray(paper).resize((side, side), how)
    blurred = np.asarray(scaled.filter(ImageFilter.GaussianBlur(blur)))
    assert np.array_equal(read_picture(saved(blurred))[0], squares[1:-1, 1:-1])


def test_a_rectangle_with_loops_and_small_round_spots() -> None:
    squares = np.ones((4, 9), dtype=np.uint8)
    squares[1:3, 1:4], squares[1:3, 5:8] = 0, 0
    picture = drawn(squares, 12)
    rows, columns = np.ogrid[:12, :12]
    disc = (rows - 6) ** 2 + (columns - 6) ** 2 <= 12
    for code, (row, column) in ((2, (0, 0)), (3, (3, 8))):
        squares[row, column] = code
        picture[12 + 12 * row : 24 + 12 * row, 12 + 12 * column : 24 + 12 * column][disc] = CLOSE[
            code
        ]
    assert np.array_equal(read_picture(saved(picture))[0], squares)


def test_no_wall_around() -> None:
    squares = maze(13, 3)
    assert np.array_equal(read_picture(saved(drawn(squares, 6, wall=0)))[0], squares)


def test_no_wall_around_but_paper() -> None:
    """Only walls that reach every side show where the maze ends."""
    squares = np.array([[0, 2, 0], [1, 1, 1], [0, 3, 0]], dtype=np.uint8)
    paper = np.pad(CLOSE[squares.repeat(9, axis=0).repeat(9, axis=1)],
                   ((9, 20), (12, 12), (0, 0)), constant_values=250)  # fmt: skip
    assert np.array_equal(read_picture(saved(paper))[0], squares)


@pytest.mark.parametrize("size", [9, 33])
def test_our_own_drawings(size: int, tmp_path: Path) -> None:
    batch = TASK.sample(1, size=size, seed=5)
    path = draw.save_png(TASK.describe(batch), tmp_path / "m.png")
    assert np.array_equal(read_picture(path.read_bytes())[0], to_lattice(batch.inputs)[0])


def test_paper_that_is_transparent_is_white() -> None:
    squares = maze(9)
    picture = drawn(squares, 4)
    see_through = np.dstack([picture, np.where((picture == CLOSE[1]).all(-1), 0, 255)])
    assert np.array_equal(read_picture(saved(see_through.astype(np.uint8)))[0], squares)


def photo() -> NDArray[np.uint8]:
    """Smooth light and shade with a green and a red thing in it: no grid anywhere."""
    rows, columns = np.mgrid[:240, :320] / 40
    shade = 127 + 120 * np.sin(rows * 1.7 + columns**1.3) * np.cos(columns - rows**1.1)
    picture = np.repeat(shade[..., None], 3, axis=2).astype(np.uint8)
    picture[20:60, 20:60], picture[150:190, 220:250] = (30, 180, 60), (200, 40, 30)
    return picture


def two_starts() -> NDArray[np.uint8]:
    squares = maze(9, 1)
    row, column = np.argwhere(squares == 1)[-1]
    squares[row, column] = 2
    return drawn(squares, 5)


def without(code: int) -> NDArray[np.uint8]:
    squares = maze(9, 1)
    squares[squares == code] = 1
    return drawn(squares, 5)


@pytest.mark.parametrize(
    ("picture", "said"),
    [
        (photo(), "no maze"),
        (two_starts(), "several green spots"),
        (without(2), "no green spot for the start"),
        (without(3), "no red spot for the end"),
        (np.full((50, 50, 3), 255, dtype=np.uint8), "no dark walls"),
        (np.zeros((1, 1, 3), dtype=np.uint8), "no dark walls"),
    ],
)
def test_other_pictures_are_refused_in_one_line(picture: NDArray[np.uint8], said: str) -> None:
    with pytest.raises(TaskError) as caught:
        read_picture(saved(picture))
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_huge_pictures_are_refused_before_decompression() -> None:
    import tracemalloc

    file = io.BytesIO()
    Image.new("1", (10_000, 10_000)).save(file, "PNG")
    tracemalloc.start()
    with pytest.raises(TaskError, match="10,000 by 10,000 pixels"):
        read_picture(file.getvalue())
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10_000_000


@pytest.mark.parametrize("keep", [60, 400])
def test_a_damaged_picture_says_so(keep: int) -> None:
    whole = saved(drawn(maze(21), 5))
    with pytest.raises(DataError, match="picture is"):
        read_picture(whole[:keep])


def on_paper(squares: NDArray[np.uint8], scale: int = 11) -> NDArray[np.uint8]:
    picture = CLOSE[np.pad(squares, 1).repeat(scale, axis=0).repeat(scale, axis=1)]
    return np.pad(picture, ((20, 20), (20, 20), (0, 0)), constant_values=235)


def read(picture: Image.Image) -> NDArray[np.uint8]:
    file = io.BytesIO()
    picture.save(file, "PNG")
    return read_picture(file.getvalue())[0]


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize(("darkest", "wall"), [(0.5, 30), (0.4, 30), (0.4, 90), (0.5, 110)])
def test_one_side_may_be_darker(axis: int, darkest: float, wall: int) -> None:
    """With light walls, paper in the shade is as dark as walls in the light."""
    for seed in range(4):
        squares = maze(13, seed)
        picture = on_paper(squares)
        picture[(picture == CLOSE[WALL]).all(axis=-1)] = wall
        light = np.linspace(darkest, 1, picture.shape[axis])
        shaded = picture * (light[:, None, None] if axis == 0 else light[None, :, None])
        assert np.array_equal(read(Image.fromarray(shaded.astype(np.uint8))), squares)


@pytest.mark.parametrize("scale", [9, 15])
def test_noise_and_blur(scale: int) -> None:
    for seed in range(6):
        squares = maze(13, seed)
        colours = on_paper(squares, scale).astype(float)
        noise = np.random.default_rng(seed).normal(0, 18, colours.shape)
        noisy = Image.fromarray((colours + noise).clip(0, 255).astype(np.uint8))
        assert np.array_equal(read(noisy.filter(ImageFilter.GaussianBlur(1.2))), squares)


@pytest.mark.parametrize("angle", [0.3, 0.6, 1.5, 2, 5, 20])
def test_rotated_paper_is_never_misread(angle: float) -> None:
    for seed in range(4):
        squares = maze(13, seed)
        turned = Image.fromarray(on_paper(squares)).rotate(angle, fillcolor=(235, 235, 235))
        try:
            found = read(turned)
        except TaskError:
            assert angle > 0.3, "a little is no matter"
        else:
            assert np.array_equal(found, squares)


@pytest.mark.parametrize(("step", "pen"), [(55, 4), (40, 3), (24, 5), (30, 2)])
def test_walls_drawn_with_a_pen(step: int, pen: int) -> None:
    for seed in range(4):
        squares = maze(9, seed)
        assert np.array_equal(read(by_pen(squares, step, pen)), squares)


def by_pen(squares: NDArray[np.uint8], step: int, pen: int) -> Image.Image:
    """Lines from the middle of one crossing to the middle of the next, in a frame; round spots."""
    rooms, edge = len(squares) // 2 + 1, 20
    side = rooms * step
    picture = Image.new("RGB", (side + 2 * edge, side + 2 * edge), "white")
    draw = ImageDraw.Draw(picture)
    draw.rectangle((edge, edge, edge + side, edge + side), outline="black", width=pen)
    for row, column in np.argwhere(squares == WALL).tolist():
        # A wall between two rooms lies on an odd row or an odd column, but not on both.
        x, y = edge + (column + 1) * step // 2, edge + (row + 1) * step // 2
        if row % 2 and not column % 2:
            draw.line((x - step // 2, y, x + step // 2, y), fill="black", width=pen)
        elif column % 2 and not row % 2:
            draw.line((x, y - step // 2, x, y + step // 2), fill="black", width=pen)
    for code, colour in ((2, "green"), (3, "red")):
        row, column = np.argwhere(squares == code)[0].tolist()
        x, y = edge + (column + 1) * step // 2, edge + (row + 1) * step // 2
        draw.ellipse((x - step // 5, y - step // 5, x + step // 5, y + step // 5), fill=colour)
    return picture
