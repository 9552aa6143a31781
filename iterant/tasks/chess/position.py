"""Chess positions: notation (FEN, PGN), the planes that a network reads, and the rules.

    >>> position = parse_fen("6k1/5ppp/8/8/8/8/8/K2R4 w - - 0 1")
    >>> legal_moves(position)[3, 59]
    'Rd8#'
    >>> planes(torch.from_numpy(pack(position.board[None])), torch.tensor([position.black])).shape
    torch.Size([1, 12, 8, 8])

Squares are numbered a1 = 0, b1 = 1 … h8 = 63. A board is (64,) piece codes: 0 is empty, 1 to 6 are
white's K Q B N R P, 7 to 12 black's. Packed, it is 32 bytes: two squares per byte, the even square
in the low nibble. A packed move is from | to << 6 | promotion << 12 | black to move << 15.

Planes are seen from the side to move: its K Q B N R P, then the opponent's. Row 7 is the mover's
back rank for either colour, so the mover advances towards row 0; columns are files a to h, never
mirrored.

The rules are python-chess's: without the extra ``chess``, functions that need them raise
`MissingExtra`; reading a FEN and solving it need none. A move is (origin, destination); castling
is the king's move, and what a pawn becomes is not part of it.
"""

from __future__ import annotations

import importlib
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from iterant.errors import MissingExtra, TaskError
from iterant.tasks.inputs import Material

if TYPE_CHECKING:
    import chess

Bytes = NDArray[np.uint8]
Move = tuple[int, int]

LETTERS = ".KQBNRPkqbnrp"
"""The letter of each piece code."""
SIDES = ("White", "Black")
_NAMES = ("", "king", "queen", "bishop", "knight", "rook", "pawn")
_IMPOSSIBLE = ("NO_WHITE_KING", "NO_BLACK_KING", "TOO_MANY_KINGS", "PAWNS_ON_BACKRANK",
               "OPPOSITE_CHECK", "BAD_CASTLING_RIGHTS", "INVALID_EP_SQUARE")  # fmt: skip
"""Status flags of python-chess for which a position is rejected."""
_EXAMPLE = 'write a FEN such as "6k1/5ppp/8/8/8/8/8/K2R4 w - - 0 1"'
_FEN = re.compile(r"([KQBNRPkqbnrp1-8/]+) ([wb])(?: (\S+))?(?: (\S+))?(?: [0-9]+){0,2}")
_LONGEST_FEN = 200
_LONGEST_GAME = 1 << 18
"""Characters of a game; python-chess may take time in the square of it."""


@dataclass(frozen=True, eq=False)
class Position:
    """A board, the side to move, and what the notation says of castling and en passant."""

    board: Bytes
    """(64,) piece codes"""
    black: bool
    """Whether black is to move"""
    castling: str | None = None
    """Some of KQkq, "-" for none, None if the notation leaves it out"""
    en_passant: str | None = None
    """The name of a square, "-" for none, None if the notation leaves it out"""

    @property
    def assumption(self) -> str:
        """What the notation leaves out, in words; "" if nothing."""
        fields = {"castling": self.castling, "en passant": self.en_passant}
        missing = [name for name, value in fields.items() if value is None]
        return f"{' and '.join(missing)} not given, taken as absent" if missing else ""

    @property
    def fen(self) -> str:
        """The first four fields of its FEN."""
        letters = "".join(LETTERS[code] for code in self.board)
        ranks = "/".join(letters[first : first + 8] for first in range(56, -1, -8))
        board = re.sub(r"\.+", lambda empty: str(len(empty[0])), ranks)
        return f"{board} {'wb'[self.black]} {self.castling or '-'} {self.en_passant or '-'}"


def square_name(square: int) -> str:
    """The name of a square: ``square_name(0)`` is ``"a1"``."""
    return "abcdefgh"[square & 7] + str((square >> 3) + 1)


