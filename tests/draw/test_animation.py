"""Frames of the iterations with the true answer only at the end; files are read back equal."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from pathlib import Path

import numpy as np
import pytest
from dead_ends import DeadEnds
from exact import exact_prefix_sums
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
from iterant.errors import RunError, UsageError
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
def test_invalid_path_is_refused_first(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here.gif").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path))  # without ffmpeg
    with pytest.raises(UsageError):
        check_animation(tmp_path / name)


def fake(folder: Path, body: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put a fake ffmpeg on the PATH."""
    program = folder / "ffmpeg"
    program.write_text(f"#!/bin/sh\n{body}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")


def test_ffmpeg_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    body = 'for last; do :; done; echo "$@" > "$0.words"; cat > "$last"'
    fake(tmp_path, body, monkeypatch)
    frames = [bar(0, 41), bar(5, 41)]
    path = save_animation(frames, tmp_path / "bar.mp4")
    raw = np.frombuffer(path.read_bytes(), dtype=np.uint8).reshape(-1, 42, 60, 3)
    assert len(raw) == 1 + 3, "two of 0.7 s, then the last goes on to two seconds"
    assert np.array_equal(raw[0, :41], frames[0])
    assert all(np.array_equal(last[:41], frames[1]) for last in raw[1:])
    assert "-s 60x42 -r 1.42857 " in (tmp_path / "ffmpeg.words").read_text()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bar.mp4", "ffmpeg", "ffmpeg.words"]


def test_ffmpeg_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake(tmp_path, "cat > /dev/null; echo one >&2; echo no such encoder >&2; exit 3", monkeypatch)
    with pytest.raises(RunError, match="no such encoder"):
        save_animation([bar(0)], tmp_path / "bar.mp4")
    assert not (tmp_path / "bar.mp4").exists()


@pytest.mark.skipif(shutil.which("ffmpeg") is None, reason="needs ffmpeg: apt install ffmpeg")
def test_duration_of_mp4(tmp_path: Path) -> None:
    """Read back by ffmpeg; compression changes colours a little."""
    frames = [bar(place, 41) for place in (0, 20, 40)]
    path = save_animation(frames, tmp_path / "a:b.mp4")
    command = ["ffmpeg", "-loglevel", "error", "-i", f"file:{path}", "-f", "rawvideo"]
    read = subprocess.run([*command, "-pix_fmt", "rgb24", "-"], capture_output=True, check=True)
    film = np.frombuffer(read.stdout, dtype=np.uint8).reshape(-1, 42, 60, 3).astype(int)
    assert len(film) == pytest.approx(3.5 * 25, abs=2)
    for seconds, frame in ((0.3, frames[0]), (1.0, frames[1]), (1.7, frames[2]), (3.3, frames[2])):
        assert np.abs(film[round(25 * seconds), :41] - frame).mean() < 4


def test_true_answer_is_hidden_before_the_end() -> None:
    (solution,) = solutions(DeadEnds(), MAZES, sample_problems(MAZES, size=9, seed=1))
    first = describe_iteration(MAZES, solution.problem, solution.film.at(1))
    assert BLUE in colours(first.cells)
    assert PURPLE not in colours(first.cells)
    assert first.caption == "iteration 1"
    last = describe_solution(MAZES, solution)
    assert np.array_equal(last.cells, MAZES.describe(solution.problem.batch).cells)
    assert last.caption.endswith(f"0 pixels wrong; settled after {solution.steps} iterations")


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


def test_number_of_frames(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    solved = list(solutions(DeadEnds(), MAZES, sample_problems(MAZES, size=9, count=2)))
    changes = {frame.step for solution in solved for frame in solution.film.changes()}
    assert len(animation_frames(MAZES, solved)) == len(changes) + 1
    monkeypatch.setattr(animation, "FRAMES", 5)
    frames = animation_frames(MAZES, solved)
    assert len(frames) == 5
    assert not np.array_equal(frames[0], frames[-1])
    with pytest.raises(UsageError):
        animation_frames(MAZES, [])
    with pytest.raises(UsageError):
        save_animation([], tmp_path / "a.gif")


def test_problem_of_a_file_has_its_name(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("S.#\n#.E\n")
    (tmp_path / "b.txt").write_text("S#E\n")
    solved = solutions(DeadEnds(), MAZES, gather(MAZES, str(tmp_path)).problems)
    assert [describe_solution(MAZES, one).title for one in solved] == [
        "mazes: a.txt", "mazes: b.txt",
    ]  # fmt: skip
