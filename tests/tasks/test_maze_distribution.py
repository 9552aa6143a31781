"""Our mazes are distributed as the benchmark's, and the tests would notice if they were not.

Three figures of a maze are compared: the length of its path, the openings of its start cell, and
how many of its passages run along rows. Wrong generators, each plausible, fail on one of them.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from iterant.tasks.mazes.generate import START, WALL, carve, shortest_path
from iterant.tasks.mazes.task import to_lattice

Figures = dict[str, NDArray[np.int64]]
Links = list[tuple[int, int]]
Chance = np.random.Generator
Carver = Callable[[int, int, int, Chance], Links]


def neighbours(cell: int, side: int) -> list[int]:
    row, column = divmod(cell, side)
    near = [(row - 1, column), (row + 1, column), (row, column - 1), (row, column + 1)]
    return [r * side + c for r, c in near if 0 <= r < side and 0 <= c < side]


def any_of(cells: list[int], chance: Chance) -> int:
    return cells[int(chance.integers(len(cells)))]


def depth_first(side: int, root: int, chance: Chance | None) -> Links:
    """The plain statement: choose afresh among the unseen neighbours, step back when none."""
    seen, stack, links = {root}, [root], []
    while stack:
        unseen = [cell for cell in neighbours(stack[-1], side) if cell not in seen]
        if unseen:
            links.append((stack[-1], any_of(unseen, chance) if chance else unseen[0]))
            stack.append(links[-1][1])
            seen.add(stack[-1])
        else:
            stack.pop()
    return links


def prim(side: int, start: int, end: int, chance: Chance) -> Links:
    seen, links = {start}, []
    front = [(start, cell) for cell in neighbours(start, side)]
    while front:
        one, other = front.pop(int(chance.integers(len(front))))
        if other not in seen:
            seen.add(other)
            links.append((one, other))
            front += [(other, cell) for cell in neighbours(other, side)]
    return links


def wilson(side: int, start: int, end: int, chance: Chance) -> Links:
    tree, links = {start}, []
    for first in range(side**2):
        step, cell = {}, first
        while cell not in tree:
            step[cell] = any_of(neighbours(cell, side), chance)
            cell = step[cell]
        cell = first
        while cell not in tree:
            tree.add(cell)
            links.append((cell, step[cell]))
            cell = step[cell]
    return links


CARVERS: dict[str, Carver] = {
    "plain": lambda side, start, end, chance: depth_first(side, start, chance),
    "prim": prim,
    "wilson": wilson,
    "from a corner": lambda side, start, end, chance: depth_first(side, 0, chance),
    "from anywhere": lambda side, start, end, chance: depth_first(
        side, int(chance.integers(side**2)), chance
    ),
    "from the end": lambda side, start, end, chance: depth_first(side, end, chance),
    "fixed order": lambda side, start, end, chance: depth_first(side, start, None),
}


def figures(lattice: NDArray[np.uint8], length: NDArray[np.int64]) -> Figures:
    around = np.pad(lattice, ((0, 0), (1, 1), (1, 1))) != WALL
    maze, row, column = np.argwhere(lattice == START).T
    sides = [(0, 1), (2, 1), (1, 0), (1, 2)]
    openings = sum(around[maze, row + down, column + right].astype(int) for down, right in sides)
    along = (lattice[:, ::2, 1::2] != WALL).sum(axis=(1, 2))
    return {"length": length, "openings": np.asarray(openings), "along rows": along}


def carved_by(carver: Carver, size: int, count: int) -> Figures:
    chance, side = np.random.default_rng(1), (size + 1) // 2
    lattice = np.zeros((count, size, size), dtype=np.uint8)
    length = np.zeros(count, dtype=np.int64)
    for maze in range(count):
        start, end = chance.choice(side**2, 2, replace=False).tolist()
        lattice[maze, ::2, ::2] = 1
        for one, other in carver(side, start, end, chance):
            (a, b), (c, d) = divmod(one, side), divmod(other, side)
            lattice[maze, a + c, b + d] = 1
        places = [(2 * (cell // side), 2 * (cell % side)) for cell in (start, end)]
        length[maze] = len(shortest_path(lattice[maze] != WALL, *places)) - 1
        lattice[maze][places[0]] = START
    return figures(lattice, length)


def ours(size: int, seed: int, count: int) -> Figures:
    trees = carve(size, seed, np.arange(count))
    return figures(trees.lattice(), trees.path().sum(axis=(1, 2)) - 1)


def agreement(one: Figures, other: Figures) -> float:
    """The smallest p-value of the three two-sample Kolmogorov-Smirnov tests."""
    return min(float(stats.ks_2samp(one[name], other[name]).pvalue) for name in one)


@pytest.fixture(scope="module", params=[9, 13])
def reference(request: pytest.FixtureRequest, shared_data: Path) -> tuple[int, Figures]:
    size: int = request.param
    with np.load(shared_data / "mazes-format" / f"authors_generator_maze_{size}.npz") as held:
        return size, figures(to_lattice(held["inputs"]), held["length"].astype(np.int64))


@pytest.mark.parametrize("seed", range(5))
def test_we_agree_with_the_benchmark(reference: tuple[int, Figures], seed: int) -> None:
    size, theirs = reference
    assert agreement(theirs, ours(size, seed, 4000)) > 0.02


@pytest.mark.parametrize("name", [name for name in CARVERS if name != "plain"])
def test_wrong_generators_would_be_noticed(reference: tuple[int, Figures], name: str) -> None:
    size, theirs = reference
    assert agreement(theirs, carved_by(CARVERS[name], size, 500)) < 1e-6


@pytest.mark.parametrize("size", [5, 9, 13])
def test_we_agree_with_the_plain_statement(size: int) -> None:
    # Many more mazes than the benchmark's sample holds, so small deviations would show too.
    assert agreement(carved_by(CARVERS["plain"], size, 2000), ours(size, 11, 20_000)) > 0.02


def test_the_start_has_one_opening() -> None:
    # No single cell separates a grid, so a depth-first carver never leaves its start twice.
    assert (ours(9, 2, 1000)["openings"] == 1).all()
