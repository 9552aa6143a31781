"""Mazes: which cells lie on the path from start to end.

    >>> task = Mazes()
    >>> batch = task.sample(100, size=13, seed=1)
    >>> batch.inputs.shape, batch.targets.shape, batch.extras["path_length"][0]
    (torch.Size([100, 3, 32, 32]), torch.Size([100, 32, 32]), 8)
    >>> task.encode("S.#\\n#.#\\n#.E")

Shapes: N mazes of s by s cells, images of 2s + 6 pixels per side: two by two pixels per cell and
three pixels of wall around. The target is 1 on the pixels of the path, ends included. A maze that a
user gives may have loops and so several paths; its target is a shortest one.
"""

from __future__ import annotations

import re

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from iterant.errors import TaskError
from iterant.formatting import counted
from iterant.tasks.inputs import PICTURE, TEXT, Material, Problem
from iterant.tasks.mazes.generate import (
    BORDER,
    END,
    FREE,
    START,
    WALL,
    Cell,
    generate,
    shortest_path,
    to_image,
    to_lattice,
    to_pixels,
)
from iterant.tasks.mazes.image import read_picture
from iterant.tasks.protocol import (
    Batch,
    BenchmarkTask,
    Description,
    Kind,
    NearMiss,
    Size,
    TaskSpec,
    Verdict,
    check_prediction,
    every_position_right,
    ranges,
)

_LARGEST_READ = 2001
"""Most cells per side of a maze that is read; its tensors take a third of a gigabyte."""
_CHUNK = 1 << 24
"""Pixels generated at a time."""
_SHORTENED = 2
"""Cells by which `Mazes.shorten` moves the end."""

# A star, which descriptions draw on a path, is free.
_CODES = {"#": WALL, " ": FREE, ".": FREE, "*": FREE, "S": START, "G": END, "E": END}
_SIGNS = np.array(["#", ".", "S", "E"])
_EXAMPLE = r"try 'S.#\n#.E'"

_UNMARKED, _RIGHT, _WRONG, _MISSED = range(4)
# Blue, orange and purple of Okabe and Ito's palette for colour-blind readers.
_PAINT = np.array([[0, 0, 0], [0, 114, 178], [230, 159, 0], [204, 121, 167]], dtype=np.uint8)


