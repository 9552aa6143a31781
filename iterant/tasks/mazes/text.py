"""Read mazes in text, in the four ways that people draw them.

    >>> from_text("S.#\\n#.#\\n#.E")      # codes: WALL, FREE, START, END
    array([[2, 1, 0], [0, 1, 0], [0, 1, 3]], dtype=uint8)

* ``#`` and spaces or dots, one character per cell, or two;
* walls that are lines, ``+ - |`` or box-drawing characters, on a regular grid of corners;
* block characters, also half blocks and quadrants, and cells drawn two characters wide;
* 0 and 1, alone or with spaces, commas and brackets between them.

``S`` is the start and ``E`` or ``G`` the end. Without them the two gaps in the wall around the maze
are, in reading order.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from functools import partial

import numpy as np
from numpy.typing import NDArray

from iterant.errors import TaskError
from iterant.tasks.inputs import Material
from iterant.tasks.mazes.grid import (
    END,
    FREE,
    START,
    WALL,
    Cells,
    Mask,
    neighbours,
    where_ends_are,
)

# A path is drawn with stars, so a star is free.
_LETTERS = {"S": START, "s": START, "G": END, "g": END, "E": END, "e": END}
_CODES = {" ": FREE, ".": FREE, "*": FREE, **_LETTERS}
_SQUARES = {**_CODES, "#": WALL}
_BITS = {"0": FREE, "1": WALL, **_LETTERS}
_BETWEEN_BITS = re.compile(r"[\s,;\[\]]+")
_LINES = {**_CODES, "-": WALL, "|": WALL, "+": WALL}
# Box-drawing characters: horizontal and vertical lines; all others but the diagonals are corners.
_BOX = {code: "+" for code in range(0x2500, 0x2580) if not 0x2571 <= code <= 0x2573}
_BOX |= {ord(sign): "-" for sign in "─━┄┅┈┉╌╍═╼╾"} | {ord(sign): "|" for sign in "│┃┆┇┊┋╎╏║╽╿"}
# Upper left, upper right, lower left and lower right quarter of a character: 1 is filled.
_QUARTERS = {
    "█": "1111", "▓": "1111", "▒": "1111", "░": "0000", "▀": "1100", "▄": "0011", "▌": "1010",
    "▐": "0101", "▖": "0010", "▗": "0001", "▘": "1000", "▙": "1011", "▚": "1001", "▛": "1110",
    "▜": "1101", "▝": "0100", "▞": "0110", "▟": "0111",
}  # fmt: skip
_EXAMPLE = r"try printf 'S.#\n#.E\n' | iterant solve mazes -"
_ONE_LETTER = re.compile("([SGE])[ .]|[ .]([SGE])", re.IGNORECASE)
_WIDE = "each square is two characters wide"
"""A note, because the same drawing may be a maze of squares that are one character wide."""
_DOTS = "; write free squares as dots to see them"


def split_text(material: Material) -> Iterator[Material]:
    """One part per maze; empty lines separate them."""
    line = 1
    for block in material.text.split("\n\n"):
        if (maze := block.lstrip("\n")).strip():
            yield material.part(maze, f"line {line + len(block) - len(maze)}")
        line += block.count("\n") + 2


def from_text(text: str) -> Cells:
    """(h, w) codes of one maze, without the wall around it; lines have one width."""
    return read_text(text)[0]


def read_text(text: str) -> tuple[Cells, tuple[str, ...]]:
    """(h, w) codes as `from_text`, and notes on what was recognised."""
    lines = text.replace("\r\n", "\n").strip("\n").translate(_BOX).split("\n")
    while lines[-1].isspace() and len(lines[-1]) != len(lines[0]):  # not a row of free cells
        lines.pop()
    signs = set().union(*lines)
    if signs & set("01"):
        readings = _bits(lines)
    elif signs & set("+-|"):
        readings = [(_line_drawing(lines), "")]
    elif signs & set(_QUARTERS):
        readings = [_block_drawing(lines)]
    else:
        narrow = _narrow(lines)
        readings = [(_codes(narrow, _SQUARES), "" if narrow is lines else _WIDE)]
    cells, note = readings[0]
    counts = [int((cells == code).sum()) for code in (START, END)]
    if counts != [0, 0]:
        for count, name in zip(counts, ("start (S)", "end (E or G)"), strict=True):
            if count != 1:
                raise TaskError(f"a maze has one {name}, got {count}; {_EXAMPLE}")
        inside = cells[1:-1, 1:-1]
        around_is_wall = (inside != WALL).sum() == (cells != WALL).sum()
        return (inside if around_is_wall else cells), (note,) if note else ()
    for cells, note in readings:
        if len(gaps := _border_gaps(cells)) == 2:
            cells[gaps[0]], cells[gaps[1]] = START, END
            words = f"{where_ends_are(cells)}, the gaps in the wall around"
            return cells, (f"{words}; {note}" if note else words,)
    raise TaskError(
        "a maze has one start (S) and one end (E or G), or two gaps in the wall around it, got "
        f"neither letter, and {len(_border_gaps(readings[0][0])) or 'no'} gaps; {_EXAMPLE}"
    )


def _codes(lines: list[str], codes: dict[str, int], hint: str = _DOTS) -> Cells:
    """(h, w) codes of the characters; TaskError for an unknown one, or lines of other widths."""
    for row, line in enumerate(lines, start=1):
        if not line or len(line) != len(lines[0]):
            raise TaskError(
                f"lines of a maze have one width: line 1 has {len(lines[0])} characters, "
                f"line {row} has {len(line)}{hint}"
            )
        if strange := set(line) - set(codes):
            raise TaskError(
                "a maze is drawn with # . S and E (or G), with lines (+ - |) or block characters, "
                f"or written in 0 and 1, got '{min(strange)}' in line {row}; {_EXAMPLE}"
            )
    table = np.zeros(ord(max(codes)) + 1, dtype=np.uint8)
    table[[ord(sign) for sign in codes]] = list(codes.values())
    return table[_signs(lines)]


def _narrow(lines: list[str]) -> list[str]:
    """One character per cell where all cells are drawn two characters wide, ``##`` and ``SS``.

    Between walls on both sides a letter may stand beside a free character.
    """
    wide = lines
    if all(line[:2] == line[-2:] == "##" for line in lines):
        double = partial(_ONE_LETTER.sub, r"\1\2\1\2")
        wide = [re.sub("..", lambda pair: double(pair[0]), line) for line in lines]
    is_wide = all(line[::2] == line[1::2] and len(line) == len(wide[0]) for line in wide)
    return [line[::2] for line in wide] if is_wide else lines


def _signs(lines: list[str]) -> NDArray[np.uint32]:
    """(h, w) code points."""
    return np.frombuffer("".join(lines).encode("utf-32-le"), np.uint32).reshape(len(lines), -1)


def _bits(lines: list[str]) -> list[tuple[Cells, str]]:
    """1 is wall. Without S and E, 0 may be: what goes around the maze shows it."""
    digits = [bits for line in lines if (bits := _BETWEEN_BITS.sub("", line))]
    cells = _codes(digits, _BITS, hint="")
    inverted = np.array([FREE, WALL, START, END], dtype=np.uint8)[cells]
    return [(cells, "1 is wall"), (inverted, "0 is wall")]


def _block_drawing(lines: list[str]) -> tuple[Cells, str]:
    """Every character is two by two quarters; a cell is one of them, or up to two characters."""
    codes = _codes(lines, {**_CODES, **dict.fromkeys(_QUARTERS, FREE)})
    filled = np.zeros((ord(max(_QUARTERS)) + 1, 2, 2), dtype=np.bool_)
    for sign, bits in _QUARTERS.items():
        filled[ord(sign)].flat = [bit == "1" for bit in bits]
    height, width = codes.shape
    walls = filled[_signs(lines)].swapaxes(1, 2).reshape(2 * height, 2 * width)
    rows, columns = _side(walls, most=2), _side(walls.T, most=4)
    # An odd number of half blocks leaves half a character empty.
    if rows == 1 and not walls[-1].any():
        walls = walls[:-1]
    if columns == 1 and not walls[:, -1].any():
        walls = walls[:, :-1]
    cells = np.where(walls[::rows, ::columns], WALL, FREE).astype(np.uint8)
    for code in (START, END):
        row, column = np.nonzero(codes == code)
        cells[2 * row // rows, 2 * column // columns] = code
    return cells, _WIDE if columns == 4 else ""


def _side(walls: Mask, most: int) -> int:
    """The side of cells along the first axis: how many quarters always lie together."""
    changes = np.flatnonzero((walls[1:] != walls[:-1]).any(axis=1)) + 1
    return math.gcd(most if len(changes) else 2, len(walls), *changes.tolist())


def _line_drawing(lines: list[str]) -> Cells:
    """Corners, the walls between them and rooms: each is a cell, however wide it is drawn."""
    indent = min(len(line) - len(line.lstrip(" ")) for line in lines)
    lines = [line[indent:] for line in lines]
    codes, signs = _codes(lines, _LINES), _signs(lines)
    edges, is_corner = [], []
    for axis, wall in ((1, "-"), (0, "|")):
        corners = np.flatnonzero(((signs == ord("+")) | (signs == ord(wall))).any(axis=axis))
        side, step = signs.shape[1 - axis], math.gcd(*np.diff(corners).tolist())
        if not step or corners[0] != 0 or corners[-1] != side - 1:
            raise TaskError(
                "a maze of lines has a wall on each side, and its corners (+) lie on a regular "
                "grid; draw the wall around it, with no more than two gaps"
            )
        lattice = np.arange(0, side, step)
        edges.append(np.unique([*lattice, *(lattice + 1)]))
        is_corner.append((edges[-1][:-1] % step == 0) & (step > 1))
    rows, columns = edges
    areas = np.outer(np.diff(rows), np.diff(columns))
    counts = {code: _sums(codes == code, rows, columns) for code in (WALL, START, END)}
    has_letter = counts[START] + counts[END] > 0
    is_wall = counts[WALL] == areas
    if len(broken := np.argwhere((counts[WALL] > 0) & ~is_wall & ~has_letter)):
        raise TaskError(
            f"a wall in line {rows[broken[0, 0]] + 1} does not go from corner to corner; corners "
            "(+) lie on a regular grid"
        )
    # A wall that ends at a corner makes it wall, even if the corner is not drawn.
    is_wall |= np.outer(*is_corner) & neighbours(is_wall).any(axis=0)
    cells = np.where(is_wall, WALL, FREE).astype(np.uint8)
    for code in (START, END):
        cells[counts[code] > 0] = code
    return cells


def _sums(mask: Mask, rows: NDArray[np.int64], columns: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many characters of the mask lie between the edges of every cell."""
    down = np.add.reduceat(mask.astype(np.int64), rows[:-1], axis=0)
    sums: NDArray[np.int64] = np.add.reduceat(down, columns[:-1], axis=1)
    return sums


def _border_gaps(cells: Cells) -> list[tuple[int, int]]:
    """The gaps in the wall around (h, w) codes, in reading order; a wide one by its middle cell.

    None where less than half of the outermost cells are wall: then no wall goes around.
    """
    if min(cells.shape) < 3:
        return []
    index = np.arange(cells.size).reshape(cells.shape)
    around = np.concatenate([index[0], index[1:, -1], index[-1, -2::-1], index[-2:0:-1, 0]])
    is_open = cells.flat[around] != WALL
    if not 0 < is_open.sum() <= len(around) / 2:
        return []
    around = np.roll(around, -int(is_open.argmin()))  # so that no gap goes over the end of the list
    changes = np.flatnonzero(np.diff(cells.flat[around] != WALL, append=False)) + 1
    middles = np.sort(around[(changes[::2] + changes[1::2]) // 2])
    return [divmod(middle, cells.shape[1]) for middle in middles.tolist()]
