"""Chess boards as packed bytes and as the planes that a network reads.

    >>> inputs = planes(torch.from_numpy(puzzles.boards[:300]), black)     # (300, 12, 8, 8)
    >>> answers = targets(moves, black)                                     # (300, 8, 8)

Packed boards are (N, 32) bytes: two squares per byte, the even square in the low nibble, a1 = 0 …
h8 = 63; 0 is empty, 1 to 6 are white's K Q B N R P, 7 to 12 black's. Moves are integers:
from | to << 6 | promotion << 12 | black to move << 15.

Planes are seen from the side to move: its K Q B N R P, then the opponent's. Row 7 is the mover's
back rank for either colour, so the mover advances towards row 0; columns are files a to h, never
mirrored. All of it runs on the device of the bytes, so that a whole data set can stay packed there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Bytes = NDArray[np.uint8]


def pack(boards: Bytes) -> Bytes:
    """(N, 64) piece codes to (N, 32) bytes."""
    return boards[:, 0::2] | (boards[:, 1::2] << np.uint8(4))


def unpack(packed: Bytes) -> Bytes:
    """(N, 32) bytes to (N, 64) piece codes."""
    return np.stack([packed & 15, packed >> 4], axis=2).reshape(len(packed), 64)


def origin_codes(packed: Bytes, moves: NDArray[np.uint16]) -> Bytes:
    """(N,) the piece on the square that each move leaves, without unpacking the boards."""
    origin = (moves & 63).astype(np.int64)
    pairs = packed[np.arange(len(packed)), origin >> 1]
    codes: Bytes = np.where(origin & 1, pairs >> 4, pairs & 15).astype(np.uint8)
    return codes


def planes(packed: Tensor, black: Tensor) -> Tensor:
    """(N, 12, 8, 8) float32 planes of (N, 32) packed boards; (N,) whether black is to move."""
    codes = torch.stack([packed & 15, packed >> 4], dim=2).view(-1, 8, 8)
    codes = _to_move_first(codes, black)
    each = torch.arange(1, 13, dtype=torch.uint8, device=packed.device).view(1, 12, 1, 1)
    return (codes.unsqueeze(1) == each).to(torch.float32)


def boards_from_planes(inputs: Tensor, black: Bytes | NDArray[np.bool_]) -> Bytes:
    """(N, 64) piece codes, a1 first, of (N, 12, 8, 8) planes: the inverse of `planes`."""
    numbers = torch.arange(1, 13, device=inputs.device).view(1, 12, 1, 1)
    codes = ((inputs > 0.5) * numbers).amax(dim=1).to(torch.uint8).cpu()
    boards: Bytes = (
        _to_move_first(codes, torch.from_numpy(np.asarray(black))).reshape(-1, 64).numpy()
    )
    return boards


def _to_move_first(codes: Tensor, black: Tensor) -> Tensor:
    """(N, 8, 8) codes with ranks flipped (white moves) or colours swapped (black): an involution.

    Rows of the board run from rank 1, where black's back rank is row 7 already.
    """
    swapped = torch.where(codes > 6, codes - 6, torch.where(codes > 0, codes + 6, codes))
    return torch.where(black.to(torch.bool).view(-1, 1, 1), swapped, codes.flip(1))


def targets(moves: Tensor, black: Tensor) -> Tensor:
    """(N, 8, 8) int64: 1 on the square that each move leaves and on the one it reaches."""
    ends = torch.stack([moves & 63, (moves >> 6) & 63], dim=1).to(torch.int64)
    # Square numbers start at rank 1, white's rows at rank 8: flip the three rank bits.
    cells = torch.where(black.to(torch.bool).view(-1, 1), ends, ends ^ 0b111000)
    grid = torch.zeros(len(moves), 64, dtype=torch.int64, device=moves.device)
    return grid.scatter_(1, cells, 1).view(-1, 8, 8)


def square_at(row: int, column: int, black: bool) -> int:
    """The square (a1 = 0) of a row and column of the planes."""
    return (row if black else 7 - row) * 8 + column


def mirrored(inputs: Tensor, answers: Tensor, chosen: Tensor) -> tuple[Tensor, Tensor]:
    """Planes and targets with left and right exchanged, where chosen and where castling is out.

    Castling has no mirror image, and the planes do not hold castling rights: a position where a
    side has its king and a rook on their home squares stays as it is.
    """
    flip = chosen.to(inputs.device)
    for king, rook, home in ((0, 4, 7), (6, 10, 0)):  # planes and back rank of mover, opponent
        rooks = (inputs[:, rook, home, 0] > 0) | (inputs[:, rook, home, 7] > 0)
        flip = flip & ~((inputs[:, king, home, 4] > 0) & rooks)
    return (
        torch.where(flip.view(-1, 1, 1, 1), inputs.flip(-1), inputs),
        torch.where(flip.view(-1, 1, 1), answers.flip(-1), answers),
    )


@dataclass(frozen=True)
class PackedPositions:
    """Positions kept as bytes on any device and expanded to planes one batch at a time.

    >>> positions = task.packed(600_000, size=(0, 600_000), seed=0).to("cuda")     # 22 MB
    >>> inputs, answers = positions[torch.randint(600_000, (300,), device="cuda")]
    """

    boards: Tensor
    """(N, 32) uint8"""
    moves: Tensor
    """(N,) int32"""

    def __len__(self) -> int:
        """Number of positions."""
        return len(self.boards)

    def to(self, device: torch.device | str) -> PackedPositions:
        """The same positions on another device."""
        return PackedPositions(self.boards.to(device), self.moves.to(device))

    def __getitem__(self, which: slice | Tensor) -> tuple[Tensor, Tensor]:
        """Inputs (n, 12, 8, 8) float32 and targets (n, 8, 8), computed on the device."""
        moves = self.moves[which]
        black = (moves >> 15).to(torch.bool)
        return planes(self.boards[which], black), targets(moves, black)
