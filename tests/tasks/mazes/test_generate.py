"""Generated mazes: the paper's and their distribution, starts anywhere, loops and random walls."""

from __future__ import annotations

import io
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image
from scipy import stats
from test_grid import Grid, plain_path

from iterant.errors import DataError, TaskError
from iterant.evaluation import evaluate_batch
from iterant.tasks.mazes.generate import generate, parse_problems
from iterant.tasks.mazes.grid import (
    COLOURS,
    END,
    FREE,
    START,
    WALL,
    descend,
    distances,
    from_image,
    path_lengths,
    to_pixels,
)
from iterant.tasks.mazes.image import read_picture
from iterant.tasks.mazes.task import Mazes

MAZE_HARD = Path(__file__).parents[4] / "shared" / "data" / "maze-30x30-hard" / "train"
KINDS = ["start=any", "p=0.1", "start=any,p=0.5", "p=0.99", "walls=0.35", "walls=0"]


@given(st.sampled_from([3, 5, 9, 15, 23]), st.integers(0, 2**64 - 1), st.integers(0, 10**12))
@settings(max_examples=25)
def test_the_papers_mazes_are_trees(size: int, seed: int, first: int) -> None:
    nodes = ((size + 1) // 2) ** 2
    numbers = np.arange(first, first + 8)
    for cells in generate(size, seed, numbers):
        free = cells != WALL
        assert (cells == START).sum() == (cells == END).sum() == 1
        # Connected, with one passage fewer than nodes: a tree.
        assert free[::2, ::2].all()
        assert not free[1::2, 1::2].any()
        assert free.sum() == 2 * nodes - 1
        assert (distances(cells[None])[0] >= 0).sum() == free.sum()


def open_neighbours(cells: Grid, code: int) -> NDArray[np.int64]:
    """(N,): ways out of the start or the end."""
    is_open = np.pad(cells != WALL, ((0, 0), (1, 1), (1, 1)))
    maze, row, column = np.nonzero(np.pad(cells == code, ((0, 0), (1, 1), (1, 1))))
    sides = ((1, 0), (-1, 0), (0, 1), (0, -1))
    ways = [is_open[maze, row + down, column + right] for down, right in sides]
    counts: NDArray[np.int64] = np.stack(ways).sum(axis=0)
    return counts


def agreement(ours: Grid, theirs: Grid) -> float:
    """The smallest p-value of three two-sample Kolmogorov-Smirnov tests."""
    figures = [
        (
            path_lengths(mazes, distances(mazes)),
            open_neighbours(mazes, START),
            (mazes[:, ::2, 1::2] != WALL).sum(axis=(1, 2)),  # passages along rows
        )
        for mazes in (ours, theirs)
    ]
    return min(float(stats.ks_2samp(*pair).pvalue) for pair in zip(*figures, strict=True))


@pytest.mark.parametrize("size", [9, 13])
def test_distribution_equals_the_authors_generator(size: int, shared_data: Path) -> None:
    with np.load(shared_data / "mazes-format" / f"authors_generator_maze_{size}.npz") as file:
        theirs = from_image(file["inputs"])
    for seed in range(3):
        assert agreement(generate(size, seed, np.arange(4000)), theirs) > 0.02


@pytest.mark.parametrize("problems", ["", *KINDS])
def test_targets_equal_a_plain_search(problems: str) -> None:
    kind = parse_problems(problems)
    for size in (5, 13) if kind.walls is None else (2, 5, 12):
        cells, on_path = kind.generate(size, 3, np.arange(40))
        for maze, path in zip(cells, on_path, strict=True):
            assert np.argwhere(path).tolist() == sorted(map(list, plain_path(maze)))


@pytest.mark.skipif(not MAZE_HARD.exists(), reason="needs the training mazes of Maze-Hard")
def test_the_tie_break_is_that_of_maze_hard() -> None:
    task = Mazes(MAZE_HARD)
    batch = task.sample(1000)
    assert batch.inputs.shape == (1000, 3, 66, 66)
    cells = from_image(batch.inputs)
    on_path = descend(cells, distances(cells))
    assert np.array_equal(to_pixels(on_path.astype(np.uint8)), batch.targets.numpy())
    assert batch.extras["path_length"].min() == 109


def test_a_subclass_stays_what_it_is() -> None:
    """Recipes change the kind of problems of a task: a user-defined one must not be replaced."""
    mine = type("Mine", (Mazes,), {})
    other = mine().with_problems("start=any")
    assert (type(other), other.problems) == (mine, "start=any")


def test_files_of_maze_hard(tmp_path: Path) -> None:
    cells, on_path = parse_problems("walls=0.3").generate(6, 1, np.arange(5))
    tokens = cells.reshape(5, 36) + 1
    labels = np.where(on_path.reshape(5, 36) & (tokens == 2), 5, tokens)
    for name, values in (("inputs", tokens), ("labels", labels)):
        np.save(tmp_path / f"all__{name}.npy", values.astype(np.uint8))
    task = Mazes(tmp_path)
    batch, expected = task.sample(5), Mazes(problems="walls=0.3").sample(5, size=6, seed=1)
    assert sorted(batch.inputs.numpy().tobytes()) == sorted(expected.inputs.numpy().tobytes())
    assert batch.targets.sum() == expected.targets.sum()
    assert task.any_right(batch.targets, batch).all()
    assert task.with_problems("start=any") is task
    for broken in (tokens + 4, tokens[:, :35], np.full_like(tokens, 2)):
        np.save(tmp_path / "all__inputs.npy", broken.astype(np.uint8))
        with pytest.raises(DataError, match="copy the file again"):
            Mazes(tmp_path).sample(5)


def test_images_of_maze_dataset_are_read() -> None:
    """One pixel per cell, a wall around, the path in blue."""
    for problems in ("start=any", "p=0.1", "start=any,p=0.5"):
        cells, on_path = parse_problems(problems).generate(19, 1, np.arange(5))
        for maze, path in zip(cells, on_path, strict=True):
            walled, marked = np.pad(maze, 1), np.pad(path, 1)
            pixels = (255 * COLOURS)[walled]
            pixels[marked & (walled == FREE)] = (0, 0, 255)
            file = io.BytesIO()
            Image.fromarray(pixels).save(file, "PNG")
            assert np.array_equal(read_picture(file.getvalue())[0], maze)


def test_where_starts_are() -> None:
    numbers = np.arange(2000)
    for problems in ("", "p=0.1"):
        cells, _ = parse_problems(problems).generate(13, 1, numbers)
        assert (open_neighbours(cells, START) == 1).all()
        assert not ((cells == START) | (cells == END))[:, 1::2].any(), "ends are nodes"
    cells, _ = parse_problems("start=any").generate(13, 1, numbers)
    ways = np.bincount(open_neighbours(cells, START), minlength=5)
    assert (ways[1:4] > 50).all()
    # Uniform over the open cells: ends are nodes as often as open cells are.
    share = (cells[:, ::2, ::2] == START).sum() / len(cells)
    nodes = (cells[:, ::2, ::2] != WALL).sum() / (cells != WALL).sum()
    assert share == pytest.approx(nodes, abs=0.05)
    # Where loops leave no dead end, any node is a start.
    cells, _ = parse_problems("p=0.99").generate(13, 1, numbers)
    assert (open_neighbours(cells, START) > 1).any()


def test_percolation_opens_a_share_of_the_walls_between_nodes() -> None:
    numbers = np.arange(500)
    tree = generate(21, 1, numbers)
    for p in (0.1, 0.5):
        cells, _ = parse_problems(f"p={p}").generate(21, 1, numbers)
        assert ((cells != WALL) >= (tree != WALL)).all()
        for between in (np.s_[:, 1::2, ::2], np.s_[:, ::2, 1::2]):
            closed = tree[between] == WALL
            assert (cells[between][closed] != WALL).mean() == pytest.approx(p, abs=0.01)
        assert (cells[:, 1::2, 1::2] == WALL).all(), "corners stay walls"


def test_random_walls_and_lengths() -> None:
    cells, on_path = parse_problems("walls=0.3,path=20-30").generate(16, 1, np.arange(200))
    steps = on_path.sum(axis=(1, 2)) - 1
    assert steps.min() >= 20
    assert steps.max() <= 30
    assert (cells == WALL).mean() == pytest.approx(0.3, abs=0.02)
    assert (cells == START).sum() == (cells == END).sum() == 200
    with pytest.raises(TaskError, match="no maze of size 3 was found for 'path=50-'"):
        parse_problems("path=50-").generate(3, 1, np.arange(1))
    assert parse_problems("path=-9") == parse_problems("path=1-9")
    assert parse_problems("path=7") == parse_problems("path=7-7")


def test_sizes_of_kinds() -> None:
    assert Mazes().with_problems("walls=0.3").sample(2, size=10).inputs.shape == (2, 3, 26, 26)
    for problems, size, message in (("start=any", 10, "odd number"), ("walls=0.3", 1, "least 2")):
        with pytest.raises(TaskError, match=message):
            Mazes(problems=problems).sample(1, size=size)


@pytest.mark.parametrize(
    "text", ["start=middle", "p=2", "p=nan", "walls=x", "loops=1", "any", "path=1e9-", "path=9-3"]
)
def test_wrong_kinds_are_refused(text: str) -> None:
    with pytest.raises(TaskError, match=r"try start=any,p=0\.1"):
        parse_problems(text)


def test_kinds_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(TaskError, match="leave out p"):
        parse_problems("walls=0.3,p=0.1")
    with pytest.raises(TaskError, match="problems from files"):
        Mazes("somewhere", problems="start=any")


def test_any_shortest_path_is_right() -> None:
    task = Mazes(problems="walls=0")
    batch = task.sample(20, size=4, seed=1)
    cells = from_image(batch.inputs).swapaxes(1, 2)
    other = descend(cells, distances(cells)).swapaxes(1, 2)
    prediction = torch.from_numpy(to_pixels(other.astype(np.uint8))).long()
    assert task.any_right(batch.targets, batch).all()
    net: Any = SimpleNamespace(
        read=lambda inputs: inputs,
        start=lambda inputs: inputs,
        step=lambda features, memory, index: features,
        answer=lambda _: torch.nn.functional.one_hot(prediction, 2).movedim(-1, 1).float(),
    )
    curve = evaluate_batch(net, task, batch, steps=3)
    assert 0 < curve.end < 1
    assert curve.described()["any right answer at the end"] == 20
    prediction[:, 3, 3] = 1 - prediction[:, 3, 3]  # half of a cell
    assert not task.any_right(prediction, batch).any()
