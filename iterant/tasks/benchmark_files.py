"""How the original benchmark keeps its problems on disk: one opener a kind of file.

    >>> open_set(Path("chess_data")).read(np.arange(10))     # a Batch of ten rows

`iterant.tasks.easy_to_hard` is what to use; this module knows the files. Opening looks at names
and shapes only, as far as the format allows; values are checked when rows are read.
"""

from __future__ import annotations

import re
import warnings
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from iterant.errors import DataError
from iterant.tasks.protocol import Batch, Size

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
