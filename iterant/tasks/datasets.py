"""Problems as a PyTorch data set, and the files of the original Easy-to-Hard benchmark.

    >>> dataset(iterant.task("mazes"), 100, size=9)      # for a DataLoader
    >>> iterant.task("mazes", data="maze_data_test_13")  # draws its problems from the files

The benchmark's files:

    maze_data_train_9/       inputs.npy (N, 3, H, W)       solutions.npy (N, H, W)
    prefix_sums_data/len_32/ 32_data.pth (N, 32)           32_targets.pth (N, 32)
    chess_data/              data.pth (N, 12, 8, 8)        segment_targets.pth or targets.pth
                             who_moves.pth (N, 1), 1 for black; rows are ranks 1 to 8. Without it
                             the mover's back rank is row 7, as `save_easy_to_hard` writes.

and those of Maze-Hard (30x30-hard), one token per cell: 1 wall, 2 free, 3 start, 4 goal, 5 path:

    train/                   all__inputs.npy (N, s * s)    all__labels.npy (N, s * s)

The task of a folder is recognised by the names and shapes of its files, so folders may be renamed.
No arbitrary pickles are loaded: arrays are read without pickle, tensors with `weights_only`. Files
are memory-mapped where their format allows it, and only the requested rows are read.
"""

from __future__ import annotations

import io
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import TensorDataset

from iterant.errors import DataError, TaskError
from iterant.formatting import counted
from iterant.io.files import check_regular, make_folder, write_atomic
from iterant.io.pth import first_sentence, load_pth
from iterant.rng import Stream
from iterant.tasks.mazes.grid import to_image, to_pixels
from iterant.tasks.protocol import Batch, Size, Task

_TOKEN_FILES = ("all__inputs.npy", "all__labels.npy")
_FORMATS = "(N, bits), (N, 3, H, W) with even sides or (N, 12, 8, 8)"


def dataset(
    task: Task, count: int, *, size: Size | None = None, seed: int = 0, first: int = 0
) -> TensorDataset:
    """Problems ``first … first + count - 1`` of a size and seed as a PyTorch data set.

    >>> from torch.utils.data import DataLoader
    >>> loader = DataLoader(dataset(iterant.task("mazes"), 100, size=9), batch_size=50)
    >>> inputs, targets = next(iter(loader))
    >>> inputs.shape, targets.shape
    (torch.Size([50, 3, 24, 24]), torch.Size([50, 24, 24]))
    """
    batch = task.sample(count, size=size, seed=seed, first=first)
    return TensorDataset(batch.inputs, batch.targets)


