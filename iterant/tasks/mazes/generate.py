"""Generate mazes: the paper's, and others with starts anywhere, loops, random walls, long paths.

    >>> kind = parse_problems("start=any,p=0.1")
    >>> cells, on_path = kind.generate(33, seed=1, numbers=np.arange(100))
    >>> iterant.task("mazes", problems="start=any,p=0.1").sample(100, size=33)

The text, which is also the flag ``--problems`` and a field of recipes, has these parts:

    start=dead-end   the start is a dead end, both ends are nodes of the lattice: the paper's mazes
    start=any        start and end are any two open cells
    p=0.1            loops: each wall between two nodes is also opened with this probability, as
                     maze-dataset's percolation (Knutson et al.)
    walls=0.3        no lattice: each cell is a wall with this probability (the kind of Maze-Hard);
                     the start is a dead end if there is one, with start=any any connected cell
    path=100-140     only mazes whose shortest path has this many steps; either end may be left out

A maze that does not meet the conditions is drawn again, with the draws of another problem number.
Its target is the path of `grid.descend`. Maze-Unique's kind is size 29, ``start=any,path=100-140``.

Shapes: N mazes of s by s cells. Those in even rows and columns are the n by n nodes of the lattice,
n = (s + 1) / 2, and a cell between two of them is a wall or a passage.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from iterant.errors import TaskError
from iterant.rng import Stream
from iterant.tasks.mazes.grid import (
    END,
    FREE,
    START,
    WALL,
    Cells,
    Mask,
    descend,
    distances,
    neighbours,
    path_lengths,
    with_rim,
    without_rim,
)

_ATTEMPTS = 1_000
"""How often a maze is drawn before the conditions are called impossible."""
_ATTEMPT_STRIDE = 1 << 40
"""Attempt k of problem i takes the draws of problem i + k * stride, far beyond any real one."""
_SCALE = 1 << 32
"""Probabilities are compared with draws below this."""
_ORDERS = tuple(itertools.permutations(range(4)))
"""The orders in which a node tries its four neighbours."""

Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class MazeKind:
    """What mazes are generated; see the module's table."""

    start: str = "dead-end"
    p: float = 0.0
    walls: float | None = None
    shortest: int = 1
    """Fewest steps of the path"""
    longest: float = math.inf
    text: str = field(default="", compare=False)
    """The kind as the user wrote it"""

    def generate(self, size: int, seed: int, numbers: Numbers) -> tuple[Cells, Mask]:
        """(N, s, s) codes, and whether a cell is on the target path.

        A maze depends on the kind, size, seed and its own number only.
        """
        cells = np.empty((len(numbers), size, size), dtype=np.uint8)
        on_path = np.empty(cells.shape, dtype=np.bool_)
        rows = np.arange(len(numbers))
        for attempt in range(_ATTEMPTS):
            drawn = self._draw(size, seed, numbers[rows] + attempt * _ATTEMPT_STRIDE)
            steps = distances(drawn)
            length = path_lengths(drawn, steps)
            accepted = (length >= self.shortest) & (length <= self.longest)
            cells[rows[accepted]] = drawn[accepted]
            on_path[rows[accepted]] = descend(drawn[accepted], steps[accepted])
            rows = rows[~accepted]
            if not len(rows):
                return cells, on_path
        raise TaskError(
            f"no maze of size {size} was found for {self.text!r} in {_ATTEMPTS:,} attempts; "
            "choose another size or other conditions"
        )

    def _draw(self, size: int, seed: int, numbers: Numbers) -> Cells:
        """(N, s, s) codes of one attempt; start and end may not be connected."""
        if self.walls is not None:
            is_open = _draws(seed, "walls", size, numbers) >= self.walls * _SCALE
        else:
            cells = generate(size, seed, numbers)
            if self.start == "dead-end" and not self.p:
                return cells  # the search began at the start, which is therefore a dead end
            is_open = cells != WALL
            if self.p:
                opened = _draws(seed, "percolation", size, numbers) < self.p * _SCALE
                opened[:, 1::2, 1::2] = False  # not between two nodes
                is_open |= opened
        candidates = is_open.copy()
        if self.start == "dead-end" and self.walls is None:
            candidates[:, 1::2], candidates[:, :, 1::2] = False, False  # nodes only
        stream = Stream(seed, "mazes", "ends", size)
        cells = np.where(is_open, FREE, WALL).astype(np.uint8)
        flat, maze = cells.reshape(len(cells), -1), np.arange(len(cells))
        end = _choose(candidates, stream, numbers, 0)
        candidates.reshape(flat.shape)[maze, end] = False
        if self.start == "dead-end":
            dead_ends = candidates & (neighbours(is_open).sum(axis=0, dtype=np.uint8) == 1)
            # With many loops a maze may have none: then any candidate will do.
            has_one = dead_ends.any(axis=(1, 2), keepdims=True)
            candidates = np.where(has_one, dead_ends, candidates)
        flat[maze, end] = END
        flat[maze, _choose(candidates, stream, numbers, 1)] = START
        return cells


