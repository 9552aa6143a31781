"""Mazes as grids of cells: generated, from text, to and from images, and their shortest paths.

    >>> cells = from_text("S.#\\n#.#\\n#.E")      # codes: WALL, FREE, START, END
    >>> shortest_path(cells)
    [(0, 0), (0, 1), (1, 1), (2, 1), (2, 2)]
    >>> to_image(cells[None]).shape
    (1, 3, 12, 12)
    >>> cells, on_path = generate(size=9, seed=1, numbers=np.arange(100))
    >>> cells.shape
    (100, 9, 9)

A grid has one start and one end. Generated mazes have no loops; others may have some, and any cell
of them may be open.

Shapes: N mazes of h by w cells. An image, as in the benchmark, has two by two pixels per cell and a
border of 3 pixels: H = 2h + 6, W = 2w + 6. Generated mazes are s by s cells: those in even rows and
columns are the n by n nodes of the search, n = (s + 1) / 2, and a cell between two of them is a
wall or a passage.
"""

from __future__ import annotations

import itertools
from collections import deque
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from iterant.errors import TaskError
from iterant.rng import Stream

WALL, FREE, START, END = range(4)
"""Codes of cells."""
LARGEST_READ = 2001
"""Most cells per side of a maze that is read; its tensors take a third of a gigabyte."""
BORDER = 3
"""Pixels of wall around the cells of an image."""
COLOURS = np.array([[0, 0, 0], [1, 1, 1], [0, 1, 0], [1, 0, 0]], dtype=np.uint8)
"""Red, green, blue of a wall, a free cell, the start, the end."""

# Descriptions draw a star on a path, so a star is free.
_CODES = {"#": WALL, " ": FREE, ".": FREE, "*": FREE, "S": START, "G": END, "E": END}
_EXAMPLE = r"try 'S.#\n#.E'"
_CODE_OF = np.full(8, 255, dtype=np.uint8)  # of red * 4 + green * 2 + blue
_CODE_OF[COLOURS @ np.array([4, 2, 1])] = np.arange(4)

_ORDERS = tuple(itertools.permutations(range(4)))
"""The orders in which a node tries its four neighbours."""
_MIN_TOGETHER = 64
"""From this many mazes on, generating them together is faster (measured: equal near 60)."""

Cells = NDArray[np.uint8]
Cell = tuple[int, int]
"""(row, column)"""


def from_text(text: str) -> Cells:
    """(h, w) codes of a maze in text, without the wall around it."""
    lines = text.replace("\r\n", "\n").strip("\n").upper().split("\n")
    sides = (len(lines), len(lines[0]))
    if max(sides) > LARGEST_READ + 2:  # with a wall around it
        raise TaskError(
            f"mazes of at most {LARGEST_READ} squares a side are read, got {sides[0]} by "
            f"{sides[1]}; give a smaller one"
        )
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


def distances(cells: Cells, within: NDArray[np.bool_] | None = None) -> NDArray[np.int32]:
    """(N, h, w): steps from each cell of (N, h, w) codes to the end; -1 where there is no way.

    With ``within`` ways lead over these cells alone. Breadth first from all ends together: one
    numpy step per distance, on the cells of that distance only.
    """
    count, height, width = cells.shape
    is_open = cells != WALL if within is None else (cells != WALL) & within
    # A rim of walls replaces checks for the border; the rim at the end of a row is also the one
    # before the next row.
    rim = ((0, 0), (1, 1), (1, 0))
    unseen = np.pad(is_open, rim).reshape(-1)
    frontier = np.flatnonzero(np.pad((cells == END) & is_open, rim).reshape(-1))
    steps = np.full(unseen.shape, -1, dtype=np.int32)
    distance = 0
    while len(frontier):
        unseen[frontier] = False
        steps[frontier] = distance
        around = np.concatenate([frontier + offset for offset in _offsets(width + 1)])
        frontier = np.unique(around[unseen[around]])
        distance += 1
    return steps.reshape(count, height + 2, width + 1)[:, 1:-1, 1:]


