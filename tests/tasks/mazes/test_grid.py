"""Mazes as grids: text, the benchmark's images, shortest paths, generation and its distribution."""

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
from scipy import ndimage, stats

from iterant.errors import TaskError
from iterant.tasks.mazes.grid import (
    END,
    FREE,
    START,
    WALL,
    from_image,
    from_text,
    generate,
    shortest_path,
    to_image,
)

SHAPES = st.tuples(st.integers(1, 3), st.integers(1, 7), st.integers(1, 7))


@pytest.mark.parametrize("text", ["S E", "s.e", "\nS.G\n", "#####\r\n#S.E#\r\n#####\r\n"])
def test_spaces_small_letters_and_line_ends(text: str) -> None:
    assert from_text(text).tolist() == [[START, FREE, END]]


@pytest.mark.parametrize(
    ("text", "message"),
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
def test_wrong_drawings_are_refused(text: str, message: str) -> None:
    with pytest.raises(TaskError, match=message) as caught:
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
        assert sorted(shortest_path(cells)) == [tuple(cell) for cell in np.argwhere(path).tolist()]


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


def reference_mazes(size: int, count: int) -> Figures:
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


def our_mazes(size: int, seed: int, count: int) -> Figures:
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
    assert agreement(theirs, our_mazes(size, seed, 4000)) > 0.02


@pytest.mark.parametrize("size", [5, 9, 13])
def test_distribution_equals_a_plain_depth_first_search(size: int) -> None:
    # Many more mazes than the benchmark's sample holds, so small deviations would show too.
    assert agreement(reference_mazes(size, 2000), our_mazes(size, 11, 20_000)) > 0.02
