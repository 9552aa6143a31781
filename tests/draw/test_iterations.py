"""Frames of the iterations: the true answer only at the end."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from dead_ends import DeadEnds
from exact import exact_prefix_sums
from rich.console import Console

import iterant
from iterant.draw.iterations import (
    animation_frames,
    describe_iteration,
    describe_problem,
    describe_solution,
    evenly_spread,
    frame_milliseconds,
)
from iterant.draw.terminal import reduce_cells, terminal
from iterant.errors import UsageError
from iterant.halting import Fixed
from iterant.solving import Frame, solutions
from iterant.tasks.inputs import gather, generated

MAZES, SUMS = iterant.task("mazes"), iterant.task("prefix-sums")
BLUE, PURPLE = (0, 114, 178), (204, 121, 167)


def colours(cells: np.ndarray) -> set[tuple[int, ...]]:
    return {tuple(cell) for cell in cells.reshape(-1, 3).tolist()}


def test_true_answer_is_hidden_before_the_end() -> None:
    (found,) = solutions(DeadEnds(), MAZES, generated(MAZES, size=9, seed=1).problems)
    begun = describe_iteration(MAZES, found.problem, found.film.at(1))
    assert BLUE in colours(begun.cells)
    assert PURPLE not in colours(begun.cells)
    assert begun.caption == "iteration 1"
    last = describe_solution(MAZES, found)
    assert np.array_equal(last.cells, MAZES.describe(found.problem.batch).cells)
    assert last.caption.endswith(f"0 pixels wrong; settled after {found.steps} iterations")


def test_wrong_answer_at_the_end() -> None:
    problems = generated(SUMS, size=20, seed=1).problems
    (found,) = solutions(exact_prefix_sums(), SUMS, problems, max_steps=3, rule=Fixed())
    assert "wrong" in describe_solution(SUMS, found).text
    assert "wrong" not in describe_iteration(SUMS, found.problem, found.film.at(3)).text
    assert describe_solution(SUMS, found).caption.endswith("not settled after 3 iterations")


def test_maze_without_a_path() -> None:
    (found,) = solutions(DeadEnds(), MAZES, gather(MAZES, "S.#\n###\n#.G").problems)
    shown = describe_solution(MAZES, found)
    assert colours(shown.cells) == {(0, 0, 0), (255, 255, 255), (0, 255, 0), (255, 0, 0)}
    assert shown.caption.endswith("no way leads from start to end")


def test_number_of_frames() -> None:
    found = list(solutions(DeadEnds(), MAZES, generated(MAZES, size=9, count=2).problems))
    frames = animation_frames(MAZES, found, most=5, scale=1)
    assert 2 <= len(frames) <= 5
    assert not np.array_equal(frames[0], frames[-1])


def test_invalid_numbers_of_problems() -> None:
    with pytest.raises(UsageError, match="no problem"):
        animation_frames(MAZES, [])
    (one,) = solutions(DeadEnds(), MAZES, generated(MAZES, size=5).problems)
    with pytest.raises(UsageError, match="at most 16"):
        animation_frames(MAZES, [one] * 17)


def test_few_changes() -> None:
    (found,) = solutions(exact_prefix_sums(), SUMS, gather(SUMS, "1011001").problems)
    frames = animation_frames(SUMS, [found], scale=26)
    assert len(frames) == len(found.film.changes()) + 1
    assert frame_milliseconds(len(frames)) == 700
    assert frame_milliseconds(48) == 120


@pytest.mark.parametrize(("last", "most"), [(1, 10), (7, 100), (5000, 40)])
def test_evenly_spread(last: int, most: int) -> None:
    steps = evenly_spread(last, most)
    assert steps[0] == 1
    assert steps[-1] == last
    assert len(steps) == len(set(steps)) <= most


def test_problem_of_a_file_has_its_name(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("S.#\n#.E\n")
    (tmp_path / "b.txt").write_text("S#E\n")
    read = gather(MAZES, str(tmp_path)).problems
    titles = [describe_problem(MAZES, problem).title for problem in read]
    assert titles == ["mazes: a.txt", "mazes: b.txt"]
    frame = Frame(1, read[0].batch.targets[0].numpy().astype(np.uint8), 1.0)
    assert describe_iteration(MAZES, read[0], frame).title == "mazes: a.txt"
    (made,) = generated(MAZES, size=5).problems
    assert describe_problem(MAZES, made).title == "mazes"


def test_reduce_cells() -> None:
    cells = np.zeros((8, 8, 3), dtype=np.uint8)
    cells[::2] = 200
    assert reduce_cells(cells, 8, 8) is cells
    assert (reduce_cells(cells, 4, 80) == 100).all()
    assert reduce_cells(cells, 80, 4).shape == (4, 4, 3)


@pytest.mark.parametrize("size", [9, 59])
@pytest.mark.parametrize(("width", "lines"), [(80, 20), (40, 12), (10, 6)])
def test_terminal_output_fits(size: int, width: int, lines: int) -> None:
    console = Console(width=width, height=lines + 4, color_system="truecolor", force_terminal=True)
    for task in (MAZES, SUMS):
        batch = task.sample(1, size=size, seed=1)
        drawn = task.describe(batch, 0, prediction=torch.zeros_like(batch.targets))
        rows = terminal(drawn, console, lines=lines).plain.splitlines()[1:-1]
        assert len(rows) <= lines
        assert max(map(len, rows)) <= width
