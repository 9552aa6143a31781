"""``iterant sample``: what is asked for is shown and drawn, and nothing else."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread

from iterant import registry
from iterant.cli.main import run


def sample(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[object, str, str]:
    """Exit code, output and errors of ``iterant sample …``."""
    with pytest.raises(SystemExit) as leaving:
        run(["sample", *words])
    output, errors = capsys.readouterr()
    return leaving.value.code, output, errors


@pytest.mark.parametrize("word", registry.known("task"))
def test_every_task_is_shown_as_its_own_text(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    task = registry.task(word)
    batch = task.sample(1, seed=3)
    description = task.describe(batch, 0)
    code, output, errors = sample(capsys, word, "--seed", "3", "--no-solution")
    assert (code, errors) == (0, "")
    assert description.title in output
    assert len(output.splitlines()) >= len(description.text.splitlines()) + 1
    _, solved, _ = sample(capsys, word, "--seed", "3")
    assert solved != output, "the answer is shown unless it is declined"
    assert "predicted" not in solved, "nobody has predicted anything"


def test_count_and_size_are_what_is_asked(capsys: pytest.CaptureFixture[str]) -> None:
    code, output, _ = sample(capsys, "mazes", "--size", "5", "7", "--count", "2")
    assert code == 0
    walls = [len(line) for line in output.splitlines() if line and set(line) == {"#"}]
    assert walls == [7] * 4 + [9] * 4


def test_the_seed_decides(capsys: pytest.CaptureFixture[str]) -> None:
    first = sample(capsys, "mazes", "--seed", "1")
    assert sample(capsys, "mazes", "--seed", "1") == first
    assert sample(capsys, "mazes", "--seed", "2") != first


def test_without_a_solution_none_is_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, with_path, _ = sample(capsys, "mazes", "--seed", "4")
    _, without, _ = sample(capsys, "mazes", "--seed", "4", "--no-solution")
    assert "*" in with_path
    assert "*" not in without
    assert without.splitlines()[1:12] == with_path.replace("*", ".").splitlines()[1:12]


def test_a_picture_is_saved(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "m.png"
    code, output, errors = sample(capsys, "mazes", "--size", "13", "--save", str(target))
    assert (code, errors) == (0, "")
    assert output
    colours = {tuple(pixel) for pixel in np.round(imread(target) * 255).reshape(-1, 4)[:, :3]}
    assert {(0, 0, 0), (255, 255, 255), (0, 255, 0), (255, 0, 0)} <= colours


def test_a_sheet_says_when_it_leaves_some_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("iterant.cli.sample._MOST", 2)
    target = tmp_path / "m.png"
    words = ("prefix-sums", "--size", "2", "--count", "3", "--save", str(target))
    code, _, errors = sample(capsys, *words)
    assert code == 0
    assert errors == "iterant: the picture holds the first 2 of 3 problems\n"
    assert target.exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("mazes", "--size", "8"), "odd"),
        (("mazes", "--size", "-3"), "got -3"),
        (("mazes", "--size", "99999999"), "99999999"),
        (("mazes", "--size", "large"), "'large'"),
        (("mazes", "--count", "-1"), "at least 1, got -1"),
        (("mazes", "--count", "0"), "at least 1, got 0"),
        (("mazes", "--seed", "-1"), "seed"),
        (("prefix-sums", "--size", "0"), "got 0"),
        (("mazes", "--save", "m.bmp"), "written as .png"),
        (("mazes", "--save", "no/such/folder/m.png"), "there is no folder"),
        (("mazes", "--save", ""), "written as .png"),
    ],
)
def test_a_wrong_value_is_one_line_and_code_2(
    words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, output, errors = sample(capsys, *words)
    assert code == 2
    assert output == "", "nothing is shown before everything was checked"
    assert errors.startswith("iterant: error: ")
    assert errors.count("\n") == 1
    assert said in errors


class Screen(io.StringIO):
    """A terminal of 40 columns."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("size", "term", "wanted"),
    [
        ("9", "xterm-256color", "▀"),
        ("9", "dumb", "#"),
        ("101", "xterm-256color", "--save FILE.png"),
    ],
)
def test_a_terminal_gets_what_it_can_show(
    size: str, term: str, wanted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = Screen()
    monkeypatch.setattr(sys, "stdout", screen)
    for name, value in (("TERM", term), ("COLUMNS", "40"), ("LINES", "25")):
        monkeypatch.setenv(name, value)
    for name in ("NO_COLOR", "COLORTERM", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(SystemExit):
        run(["sample", "mazes", "--size", size])
    assert wanted in screen.getvalue()
