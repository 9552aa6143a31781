"""What commands show while they work: training runs, and a network solving a problem."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from dead_end_network import DeadEnds
from rich.cells import cell_len
from rich.console import Console

from iterant.cli.output import TrainingDisplay, training_display
from iterant.training.logging import LineReporter, RunProgress

REPORT = RunProgress(
    step=40, steps=160, epoch=1, epochs=4, loss=0.0213, lr=1e-3,
    steps_per_second=4.0, seconds_left=30.0,
    figures={"validation": 0.9996, "validation at 2m": 0.5, "48 at 2m": 0.25, "48 change": 3e-8},
    iterations=30,
)  # fmt: skip
POSITION = "epoch 1 of 4, step 40 of 160, loss 0.0213"
ACCURACIES = "validation 99.9 % after 30 iterations, 50.0 % after 60; size 48: 25.0 % after 60"


def console(width: int = 200, *, terminal: bool = True, **options: Any) -> Console:
    return Console(file=io.StringIO(), force_terminal=terminal, width=width, highlight=False,
                   legacy_windows=False, **options)  # fmt: skip


def printed(screen: Console) -> list[str]:
    assert isinstance(screen.file, io.StringIO)
    lines = screen.file.getvalue().splitlines()
    screen.file.truncate(0)
    screen.file.seek(0)
    return lines


def started(screen: Console) -> TrainingDisplay:
    display = TrainingDisplay(screen)
    display.begin("title", Path("r"), REPORT)
    return display


@pytest.mark.parametrize("width", [1, 42, 300])
def test_a_live_run_has_a_bar_and_the_time_left(width: int) -> None:
    screen = console(width, color_system=None)
    display = started(screen)
    printed(screen)
    screen.print(display)
    lines = printed(screen)
    assert len(lines) == 3
    assert all(cell_len(line) <= width for line in lines)
    if width == 300:
        assert lines == ["━" * 15, f"{POSITION}, 4.0 steps/s, 30 s left", ACCURACIES]


def test_terminals_are_redrawn_and_pipes_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    for screen, live in ((console(terminal=False), False), (console(), True)):
        with training_display(screen) as display:
            display.begin("title", Path("r"), REPORT)
        assert any("epoch 1 of 4" in line for line in printed(screen)) == live
    monkeypatch.setenv("TERM", "dumb")
    with training_display(console()) as display:
        assert isinstance(display, LineReporter)


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
    live: bool, terminal_command: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("iterant.zoo.loading.load", lambda *_, **__: DeadEnds())
    flags = [] if live else ["--no-live"]
    text = terminal_command("solve", "mazes", "--size", "5", "--count", "3", *flags)
    assert ("3/3" in text) == live
    assert "3 problems, " in text
