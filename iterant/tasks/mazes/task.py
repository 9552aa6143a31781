"""Mazes: which squares lie on the path from start to end.

    >>> task = Mazes()
    >>> batch = task.sample(100, size=13, seed=1)
    >>> batch.inputs.shape, batch.targets.shape, batch.extras["path_length"][0]
    (torch.Size([100, 3, 32, 32]), torch.Size([100, 32, 32]), 8)
    >>> task.encode("S.#\\n#.#\\n#.E")

Shapes: N mazes of s by s squares, images of 2s + 6 pixels a side: two by two pixels per square and
three pixels of wall around. The target is 1 on the pixels of the path, ends included. A maze that a
user gives may have loops and so several paths; its target is a shortest one.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from iterant.errors import TaskError
from iterant.formatting import byte_size, counted
from iterant.tasks.datasets import Stored
from iterant.tasks.inputs import PICTURE, TEXT, Material, Problem
from iterant.tasks.mazes.generate import (
    BORDER,
    END,
    FREE,
    START,
    WALL,
    Square,
    generate,
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
    check_prediction,
    every_position_right,
    ranges,
    whole_number,
)
from iterant.tasks.rng import problem_numbers

_LARGEST_READ = 2001
"""Squares per side of a maze that is read: its tensors take a third of a gigabyte."""
_LARGEST = 4001
_MOST_BYTES = 64 * 2**30
_CHUNK = 1 << 24
"""Pixels generated at a time."""
_SHORTENED = 2
"""Squares by which `Mazes.shorten` moves the end."""


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
        """Generate mazes, or draw them from the files under `data`."""
        self.data = data
        self._stored = None if data is None else Stored(data, channels=self.spec.channels)

    def check_size(self, size: Size | None) -> int:
        """The size if it is odd and within limits; 9, or the stored size, for None."""
        if size is None:
            size = (self._stored and self._stored.only_size()) or self.spec.train_size
        if isinstance(size, bool) or not isinstance(size, int | np.integer) or size < 3:
            raise TaskError(f"maze size must be odd and at least 3, got {size!r}; try 9")
        if size > _LARGEST:
            raise TaskError(
                f"maze size must be at most {_LARGEST}, got {size}: a single larger maze takes "
                f"{byte_size(_bytes(1, _LARGEST))} as tensors and more; try {_LARGEST}"
            )
        if size % 2 == 0:
            raise TaskError(f"maze size must be odd and at least 3, got {size}; try {size + 1}")
        return int(size)

    def parse_size(self, text: str) -> int:
        """A size as text: ``"59"``."""
        return self.check_size(whole_number(text, self.spec))

    def sample(
        self, count: int, *, size: Size | None = None, seed: int = 0, first: int = 0
    ) -> Batch:
        """Mazes ``first … first + count - 1``, generated depth first from the start."""
        side = self.check_size(size)
        if self._stored:
            return _with_length(self._stored.sample(count, size=side, seed=seed, first=first))
        numbers = problem_numbers(count, first)
        if _bytes(count, side) > _MOST_BYTES:
            raise TaskError(
                f"{count:,} mazes of size {side} take {byte_size(_bytes(count, side))} "
                "as tensors; ask for fewer at a time (first= goes on where the last ended)"
            )
        pixels = 2 * side + 2 * BORDER
        inputs = torch.empty(count, 3, pixels, pixels)
        targets = torch.empty(count, pixels, pixels, dtype=torch.int64)
        # In chunks, because the intermediate arrays would take as much memory again.
        chunk = max(1, _CHUNK // pixels**2)
        for begin in range(0, count, chunk):
            part = slice(begin, begin + chunk)
            trees = generate(side, seed, numbers[part])
            inputs[part] = torch.from_numpy(to_image(trees.lattice()))
            targets[part] = torch.from_numpy(to_pixels(trees.path().astype(np.uint8)))
        return _with_length(Batch(inputs, targets))

    def encode(self, problem: str) -> Batch:
        """A maze in text: ``#`` walls, spaces or dots, S and E (or G); lines of one width.

        If there is no path the targets are -1 and ``extras["solvable"]`` is False.
        """
        return _solved_maze(read_maze(problem))

    def split(self, material: Material) -> list[Material]:
        """Mazes in text are separated by empty lines; a picture is one maze."""
        material.only(TEXT, PICTURE, reader="mazes")
        if material.kind == PICTURE:
            return [material]
        blocks: list[tuple[int, list[str]]] = []
        previous = ""
        for number, line in enumerate(material.text.split("\n"), start=1):
            if line and not previous:
                blocks.append((number, []))
            if line:
                blocks[-1][1].append(line)
            previous = line
        many = len(blocks) > 1
        return [
            material.part("\n".join(lines), f"line {number}" if many else "")
            for number, lines in blocks
        ]

    def read(self, material: Material) -> Problem:
        """A maze in text, or in a picture with dark walls and a green and a red spot."""
        if material.kind == PICTURE:
            squares, notes = read_picture(material.content)
        else:
            squares, notes = read_maze(material.text), ()
        batch = _solved_maze(squares)
        unsolvable = "" if batch.extras["solvable"][0] else "no way leads from start to end"
        return Problem(batch, material.name, notes, unsolvable)

    def solved(self, prediction: Tensor, batch: Batch) -> Tensor:
        """(N,) bool: every pixel right."""
        return every_position_right(prediction, batch)

    def tell(self, batch: Batch, index: int, prediction: Tensor) -> str:
        """How many squares are marked, and whether they are a path."""
        count = int(whole_squares(prediction[index : index + 1].cpu().numpy()).sum())
        words = self.verdict(batch, index, prediction).words
        return f"{count} square{'' if count == 1 else 's'}: {words}"

    def verdict(self, batch: Batch, index: int, prediction: Tensor) -> Verdict:
        """Whether the marked squares are one path from start to end, shortest or not."""
        pixels = prediction[index].cpu().numpy() == 1
        marked = whole_squares(pixels[None])[0]
        if not marked.any():
            return Verdict(False, "no way is marked")
        path = _path(to_lattice(batch.inputs[index : index + 1])[0], within=marked)
        if not path:
            return Verdict(False, "start and end are not joined")
        if not np.array_equal(to_pixels(marked.astype(np.uint8)) == 1, pixels):
            return Verdict(False, "start and end are joined, with squares half marked")
        if extra := int(marked.sum()) - len(path):
            beside = counted(extra, "square")
            return Verdict(False, f"start and end are joined, with {beside} beside a shortest way")
        return Verdict(True, "one way from start to end")

    def shorten(self, batch: Batch) -> tuple[Batch, Tensor]:
        """The mazes with their ends moved two squares along the path, and the rows they came from.

        Mazes with a path of two steps or fewer are left out.
        """
        if not batch.labelled:
            raise TaskError(
                "an end moves along the known way, and these mazes have none; sample some"
            )
        paths = whole_squares(batch.targets.cpu().numpy())
        rows = np.flatnonzero(paths.sum(axis=(1, 2)) > _SHORTENED + 1)
        if not len(rows):
            raise TaskError(
                f"every way here has {_SHORTENED} steps or fewer, so no end can move {_SHORTENED} "
                "nearer; take larger mazes"
            )
        lattice, paths = to_lattice(batch.inputs[torch.from_numpy(rows)]), paths[rows]
        end = np.argwhere(lattice == END)  # (n, 3) maze, row, column
        lattice[tuple(end.T)] = FREE
        for _ in range(_SHORTENED):
            paths[tuple(end.T)] = False
            rimmed = np.pad(paths, ((0, 0), (1, 1), (1, 1)))
            following = end.copy()
            for offset in ((0, -1, 0), (0, 0, 1), (0, 1, 0), (0, 0, -1)):
                neighbour = end + np.array(offset)
                on_path = rimmed[neighbour[:, 0], neighbour[:, 1] + 1, neighbour[:, 2] + 1]
                following[on_path] = neighbour[on_path]
            end = following
        lattice[tuple(end.T)] = END
        targets = torch.from_numpy(to_pixels(paths.astype(np.uint8))).to(batch.targets)
        inputs = torch.from_numpy(to_image(lattice)).to(batch.inputs)
        extras = {name: column[rows] for name, column in batch.extras.items()}
        extras["path_length"] = paths.sum(axis=(1, 2)) - 1
        return Batch(inputs, targets, extras), torch.from_numpy(rows)

    def kinds(self, batch: Batch) -> list[Kind]:
        """Mazes by the length of their path, in tens of squares."""
        lengths = batch.extras.get("path_length")
        return [] if lengths is None else ranges(lengths, 10, "squares of way")

    def misses(self, prediction: Tensor, batch: Batch) -> NearMiss:
        """How each prediction is wrong: pixels, connected, valid all the same.

        Valid is a path without branches or loose pixels; one that runs beside itself, where a
        shortcut would do, does not count.
        """
        solved = every_position_right(prediction, batch).cpu().numpy()
        pixels = prediction.cpu().numpy() == 1
        wrong = (prediction.cpu() != batch.targets.cpu()).flatten(1).sum(dim=1)
        marked, lattice = whole_squares(pixels), to_lattice(batch.inputs)
        connected, valid = np.ones((2, len(pixels)), dtype=np.bool_)
        for row in np.flatnonzero(~solved):
            path = _path(lattice[row], within=marked[row])
            connected[row] = bool(path)
            # Each square of the path is four pixels, and there must be no others.
            valid[row] = bool(path) and 4 * len(path) == int(pixels[row].sum())
        return NearMiss(wrong, torch.from_numpy(connected), torch.from_numpy(valid))

    def describe(
        self, batch: Batch, index: int = 0, prediction: Tensor | None = None
    ) -> Description:
        """The image in the paper's colours, the path over it, errors of a prediction marked."""
        if prediction is not None:
            check_prediction(prediction, batch)
        return describe_maze(
            batch.inputs[index].cpu().numpy(),
            batch.targets[index].cpu().numpy(),
            None if prediction is None else prediction[index].cpu().numpy(),
        )