class _ProblemSet:
    """One folder of the benchmark, of which only the requested rows are read."""

    def __init__(self, folder: Path) -> None:
        names = _file_names(folder)
        if names is None:
            raise DataError(
                f"{folder} holds none or several of inputs.npy, N_data.pth, data.pth; "
                "give the folder that holds the files of one set"
            )
        self.folder, self.paths = folder, [folder / name for name in names]
        inputs, self.targets = map(_load, self.paths)
        if names == _TOKEN_FILES:
            inputs, self.targets = _from_tokens(self.paths, inputs, self.targets)
        self.inputs = inputs.unsqueeze(1) if inputs.dim() == 2 else inputs
        self.count, self.channels, *space = self.inputs.shape if self.inputs.dim() > 2 else (0, 0)
        fits = {
            1: len(space) == 1,
            3: len(space) == 2 and space[0] >= 8 and space[0] % 2 == 0,
            12: space == [8, 8],
        }
        _check(self.paths[0], self.count and fits.get(self.channels), _FORMATS)
        shape = (self.count, *space)
        _check(self.paths[1], self.targets.shape == shape, f"an array of shape {shape}")
        self.size: Size = (space[0] - 6) // 2 if self.channels == 3 else space[0]
        if self.channels == 12:
            self._orient(folder / "who_moves.pth")

    def read(self, rows: NDArray[np.int64]) -> Batch:
        """The problems of these rows, in the conventions of `Batch`."""
        index = torch.from_numpy(rows)
        inputs, targets = self.inputs[index].float(), self.targets[index].long()
        if self.channels == 1 and bool((inputs.abs() == 0.5).all()):
            inputs = inputs + 0.5  # the file holds bits minus one half
        for path, values in zip(self.paths, (inputs, targets), strict=True):
            _check(path, ((values == 0) | (values == 1)).all(), "0 and 1")
        if self.channels == 12:
            flip = self._white[index, None, None]  # so that the mover's back rank is row 7
            inputs = torch.where(flip[..., None], inputs.flip(2), inputs)
            targets = torch.where(flip ^ self._moves_reversed, targets.flip(1), targets)
        return Batch(inputs - 0.5 if self.channels == 1 else inputs, targets)

    def _orient(self, colours: Path) -> None:
        """Read who moves, and find out whether the rows of moves are in reverse order.

        A move starts on a piece of the mover and ends on a square without one.
        """
        self._white = torch.zeros(self.count, dtype=torch.bool)
        if colours.is_file():
            self._white = _load(colours).flatten() == 0
            _check(colours, len(self._white) == self.count, f"{self.count} values")
        some = slice(None, None, max(1, self.count // 2_000))
        mine, moves = self.inputs[some, :6].sum(1) > 0, self.targets[some] > 0
        agree = [
            float(((mine & marks).sum((1, 2)) == 1).float().mean())
            for marks in (moves, moves.flip(1))
        ]
        if max(agree) < 0.99:
            raise DataError(
                f"{self.folder}: boards and moves belong to different files; check them"
            )
        self._moves_reversed = agree[1] > agree[0]


def _from_tokens(paths: list[Path], inputs: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Images and paths (uint8) of mazes with one token per cell, (N, s * s)."""
    side = math.isqrt(inputs.shape[1]) if inputs.dim() == 2 else 0
    _check(paths[0], 1 < side**2 == inputs[:1].numel(), "(N, s * s) tokens")
    _check(paths[1], labels.shape == inputs.shape, f"an array of shape {tuple(inputs.shape)}")
    tokens, marks = (each.numpy().reshape(-1, side, side) for each in (inputs, labels))
    ends = [(tokens == token).sum(axis=(1, 2)) == 1 for token in (3, 4)]
    _check(paths[0], np.isin(tokens, (1, 2, 3, 4)).all() and np.all(ends), "tokens 1 to 4")
    _check(paths[1], np.isin(marks, (1, 2, 3, 4, 5)).all(), "tokens 1 to 5")
    cells = (tokens - 1).astype(np.uint8)  # in the order of the codes: wall, free, start, end
    path = (marks >= 3).astype(np.uint8)
    return torch.from_numpy(to_image(cells)), torch.from_numpy(to_pixels(path))


class StoredProblems:
    """The problems under a folder, sampled without replacement in an order given by a seed."""

    def __init__(self, data: str | Path, channels: int) -> None:
        """Find the sets with that many channels in `data` and the folders below it."""
        self.data = Path(data)
        sets = map(_ProblemSet, _folders(self.data))
        self._sets = [each for each in sets if each.channels == channels]
        if not self._sets:
            raise DataError(
                f"{self.data} holds no Easy-to-Hard problems with {counted(channels, 'channel')}; "
                "give the folder with the benchmark's files"
            )

    def only_size(self) -> Size | None:
        """The size of the problems, if all have the same."""
        sizes = {each.size for each in self._sets}
        return sizes.pop() if len(sizes) == 1 else None

    def count(self) -> int:
        """Number of problems, if there is one set; for tasks whose sizes are index ranges."""
        return self._choose(None).count

    def sample(self, numbers: NDArray[np.int64], *, size: Size, seed: int = 0) -> Batch:
        """Problems by their numbers in the shuffled set; a range as size selects rows first."""
        begin, stop = size if isinstance(size, tuple) else (0, None)
        problem_set = self._choose(None if isinstance(size, tuple) else size)
        rows = np.arange(problem_set.count)[begin:stop]
        if numbers[-1] >= len(rows):
            raise TaskError(
                f"{problem_set.folder} holds {len(rows):,} problems there, problems "
                f"{numbers[0]:,} to {numbers[-1]:,} were asked for; ask for fewer"
            )
        order = Stream(seed, "stored").order(len(rows))
        return problem_set.read(rows[order[numbers]])

    def _choose(self, size: Size | None) -> _ProblemSet:
        sets = [each for each in self._sets if size is None or each.size == size]
        if len(sets) != 1:
            names = ", ".join(f"{each.folder.name} (size {each.size})" for each in self._sets)
            raise TaskError(
                f"{self.data} holds {names}: {len(sets)} sets are of size {size}, one is "
                "wanted; give the folder of one or another size"
            )
        return sets[0]


def holds_sets(folder: Path) -> bool:
    """Whether a folder, or one below it, holds files of the benchmark."""
    return next(_folders(folder), None) is not None


def read_easy_to_hard(path: str | Path) -> Batch:
    """All problems of one folder of the benchmark, of any task.

    >>> read_easy_to_hard("data/maze_data_test_13").inputs.shape
    """
    problems = _ProblemSet(Path(path))
    return problems.read(np.arange(problems.count))


def save_easy_to_hard(batch: Batch, folder: str | Path) -> None:
    """Write strings, mazes or chess puzzles in the benchmark's layout; the authors' code reads it.

    >>> save_easy_to_hard(task.sample(100, size=13, seed=1), "data/maze_data_test_13")
    """
    inputs, targets = batch.inputs.cpu(), batch.targets.cpu()
    is_known = (inputs.dim(), inputs.shape[1]) in ((3, 1), (4, 3), (4, 12))
    if not is_known or not ((targets == 0) | (targets == 1)).all():
        raise TaskError(
            f"the benchmark has {_FORMATS} with answers of 0 and 1, got {batch!r}; "
            "torch.save writes other problems"
        )
    path = make_folder(folder)
    files: dict[str, Tensor | NDArray[Any]]
    if inputs.dim() == 3:
        length = inputs.shape[-1]
        files = {f"{length}_data.pth": inputs[:, 0] + 0.5, f"{length}_targets.pth": targets.float()}
    elif inputs.shape[1] == 3:
        files = {"inputs.npy": inputs.numpy(), "solutions.npy": targets.numpy()}
    else:
        files = {"data.pth": inputs, "segment_targets.pth": targets}
    for name, values in files.items():
        buffer = io.BytesIO()
        if isinstance(values, Tensor):
            torch.save(values.contiguous(), buffer)
        else:
            np.save(buffer, values, allow_pickle=False)
        write_atomic(path / name, buffer.getvalue())


def _folders(root: Path) -> Iterator[Path]:
    """The folder and those below it, two levels deep, that hold a set."""
    level = [root]
    for _ in range(3):
        yield from filter(_file_names, level)
        level = sorted(path for folder in level for path in folder.glob("*") if path.is_dir())


def _file_names(folder: Path) -> tuple[str, str] | None:
    """The names of inputs and targets in a folder, None if it does not hold one set."""
    if (folder / "inputs.npy").is_file():
        return "inputs.npy", "solutions.npy"
    if (folder / _TOKEN_FILES[0]).is_file():
        return _TOKEN_FILES
    if (folder / "data.pth").is_file():
        segments = "segment_targets.pth"
        return "data.pth", segments if (folder / segments).is_file() else "targets.pth"
    bits = [path.stem[:-5] for path in folder.glob("*_data.pth") if path.stem[:-5].isdecimal()]
    return (f"{bits[0]}_data.pth", f"{bits[0]}_targets.pth") if len(bits) == 1 else None


def _load(path: Path) -> Tensor:
    """A memory-mapped tensor."""
    try:
        if path.suffix == ".npy":
            check_regular(path)
            return torch.from_numpy(np.load(path, mmap_mode="c", allow_pickle=False))
        values = load_pth(path)
    except Exception as error:  # on arbitrary bytes numpy raises nearly anything
        reason = first_sentence(error)
        raise DataError(f"{path} cannot be read ({reason}); copy the file again") from error
    if not isinstance(values, Tensor):
        raise DataError(f"{path} holds a {type(values).__name__}, wanted one tensor")
    return values


def _check(path: Path, fits: object, expected: object) -> None:
    if not fits:
        raise DataError(f"{path} holds other than {expected}; copy the file again")
