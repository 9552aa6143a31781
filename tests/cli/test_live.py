"""The display of training on terminals and pipes."""

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

from iterant.cli.live import (
    PAUSE,
    LiveDisplay,
    PlainDisplay,
    bar,
    display,
    monitored,
    sparkline,
)
from iterant.training.logging import Progress

REPORT = Progress(
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
    """Stands still until it is moved."""

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
def test_sparklines_fit_their_width(values: list[float], width: int) -> None:
    for log in (False, True):
        curve = sparkline(values, width, log=log)
        assert len(curve) <= width
        assert set(curve) <= set("▁▂▃▄▅▆▇█")


def test_sparklines_follow_the_values() -> None:
    assert sparkline(range(8), 8) == "▁▂▃▄▅▆▇█"
    assert sparkline([1, 0.1, 0.01, 0.001], 8, log=True) == "█▆▃▁"
    assert sparkline([3, 3], 8) == "▁▁"
    assert sparkline([3], 8) == ""


@given(st.floats(-1, 2), st.integers(0, 60))
def test_bars_have_their_width(done: float, width: int) -> None:
    assert len(bar(done, width)) == len(bar(done, width, ascii_only=True)) == width
    assert set(bar(done, width, ascii_only=True)) <= {"#", "-"}


def test_monitored_figures_are_grouped_by_size() -> None:
    assert monitored(REPORT) == [
        "validation: 50.0 % at 2m",
        "48: 25.0 % at 2m, 100.0 % at 4m, change 3e-08",
    ]
    assert monitored(replace(REPORT, monitoring=())) == []


def lines(width: int, *, many: bool = False, clock: Clock | None = None, **options: Any) -> str:
    shown = LiveDisplay(console := terminal(width, **options), clock or Clock(), many=many)
    for seed in range(3 if many else 1):
        run = shown.of(seed)
        run.begin("prefix sums: a network of some kind", Path("runs/s0"), REPORT)
        for loss in (0.5, 0.1, 0.01):
            run.show(replace(REPORT, loss=loss))
        for fresh in (0.1, 0.9996):
            figures = {**REPORT.figures, "validation": fresh}
            run.show(replace(REPORT, figures=figures, fresh=("validation",)))
    assert isinstance(console.file, io.StringIO)
    console.file.truncate(0)
    console.file.seek(0)
    console.print(shown)
    return console.file.getvalue()


def test_live_display() -> None:
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


def test_no_color(monkeypatch: pytest.MonkeyPatch) -> None:
    coloured = lines(100, color_system="truecolor")
    assert "\x1b[32m" in coloured or "\x1b[36m" in coloured
    monkeypatch.setenv("NO_COLOR", "1")
    plain = lines(100, color_system="truecolor")
    assert "\x1b[32m" not in plain
    assert "\x1b[36m" not in plain


def test_time_left_counts_down_between_reports() -> None:
    clock = Clock()
    shown = LiveDisplay(terminal(color_system=None), clock)
    run = shown.of(0)
    run.begin("title", Path("r"), REPORT)
    clock.now += 12
    shown.console.print(shown)
    assert any("18 s left" in line for line in said(shown.console))
    run.end("finished")
    shown.console.print(shown)
    assert "left" not in said(shown.console)[-3]


def test_several_seeds_have_a_line_each() -> None:
    shown = LiveDisplay(terminal(200, color_system=None), Clock(), many=True)
    for seed in (4, 5):
        shown.of(seed).begin("title", Path("r"), REPORT)
    shown.runs[5].end("failed: the loss became nan")
    shown.console.print(shown)
    first, second = said(shown.console)
    assert first.startswith("seed 4  epoch 1/4")
    assert second.startswith("seed 5  failed")
    assert "monitoring validation: 50.0 % at 2m; 48: " in first


def test_plain_lines_have_pauses_and_an_end() -> None:
    clock = Clock()
    shown = PlainDisplay(pipe(), clock)
    run = shown.of(0)
    run.begin("title", Path("runs/s0"), REPORT)
    for _ in range(100):
        clock.now += PAUSE / 10
        run.show(REPORT)
    run.end("finished")
    rows = said(shown.console)
    assert rows[0] == "title, kept in runs/s0"
    assert len(rows) == 1 + 10 + 1
    assert rows[1].startswith("epoch 1 of 4, update 40 of 160, loss 0.0213, accuracy 99.9 % at m")
    assert "monitoring validation: 50.0 % at 2m; 48: 25.0 % at 2m" in rows[1]
    assert rows[1].endswith("4.0 steps/s, 30 s left")
    assert rows[2] == "epoch 1 of 4, update 40 of 160, loss 0.0213, 4.0 steps/s, 30 s left"
    assert "accuracy 99.9 % at m" in rows[-1]
    assert rows[-1].endswith("4.0 steps/s")


def test_notes_name_their_seed() -> None:
    for many, wanted in ((False, "so it is"), (True, "seed 7: so it is")):
        shown = PlainDisplay(pipe(), Clock(), many=many)
        shown.of(7).note("so it is")
        assert said(shown.console) == [wanted]


def test_the_live_display_is_for_terminals_only(monkeypatch: pytest.MonkeyPatch) -> None:
    with display(pipe()) as shown:
        assert type(shown) is PlainDisplay
    with display(terminal()) as shown:
        assert type(shown) is LiveDisplay
    monkeypatch.setenv("TERM", "dumb")
    with display(terminal()) as shown:
        assert type(shown) is PlainDisplay
