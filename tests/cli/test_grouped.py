"""Tables under headings fit, and numbers stay whole."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from iterant.cli.reproduce_report import show_grouped

HEAD = ("", "ours", "nothing", "the paper")
ROWS = [
    (("DT α = 0, most confident", "99.52 ± 0.43 % at 48", "", "94.61 ± 1.19 % at 42"), "size 48"),
    (("DT α = 0", "1.30 ± 1.30 % at 407", "", "–"), "size 512"),
    (("DT α = 1", "99.92 ± 0.08 % at 30", "", "97.73 ± 1.80 % at 27"), "size 48"),
]


def shown(columns: int) -> list[str]:
    file = io.StringIO()
    show_grouped(HEAD, ROWS, Console(file=file, width=columns, highlight=False))
    return [line.rstrip() for line in file.getvalue().splitlines()]


def test_rows_of_one_heading_stand_together_without_empty_columns() -> None:
    assert shown(100) == [
        "                             ours                  the paper",
        " size 48:",
        "   DT α = 0, most confident  99.52 ± 0.43 % at 48  94.61 ± 1.19 % at 42",
        "   DT α = 1                  99.92 ± 0.08 % at 30  97.73 ± 1.80 % at 27",
        " size 512:",
        "   DT α = 0                  1.30 ± 1.30 % at 407  –",
    ]


@pytest.mark.parametrize("columns", [24, 40, 60])
def test_what_does_not_fit_is_folded_behind_the_number(columns: int) -> None:
    lines = shown(columns)
    assert max(map(len, lines)) <= columns
    if columns > 50:
        assert lines[2:4] == [
            "   DT α = 0,       99.52 ± 0.43 %  94.61 ± 1.19 %",
            "   most confident  at 48           at 42",
        ]
