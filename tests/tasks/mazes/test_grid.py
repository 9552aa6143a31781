"""Mazes as grids: text, the benchmark's images, and shortest paths."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from iterant.errors import TaskError
from iterant.tasks.mazes.grid import (
    END,
    FREE,
    START,
    WALL,
    from_image,
    from_text,
    shortest_path,
    to_image,
)

SHAPES = st.tuples(st.integers(1, 3), st.integers(1, 7), st.integers(1, 7))


@pytest.mark.parametrize("text", ["S E", "s.e", "\nS.G\n", "#####\r\n#S.E#\r\n#####\r\n"])
def test_spaces_small_letters_and_line_ends(text: str) -> None:
    assert from_text(text).tolist() == [[START, FREE, END]]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "line 1 has 0"),
        ("\n\n", "line 1 has 0"),
        ("S..\n#E", "line 1 has 3 characters, line 2 has 2"),
        ("S.\n\n.E", "line 2 has 0"),
        (".E", "one start .S., got 0"),
        ("S.", "one end .E or G., got 0"),
        ("S.S\n..E", "one start .S., got 2"),
        ("SE.\n..G", "one end .E or G., got 2"),
        ("S.\n?E", "'\\?' in line 2"),
        ("S\tE", r"'\\t' in line 1"),
    ],
)
def test_wrong_drawings_are_refused(text: str, said: str) -> None:
    with pytest.raises(TaskError, match=said) as caught:
        from_text(text)
    assert "\n" not in str(caught.value)


@given(arrays(np.uint8, SHAPES, elements=st.integers(0, 3)))
@settings(deadline=None, max_examples=50)
def test_to_an_image_and_back(cells: NDArray[np.uint8]) -> None:
    image = to_image(cells)
    assert image.shape == (len(cells), 3, 2 * cells.shape[1] + 6, 2 * cells.shape[2] + 6)
    assert np.array_equal(from_image(image), cells)
    assert np.array_equal(from_image(torch.from_numpy(image).float()), cells)


def test_colours_and_border() -> None:
    image = to_image(np.array([[[WALL, FREE], [START, END]]], dtype=np.uint8))[0]
    colours = [image[:, row, column].tolist() for row in (3, 6) for column in (3, 6)]
    assert colours == [[0, 0, 0], [1, 1, 1], [0, 1, 0], [1, 0, 0]]
    assert image[:, :3].sum() == image[:, -3:].sum() == 0


def with_blue_pixel() -> NDArray[Any]:
    image = to_image(np.ones((2, 3, 3), dtype=np.uint8))
    image[1, :, 4, 4] = (0, 0, 1)
    return image


@pytest.mark.parametrize(
    "image",
    [
        np.zeros((3, 12, 12)),
        np.zeros((1, 1, 12, 12)),
        np.zeros((1, 3, 13, 12)),
        np.zeros((1, 3, 6, 12)),
        np.full((1, 3, 12, 12), 255),
        np.full((1, 3, 12, 12), np.nan),
        np.roll(to_image(np.ones((1, 3, 3), dtype=np.uint8)), 1, axis=3),
        with_blue_pixel(),
    ],
)
def test_other_images_are_refused(image: NDArray[Any]) -> None:
    with pytest.raises(TaskError, match="maze images are"):
        from_image(image)


def plain_distance(is_open: NDArray[np.bool_], start: tuple[int, int]) -> NDArray[np.float64]:
    """Steps to every cell by relaxing until nothing changes."""
    steps = np.full(is_open.shape, np.inf)
    steps[start] = 0
    for _ in range(is_open.size):
        around = np.pad(steps, 1, constant_values=np.inf)
        near = np.minimum.reduce(
            [around[:-2, 1:-1], around[2:, 1:-1], around[1:-1, :-2], around[1:-1, 2:]]
        )
        steps = np.where(is_open, np.minimum(steps, near + 1), np.inf)
    return steps


@st.composite
def mazes(draw: st.DrawFn) -> NDArray[np.uint8]:
    """Any rectangle of walls and free cells with one start and one end."""
    height, width = draw(st.integers(1, 6)), draw(st.integers(2, 6))
    cells = draw(arrays(np.uint8, (height, width), elements=st.sampled_from([WALL, FREE])))
    cells.flat[draw(st.permutations(range(cells.size)))[:2]] = START, END
    return cells


@given(mazes(), st.data())
@settings(deadline=None, max_examples=80)
def test_shortest_path(cells: NDArray[np.uint8], data: st.DataObject) -> None:
    within = data.draw(st.none() | arrays(np.bool_, cells.shape))
    is_open = (cells != WALL) & (True if within is None else within)
    start, end = (tuple(np.argwhere(cells == code)[0].tolist()) for code in (START, END))
    path = shortest_path(cells, within)
    distance = plain_distance(is_open, start)[end]
    if not is_open[start] or np.isinf(distance):
        assert path == []
        return
    assert len(path) == distance + 1
    assert (path[0], path[-1]) == (start, end)
    assert all(is_open[cell] for cell in path)
    for one, other in itertools.pairwise(path):
        assert abs(one[0] - other[0]) + abs(one[1] - other[1]) == 1
