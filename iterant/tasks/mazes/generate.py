"""Mazes carved depth first, and the shortest way through any maze.

    >>> trees = carve(size=9, seed=1, numbers=np.arange(100))
    >>> trees.lattice().shape                    # codes of the squares: wall, free, start, end
    (100, 9, 9)
    >>> trees.path().sum(axis=(1, 2)) - 1        # steps from start to end

A carver starts at the start cell, breaks through to a random neighbour that it has not seen, and
steps back when there is none. Every cell has one random order of its four neighbours and takes
the first unseen one; since what is unseen does not depend on the rest of that order, this is the
same as choosing afresh each time, and needs one draw a cell. The carver keeps no stack, only where
each cell was entered from: the way from the end back to the start is then the solution.

Two carvers give the same mazes: one moves all mazes together, a numpy step a move (many mazes);
the other is a plain loop (few mazes, where numpy's cost a call would dominate).

The benchmark's maze images and the lattice of squares that they show.

Shapes: N mazes, h by w squares; mazes of the benchmark are square, drawn ones need not be, M mazes,
s squares a side, n = (s + 1) / 2 cells a side (the squares at even places).
"""

from __future__ import annotations

import itertools
from collections import deque
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from iterant.errors import TaskError
from iterant.tasks.rng import Stream

BORDER = 3
"""Pixels of wall around the squares."""
COLOURS = np.array([[0, 0, 0], [1, 1, 1], [0, 1, 0], [1, 0, 0]], dtype=np.uint8)
"""Red, green, blue of a wall, a free square, the start, the end."""

_CODE_OF = np.full(8, 255, dtype=np.uint8)
_CODE_OF[COLOURS @ np.array([4, 2, 1])] = np.arange(4)


