"""Mazes as text: ``#`` walls, spaces or dots, S and E (or G).

    >>> from_text("S.#\\n#.#\\n#.E")
    array([[2, 1, 0], [0, 1, 0], [0, 1, 3]], dtype=uint8)

`to_text` writes what `from_text` reads, with the marks of a prediction.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from iterant.errors import TaskError
from iterant.tasks.inputs import MOST_PROBLEMS, Material
from iterant.tasks.mazes.grid import END, FREE, START, WALL, Cells

UNMARKED, RIGHT, WRONG, MISSED = range(4)
"""Marks of pixels: not on a path; predicted, rightly or wrongly; of the answer, not predicted."""

# A path is drawn with stars, so a star is free.
_CODES = {"#": WALL, " ": FREE, ".": FREE, "*": FREE, "S": START, "G": END, "E": END}
_CODE_OF = np.array([_CODES.get(chr(letter), WALL) for letter in range(128)], dtype=np.uint8)
_SIGNS, _MARKS = np.array(list("#.SE")), np.array(list(" *xo"))
_EXAMPLE = r"try 'S.#\n#.E'"


def split_text(material: Material) -> list[Material]:
    """One part per maze; empty lines separate them."""
    parts: list[Material] = []
    line = 1
    for block in material.text.split("\n\n"):
        if maze := block.lstrip("\n"):
            parts.append(material.part(maze, f"line {line + len(block) - len(maze)}"))
        line += block.count("\n") + 2
        if len(parts) > MOST_PROBLEMS:  # `gather` refuses them; do not keep millions
            break
    return parts if len(parts) > 1 else [material]


def from_text(text: str) -> Cells:
    """(h, w) codes of one maze, without the wall around it; lines have one width."""
    lines = text.replace("\r\n", "\n").strip("\n").upper().split("\n")
    for row, line in enumerate(lines, start=1):
        if not line or len(line) != len(lines[0]):
            raise TaskError(
                f"lines of a maze have one width: line 1 has {len(lines[0])} characters, "
                f"line {row} has {len(line)}; write free squares as dots to see them"
            )
        if strange := set(line) - set(_CODES):
            raise TaskError(
                f"a maze is drawn with # . S and E (or G), got {min(strange)!r} in line {row}; "
                f"{_EXAMPLE}"
            )
    letters = np.frombuffer("".join(lines).encode(), np.uint8)
    cells = _CODE_OF[letters].reshape(len(lines), -1)
    for code, name in ((START, "start (S)"), (END, "end (E or G)")):
        if (count := int((cells == code).sum())) != 1:
            raise TaskError(f"a maze has one {name}, got {count}; {_EXAMPLE}")
    inside = cells[1:-1, 1:-1]
    around_is_wall = (inside != WALL).sum() == (cells != WALL).sum()
    return inside if around_is_wall else cells


def to_text(cells: Cells, marks: NDArray[np.int64]) -> str:
    """One character per cell of (h, w) codes and (H, W) marks, with the wall around the maze.

    ``*`` is the path, ``x`` a wrong cell, ``o`` a missed one; a missed end is a small letter.
    """
    walled = np.pad(cells, 1)
    height, width = walled.shape
    # Without its outermost pixels the image is two by two pixels per cell, wall around included.
    worst = marks[1:-1, 1:-1].reshape(height, 2, width, 2).max(axis=(1, 3))
    inner = walled <= FREE
    signs = np.where(inner & (worst > UNMARKED), _MARKS[worst], _SIGNS[walled])
    missed_ends = ~inner & (worst >= WRONG)
    signs[missed_ends] = np.char.lower(signs[missed_ends])
    return "\n".join("".join(line) for line in signs)
