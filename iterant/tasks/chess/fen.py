"""Chess positions in Forsyth-Edwards notation (FEN), read strictly.

    >>> position = parse_fen("6k1/5ppp/8/8/8/8/8/K2R4 w - - 0 1")
    >>> position.black_to_move, square_name(int(position.board.argmax()))
    (False, 'g8')
    >>> write_fen(position.board, black_to_move=False)
    '6k1/5ppp/8/8/8/8/8/K2R4 w - -'

Squares are numbered a1 = 0, b1 = 1 … h8 = 63.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from iterant.errors import TaskError

LETTERS = ".KQBNRPkqbnrp"
"""The letter of each piece code: empty, white's K Q B N R P, black's."""

SIDES = ("White", "Black")
_HOMES = {"K": ("e1", "h1"), "Q": ("e1", "a1"), "k": ("e8", "h8"), "q": ("e8", "a8")}
_EXAMPLE = 'write a FEN such as "6k1/5ppp/8/8/8/8/8/K2R4 w - - 0 1"'


@dataclass(frozen=True, eq=False)
class Position:
    """A board, the side to move, and what the notation says of castling and en passant."""

    board: NDArray[np.uint8]
    """(64,) piece codes, a1 first"""
    black_to_move: bool
    castling: str | None
    """Some of KQkq, "-" for none, None if the notation leaves it out"""
    en_passant: str | None
    """The name of a square, "-" for none, None if the notation leaves it out"""

    @property
    def assumption(self) -> str:
        """What the notation leaves out, in words; "" if nothing."""
        fields = {"castling": self.castling, "en passant": self.en_passant}
        missing = [name for name, value in fields.items() if value is None]
        return f"{' and '.join(missing)} not given, taken as absent" if missing else ""


def square_name(square: int) -> str:
    """The name of a square: ``square_name(0)`` is ``"a1"``."""
    return "abcdefgh"[square & 7] + str((square >> 3) + 1)


def square_number(name: str) -> int:
    """The number of a square: ``square_number("h8")`` is 63."""
    if len(name) != 2 or name[0] not in "abcdefgh" or name[1] not in "12345678":
        raise TaskError(f"a square must be written like e4, got {name!r}")
    return "abcdefgh".index(name[0]) + 8 * (int(name[1]) - 1)


def parse_fen(text: str) -> Position:
    """The position of a FEN; TaskError says what is wrong with it.

    The board and the side to move are required; the other four fields may be left out from the end.
    """
    fields = text.split()
    if len(fields) < 2:
        raise TaskError(f"a board and the side to move are wanted, got {text!r}; {_EXAMPLE}")
    if len(fields) > 6:
        raise TaskError(
            f"a FEN has at most 6 fields, got {len(fields)}; "
            f"take away what follows them: {' '.join(fields[6:])!r}"
        )
    board = _parse_board(fields[0])
    if fields[1] not in ("w", "b"):
        raise TaskError(f"the side to move must be w or b, got {fields[1]!r}; {_EXAMPLE}")
    black = fields[1] == "b"
    castling = fields[2] if len(fields) > 2 else None
    if castling and castling != "-":
        _check_castling(castling, board)
    en_passant = fields[3] if len(fields) > 3 else None
    if en_passant and en_passant != "-":
        _check_en_passant(en_passant, board, black)
    for name, number in zip(("half-move clock", "move number"), fields[4:], strict=False):
        if not (number.isascii() and number.isdigit()):
            raise TaskError(f"the {name} must be a whole number, got {number!r}; write 0 or 1")
    return Position(board, black, castling, en_passant)


def write_fen(
    board: NDArray[np.uint8], black_to_move: bool, castling: str = "-", en_passant: str = "-"
) -> str:
    """The first four fields of the FEN of a board of (64,) piece codes."""
    ranks = []
    for rank in reversed(range(8)):
        text = "".join(LETTERS[code] for code in board[8 * rank : 8 * rank + 8])
        for empty in range(8, 0, -1):
            text = text.replace("." * empty, str(empty))
        ranks.append(text)
    return f"{'/'.join(ranks)} {'wb'[black_to_move]} {castling} {en_passant}"


def _parse_board(text: str) -> NDArray[np.uint8]:
    ranks = text.split("/")
    if len(ranks) != 8:
        raise TaskError(f"a board has 8 ranks separated by /, got {len(ranks)} in {text!r}")
    codes: list[int] = []
    for number, rank in enumerate(reversed(ranks), start=1):
        unknown = sorted(set(rank) - set(LETTERS[1:] + "12345678"))
        if unknown:
            raise TaskError(
                f"rank {number} holds {unknown[0]!r}; pieces are KQBNRP and kqbnrp, "
                f"empty squares a number from 1 to 8"
            )
        for sign in rank:
            codes += [0] * int(sign) if sign.isdigit() else [LETTERS.index(sign)]
        if len(codes) != 8 * number:
            squares = len(codes) - 8 * (number - 1)
            raise TaskError(f"a rank has 8 squares, rank {number} ({rank!r}) has {squares}")
    for side, king in zip(SIDES, "Kk", strict=True):
        if text.count(king) != 1:
            raise TaskError(
                f"{side} must have exactly one king, got {text.count(king)} in {text!r}"
            )
    if set("Pp") & set(ranks[0] + ranks[7]):
        raise TaskError(f"no pawn can stand on rank 1 or 8, got one in {text!r}")
    return np.array(codes, dtype=np.uint8)


def _check_castling(text: str, board: NDArray[np.uint8]) -> None:
    if set(text) - set("KQkq") or len(set(text)) != len(text):
        raise TaskError(f"castling must be - or some of KQkq, each once, got {text!r}; write -")
    for right in text:
        pieces = "".join(LETTERS[board[square_number(name)]] for name in _HOMES[right])
        if pieces != ("KR" if right.isupper() else "kr"):
            king, rook = _HOMES[right]
            raise TaskError(
                f"castling right {right!r} needs a king on {king} and a rook on {rook}, "
                "which the board does not have; write -"
            )


def _check_en_passant(text: str, board: NDArray[np.uint8], black: bool) -> None:
    """The square must be empty, between a pawn that moved two steps and where it came from."""
    rank = "3" if black else "6"
    if len(text) != 2 or text[0] not in "abcdefgh" or text[1] != rank:
        raise TaskError(
            f"the en passant square must be - or on rank {rank} with {SIDES[black]} to move, "
            f"got {text!r}; write -"
        )
    square, step = square_number(text), 8 if black else -8
    around = "".join(LETTERS[board[square + offset]] for offset in (step, 0, -step))
    if around != ("P.." if black else "p.."):
        raise TaskError(
            f"en passant on {text} needs a pawn that has just passed over it, "
            "which the board does not have; write -"
        )
