"""Mazes as grids of cells, as images and as text, and their shortest paths.

    >>> mazes = from_text("S.#\\n#.#\\n#.E")[None]      # codes: WALL, FREE, START, END
    >>> descend(mazes, distances(mazes)).sum(), to_image(mazes).shape
    (5, (1, 3, 12, 12))

A grid has one start and one end; it may have loops, and any cell of it may be open.

Shapes: N mazes of h by w cells. An image, as in the benchmark, has two by two pixels per cell and a
border of 3 pixels: H = 2h + 6, W = 2w + 6.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from iterant.errors import TaskError

WALL, FREE, START, END = range(4)
"""Codes of cells."""
LARGEST_READ = 2001
"""Most cells per side of a maze that is read; its tensors take a third of a gigabyte."""
BORDER = 3
"""Pixels of wall around the cells of an image."""
COLOURS = np.array([[0, 0, 0], [1, 1, 1], [0, 1, 0], [1, 0, 0]], dtype=np.uint8)
"""Red, green, blue of a wall, a free cell, the start, the end."""
UNMARKED, RIGHT, WRONG, MISSED = range(4)
"""Marks of pixels: not on a path; predicted, rightly or wrongly; of the answer, not predicted."""
_SIGNS, _MARK_SIGNS = np.array(list("#.SE")), np.array(list(" *xo"))
"""Characters of codes and of marks."""

Cells = NDArray[np.uint8]
Mask = NDArray[np.bool_]


def where_ends_are(cells: Cells, size: str = "") -> str:
    """The number of (h, w) codes and the places of the ends, for a reader."""
    (row, column), (end_row, end_column) = (
        (np.argwhere(cells == code)[0] + 1).tolist() for code in (START, END)
    )
    return (
        f"{cells.shape[0]} by {cells.shape[1]} squares{size}, start at row {row}, column {column}, "
        f"end at row {end_row}, column {end_column}"
    )


def worst_marks(marks: NDArray[np.int64]) -> NDArray[np.int64]:
    """(h + 4, w + 4): the largest of the (H, W) marks in every cell and in the wall around."""
    # With one more pixel on each side the image is two by two pixels per cell, two cells of wall
    # around included.
    padded = np.pad(marks, 1)
    height, width = padded.shape
    worst: NDArray[np.int64] = padded.reshape(height // 2, 2, width // 2, 2).max(axis=(1, 3))
    return worst


def to_pixels(cells: Cells) -> Cells:
    """(…, h, w) values as (…, H, W) pixels: doubled, with a border of 0."""
    border = [(0, 0)] * (cells.ndim - 2) + [(BORDER, BORDER)] * 2
    return np.pad(cells.repeat(2, axis=-2).repeat(2, axis=-1), border)


def whole_cells(pixels: Mask | NDArray[np.int64]) -> Mask:
    """(N, h, w): whether all four pixels of a cell are 1 in (N, H, W)."""
    inside = pixels[:, BORDER:-BORDER, BORDER:-BORDER] == 1
    count, height, width = inside.shape
    whole: Mask = inside.reshape(count, height // 2, 2, width // 2, 2).all(axis=(2, 4))
    return whole


def to_image(cells: Cells) -> Cells:
    """(N, 3, H, W) images of 0 and 1 for (N, h, w) codes."""
    return to_pixels(np.stack([COLOURS[:, channel][cells] for channel in range(3)], axis=1))


def from_image(images: Tensor | NDArray[Any]) -> Cells:
    """(N, h, w) codes of (N, 3, H, W) images in the benchmark's format."""
    array = images.detach().cpu().numpy() if isinstance(images, Tensor) else np.asarray(images)
    if array.ndim == 4 and array.shape[1] == 3 and min(array.shape[2:]) > 2 * BORDER:
        red, green = (array[:, :2, BORDER:-BORDER:2, BORDER:-BORDER:2] > 0).swapaxes(0, 1)
        # Black, red, green, white; see `COLOURS`.
        cells: Cells = np.array([WALL, END, START, FREE], dtype=np.uint8)[red + 2 * green]
        if np.array_equal(to_image(cells), array):
            return cells
    raise TaskError(
        f"maze images are (N, 3, H, W) of 0 and 1, with two by two black, white, green or red "
        f"pixels per square and {BORDER} pixels of wall around, got another image of {array.shape}"
    )


