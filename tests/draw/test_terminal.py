"""Terminal output: half blocks, boards, braille dots, plain text."""

from __future__ import annotations

import io
from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from numpy.typing import NDArray
from rich.console import Console
from rich.text import Text

import iterant
from iterant.draw.terminal import terminal
from iterant.tasks.protocol import Arrow, Description, Glyph

Colour = tuple[int, ...] | None

cell_arrays = npst.arrays(
    np.uint8,
    st.tuples(st.integers(1, 7), st.integers(1, 9), st.just(3)),
    elements=st.integers(0, 3),
)


def console(
    width: int = 80, colour: Literal["standard", "truecolor"] | None = "truecolor"
) -> Console:
    return Console(
        file=io.StringIO(), width=width, force_terminal=colour is not None, color_system=colour
    )


def styled(text: Text) -> list[list[tuple[str, Colour, Colour]]]:
    """Each line's characters with their colours: (character, ink, paper)."""
    lines = []
    for line in text.split("\n", allow_blank=True):
        styles = [line.get_style_at_offset(console(), place) for place in range(len(line.plain))]
        colours = [
            [colour and tuple(colour.get_truecolor()) for colour in (style.color, style.bgcolor)]
            for style in styles
        ]
        lines.append([(sign, *pair) for sign, pair in zip(line.plain, colours, strict=True)])
    return lines  # type: ignore[return-value]


@given(cell_arrays)
def test_half_blocks(cells: np.ndarray) -> None:
    lines = styled(terminal(Description("", "text", cells), console()))
    rows = [row for line in lines for row in ([c[1] for c in line], [c[2] for c in line])]
    assert rows[: len(cells)] == [[tuple(map(int, cell)) for cell in row] for row in cells]
    if len(cells) % 2:
        assert all(paper is None for _, _, paper in lines[-1]), "nothing below the last row"


def test_plain_text() -> None:
    cells = np.zeros((6, 30, 3), np.uint8)
    cells[2, 3] = 255
    description = Description("maze", "##\n##", cells, caption="two by two")
    assert terminal(description, console(colour=None)).plain == "maze\n##\n##\ntwo by two"
    assert "▀" * 30 in terminal(description, console(width=30)).plain


@pytest.mark.parametrize("lines", [None, 10])
def test_blocks_are_merged_where_cells_do_not_fit(lines: int | None) -> None:
    cells = np.eye(20, dtype=np.uint8).repeat(2, axis=0).repeat(2, axis=1)
    description = Description("", "text", np.stack([cells * 255] * 3, axis=-1))
    shown = [terminal(description, console(width), lines=lines).plain for width in (40, 30, 19)]
    widths = [len(text.splitlines()[0]) for text in shown]
    assert widths == ([40, 20, 10] if lines is None else [20, 20, 10])
    assert set("".join(shown[:2])) == {"▀", "\n"}


BOARD = Description(
    "board",
    "text",
    np.full((2, 2, 3), 100, np.uint8),
    glyphs=(Glyph(0, 1, "♞", "#000000"), Glyph(1, 0, "♟", "#ffffff")),
    arrows=(Arrow((0, 1), (1, 1), "#0000c8"),),
    row_labels=("2", "1"),
    column_labels=("a", "b"),
)


def test_board() -> None:
    text = terminal(BOARD, console())
    assert text.plain.splitlines() == ["board", "2     ♞ ", "1  ♟    ", "   a  b "]
    lines = styled(text)
    assert lines[1][6] == ("♞", (0, 0, 0), (50, 50, 150))
    assert lines[2][3] == ("♟", (255, 255, 255), (100, 100, 100))
    assert lines[2][6] == (" ", None, (50, 50, 150))
    assert terminal(BOARD, console(width=7)).plain.splitlines()[1] == "2   ♞ "
    assert terminal(BOARD, console(width=4)).plain.splitlines()[1] == "2  ♞"


WALL, FREE, WAY, END = (0, 0, 0), (255, 255, 255), (0, 114, 178), (255, 0, 0)
COLOURS = np.array([FREE, WALL, WAY, END], dtype=np.uint8)
PLACES = ((0, 0), (1, 0), (2, 0), (0, 1), (1, 1), (2, 1), (3, 0), (3, 1))
"""Row and column of a character's dots, from the lowest bit of its number: Unicode's order."""


def dots(codes: NDArray[np.int64], width: int = 99, lines: int = 9) -> Text:
    """Too many cells for half blocks: padded with free columns and a wall at the end."""
    codes = np.pad(codes, ((0, 0), (0, 100 - codes.shape[1])))
    codes[0, 99] = 1
    return terminal(Description("", "", COLOURS[codes]), console(width), lines=lines)


def lit(text: str) -> set[tuple[int, int]]:
    """Rows and columns of the dots of lines of braille."""
    return {
        (4 * line + row, 2 * column + side)
        for line, signs in enumerate(text.split("\n"))
        for column, sign in enumerate(signs)
        for bit, (row, side) in enumerate(PLACES)
        if ord(sign) - 0x2800 >> bit & 1
    }


def places(mask: NDArray[np.bool_]) -> set[tuple[int, int]]:
    return {(int(row), int(column)) for row, column in np.argwhere(mask)}


codes_of = npst.arrays(np.int64, (13, 9), elements=st.integers(0, 2))


@given(codes_of)
def test_dots(codes: NDArray[np.int64]) -> None:
    codes = np.pad(codes, ((1, 8), (1, 0)))  # the border is free
    codes[14:-1, 1:] = 2  # more than a few
    shown = lit(dots(codes).plain)
    assert places(codes == 2) <= shown
    for row, column in np.argwhere(codes == 1):
        top, left = row // 4 * 4, column // 2 * 2
        alone = not (codes[top : top + 4, left : left + 2] == 2).any()
        assert ((int(row), int(column)) in shown) == alone, "a path is drawn before walls"
    assert {place for place in shown if codes[place[0], min(place[1], 9)] == 0} <= {(0, 99)}


def test_reduction_keeps_colours() -> None:
    codes = np.ones((90, 60), dtype=np.int64)
    codes[:, 7] = 2
    codes[41, 7], codes[0, 0] = 3, 0
    text = terminal(Description("", "", COLOURS[codes]), console(10), lines=9)
    *picture, note = text.plain.split("\n")
    assert note == "drawn 3 t…", "shortened to the width"
    assert len(picture) == 8
    assert {column for _, column in lit("\n".join(picture))} == {2, 3}, "walls are left out"
    assert any("⣿" in line for line in picture), "the end is still seen"
    walls = terminal(Description("", "", COLOURS[codes % 2]), console(10), lines=9).plain
    assert len(lit("\n".join(walls.split("\n")[:-1]))) > 100, "unless nothing has a colour"


@pytest.mark.parametrize("size", [9, 59, 101])
@pytest.mark.parametrize(("width", "lines"), [(80, 20), (40, 12), (10, 6)])
def test_everything_fits(size: int, width: int, lines: int) -> None:
    grey = np.full((3 * size, 3 * size, 3), 90, dtype=np.uint8)
    described = [
        task.describe(task.sample(1, size=size, seed=1))
        for task in (iterant.task("mazes"), iterant.task("prefix-sums"))
    ]
    for description in (*described, Description("title", "", grey, caption="caption")):
        rows = terminal(description, console(width), lines=lines).plain.splitlines()[1:-1]
        assert 0 < len(rows) <= lines
        assert max(map(len, rows)) <= width
