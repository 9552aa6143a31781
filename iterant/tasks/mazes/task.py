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

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from iterant.errors import TaskError
from iterant.formatting import counted
from iterant.tasks.datasets import StoredProblems
from iterant.tasks.inputs import PICTURE, TEXT, Material
from iterant.tasks.mazes.generate import parse_problems
from iterant.tasks.mazes.grid import (
    END,
    FREE,
    LARGEST_READ,
    MISSED,
    RIGHT,
    START,
    UNMARKED,
    WRONG,
    Cells,
    Mask,
    descend,
    distances,
    from_image,
    neighbours,
    path_lengths,
    to_image,
    to_pixels,
    to_text,
    whole_cells,
    worst_marks,
)
from iterant.tasks.mazes.image import read_picture
from iterant.tasks.mazes.text import from_text, read_text, split_text
from iterant.tasks.protocol import (
    Batch,
    Description,
    Kind,
    LegendEntry,
    NearMiss,
    Problem,
    RulesCheck,
    Size,
    SizedTask,
    TaskSpec,
    check_described,
    check_prediction,
    kinds_by_range,
)

_SHORTENED = 2
"""Cells by which `Mazes.shorten` moves the end."""
# Blue, orange and purple of Okabe and Ito's palette for colour-blind readers, by mark.
_PAINT = np.array([[0, 0, 0], [0, 114, 178], [230, 159, 0], [204, 121, 167]], dtype=np.uint8)
_ENDS = (LegendEntry("S", "#00ff00", "start"), LegendEntry("E", "#ff0000", "end"))
_PLAIN = (LegendEntry("#", "", "wall"), LegendEntry(".", "", "free"))
_MEANING = {
    RIGHT: LegendEntry("*", "#0072b2", "path"),
    WRONG: LegendEntry("x", "#e69f00", "wrong"),
    MISSED: LegendEntry("o", "#cc79a7", "missed"),
}


