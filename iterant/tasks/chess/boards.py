"""Chess boards as bytes and as planes: from packed squares to what a network reads.

    >>> inputs = planes(torch.from_numpy(puzzles.boards[:300]), black)     # (300, 12, 8, 8)
    >>> wanted = targets(moves, black)                                      # (300, 8, 8)

Shapes: N positions. Packed boards are (N, 32) bytes: two squares a byte, the even square in the low
nibble, a1 = 0 … h8 = 63; 0 empty, 1 to 6 white's K Q B N R P, 7 to 12 black's. Moves are whole
numbers: from | to << 6 | promotion << 12 | black to move << 15.

Planes are seen by the side to move: first its K Q B N R P, then the opponent's. Row 7 is the
mover's own back rank for either colour, so the mover goes towards row 0; columns are files a to h
and never mirrored. Everything is computed where the bytes are, so that a whole set can stay packed
on the device.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from iterant.errors import TaskError

Bytes = NDArray[np.uint8]


def pack(boards: Bytes) -> Bytes:
    """(N, 64) codes as (N, 32) bytes."""
    return boards[:, 0::2] | (boards[:, 1::2] << np.uint8(4))


def unpack(packed: Bytes) -> Bytes:
    """(N, 32) bytes as (N, 64) codes."""
    return np.stack([packed & 15, packed >> 4], axis=2).reshape(len(packed), 64)


def origin_codes(packed: Bytes, moves: NDArray[np.uint16]) -> Bytes:
    """(N,) what stands on the square that each move leaves, without unpacking the boards."""
    origin = (moves & 63).astype(np.int64)
    pairs = packed[np.arange(len(packed)), origin >> 1]
    found: Bytes = np.where(origin & 1, pairs >> 4, pairs & 15).astype(np.uint8)
    return found


def planes(packed: Tensor, black: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
    """(N, 12, 8, 8) planes from (N, 32) packed bytes and (N,) whether black moves."""
    if packed.ndim != 2 or packed.shape[1] != 32 or packed.dtype != torch.uint8:
        raise TaskError(
            f"packed boards must be (N, 32) uint8, got {tuple(packed.shape)} {packed.dtype}"
        )
    if black.shape != packed.shape[:1]:
        raise TaskError(f"{len(packed)} boards need {len(packed)} sides, got {tuple(black.shape)}")
    codes = torch.stack([packed & 15, packed >> 4], dim=2).view(-1, 8, 8)
    turned = black.to(torch.bool).view(-1, 1, 1)
    # Black's own back rank is the last rank already; white's has to come down to row 7.
    codes = torch.where(turned, _swap_sides(codes), codes.flip(1))
    each = torch.arange(1, 13, dtype=torch.uint8, device=packed.device).view(1, 12, 1, 1)
    return (codes.unsqueeze(1) == each).to(dtype)


def targets(moves: Tensor, black: Tensor) -> Tensor:
    """(N, 8, 8) int64: 1 on the square that each move leaves and on the one it reaches."""
    ends = torch.stack([moves & 63, (moves >> 6) & 63], dim=1).to(torch.int64)
    # Squares run from rank 1, white's rows from rank 8: the three upper bits turn round.
    cells = torch.where(black.to(torch.bool).view(-1, 1), ends, ends ^ 0b111000)
    return (
        torch.zeros(len(moves), 64, dtype=torch.int64, device=moves.device)
        .scatter_(1, cells, 1)
        .view(-1, 8, 8)
    )


def mirrored(inputs: Tensor, wanted: Tensor, chosen: Tensor) -> tuple[Tensor, Tensor]:
    """Planes and targets with left and right exchanged, where chosen and where nothing forbids it.

    A king and a rook of one side at home may be about to castle, which has no mirror image; the
    planes do not hold castling rights, so such positions stay as they are.
    """
    turned = chosen.to(inputs.device)
    for king, rook, home in ((0, 4, 7), (6, 10, 0)):  # the mover's, the opponent's, back ranks
        rooks = (inputs[:, rook, home, 0] > 0) | (inputs[:, rook, home, 7] > 0)
        turned = turned & ~((inputs[:, king, home, 4] > 0) & rooks)
    return (
        torch.where(turned.view(-1, 1, 1, 1), inputs.flip(-1), inputs),
        torch.where(turned.view(-1, 1, 1), wanted.flip(-1), wanted),
    )


def boards_from_planes(inputs: Tensor, black: Bytes | NDArray[np.bool_]) -> Bytes:
    """(N, 64) codes again, a1 first, from planes and who moves; the way back from `planes`."""
    numbers = torch.arange(1, 13, device=inputs.device).view(1, 12, 1, 1)
    codes = ((inputs > 0.5) * numbers).amax(dim=1).to(torch.uint8).cpu()
    turned = torch.from_numpy(np.asarray(black, dtype=bool)).view(-1, 1, 1)
    codes = torch.where(turned, _swap_sides(codes), codes.flip(1))
    found: Bytes = codes.reshape(-1, 64).numpy()
    return found


def square_at(row: int, column: int, black: bool) -> int:
    """The square (a1 = 0) behind a cell of the planes."""
    return (row if black else 7 - row) * 8 + column


def _swap_sides(codes: Tensor) -> Tensor:
    """White's pieces as black's and the other way round; empty squares stay."""
    return torch.where(codes > 6, codes - 6, torch.where(codes > 0, codes + 6, codes))


@dataclass(frozen=True)
class PackedPositions:
    """Many positions as bytes on any device, turned into planes a batch at a time.

    >>> held = task.packed(600_000, size=(0, 600_000), seed=0).to("cuda")     # 22 MB
    >>> inputs, wanted = held[torch.randint(len(held), (300,), device="cuda")]
    """

    boards: Tensor
    """(N, 32) uint8"""
    moves: Tensor
    """(N,) int32"""

    def __len__(self) -> int:
        """How many positions."""
        return len(self.boards)

    def to(self, device: torch.device | str) -> PackedPositions:
        """The same positions on another device."""
        return PackedPositions(self.boards.to(device), self.moves.to(device))

    def __getitem__(self, which: slice | Tensor) -> tuple[Tensor, Tensor]:
        """Inputs (n, 12, 8, 8) float32 and targets (n, 8, 8) of some, made on the device."""
        moves = self.moves[which]
        black = (moves >> 15).to(torch.bool)
        return planes(self.boards[which], black), targets(moves, black)
