"""Mazes as grids of cells: from text, to and from the benchmark's images, and shortest paths.

    >>> cells = from_text("S.#\\n#.#\\n#.E")      # codes: WALL, FREE, START, END
    >>> shortest_path(cells)
    [(0, 0), (0, 1), (1, 1), (2, 1), (2, 2)]
    >>> to_image(cells[None]).shape
    (1, 3, 12, 12)

A grid has one start and one end; it may have loops, and any cell may be open.

Shapes: N mazes of h by w cells. An image has two by two pixels per cell and a border of 3 pixels:
H = 2h + 6, W = 2w + 6.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from iterant.errors import TaskError

WALL, FREE, START, END = range(4)
"""Codes of cells."""
BORDER = 3
"""Pixels of wall around the cells of an image."""
COLOURS = np.array([[0, 0, 0], [1, 1, 1], [0, 1, 0], [1, 0, 0]], dtype=np.uint8)
"""Red, green, blue of a wall, a free cell, the start, the end."""

# Descriptions draw a star on a path, so a star is free.
_CODES = {"#": WALL, " ": FREE, ".": FREE, "*": FREE, "S": START, "G": END, "E": END}
_EXAMPLE = r"try 'S.#\n#.E'"
_CODE_OF = np.full(8, 255, dtype=np.uint8)  # of red * 4 + green * 2 + blue
_CODE_OF[COLOURS @ np.array([4, 2, 1])] = np.arange(4)

Cells = NDArray[np.uint8]
Cell = tuple[int, int]
"""(row, column)"""


def from_text(text: str) -> Cells:
    """(h, w) codes of a maze in text, without the wall around it."""
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
    cells = np.array([[_CODES[sign] for sign in line] for line in lines], dtype=np.uint8)
    for code, name in ((START, "start (S)"), (END, "end (E or G)")):
        if (count := int((cells == code).sum())) != 1:
            raise TaskError(f"a maze has one {name}, got {count}; {_EXAMPLE}")
    inside = cells[1:-1, 1:-1]
    around_is_wall = (inside != WALL).sum() == (cells != WALL).sum()
    return inside if around_is_wall else cells


def to_pixels(cells: Cells) -> Cells:
    """(…, h, w) values as (…, H, W) pixels: doubled, with a border of 0."""
    *lead, height, width = cells.shape
    pixels = np.zeros((*lead, 2 * height + 2 * BORDER, 2 * width + 2 * BORDER), dtype=np.uint8)
    inside = pixels[..., BORDER:-BORDER, BORDER:-BORDER]
    for down in range(2):
        for right in range(2):
            inside[..., down::2, right::2] = cells
    return pixels


def whole_cells(pixels: NDArray[np.bool_] | NDArray[np.int64]) -> NDArray[np.bool_]:
    """(N, h, w): whether all four pixels of a cell are 1 in (N, H, W)."""
    inside = pixels[:, BORDER:-BORDER, BORDER:-BORDER] == 1
    whole: NDArray[np.bool_] = (
        inside[:, ::2, ::2] & inside[:, 1::2, ::2] & inside[:, ::2, 1::2] & inside[:, 1::2, 1::2]
    )
    return whole


def to_image(cells: Cells) -> Cells:
    """(N, 3, H, W) images of 0 and 1 for (N, h, w) codes."""
    return to_pixels(np.stack([COLOURS[:, channel][cells] for channel in range(3)], axis=1))


def from_image(images: Tensor | NDArray[Any]) -> Cells:
    """(N, h, w) codes of (N, 3, H, W) images in the benchmark's format."""
    array = images.detach().cpu().numpy() if isinstance(images, Tensor) else np.asarray(images)
    even = array.ndim == 4 and array.shape[1] == 3 and not any(side % 2 for side in array.shape[2:])
    if even and min(array.shape[2:]) > 2 * BORDER and np.isin(array, (0, 1)).all():
        red, green, blue = (array[:, channel].astype(np.uint8) for channel in range(3))
        codes = _CODE_OF[red * 4 + green * 2 + blue]
        cells: Cells = codes[:, BORDER:-BORDER:2, BORDER:-BORDER:2]
        if not (cells == 255).any() and np.array_equal(to_pixels(cells), codes):
            return cells
    raise TaskError(
        f"maze images are (N, 3, H, W) of 0 and 1, with two by two black, white, green or red "
        f"pixels a square and {BORDER} pixels of wall around, got another image of {array.shape}"
    )


def shortest_path(cells: Cells, within: NDArray[np.bool_] | None = None) -> list[Cell]:
    """A shortest path through (h, w) codes, start and end included; [] when there is none.

    With ``within`` it leads over these cells alone. Breadth first; of several shortest paths
    always the same one.
    """
    is_open = cells != WALL
    stride = cells.shape[1] + 1
    unseen = bytearray(np.pad(is_open if within is None else is_open & within, ((1, 1), (1, 0))))
    ends = (np.argwhere(cells == code)[0].tolist() for code in (START, END))
    first, last = ((row + 1) * stride + column + 1 for row, column in ends)
    if not (unseen[first] and unseen[last]):
        return []
    # Search from the end, so that following the links goes from start to end.
    towards_end = {last: last}
    unseen[last] = 0
    queue = deque([last])
    while queue and first not in towards_end:
        position = queue.popleft()
        for neighbour in (position - stride, position + 1, position + stride, position - 1):
            if unseen[neighbour]:
                unseen[neighbour] = 0
                towards_end[neighbour] = position
                queue.append(neighbour)
    if first not in towards_end:
        return []
    path = [first]
    while path[-1] != last:
        path.append(towards_end[path[-1]])
    return [(position // stride - 1, position % stride - 1) for position in path]
