"""Terminal views: the same cells in characters, or plain text where colours cannot be."""

from __future__ import annotations

import io
from typing import Literal

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from rich.console import Console
from rich.style import Style
from rich.text import Text

from iterant.draw.terminal import squeezed, terminal
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
def test_half_blocks_hold_every_cell(cells: np.ndarray) -> None:
    lines = styled(terminal(Description("", "text", cells), console()))
    rows = [row for line in lines for row in ([c[1] for c in line], [c[2] for c in line])]
    rows = rows[: len(cells)]
    assert rows == [[tuple(map(int, cell)) for cell in row] for row in cells]
    if len(cells) % 2:
        assert all(paper is None for _, _, paper in lines[-1]), "nothing below the last row"


@given(cell_arrays, st.sampled_from([0, 1]))
def test_doubled_squares_are_squeezed(cells: np.ndarray, border: int) -> None:
    doubled = np.repeat(np.repeat(cells, 2, axis=0), 2, axis=1)
    image = doubled[border : len(doubled) - border, border : doubled.shape[1] - border]
    if image.size:
        small = squeezed(image)
        assert small.shape[1] <= image.shape[1] // 2 + 1
        restored = np.repeat(np.repeat(small, 2, axis=0), 2, axis=1)
        cut = (len(restored) - len(image)) // 2
        assert np.array_equal(
            restored[cut : len(restored) - cut, cut : restored.shape[1] - cut], image
        )


def test_other_images_are_not_squeezed() -> None:
    cells = np.zeros((6, 6, 3), np.uint8)
    cells[2, 3] = 255
    assert squeezed(cells) is cells


def test_plain_text_where_there_are_no_colours_or_no_room() -> None:
    cells = np.zeros((6, 30, 3), np.uint8)
    cells[2, 3] = 255
    description = Description("maze", "##\n##", cells, caption="two by two")
    assert terminal(description, console(colour=None)).plain == "maze\n##\n##\ntwo by two"
    assert terminal(description, console(colour="standard")).plain == "maze\n##\n##\ntwo by two"
    assert terminal(description, console(width=29)).plain == "maze\n##\n##\ntwo by two"
    assert "▀" * 30 in terminal(description, console(width=30)).plain


def test_a_wide_maze_is_shown_small_before_it_is_shown_as_text() -> None:
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


def test_a_board_has_its_pieces_labels_and_move() -> None:
    text = terminal(BOARD, console())
    assert text.plain.splitlines() == ["board", "2     ♞ ", "1  ♟    ", "   a  b "]
    lines = styled(text)
    assert lines[1][6] == ("♞", (0, 0, 0), (50, 50, 150))
    assert lines[2][3] == ("♟", (255, 255, 255), (100, 100, 100))
    assert lines[2][6] == (" ", None, (50, 50, 150))


def test_signs_move_together_before_they_are_given_up() -> None:
    assert terminal(BOARD, console(width=7)).plain.splitlines()[1] == "2   ♞ "
    assert terminal(BOARD, console(width=4)).plain.splitlines()[1] == "2  ♞"
    assert terminal(BOARD, console(width=3)).plain == "board\ntext"


def test_white_pieces_are_seen_on_light_squares() -> None:
    light = Description("", "", np.full((1, 2, 3), 235, np.uint8), (Glyph(0, 0, "♟", "#ffffff"),))
    dark = Description("", "", np.full((1, 2, 3), 235, np.uint8), (Glyph(0, 0, "♟", "#000000"),))
    assert styled(terminal(light, console()))[0][0][2] == (188, 188, 188)
    assert styled(terminal(dark, console()))[0][0][2] == (235, 235, 235)
