"""``iterant solve`` with the networks that ship, as a stranger types it."""

from __future__ import annotations

from pathlib import Path

import pytest

from iterant.cli.main import run
from iterant.zoo import shipped


def solved(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    with pytest.raises(SystemExit) as leaving:
        run(["solve", *words])
    output, errors = capsys.readouterr()
    assert (leaving.value.code, errors) == (0, "")
    return output


def needs(name: str) -> None:
    if name not in shipped():
        pytest.skip(f"no network {name} ships with this version")


def test_a_larger_maze_than_it_was_trained_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    needs("mazes")
    output = solved(
        capsys, "mazes", "--size", "33", "--seed", "3", "--save", str(tmp_path / "m.png")
    )
    assert "one way from start to end" in output
    assert "yes, it equals the true answer" in output
    assert "settled   after" in output


def test_a_rectangle_drawn_by_hand(capsys: pytest.CaptureFixture[str]) -> None:
    needs("mazes")
    output = solved(capsys, "mazes", "S #   #\n# # # #\n#   # G")
    assert "13 squares: one way from start to end" in output


def test_a_longer_string_than_it_was_trained_on(capsys: pytest.CaptureFixture[str]) -> None:
    needs("prefix-sums")
    assert "yes, it equals the true answer" in solved(capsys, "prefix-sums", "10110010" * 12)


def test_a_position(capsys: pytest.CaptureFixture[str]) -> None:
    needs("chess")
    output = solved(capsys, "chess", "6k1/5ppp/8/8/8/8/8/K2R4 w - - 0 1")
    assert "White to move; found" in output
