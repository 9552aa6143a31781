"""What is to be said of an answer to a maze, whether or not the right one is known.

    >>> judge_way(batch, 0, prediction)
    Verdict(keeps=True, words='one way from start to end')

A maze with loops has several ways; the labelled one is a shortest, and any other is still a way.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from iterant import names
from iterant.tasks.answers import Verdict
from iterant.tasks.carving import END, START, WALL, shortest_path
from iterant.tasks.lattice import to_lattice, to_pixels
from iterant.tasks.maze_edits import whole_squares
from iterant.tasks.protocol import Batch


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
        beside = names.counted(spare, "square")
        return Verdict(False, f"start and end are joined, with {beside} beside a shortest way")
    return Verdict(True, "one way from start to end")


def _marked(
    batch: Batch, index: int, prediction: Tensor
) -> tuple[NDArray[np.bool_], NDArray[np.uint8]]:
    """(h, w) squares that are wholly marked, and the maze's own squares."""
    pixels = prediction[index : index + 1].cpu().numpy()
    return whole_squares(pixels)[0], to_lattice(batch.inputs[index : index + 1])[0]
