"""Mazes beyond the paper's: starts anywhere, loops, random walls, paths of a given length.

    >>> kind = parse_problems("start=any,p=0.1")
    >>> cells, on_path = kind.generate(33, seed=1, numbers=np.arange(100))
    >>> iterant.task("mazes", problems="start=any,p=0.1").sample(100, size=33)

The text, which is also the flag ``--problems`` and a field of recipes, has these parts:

    start=dead-end   the start is a dead end, both ends are nodes of the lattice: the paper's mazes
    start=any        start and end are any two open cells
    p=0.1            loops: each wall between two nodes is also opened with this probability, as
                     maze-dataset's percolation (Knutson et al.)
    walls=0.3        no lattice: each cell is a wall with this probability; start and end are any
                     two connected cells (the kind of Maze-Hard)
    path=100-140     only mazes whose shortest path has this many steps; either end may be left out

A maze that does not meet the conditions is drawn again, with the draws of another problem number.
Its target is the path of `grid.descend`. Maze-Unique's kind is size 29, ``start=any,path=100-140``.

Shapes: N mazes of s by s cells.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
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
    descend,
    distances,
    generate,
    neighbour_count,
)

_ATTEMPTS = 1_000
"""How often a maze is drawn before the conditions are called impossible."""
_ATTEMPT_STRIDE = 1 << 40
"""Attempt k of problem i takes the draws of problem i + k * stride, far beyond any real one."""
_SCALE = 1 << 32
"""Probabilities are compared with draws below this."""

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class MazeKind:
    """What mazes are generated; see the module's table."""

    start: str = "dead-end"
    p: float = 0.0
    walls: float | None = None
    shortest: int = 1
    """Fewest steps of the path"""
    longest: float = math.inf

    @property
    def has_lattice(self) -> bool:
        """Whether cells in even rows and columns are nodes, so that sizes are odd."""
        return self.walls is None

    def generate(
        self, size: int, seed: int, numbers: NDArray[np.int64]
    ) -> tuple[Cells, NDArray[np.bool_]]:
        """(N, s, s) codes, and whether a cell is on the target path.

        A maze depends on the kind, size, seed and its own number only.
        """
        if self == MazeKind():
            return generate(size, seed, numbers)
        cells = np.empty((len(numbers), size, size), dtype=np.uint8)
        on_path = np.empty(cells.shape, dtype=np.bool_)
        rows = np.arange(len(numbers))
        for attempt in range(_ATTEMPTS):
            drawn = self._draw(size, seed, numbers[rows] + attempt * _ATTEMPT_STRIDE)
            steps = distances(drawn)
            length = np.where(drawn == START, steps, 0).max(axis=(1, 2))
            accepted = (length >= self.shortest) & (length <= self.longest)
            cells[rows[accepted]] = drawn[accepted]
            on_path[rows[accepted]] = descend(drawn[accepted], steps[accepted])
            rows = rows[~accepted]
            if not len(rows):
                return cells, on_path
        raise TaskError(
            f"no maze of size {size} was found for {self.described()!r} in {_ATTEMPTS:,} attempts; "
            "choose another size or other conditions"
        )

    def _draw(self, size: int, seed: int, numbers: NDArray[np.int64]) -> Cells:
        """(N, s, s) codes of one attempt; start and end may not be connected."""
        if self.walls is None:
            cells = generate(size, seed, numbers)[0]
            if self.p:
                self._open_walls(cells, seed, numbers)
        else:
            stream = Stream(seed, "mazes", "walls", size)
            draws = stream.below(_SCALE, numbers[:, None], np.arange(size**2)[None])
            cells = np.where(draws < self.walls * _SCALE, WALL, FREE).astype(np.uint8)
            cells = cells.reshape(-1, size, size)
        if self.walls is not None or self.start == "any":
            candidates = cells != WALL
        elif self.p:
            candidates = np.zeros(cells.shape, dtype=np.bool_)
            candidates[:, ::2, ::2] = True
        else:
            return cells  # the search began at the start, which is therefore a dead end
        cells = np.where(cells == WALL, WALL, FREE).astype(np.uint8)
        stream = Stream(seed, "mazes", "ends", size)
        flat = cells.reshape(len(cells), -1)
        end = _choose(candidates, stream, numbers, 0)
        candidates.reshape(flat.shape)[np.arange(len(flat)), end] = False
        if self.start == "dead-end":
            dead_ends = candidates & (neighbour_count(cells != WALL) == 1)
            # With many loops a maze may have none: then any candidate will do.
            has_one = dead_ends.any(axis=(1, 2), keepdims=True)
            candidates = np.where(has_one, dead_ends, candidates)
        start = _choose(candidates, stream, numbers, 1)
        flat[np.arange(len(flat)), end] = END
        flat[np.arange(len(flat)), start] = START
        return cells

    def _open_walls(self, cells: Cells, seed: int, numbers: NDArray[np.int64]) -> None:
        """Open each wall between two nodes with probability p."""
        size = cells.shape[1]
        stream = Stream(seed, "mazes", "percolation", size)
        draws = stream.below(_SCALE, numbers[:, None], np.arange(size**2)[None])
        is_open = (draws < self.p * _SCALE).reshape(cells.shape)
        for between in (np.s_[:, 1::2, ::2], np.s_[:, ::2, 1::2]):
            cells[between][is_open[between] & (cells[between] == WALL)] = FREE

    def described(self) -> str:
        """The text that `parse_problems` reads; "" for the paper's mazes."""
        longest = "" if math.isinf(self.longest) else int(self.longest)
        parts = {
            "start": self.start,
            "p": self.p,
            "walls": self.walls,
            "path": f"{self.shortest}-{longest}",
        }
        default = {"start": "dead-end", "p": 0.0, "walls": None, "path": "1-"}
        return ",".join(f"{key}={value}" for key, value in parts.items() if value != default[key])


def _choose(
    candidates: Mask, stream: Stream, numbers: NDArray[np.int64], counter: int
) -> NDArray[np.int64]:
    """(N,): a random candidate of each maze, as an index over its cells; 0 if it has none."""
    flat = candidates.reshape(len(candidates), -1)
    ranks = flat.cumsum(axis=1, dtype=np.int32)
    rank = 1 + stream.below(np.maximum(ranks[:, -1], 1), numbers, counter)
    chosen: NDArray[np.int64] = (ranks == rank[:, None]).argmax(axis=1)
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
    kind = MazeKind(**values)
    if kind.walls is not None and (kind.p or values.get("start") == "dead-end"):
        raise TaskError("walls=… has no lattice: leave out p and start=dead-end")
    return kind
