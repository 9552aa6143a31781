"""Mazes: which squares lie on the way from start to end.

    >>> task = Mazes()
    >>> batch = task.sample(100, size=13, seed=1)
    >>> batch.inputs.shape, batch.targets.shape, batch.extras["path_length"][0]
    (torch.Size([100, 3, 32, 32]), torch.Size([100, 32, 32]), 8)
    >>> task.encode("S.#\\n#.#\\n#.E")

What is to be said of an answer to a maze, whether or not the right one is known.

A maze with loops has several ways; the labelled one is a shortest, and any other is still a way.

Mazes from text and pictures, with their shortest way where there is one.

Shapes: N mazes, s squares a side, pixels 2s + 6 a side. A maze of size s is a lattice of s by s
squares in which every path runs; in the benchmark's image each square is two by two pixels and
three pixels of wall lie around. The answer is 1 on the pixels of the one path, ends included.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from iterant.errors import TaskError
from iterant.formatting import counted
from iterant.tasks.datasets import Stored
from iterant.tasks.inputs import PICTURE, TEXT, Material, Problem
from iterant.tasks.mazes.edits import misses, shorten, whole_squares
from iterant.tasks.mazes.generate import (
    BORDER,
    END,
    START,
    WALL,
    carve,
    shortest_path,
    to_image,
    to_lattice,
    to_pixels,
)
from iterant.tasks.mazes.image import read_picture
from iterant.tasks.mazes.text import describe_maze, read_maze
from iterant.tasks.protocol import (
    Batch,
    Description,
    Kind,
    NearMiss,
    Size,
    TaskSpec,
    Verdict,
    every_position_right,
    ranges,
    whole_number,
)
from iterant.tasks.rng import problem_numbers


def tell_way(batch: Batch, index: int, prediction: Tensor) -> str:
    """How many squares are marked, and what they come to."""
    marked, _ = _marked(batch, index, prediction)
    count = int(marked.sum())
    squares = f"{count} square{'' if count == 1 else 's'}"
    return f"{squares}: {judge_way(batch, index, prediction).words}"


def judge_way(batch: Batch, index: int, prediction: Tensor) -> Verdict:
    """Whether the marked squares are one way from start to end and nothing else."""
    marked, lattice = _marked(batch, index, prediction)
    pixels = prediction[index].cpu().numpy() == 1
    if not marked.any():
        return Verdict(False, "no way is marked")
    start, end = (np.argwhere(lattice == code)[0].tolist() for code in (START, END))
    way = shortest_path(marked & (lattice != WALL), (start[0], start[1]), (end[0], end[1]))
    if not way:
        return Verdict(False, "start and end are not joined")
    if not np.array_equal(to_pixels(marked.astype(np.uint8)) == 1, pixels):
        return Verdict(False, "start and end are joined, with squares half marked")
    spare = int(marked.sum()) - len(way)
    if spare:
        beside = counted(spare, "square")
        return Verdict(False, f"start and end are joined, with {beside} beside a shortest way")
    return Verdict(True, "one way from start to end")


def _marked(
    batch: Batch, index: int, prediction: Tensor
) -> tuple[NDArray[np.bool_], NDArray[np.uint8]]:
    """(h, w) squares that are wholly marked, and the maze's own squares."""
    pixels = prediction[index : index + 1].cpu().numpy()
    return whole_squares(pixels)[0], to_lattice(batch.inputs[index : index + 1])[0]


_LARGEST = 2001
"""Squares a side of a maze that is read: its tensors take a third of a gigabyte."""
NO_WAY = "no way leads from start to end"


def maze_parts(material: Material) -> list[Material]:
    """Mazes in text stand apart by empty lines; a picture is one maze."""
    material.only(TEXT, PICTURE, reader="mazes")
    if material.kind == PICTURE:
        return [material]
    blocks: list[tuple[int, list[str]]] = []
    open_block = False
    for number, line in enumerate(material.text.split("\n"), start=1):
        if not line:
            open_block = False
        elif open_block:
            blocks[-1][1].append(line)
        else:
            blocks.append((number, [line]))
            open_block = True
    many = len(blocks) > 1
    return [
        material.part("\n".join(lines), f"line {number}" if many else "")
        for number, lines in blocks
    ]


def maze_problem(material: Material) -> Problem:
    """The maze of a picture or a text, solved by search."""
    notes: tuple[str, ...] = ()
    if material.kind == PICTURE:
        squares, notes = read_picture(material.content)
    else:
        squares = read_maze(material.text)
    batch = maze_batch(squares)
    solvable = bool(batch.extras["solvable"][0])
    return Problem(batch, material.name, notes, "" if solvable else NO_WAY)


def maze_batch(squares: NDArray[np.uint8]) -> Batch:
    """One maze of (h, w) codes; targets are -1 where no way leads from start to end."""
    if max(squares.shape) > _LARGEST:
        height, width = squares.shape
        raise TaskError(
            f"mazes of at most {_LARGEST} squares a side are read, got {height} by {width}"
        )
    ends = [tuple(np.argwhere(squares == code)[0].tolist()) for code in (START, END)]
    path = shortest_path(squares != WALL, ends[0], ends[1])
    targets = np.full(to_pixels(squares).shape, -1, dtype=np.int64)
    if path:
        on_path = np.zeros_like(squares)
        on_path[tuple(np.array(path).T)] = 1
        targets = to_pixels(on_path).astype(np.int64)
    extras: dict[str, NDArray[np.generic]] = {
        "path_length": np.array([len(path) - 1], dtype=np.int64),
        "solvable": np.array([bool(path)]),
    }
    inputs = torch.from_numpy(to_image(squares[None]).astype(np.float32))
    return Batch(inputs, torch.from_numpy(targets)[None], extras)


