"""Generated mazes: trees, their distribution, their images, and shortest paths."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray
from scipy import stats

from iterant.errors import TaskError
from iterant.tasks.mazes.generate import (
    END,
    START,
    WALL,
    generate,
    shortest_path,
    to_image,
    to_lattice,
)

SHAPES = st.tuples(st.integers(1, 3), st.integers(1, 7), st.integers(1, 7))


@given(arrays(np.uint8, SHAPES, elements=st.integers(0, 3)))
@settings(deadline=None, max_examples=50)
def test_there_and_back(lattice: NDArray[np.uint8]) -> None:
    image = to_image(lattice)
    assert image.shape == (len(lattice), 3, 2 * lattice.shape[1] + 6, 2 * lattice.shape[2] + 6)
    assert np.array_equal(to_lattice(image), lattice)
    assert np.array_equal(to_lattice(torch.from_numpy(image).float()), lattice)


def test_colours_and_places() -> None:
    image = to_image(np.array([[[0, 1], [2, 3]]], dtype=np.uint8))[0]
    colours = [image[:, row, column].tolist() for row in (3, 6) for column in (3, 6)]
    assert colours == [[0, 0, 0], [1, 1, 1], [0, 1, 0], [1, 0, 0]]
    assert image[:, :3].sum() == image[:, -3:].sum() == 0


def shifted() -> NDArray[Any]:
    return np.roll(to_image(np.ones((1, 3, 3), dtype=np.uint8)), 1, axis=3)


def coloured() -> NDArray[Any]:
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
        shifted(),
        coloured(),
    ],
)
def test_other_images_are_refused(image: NDArray[Any]) -> None:
    with pytest.raises(TaskError, match="maze images are"):
        to_lattice(image)


def plain_distance(squares: NDArray[np.bool_], start: tuple[int, int]) -> NDArray[np.float64]:
    """Steps to every square by relaxing until nothing changes."""
    steps = np.full(squares.shape, np.inf)
    steps[start] = 0 if squares[start] else np.inf
    for _ in range(squares.size):
        around = np.pad(steps, 1, constant_values=np.inf)
        near = np.minimum.reduce(
            [around[:-2, 1:-1], around[2:, 1:-1], around[1:-1, :-2], around[1:-1, 2:]]
        )
        steps = np.where(squares, np.minimum(steps, near + 1), np.inf)
    return steps


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize(("size", "count"), [(3, 30), (5, 30), (9, 30), (21, 5)])
def test_every_maze_is_a_tree_with_its_path(size: int, count: int, together: bool) -> None:
    cells = ((size + 1) // 2) ** 2
    for lattice, path in zip(*generate(size, 4, np.arange(count), together), strict=True):
        free = lattice != WALL
        assert (lattice == START).sum() == (lattice == END).sum() == 1
        start, end = (tuple(np.argwhere(lattice == code)[0].tolist()) for code in (START, END))
        # Connected, with one passage fewer than cells: a tree.
        assert free[::2, ::2].all()
        assert not free[1::2, 1::2].any()
        assert free.sum() == 2 * cells - 1
        assert np.isfinite(plain_distance(free, start)[free]).all()
        way = shortest_path(free, start, end)
        assert sorted(way) == [tuple(place) for place in np.argwhere(path).tolist()]


@given(st.sampled_from([3, 5, 7, 9, 15, 23]), st.integers(0, 2**64 - 1), st.integers(0, 10**12))
@settings(deadline=None, max_examples=25)
def test_both_implementations_agree(size: int, seed: int, first: int) -> None:
    numbers = np.arange(first, first + 8)
    one, other = generate(size, seed, numbers, True), generate(size, seed, numbers, False)
    assert all(map(np.array_equal, one, other))


def test_ends_are_uniform_over_distinct_cells() -> None:
    lattice, _ = generate(5, 8, np.arange(7200))
    start, end = (
        np.argwhere((lattice == code)[:, ::2, ::2])[:, 1:] @ np.array([3, 1])
        for code in (START, END)
    )
    counts = np.bincount(start * 9 + end, minlength=81).reshape(9, 9)[~np.eye(9, dtype=np.bool_)]
    # 71 degrees of freedom around 100 each: beyond 130 once in 20,000 seeds.
    assert ((counts - 100) ** 2 / 100).sum() < 130


@given(st.data())
@settings(deadline=None, max_examples=80)
def test_shortest_path(data: st.DataObject) -> None:
    height, width = data.draw(st.integers(1, 6)), data.draw(st.integers(1, 6))
    squares = np.array(
        data.draw(st.lists(st.booleans(), min_size=height * width, max_size=height * width))
    ).reshape(height, width)
    place = st.tuples(st.integers(0, height - 1), st.integers(0, width - 1))
    start, end = data.draw(place), data.draw(place)
    way = shortest_path(squares, start, end)
    distance = plain_distance(squares, start)[end]
    if not squares[start] or np.isinf(distance):
        assert way == []
        return
    assert len(way) == distance + 1
    assert (way[0], way[-1]) == (start, end)
    assert all(squares[square] for square in way)
    for one, other in itertools.pairwise(way):
        assert abs(one[0] - other[0]) + abs(one[1] - other[1]) == 1


Figures = dict[str, NDArray[np.int64]]
Links = list[tuple[int, int]]
Rng = np.random.Generator


def neighbours(cell: int, side: int) -> list[int]:
    row, column = divmod(cell, side)
    near = [(row - 1, column), (row + 1, column), (row, column - 1), (row, column + 1)]
    return [r * side + c for r, c in near if 0 <= r < side and 0 <= c < side]


def depth_first(side: int, root: int, rng: Rng) -> Links:
    """The plain statement: choose afresh among the unseen neighbours, step back when none."""
    seen, stack, links = {root}, [root], []
    while stack:
        unseen = [cell for cell in neighbours(stack[-1], side) if cell not in seen]
        if unseen:
            links.append((stack[-1], unseen[int(rng.integers(len(unseen)))]))
            stack.append(links[-1][1])
            seen.add(stack[-1])
        else:
            stack.pop()
    return links


def figures(lattice: NDArray[np.uint8], length: NDArray[np.int64]) -> Figures:
    around = np.pad(lattice, ((0, 0), (1, 1), (1, 1))) != WALL
    maze, row, column = np.argwhere(lattice == START).T
    sides = [(0, 1), (2, 1), (1, 0), (1, 2)]
    openings = sum(around[maze, row + down, column + right].astype(int) for down, right in sides)
    along = (lattice[:, ::2, 1::2] != WALL).sum(axis=(1, 2))
    return {"length": length, "openings": np.asarray(openings), "along rows": along}


def plainly_generated(size: int, count: int) -> Figures:
    rng, side = np.random.default_rng(1), (size + 1) // 2
    lattice = np.zeros((count, size, size), dtype=np.uint8)
    length = np.zeros(count, dtype=np.int64)
    for maze in range(count):
        start, end = rng.choice(side**2, 2, replace=False).tolist()
        lattice[maze, ::2, ::2] = 1
        for one, other in depth_first(side, start, rng):
            (a, b), (c, d) = divmod(one, side), divmod(other, side)
            lattice[maze, a + c, b + d] = 1
        places = [(2 * (cell // side), 2 * (cell % side)) for cell in (start, end)]
        length[maze] = len(shortest_path(lattice[maze] != WALL, *places)) - 1
        lattice[maze][places[0]] = START
    return figures(lattice, length)


def ours(size: int, seed: int, count: int) -> Figures:
    lattice, path = generate(size, seed, np.arange(count))
    return figures(lattice, path.sum(axis=(1, 2)) - 1)


def agreement(one: Figures, other: Figures) -> float:
    """The smallest p-value of the three two-sample Kolmogorov-Smirnov tests."""
    return min(float(stats.ks_2samp(one[name], other[name]).pvalue) for name in one)


@pytest.fixture(scope="module", params=[9, 13])
def reference(request: pytest.FixtureRequest, shared_data: Path) -> tuple[int, Figures]:
    size: int = request.param
    with np.load(shared_data / "mazes-format" / f"authors_generator_maze_{size}.npz") as file:
        return size, figures(to_lattice(file["inputs"]), file["length"].astype(np.int64))


@pytest.mark.parametrize("seed", range(5))
def test_distribution_equals_the_authors_generator(
    reference: tuple[int, Figures], seed: int
) -> None:
    size, theirs = reference
    assert agreement(theirs, ours(size, seed, 4000)) > 0.02


@pytest.mark.parametrize("size", [5, 9, 13])
def test_distribution_equals_a_plain_depth_first_search(size: int) -> None:
    # Many more mazes than the benchmark's sample holds, so small deviations would show too.
    assert agreement(plainly_generated(size, 2000), ours(size, 11, 20_000)) > 0.02