def parse_fen(text: str) -> Position:
    """The position of a FEN; the board and the side to move are required.

    Only what a network needs is checked here, the rest by `check_position`.
    """
    match = _FEN.fullmatch(" ".join(text.split())) if len(text) <= _LONGEST_FEN else None
    board = re.sub("[1-8]", lambda sign: "." * int(sign[0]), match[1]) if match else ""
    ranks = board.split("/")
    if match is None or [len(rank) for rank in ranks] != [8] * 8:
        raise TaskError(
            "a FEN has a board of 8 ranks of 8 squares separated by /, w or b, and up to four more "
            f"fields, got {text[:100]!r}; {_EXAMPLE}"
        )
    codes = [LETTERS.index(sign) for rank in reversed(ranks) for sign in rank]
    return Position(np.array(codes, dtype=np.uint8), match[2] == "b", match[3], match[4])


def pack(boards: Bytes) -> Bytes:
    """(N, 64) piece codes to (N, 32) bytes."""
    return boards[:, 0::2] | (boards[:, 1::2] << np.uint8(4))


def planes(packed: Tensor, black: Tensor) -> Tensor:
    """(N, 12, 8, 8) float32 planes of (N, 32) packed boards; (N,) whether black is to move."""
    codes = torch.stack([packed & 15, packed >> 4], dim=2).view(-1, 8, 8)
    codes = _to_move_first(codes, black)
    each = torch.arange(1, 13, dtype=torch.uint8, device=packed.device).view(1, 12, 1, 1)
    return (codes.unsqueeze(1) == each).to(torch.float32)


def boards_from_planes(inputs: Tensor, black: NDArray[np.bool_]) -> Bytes:
    """(N, 64) piece codes of (N, 12, 8, 8) planes: the inverse of `planes`."""
    numbers = torch.arange(1, 13, device=inputs.device).view(1, 12, 1, 1)
    codes = ((inputs > 0.5) * numbers).amax(dim=1).to(torch.uint8).cpu()
    boards: Bytes = _to_move_first(codes, torch.from_numpy(black)).reshape(-1, 64).numpy()
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


def marked_squares(grid: Tensor, black: bool) -> list[int]:
    """The squares whose cells in (8, 8) are 1: the inverse of `targets`."""
    cells = (grid == 1).nonzero().tolist()
    return [(row if black else 7 - row) * 8 + column for row, column in cells]


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
        return len(self.boards)

    def to(self, device: torch.device | str) -> PackedPositions:
        return PackedPositions(self.boards.to(device), self.moves.to(device))

    def __getitem__(self, which: slice | Tensor) -> tuple[Tensor, Tensor]:
        """Inputs (n, 12, 8, 8) float32 and targets (n, 8, 8), computed on the device."""
        moves = self.moves[which]
        black = (moves >> 15).to(torch.bool)
        return planes(self.boards[which], black), targets(moves, black)