__all__ = ["Mazes", "shortest_path", "to_image", "to_lattice"]

_MOST = 4001
_MOST_BYTES = 64 * 2**30
_PORTION = 1 << 24
"""Pixels made at a time."""


class Mazes:
    """The task: ``Mazes().sample(100, size=59, seed=1)``.

    With ``data=PATH`` the mazes come from files of the Easy-to-Hard benchmark instead.
    """

    spec = TaskSpec(
        name="mazes",
        title="mazes",
        dims=2,
        channels=3,
        readout="argmax-open",
        train_size=9,
        train_count=50_000,
        watch_sizes=(13, 33),
        tests=((13, 10_000), (33, 10_000), (59, 1_000), (201, 100)),
        size_means="an odd number of at least 3: lattice squares a side",
        square=2,
    )

    def __init__(self, data: str | Path | None = None) -> None:
        """Make mazes, or draw them from the files under `data`."""
        self.data = data
        self._stored = None if data is None else Stored(data, channels=self.spec.channels)

    def check_size(self, size: Size | None) -> int:
        """The size itself if mazes of it exist, 9 for None."""
        if size is None:
            size = (self._stored and self._stored.only_size()) or self.spec.train_size
        if isinstance(size, bool) or not isinstance(size, int | np.integer) or size < 3:
            raise TaskError(f"maze size must be odd and at least 3, got {size!r}; try 9")
        if size > _MOST:
            raise TaskError(
                f"maze size must be at most {_MOST}, got {size}: a single larger maze takes "
                f"{_bytes(1, _MOST) / 2**30:.1f} GiB as tensors and more; try {_MOST}"
            )
        if size % 2 == 0:
            raise TaskError(f"maze size must be odd and at least 3, got {size}; try {size + 1}")
        return int(size)

    def parse_size(self, text: str) -> int:
        """A size as written: ``"59"``."""
        return self.check_size(whole_number(text, self.spec))

    def sample(
        self, count: int, *, size: Size | None = None, seed: int = 0, first: int = 0
    ) -> Batch:
        """Mazes ``first … first + count - 1``, carved depth first from the start."""
        side = self.check_size(size)
        if self._stored:
            return _with_length(self._stored.sample(count, size=side, seed=seed, first=first))
        numbers = problem_numbers(count, first)
        if _bytes(count, side) > _MOST_BYTES:
            raise TaskError(
                f"{count:,} mazes of size {side} take {_bytes(count, side) / 2**30:,.0f} GiB "
                "as tensors; ask for fewer at a time (first= goes on where the last ended)"
            )
        pixels = 2 * side + 2 * BORDER
        inputs = torch.empty(count, 3, pixels, pixels)
        targets = torch.empty(count, pixels, pixels, dtype=torch.int64)
        # Portions stay small as bytes; only the finished tensors take their full width.
        portion = max(1, _PORTION // pixels**2)
        for begin in range(0, count, portion):
            part = slice(begin, begin + portion)
            trees = carve(side, seed, numbers[part])
            inputs[part] = torch.from_numpy(to_image(trees.lattice()))
            targets[part] = torch.from_numpy(to_pixels(trees.path().astype(np.uint8)))
        return _with_length(Batch(inputs, targets))

    def encode(self, problem: str) -> Batch:
        """A maze drawn with ``#`` walls, spaces or dots, S and E (or G); lines of one width.

        Where no way leads from start to end the targets are -1 and extras say not solvable; with
        loops, the targets are one of the shortest ways.
        """
        return maze_batch(read_maze(problem))

    def split(self, material: Material) -> list[Material]:
        """Mazes in text stand apart by empty lines; a picture is one maze."""
        return maze_parts(material)

    def read(self, material: Material) -> Problem:
        """A maze drawn in text, or in a picture with dark walls and a green and a red spot."""
        return maze_problem(material)

    def solved(self, prediction: Tensor, batch: Batch) -> Tensor:
        """(N,) bool: every pixel right."""
        return every_position_right(prediction, batch)

    def tell(self, batch: Batch, index: int, prediction: Tensor) -> str:
        """How many squares are marked, and whether they are a way."""
        return tell_way(batch, index, prediction)

    def verdict(self, batch: Batch, index: int, prediction: Tensor) -> Verdict:
        """Whether the marked squares are one way from start to end."""
        return judge_way(batch, index, prediction)

    def shorten(self, batch: Batch) -> tuple[Batch, Tensor]:
        """The mazes with their ends two squares nearer, and the rows whose way was long enough."""
        return shorten(batch)

    def kinds(self, batch: Batch) -> list[Kind]:
        """Mazes by the length of their way, in tens of squares."""
        lengths = batch.extras.get("path_length")
        return [] if lengths is None else ranges(lengths, 10, "squares of way")

    def misses(self, prediction: Tensor, batch: Batch) -> NearMiss:
        """How each prediction is wrong: pixels, connected, valid all the same."""
        return misses(prediction, batch)

    def describe(
        self, batch: Batch, index: int = 0, prediction: Tensor | None = None
    ) -> Description:
        """The image in the paper's colours, a path over it, a prediction's errors marked."""
        return describe_maze(
            batch.inputs[index].cpu().numpy(),
            batch.targets[index].cpu().numpy(),
            None if prediction is None else prediction[index].cpu().numpy(),
        )


def _bytes(count: int, size: int) -> int:
    """What a batch takes: three float32 and one int64 a pixel."""
    return count * (2 * size + 2 * BORDER) ** 2 * 20


def _with_length(batch: Batch) -> Batch:
    """Add the steps from start to end: four pixels a square, one square more than steps."""
    squares = batch.targets.sum(dim=(1, 2)).numpy() // 4
    return Batch(batch.inputs, batch.targets, {"path_length": squares - 1})
