"""Counts, percentages, durations, sizes and tables as text."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iterant.errors import UsageError
from iterant.formatting import (
    byte_size,
    counted,
    duration,
    markdown,
    percent,
    quantity,
    seconds,
    size_text,
)


@given(st.integers(0, 5000), st.integers(1, 5000))
def test_percentages_are_rounded_down(solved: int, count: int) -> None:
    solved = min(solved, count)
    number = float(percent(solved / count).removesuffix(" %"))
    assert (number == 100.0) == (solved == count)
    assert 0 <= 100 * solved / count - number < 0.1 + 1e-9


@pytest.mark.parametrize(
    ("length", "text"),
    [(0, "0 s"), (-3, "0 s"), (0.4213, "0.42 s"), (9.96, "10 s"), (59.4, "59 s"), (59.6, "1 min"),
     (75, "1 min 15 s"), (3600, "1 h"), (7199, "2 h"), (9000, "2 h 30 min"),
     (7380, "2 h 3 min"), (86_399, "1 d"), (2e5, "2 d 8 h"),
     (math.inf, "?"), (math.nan, "?"), (1e12, "?")],
)  # fmt: skip
def test_durations_have_two_units(length: float, text: str) -> None:
    assert duration(length) == text


def test_durations_are_read() -> None:
    texts = {"9m": 540, "90s": 90, "1h30m": 5400, "2d": 172_800, "45": 45, "1.5h": 5400, " 9m": 540}
    assert {text: seconds(text) for text in texts} == texts
    assert seconds(1.5) == 1.5
    for bad in ("", "soon", "9x", "-9m", "0", 0, -1.0, math.nan, "m9"):
        with pytest.raises(UsageError):
            seconds(bad)


def test_numbers_and_sizes() -> None:
    assert [counted(n, "bit") for n in (1, 1000)] == ["1 bit", "1,000 bits"]
    assert counted(2, "loss", "losses") == "2 losses"
    assert [quantity(n) for n in (7, 3_932_160, 1.5e9)] == ["7", "3.93 M", "1.5 G"]
    assert [byte_size(n) for n in (12, 1000, 3 << 20, 140 << 30, 5 << 40)] == [
        "12 B", "0.977 KiB", "3 MiB", "140 GiB", "5,120 GiB"
    ]  # fmt: skip
    assert [size_text(size) for size in (59, (0, 600))] == ["59", "0:600"]


def test_bars_in_cells_of_a_table_are_escaped() -> None:
    assert markdown([{"a": "1", "b": "x|y", "empty": ""}]) == (
        "| a | b |\n| --- | --- |\n| 1 | x\\|y |"
    )
    assert markdown([]) == "None."
