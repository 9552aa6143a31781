"""What a network that solves a problem shows while it works."""

from __future__ import annotations

from typing import Any

import pytest
from exact_networks import DeadEnds


@pytest.mark.parametrize(("columns", "rows"), [(100, 50), (60, 20), (30, 5)])
def test_solving_on_terminals_of_any_size(
    columns: int, rows: int, monkeypatch: pytest.MonkeyPatch, terminal_command: Any
) -> None:
    monkeypatch.setattr("iterant.zoo.loading.load", lambda *_, **__: DeadEnds())
    words = ("solve", "mazes", "--size", "33", "--seed", "1")
    output = terminal_command(*words, columns=columns, lines=rows)
    assert "iteration 1, answer" in output
    # Half blocks, or dots where those do not fit; dots are never made smaller for the height.
    assert ("▀" in output) == (rows == 50)
    assert ("⣿" in output) == (rows < 50)
    assert "one way from start to end" in output


@pytest.mark.parametrize(("term", "drawn"), [("xterm", True), ("dumb", False)])
def test_any_terminal_with_colours_shows_the_iterations(
    term: str, drawn: bool, monkeypatch: pytest.MonkeyPatch, terminal_command: Any
) -> None:
    """xterm: 16 colours."""
    monkeypatch.setattr("iterant.zoo.loading.load", lambda *_, **__: DeadEnds())
    output = terminal_command("solve", "mazes", "--size", "5", "--seed", "1", term=term)
    assert ("iteration 1, answer" in output) == drawn
    assert ("\x1b[" in output) == drawn


@pytest.mark.parametrize(("live", "lines"), [([], True), (["--no-live"], False)])
def test_solving_without_a_terminal_writes_lines(
    live: list[str], lines: bool, command: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("iterant.zoo.loading.load", lambda *_, **__: DeadEnds())
    monkeypatch.setattr("iterant.progress._FIRST_LINE_SECONDS", 0.0)
    code, output, errors = command("solve", "mazes", "--size", "5", "--seed", "1", *live)
    assert (code, "one way from start to end" in output) == (0, True)
    assert ("solving: iteration 1, answer unchanged since iteration 1" in errors) == lines


@pytest.mark.parametrize("live", [True, False])
def test_many_problems_show_progress(
    live: bool, command: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("iterant.zoo.loading.load", lambda *_, **__: DeadEnds())
    monkeypatch.setattr("iterant.progress._FIRST_LINE_SECONDS", 0.0)
    flags = [] if live else ["--no-live"]
    _, output, errors = command("solve", "mazes", "--size", "5", "--count", "3", *flags)
    assert ("solving: 33 % done" in errors) == live
    assert "3 problems, " in output
