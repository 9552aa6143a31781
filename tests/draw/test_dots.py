"""Dots: every cell has its own, colours go before grey, and what is made smaller says so."""

from __future__ import annotations

import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from numpy.typing import NDArray
from rich.console import Console

import iterant
from iterant.draw.terminal import dots, narrow_framed, ranked, squeezed, terminal, thinned
from iterant.tasks.protocol import Description

WALL, FREE, WAY, END = (0, 0, 0), (255, 255, 255), (0, 114, 178), (255, 0, 0)
COLOURS = np.array([FREE, WALL, WAY, END], dtype=np.uint8)
PLACES = ((0, 0), (1, 0), (2, 0), (0, 1), (1, 1), (2, 1), (3, 0), (3, 1))
"""Row and column of a character's dots, from the lowest bit of its number: Unicode's order."""


def lit(text: str) -> set[tuple[int, int]]:
    """Rows and columns of the dots of lines of braille."""
    return {
        (4 * line + row, 2 * column + side)
        for line, signs in enumerate(text.split("\n"))
        for column, sign in enumerate(signs)
        for bit, (row, side) in enumerate(PLACES)
        if ord(sign) - 0x2800 >> bit & 1
    }


@given(npst.arrays(np.int64, st.tuples(st.integers(1, 13), st.integers(1, 9)),
                   elements=st.integers(0, 1)))  # fmt: skip
def test_walls_alone_are_one_dot_a_cell(codes: NDArray[np.int64]) -> None:
    wanted = {(int(row), int(column)) for row, column in np.argwhere(codes == 1)}
    assert lit(dots(COLOURS[codes]).plain) == wanted


@given(npst.arrays(np.int64, st.tuples(st.integers(1, 13), st.integers(1, 9)),
                   elements=st.integers(0, 2)))  # fmt: skip
def test_a_way_goes_before_the_walls_beside_it(codes: NDArray[np.int64]) -> None:
    codes = np.pad(codes, ((0, 8), (0, 0)), constant_values=2)  # more than a few
    shown = lit(dots(COLOURS[codes]).plain)
    assert {(int(row), int(column)) for row, column in np.argwhere(codes == 2)} <= shown
    for row, column in np.argwhere(codes == 1):
        top, left = row // 4 * 4, column // 2 * 2
        alone = not (codes[top : top + 4, left : left + 2] == 2).any()
        assert ((int(row), int(column)) in shown) == alone


def test_an_end_is_a_whole_character_of_its_colour() -> None:
    codes = np.full((8, 8), 2)
    codes[5, 2] = 3
    text = dots(COLOURS[codes])
    lines = text.split("\n")
    style = lines[1].get_style_at_offset(Console(), 1)
    assert lines[1].plain[1] == "⣿"
    assert style.color is not None
    red, green, _ = style.color.get_truecolor()
    assert red > green


def test_smaller_keeps_every_colour_that_is_there() -> None:
    codes = np.ones((90, 60), dtype=np.int64)
    codes[:, 7] = 2
    codes[41, 7] = 3
    ranks, factor = thinned(ranked(COLOURS[codes]), columns=20, rows=40)
    assert factor == pytest.approx(3)
    assert ranks.shape == (30, 20)
    assert set(np.unique(ranks).tolist()) == {0, 2, 3}, "walls are left out"
    assert (ranks[:, 2] >= 2).all()
    assert thinned(ranks, 20, 30)[1] == 1.0


def test_a_wide_frame_is_made_narrow() -> None:
    cells = np.zeros((9, 11, 3), dtype=np.uint8)
    cells[3:6, 4:7] = 255
    assert narrow_framed(cells).shape == (5, 7, 3)
    assert np.array_equal(narrow_framed(narrow_framed(cells)), narrow_framed(cells))
    assert narrow_framed(np.zeros((1, 1, 3), dtype=np.uint8)).shape == (1, 1, 3)


def screen(columns: int) -> Console:
    return Console(file=io.StringIO(), width=columns, force_terminal=True, color_system="truecolor")


@pytest.mark.parametrize("columns", [80, 200])
@pytest.mark.parametrize(("lines", "signs"), [(20, "dots"), (36, "halves"), (56, "halves")])
def test_a_maze_of_59_can_be_read_on_terminals_of_24_40_and_60_lines(
    lines: int, signs: str, columns: int
) -> None:
    task = iterant.task("mazes")
    batch = task.sample(1, size=59, seed=3)
    described = task.describe(batch)
    shown = terminal(Description("", "", described.cells), screen(columns), lines=lines).plain
    assert shown.count("\n") < lines
    assert max(map(len, shown.splitlines())) <= columns
    if signs == "halves":
        assert set(shown) <= {"▀", "\n"}
        assert shown.count("▀") >= 61 * 30
        return
    # Every square of the way has its dot, in full resolution.
    cells = narrow_framed(squeezed(described.cells))
    way = ranked(cells) >= 2
    assert {(int(row), int(column)) for row, column in np.argwhere(way)} <= lit(shown)


def test_what_has_no_room_even_as_dots_is_said_to_be_smaller() -> None:
    task = iterant.task("mazes")
    described = task.describe(task.sample(1, size=101, seed=1))
    shown = terminal(described, screen(80), lines=20).plain
    assert "drawn 1.4 times smaller" in shown
    assert shown.count("\n") <= 20 + 1, "a title and a caption beside the picture"
    grey = Description("", "", np.full((300, 300, 3), 90, dtype=np.uint8))
    assert set(terminal(grey, screen(80), lines=20).plain) <= {"▀", "\n"}
