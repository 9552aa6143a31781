"""What a person sees of training: figures that do not flatter, lines that never break."""

from __future__ import annotations

import io
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from iterant.cli.live import PAUSE, Board, LiveBoard, display
from iterant.cli.options import bar, sparkline, watched
from iterant.training.logging import Report

REPORT = Report(
    update=40,
    updates=160,
    epoch=1,
    epochs=4,
    loss=0.0213,
    rate=1e-3,
    updates_per_second=4.0,
    seconds_left=30.0,
    figures={
        "validation": 0.9996,
        "validation at 2m": 0.5,
        "48 at 2m": 0.25,
        "48 at 4m": 1.0,
        "48 change": 3e-8,
    },
    monitoring=("validation at 2m", "48 at 2m", "48 at 4m", "48 change"),
)


class Clock:
    """A clock that stands until it is moved."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def terminal(width: int = 100, **options: Any) -> Console:
    return Console(
        file=io.StringIO(), force_terminal=True, width=width, legacy_windows=False, **options
    )


def said(console: Console) -> list[str]:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


def pipe() -> Console:
    return Console(file=io.StringIO(), width=200, highlight=False)


@given(st.lists(st.floats(0, 1e6) | st.just(math.nan), max_size=80), st.integers(1, 30))
def test_a_sparkline_fits_its_room(values: list[float], width: int) -> None:
    for log in (False, True):
        curve = sparkline(values, width, log=log)
        assert len(curve) <= width
        assert set(curve) <= set("▁▂▃▄▅▆▇█")


def test_a_sparkline_rises_and_falls_with_its_values() -> None:
    assert sparkline(range(8), 8) == "▁▂▃▄▅▆▇█"
    assert sparkline([1, 0.1, 0.01, 0.001], 8, log=True) == "█▆▃▁"
    assert sparkline([3, 3], 8) == "▁▁"
    assert sparkline([3], 8) == ""


@given(st.floats(-1, 2), st.integers(0, 60))
def test_a_bar_is_as_wide_as_its_room(done: float, width: int) -> None:
    assert len(bar(done, width)) == len(bar(done, width, ascii_only=True)) == width
    assert set(bar(done, width, ascii_only=True)) <= {"#", "-"}


def test_what_is_watched_is_told_apart() -> None:
    assert watched(REPORT) == [
        "validation: 50.0 % at 2m",
        "48: 25.0 % at 2m, 100.0 % at 4m, change 3e-08",
    ]
    assert watched(replace(REPORT, monitoring=())) == []


def lines(width: int, *, many: bool = False, clock: Clock | None = None, **options: Any) -> str:
    board = LiveBoard(console := terminal(width, **options), clock or Clock())
    board.many = many
    for seed in range(3 if many else 1):
        lane = board.of(seed)
        lane.begin("prefix sums: a network of some kind", Path("runs/s0"), REPORT)
        for loss in (0.5, 0.1, 0.01):
            lane.show(replace(REPORT, loss=loss))
        for fresh in (0.1, 0.9996):
            figures = {**REPORT.figures, "validation": fresh}
            lane.show(replace(REPORT, figures=figures, fresh=("validation",)))
    assert isinstance(console.file, io.StringIO)
    console.file.truncate(0)
    console.file.seek(0)
    console.print(board)
    return console.file.getvalue()


def test_the_display_shows_all_that_matters() -> None:
    text = lines(100, color_system=None)
    wanted = """a network of some kind; 1 of 4; 4.0 steps/s; 30 s left; 0.0213; █▅▁; ▁█
        99.9 % at m; monitored validation: 50.0 % at 2m; 48: 25.0 % at 2m"""
    for part in wanted.replace("\n", ";").split(";"):
        assert part.strip() in text


@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize("width", [1, 2, 9, 20, 42, 59, 60, 61, 80, 300])
def test_no_line_is_wider_than_the_terminal(width: int, many: bool) -> None:
    rows = lines(width, many=many, color_system=None).splitlines()
    assert len(rows) == (3 if many else 6)
    assert all(cell_len(row) <= width for row in rows)


def test_no_colour_means_no_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    coloured = lines(100, color_system="truecolor")
    assert "\x1b[32m" in coloured or "\x1b[36m" in coloured
    monkeypatch.setenv("NO_COLOR", "1")
    plain = lines(100, color_system="truecolor")
    assert "\x1b[32m" not in plain
    assert "\x1b[36m" not in plain


def test_the_time_left_is_counted_down_between_reports() -> None:
    clock = Clock()
    board = LiveBoard(terminal(color_system=None), clock)
    lane = board.of(0)
    lane.begin("title", Path("r"), REPORT)
    clock.now += 12
    board.console.print(board)
    assert any("18 s left" in line for line in said(board.console))
    lane.end("finished")
    board.console.print(board)
    assert "left" not in said(board.console)[-3]


def test_several_seeds_are_a_line_each_and_a_failed_one_says_so() -> None:
    board = LiveBoard(terminal(200, color_system=None), Clock())
    board.many = True
    for seed in (4, 5):
        board.of(seed).begin("title", Path("r"), REPORT)
    board.lanes[5].end("failed: the loss became nan")
    board.console.print(board)
    first, second = said(board.console)
    assert first.startswith("seed 4  epoch 1/4")
    assert second.startswith("seed 5  failed")
    assert "monitoring validation: 50.0 % at 2m; 48: " in first


def test_plain_lines_keep_a_pause_and_the_end_is_always_said() -> None:
    clock = Clock()
    board = Board(pipe(), clock)
    lane = board.of(0)
    lane.begin("title", Path("runs/s0"), REPORT)
    for _ in range(100):
        clock.now += PAUSE / 10
        lane.show(REPORT)
    lane.end("finished")
    rows = said(board.console)
    assert rows[0] == "title, kept in runs/s0"
    assert len(rows) == 1 + 10 + 1
    assert rows[1].startswith("epoch 1 of 4, update 40 of 160, loss 0.0213, accuracy 99.9 % at m")
    assert "monitoring validation: 50.0 % at 2m; 48: 25.0 % at 2m" in rows[1]
    assert rows[1].endswith("4.0 steps/s, 30 s left")
    assert rows[2] == "epoch 1 of 4, update 40 of 160, loss 0.0213, 4.0 steps/s, 30 s left"
    assert "accuracy 99.9 % at m" in rows[-1]
    assert rows[-1].endswith("4.0 steps/s")


def test_notes_name_their_seed_where_there_are_several() -> None:
    for many, wanted in ((False, "so it is"), (True, "seed 7: so it is")):
        board = Board(pipe(), Clock())
        board.many = many
        board.of(7).note("so it is")
        assert said(board.console) == [wanted]


def test_the_live_display_is_for_terminals_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    with display(pipe()) as board:
        assert type(board) is Board
    with display(terminal()) as board:
        assert type(board) is LiveBoard
    monkeypatch.setenv("TERM", "dumb")
    with display(terminal()) as board:
        assert type(board) is Board
