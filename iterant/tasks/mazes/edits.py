"""Mazes changed a little, and wrong answers looked at closely.

    >>> shorter, rows = shorten(batch)       # the end two squares nearer the start
    >>> misses(prediction, batch).valid      # a way through, if not the labelled one

Shapes: N mazes, h by w squares; squares of a way are counted from the end.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from iterant.errors import TaskError
from iterant.tasks.mazes.generate import (
    BORDER,
    END,
    FREE,
    START,
    WALL,
    shortest_path,
    to_image,
    to_lattice,
    to_pixels,
)
from iterant.tasks.protocol import Batch, NearMiss

NEARER = 2
"""Squares by which the end moves along the way."""


def shorten(batch: Batch) -> tuple[Batch, Tensor]:
    """The mazes with their ends moved two squares along the way, and the rows they came from.

    A way of two steps or fewer would end at its start or beyond: such mazes are left out.
    """
    if not batch.labelled:
        raise TaskError("an end moves along the known way, and these mazes have none; sample some")
    ways = whole_squares(batch.targets.cpu().numpy())
    rows = np.flatnonzero(ways.sum(axis=(1, 2)) > NEARER + 1)
    if not len(rows):
        raise TaskError(
            f"every way here has {NEARER} steps or fewer, so no end can move {NEARER} nearer; "
            "take larger mazes"
        )
    lattice, ways = to_lattice(batch.inputs[torch.from_numpy(rows)]), ways[rows]
    place = np.argwhere(lattice == END)
    lattice[tuple(place.T)] = FREE
    for _ in range(NEARER):
        place = _onwards(ways, place)
    lattice[tuple(place.T)] = END
    targets = torch.from_numpy(to_pixels(ways.astype(np.uint8))).to(batch.targets)
    inputs = torch.from_numpy(to_image(lattice)).to(batch.inputs)
    extras = {name: column[rows] for name, column in batch.extras.items()}
    extras["path_length"] = ways.sum(axis=(1, 2)) - 1
    return Batch(inputs, targets, extras), torch.from_numpy(rows)


def _onwards(ways: NDArray[np.bool_], place: NDArray[np.int64]) -> NDArray[np.int64]:
    """(N, 3) maze, row, column of the next square of each way, whose last square is taken off."""
    ways[tuple(place.T)] = False
    rimmed = np.pad(ways, ((0, 0), (1, 1), (1, 1)))
    following = place.copy()
    for offset in ((0, -1, 0), (0, 0, 1), (0, 1, 0), (0, 0, -1)):
        there = place + np.array(offset)
        on_way = rimmed[there[:, 0], there[:, 1] + 1, there[:, 2] + 1]
        following[on_way] = there[on_way]
    return following


def misses(prediction: Tensor, batch: Batch) -> NearMiss:
    """How each prediction is wrong.

    Valid is a way without side branches or loose pixels; one that runs beside itself, where a
    shortcut would do, is not counted as valid.
    """
    if prediction.shape != batch.targets.shape or not batch.labelled:
        raise TaskError(
            f"a prediction of shape {tuple(prediction.shape)} cannot be compared with answers of "
            f"shape {tuple(batch.targets.shape)}; give one class a position of labelled mazes"
        )
    said = prediction.cpu().numpy() == 1
    wrong = (prediction.cpu() != batch.targets.cpu()).flatten(1).sum(dim=1)
    whole = whole_squares(said)
    lattice = to_lattice(batch.inputs)
    joined, valid = np.ones(len(said), dtype=np.bool_), np.ones(len(said), dtype=np.bool_)
    for row in np.flatnonzero(wrong.numpy()):
        open_squares = whole[row] & (lattice[row] != WALL)
        start, end = (np.argwhere(lattice[row] == code)[0].tolist() for code in (START, END))
        way = shortest_path(open_squares, (start[0], start[1]), (end[0], end[1]))
        joined[row] = bool(way)
        # Each square of the way is four pixels, and there must be no other.
        valid[row] = bool(way) and 4 * len(way) == int(said[row].sum())
    return NearMiss(wrong, torch.from_numpy(joined), torch.from_numpy(valid))


def whole_squares(pixels: NDArray[np.bool_] | NDArray[np.int64]) -> NDArray[np.bool_]:
    """(N, h, w): whether all four pixels of a square are set."""
    inside = pixels[:, BORDER:-BORDER, BORDER:-BORDER] == 1
    whole: NDArray[np.bool_] = np.ones_like(inside[:, ::2, ::2])
    for down in range(2):
        for right in range(2):
            whole &= inside[:, down::2, right::2]
    return whole
