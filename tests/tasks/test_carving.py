"""Carved mazes are depth-first trees, the two carvers agree, and the solver is right."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from iterant.tasks.mazes.generate import END, FREE, START, WALL, Trees, carve, shortest_path


def passages(lattice: NDArray[np.uint8]) -> list[tuple[int, int]]:
    """Pairs of cells, counted row by row, between which the square is open."""
    side = (len(lattice) + 1) // 2
    found = []
    for row, column in itertools.product(range(side), repeat=2):
        cell = row * side + column
        if column + 1 < side and lattice[2 * row, 2 * column + 1] != WALL:
            found.append((cell, cell + 1))
        if row + 1 < side and lattice[2 * row + 1, 2 * column] != WALL:
            found.append((cell, cell + side))
    return found


def joined(count: int, pairs: list[tuple[int, int]]) -> int:
    """How many separate parts remain, by union and find."""
    leader = list(range(count))

    def find(cell: int) -> int:
        while leader[cell] != cell:
            cell = leader[cell]
        return cell

    for one, other in pairs:
        leader[find(one)] = find(other)
    return len({find(cell) for cell in range(count)})


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize(("size", "count"), [(3, 30), (5, 30), (9, 30), (21, 5)])
def test_every_maze_is_a_tree(size: int, count: int, together: bool) -> None:
    trees = carve(size, 4, np.arange(count), together)
    for lattice, path in zip(trees.lattice(), trees.path(), strict=True):
        cells = ((size + 1) // 2) ** 2
        pairs = passages(lattice)
        assert len(pairs) == cells - 1
        assert joined(cells, pairs) == 1
        assert (lattice[1::2, 1::2] == WALL).all()
        assert (lattice == START).sum() == (lattice == END).sum() == 1
        start, end = (tuple(np.argwhere(lattice == code)[0].tolist()) for code in (START, END))
        way = shortest_path(lattice != WALL, start, end)
        assert sorted(way) == [tuple(place) for place in np.argwhere(path).tolist()]


@given(st.sampled_from([3, 5, 7, 9, 15, 23]), st.integers(0, 2**64 - 1), st.integers(0, 10**12))
@settings(deadline=None, max_examples=25)
def test_the_two_carvers_agree(size: int, seed: int, first: int) -> None:
    numbers = np.arange(first, first + 8)
    assert_same(carve(size, seed, numbers, True), carve(size, seed, numbers, False))


def test_portions_do_not_matter() -> None:
    chosen = [0, 1164, 1165, 1199]
    whole = carve(59, 2, np.arange(1200))  # more cells than are carved at once
    parts = [carve(59, 2, np.array([number])) for number in chosen]
    merged = Trees(
        *(np.concatenate([getattr(part, name) for part in parts]) for name in Trees.__annotations__)
    )
    picked = Trees(*(getattr(whole, name)[chosen] for name in Trees.__annotations__))
    assert_same(merged, picked)


def assert_same(one: Trees, other: Trees) -> None:
    for name in Trees.__annotations__:
        assert np.array_equal(getattr(one, name), getattr(other, name)), name


def test_ends_are_uniform_over_distinct_cells() -> None:
    trees = carve(5, 8, np.arange(7200))
    assert (trees.start != trees.end).all()
    pairs = np.bincount(trees.start * 9 + trees.end, minlength=81).reshape(9, 9)
    counts = pairs[~np.eye(9, dtype=np.bool_)]
    # 71 degrees of freedom around 100 each: beyond 130 once in 20,000 seeds.
    assert ((counts - 100) ** 2 / 100).sum() < 130


def test_small_mazes_have_the_probabilities_worked_out_by_hand() -> None:
    # Two by two cells: the carver goes around and leaves one of two walls by the start.
    trees = carve(3, 1, np.arange(4000))
    lattices = trees.lattice() != WALL
    kinds, counts = np.unique(lattices.reshape(4000, -1), axis=0, return_counts=True)
    assert len(kinds) == 4
    assert np.abs(counts - 1000).max() < 130


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


@given(st.data())
@settings(deadline=None, max_examples=80)
def test_shortest_paths_with_loops_and_without_a_way(data: st.DataObject) -> None:
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


def test_codes() -> None:
    assert (WALL, FREE, START, END) == (0, 1, 2, 3)
