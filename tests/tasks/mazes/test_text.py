"""Mazes drawn in text: squares, lines, block characters, 0 and 1, and gaps as ends."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import iterant
from iterant.errors import TaskError
from iterant.tasks.mazes.grid import END, FREE, START, WALL, from_image
from iterant.tasks.mazes.text import from_text, read_text

Cells = NDArray[np.uint8]
HALVES = {(0, 0): " ", (1, 0): "▀", (0, 1): "▄", (1, 1): "█"}


def by_lines(cells: Cells, room: int, signs: str = "+-| ") -> str:
    """Corners, walls and rooms: rooms and walls between corners are ``room`` characters wide."""
    corner, across, down, free = tuple(signs)
    lines = []
    for row, codes in enumerate(cells):
        line = ""
        for column, code in enumerate(codes):
            wall = (corner if not column % 2 else across) if not row % 2 else down
            sign = {WALL: wall, START: "S", END: "E"}.get(int(code), free)
            wide = 1 if not column % 2 else room
            line += sign.center(wide) if code in (START, END) else sign * wide
        lines.append(line)
    return "\n".join(lines)


def by_halves(cells: Cells) -> str:
    """Two rows of cells per line, as programs for terminals print them."""
    walls = (cells == WALL).astype(int)
    pairs = np.pad(walls, ((0, len(walls) % 2), (0, 0))).reshape(-1, 2, cells.shape[1])
    return "\n".join("".join(HALVES[top, low] for top, low in pair.T.tolist()) for pair in pairs)


def by_characters(signs: str, between: str = "", wide: int = 1) -> Callable[[Cells], str]:
    def draw(cells: Cells) -> str:
        return "\n".join(between.join(wide * signs[code] for code in row) for row in cells)

    return draw


WAYS: dict[str, Callable[[Cells], str]] = {
    "lines, rooms of 1": lambda cells: by_lines(cells, 1),
    "lines, rooms of 2": lambda cells: by_lines(cells, 2),
    "lines, rooms of 3, dots": lambda cells: by_lines(cells, 3, "+-|."),
    "box drawing": lambda cells: by_lines(cells, 3, "┼─│ "),
    "indented lines": lambda cells: "  " + by_lines(cells, 3).replace("\n", "\n  "),
    "blocks": by_characters("█ SE"),
    "shaded blocks": by_characters("▓░SE"),
    "wide blocks": by_characters("█ SE", wide=2),
    "bits": by_characters("10SE"),
    "bits with spaces": by_characters("10SE", " "),
    "a printed array": lambda cells: (
        "[[" + by_characters("10SE", ", ")(cells).replace("\n", "],\n [") + "]]"
    ),
    "squares": by_characters("#.SE"),
    "wide squares": by_characters("# SE", wide=2),
}
LETTERLESS = {
    "half blocks": by_halves,
    "0 is wall": by_characters("01"),
    **WAYS,
}


def maze(size: int, seed: int) -> Cells:
    cells: Cells = from_image(iterant.task("mazes").sample(1, size=size, seed=seed).inputs)[0]
    return cells


@pytest.mark.parametrize("way", WAYS)
@given(size=st.sampled_from([3, 5, 9, 13]), seed=st.integers(0, 200))
@settings(max_examples=15, deadline=None)
def test_a_drawing_with_letters(way: str, size: int, seed: int) -> None:
    cells = maze(size, seed)
    assert np.array_equal(from_text(WAYS[way](np.pad(cells, 1))), cells)


def with_gaps(cells: Cells, first: int, second: int) -> Cells:
    """With a wall around that has two gaps, the start and the end, beside rooms of this number."""
    walled = np.pad(np.minimum(cells, FREE), 1)
    rooms = range(1, walled.shape[0], 2)
    ends = [side for room in rooms for side in ((0, room), (room, 0), (len(walled) - 1, room))]
    start, end = sorted([ends[first % len(ends)], ends[second % len(ends)]])
    walled[start], walled[end] = START, END
    return walled


@pytest.mark.parametrize("way", LETTERLESS)
@given(
    size=st.sampled_from([5, 9, 13]),
    seed=st.integers(0, 200),
    first=st.integers(0, 7),
    step=st.integers(1, 7),
)
@settings(max_examples=15, deadline=None)
def test_a_drawing_with_gaps(way: str, size: int, seed: int, first: int, step: int) -> None:
    cells = with_gaps(maze(size, seed), first, first + step)
    found, notes = read_text(LETTERLESS[way](np.minimum(cells, FREE)))
    assert np.array_equal(found, cells)
    assert "the gaps in the wall around" in notes[0]


def test_the_note_says_where_the_gaps_are() -> None:
    _, notes = read_text("#.###\n#...#\n#.#..\n#...#\n#####")
    place = "start at row 1, column 2, end at row 3, column 5"
    assert notes == (f"5 by 5 squares, {place}, the gaps in the wall around",)


def test_a_letter_may_be_one_of_two_characters() -> None:
    assert from_text("##########\n##S   .E##\n##########").tolist() == [[START, FREE, END]]
    assert from_text("S.##\n..##\n...E").shape == (3, 4), "no walls on both sides"


@pytest.mark.parametrize(
    "text",
    ["##########\n##S   .E##\n##########", "SS..EE", "##  ##\n##  ##\n##  ##", "██  ██\n" * 4],
)
def test_a_note_says_that_squares_are_two_characters_wide(text: str) -> None:
    """Such a drawing may also be meant as a maze with wide paths."""
    assert "two characters wide" in read_text(text)[1][0]


@pytest.mark.parametrize(
    "text",
    ["S E", "s.e", "\nS.G\n", "#####\r\n#S.E#\r\n#####\r\n", "S.E\n  \n", "S.E\n\t\n \n"],
)
def test_spaces_small_letters_and_line_ends(text: str) -> None:
    assert from_text(text).tolist() == [[START, FREE, END]]
    assert from_text("S#E\n   ").shape == (2, 3), "a row of free cells"


def test_the_printed_remedy_works() -> None:
    with pytest.raises(TaskError) as caught:
        from_text("x")
    command = str(caught.value).partition("try ")[2].partition(" |")[0]
    done = subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, check=True)
    assert from_text(done.stdout).shape == (2, 3)


def test_corners_need_not_be_drawn() -> None:
    drawing = "\n".join(
        ["-------------", "| S |       |", "|   |   -----", "|         E |", "-------------"]
    )
    wanted = [
        [START, WALL, FREE, FREE, FREE],
        [FREE, WALL, FREE, WALL, WALL],
        [FREE, FREE, FREE, FREE, END],
    ]
    assert from_text(drawing).tolist() == wanted


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1 has 0"),
        ("S..\n#E", "line 1 has 3 characters, line 2 has 2"),
        ("S.\n\n.E", "line 2 has 0"),
        (".E", "one start .S., got 0"),
        ("SE.\n..G", "one end .E or G., got 2"),
        ("S.\n?E", "'\\?' in line 2"),
        ("S.#\\n#.E", r"got '\\' in line 1"),
        ("#####\n#...#\n#####", "got neither letter, and no gaps"),
        ("#.###\n#...#\n#####", "and 1 gap"),
        ("#.###\n....#\n###.#", "and 3 gaps"),
        ("+---+\n|   \n+---+", "line 1 has 5 characters, line 2 has 4; write free squares as dots"),
        (
            "+---+---+\n| S | E |\n+- -+   +\n|       |\n+---+---+",
            "in line 3 does not go",
        ),
        ("S..+", "a wall on each side"),
        ("101\n10\n111", "line 1 has 3 characters, line 2 has 2$"),
        ("S02\n01E", "'2' in line 1"),
        ("█████\n█ S#█\n█████", "'#' in line 2"),
    ],
)
def test_wrong_drawings(text: str, message: str) -> None:
    with pytest.raises(TaskError, match=message) as caught:
        from_text(text)
    assert "\n" not in str(caught.value)
