"""Mazes as grids: the benchmark's images and shortest paths."""

from __future__ import annotations

from collections import deque
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
    descend,
    distances,
    from_image,
    path_lengths,
    to_image,
)

Grid = NDArray[np.uint8]
SHAPES = st.tuples(st.integers(1, 3), st.integers(1, 7), st.integers(1, 7))


@given(arrays(np.uint8, SHAPES, elements=st.integers(0, 3)))
def test_to_an_image_and_back(cells: Grid) -> None:
    image = to_image(cells)
    assert image.shape == (len(cells), 3, 2 * cells.shape[1] + 6, 2 * cells.shape[2] + 6)
    assert np.array_equal(from_image(image), cells)
    assert np.array_equal(from_image(torch.from_numpy(image).float()), cells)


def test_colours_and_border() -> None:
    image = to_image(np.array([[[WALL, FREE], [START, END]]], dtype=np.uint8))[0]
    colours = [image[:, row, column].tolist() for row in (3, 6) for column in (3, 6)]
    assert colours == [[0, 0, 0], [1, 1, 1], [0, 1, 0], [1, 0, 0]]
    assert image[:, :3].sum() == image[:, -3:].sum() == 0


BLUE = to_image(np.ones((2, 3, 3), dtype=np.uint8))
BLUE[1, :, 4, 4] = (0, 0, 1)


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
        BLUE,
    ],
)
def test_other_images_are_refused(image: NDArray[Any]) -> None:
    with pytest.raises(TaskError, match="maze images are"):
        from_image(image)


def plain_distances(cells: Grid) -> dict[tuple[int, int], int]:
    """Steps to the end, one cell after another."""
    queue = deque((row, column) for row, column in np.argwhere(cells == END).tolist())
    steps = dict.fromkeys(queue, 0)
    while queue:
        row, column = queue.popleft()
        for cell in ((row + 1, column), (row - 1, column), (row, column + 1), (row, column - 1)):
            inside = 0 <= cell[0] < cells.shape[0] and 0 <= cell[1] < cells.shape[1]
            if inside and cells[cell] != WALL and cell not in steps:
                steps[cell] = steps[row, column] + 1
                queue.append(cell)
    return steps


def plain_path(cells: Grid) -> list[tuple[int, int]]:
    """From the start always nearer, the first of down, left, right, up; [] without a way."""
    steps = plain_distances(cells)
    path = [cell for cell in map(tuple, np.argwhere(cells == START).tolist()) if cell in steps]
    while path and steps[path[-1]]:
        row, column = path[-1]
        ways = [(row + 1, column), (row, column - 1), (row, column + 1), (row - 1, column)]
        path.append(next(cell for cell in ways if steps.get(cell) == steps[path[-1]] - 1))
    return path


@st.composite
def mazes(draw: st.DrawFn) -> Grid:
    """Any rectangle of walls and free cells with one start and one end."""
    height, width = draw(st.integers(1, 6)), draw(st.integers(2, 6))
    cells = draw(arrays(np.uint8, (height, width), elements=st.sampled_from([WALL, FREE])))
    cells.flat[draw(st.permutations(range(cells.size)))[:2]] = START, END
    return cells


@given(mazes(), st.data())
@settings(max_examples=80)
def test_distances_and_paths_equal_a_plain_search(cells: Grid, data: st.DataObject) -> None:
    within = data.draw(st.none() | arrays(np.bool_, cells.shape))
    restricted = cells if within is None else np.where(within, cells, WALL).astype(np.uint8)
    path = plain_path(restricted)
    steps = distances(cells[None], None if within is None else within[None])
    assert {
        tuple(cell): steps[0][tuple(cell)] for cell in np.argwhere(steps[0] >= 0).tolist()
    } == plain_distances(restricted)
    assert path_lengths(cells[None], steps).tolist() == [len(path) - 1]
    assert np.argwhere(descend(cells[None], steps)[0]).tolist() == sorted(map(list, path))