def to_text(cells: Cells, marks: NDArray[np.int64]) -> str:
    """One character per cell of (h, w) codes and (H, W) marks, with the wall around the maze.

    ``*`` is the path, ``x`` a wrong cell, ``o`` a missed one; a missed end is a small letter.
    """
    walled, worst = np.pad(cells, 1), worst_marks(marks)[1:-1, 1:-1]
    inner = walled <= FREE
    signs = np.where(inner & (worst > UNMARKED), _MARK_SIGNS[worst], _SIGNS[walled])
    missed_ends = ~inner & (worst >= WRONG)
    signs[missed_ends] = np.char.lower(signs[missed_ends])
    return "\n".join("".join(line) for line in signs)


def neighbours(mask: Mask) -> Mask:
    """(4, …, h, w): the values of (…, h, w) above, below, left and right; False outside."""
    padded = np.pad(mask, [(0, 0)] * (mask.ndim - 2) + [(1, 1)] * 2)
    above, below = padded[..., :-2, 1:-1], padded[..., 2:, 1:-1]
    return np.stack([above, below, padded[..., 1:-1, :-2], padded[..., 1:-1, 2:]])


def with_rim(values: NDArray[Any], fill: int) -> NDArray[Any]:
    """(N, h, w) values in one row, with a rim that replaces checks for the border.

    The rim at the end of a line is also the one before the next: lines are ``w + 1`` places apart.
    """
    return np.pad(values, ((0, 0), (1, 1), (1, 0)), constant_values=fill).reshape(-1)


def without_rim(flat: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """The (N, h, w) values of `with_rim`, by their shape."""
    count, height, width = shape
    return flat.reshape(count, height + 2, width + 1)[:, 1:-1, 1:]


def _offsets(cells: Cells) -> NDArray[np.int64]:
    """(4, 1): the offsets in `with_rim` from a cell to those below, left, right and above."""
    stride = cells.shape[2] + 1
    return np.array([[stride], [-1], [1], [-stride]])


def distances(cells: Cells, within: Mask | None = None) -> NDArray[np.int32]:
    """(N, h, w): steps from each cell of (N, h, w) codes to the end; -1 where there is no path.

    With ``within`` only paths through these cells count. Breadth first from all ends together: one
    numpy step per distance, on the cells of that distance only.
    """
    is_open = cells != WALL if within is None else (cells != WALL) & within
    unseen = with_rim(is_open, False)
    frontier = np.flatnonzero(with_rim((cells == END) & is_open, False))
    steps = np.full(unseen.shape, -1, dtype=np.int32)
    offsets = _offsets(cells)
    distance = 0
    while len(frontier):
        unseen[frontier] = False
        steps[frontier] = distance
        around = frontier + offsets
        frontier = np.unique(around[unseen[around]])
        distance += 1
    return without_rim(steps, cells.shape)


def path_lengths(cells: Cells, steps: NDArray[np.int32]) -> NDArray[np.int32]:
    """(N,): the `distances` of the starts; -1 where no path leads to the end."""
    lengths: NDArray[np.int32] = np.where(cells == START, steps, -1).max(axis=(1, 2))
    return lengths


def descend(cells: Cells, steps: NDArray[np.int32]) -> Mask:
    """(N, h, w): the path from the start that always goes to a cell one step nearer to the end.

    ``steps`` are the `distances`. Of several such cells it takes the first of down, left, right,
    up, as in Maze-Hard's labels. Where there is no path, no cell is marked.
    """
    flat, offsets = with_rim(steps, -1), _offsets(cells)
    on_path = np.zeros(flat.shape, dtype=np.bool_)
    position = np.flatnonzero(with_rim((cells == START) & (steps >= 0), False))
    while len(position):
        on_path[position] = True
        position = position[flat[position] > 0]
        nearer = flat[position] - 1
        options = position + offsets
        first = (flat[options] == nearer).argmax(axis=0)
        position = options[first, np.arange(len(position))]
    return without_rim(on_path, cells.shape)
