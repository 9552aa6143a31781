"""Mazes generated depth first, the benchmark's images of them, and shortest paths.

    >>> lattice, path = generate(size=9, seed=1, numbers=np.arange(100))
    >>> lattice.shape                            # codes of the squares: wall, free, start, end
    (100, 9, 9)
    >>> path.sum(axis=(1, 2)) - 1                # steps from start to end

The depth-first search starts at the start cell, opens the wall to a random unvisited neighbour, and
backtracks when there is none. Every cell has one random order of its four neighbours and takes the
first unvisited one; since which are unvisited does not depend on the rest of that order, this
equals a new choice at each visit, and needs one draw per cell. Instead of a stack, each cell
remembers where it was entered from; following that back from the end gives the path.

Two implementations give the same mazes: one advances all mazes together, one numpy step per move
(many mazes); the other is a plain loop (few mazes, where numpy's overhead per call would dominate).

Shapes: N mazes, h by w squares. A generated maze has s by s squares and n by n cells, the squares
at even places, n = (s + 1) / 2. An image has two by two pixels per square and a border of 3.
"""

from __future__ import annotations

import itertools
from collections import deque
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from iterant.errors import TaskError
from iterant.tasks.rng import Stream

WALL, FREE, START, END = range(4)
"""Codes of squares."""
BORDER = 3
"""Pixels of wall around the squares of an image."""
COLOURS = np.array([[0, 0, 0], [1, 1, 1], [0, 1, 0], [1, 0, 0]], dtype=np.uint8)
"""Red, green, blue of a wall, a free square, the start, the end."""

_CODE_OF = np.full(8, 255, dtype=np.uint8)  # of red * 4 + green * 2 + blue
_CODE_OF[COLOURS @ np.array([4, 2, 1])] = np.arange(4)
_ORDERS = tuple(itertools.permutations(range(4)))
_TOGETHER = 64
"""From this many mazes on, advancing them together is faster (measured: equal near 60)."""
_CELLS_AT_ONCE = 1 << 20
"""Cells of the mazes advanced together: bounds memory."""

Squares = NDArray[np.uint8]
Square = tuple[int, int]
"""(row, column)"""


def to_pixels(squares: Squares) -> Squares:
    """(…, h, w) values as (…, 2h + 6, 2w + 6) pixels: doubled, with a border of 0."""
    *lead, height, width = squares.shape
    pixels = np.zeros((*lead, 2 * height + 2 * BORDER, 2 * width + 2 * BORDER), dtype=np.uint8)
    inside = pixels[..., BORDER:-BORDER, BORDER:-BORDER]
    for down in range(2):
        for right in range(2):
            inside[..., down::2, right::2] = squares
    return pixels


def to_image(lattice: Squares) -> Squares:
    """(N, 3, H, W) images of 0 and 1 for (N, h, w) codes of squares."""
    return to_pixels(np.stack([COLOURS[:, channel][lattice] for channel in range(3)], axis=1))


def to_lattice(images: Tensor | NDArray[Any]) -> Squares:
    """(N, h, w) codes of the squares of (N, 3, H, W) images in the benchmark's format."""
    array = images.detach().cpu().numpy() if isinstance(images, Tensor) else np.asarray(images)
    shape = array.shape
    smallest = 2 * BORDER + 2
    if array.ndim != 4 or shape[1] != 3 or min(shape[2:]) < smallest or shape[2] % 2 + shape[3] % 2:
        raise TaskError(
            f"maze images are (N, 3, H, W) with even sides of at least {smallest}, got {shape}"
        )
    if not np.isin(array, (0, 1)).all():
        raise TaskError("maze images hold 0 and 1 only; divide colours by 255 first")
    red, green, blue = (array[:, channel].astype(np.uint8) for channel in range(3))
    codes = _CODE_OF[red * 4 + green * 2 + blue]
    squares: Squares = codes[:, BORDER:-BORDER:2, BORDER:-BORDER:2]
    if (squares == 255).any() or not np.array_equal(to_pixels(squares), codes):
        raise TaskError(
            "maze images have two by two black, white, green or red pixels a square and three "
            "pixels of wall around; this one is shifted, scaled or of other colours"
        )
    return squares


