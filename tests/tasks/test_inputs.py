"""Problems from text, files, folders and streams; errors name what cannot be read."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
import torch

import iterant
from iterant.draw import save_png
from iterant.errors import DataError, IterantError, TaskError
from iterant.tasks.inputs import GAMES, gather
from iterant.tasks.protocol import Batch, sample_problems

FEN = "6k1/5ppp/8/8/8/8/8/K2R4 w - - 0 1"
MAZE = "S.#\n#.#\n#.G\n"


@pytest.mark.parametrize(
    ("word", "problem"), [("mazes", MAZE), ("prefix-sums", "1011001"), ("chess", FEN)]
)
def test_text_file_and_stream_equal_encode(word: str, problem: str, tmp_path: Path) -> None:
    task = iterant.task(word)
    wanted = task.encode(problem)
    file = tmp_path / "problem.txt"
    file.write_text(problem)
    stream = io.BytesIO(problem.encode())
    for found in (gather(task, problem), gather(task, str(file)), gather(task, "-", stdin=stream)):
        assert len(found.problems) == 1
        assert found.refused == ()
        assert torch.equal(found.problems[0].batch.inputs, wanted.inputs)
        assert torch.equal(found.problems[0].batch.targets, wanted.targets)


def test_a_picture_and_a_text_too_long_for_a_path(tmp_path: Path) -> None:
    mazes, sums = iterant.task("mazes"), iterant.task("prefix-sums")
    batch = mazes.sample(1, size=9)
    save_png(mazes.describe(batch), tmp_path / "maze.png")
    (maze,) = gather(mazes, str(tmp_path / "maze.png")).problems
    assert torch.equal(maze.batch.inputs, batch.inputs)
    assert maze.notes[0].startswith("9 by 9 squares")
    (string,) = gather(sums, "10" * 3000).problems
    assert string.batch.inputs.shape == (1, 1, 6000)


def test_strings_one_per_line(tmp_path: Path) -> None:
    file = tmp_path / "many.txt"
    file.write_text("# for people\n1011\n\n12\r\n0 0 1\n")
    found = gather(iterant.task("prefix-sums"), str(file))
    assert [problem.name for problem in found.problems] == ["many.txt line 2", "many.txt line 5"]
    assert [problem.batch.targets.tolist() for problem in found.problems] == [
        [[1, 1, 0, 1]],
        [[0, 0, 1]],
    ]
    ((name, error),) = found.refused
    assert name == "many.txt line 4"
    assert "'2'" in str(error)


def test_several_mazes_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "two.maze"
    file.write_text("\nS G\n\n\nS.#\n#.G\n\n")
    found = gather(iterant.task("mazes"), str(file)).problems
    assert [problem.name for problem in found] == ["two.maze line 2", "two.maze line 5"]
    assert [problem.batch.inputs.shape[-2:] for problem in found] == [(8, 12), (10, 12)]


def test_a_file_of_a_folder_that_cannot_be_read_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sums = iterant.task("prefix-sums")
    monkeypatch.setattr("iterant.tasks.inputs._LARGEST", 8)
    for name, bits in (("a.txt", "1" * 9), ("b.txt", "11")):
        (tmp_path / name).write_text(bits)
    found = gather(sums, str(tmp_path))
    assert [problem.name for problem in found.problems] == ["b.txt"]
    assert [name for name, _ in found.refused] == ["a.txt"]
    with pytest.raises(DataError, match=r"^a.txt has more than 8 B"):
        gather(sums, str(tmp_path / "a.txt"))


def test_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DataError, match="holds no file"):
        gather(iterant.task("prefix-sums"), str(tmp_path))
    for name, bits in (("b.txt", "11"), ("a.txt", "0"), (".hidden", "111")):
        (tmp_path / name).write_text(bits)
    monkeypatch.chdir(tmp_path)
    for where in (str(tmp_path), ".", "./"):
        found = gather(iterant.task("prefix-sums"), where)
        assert [problem.name for problem in found.problems] == ["a.txt", "b.txt"]


@pytest.mark.parametrize(
    ("word", "problem", "message"),
    [
        ("mazes", "photo.png", "there is no file 'photo.png'"),
        ("mazes", "./pictures/", "there is no file './pictures/'"),
        ("prefix-sums", "  ", "empty"),
        ("chess", "6k1/5ppp/8/8/8/8/8/K2R4 w - - 0 1 and more", "a FEN has a board"),
    ],
)
def test_bad_problems_are_one_line(word: str, problem: str, message: str) -> None:
    with pytest.raises(IterantError) as caught:
        gather(iterant.task(word), problem)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("word", "content", "kind", "message"),
    [
        ("prefix-sums", b" \n", None, "standard input is empty"),
        ("prefix-sums", b"\x89PNG\r\n\x1a\n", None, "prefix sums .* read text, .* kind picture"),
        ("mazes", b"x", GAMES, "of the kind games"),
        ("prefix-sums", b"\xff\xfe\x00\x80", None, "neither text nor a picture"),
        ("prefix-sums", b"1" * 101, None, "the most that is read"),
        ("prefix-sums", b"1\n0\nx\n", None, "holds more than 2 problems"),
        ("prefix-sums", b"# no problem\n", None, "holds no problem"),
    ],
)
def test_bad_streams_are_refused(
    word: str, content: bytes, kind: str | None, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("iterant.tasks.inputs._LARGEST", 100)
    monkeypatch.setattr("iterant.tasks.inputs._MOST_PROBLEMS", 2)
    with pytest.raises((TaskError, DataError), match=message):
        gather(iterant.task(word), "-", stdin=io.BytesIO(content), kind=kind)
    with pytest.raises(TaskError, match="no standard input"):
        gather(iterant.task(word), "-")


class TextOnly:
    """A task that reads nothing but what encode takes."""

    spec = iterant.task("prefix-sums").spec

    def encode(self, problem: str) -> Batch:
        return Batch(torch.ones(1, 1, len(problem)), torch.zeros(1, len(problem)).long())


def test_task_that_reads_text_only() -> None:
    (problem,) = gather(TextOnly(), "BM\ncd").problems  # type: ignore[arg-type]
    assert problem.batch.inputs.shape == (1, 1, 5), "text, though bitmaps begin with BM"


def test_generated_problems() -> None:
    task = iterant.task("mazes")
    found = sample_problems(task, count=2, size=5, seed=3)
    batch = task.sample(2, size=5, seed=3)
    assert [problem.name for problem in found] == [
        "mazes, size 5, seed 3 (1 of 2)",
        "mazes, size 5, seed 3 (2 of 2)",
    ]
    assert torch.equal(torch.cat([problem.batch.inputs for problem in found]), batch.inputs)
