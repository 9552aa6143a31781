"""What ``iterant solve`` shows while a network works."""

from __future__ import annotations

import io
from itertools import pairwise
from typing import Any

import pytest
import torch
from dead_ends import DeadEnds
from rich.console import Console
from rich.live import Live

import iterant
from iterant.cli.solve_report import LineViewer, PictureViewer, status
from iterant.solving import Film, Frame, solutions
from iterant.tasks.inputs import generated


@pytest.mark.parametrize(("columns", "rows"), [(100, 50), (60, 20), (30, 5)])
def test_terminals_of_any_size(
    columns: int, rows: int, monkeypatch: pytest.MonkeyPatch, terminal_command: Any
) -> None:
    monkeypatch.setattr("iterant.cli.solve.network", lambda *_: DeadEnds())
    words = ("solve", "mazes", "--size", "33", "--seed", "1")
    shown = terminal_command(*words, columns=columns, lines=rows)
    assert "thinking: iteration 1, the a" in shown
    # Half blocks, or dots where those do not fit; dots are never made smaller for the height.
    assert ("▀" in shown) == (rows == 50)
    assert ("⣿" in shown) == (rows < 50)
    assert "times smaller" not in shown or rows < 20
    assert "one way from start to end" in shown


def test_pictures_are_drawn_eight_times_a_second() -> None:
    task = iterant.task("mazes")
    (problem,) = generated(task, size=5).problems
    console = Console(file=io.StringIO(), force_terminal=True, width=60, height=30)
    drawn: list[int] = []
    now = [0.0]
    live = Live(console=console, auto_refresh=False)
    moving = PictureViewer(task, live, clock=lambda: now[0])

    def look(problem: Any, frame: Frame, film: Film) -> None:
        now[0] += 0.01
        before = moving.last
        moving(problem, frame, film)
        if moving.last != before:
            drawn.append(frame.step)

    list(solutions(DeadEnds(), task, [problem], max_steps=60, viewer=look,
                   rule=iterant.halting.Fixed()))  # fmt: skip
    assert drawn[0] == 1
    gaps = [later - sooner for sooner, later in pairwise(drawn)]
    assert gaps
    assert min(gaps) >= 12, "an eighth of a second is 12 iterations of a hundredth"


def test_lines_without_a_terminal() -> None:
    file = io.StringIO()
    now = [0.0]
    plain = LineViewer(Console(file=file), clock=lambda: now[0])
    film = Film(1)
    for step in range(1, 11):
        now[0] += 1
        film.put(Frame(step, torch.tensor([step > 4]).numpy().astype("uint8"), 0.5))
        plain(generated(iterant.task("prefix-sums")).problems[0], film.at(step), film)
    assert file.getvalue().splitlines() == [
        "thinking: iteration 3, the answer stands since iteration 1",
        "thinking: iteration 6, the answer stands since iteration 5",
        "thinking: iteration 9, the answer stands since iteration 5",
    ]
    assert status(film.at(1), Film(1)) == "thinking: iteration 1, the answer is changing"
