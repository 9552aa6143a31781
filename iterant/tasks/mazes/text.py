"""Mazes as text, and their descriptions as text and colours.

    >>> read_maze("S.#\\n#.E")
    array([[2, 1, 0],
           [0, 1, 3]], dtype=uint8)

One character is one square. A closed wall around the maze may be drawn or left out: the image has
one in any case. In a description ``*`` is a predicted square that is right, ``x`` one that is
wrong, ``o`` one that is missing; an end that the prediction misses is written small.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from iterant.errors import TaskError
from iterant.formatting import counted
from iterant.tasks.mazes.generate import END, FREE, START, WALL, to_lattice
from iterant.tasks.protocol import Description

# A star, which descriptions draw on a path, is free.
_CODES = {"#": WALL, " ": FREE, ".": FREE, "*": FREE, "S": START, "G": END, "E": END}
_SIGNS = np.array(["#", ".", "S", "E"])
_EXAMPLE = r"try 'S.#\n#.E'"

_UNMARKED, _RIGHT, _WRONG, _MISSED = range(4)
# Blue, orange and purple of Okabe and Ito's palette for colour-blind readers.
_PAINT = np.array([[0, 0, 0], [0, 114, 178], [230, 159, 0], [204, 121, 167]], dtype=np.uint8)


def read_maze(text: str) -> NDArray[np.uint8]:
    """(h, w) codes of the squares of a maze in text, without the wall around it."""
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
    squares = np.array([[_CODES[sign] for sign in line] for line in lines], dtype=np.uint8)
    for code, name in ((START, "start (S)"), (END, "end (E or G)")):
        if (count := int((squares == code).sum())) != 1:
            raise TaskError(f"a maze has one {name}, got {count}; {_EXAMPLE}")
    rim = np.ones(squares.shape, dtype=np.bool_)
    rim[1:-1, 1:-1] = False
    return squares[1:-1, 1:-1] if (squares[rim] == WALL).all() else squares


def describe_maze(
    image: NDArray[Any], target: NDArray[Any], prediction: NDArray[Any] | None
) -> Description:
    """Picture and text of a maze (3, H, W), with a prediction or its answer (H, W) over it."""
    squares = to_lattice(image[None])[0]
    known = bool((target >= 0).all())
    predicted = (target if prediction is None else prediction) == 1
    right = predicted & (target != 0)  # unknown targets are -1
    marks = np.select([right, predicted, target == 1], [_RIGHT, _WRONG, _MISSED], _UNMARKED)
    caption = f"{squares.shape[0]} by {squares.shape[1]} squares"
    if known:
        caption += f", path of {counted(int(target.sum()) // 4 - 1, 'step')}"
    if prediction is not None:
        wrong = int((marks >= _WRONG).sum())
        caption += f", {counted(wrong, 'pixel')} wrong" if known else ", true path not known"
    cells = (image.transpose(1, 2, 0) * 255).astype(np.uint8)
    # The ends keep their colours where the prediction has them right.
    ends = (image.sum(axis=0) == 1) & (marks == _RIGHT)
    painted = (marks != _UNMARKED) & ~ends
    cells[painted] = _PAINT[marks[painted]]
    return Description(title="mazes", text=_text(squares, marks), cells=cells, caption=caption)


def _text(squares: NDArray[np.uint8], marks: NDArray[np.int64]) -> str:
    """One character per square, with the wall around the maze."""
    walled = np.pad(squares, 1)
    height, width = walled.shape
    # Without its outermost pixels the image is two by two pixels a square, wall around included.
    worst = marks[1:-1, 1:-1].reshape(height, 2, width, 2).max(axis=(1, 3))
    signs = _SIGNS[walled]
    inner = (walled == FREE) | (walled == WALL)
    for mark, sign in ((_RIGHT, "*"), (_WRONG, "x"), (_MISSED, "o")):
        signs[(worst == mark) & inner] = sign
    missed_ends = ~inner & (worst >= _WRONG)
    signs[missed_ends] = np.char.lower(signs[missed_ends])
    return "\n".join("".join(line) for line in signs)