def descend(cells: Cells, steps: NDArray[np.int32]) -> NDArray[np.bool_]:
    """(N, h, w): the path from the start that always goes to a cell one step nearer to the end.

    ``steps`` are the `distances`. Of several such cells it takes the first of down, left, right,
    up, as in Maze-Hard's labels. No cell of a maze without a way is on the path.
    """
    count, height, width = cells.shape
    stride = width + 1
    flat = np.pad(steps, ((0, 0), (1, 1), (1, 0)), constant_values=-1).reshape(-1)
    on_path = np.zeros(flat.shape, dtype=np.bool_)
    maze, row, column = np.nonzero((cells == START) & (steps >= 0))
    position = (maze * (height + 2) + row + 1) * stride + column + 1
    while len(position):
        on_path[position] = True
        position = position[flat[position] > 0]
        nearer = flat[position] - 1
        options = position + np.array([[stride], [-1], [1], [-stride]])  # down, left, right, up
        first = (flat[options] == nearer).argmax(axis=0)
        position = options[first, np.arange(len(position))]
    return on_path.reshape(count, height + 2, stride)[:, 1:-1, 1:]


def is_shortest_path(cells: Cells, marked: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """(N,): whether the marked cells (N, h, w) are exactly one shortest path, whichever."""
    steps = distances(cells)
    inside = distances(cells, within=marked)
    length = np.where(cells == START, steps, -1).max(axis=(1, 2))
    # On a path of that length over marked cells alone, no cell is left over only if all are on it.
    joined = np.where(cells == START, inside, -1).max(axis=(1, 2)) == length
    shortest: NDArray[np.bool_] = joined & (length >= 0) & (marked.sum(axis=(1, 2)) == length + 1)
    return shortest


def neighbour_count(is_open: NDArray[np.bool_]) -> NDArray[np.int64]:
    """(N, h, w): the number of open neighbours of each cell."""
    padded = np.pad(is_open.astype(np.int64), ((0, 0), (1, 1), (1, 1)))
    count: NDArray[np.int64] = (
        padded[:, :-2, 1:-1] + padded[:, 2:, 1:-1] + padded[:, 1:-1, :-2] + padded[:, 1:-1, 2:]
    )
    return count


def shortest_path(cells: Cells, within: NDArray[np.bool_] | None = None) -> list[Cell]:
    """The path of `descend` through (h, w) codes, start and end included; [] when there is none.

    With ``within`` it leads over these cells alone. A plain search: on one maze with a long path
    it is faster than a numpy step per distance.
    """
    is_open = cells != WALL
    stride = cells.shape[1] + 1
    unseen = bytearray(np.pad(is_open if within is None else is_open & within, ((1, 1), (1, 0))))
    ends = (np.argwhere(cells == code)[0].tolist() for code in (START, END))
    first, last = ((row + 1) * stride + column + 1 for row, column in ends)
    if not (unseen[first] and unseen[last]):
        return []
    steps = {last: 0}
    unseen[last] = 0
    queue = deque([last])
    while queue and first not in steps:
        position = queue.popleft()
        for neighbour in (position - stride, position + 1, position + stride, position - 1):
            if unseen[neighbour]:
                unseen[neighbour] = 0
                steps[neighbour] = steps[position] + 1
                queue.append(neighbour)
    if first not in steps:
        return []
    path = [first]
    while (position := path[-1]) != last:
        nearer = steps[position] - 1
        ways = (position + stride, position - 1, position + 1, position - stride)
        path.append(next(way for way in ways if steps.get(way) == nearer))
    return [(position // stride - 1, position % stride - 1) for position in path]


def generate(size: int, seed: int, numbers: NDArray[np.int64]) -> tuple[Cells, NDArray[np.bool_]]:
    """Depth-first search: (N, s, s) codes, and whether a cell is on the path from start to end.

    A maze depends on size, seed and its own number only. The search begins at the start node, opens
    the wall to a random unvisited neighbour, and backtracks when there is none. Every node has one
    random order of its neighbours and takes the first unvisited one; since which are unvisited does
    not depend on the rest of that order, this equals a new choice at each visit, and needs one draw
    per node. Instead of a stack, each node remembers where it was entered from; following that back
    from the end gives the path.

    Two searches give the same mazes: one advances all mazes together, one numpy step per move (many
    mazes); the other is a plain loop (few mazes, where numpy's overhead per call would dominate).
    """
    count, side = len(numbers), (size + 1) // 2
    nodes = side**2
    stream = Stream(seed, "mazes", size)
    start = stream.below(nodes, numbers, 0)
    # A uniform offset of 1 … nodes - 1 gives any node but the start with equal probability.
    end = (start + 1 + stream.below(nodes - 1, numbers, 1)) % nodes
    orders = stream.below(len(_ORDERS), numbers[:, None], np.arange(2, nodes + 2)[None])
    # A rim of visited nodes replaces checks for the border; the rim at the end of a row is also
    # the one before the next row.
    width, rim = side + 1, ((0, 0), (1, 1), (1, 0))
    rimmed = np.pad(orders.reshape(count, side, side), rim)
    unseen = np.pad(np.ones((count, side, side), dtype=np.uint8), rim)
    first, last = ((node // side + 1) * width + node % side + 1 for node in (start, end))
    search = _search_together if count >= _MIN_TOGETHER else _search_singly
    back = search(16 * rimmed.reshape(count, -1), unseen.reshape(count, -1), first, width)
    on_path = np.zeros(back.size, dtype=np.bool_)
    position = np.arange(count) * back.shape[1] + last
    while len(position):
        on_path[position] = True
        step = back.ravel().take(position)
        position = (position + step)[step != 0]
    steps = back.reshape(count, side + 2, width)[:, 1:-1, 1:]
    marked = on_path.reshape(count, side + 2, width)[:, 1:-1, 1:]
    cells = _cells(np.ones_like(steps, dtype=np.bool_), steps, width).astype(np.uint8)
    for node, code in ((start, START), (end, END)):
        cells[np.arange(count), 2 * (node // side), 2 * (node % side)] = code
    return cells, _cells(marked, steps, width)


def _cells(chosen: NDArray[np.bool_], steps: NDArray[np.int16], width: int) -> NDArray[np.bool_]:
    """(N, s, s): the chosen nodes (N, n, n), and the passages through which they were entered."""
    count, side, _ = chosen.shape
    cells = np.zeros((count, 2 * side - 1, 2 * side - 1), dtype=np.bool_)
    cells[:, ::2, ::2] = chosen
    up, right, down, left = (chosen & (steps == offset) for offset in _offsets(width))
    cells[:, 1::2, ::2] = up[:, 1:] | down[:, :-1]
    cells[:, ::2, 1::2] = left[:, :, 1:] | right[:, :, :-1]
    return cells


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
    orders: NDArray[np.int64], unseen: Cells, start: NDArray[np.int64], width: int
) -> NDArray[np.int16]:
    """(N, nodes): the offset back to where each node was entered from; all mazes in step."""
    count, area = orders.shape
    moves = np.array(_moves(width))
    position = np.arange(count) * area + start
    flat_orders, flat_unseen = orders.astype(np.int16).ravel(), unseen.ravel()
    back = np.zeros(count * area, dtype=np.int16)
    nodes = int(unseen[0].sum())
    flat_unseen[position] = 0
    for _ in range(2 * (nodes - 1)):  # every node but the start is entered once and left once
        mask = flat_unseen.take(position - width)
        mask |= flat_unseen.take(position + 1) << 1
        mask |= flat_unseen.take(position + width) << 2
        mask |= flat_unseen.take(position - 1) << 3
        move = moves.take(flat_orders.take(position) + mask)
        forward = move.astype(np.bool_)
        position += np.where(forward, move, back.take(position))
        entered = position[forward]
        flat_unseen[entered] = 0
        back[entered] = -move[forward]
    return back.reshape(count, area)


def _search_singly(
    orders: NDArray[np.int64], unseen: Cells, start: NDArray[np.int64], width: int
) -> NDArray[np.int16]:
    """The same in a plain loop, one maze after the other."""
    moves = _moves(width)
    backs = np.zeros(orders.shape, dtype=np.int16)
    for number, position in enumerate(start.tolist()):
        order, new = orders[number].tolist(), bytearray(unseen[number])
        back = [0] * len(order)
        new[position] = 0
        while True:
            mask = (
                new[position - width]
                | new[position + 1] << 1
                | new[position + width] << 2
                | new[position - 1] << 3
            )
            move = moves[order[position] + mask]
            if move:
                position += move
                new[position] = 0
                back[position] = -move
            elif back[position]:
                position += back[position]
            else:
                break
        backs[number] = back
    return backs
