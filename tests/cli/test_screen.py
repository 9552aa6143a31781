"""What commands show while they work: training runs, and a network solving a problem."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from dead_ends import DeadEnds
from rich.cells import cell_len
from rich.console import Console

from iterant.cli.output import TrainingDisplay, training_display
from iterant.training.logging import RunProgress

REPORT = RunProgress(
    step=40, steps=160, epoch=1, epochs=4, loss=0.0213, lr=1e-3,
    steps_per_second=4.0, seconds_left=30.0,
    figures={"validation": 0.9996, "validation at 2m": 0.5, "48 at 2m": 0.25, "48 change": 3e-8},
)  # fmt: skip
POSITION = "epoch 1 of 4, step 40 of 160, loss 0.0213"
FIGURES = [
    "accuracy 99.9 % at m",
    "monitoring: validation at 2m 50.0 %, 48 at 2m 25.0 %, 48 change 3e-08",
]


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
    assert len(lines) == 4
    assert all(cell_len(line) <= width for line in lines)
    if width == 300:
        assert lines == ["━" * 15, f"{POSITION}, 4.0 steps/s, 30 s left", *FIGURES]


def test_pipes_get_a_line_every_five_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    monkeypatch.setattr("iterant.cli.output.monotonic", lambda: clock[0])
    screen = console(terminal=False)
    display = started(screen)
    printed(screen)
    for _ in range(11):
        display.show(REPORT)
        clock[0] += 1
    line = f"{POSITION}, 4.0 steps/s"
    assert printed(screen) == [f"{line}, 30 s left, {', '.join(FIGURES)}"] * 3
    display.show(replace(REPORT, step=160))  # the last line is that of the end
    assert printed(screen) == []
    display.end("finished")
    [last] = printed(screen)
    assert last.startswith("epoch 1 of 4, step 160 of 160")
    assert "left" not in last


def test_terminals_are_redrawn_and_pipes_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    for screen, live in ((console(terminal=False), False), (console(), True)):
        with training_display(screen) as display:
            display.begin("title", Path("r"), REPORT)
        assert any("epoch 1 of 4" in line for line in printed(screen)) == live
    monkeypatch.setenv("TERM", "dumb")
    assert not TrainingDisplay(console()).live


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
    monkeypatch.setattr("iterant.cli.output._FIRST_LINE_SECONDS", 0.0)
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
