"""Mazes from text and pictures, with their shortest way where there is one.

>>> maze_problem(Material("maze.txt", b"S.#\\n#.E")).batch.extras["path_length"]
array([3])
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from iterant.errors import TaskError
from iterant.tasks.carving import END, START, WALL, shortest_path
from iterant.tasks.lattice import to_image, to_pixels
from iterant.tasks.maze_pictures import read_picture
from iterant.tasks.maze_views import read_maze
from iterant.tasks.protocol import Batch
from iterant.tasks.reading import PICTURE, TEXT, Material, Problem

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