def to_pixels(squares: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """(…, h, w) values doubled to two by two pixels with the border around, which is 0."""
    *lead, height, width = squares.shape
    pixels = np.zeros((*lead, 2 * height + 2 * BORDER, 2 * width + 2 * BORDER), dtype=np.uint8)
    inside = pixels[..., BORDER:-BORDER, BORDER:-BORDER]
    for down in range(2):
        for right in range(2):
            inside[..., down::2, right::2] = squares
    return pixels


def to_image(lattice: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """(N, 3, H, W) bytes 0 and 1 for (N, h, w) codes of squares."""
    if lattice.ndim != 3 or (lattice.size and lattice.max() > 3):
        raise TaskError(
            f"a lattice is (N, h, w) with codes 0 to 3, got shape {lattice.shape} "
            f"with values up to {lattice.max() if lattice.size else 'nothing'}"
        )
    return to_pixels(np.stack([COLOURS[:, channel][lattice] for channel in range(3)], axis=1))


def to_lattice(images: Tensor | NDArray[Any]) -> NDArray[np.uint8]:
    """(N, h, w) codes of the squares in (N, 3, H, W) images, which must be the benchmark's."""
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
    if (codes == 255).any():
        number, row, column = np.argwhere(codes == 255)[0]
        colour = tuple(array[number, :, row, column].astype(int).tolist())
        raise TaskError(
            f"a maze pixel is black, white, green or red, got red, green, blue {colour}"
        )
    squares: NDArray[np.uint8] = codes[:, BORDER:-BORDER:2, BORDER:-BORDER:2]
    if not np.array_equal(to_pixels(squares), codes):
        raise TaskError(
            "maze images have two by two pixels a square and three pixels of wall around; "
            "this one is shifted or of another scale"
        )
    return squares


WALL, FREE, START, END = range(4)
"""What a lattice square is."""

_ORDERS = tuple(itertools.permutations(range(4)))
_TOGETHER = 64
"""From this many mazes on, moving them together is faster (measured: equal near 60)."""
_CELLS_AT_ONCE = 1 << 20
"""Cells of the mazes moved together: enough to spread numpy's cost a call, little memory."""

Squares = NDArray[np.uint8]


@dataclass(frozen=True)
class Trees:
    """Carved mazes as trees of cells: what the carver leaves behind."""

    entered: NDArray[np.int8]
    """(M, n, n) which side a cell was entered from: 0 up, 1 right, 2 down, 3 left, -1 the start."""
    start: NDArray[np.int64]
    """(M,) the start cell, counted row by row"""
    end: NDArray[np.int64]
    on_path: NDArray[np.bool_]
    """(M, n, n) whether a cell is on the way from start to end"""

    def lattice(self) -> Squares:
        """(M, s, s) codes of the squares."""
        count, side, _ = self.entered.shape
        squares = self._squares(np.ones_like(self.on_path)).astype(np.uint8)
        mazes = np.arange(count)
        for cell, code in ((self.start, START), (self.end, END)):
            squares[mazes, 2 * (cell // side), 2 * (cell % side)] = code
        return squares

    def path(self) -> NDArray[np.bool_]:
        """(M, s, s) whether a square is on the way from start to end, both included."""
        return self._squares(self.on_path)

    def _squares(self, chosen: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """The chosen cells, and the passages through which they were entered, as squares."""
        count, side, _ = chosen.shape
        squares = np.zeros((count, 2 * side - 1, 2 * side - 1), dtype=np.bool_)
        squares[:, ::2, ::2] = chosen
        up, right, down, left = (chosen & (self.entered == code) for code in range(4))
        squares[:, 1::2, ::2] = up[:, 1:] | down[:, :-1]
        squares[:, ::2, 1::2] = left[:, :, 1:] | right[:, :, :-1]
        return squares


def carve(size: int, seed: int, numbers: NDArray[np.int64], together: bool | None = None) -> Trees:
    """The mazes of these numbers: each depends on size, seed and its own number only.

    `together` chooses the carver; None takes the faster.
    """
    side = (size + 1) // 2
    chunk = max(1, _CELLS_AT_ONCE // side**2)
    if together is None:
        together = min(len(numbers), chunk) >= _TOGETHER
    parts = [
        _carve_chunk(side, seed, size, numbers[first : first + chunk], together)
        for first in range(0, len(numbers), chunk)
    ]
    return Trees(
        entered=np.concatenate([part.entered for part in parts]),
        start=np.concatenate([part.start for part in parts]),
        end=np.concatenate([part.end for part in parts]),
        on_path=np.concatenate([part.on_path for part in parts]),
    )


def _carve_chunk(
    side: int, seed: int, size: int, numbers: NDArray[np.int64], together: bool
) -> Trees:
    """Draw ends and orders, carve, and walk back from the end."""
    cells = side**2
    stream = Stream(seed, "mazes", size)
    start = stream.below(cells, numbers, 0)
    # Any cell but the start, each as likely: so many cells further on, around the end.
    end = (start + 1 + stream.below(cells - 1, numbers, 1)) % cells
    orders = stream.below(len(_ORDERS), numbers[:, None], np.arange(2, cells + 2)[None])
    # A rim of one cell that is never unseen spares the carver every question about borders;
    # the rim at the end of a row is also the one before the next row.
    width = side + 1
    rimmed = np.zeros((len(numbers), side + 2, width), dtype=np.int64)
    rimmed[:, 1:-1, 1:] = orders.reshape(-1, side, side)
    unseen = np.zeros(rimmed.shape, dtype=np.uint8)
    unseen[:, 1:-1, 1:] = 1
    origin, goal = ((cell // side + 1) * width + cell % side + 1 for cell in (start, end))
    carver = _carve_together if together else _carve_singly
    back = carver(rimmed.reshape(len(numbers), -1), unseen.reshape(len(numbers), -1), origin, width)
    on_path = _walk_back(back, goal).reshape(rimmed.shape)[:, 1:-1, 1:]
    entered = np.full(rimmed.shape, -1, dtype=np.int8)
    for code, offset in enumerate(_offsets(width)):
        entered[back.reshape(rimmed.shape) == offset] = code
    return Trees(entered[:, 1:-1, 1:], start, end, on_path)


def _offsets(width: int) -> tuple[int, int, int, int]:
    """How far the neighbours up, right, down and left lie in a flat grid of that width."""
    return (-width, 1, width, -1)


def _moves(width: int) -> list[int]:
    """For order * 16 + mask of unseen neighbours: the offset to go to, 0 when none is unseen."""
    offsets = _offsets(width)
    return [
        next((offsets[side] for side in order if mask >> side & 1), 0)
        for order in _ORDERS
        for mask in range(16)
    ]


def _carve_together(
    orders: NDArray[np.int64], unseen: Squares, origin: NDArray[np.int64], width: int
) -> NDArray[np.int16]:
    """(M, cells) the offset back to where each cell was entered from: all mazes move together."""
    count, area = orders.shape
    moves = np.array(_moves(width))
    place = np.arange(count) * area + origin
    flat_orders, flat_unseen = (orders * 16).astype(np.int16).ravel(), unseen.ravel()
    back = np.zeros(count * area, dtype=np.int16)
    flat_unseen[place] = 0
    cells = int(unseen[0].sum()) + 1
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


def _carve_singly(
    orders: NDArray[np.int64], unseen: Squares, origin: NDArray[np.int64], width: int
) -> NDArray[np.int16]:
    """The same by a plain loop, one maze after the other."""
    moves = _moves(width)
    backs = np.zeros(orders.shape, dtype=np.int16)
    for number, first in enumerate(origin.tolist()):
        order, new, place = (orders[number] * 16).tolist(), bytearray(unseen[number]), first
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


def _walk_back(back: NDArray[np.int16], goal: NDArray[np.int64]) -> NDArray[np.bool_]:
    """(M, cells) the cells met on the way from the goal to the start, where the way back is 0."""
    count, area = back.shape
    flat_back, met = back.ravel(), np.zeros(count * area, dtype=np.bool_)
    place = np.arange(count) * area + goal
    met[place] = True
    while len(place):
        step = flat_back.take(place)
        place = (place + step)[step != 0]
        met[place] = True
    return met.reshape(count, area)


Square = tuple[int, int]
"""(row, column)"""


def shortest_path(open_squares: NDArray[np.bool_], start: Square, end: Square) -> list[Square]:
    """A shortest way from start to end over open squares, both included; [] when there is none.

    >>> shortest_path(np.ones((2, 3), bool), (0, 0), (1, 2))
    [(0, 0), (0, 1), (0, 2), (1, 2)]

    Breadth first, so loops do no harm; of several shortest ways the same one every time.
    """
    height, width = open_squares.shape
    rimmed = np.zeros((height + 2, width + 1), dtype=np.bool_)
    rimmed[1:-1, 1:] = open_squares
    stride = width + 1
    unseen = bytearray(rimmed)
    first, last = ((row + 1) * stride + column + 1 for row, column in (start, end))
    if not (unseen[first] and unseen[last]):
        return []
    # Searched from the end, so that following the way back reads from start to end.
    towards_end = {last: last}
    unseen[last] = 0
    waiting = deque([last])
    while waiting and first not in towards_end:
        place = waiting.popleft()
        for offset in _offsets(stride):
            if unseen[place + offset]:
                unseen[place + offset] = 0
                towards_end[place + offset] = place
                waiting.append(place + offset)
    if first not in towards_end:
        return []
    places = [first]
    while places[-1] != last:
        places.append(towards_end[places[-1]])
    return [(place // stride - 1, place % stride - 1) for place in places]