def _bytes(count: int, size: int) -> int:
    """Size of a batch in memory: three float32 and one int64 per pixel."""
    return count * (2 * size + 2 * BORDER) ** 2 * 20


def _with_length(batch: Batch) -> Batch:
    """Add the steps from start to end: a path has four pixels per square."""
    squares = batch.targets.sum(dim=(1, 2)).numpy() // 4
    return Batch(batch.inputs, batch.targets, {"path_length": squares - 1})


def whole_squares(pixels: NDArray[np.bool_] | NDArray[np.int64]) -> NDArray[np.bool_]:
    """(N, h, w): whether all four pixels of a square are 1 in (N, H, W)."""
    inside = pixels[:, BORDER:-BORDER, BORDER:-BORDER] == 1
    whole: NDArray[np.bool_] = (
        inside[:, ::2, ::2] & inside[:, 1::2, ::2] & inside[:, ::2, 1::2] & inside[:, 1::2, 1::2]
    )
    return whole


def _path(squares: NDArray[np.uint8], within: NDArray[np.bool_] | None = None) -> list[Square]:
    """A shortest path through (h, w) codes, over the squares `within` alone if given."""
    start, end = (np.argwhere(squares == code)[0].tolist() for code in (START, END))
    free = squares != WALL
    return shortest_path(free if within is None else free & within, tuple(start), tuple(end))


def _solved_maze(squares: NDArray[np.uint8]) -> Batch:
    """One maze of (h, w) codes with its shortest path as target."""
    if max(squares.shape) > _LARGEST_READ:
        height, width = squares.shape
        raise TaskError(
            f"mazes of at most {_LARGEST_READ} squares a side are read, got {height} by {width}"
        )
    path = _path(squares)
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
