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
from rich.style import Style
from rich.text import Text

import iterant
from iterant.draw.terminal import (
    crop_border,
    dots,
    merge_blocks,
    rank_cells,
    reduce_ranks,
    terminal,
)
from iterant.tasks.protocol import Arrow, Description, Glyph

Colour = tuple[int, ...] | None
ColourSystem = Literal["standard", "truecolor"]

cell_arrays = npst.arrays(
    np.uint8,
    st.tuples(st.integers(1, 7), st.integers(1, 9), st.just(3)),
    elements=st.integers(0, 3),
)


def console(width: int = 80, colour: ColourSystem | None = "truecolor") -> Console:
    return Console(
        file=io.StringIO(),
        width=width,
        force_terminal=colour is not None,
        color_system=colour,
    )


def styled(text: Text) -> list[list[tuple[str, Colour, Colour]]]:
    """Each line's characters with their colours: (character, ink, paper)."""
    plain = console()
    lines = []
    for line in text.split("\n", allow_blank=True):
        styles = [line.get_style_at_offset(plain, place) for place in range(len(line.plain))]
        lines.append(
            [
                (sign, _rgb(style, "color"), _rgb(style, "bgcolor"))
                for sign, style in zip(line.plain, styles, strict=True)
            ]
        )
    return lines


def _rgb(style: Style, part: str) -> Colour:
    colour = getattr(style, part)
    return None if colour is None else tuple(colour.get_truecolor())


@given(cell_arrays)
def test_half_blocks(cells: np.ndarray) -> None:
    lines = styled(terminal(Description("", "text", cells), console()))
    rows = [row for line in lines for row in ([c[1] for c in line], [c[2] for c in line])]
    rows = rows[: len(cells)]
    assert rows == [[tuple(map(int, cell)) for cell in row] for row in cells]
    if len(cells) % 2:
        assert all(paper is None for _, _, paper in lines[-1]), "nothing below the last row"


@given(cell_arrays, st.sampled_from([0, 1]))
def test_merge_blocks(cells: np.ndarray, border: int) -> None:
    doubled = np.repeat(np.repeat(cells, 2, axis=0), 2, axis=1)
    image = doubled[border : len(doubled) - border, border : doubled.shape[1] - border]
    if image.size:
        small = merge_blocks(image)
        assert small.shape[1] <= image.shape[1] // 2 + 1
        restored = np.repeat(np.repeat(small, 2, axis=0), 2, axis=1)
        cut = (len(restored) - len(image)) // 2
        assert np.array_equal(
            restored[cut : len(restored) - cut, cut : restored.shape[1] - cut], image
        )


def test_other_images_are_unchanged() -> None:
    cells = np.zeros((6, 6, 3), np.uint8)
    cells[2, 3] = 255
    assert merge_blocks(cells) is cells


def test_plain_text() -> None:
    cells = np.zeros((6, 30, 3), np.uint8)
    cells[2, 3] = 255
    description = Description("maze", "##\n##", cells, caption="two by two")
    assert terminal(description, console(colour=None)).plain == "maze\n##\n##\ntwo by two"
    assert terminal(description, console(colour="standard")).plain == "maze\n##\n##\ntwo by two"
    assert terminal(description, console(width=29)).plain == "maze\n##\n##\ntwo by two"
    assert "▀" * 30 in terminal(description, console(width=30)).plain


def test_wide_maze() -> None:
    cells = np.repeat(np.repeat(np.eye(20, dtype=np.uint8), 2, axis=0), 2, axis=1)
    description = Description("", "text", np.stack([cells * 255] * 3, axis=-1))
    assert len(terminal(description, console(width=40)).plain.splitlines()[0]) == 40
    assert len(terminal(description, console(width=30)).plain.splitlines()[0]) == 20
    assert terminal(description, console(width=19)).plain == "text"


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


def test_narrow_board() -> None:
    assert terminal(BOARD, console(width=7)).plain.splitlines()[1] == "2   ♞ "
    assert terminal(BOARD, console(width=4)).plain.splitlines()[1] == "2  ♞"
    assert terminal(BOARD, console(width=3)).plain == "board\ntext"


