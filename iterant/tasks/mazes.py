"""Mazes: which squares lie on the way from start to end.

    >>> task = Mazes()
    >>> batch = task.sample(100, size=13, seed=1)
    >>> batch.inputs.shape, batch.targets.shape, batch.extras["path_length"][0]
    (torch.Size([100, 3, 32, 32]), torch.Size([100, 32, 32]), 8)
    >>> task.encode("S.#\\n#.#\\n#.E")

Shapes: N mazes, s squares a side, pixels 2s + 6 a side. A maze of size s is a lattice of s by s
squares in which every path runs; in the benchmark's image each square is two by two pixels and
three pixels of wall lie around. The answer is 1 on the pixels of the one path, ends included.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from iterant.errors import TaskError
from iterant.tasks.answers import Verdict
from iterant.tasks.carving import carve, shortest_path
from iterant.tasks.chance import problem_numbers
from iterant.tasks.easy_to_hard import Stored
from iterant.tasks.edits import Kind, Misses, ranges
from iterant.tasks.lattice import BORDER, to_image, to_lattice, to_pixels
from iterant.tasks.maze_answers import judge_way, tell_way
from iterant.tasks.maze_edits import misses, shorten
from iterant.tasks.maze_reading import maze_batch, maze_parts, maze_problem
from iterant.tasks.maze_views import describe_maze, read_maze
from iterant.tasks.protocol import (
    Batch,
    Description,
    Size,
    TaskSpec,
    every_position_right,
    whole_number,
)
from iterant.tasks.reading import Material, Problem

__all__ = ["Mazes", "shortest_path", "to_image", "to_lattice"]

_LARGEST = 4001
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
        if size > _LARGEST:
            raise TaskError(
                f"maze size must be at most {_LARGEST}, got {size}: a single larger maze takes "
                f"{_bytes(1, _LARGEST) / 2**30:.1f} GiB as tensors and more; try {_LARGEST}"
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

    def misses(self, prediction: Tensor, batch: Batch) -> Misses:
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
