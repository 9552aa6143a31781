"""The files of the original Easy-to-Hard benchmark, for those who have them.

    >>> batch = read_easy_to_hard("data/maze_data_test_13")
    >>> iterant.task("mazes", data="data").sample(100, size=13, seed=1)

    maze_data_train_9/       inputs.npy (N, 3, H, W)       solutions.npy (N, H, W)
    prefix_sums_data/len_32/ 32_data.pth (N, 32)           32_targets.pth (N, 32)
    chess_data/              data.pth (N, 12, 8, 8)        segment_targets.pth or targets.pth
                             who_moves.pth (N, 1), 1 for black

Nothing is unpickled: arrays are read without pickle, tensors through PyTorch's restricted loading.
What a folder holds is decided by its files and shapes, so folders may be renamed. Mazes are left
on disk and only the rows asked for are read.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from iterant import names
from iterant.errors import DataError, TaskError
from iterant.tasks.benchmark_files import ProblemSet, holds_set, open_set
from iterant.tasks.chance import Stream, problem_numbers
from iterant.tasks.protocol import Batch, Size

_DEEPEST = 2
"""How many folders below `data` a set may lie: prefix_sums_data/len_32."""


class Stored:
    """The problems under a folder, drawn without replacement in an order that a seed names."""

    def __init__(self, data: str | Path, channels: int) -> None:
        """Look for sets of problems with that many channels in `data` and the folders in it."""
        self.data = Path(data)
        if not self.data.is_dir():
            raise DataError(f"there is no folder {str(data)!r}; check the path")
        found = [open_set(folder) for folder in _folders(self.data)]
        self._sets = [each for each in found if each.channels == channels]
        if not self._sets:
            raise DataError(
                f"{self.data} holds no Easy-to-Hard problems with "
                f"{names.counted(channels, 'channel')} ({names.counted(len(found), 'other set')}); "
                "give the folder with the benchmark's files"
            )

    def only_size(self) -> Size | None:
        """The size of the problems, where all have the same."""
        sizes = {each.size for each in self._sets}
        return sizes.pop() if len(sizes) == 1 else None

    def count(self) -> int:
        """How many problems the one set holds, for tasks whose sizes are ranges of it."""
        return self._choose(None).count

    def sample(self, count: int, *, size: Size | None, seed: int = 0, first: int = 0) -> Batch:
        """Places ``first … first + count - 1`` of the shuffled set; a range picks rows of it."""
        numbers = problem_numbers(count, first)
        begin, stop = size if isinstance(size, tuple) else (0, None)
        chosen = self._choose(None if isinstance(size, tuple) else size)
        rows = np.arange(chosen.count)[begin:stop]
        if numbers[-1] >= len(rows):
            raise TaskError(
                f"{chosen.folder} holds {len(rows):,} problems there, problems {first:,} to "
                f"{int(numbers[-1]):,} were asked for; ask for fewer"
            )
        order = Stream(seed, "stored").order(len(rows))
        return chosen.read(rows[order[numbers]])

    def _choose(self, size: Size | None) -> ProblemSet:
        """The one set of that size."""
        fitting = [each for each in self._sets if size is None or each.size == size]
        if len(fitting) == 1:
            return fitting[0]
        sizes = ", ".join(str(each.size) for each in self._sets)
        if not fitting:
            raise TaskError(f"{self.data} holds problems of size {sizes}, {size} was asked for")
        names = ", ".join(each.folder.name for each in fitting)
        raise TaskError(f"{self.data} holds several such sets ({names}); give the folder of one")


def holds_sets(folder: Path) -> bool:
    """Whether a folder, or one in it, holds files of the benchmark."""
    return next(_folders(folder), None) is not None


def read_easy_to_hard(path: str | Path) -> Batch:
    """All problems of one folder of the benchmark, whatever the task.

    >>> read_easy_to_hard("data/maze_data_test_13").inputs.shape
    """
    folder = Path(path)
    if not holds_set(folder):
        raise DataError(
            f"{folder} holds none of inputs.npy, N_data.pth, data.pth; "
            "give the folder that holds the files of one set"
        )
    found = open_set(folder)
    return found.read(np.arange(found.count))


def save_easy_to_hard(batch: Batch, folder: str | Path) -> None:
    """Write problems in the benchmark's layout: the authors' code reads the folder as its own.

    >>> save_easy_to_hard(task.sample(100, size=13, seed=1), "data/maze_data_test_13")
    """
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    channels, length = batch.inputs.shape[1], batch.inputs.shape[-1]
    inputs, targets = batch.inputs.cpu(), batch.targets.cpu()
    if batch.inputs.dim() == 3:
        _save(place / f"{length}_data.pth", inputs[:, 0] + 0.5)
        _save(place / f"{length}_targets.pth", targets.to(torch.float32))
    elif channels == 3:
        _save(place / "inputs.npy", inputs.numpy())
        _save(place / "solutions.npy", targets.numpy())
    else:
        # In our orientation, which the reader recognises: the mover's back rank in row 7.
        _save(place / "data.pth", inputs)
        _save(place / "segment_targets.pth", targets)


def _save(path: Path, values: Tensor | NDArray[Any]) -> None:
    """Write beside and rename: a reader meets the old file or the new one, never half of it."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with part.open("wb") as file:
            if isinstance(values, Tensor):
                torch.save(values.contiguous(), file)
            else:
                np.save(file, values, allow_pickle=False)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def _folders(root: Path) -> Iterator[Path]:
    """The folder and those below it that hold a set."""
    level = [root]
    for _ in range(_DEEPEST + 1):
        yield from filter(holds_set, level)
        level = sorted(path for folder in level for path in folder.glob("*") if path.is_dir())
