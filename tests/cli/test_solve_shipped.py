"""``iterant solve`` with the shipped networks."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def solved(command: Any, *words: str) -> str:
    code, output, errors = command("solve", *words)
    assert (code, errors) == (0, "")
    return str(output)


def test_a_larger_maze(tmp_path: Path, command: Any) -> None:
    output = solved(
        command, "mazes", "--size", "33", "--seed", "3", "--save", str(tmp_path / "m.png")
    )
    assert "one way from start to end" in output
    assert "yes, it equals the true answer" in output
    assert "settled   after" in output


def test_a_rectangular_maze(command: Any) -> None:
    output = solved(command, "mazes", "S #   #\n# # # #\n#   # G")
    assert "13 squares: one way from start to end" in output


def test_a_longer_string(command: Any) -> None:
    assert "yes, it equals the true answer" in solved(command, "prefix-sums", "10110010" * 12)


def test_a_chess_position(command: Any) -> None:
    output = solved(command, "chess", "6k1/5ppp/8/8/8/8/8/K2R4 w - - 0 1")
    assert "White to move; found" in output