def generate(
    size: int, seed: int, numbers: NDArray[np.int64], together: bool | None = None
) -> tuple[Squares, NDArray[np.bool_]]:
    """(N, s, s) codes of the squares, and whether they are on the path from start to end.

    A maze depends on size, seed and its own number only. `together` chooses the implementation;
    None takes the faster.
    """
    chunk = max(1, _CELLS_AT_ONCE // ((size + 1) // 2) ** 2)
    if together is None:
        together = min(len(numbers), chunk) >= _TOGETHER
    parts = [
        _generate_chunk(size, seed, numbers[first : first + chunk], together)
        for first in range(0, len(numbers), chunk)
    ]
    lattice, path = zip(*parts, strict=True)
    return np.concatenate(lattice), np.concatenate(path)


def _generate_chunk(
    size: int, seed: int, numbers: NDArray[np.int64], together: bool
) -> tuple[Squares, NDArray[np.bool_]]:
    """Draw ends and orders, search, and follow the path back."""
    count, side = len(numbers), (size + 1) // 2
    cells = side**2
    stream = Stream(seed, "mazes", size)
    start = stream.below(cells, numbers, 0)
    # A uniform offset of 1 … cells - 1 gives any cell but the start with equal probability.
    end = (start + 1 + stream.below(cells - 1, numbers, 1)) % cells
    orders = stream.below(len(_ORDERS), numbers[:, None], np.arange(2, cells + 2)[None])
    # A rim of visited cells replaces checks for the border; the rim at the end of a row is also
    # the one before the next row.
    width = side + 1
    rimmed = np.zeros((count, side + 2, width), dtype=np.int64)
    rimmed[:, 1:-1, 1:] = orders.reshape(-1, side, side)
    unseen = np.zeros(rimmed.shape, dtype=np.uint8)
    unseen[:, 1:-1, 1:] = 1
    first, last = ((cell // side + 1) * width + cell % side + 1 for cell in (start, end))
    search = _search_together if together else _search_singly
    back = search(16 * rimmed.reshape(count, -1), unseen.reshape(count, -1), first, width)
    on_path = np.zeros(back.size, dtype=np.bool_)
    place = np.arange(count) * back.shape[1] + last
    while len(place):
        on_path[place] = True
        step = back.ravel().take(place)
        place = (place + step)[step != 0]
    steps, on_path = back.reshape(rimmed.shape)[:, 1:-1, 1:], on_path.reshape(rimmed.shape)
    lattice = _squares(np.ones_like(steps, dtype=np.bool_), steps, width).astype(np.uint8)
    for cell, code in ((start, START), (end, END)):
        lattice[np.arange(count), 2 * (cell // side), 2 * (cell % side)] = code
    return lattice, _squares(on_path[:, 1:-1, 1:], steps, width)


def _squares(chosen: NDArray[np.bool_], steps: NDArray[np.int16], width: int) -> NDArray[np.bool_]:
    """The chosen cells (N, n, n), and the passages through which they were entered, as squares."""
    count, side, _ = chosen.shape
    squares = np.zeros((count, 2 * side - 1, 2 * side - 1), dtype=np.bool_)
    squares[:, ::2, ::2] = chosen
    up, right, down, left = (chosen & (steps == offset) for offset in _offsets(width))
    squares[:, 1::2, ::2] = up[:, 1:] | down[:, :-1]
    squares[:, ::2, 1::2] = left[:, :, 1:] | right[:, :, :-1]
    return squares


def _offsets(width: int) -> tuple[int, int, int, int]:
    """Offsets of the neighbours up, right, down and left in a flat grid of that width."""
    return (-width, 1, width, -1)


def _moves(width: int) -> list[int]:
    """The next offset for order * 16 + bit mask of unseen neighbours; 0 when all are seen."""
    offsets = _offsets(width)
    return [
        next((offsets[side] for side in order if mask >> side & 1), 0)
        for order in _ORDERS
        for mask in range(16)
    ]


def _search_together(
    orders: NDArray[np.int64], unseen: Squares, start: NDArray[np.int64], width: int
) -> NDArray[np.int16]:
    """(N, cells) the offset back to where each cell was entered from; all mazes in step."""
    count, area = orders.shape
    moves = np.array(_moves(width))
    place = np.arange(count) * area + start
    flat_orders, flat_unseen = orders.astype(np.int16).ravel(), unseen.ravel()
    back = np.zeros(count * area, dtype=np.int16)
    cells = int(unseen[0].sum())
    flat_unseen[place] = 0
    for _ in range(2 * (cells - 1)):  # every cell but the start is entered once and left once
        mask = flat_unseen.take(place - width)
        mask |= flat_unseen.take(place + 1) << 1
        mask |= flat_unseen.take(place + width) << 2
        mask |= flat_unseen.take(place - 1) << 3
        move = moves.take(flat_orders.take(place) + mask)
        forward = move.astype(np.bool_)
        place += np.where(forward, move, back.take(place))
        entered = place[forward]
        flat_unseen[entered] = 0
        back[entered] = -move[forward]
    return back.reshape(count, area)


def _search_singly(
    orders: NDArray[np.int64], unseen: Squares, start: NDArray[np.int64], width: int
) -> NDArray[np.int16]:
    """The same in a plain loop, one maze after the other."""
    moves = _moves(width)
    backs = np.zeros(orders.shape, dtype=np.int16)
    for number, place in enumerate(start.tolist()):
        order, new = orders[number].tolist(), bytearray(unseen[number])
        back = [0] * len(order)
        new[place] = 0
        while True:
            mask = (
                new[place - width]
                | new[place + 1] << 1
                | new[place + width] << 2
                | new[place - 1] << 3
            )
            move = moves[order[place] + mask]
            if move:
                place += move
                new[place] = 0
                back[place] = -move
            elif back[place]:
                place += back[place]
            else:
                break
        backs[number] = back
    return backs


def shortest_path(open_squares: NDArray[np.bool_], start: Square, end: Square) -> list[Square]:
    """A shortest path over open squares, start and end included; [] when there is none.

    >>> shortest_path(np.ones((2, 3), bool), (0, 0), (1, 2))
    [(0, 0), (0, 1), (0, 2), (1, 2)]

    Breadth first; of several shortest paths always the same one.
    """
    height, width = open_squares.shape
    stride = width + 1
    rimmed = np.zeros((height + 2, stride), dtype=np.bool_)
    rimmed[1:-1, 1:] = open_squares
    unseen = bytearray(rimmed)
    first, last = ((row + 1) * stride + column + 1 for row, column in (start, end))
    if not (unseen[first] and unseen[last]):
        return []
    # Searched from the end, so that following the links reads from start to end.
    towards_end = {last: last}
    unseen[last] = 0
    queue = deque([last])
    while queue and first not in towards_end:
        place = queue.popleft()
        for offset in _offsets(stride):
            if unseen[place + offset]:
                unseen[place + offset] = 0
                towards_end[place + offset] = place
                queue.append(place + offset)
    if first not in towards_end:
        return []
    path = [first]
    while path[-1] != last:
        path.append(towards_end[path[-1]])
    return [(place // stride - 1, place % stride - 1) for place in path]