def test_white_pieces_on_light_cells() -> None:
    light = Description("", "", np.full((1, 2, 3), 235, np.uint8), (Glyph(0, 0, "♟", "#ffffff"),))
    dark = Description("", "", np.full((1, 2, 3), 235, np.uint8), (Glyph(0, 0, "♟", "#000000"),))
    assert styled(terminal(light, console()))[0][0][2] == (188, 188, 188)
    assert styled(terminal(dark, console()))[0][0][2] == (235, 235, 235)


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
def test_walls_are_dots(codes: NDArray[np.int64]) -> None:
    wanted = {(int(row), int(column)) for row, column in np.argwhere(codes == 1)}
    assert lit(dots(COLOURS[codes]).plain) == wanted


@given(npst.arrays(np.int64, st.tuples(st.integers(1, 13), st.integers(1, 9)),
                   elements=st.integers(0, 2)))  # fmt: skip
def test_path_has_precedence_over_walls(codes: NDArray[np.int64]) -> None:
    codes = np.pad(codes, ((0, 8), (0, 0)), constant_values=2)  # more than a few
    shown = lit(dots(COLOURS[codes]).plain)
    assert {(int(row), int(column)) for row, column in np.argwhere(codes == 2)} <= shown
    for row, column in np.argwhere(codes == 1):
        top, left = row // 4 * 4, column // 2 * 2
        alone = not (codes[top : top + 4, left : left + 2] == 2).any()
        assert ((int(row), int(column)) in shown) == alone


def test_end_fills_its_character() -> None:
    codes = np.full((8, 8), 2)
    codes[5, 2] = 3
    text = dots(COLOURS[codes])
    lines = text.split("\n")
    style = lines[1].get_style_at_offset(Console(), 1)
    assert lines[1].plain[1] == "⣿"
    assert style.color is not None
    red, green, _ = style.color.get_truecolor()
    assert red > green


def test_reduction_keeps_colours() -> None:
    codes = np.ones((90, 60), dtype=np.int64)
    codes[:, 7] = 2
    codes[41, 7] = 3
    ranks, factor = reduce_ranks(rank_cells(COLOURS[codes]), columns=20, rows=40)
    assert factor == pytest.approx(3)
    assert ranks.shape == (30, 20)
    assert set(np.unique(ranks).tolist()) == {0, 2, 3}, "walls are left out"
    assert (ranks[:, 2] >= 2).all()
    assert reduce_ranks(ranks, 20, 30)[1] == 1.0


def test_crop_border() -> None:
    cells = np.zeros((9, 11, 3), dtype=np.uint8)
    cells[3:6, 4:7] = 255
    assert crop_border(cells).shape == (5, 7, 3)
    assert np.array_equal(crop_border(crop_border(cells)), crop_border(cells))
    assert crop_border(np.zeros((1, 1, 3), dtype=np.uint8)).shape == (1, 1, 3)


def screen(columns: int) -> Console:
    return Console(file=io.StringIO(), width=columns, force_terminal=True, color_system="truecolor")


@pytest.mark.parametrize("columns", [80, 200])
@pytest.mark.parametrize(("lines", "signs"), [(20, "dots"), (36, "halves"), (56, "halves")])
def test_large_maze_fits_terminals(lines: int, signs: str, columns: int) -> None:
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
    cells = crop_border(merge_blocks(described.cells))
    way = rank_cells(cells) >= 2
    assert {(int(row), int(column)) for row, column in np.argwhere(way)} <= lit(shown)


def test_reduction_is_noted() -> None:
    task = iterant.task("mazes")
    described = task.describe(task.sample(1, size=101, seed=1))
    shown = terminal(described, screen(80), lines=20).plain
    assert "drawn 1.4 times smaller" in shown
    assert shown.count("\n") <= 20 + 1, "a title and a caption beside the picture"
    grey = Description("", "", np.full((300, 300, 3), 90, dtype=np.uint8))
    assert set(terminal(grey, screen(80), lines=20).plain) <= {"▀", "\n"}
