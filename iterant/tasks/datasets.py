"""Problems as PyTorch's own data sets, for training loops that are not ours.

    >>> from torch.utils.data import DataLoader
    >>> loader = DataLoader(dataset(iterant.task("mazes"), 100, size=9), batch_size=50)
    >>> [inputs.shape for inputs, targets in loader]
    [torch.Size([50, 3, 24, 24]), torch.Size([50, 3, 24, 24])]

Problems are made when they are asked for, so a set may have millions; problem 7 of a seed is the
same whoever asks, in which order and with how many workers.

How the original benchmark keeps its problems on disk: one opener a kind of file.

`iterant.tasks.datasets` is what to use; this module knows the files. Opening looks at names
and shapes only, as far as the format allows; values are checked when rows are read.

The files of the original Easy-to-Hard benchmark, for those who have them.

    maze_data_train_9/       inputs.npy (N, 3, H, W)       solutions.npy (N, H, W)
    prefix_sums_data/len_32/ 32_data.pth (N, 32)           32_targets.pth (N, 32)
    chess_data/              data.pth (N, 12, 8, 8)        segment_targets.pth or targets.pth
                             who_moves.pth (N, 1), 1 for black

Nothing is unpickled: arrays are read without pickle, tensors through PyTorch's restricted loading.
What a folder holds is decided by its files and shapes, so folders may be renamed. Mazes are left
on disk and only the rows asked for are read.

How many problems of a training set come back in a test set.

Nothing here knows a task. A problem is its input: for mazes the walls and both ends. A maze turned
or mirrored asks the same, a chess position does not, so symmetries are asked for, never assumed.
What else should not count is taken out by `key`: mazes with the same walls, wherever their ends,
are found with ``key=lambda inputs: inputs.amax(dim=1, keepdim=True)``.
"""

from __future__ import annotations

import hashlib
import os
import re
import warnings
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import Dataset

from iterant.errors import DataError, TaskError
from iterant.formatting import counted
from iterant.tasks.protocol import Batch, Size, Task, check_count
from iterant.tasks.rng import Stream, check_seed, problem_numbers

_VOTERS = 2_000
"""Chess puzzles of either colour that are asked which way up the file is."""


@dataclass(frozen=True)
class ProblemSet:
    """One set on disk: where, what shape, and how to read some of its rows."""

    folder: Path
    channels: int
    size: Size
    count: int
    read: Callable[[NDArray[np.int64]], Batch]


def _bit_files(folder: Path) -> list[Path]:
    return [path for path in folder.glob("*_data.pth") if re.fullmatch(r"\d+_data", path.stem)]


def holds_set(folder: Path) -> bool:
    """Whether the folder itself holds files of the benchmark."""
    named = (folder / "inputs.npy", folder / "data.pth")
    return any(path.is_file() for path in named) or bool(_bit_files(folder))


def open_set(folder: Path) -> ProblemSet:
    """Decide by the files what the folder holds."""
    if (folder / "inputs.npy").is_file():
        return _open_mazes(folder)
    if (folder / "data.pth").is_file():
        return _open_chess(folder)
    files = _bit_files(folder)
    if len(files) != 1:
        raise DataError(f"{folder} holds {len(files)} sets of bits; keep one length a folder")
    return _open_bits(folder, files[0])


def _array(path: Path) -> NDArray[Any]:
    try:
        array: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise DataError(_unreadable(path, "a plain numpy array", error)) from error
    return array


def _tensor(path: Path) -> Tensor:
    try:
        with warnings.catch_warnings():
            # torch remarks on foreign pickles before it refuses them; the refusal is enough.
            warnings.simplefilter("ignore")
            values = torch.load(path, map_location="cpu", weights_only=True, mmap=_zipped(path))
    except Exception as error:  # fed with any bytes, the restricted reader raises nearly anything
        raise DataError(_unreadable(path, "one tensor saved by torch", error)) from error
    if not isinstance(values, Tensor):
        raise DataError(f"{path} holds a {type(values).__name__}, wanted one tensor")
    return values