def _draws(seed: int, name: str, size: int, numbers: Numbers) -> NDArray[np.int64]:
    """(N, s, s): a random integer below `_SCALE` for each cell."""
    draws = Stream(seed, "mazes", name, size).below(
        _SCALE, numbers[:, None], np.arange(size**2)[None]
    )
    return draws.reshape(-1, size, size)


def _choose(candidates: Mask, stream: Stream, numbers: Numbers, counter: int) -> Numbers:
    """(N,): a random candidate of each maze, as an index over its cells; 0 if it has none."""
    ranks = candidates.reshape(len(candidates), -1).cumsum(axis=1, dtype=np.int32)
    rank = 1 + stream.below(np.maximum(ranks[:, -1], 1), numbers, counter)
    chosen: Numbers = (ranks == rank[:, None]).argmax(axis=1)
    return chosen


def parse_problems(text: str) -> MazeKind:
    """The kind of maze that a text like ``start=any,p=0.1`` means; "" is the paper's."""
    values: dict[str, Any] = {}
    try:
        for part in filter(None, text.replace(" ", "").split(",")):
            key, _, value = part.partition("=")
            if key == "start" and value in ("dead-end", "any"):
                values["start"] = value
            elif key in ("p", "walls") and 0 <= float(value) < 1:
                values[key] = float(value)
            elif key == "path":
                low, dash, high = value.partition("-")
                values["shortest"] = int(low or 1)
                values["longest"] = int(high) if high else math.inf if dash else int(low)
                if not 1 <= values["shortest"] <= values["longest"]:
                    raise ValueError
            else:
                raise ValueError
    except ValueError:
        raise TaskError(
            f"kinds of mazes are start=dead-end or start=any, p=0 to 0.99, walls=0 to 0.99 and "
            f"path=LOW-HIGH, joined by commas, got {text[:60]!r}; try start=any,p=0.1"
        ) from None
    kind = MazeKind(**values, text=text)
    if kind.walls is not None and (kind.p or values.get("start") == "dead-end"):
        raise TaskError("walls=… has no lattice: leave out p and start=dead-end")
    return kind


def generate(size: int, seed: int, numbers: Numbers) -> Cells:
    """The paper's mazes, by depth-first search: (N, s, s) codes.

    A maze depends on size, seed and its own number only. The search begins at the start node, opens
    the wall to a random unvisited neighbour, and backtracks when there is none. Every node has one
    random order of its neighbours and takes the first unvisited one; since which are unvisited does
    not depend on the rest of that order, this equals a new choice at each visit, and needs one draw
    per node. Instead of a stack, each node remembers where it was entered from.
    """
    count, side = len(numbers), (size + 1) // 2
    nodes = side**2
    stream = Stream(seed, "mazes", size)
    start = stream.below(nodes, numbers, 0)
    # A uniform offset of 1 … nodes - 1 gives any node but the start with equal probability.
    end = (start + 1 + stream.below(nodes - 1, numbers, 1)) % nodes
    orders = stream.below(len(_ORDERS), numbers[:, None], np.arange(2, nodes + 2)[None])
    lattice, width = (count, side, side), side + 1
    orders = with_rim(orders.reshape(lattice), 0).reshape(count, -1)
    unseen = with_rim(np.ones((1, side, side), dtype=np.uint8), 0)
    first = (start // side + 1) * width + start % side + 1
    # The next offset for order * 16 + bit mask of unseen neighbours; 0 when all are seen.
    offsets = (-width, 1, width, -1)  # up, right, down, left
    moves = [
        next((offsets[way] for way in order if mask >> way & 1), 0)
        for order in _ORDERS
        for mask in range(16)
    ]
    back = np.empty(orders.shape, dtype=np.int16)
    for maze, position in enumerate(first.tolist()):
        back[maze] = _search(orders[maze].tolist(), bytearray(unseen), position, moves, width)
    # Nodes are open, and so are the passages through which they were entered.
    steps = without_rim(back, lattice)
    up, right, down, left = (steps == offset for offset in offsets)
    is_open = np.zeros((count, size, size), dtype=np.bool_)
    is_open[:, ::2, ::2] = True
    is_open[:, 1::2, ::2] = up[:, 1:] | down[:, :-1]
    is_open[:, ::2, 1::2] = left[:, :, 1:] | right[:, :, :-1]
    cells = np.where(is_open, FREE, WALL).astype(np.uint8)
    for node, code in ((start, START), (end, END)):
        cells[np.arange(count), 2 * (node // side), 2 * (node % side)] = code
    return cells


def _search(
    orders: list[int], unseen: bytearray, position: int, moves: list[int], width: int
) -> list[int]:
    """The offset from every node back to the one that it was entered from; 0 for the start."""
    back = [0] * len(orders)
    unseen[position] = 0
    while True:
        mask = (
            unseen[position - width]
            | unseen[position + 1] << 1
            | unseen[position + width] << 2
            | unseen[position - 1] << 3
        )
        move = moves[16 * orders[position] + mask]
        if move:
            position += move
            unseen[position] = 0
            back[position] = -move
        elif back[position]:
            position += back[position]
        else:
            return back