class Mazes(BenchmarkTask):
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
    sizes = range(3, 4002, 2)

    def sample(
        self, count: int, *, size: Size | None = None, seed: int = 0, first: int = 0
    ) -> Batch:
        """Mazes ``first … first + count - 1``, generated depth first from the start."""
        batch = super().sample(count, size=size, seed=seed, first=first)
        # A path has four pixels per cell, and one step fewer than cells.
        steps = batch.targets.sum(dim=(1, 2)).numpy() // 4 - 1
        return Batch(batch.inputs, batch.targets, {"path_length": steps})

    def _generate(self, size: int, seed: int, numbers: NDArray[np.int64]) -> Batch:
        """The mazes of these numbers."""
        count, pixels = len(numbers), 2 * size + 2 * BORDER
        inputs = torch.empty(count, 3, pixels, pixels)
        targets = torch.empty(count, pixels, pixels, dtype=torch.int64)
        # In chunks, because the intermediate arrays would take as much memory again.
        chunk = max(1, _CHUNK // pixels**2)
        for begin in range(0, count, chunk):
            part = slice(begin, begin + chunk)
            lattice, path = generate(size, seed, numbers[part])
            inputs[part] = torch.from_numpy(to_image(lattice))
            targets[part] = torch.from_numpy(to_pixels(path.astype(np.uint8)))
        return Batch(inputs, targets)

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
        blocks = list(re.finditer(r"(.+\n?)+", material.text))
        lines = [material.text[: block.start()].count("\n") + 1 for block in blocks]
        return [
            material.part(block[0].rstrip("\n"), f"line {line}" if len(blocks) > 1 else "")
            for block, line in zip(blocks, lines, strict=True)
        ]

    def read(self, material: Material) -> Problem:
        """A maze in text, or in a picture with dark walls and a green and a red spot."""
        notes: tuple[str, ...] = ()
        if material.kind == PICTURE:
            cells, notes = read_picture(material.content)
        else:
            cells = read_maze(material.text)
        batch = _solved_maze(cells)
        unsolvable = "" if batch.labelled else "no way leads from start to end"
        return Problem(batch, material.name, notes, unsolvable)

    def tell(self, batch: Batch, index: int, prediction: Tensor) -> str:
        """How many cells are marked, and whether they are a path."""
        count = int(whole_cells(prediction[[index]].cpu().numpy()).sum())
        words = self.verdict(batch, index, prediction).words
        return f"{count} square{'' if count == 1 else 's'}: {words}"

    def verdict(self, batch: Batch, index: int, prediction: Tensor) -> Verdict:
        """Whether the marked cells are one path from start to end, shortest or not."""
        pixels = prediction[index].cpu().numpy() == 1
        marked = whole_cells(pixels[None])[0]
        if not marked.any():
            return Verdict(False, "no way is marked")
        path = _path(to_lattice(batch.inputs[[index]])[0], within=marked)
        if not path:
            return Verdict(False, "start and end are not joined")
        if int(pixels.sum()) != 4 * int(marked.sum()):
            return Verdict(False, "start and end are joined, with squares half marked")
        if extra := int(marked.sum()) - len(path):
            beside = counted(extra, "square")
            return Verdict(False, f"start and end are joined, with {beside} beside a shortest way")
        return Verdict(True, "one way from start to end")

    def shorten(self, batch: Batch) -> tuple[Batch, Tensor]:
        """The mazes with their ends moved two cells along the path, and the rows they came from.

        Mazes with a path of two steps or fewer are left out.
        """
        paths = whole_cells(batch.targets.cpu().numpy())
        rows = np.flatnonzero(paths.sum(axis=(1, 2)) > _SHORTENED + 1)
        if not len(rows):
            raise TaskError(
                f"no known path has more than {_SHORTENED} steps, so no end can move "
                f"{_SHORTENED} nearer; sample larger mazes"
            )
        chosen, paths = batch[rows], paths[rows]
        lattice = to_lattice(chosen.inputs)
        for cells, on_path in zip(lattice, paths, strict=True):
            path = _path(cells, within=on_path)
            cells[path[-1]], cells[path[-1 - _SHORTENED]] = FREE, END
            on_path[tuple(np.array(path[-_SHORTENED:]).T)] = False
        targets = torch.from_numpy(to_pixels(paths.astype(np.uint8))).to(batch.targets)
        inputs = torch.from_numpy(to_image(lattice)).to(batch.inputs)
        extras = {**chosen.extras, "path_length": paths.sum(axis=(1, 2)) - 1}
        return Batch(inputs, targets, extras), torch.from_numpy(rows)

    def kinds(self, batch: Batch) -> list[Kind]:
        """Mazes by the length of their path, in tens of cells."""
        lengths = batch.extras.get("path_length")
        return [] if lengths is None else ranges(lengths, 10, "squares of way")

    def near_misses(self, prediction: Tensor, batch: Batch) -> NearMiss:
        """How each prediction is wrong: wrong pixels, whether connected, whether valid.

        Valid: the marked pixels are exactly one path from start to end. A path that touches itself,
        so that there is a shortcut, is not valid.
        """
        solved = every_position_right(prediction, batch).cpu().numpy()
        pixels = prediction.cpu().numpy() == 1
        wrong = (prediction.cpu() != batch.targets.cpu()).flatten(1).sum(dim=1)
        marked, lattice = whole_cells(pixels), to_lattice(batch.inputs)
        connected, valid = np.ones((2, len(pixels)), dtype=np.bool_)
        for row in np.flatnonzero(~solved):
            path = _path(lattice[row], within=marked[row])
            connected[row] = bool(path)
            # Each cell of the path is four pixels, and there must be no others.
            valid[row] = bool(path) and 4 * len(path) == int(pixels[row].sum())
        return NearMiss(wrong, torch.from_numpy(connected), torch.from_numpy(valid))

    def describe(
        self, batch: Batch, index: int = 0, prediction: Tensor | None = None
    ) -> Description:
        """The image in the paper's colours, the path over it, errors of a prediction marked."""
        if prediction is not None:
            check_prediction(prediction, batch)
        image, target = batch.inputs[index].cpu().numpy(), batch.targets[index].cpu().numpy()
        answer = target if prediction is None else prediction[index].cpu().numpy()
        lattice = to_lattice(image[None])[0]
        known = bool((target >= 0).all())
        predicted = answer == 1
        right = predicted & (target != 0)  # unknown targets are -1
        marks = np.select([right, predicted, target == 1], [_RIGHT, _WRONG, _MISSED], _UNMARKED)
        caption = f"{lattice.shape[0]} by {lattice.shape[1]} squares"
        if known:
            caption += f", path of {counted(int(target.sum()) // 4 - 1, 'step')}"
        if prediction is not None:
            wrong = int((marks >= _WRONG).sum())
            caption += f", {counted(wrong, 'pixel')} wrong" if known else ", true path not known"
        cells = (image.transpose(1, 2, 0) * 255).astype(np.uint8)
        # The ends keep their colours where the prediction has them right.
        ends = (image.sum(axis=0) == 1) & (marks == _RIGHT)
        painted = (marks != _UNMARKED) & ~ends
        cells[painted] = _PAINT[marks[painted]]
        return Description(title="mazes", text=_text(lattice, marks), cells=cells, caption=caption)


def whole_cells(pixels: NDArray[np.bool_] | NDArray[np.int64]) -> NDArray[np.bool_]:
    """(N, h, w): whether all four pixels of a cell are 1 in (N, H, W)."""
    inside = pixels[:, BORDER:-BORDER, BORDER:-BORDER] == 1
    whole: NDArray[np.bool_] = (
        inside[:, ::2, ::2] & inside[:, 1::2, ::2] & inside[:, ::2, 1::2] & inside[:, 1::2, 1::2]
    )
    return whole


def _path(cells: NDArray[np.uint8], within: NDArray[np.bool_] | None = None) -> list[Cell]:
    """A shortest path through (h, w) codes, over the cells `within` alone if given."""
    start, end = (np.argwhere(cells == code)[0].tolist() for code in (START, END))
    free = cells != WALL
    return shortest_path(free if within is None else free & within, tuple(start), tuple(end))


def _solved_maze(cells: NDArray[np.uint8]) -> Batch:
    """One maze of (h, w) codes with its shortest path as target."""
    if max(cells.shape) > _LARGEST_READ:
        raise TaskError(
            f"mazes of at most {_LARGEST_READ} squares a side are read, got "
            f"{cells.shape[0]} by {cells.shape[1]}; give a smaller one"
        )
    path = _path(cells)
    on_path = np.zeros_like(cells)
    on_path[tuple(np.array(path, dtype=np.int64).reshape(-1, 2).T)] = 1
    targets = to_pixels(on_path).astype(np.int64)
    if not path:
        targets[:] = -1
    extras: dict[str, NDArray[np.generic]] = {
        "path_length": np.array([len(path) - 1], dtype=np.int64),
        "solvable": np.array([bool(path)]),
    }
    inputs = torch.from_numpy(to_image(cells[None]).astype(np.float32))
    return Batch(inputs, torch.from_numpy(targets)[None], extras)


def read_maze(text: str) -> NDArray[np.uint8]:
    """(h, w) codes of the cells of a maze in text, without the wall around it."""
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
    rim = np.ones(cells.shape, dtype=np.bool_)
    rim[1:-1, 1:-1] = False
    return cells[1:-1, 1:-1] if (cells[rim] == WALL).all() else cells


def _text(cells: NDArray[np.uint8], marks: NDArray[np.int64]) -> str:
    """One character per cell, with the wall around the maze."""
    walled = np.pad(cells, 1)
    height, width = walled.shape
    # Without its outermost pixels the image is two by two pixels per cell, wall around included.
    worst = marks[1:-1, 1:-1].reshape(height, 2, width, 2).max(axis=(1, 3))
    signs = _SIGNS[walled]
    inner = (walled == FREE) | (walled == WALL)
    for mark, sign in ((_RIGHT, "*"), (_WRONG, "x"), (_MISSED, "o")):
        signs[(worst == mark) & inner] = sign
    missed_ends = ~inner & (worst >= _WRONG)
    signs[missed_ends] = np.char.lower(signs[missed_ends])
    return "\n".join("".join(line) for line in signs)
