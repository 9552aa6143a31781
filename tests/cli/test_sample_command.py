"""``iterant sample``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.image import imread

from iterant import registry


@pytest.mark.parametrize("word", registry.known("task"))
def test_every_task_is_printed_as_text(word: str, command: Any) -> None:
    task = registry.task(word)
    batch = task.sample(1, seed=3)
    description = task.describe(batch, 0)
    code, output, errors = command("sample", word, "--seed", "3", "--no-solution")
    assert (code, errors) == (0, "")
    assert description.title in output
    assert len(output.splitlines()) >= len(description.text.splitlines()) + 1
    _, solved, _ = command("sample", word, "--seed", "3")
    assert solved != output, "the answer is shown unless it is declined"
    assert "predicted" not in solved, "nothing was predicted"


def test_count_and_sizes(command: Any) -> None:
    code, output, _ = command("sample", "mazes", "--size", "5", "7", "--count", "2")
    assert code == 0
    walls = [len(line) for line in output.splitlines() if line and set(line) == {"#"}]
    assert walls == [7] * 4 + [9] * 4


def test_seeds(command: Any) -> None:
    first = command("sample", "mazes", "--seed", "1")
    assert command("sample", "mazes", "--seed", "1") == first
    assert command("sample", "mazes", "--seed", "2") != first


def test_no_solution(tmp_path: Path, command: Any) -> None:
    _, with_path, _ = command("sample", "mazes", "--seed", "4")
    _, without, _ = command("sample", "mazes", "--seed", "4", "--no-solution")
    assert "*" in with_path
    assert "*" not in without
    assert without.splitlines()[1:12] == with_path.replace("*", ".").splitlines()[1:12]


def test_save(tmp_path: Path, command: Any) -> None:
    target = tmp_path / "m.png"
    code, output, errors = command("sample", "mazes", "--size", "13", "--save", str(target))
    assert (code, errors) == (0, "")
    assert output
    colours = {tuple(pixel) for pixel in np.round(imread(target) * 255).reshape(-1, 4)[:, :3]}
    assert {(0, 0, 0), (255, 255, 255), (0, 255, 0), (255, 0, 0)} <= colours


def test_a_picture_holds_a_limited_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Any
) -> None:
    monkeypatch.setattr("iterant.cli.sample._MOST", 2)
    target = tmp_path / "m.png"
    words = ("prefix-sums", "--size", "2", "--count", "3", "--save", str(target))
    code, _, errors = command("sample", *words)
    assert code == 0
    assert errors == "iterant: the picture holds the first 2 of 3 problems\n"
    assert target.exists()


@pytest.mark.parametrize(
    ("size", "term", "text"),
    [
        ("9", "xterm-256color", "▀"),
        ("9", "dumb", "#"),
        ("101", "xterm-256color", "--save FILE.png"),
    ],
)
def test_terminals(size: str, term: str, text: str, terminal_command: Any) -> None:
    words = ("sample", "mazes", "--size", size)
    assert text in terminal_command(*words, columns=40, lines=25, term=term)