def from_extra(module: str, purpose: str) -> Any:
    """A module of the extra ``chess``; `MissingExtra` names the purpose if it is not installed."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtra(module.partition(".")[0], "chess", purpose) from error


def check_position(fen: str) -> None:
    """Raise TaskError for a position that is impossible or has no legal move.

    Without the extra ``chess`` nothing is checked.
    """
    try:
        chess = from_extra("chess", "checking positions")
    except MissingExtra:
        return
    try:
        board = chess.Board(fen)
    except ValueError as error:
        raise TaskError(f"the FEN cannot be read: {error}; {_EXAMPLE}") from error
    if reason := impossible(board):
        raise TaskError(f"the position cannot occur: {reason}; correct the FEN")
    if not any(board.legal_moves):
        end = "checkmated" if board.is_check() else "stalemated"
        mover = SIDES[board.turn == chess.BLACK]
        raise TaskError(f"{mover} is {end}: there is no move to find; give a position before it")


def impossible(board: chess.Board) -> str:
    """Why a position cannot occur; "" if it can.

    Other status flags of python-chess, such as too many pieces, are ignored.
    """
    names = [str(flag.name) for flag in board.status() if flag.name in _IMPOSSIBLE]
    return ", ".join(names).lower().replace("_", " ")


def legal_moves(position: Position) -> dict[Move, str]:
    """Every legal move and its algebraic notation, ``{(3, 59): "Rd8#"}``.

    A promotion is written without the new piece, which the network does not predict.
    """
    board: chess.Board = from_extra("chess", "checking moves").Board(f"{position.fen} 0 1")
    return {
        (move.from_square, move.to_square): board.san(move).partition("=")[0]
        for move in board.legal_moves
    }


def as_move(position: Position, squares: Sequence[int]) -> Move | None:
    """Two marked squares as a move, if exactly one of them holds a piece of the side to move."""
    mine = range(7, 13) if position.black else range(1, 7)
    origins = [square for square in squares if position.board[square] in mine]
    if len(squares) != 2 or len(origins) != 1:
        return None
    return origins[0], sum(squares) - origins[0]


def move_text(position: Position, squares: Sequence[int]) -> str:
    """Marked squares as ``e2e4``, or a note that they are not a move."""
    if move := as_move(position, squares):
        return square_name(move[0]) + square_name(move[1])
    if len(squares) > 4:
        return f"{len(squares)} squares, no move"
    return f"{' and '.join(map(square_name, squares)) or 'no square'}, no move"


def move_words(position: Position, move: Move) -> str:
    """A move in words: ``rook d1 takes queen d8``; the web page writes the same."""
    piece, captured = (
        _NAMES[(code - 1) % 6 + 1 if code else 0] for code in position.board[[*move]]
    )
    start, end = map(square_name, move)
    aside = (move[1] & 7) - (move[0] & 7)
    if piece == "king" and start in ("e1", "e8") and abs(aside) == 2 and start[1] == end[1]:
        return f"king {start} castles to {end}"
    if piece == "pawn" and aside and end == position.en_passant:
        return f"pawn {start} takes pawn {end[0]}{start[1]} en passant"
    action = f"takes {captured} {end}" if captured else f"to {end}"
    promoted = " and is promoted" if piece == "pawn" and end[1] in "18" else ""
    return f"{piece} {start} {action}{promoted}"


def split_games(material: Material) -> Iterator[Material]:
    """One part per game of a PGN file."""
    pgn = from_extra("chess.pgn", "reading games in PGN")
    number = 0
    # Splitting at the Event tags first keeps a comment left open from swallowing the next game.
    for chunk in re.split(r'^(?=\[Event ")', material.text, flags=re.MULTILINE):
        stream, start = io.StringIO(chunk), 0
        while pgn.skip_game(stream):
            number += 1
            yield material.part(chunk[start : stream.tell()], f"game {number}")
            start = stream.tell()


def read_game(material: Material) -> tuple[str, Move | None, str]:
    """The FEN of the position to solve, the move played there, and a note.

    The move to find is the first one of a game that starts from a given position (a puzzle, a
    study). Otherwise it is the next move after those played, or the last one if the game is over.
    """
    chess, pgn = (from_extra(name, "reading games in PGN") for name in ("chess", "chess.pgn"))
    if len(text := material.text) > _LONGEST_GAME:
        raise TaskError(
            f"a game has at most {_LONGEST_GAME:,} characters, got {len(text):,}; check the file, "
            "or shorten it"
        )
    try:
        # The board after the moves; variations and comments would take memory and time.
        board = pgn.read_game(io.StringIO(text), Visitor=pgn.BoardBuilder)
    except ValueError as error:
        raise TaskError(f"the game cannot be played: {error}; check its tags and moves") from error
    if board is None or (not board.move_stack and board.fen() == chess.STARTING_FEN):
        raise TaskError("there is no game in it; give a PGN with tags and moves")
    if type(board) is not chess.Board:
        raise TaskError(f"{board.aliases[0]} is another game; give games of plain chess")
    moves, start = board.move_stack, board.root()
    if start.fen() != chess.STARTING_FEN:
        board, move = start, moves[0] if moves else None
    else:
        move = board.pop() if board.is_game_over() else None
    fen = board.fen(en_passant="fen")
    if move is None:
        return fen, None, f"the position after {len(moves)} half-moves"
    origin, destination = move.from_square, move.to_square
    if board.is_castling(move):  # Chess960 writes the rook's square
        destination = (origin & 56) + (2 if board.is_queenside_castling(move) else 6)
    return fen, (origin, destination), f"the answer is the move of the game, {board.san(move)}"
