"""Mazes in drawn and photographed pictures, and pictures of anything else."""

from __future__ import annotations

import contextlib
import io
import re
import tracemalloc
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFilter

import iterant
from iterant import draw
from iterant.errors import DataError, TaskError
from iterant.tasks.mazes.grid import END, FREE, START, WALL, from_image
from iterant.tasks.mazes.image import read_picture

Pixels = NDArray[np.uint8]

TASK = iterant.task("mazes")
CLOSE = np.array([[30, 28, 60], [238, 232, 214], [40, 190, 70], [214, 52, 40]], dtype=np.uint8)
"""Colours that are not exact."""


def maze(size: int, seed: int = 0) -> Pixels:
    """(s, s) codes of the cells."""
    cells: Pixels = from_image(TASK.sample(1, size=size, seed=seed).inputs)[0]
    return cells


def file_of(picture: Pixels | Image.Image, kind: str = "PNG", **options: Any) -> bytes:
    image = picture if isinstance(picture, Image.Image) else Image.fromarray(picture)
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def read(picture: Pixels | Image.Image) -> Pixels:
    return read_picture(file_of(picture))[0]


def check(picture: Pixels | Image.Image, cells: Pixels, *words: str) -> None:
    """The picture is read as these cells, with a note that matches all of these words."""
    found, notes = read_picture(file_of(picture))
    assert np.array_equal(found, cells)
    assert all(re.search(word, notes[0]) for word in words), notes