def _zipped(path: Path) -> bool:
    """Whether torch can leave the file on disk: only in the format it writes since 2020."""
    return zipfile.is_zipfile(path)


def _unreadable(path: Path, wanted: str, error: BaseException) -> str:
    reason = (str(error).strip() or type(error).__name__).splitlines()[0].split(". ")[0]
    return f"{path} cannot be read as {wanted} ({reason}); copy the benchmark's file again"


def _wrong_shape(path: Path, shape: tuple[int, ...], wanted: str) -> DataError:
    return DataError(f"{path} has shape {tuple(shape)}, wanted {wanted}")


def _need(path: Path, condition: bool, problem: str) -> None:
    if not condition:
        raise DataError(f"{path} {problem}")


def _open_mazes(folder: Path) -> ProblemSet:
    inputs, solutions = _array(folder / "inputs.npy"), _array(folder / "solutions.npy")
    shape = inputs.shape
    if inputs.ndim != 4 or shape[1] != 3 or shape[2] < 8 or shape[2] % 2:
        raise _wrong_shape(folder / "inputs.npy", shape, "(N, 3, H, W) with even sides")
    if solutions.shape != (shape[0], *shape[2:]):
        raise _wrong_shape(folder / "solutions.npy", solutions.shape, f"{(shape[0], *shape[2:])}")

    def read(rows: NDArray[np.int64]) -> Batch:
        images, paths = np.asarray(inputs[rows]), np.asarray(solutions[rows])
        for name, values in (("inputs.npy", images), ("solutions.npy", paths)):
            _need(folder / name, bool(np.isin(values, (0, 1)).all()), "holds other than 0 and 1")
        return Batch(
            torch.from_numpy(images.astype(np.float32)), torch.from_numpy(paths.astype(np.int64))
        )

    return ProblemSet(folder, 3, (shape[2] - 6) // 2, shape[0], read)


def _open_bits(folder: Path, path: Path) -> ProblemSet:
    answers_path = path.with_name(path.name.replace("_data", "_targets"))
    bits, answers = _tensor(path), _tensor(answers_path)
    if bits.dim() == 3 and bits.shape[1] == 1:
        bits = bits[:, 0]
    if bits.dim() != 2:
        raise _wrong_shape(path, bits.shape, "(N, bits) or (N, 1, bits)")
    if answers.shape != bits.shape:
        raise _wrong_shape(answers_path, answers.shape, f"{tuple(bits.shape)}")
    bits = bits.to(torch.float32)
    if bool((bits.abs() == 0.5).all()):
        bits = bits + 0.5  # saved after the subtraction of one half
    for place, values in ((path, bits), (answers_path, answers)):
        _need(place, bool(((values == 0) | (values == 1)).all()), "holds other than bits")

    def read(rows: NDArray[np.int64]) -> Batch:
        index = torch.from_numpy(rows)
        return Batch((bits[index] - 0.5).unsqueeze(1), answers[index].to(torch.int64))

    return ProblemSet(folder, 1, bits.shape[1], len(bits), read)


def _open_chess(folder: Path) -> ProblemSet:
    names = ("segment_targets.pth", "targets.pth")
    moves_path = next((folder / name for name in names if (folder / name).is_file()), None)
    if moves_path is None:
        raise DataError(f"{folder} holds data.pth but neither {names[0]} nor {names[1]}")
    boards, moves = _tensor(folder / "data.pth"), _tensor(moves_path)
    if boards.dim() != 4 or boards.shape[1:] != (12, 8, 8) or not len(boards):
        raise _wrong_shape(folder / "data.pth", boards.shape, "(N, 12, 8, 8)")
    if moves.shape != (len(boards), 8, 8):
        raise _wrong_shape(moves_path, moves.shape, f"({len(boards)}, 8, 8)")
    black = torch.zeros(len(boards), dtype=torch.bool)
    told = (folder / "who_moves.pth").is_file()
    if told:
        colours = _tensor(folder / "who_moves.pth")
        if colours.numel() != len(boards):
            raise _wrong_shape(folder / "who_moves.pth", colours.shape, f"({len(boards)}, 1)")
        black = colours.flatten() > 0
    flips = torch.zeros(2, 2, dtype=torch.bool)
    for colour in range(2):
        voters = torch.nonzero(black == bool(colour)).flatten()
        voters = voters[:: max(1, len(voters) // _VOTERS)]
        if len(voters):
            flips[colour] = torch.tensor(_votes(folder, boards[voters], moves[voters], told))

    def read(rows: NDArray[np.int64]) -> Batch:
        index = torch.from_numpy(rows)
        flip_board, flip_move = flips[black[index].long()].unbind(1)
        planes, squares = boards[index].to(torch.float32), moves[index].to(torch.int64)
        planes = torch.where(flip_board[:, None, None, None], planes.flip(2), planes)
        return Batch(planes, torch.where(flip_move[:, None, None], squares.flip(1), squares))

    return ProblemSet(folder, 12, 8, len(boards), read)


def _votes(folder: Path, boards: Tensor, moves: Tensor, told: bool) -> tuple[bool, bool]:
    """Whether boards, and whether moves, must be turned upside down to meet our convention.

    The mover's own side belongs in row 7: its pawns then stand below the opponent's. And a move
    starts on a square with a piece of the mover and ends on one without. One puzzle can mislead,
    a majority of thousands does not.
    """
    heights = torch.arange(8.0) @ boards.sum(3).transpose(1, 2).float()
    counts = boards.sum((2, 3)).float()
    own, other = (heights[:, p] / counts[:, p].clamp(min=1) for p in (5, 11))
    below = (own > other)[(counts[:, 5] > 0) & (counts[:, 11] > 0)].float()
    share = float(below.mean()) if len(below) else 1.0
    if not told and 0.2 < share < 0.8:
        raise DataError(
            f"{folder} mixes boards of both colours, some upside down; "
            "put who_moves.pth beside them"
        )
    flip_board = share < 0.5
    mine = (boards.flip(2) if flip_board else boards)[:, :6].sum(1) > 0
    agree = [
        float(((mine & (turned > 0)).sum((1, 2)) == 1).float().mean())
        for turned in (moves, moves.flip(1))
    ]
    if max(agree) < 0.99:
        raise DataError(
            f"{folder}: only {max(agree):.0%} of the moves start on a piece of the mover, "
            "whichever way up; boards and moves belong to different files"
        )
    return flip_board, agree[1] > agree[0]


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
                f"{counted(channels, 'channel')} ({counted(len(found), 'other set')}); "
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


class Problems(Dataset[tuple[Tensor, Tensor]]):
    """So many problems of a task, each an input (C, *S) and its targets (*S)."""

    def __init__(self, task: Task, count: int, *, size: Size, seed: int, first: int) -> None:
        """Nothing is made yet."""
        self.task, self.count, self.size = task, count, size
        self.seed, self.first = seed, first

    def __len__(self) -> int:
        """How many problems."""
        return self.count

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        """One problem; negative indices count from the end."""
        place = int(index) + (self.count if index < 0 else 0)
        if not 0 <= place < self.count:  # iterating over the set ends by this
            raise IndexError(f"this set holds {counted(self.count, 'problem')}, got index {index}")
        batch = self.batch(place, 1)
        return batch.inputs[0], batch.targets[0]

    def __getitems__(self, indices: Sequence[int]) -> list[tuple[Tensor, Tensor]]:
        """Several at once, as a `DataLoader` asks: neighbours are made together."""
        wanted = torch.as_tensor(indices)
        if len(wanted) and int(wanted[-1] - wanted[0]) == len(wanted) - 1 and _rises(wanted):
            batch = self.batch(int(wanted[0]), len(wanted))
            return list(zip(batch.inputs, batch.targets, strict=True))
        return [self[int(index)] for index in wanted]

    def batch(self, start: int, count: int) -> Batch:
        """Problems ``start … start + count - 1`` of this set, as our own functions take them."""
        if start < 0 or start + count > self.count:
            raise TaskError(
                f"this set holds {counted(self.count, 'problem')}, {start} to "
                f"{start + count - 1} were asked for; ask for fewer"
            )
        return self.task.sample(count, size=self.size, seed=self.seed, first=self.first + start)


def _rises(wanted: Tensor) -> bool:
    return bool((wanted[1:] - wanted[:-1] == 1).all())


def dataset(
    task: Task, count: int, *, size: Size | None = None, seed: int = 0, first: int = 0
) -> Problems:
    """Problems ``first … first + count - 1`` that size and seed name, as a PyTorch data set.

    >>> from torch.utils.data import DataLoader
    >>> loader = DataLoader(dataset(iterant.task("mazes"), 100, size=9), batch_size=50)
    >>> inputs, targets = next(iter(loader))
    >>> inputs.shape, targets.shape
    (torch.Size([50, 3, 24, 24]), torch.Size([50, 24, 24]))
    """
    return Problems(
        task,
        check_count(count),
        size=task.check_size(size),
        seed=check_seed(seed),
        first=first,
    )


_CHUNK = 2048


@dataclass(frozen=True)
class DuplicateReport:
    """What `duplicates` found; printing it gives one line."""

    train_count: int
    test_count: int
    within_train: int
    """Problems of the training set that stood earlier in it."""
    within_test: int
    """Problems of the test set that stood earlier in it."""
    between: int
    """Problems of the test set that the training set holds too."""
    symmetries: bool
    """Whether rotations and mirrors counted as the same."""

    def __str__(self) -> str:
        """One line for people."""
        ending = " (rotations and mirrors count as the same)" if self.symmetries else ""
        return (
            f"train {self.train_count:,}: {self.within_train:,} repeated · "
            f"test {self.test_count:,}: {self.within_test:,} repeated · "
            f"{self.between:,} of the test set are in train{ending}"
        )


def duplicates(
    train: Batch,
    test: Batch,
    symmetries: bool = False,
    key: Callable[[Tensor], Tensor] | None = None,
) -> DuplicateReport:
    """Count repeated inputs within and between two sets, perhaps up to the square's symmetries."""
    known, asked = (
        fingerprints(each.inputs if key is None else key(each.inputs), symmetries=symmetries)
        for each in (train, test)
    )
    held = set(known)
    return DuplicateReport(
        train_count=len(train),
        test_count=len(test),
        within_train=len(known) - len(held),
        within_test=len(asked) - len(set(asked)),
        between=sum(mark in held for mark in asked),
        symmetries=symmetries,
    )


def fingerprints(inputs: Tensor, *, symmetries: bool = False) -> list[bytes]:
    """A hash a problem: equal for equal inputs, and for turned or mirrored ones if asked for."""
    if symmetries and (inputs.dim() != 4 or inputs.shape[2] != inputs.shape[3]):
        raise TaskError(
            f"rotations and mirrors need square images (N, C, S, S), got {tuple(inputs.shape)}; "
            "compare these with symmetries=False"
        )
    marks: list[bytes] = []
    for first in range(0, len(inputs), _CHUNK):
        values = np.ascontiguousarray(inputs[first : first + _CHUNK].cpu().numpy())
        rows = _smallest_form(values) if symmetries else _rows(values)
        # The shape takes part, so that problems of different sizes never count as the same.
        shape = str(values.shape[1:]).encode()
        marks += [
            hashlib.blake2b(row.tobytes(), digest_size=16, key=shape).digest() for row in rows
        ]
    return marks


def _rows(values: NDArray[np.float32]) -> NDArray[np.uint8]:
    """(N, bytes) the values of each problem as bytes; adding zero makes -0.0 the same as 0.0."""
    plain = np.ascontiguousarray((values + 0).astype("<f4")).reshape(len(values), -1)
    return plain.view(np.uint8)


def _smallest_form(values: NDArray[np.float32]) -> NDArray[np.uint8]:
    """Of the eight turned and mirrored forms of each problem, the first in dictionary order."""
    best = _rows(values)
    for number in range(1, 8):
        form = _rows(np.rot90(values[..., ::-1] if number > 3 else values, number, axes=(2, 3)))
        first = (form != best).argmax(axis=1)[:, None]
        lower = np.take_along_axis(form, first, 1) < np.take_along_axis(best, first, 1)
        best = np.where(lower, form, best)
    return best
