"""Generated mazes: trees with their paths, and their distribution."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import ndimage, stats

from iterant.tasks.mazes.grid import END, START, WALL, from_image, generate, shortest_path


def generate_both_ways(size: int, seed: int, numbers: NDArray[np.int64]) -> Any:
    """Mazes and paths, which both implementations give."""
    mazes = []
    for least in (0, len(numbers) + 1):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("iterant.tasks.mazes.grid._MIN_TOGETHER", least)
            mazes.append(generate(size, seed, numbers))
    assert all(map(np.array_equal, *mazes))
    return mazes[0]


@pytest.mark.parametrize(("size", "count"), [(3, 30), (5, 30), (9, 30), (21, 5)])
def test_every_maze_is_a_tree_with_its_path(size: int, count: int) -> None:
    nodes = ((size + 1) // 2) ** 2
    for cells, path in zip(*generate_both_ways(size, 4, np.arange(count)), strict=True):
        free = cells != WALL
        assert (cells == START).sum() == (cells == END).sum() == 1
        # Connected, with one passage fewer than nodes: a tree.
        assert free[::2, ::2].all()
        assert not free[1::2, 1::2].any()
        assert free.sum() == 2 * nodes - 1
        assert ndimage.label(free)[1] == 1
        way = shortest_path(cells)
        assert sorted(way) == [tuple(place) for place in np.argwhere(path).tolist()]


@given(st.sampled_from([3, 5, 7, 9, 15, 23]), st.integers(0, 2**64 - 1), st.integers(0, 10**12))
@settings(deadline=None, max_examples=25)
def test_both_implementations_agree(size: int, seed: int, first: int) -> None:
    generate_both_ways(size, seed, np.arange(first, first + 8))


def test_ends_are_uniform_over_distinct_nodes() -> None:
    cells, _ = generate(5, 8, np.arange(7200))
    start, end = (
        np.argwhere((cells == code)[:, ::2, ::2])[:, 1:] @ np.array([3, 1]) for code in (START, END)
    )
    counts = np.bincount(start * 9 + end, minlength=81).reshape(9, 9)[~np.eye(9, dtype=np.bool_)]
    # 71 degrees of freedom around 100 each: beyond 130 once in 20,000 seeds.
    assert ((counts - 100) ** 2 / 100).sum() < 130


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


def figures(mazes: NDArray[np.uint8], length: NDArray[np.int64]) -> Figures:
    around = np.pad(mazes, ((0, 0), (1, 1), (1, 1))) != WALL
    maze, row, column = np.argwhere(mazes == START).T
    sides = [(0, 1), (2, 1), (1, 0), (1, 2)]
    openings = sum(around[maze, row + down, column + right].astype(int) for down, right in sides)
    along = (mazes[:, ::2, 1::2] != WALL).sum(axis=(1, 2))
    return {"length": length, "openings": np.asarray(openings), "along rows": along}


def plainly_generated(size: int, count: int) -> Figures:
    rng, side = np.random.default_rng(1), (size + 1) // 2
    mazes = np.zeros((count, size, size), dtype=np.uint8)
    length = np.zeros(count, dtype=np.int64)
    for maze in range(count):
        start, end = rng.choice(side**2, 2, replace=False).tolist()
        mazes[maze, ::2, ::2] = 1
        for one, other in depth_first(side, start, rng):
            (a, b), (c, d) = divmod(one, side), divmod(other, side)
            mazes[maze, a + c, b + d] = 1
        for node, code in ((start, START), (end, END)):
            mazes[maze, 2 * (node // side), 2 * (node % side)] = code
        length[maze] = len(shortest_path(mazes[maze])) - 1
    return figures(mazes, length)


def ours(size: int, seed: int, count: int) -> Figures:
    mazes, path = generate(size, seed, np.arange(count))
    return figures(mazes, path.sum(axis=(1, 2)) - 1)


def agreement(one: Figures, other: Figures) -> float:
    """The smallest p-value of the three two-sample Kolmogorov-Smirnov tests."""
    return min(float(stats.ks_2samp(one[name], other[name]).pvalue) for name in one)


@pytest.fixture(scope="module", params=[9, 13])
def reference(request: pytest.FixtureRequest, shared_data: Path) -> tuple[int, Figures]:
    size: int = request.param
    with np.load(shared_data / "mazes-format" / f"authors_generator_maze_{size}.npz") as file:
        return size, figures(from_image(file["inputs"]), file["length"].astype(np.int64))


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