def drawn(cells: Pixels, widths: Any, margin: int = 0) -> Pixels:
    """Cells of these widths in pixels, on paper."""
    picture = CLOSE[cells.repeat(widths, axis=0).repeat(widths, axis=1)]
    paper = ((margin, margin + margin // 3), (margin, margin), (0, 0))
    return np.pad(picture, paper, constant_values=250)


def lines(cells: Pixels, path: int, wall: int, margin: int = 0) -> Pixels:
    """A maze whose walls are thinner than its paths."""
    walled = np.pad(cells, 1)
    return drawn(walled, [path if index % 2 else wall for index in range(len(walled))], margin)


@given(st.sampled_from([5, 7, 9, 13]), st.integers(0, 50), st.integers(2, 9), st.integers(0, 30))
def test_any_scale_and_any_margin(size: int, seed: int, scale: int, margin: int) -> None:
    cells = maze(size, seed)
    words = f"^{size} by {size} squares of {scale} pixels, start at row "
    check(drawn(np.pad(cells, 1), scale, margin), cells, words)


@pytest.mark.parametrize("size", [9, 33])
def test_plain_drawings(size: int) -> None:
    batch = TASK.sample(1, size=size)
    cells = maze(size)
    walled = np.pad(cells, 1)
    solid = drawn(walled, 4)
    clear = np.dstack([solid, np.where((solid == CLOSE[FREE]).all(-1), 0, 255)]).astype(np.uint8)
    files = {
        "the benchmark's image": file_of((batch.inputs[0].permute(1, 2, 0) * 255).byte().numpy()),
        "a pixel per cell": file_of(drawn(walled, 1)),
        "no wall around": file_of(drawn(cells, 6)),
        "lossy": file_of(drawn(walled, 8), "JPEG", quality=75),
        "transparent paper": file_of(clear),
        "our own picture, with the path": draw.png(TASK.describe(batch)),
    }
    for name, content in files.items():
        assert np.array_equal(read_picture(content)[0], cells), name


@pytest.mark.parametrize("factor", [1.3, 1.37, 1.7, 2.5])
@pytest.mark.parametrize("how", [Image.Resampling.NEAREST, Image.Resampling.BICUBIC])
def test_scaled_and_blurred(factor: float, how: Image.Resampling) -> None:
    cells = maze(21, 4)
    picture = np.pad(drawn(np.pad(cells, 1), 6), ((15, 15), (15, 15), (0, 0)), mode="edge")
    side = int(len(picture) * factor)
    assert np.array_equal(read(Image.fromarray(picture).resize((side, side), how)), cells)


@pytest.mark.parametrize("squash", [0.5, 0.7, 0.95, 1.4])
def test_cells_may_be_wider_than_high(squash: float) -> None:
    for seed in range(3):
        with_spots, with_gaps = maze(15, seed), gapped(15, seed)
        for cells, picture, words in (
            (with_spots, drawn(np.pad(with_spots, 1), 11, margin=20), r"of \S+ by 11 pixels"),
            (with_spots, lines(with_spots, 18, 4, margin=15), "between thin walls"),
            (with_gaps, drawn(np.minimum(with_gaps, FREE), 11, margin=20), r"of \S+ by 11 pixels"),
        ):
            height, width = picture.shape[:2]
            check(Image.fromarray(picture).resize((width, round(squash * height))), cells, words)


@pytest.mark.parametrize(("path", "wall"), [(9, 2), (3, 1), (12, 5)])
@pytest.mark.parametrize("size", [5, 13])
def test_walls_that_are_lines(path: int, wall: int, size: int) -> None:
    check(lines(maze(size, 1), path, wall), maze(size, 1), "thin walls")


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
    cells = maze(size, 2)
    picture = np.pad(lines(cells, path, wall), ((9, 9), (9, 9), (0, 0)), constant_values=250)
    side = int(len(picture) * factor)
    how = Image.Resampling.BILINEAR if blur else Image.Resampling.BICUBIC
    scaled = Image.fromarray(picture).resize((side, side), how)
    assert np.array_equal(read(scaled.filter(ImageFilter.GaussianBlur(blur))), cells)


def test_a_rectangle_with_loops_and_small_round_spots() -> None:
    cells = np.ones((4, 9), dtype=np.uint8)
    cells[1:3, 1:4], cells[1:3, 5:8] = WALL, WALL
    picture = Image.fromarray(drawn(np.pad(cells, 1), 12))
    for code, row, column in ((START, 0, 0), (END, 3, 8)):
        cells[row, column] = code
        x, y = 18 + 12 * column, 18 + 12 * row
        colour = tuple(CLOSE[code].tolist())
        ImageDraw.Draw(picture).ellipse((x - 3, y - 3, x + 3, y + 3), fill=colour)
    assert np.array_equal(read(picture), cells)


def test_no_wall_around_but_paper() -> None:
    """Only walls that reach every side show where the maze ends."""
    cells = np.array([[0, 2, 0], [1, 1, 1], [0, 3, 0]], dtype=np.uint8)
    assert np.array_equal(read(drawn(cells, 9, margin=12)), cells)


@pytest.mark.parametrize("seed", range(6))
def test_ends_on_both_sides_of_a_thin_wall(seed: int) -> None:
    """Read as light walls, such a picture would have a way of one step."""
    cells = np.minimum(maze(19, seed), FREE)
    down, right = np.argwhere(cells[::2, 1:-1:2] == WALL)[seed] * (2, 2)
    cells[down, right], cells[down, right + 2] = START, END
    assert np.array_equal(read(lines(cells, 23, 1)), cells)


@pytest.mark.parametrize("seed", range(12))
def test_gaps_in_thin_walls_without_paper(seed: int) -> None:
    cells = gapped(19, seed)
    picture = drawn(np.minimum(cells, FREE), [22 if i % 2 else 2 for i in range(len(cells))])
    assert np.array_equal(read(picture), cells)


@pytest.mark.parametrize("margin", [0, 9])
@pytest.mark.parametrize("turned", [False, True])
def test_a_straight_path_from_gap_to_gap(turned: bool, margin: int) -> None:
    rows = ("#S#####", "#.#...#", "#.#.#.#", "#...#.#", "#.###.#", "#.....#", "#E#####")
    cells = np.array([["#.SE".index(sign) for sign in row] for row in rows], dtype=np.uint8)
    cells = cells.T if turned else cells
    picture = (
        np.where(cells == WALL, 20, 250).astype(np.uint8).repeat(12, axis=0).repeat(12, axis=1)
    )
    check(np.pad(picture, margin, constant_values=250), cells)


def inverted(picture: Pixels) -> Pixels:
    """Light walls on a dark ground; the spots stay as they are."""
    walls, paths = ((picture == CLOSE[code]).all(-1) for code in (WALL, FREE))
    paper = (picture == 250).all(-1)
    picture = picture.copy()
    picture[walls], picture[paths | paper] = CLOSE[FREE], CLOSE[WALL]
    return picture


@given(st.sampled_from([5, 9, 13]), st.integers(0, 50), st.integers(2, 9), st.integers(0, 30))
@settings(deadline=None, max_examples=40)
def test_light_walls_on_a_dark_ground(size: int, seed: int, width: int, margin: int) -> None:
    cells = maze(size, seed)
    for picture in (drawn(np.pad(cells, 1), width, margin), lines(cells, 2 * width + 3, 2, margin)):
        check(inverted(picture), cells, "; light walls$")


def gapped(size: int, seed: int, gaps: int = 2) -> Pixels:
    """Cells with a wall around in which gaps are the ends, in reading order."""
    walled = np.pad(np.minimum(maze(size, seed), FREE), 1)
    rooms = 1 + 2 * np.random.default_rng(seed).integers(0, size // 2 + 1, 4)
    sides = [(0, rooms[0]), (len(walled) - 1, rooms[1]), (rooms[2], 0), (rooms[3], len(walled) - 1)]
    sides = sorted(sides[seed % 4 :] + sides[: seed % 4])[:gaps]
    for code, position in zip((START, END, FREE, FREE), sides, strict=False):
        walled[position] = code
    return walled


@given(st.sampled_from([5, 9, 13]), st.integers(0, 50), st.integers(2, 9), st.integers(0, 30))
@settings(deadline=None, max_examples=40)
def test_entrance_and_exit_are_gaps(size: int, seed: int, width: int, margin: int) -> None:
    cells = gapped(size, seed)
    shown = np.minimum(cells, FREE)
    wide = [2 * width + 3 if index % 2 else 2 for index in range(len(cells))]
    for picture in (drawn(shown, width, margin), drawn(shown, wide, margin)):
        check(picture, cells, "the gaps in the wall around$")
        check(inverted(picture), cells, "the gaps in the wall around; light walls$")


def test_a_photographed_maze_with_gaps() -> None:
    for seed in range(4):
        cells = gapped(13, seed)
        picture = drawn(np.minimum(cells, FREE), 11, margin=20)
        noise = np.random.default_rng(seed).normal(0, 12, picture.shape)
        shaded = picture * np.linspace(0.6, 1, len(picture))[:, None, None] + noise
        photo = Image.fromarray(shaded.clip(0, 255).astype(np.uint8))
        assert np.array_equal(read(photo.filter(ImageFilter.GaussianBlur(1))), cells)


@pytest.mark.parametrize("gaps", [0, 1, 3, 4])
def test_other_numbers_of_gaps_are_refused(gaps: int) -> None:
    words = f"{gaps or 'no'} gap{'s' * (gaps > 1)}; paint one square green and one red"
    with pytest.raises(TaskError, match=words):
        read(drawn(np.minimum(gapped(9, 1, gaps), FREE), 8, margin=10))


def photo() -> Pixels:
    """Smooth light and shade with a green and a red thing in it: no grid anywhere."""
    rows, columns = np.mgrid[:240, :320] / 40
    shade = 127 + 120 * np.sin(rows * 1.7 + columns**1.3) * np.cos(columns - rows**1.1)
    picture = np.repeat(shade[..., None], 3, axis=2).astype(np.uint8)
    picture[20:60, 20:60], picture[150:190, 220:250] = (30, 180, 60), (200, 40, 30)
    return picture


def changed(before: int, after: int) -> Pixels:
    """A maze with the last cell of a code changed to another one."""
    cells = maze(9, 1)
    cells[tuple(np.argwhere(cells == before)[-1])] = after
    return drawn(np.pad(cells, 1), 5)


def both_spots_in_one_cell() -> Pixels:
    picture = changed(END, FREE)
    rows, columns = np.nonzero((picture == CLOSE[START]).all(-1))
    picture[rows.min() : rows.min() + 2, columns.min() : columns.max() + 1] = CLOSE[END]
    return picture


@pytest.mark.parametrize(
    ("picture", "message"),
    [
        (photo(), "no maze"),
        (changed(FREE, START), "several green spots"),
        (changed(START, FREE), "no green spot for the start"),
        (changed(END, FREE), "no red spot for the end"),
        (both_spots_in_one_cell(), "lie in one square"),
        (np.full((50, 50, 3), 255, dtype=np.uint8), "no dark walls"),
        (np.zeros((1, 1, 3), dtype=np.uint8), "no dark walls"),
    ],
)
def test_other_pictures_are_refused_in_one_line(picture: Pixels, message: str) -> None:
    with pytest.raises(TaskError, match=message) as caught:
        read(picture)
    assert "\n" not in str(caught.value)


def test_huge_pictures_are_refused_before_decompression() -> None:
    content = file_of(Image.new("1", (10_000, 10_000)))
    tracemalloc.start()
    with pytest.raises(TaskError, match="10,000 by 10,000 pixels"):
        read_picture(content)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10_000_000


@pytest.mark.parametrize("size", [10, 60, 400])
def test_corrupt_pictures_are_refused(size: int) -> None:
    with pytest.raises(DataError, match=r"picture (is damaged|that can be read)") as caught:
        read_picture(file_of(drawn(maze(21), 5))[:size])
    assert "0x" not in str(caught.value)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize(("darkest", "wall"), [(0.5, 30), (0.4, 30), (0.4, 90), (0.5, 110)])
def test_one_side_may_be_darker(axis: int, darkest: float, wall: int) -> None:
    """With light walls, paper in the shade is as dark as walls in the light."""
    for seed in range(4):
        cells = maze(13, seed)
        picture = drawn(np.pad(cells, 1), 11, margin=20)
        picture[(picture == CLOSE[WALL]).all(axis=-1)] = wall
        light = np.linspace(darkest, 1, picture.shape[axis])
        shaded = picture * (light[:, None, None] if axis == 0 else light[None, :, None])
        assert np.array_equal(read(shaded.astype(np.uint8)), cells)


@pytest.mark.parametrize("scale", [9, 15])
def test_noise_and_blur(scale: int) -> None:
    for seed in range(6):
        cells = maze(13, seed)
        picture = drawn(np.pad(cells, 1), scale, margin=20)
        noise = np.random.default_rng(seed).normal(0, 18, picture.shape)
        noisy = Image.fromarray((picture + noise).clip(0, 255).astype(np.uint8))
        assert np.array_equal(read(noisy.filter(ImageFilter.GaussianBlur(1.2))), cells)


def looped(size: int, seed: int) -> Pixels:
    """Cells of a maze with loops."""
    task = iterant.task("mazes", problems="p=0.3")
    cells: Pixels = from_image(task.sample(1, size=size, seed=seed).inputs)[0]
    return cells


def noisy(picture: Pixels, seed: int, sigma: float, darkest: float = 1) -> Image.Image:
    """Brightness falls to ``darkest`` from the left to the right."""
    shaded = picture * np.linspace(1, darkest, picture.shape[1])[None, :, None]
    noise = np.random.default_rng(seed).normal(0, sigma, picture.shape)
    return Image.fromarray((shaded + noise).clip(0, 255).astype(np.uint8))


@pytest.mark.parametrize("light_walls", [False, True])
@pytest.mark.parametrize("make", [maze, looped])
def test_noise_in_uneven_light(make: Any, light_walls: bool) -> None:
    for seed in range(12):
        cells = make(13, seed)
        for picture in (drawn(np.pad(cells, 1), 11, margin=20), lines(cells, 14, 3, margin=20)):
            picture = inverted(picture) if light_walls else picture
            assert np.array_equal(read(noisy(picture, seed, sigma=15, darkest=0.5)), cells)


def test_colours_of_noise_are_no_spots() -> None:
    for seed in range(6):
        cells = gapped(13, seed)
        picture = drawn(np.minimum(cells, FREE), 8, margin=12)
        picture[(picture == CLOSE[WALL]).all(-1)] = 90
        assert np.array_equal(read(noisy(picture, seed, sigma=15)), cells)


@pytest.mark.parametrize("margin", [0, 12])
def test_blurred_light_lines_are_never_misread(margin: int) -> None:
    """Their dark paths, read as walls, would lose the lines between them."""
    check_or_refuse(
        (inverted(lines(cells, 10, 1, margin)), 0.5, cells)
        for cells in (looped(9, seed) for seed in range(8))
    )


def test_blurred_dots_between_loops_are_never_misread() -> None:
    check_or_refuse(
        (lines(cells, 11, 1, margin=12), 0.8, cells)
        for cells in (looped(19, seed) for seed in range(8))
    )


def check_or_refuse(pictures: Iterable[tuple[Pixels, float, Pixels]]) -> None:
    """Pictures, blurred by so much, are read as their cells or refused; some are read."""
    count = 0
    for picture, blur, cells in pictures:
        with contextlib.suppress(TaskError):
            found = read(Image.fromarray(picture).filter(ImageFilter.GaussianBlur(blur)))
            assert np.array_equal(found, cells)
            count += 1
    assert count >= 2


def test_a_cell_that_is_half_dark_is_refused() -> None:
    cells = maze(9)
    picture = drawn(np.pad(cells, 1), 12)
    row, column = np.argwhere(cells == FREE)[0] + 1
    picture[12 * row : 12 * row + 7, 12 * column : 12 * column + 12] = CLOSE[WALL]
    with pytest.raises(TaskError, match=f"the square at row {row}, column {column} is wall or"):
        read(picture)


@pytest.mark.parametrize("seed", [13, 35])
def test_few_walls_are_not_read_as_long_cells(seed: int) -> None:
    """Rows of a small maze may have hardly any edge between them."""
    task = iterant.task("mazes", problems="p=0.4")
    cells = from_image(task.sample(1, size=5, seed=seed).inputs)[0]
    picture = Image.fromarray(lines(cells, 15, 4))
    side = round(1.7 * picture.width)
    with pytest.raises(TaskError, match="no maze"):
        read(picture.resize((side, side), Image.Resampling.NEAREST))


@pytest.mark.parametrize("angle", [0.3, 0.6, 1.5, 2, 5, 20])
def test_rotated_paper_is_never_misread(angle: float) -> None:
    for seed in range(4):
        cells = maze(13, seed)
        paper = Image.fromarray(drawn(np.pad(cells, 1), 11, margin=20))
        try:
            found = read(paper.rotate(angle, fillcolor=(250, 250, 250)))
        except TaskError:
            assert angle > 0.3, "a small angle must be read"
        else:
            assert np.array_equal(found, cells)


@pytest.mark.parametrize("angle", [-0.4, 0.3, 0.4])
def test_rotated_paper_with_loops_has_dark_walls(angle: float) -> None:
    """With loops, the paths of a maze could be walls with a way between them."""
    for seed in range(8):
        cells = maze(9, seed)
        is_opened = np.random.default_rng(seed).random(cells.shape) < 0.3
        cells[is_opened & (cells == WALL)] = FREE
        paper = Image.fromarray(drawn(np.pad(cells, 1), 24, margin=20))
        assert np.array_equal(read(paper.rotate(angle, fillcolor=(250, 250, 250))), cells)


@pytest.mark.parametrize(("step", "pen"), [(55, 4), (40, 3), (24, 5), (30, 2)])
def test_walls_drawn_with_a_pen(step: int, pen: int) -> None:
    for seed in range(4):
        cells = maze(9, seed)
        assert np.array_equal(read(by_pen(cells, step, pen)), cells)


def by_pen(cells: Pixels, step: int, pen: int) -> Image.Image:
    """Lines from the middle of one crossing to the middle of the next, in a frame; round spots."""
    edge, side = 20, (len(cells) // 2 + 1) * step
    picture = Image.new("RGB", (side + 2 * edge, side + 2 * edge), "white")
    canvas = ImageDraw.Draw(picture)
    canvas.rectangle((edge, edge, edge + side, edge + side), outline="black", width=pen)
    for (row, column), code in np.ndenumerate(cells):
        x, y = edge + (column + 1) * step // 2, edge + (row + 1) * step // 2
        # A wall between two rooms lies on an odd row or an odd column, but not on both.
        if code == WALL and row % 2 and not column % 2:
            canvas.line((x - step // 2, y, x + step // 2, y), fill="black", width=pen)
        elif code == WALL and column % 2 and not row % 2:
            canvas.line((x, y - step // 2, x, y + step // 2), fill="black", width=pen)
        elif code in (START, END):
            spot = (x - step // 5, y - step // 5, x + step // 5, y + step // 5)
            canvas.ellipse(spot, fill="green" if code == START else "red")
    return picture
