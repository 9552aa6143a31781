"""Mazes as cameras and pens make them: uneven light, turned paper, lines that end in crossings."""

from __future__ import annotations

import io

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFilter

import iterant
from iterant.errors import TaskError
from iterant.tasks.mazes.generate import FREE, WALL, to_lattice
from iterant.tasks.mazes.image import kinds_of, read_picture

CLOSE = np.array([[30, 28, 60], [238, 232, 214], [40, 190, 70], [214, 52, 40]], dtype=np.uint8)


def maze(size: int, seed: int) -> NDArray[np.uint8]:
    """(s, s) codes of a maze's squares."""
    batch = iterant.task("mazes").sample(1, size=size, seed=seed)
    found: NDArray[np.uint8] = to_lattice(batch.inputs)[0]
    return found


def on_paper(squares: NDArray[np.uint8], scale: int = 11) -> NDArray[np.uint8]:
    picture = CLOSE[np.pad(squares, 1).repeat(scale, axis=0).repeat(scale, axis=1)]
    return np.pad(picture, ((20, 20), (20, 20), (0, 0)), constant_values=235)


def read(picture: Image.Image) -> NDArray[np.uint8]:
    file = io.BytesIO()
    picture.save(file, "PNG")
    return read_picture(file.getvalue())[0]


@pytest.mark.parametrize("level", range(5, 256, 25))
def test_of_two_greys_the_lighter_one_is_free(level: int) -> None:
    """Whatever the two are, if they lie far enough apart: lightness must not wrap around."""
    for other in range(0, 256, 17):
        if abs(other - level) < 60:
            continue
        picture = np.full((48, 48, 3), level, dtype=np.uint8)
        picture[:, ::2] = other
        wanted = WALL if level < other else FREE
        assert (kinds_of(picture)[:, 1::2] == wanted).all()


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("darkest", [0.8, 0.5, 0.4])
def test_one_side_may_be_darker(axis: int, darkest: float) -> None:
    for seed in range(4):
        squares = maze(13, seed)
        picture = on_paper(squares)
        light = np.linspace(darkest, 1, picture.shape[axis])
        shaded = picture * (light[:, None, None] if axis == 0 else light[None, :, None])
        assert np.array_equal(read(Image.fromarray(shaded.astype(np.uint8))), squares)


@pytest.mark.parametrize("scale", [9, 15])
def test_noise_and_blur_make_no_thin_walls_of_thick_ones(scale: int) -> None:
    for seed in range(6):
        squares = maze(13, seed)
        colours = on_paper(squares, scale).astype(float)
        noise = np.random.default_rng(seed).normal(0, 18, colours.shape)
        noisy = Image.fromarray((colours + noise).clip(0, 255).astype(np.uint8))
        assert np.array_equal(read(noisy.filter(ImageFilter.GaussianBlur(1.2))), squares)


@pytest.mark.parametrize("angle", [0.3, 0.6, 1.5, 2, 5, 20])
def test_turned_paper_is_read_or_refused_but_never_misread(angle: float) -> None:
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
def test_walls_drawn_with_a_pen_end_within_their_crossings(step: int, pen: int) -> None:
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