class Mazes(SizedTask):
    """The task: ``Mazes().sample(100, size=59, seed=1)``.

    With ``data=PATH`` the mazes come from files of Easy-to-Hard or Maze-Hard instead. ``problems``
    asks for other mazes than the paper's, ``start=any,p=0.1``; see `iterant.tasks.mazes.generate`.
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
        size_means="an odd number of at least 3: squares per side",
        square=2,
    )
    sizes = range(3, 4002, 2)

    def __init__(self, data: str | Path | None = None, problems: str = "") -> None:
        if data is not None and problems:
            raise TaskError("problems from files are of one kind; leave out problems, or data")
        self.data = data
        self.stored = None if data is None else StoredProblems(data, self.spec.channels)
        self.problems, self.kind = problems, parse_problems(problems)
        if data is not None or self.kind.walls is not None:
            self.sizes = range(2, 4002)
            means = "a whole number of at least 2: squares per side"
            self.spec = replace(self.spec, size_means=means)

    def with_problems(self, problems: str) -> Mazes:
        """The task with other mazes, ``start=any``; those of files stay as they are."""
        return self if self.data is not None else type(self)(problems=problems)

    def sample(
        self, count: int, *, size: Size | None = None, seed: int = 0, first: int = 0
    ) -> Batch:
        batch = super().sample(count, size=size, seed=seed, first=first)
        # A path has four pixels per cell, and one step fewer than cells.
        steps = batch.targets.sum(dim=(1, 2)).numpy() // 4 - 1
        return Batch(batch.inputs, batch.targets, {"path_length": steps})

    def _generate(self, size: int, seed: int, numbers: NDArray[np.int64]) -> Batch:
        return _batch(*self.kind.generate(size, seed, numbers))

    def encode(self, problem: str) -> Batch:
        """A maze in text: ``#`` walls, spaces or dots, S and E (or G); lines of one width.

        `iterant.tasks.mazes.text` describes the other ways of drawing one.

        If there is no path the targets are -1 and ``extras["solvable"]`` is False.
        """
        return _solved_maze(from_text(problem))

    def split(self, material: Material) -> Iterable[Material]:
        """Mazes in text are separated by empty lines; a picture is one maze."""
        material.only(TEXT, PICTURE, reader="mazes")
        return split_text(material) if material.kind == TEXT else [material]

    def read(self, material: Material) -> Problem:
        """A maze in text or in a picture; ``mazes.text`` and ``mazes.image`` say which."""
        if material.kind == PICTURE:
            cells, notes = read_picture(material.content)
        else:
            cells, notes = read_text(material.text)
        batch = _solved_maze(cells)
        unsolvable = "" if batch.labelled else "no way leads from start to end"
        return Problem(batch, material.name, notes, unsolvable)

    def answer_text(self, batch: Batch, index: int, prediction: Tensor) -> str:
        """How many cells are marked, and whether they are a path."""
        count = int(whole_cells(prediction[[index]].cpu().numpy()).sum())
        words = self.verdict(batch, index, prediction).words
        return f"{counted(count, 'square')}: {words}"

    tell = answer_text  # its name before 0.2

    def verdict(self, batch: Batch, index: int, prediction: Tensor) -> RulesCheck:
        """Whether the marked cells are one path from start to end, shortest or not."""
        prediction, batch = prediction[[index]], batch[[index]]
        misses, maze = self.near_misses(prediction, batch), from_image(batch.inputs)
        marked = whole_cells(prediction.cpu().numpy())
        if not marked.any():
            return RulesCheck(False, "no way is marked")
        if not misses.connected:
            return RulesCheck(False, "start and end are not joined")
        if not misses.valid:
            words = "start and end are joined, with more marked beside a shortest way"
            return RulesCheck(False, words)
        longer = int(marked.sum()) - 1 - int(path_lengths(maze, distances(maze))[0])
        if longer:
            words = f"a way from start to end, {counted(longer, 'square')} longer than the shortest"
            return RulesCheck(True, words)
        if batch.labelled and misses.wrong:
            return RulesCheck(True, "another shortest way from start to end")
        return RulesCheck(True, "one way from start to end")

    def unlike(self, batch: Batch, index: int, problems: str) -> str:
        """What a maze has that those of another kind do not: loops, a start with several ways."""
        kind, [maze] = parse_problems(problems), from_image(batch.inputs[[index]])
        if kind.p or kind.walls is not None:
            return ""
        is_open = distances(maze[None])[0] >= 0  # cells that are connected with the end
        links = int((is_open[1:] & is_open[:-1]).sum() + (is_open[:, 1:] & is_open[:, :-1]).sum())
        # Without a loop they have one link fewer than there are of them.
        if links >= int(is_open.sum()):
            return "this maze has loops or open rooms, and those of its training have none"
        ways = int((neighbours(is_open[None]).sum(axis=0) * (maze == START)).sum())
        if kind.start == "dead-end" and ways > 1:
            return "the start is not a dead end, as it always is in its training"
        return ""

    def any_right(self, prediction: Tensor, batch: Batch) -> Tensor:
        """(N,) bool: the marked cells are exactly one shortest path, whichever.

        Where a maze has loops, the target is one of several shortest paths.
        """
        # All shortest paths have the same number of pixels.
        marked, wanted = ((grid == 1).flatten(1).sum(dim=1) for grid in (prediction, batch.targets))
        other = self.near_misses(prediction, batch).valid & (marked == wanted).cpu()
        return self.solved(prediction, batch).cpu() | other

    def shorten(self, batch: Batch) -> tuple[Batch, Tensor]:
        """The mazes with their ends moved two cells along the path, and the rows they came from.

        Mazes with a path of two steps or fewer are left out.
        """
        mazes, paths = from_image(batch.inputs), whole_cells(batch.targets.cpu().numpy())
        steps = distances(mazes, within=paths)
        rows = np.flatnonzero(path_lengths(mazes, steps) > _SHORTENED)
        if not len(rows):
            raise TaskError(
                f"no known path has more than {_SHORTENED} steps, so no end can move "
                f"{_SHORTENED} nearer; sample larger mazes"
            )
        chosen, mazes, steps = batch[rows], mazes[rows], steps[rows]
        path = descend(mazes, steps)
        mazes[mazes == END] = FREE
        mazes[path & (steps == _SHORTENED)] = END
        path &= steps >= _SHORTENED
        extras = {**chosen.extras, "path_length": path.sum(axis=(1, 2)) - 1}
        shorter = replace(_batch(mazes, path), extras=extras)
        return shorter.to(batch.inputs.device), torch.from_numpy(rows)

    def kinds(self, batch: Batch) -> list[Kind]:
        """Mazes by the length of their path, in tens of cells; not the `MazeKind` of `problems`."""
        lengths = batch.extras.get("path_length")
        return [] if lengths is None else kinds_by_range(lengths, 10, "squares of way")

    def near_misses(self, prediction: Tensor, batch: Batch) -> NearMiss:
        """How each prediction is wrong: wrong pixels, whether connected, whether valid.

        Valid: the marked pixels are exactly one path from start to end. A path that touches itself,
        so that there is a shortcut, is not valid.
        """
        check_prediction(prediction, batch)
        pixels, mazes = prediction.cpu().numpy() == 1, from_image(batch.inputs)
        wrong = (prediction.cpu() != batch.targets.cpu()).flatten(1).sum(dim=1)
        steps = path_lengths(mazes, distances(mazes, within=whole_cells(pixels)))
        # Each cell of the path is four pixels, and there must be no others.
        valid = (steps >= 0) & (pixels.sum(axis=(1, 2)) == 4 * (steps + 1))
        return NearMiss(wrong, torch.from_numpy(steps >= 0), torch.from_numpy(valid))

    def describe(
        self, batch: Batch, index: int = 0, prediction: Tensor | None = None
    ) -> Description:
        """The image in the paper's colours, the path over it, errors of a prediction marked."""
        check_described(batch, index, prediction)
        image, target = batch.inputs[index].cpu().numpy(), batch.targets[index].cpu().numpy()
        answer = target if prediction is None else prediction[index].cpu().numpy()
        maze = from_image(image[None])[0]
        known = bool((target >= 0).all())
        predicted = answer == 1
        right = predicted & (target != 0)  # unknown targets are -1
        marks = np.select([right, predicted, target == 1], [RIGHT, WRONG, MISSED], UNMARKED)
        caption = f"{maze.shape[0]} by {maze.shape[1]} squares"
        if known:
            caption += f", path of {counted(int(target.sum()) // 4, 'square')}"
        if prediction is not None:
            wrong = int((worst_marks(marks) >= WRONG).sum())
            caption += f", {counted(wrong, 'square')} wrong" if known else ", true path not known"
        cells = (image.transpose(1, 2, 0) * 255).astype(np.uint8)
        # The ends keep their colours where the prediction has them right.
        ends = (image.sum(axis=0) == 1) & (marks == RIGHT)
        painted = (marks != UNMARKED) & ~ends
        cells[painted] = _PAINT[marks[painted]]
        text = to_text(maze, marks)
        legend = [*(entry for entry in _PLAIN if entry.sign in text), *_ENDS]
        legend += [_MEANING[mark] for mark in np.unique(marks).tolist() if mark]
        return Description(
            title="mazes",
            text=text,
            cells=cells,
            legend=tuple(legend),
            caption=caption,
        )


def _batch(cells: Cells, on_path: Mask) -> Batch:
    """Mazes of (N, h, w) codes; the answer is whether a cell is on the path."""
    inputs = torch.from_numpy(to_image(cells)).float()
    return Batch(inputs, torch.from_numpy(to_pixels(on_path.astype(np.uint8))).long())


def _solved_maze(cells: Cells) -> Batch:
    """One maze of (h, w) codes with its shortest path as target."""
    if max(cells.shape) > LARGEST_READ:
        raise TaskError(
            f"mazes of at most {LARGEST_READ} squares per side are read, got "
            f"{cells.shape[0]} by {cells.shape[1]}; give a smaller one"
        )
    steps = distances(cells[None])
    length = path_lengths(cells[None], steps)
    batch = _batch(cells[None], descend(cells[None], steps))
    if length[0] < 0:
        batch.targets.fill_(-1)
    return replace(batch, extras={"path_length": length, "solvable": length >= 0})
