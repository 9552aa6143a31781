"""Mazes: the benchmark's image format, solutions, determinism, and what is refused."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from iterant.errors import TaskError
from iterant.tasks.mazes.generate import END, START, WALL, shortest_path
from iterant.tasks.mazes.task import Mazes, to_image, to_lattice
from iterant.tasks.protocol import Batch, Task

TASK = Mazes()

DIGESTS = {
    (3, 0, 100): "2d9d99b5fe0f5c65",
    (9, 0, 100): "649ce82a7e4e08b1",
    (9, 7, 100): "44ef617547467683",
    (59, 1, 3): "bad3b3ea40137985",
}


def digest(batch: Batch) -> str:
    parts = (
        batch.inputs.numpy().astype("<f4"),
        batch.targets.numpy().astype("<i8"),
        batch.extras["path_length"].astype("<i8"),
    )
    return hashlib.sha256(b"".join(part.tobytes() for part in parts)).hexdigest()[:16]


def solution(lattice: np.ndarray[Any, np.dtype[np.uint8]]) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """The path by breadth-first search, as squares."""
    start, end = (tuple(np.argwhere(lattice == code)[0].tolist()) for code in (START, END))
    path = np.zeros_like(lattice)
    for square in shortest_path(lattice != WALL, start, end):
        path[square] = 1
    return path


def test_it_is_a_task() -> None:
    assert isinstance(TASK, Task)


@pytest.mark.parametrize("size", [9, 13, 33, 59])
def test_the_benchmarks_own_mazes(size: int, shared_data: Path) -> None:
    with np.load(shared_data / "mazes-format" / f"authors_generator_maze_{size}.npz") as held:
        inputs, solutions = held["inputs"], held["solutions"]
        length, ends = held["length"], held["start_end"]
    lattice = to_lattice(inputs)
    assert lattice.shape[1:] == (size, size)
    assert np.array_equal(to_image(lattice), inputs)
    for maze, squares in enumerate(lattice):
        path = solution(squares)
        assert np.array_equal(np.kron(path, np.ones((2, 2))), solutions[maze][3:-3, 3:-3])
        assert path.sum() - 1 == length[maze]
        column, row, end_column, end_row = (2 * ends[maze]).tolist()
        assert squares[row, column] == START
        assert squares[end_row, end_column] == END
    assert solutions.sum() == solutions[:, 3:-3, 3:-3].sum()
    ours = TASK.sample(2, size=size)
    assert ours.inputs.shape[1:] == inputs.shape[1:]
    assert ours.targets.shape[1:] == solutions.shape[1:]


@pytest.mark.parametrize(("size", "count"), [(3, 50), (9, 50), (13, 80), (59, 3), (101, 1)])
def test_targets_are_the_one_path(size: int, count: int) -> None:
    batch = TASK.sample(count, size=size, seed=6)
    assert batch.inputs.dtype == torch.float32
    assert batch.targets.dtype == torch.int64
    assert batch.inputs.shape == (count, 3, 2 * size + 6, 2 * size + 6)
    for squares, target, length in zip(
        to_lattice(batch.inputs), batch.targets.numpy(), batch.extras["path_length"], strict=True
    ):
        path = solution(squares)
        assert np.array_equal(np.kron(path, np.ones((2, 2))), target[3:-3, 3:-3])
        assert path.sum() == length + 1
        assert target.sum() == 4 * path.sum()


def test_a_smaller_set_is_the_beginning_of_a_larger() -> None:
    whole = TASK.sample(1000, size=9, seed=5)
    for part, rows in [
        (TASK.sample(100, size=9, seed=5), slice(0, 100)),
        (TASK.sample(10, size=9, seed=5, first=90), slice(90, 100)),
    ]:
        assert torch.equal(part.inputs, whole.inputs[rows])
        assert torch.equal(part.targets, whole.targets[rows])
        assert np.array_equal(part.extras["path_length"], whole.extras["path_length"][rows])
    assert not torch.equal(TASK.sample(10, seed=6).inputs, whole.inputs[:10])


@pytest.mark.parametrize(
    ("size", "seed", "count"), [(3, 0, 100), (9, 0, 100), (9, 7, 100), (59, 1, 3)]
)
def test_digests_never_change(size: int, seed: int, count: int) -> None:
    assert digest(TASK.sample(count, size=size, seed=seed)) == DIGESTS[size, seed, count]


@pytest.mark.parametrize(
    ("size", "said"),
    [
        (10, "try 11"),
        (2, "at least 3"),
        (1, "at least 3"),
        (0, "at least 3"),
        (-9, "at least 3, got -9"),
        (4003, "at most 4001.*GiB"),
        (10**9, "at most 4001"),
        (True, "odd"),
        (9.0, "odd"),
        ((9, 13), "odd"),
    ],
)
def test_wrong_sizes_are_refused(size: Any, said: str) -> None:
    with pytest.raises(TaskError, match=said):
        TASK.sample(1, size=size)


def test_too_much_at_once_is_refused() -> None:
    with pytest.raises(TaskError, match=r"GiB.*fewer"):
        TASK.sample(100_000, size=801)


@pytest.mark.parametrize("text", ["", "nine", "9x9", "8", "-3"])
def test_wrong_size_texts_are_refused(text: str) -> None:
    with pytest.raises(TaskError):
        TASK.parse_size(text)
    assert TASK.parse_size("59") == 59


@pytest.mark.parametrize("options", [{"seed": -1}, {"seed": 0.5}, {"first": -1}, {"count": 0}])
def test_wrong_numbers_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(TaskError):
        TASK.sample(options.pop("count", 1), **options)


def test_encoding_a_drawn_maze() -> None:
    batch = TASK.encode("S.#\n#.#\n#.G")
    assert batch.inputs.shape == (1, 3, 12, 12)
    assert to_lattice(batch.inputs).tolist() == [[[2, 1, 0], [0, 1, 0], [0, 1, 3]]]
    assert batch.targets[0, 3:-3:2, 3:-3:2].tolist() == [[1, 1, 0], [0, 1, 0], [0, 1, 1]]
    assert batch.extras["path_length"].tolist() == [4]
    assert batch.extras["solvable"].tolist() == [True]
    assert batch.labelled


def test_a_maze_without_a_way_is_marked() -> None:
    batch = TASK.encode("S#E")
    assert (batch.targets == -1).all()
    assert batch.extras["solvable"].tolist() == [False]
    with pytest.raises(TaskError, match="not known"):
        TASK.solved(torch.zeros_like(batch.targets), batch)


def test_rectangles_and_loops() -> None:
    batch = TASK.encode("S...\n.##.\n...E")
    assert batch.inputs.shape == (1, 3, 12, 14)
    assert batch.extras["path_length"].tolist() == [5]


def test_solved_is_strict() -> None:
    batch = TASK.sample(3, size=5)
    answer = batch.targets.clone()
    answer[1, 0, 0] = 1
    assert TASK.solved(answer, batch).tolist() == [True, False, True]
    with pytest.raises(TaskError, match="shape"):
        TASK.solved(answer[:, :5], batch)
