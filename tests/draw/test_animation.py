"""Frames of the iterations with the true answer only at the end; files are read back equal."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from exact_networks import DeadEnds, exact_prefix_sums
from numpy.typing import NDArray
from PIL import Image

import iterant
from iterant.draw import animation
from iterant.draw.animation import (
    animation_frames,
    check_animation,
    describe_iteration,
    describe_solution,
    save_animation,
)
from iterant.errors import UsageError
from iterant.halting import Fixed
from iterant.solving import solutions
from iterant.tasks.inputs import gather
from iterant.tasks.protocol import sample_problems

MAZES, SUMS = iterant.task("mazes"), iterant.task("prefix-sums")
BLUE, PURPLE = (0, 114, 178), (204, 121, 167)


def bar(place: int, height: int = 40) -> NDArray[np.uint8]:
    """White, with a blue bar that moves to the right."""
    frame = np.full((height, 60, 3), 255, dtype=np.uint8)
    frame[:, place : place + 4] = BLUE
    return frame


def read_back(path: Path) -> tuple[list[NDArray[np.uint8]], list[int]]:
    frames, durations = [], []
    with Image.open(path) as image:
        for number in range(getattr(image, "n_frames", 1)):
            image.seek(number)
            frames.append(np.asarray(image.convert("RGB")))
            durations.append(int(image.info.get("duration", 0)))
    return frames, durations


def colours(cells: np.ndarray) -> set[tuple[int, ...]]:
    return {tuple(cell) for cell in cells.reshape(-1, 3).tolist()}


@pytest.mark.parametrize(("count", "duration"), [(2, 700), (10, 500), (50, 120)])
def test_gif_frames_colours_and_durations(count: int, duration: int, tmp_path: Path) -> None:
    frames = [bar(place) for place in range(count)]
    path = save_animation(frames, tmp_path / "bar.gif")
    read, durations = read_back(path)
    assert np.array_equal(read, frames)
    assert durations == [duration] * (count - 1) + [2000]
    assert path.stat().st_size < 400 * (count + 1), "only what changed is stored"


def test_frames_are_padded_to_one_size(tmp_path: Path) -> None:
    read, _ = read_back(save_animation([bar(0, 40), bar(5, 44)], tmp_path / "bar.gif"))
    assert read[0].shape == (44, 60, 3)
    assert (read[0][40:] == 255).all()


def test_commonest_colours_are_exact(tmp_path: Path) -> None:
    frame = np.zeros((300, 300, 3), dtype=np.uint8)
    frame[:, :100] = np.random.default_rng(1).integers(0, 255, (300, 100, 3), dtype=np.uint8)
    frame[:, 100:200] = (10, 200, 30)
    read, _ = read_back(save_animation([frame], tmp_path / "one.gif"))
    assert np.array_equal(read[0][:, 100:], frame[:, 100:])


@pytest.mark.parametrize("name", ["film.avi", "no/such/film.gif", "here.gif", "film.mp4"])
def test_invalid_path_is_refused_first(name: str, tmp_path: Path) -> None:
    (tmp_path / "here.gif").mkdir()
    with pytest.raises(
        UsageError, match=f"ffmpeg -i film.gif {name}" if name.startswith("film") else name
    ):
        check_animation(tmp_path / name)


def test_true_answer_is_hidden_before_the_end() -> None:
    (solution,) = solutions(DeadEnds(), MAZES, sample_problems(MAZES, size=9, seed=1))
    first = describe_iteration(MAZES, solution.problem, solution.film.at(1))
    assert BLUE in colours(first.cells)
    assert PURPLE not in colours(first.cells)
    assert first.caption == "iteration 1"
    last = describe_solution(MAZES, solution)
    assert np.array_equal(last.cells, MAZES.describe(solution.problem.batch).cells)
    assert last.caption.endswith(f"0 squares wrong; settled after {solution.steps} iterations")


def test_wrong_answer_at_the_end() -> None:
    problems = sample_problems(SUMS, size=20, seed=1)
    (solution,) = solutions(exact_prefix_sums(), SUMS, problems, max_steps=3, rule=Fixed())
    last = describe_solution(SUMS, solution)
    assert "wrong" in last.text
    assert last.caption.endswith("not settled after 3 iterations")
    assert "wrong" not in describe_iteration(SUMS, solution.problem, solution.film.at(3)).text


def test_maze_without_a_path() -> None:
    problems = [*gather(MAZES, "S.#\n###\n#.G").problems, *sample_problems(MAZES, size=3)]
    solved = list(solutions(DeadEnds(), MAZES, problems))
    last = describe_solution(MAZES, solved[0])
    assert colours(last.cells) == {(0, 0, 0), (255, 255, 255), (0, 255, 0), (255, 0, 0)}
    assert last.caption.endswith("no way leads from start to end")
    assert animation_frames(MAZES, solved)


def test_number_of_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    solved = list(solutions(DeadEnds(), MAZES, sample_problems(MAZES, size=9, count=2)))
    changes = {frame.step for solution in solved for frame in solution.film.changes()}
    assert len(animation_frames(MAZES, solved)) == len(changes) + 1
    monkeypatch.setattr(animation, "FRAMES", 5)
    frames = animation_frames(MAZES, solved)
    assert len(frames) == 5
    assert not np.array_equal(frames[0], frames[-1])
    with pytest.raises(UsageError):
        animation_frames(MAZES, [])


def test_problem_of_a_file_has_its_name(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("S.#\n#.E\n")
    (tmp_path / "b.txt").write_text("S#E\n")
    solved = solutions(DeadEnds(), MAZES, gather(MAZES, str(tmp_path)).problems)
    assert [describe_solution(MAZES, one).title for one in solved] == [
        "mazes: a.txt", "mazes: b.txt",
    ]  # fmt: skip
