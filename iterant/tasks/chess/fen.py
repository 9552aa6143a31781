"""Chess positions as people write them: Forsyth-Edwards notation (FEN), read strictly.

    >>> position = parse_fen("6k1/5ppp/8/8/8/8/8/K2R4 w - - 0 1")
    >>> position.black_to_move, square_name(int(position.board.argmax()))
    (False, 'g8')
    >>> write_fen(position.board, black_to_move=False)
    '6k1/5ppp/8/8/8/8/8/K2R4 w - -'

Squares are numbered a1 = 0, b1 = 1 … h8 = 63. What the notation leaves unsaid (castling, en
passant) is None, so that a caller can say that it was assumed absent.

Which squares a side attacks, and whether the side to move can move at all.

Just enough of the rules to refuse a position that cannot occur or that holds nothing to find, and
to read written moves (`iterant.tasks.chess.rules`), without python-chess. Castling is left out: a
king that may castle may also step aside, so castling is never the only move.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from iterant.errors import TaskError

KING, QUEEN, BISHOP, KNIGHT, ROOK, PAWN = 1, 2, 3, 4, 5, 6
"""White's codes on a packed board; black's are six higher, 0 is an empty square."""

_STRAIGHT = ((1, 0), (-1, 0), (0, 1), (0, -1))
_DIAGONAL = ((1, 1), (1, -1), (-1, 1), (-1, -1))
_JUMPS = ((1, 2), (2, 1), (-1, 2), (-2, 1), (1, -2), (2, -1), (-1, -2), (-2, -1))
_RAYS = {BISHOP: _DIAGONAL, ROOK: _STRAIGHT, QUEEN: _STRAIGHT + _DIAGONAL}
_STEPS = {KING: _STRAIGHT + _DIAGONAL, KNIGHT: _JUMPS}


def kind_of(code: int) -> int:
    """What stands there, whatever its colour: KING … PAWN, or 0."""
    return code - 6 if code > 6 else code


def is_black(code: int) -> bool:
    """Whether a code is one of black's pieces."""
    return code > 6


def in_check(board: Sequence[int], black: bool) -> bool:
    """Whether that side's king is attacked; the board must hold it."""
    return attacked(board, list(board).index(KING + 6 * black), by_black=not black)


def attacked(board: Sequence[int], square: int, by_black: bool) -> bool:
    """Whether any piece of that side attacks the square."""
    return any(
        code and is_black(code) == by_black and square in set(_reach(board, origin))
        for origin, code in enumerate(board)
    )


def has_legal_move(board: Sequence[int], black: bool, en_passant: int | None = None) -> bool:
    """Whether the side to move has a move that leaves its king safe."""
    squares = [int(code) for code in board]
    return any(is_safe(squares, move, en_passant) for move in moves(squares, black, en_passant))


def is_safe(board: Sequence[int], move: tuple[int, int], en_passant: int | None = None) -> bool:
    """Whether a move, of those that `moves` gives, leaves the king of its side unattacked."""
    origin, destination = move
    black = is_black(board[origin])
    after = list(board)
    after[destination], after[origin] = after[origin], 0
    if destination == en_passant and kind_of(board[origin]) == PAWN:
        after[destination + (8 if black else -8)] = 0
    return not in_check(after, black)


def _walk(square: int, step: tuple[int, int]) -> Iterator[int]:
    """The squares from one on, in one direction, to the edge."""
    rank, file = square >> 3, square & 7
    while 0 <= (rank := rank + step[0]) < 8 and 0 <= (file := file + step[1]) < 8:
        yield rank * 8 + file


def _reach(board: Sequence[int], origin: int) -> Iterator[int]:
    """The squares that the piece on one square attacks, whoever stands there."""
    kind = kind_of(board[origin])
    forward = -1 if is_black(board[origin]) else 1
    steps = ((forward, -1), (forward, 1)) if kind == PAWN else _STEPS.get(kind, ())
    for step in steps:
        yield from list(_walk(origin, step))[:1]
    for ray in _RAYS.get(kind, ()):
        for square in _walk(origin, ray):
            yield square
            if board[square]:
                break


def moves(board: Sequence[int], black: bool, en_passant: int | None) -> Iterator[tuple[int, int]]:
    """Origins and destinations by the way pieces move, kings perhaps left in check."""
    for origin, code in enumerate(board):
        if not code or is_black(code) != black:
            continue
        pawn = kind_of(code) == PAWN
        for square in _reach(board, origin):
            taken = board[square]
            if (taken and is_black(taken) != black) or (
                not taken and (not pawn or square == en_passant)
            ):
                yield origin, square
        if pawn:
            far = 2 if origin >> 3 == (6 if black else 1) else 1
            for square in list(_walk(origin, (-1 if black else 1, 0)))[:far]:
                if board[square]:
                    break
                yield origin, square


LETTERS = ".KQBNRPkqbnrp"
"""A letter for each code: empty, white's K Q B N R P, black's."""

_SIDES = ("White", "Black")
_HOMES = {"K": ("e1", "h1"), "Q": ("e1", "a1"), "k": ("e8", "h8"), "q": ("e8", "a8")}
_WANTED = 'a FEN such as "6k1/5ppp/8/8/8/8/8/K2R4 w - - 0 1"'


@dataclass(frozen=True, eq=False)
class Position:
    """Where the pieces stand, who moves, and what the notation says of castling and en passant."""

    board: NDArray[np.uint8]
    """(64,) codes, a1 first"""
    black_to_move: bool
    castling: str | None
    """A selection of KQkq, "-" for none, None where the notation does not say."""
    en_passant: str | None
    """A square, "-" for none, None where the notation does not say."""


def square_name(square: int) -> str:
    """The square as people call it: ``square_name(0)`` is ``"a1"``."""
    return "abcdefgh"[square & 7] + str((square >> 3) + 1)


def square_number(name: str) -> int:
    """The number of a square: ``square_number("h8")`` is 63."""
    if len(name) != 2 or name[0] not in "abcdefgh" or name[1] not in "12345678":
        raise TaskError(f"a square must be written like e4, got {name!r}")
    return "abcdefgh".index(name[0]) + 8 * (int(name[1]) - 1)


def parse_fen(text: str) -> Position:
    """The position behind a FEN, or a TaskError that says what is wrong with it.

    The board and the side to move are needed; the other four fields may be left out from the end.
    """
    fields = text.split()
    if len(fields) < 2:
        raise TaskError(f"a board and the side to move are wanted, got {text!r}; write {_WANTED}")
    if text.rstrip().endswith(";") and len(fields) > 4 and not fields[4].isdigit():
        told = " ".join(fields[4:])
        raise TaskError(f"a FEN is wanted and no EPD; take away its operations: {told!r}")
    if len(fields) > 6:
        raise TaskError(
            f"a FEN has at most 6 fields, got {len(fields)}; "
            f"take away what follows them: {' '.join(fields[6:])!r}"
        )
    board = _parse_board(fields[0])
    if fields[1] not in ("w", "b"):
        raise TaskError(f"the side to move must be w or b, got {fields[1]!r}; write {_WANTED}")
    black = fields[1] == "b"
    castling = _parse_castling(fields[2], board) if len(fields) > 2 else None
    en_passant = _parse_en_passant(fields[3], board, black) if len(fields) > 3 else None
    for name, number in zip(("half-move clock", "move number"), fields[4:], strict=False):
        if not (number.isascii() and number.isdigit()):
            raise TaskError(f"the {name} must be a whole number, got {number!r}; write 0 or 1")
    return Position(board, black, castling, en_passant)


def check_position(position: Position) -> Position:
    """The position itself if it can occur and there is a move to find, else TaskError."""
    board, black = position.board.tolist(), position.black_to_move
    mover, other = _SIDES[black], _SIDES[not black]
    if in_check(board, not black):
        raise TaskError(
            f"{other} is in check although {mover} is to move, which cannot occur; "
            f"write {'wb'[not black]} for the side to move or correct the board"
        )
    stated = position.en_passant not in (None, "-")
    target = square_number(str(position.en_passant)) if stated else None
    if not has_legal_move(board, black, target):
        end = "checkmated" if in_check(board, black) else "stalemated"
        raise TaskError(f"{mover} is {end}: there is no move to find; give a position before it")
    return position


def write_fen(
    board: NDArray[np.uint8], black_to_move: bool, castling: str = "-", en_passant: str = "-"
) -> str:
    """The first four fields of the FEN of a board of (64,) codes."""
    ranks = []
    for rank in reversed(range(8)):
        text = "".join(LETTERS[code] for code in board[8 * rank : 8 * rank + 8])
        for empty in range(8, 0, -1):
            text = text.replace("." * empty, str(empty))
        ranks.append(text)
    return f"{'/'.join(ranks)} {'wb'[black_to_move]} {castling} {en_passant}"


def _parse_board(text: str) -> NDArray[np.uint8]:
    """The first field, with the rules that hold for either side to move."""
    ranks = text.split("/")
    if len(ranks) != 8:
        raise TaskError(f"a board has 8 ranks separated by /, got {len(ranks)} in {text!r}")
    board = np.zeros(64, np.uint8)
    for number, rank in zip(range(8, 0, -1), ranks, strict=True):
        unknown = sorted(set(rank) - set(LETTERS[1:] + "12345678"))
        if unknown:
            raise TaskError(
                f"rank {number} holds {unknown[0]!r}; pieces are KQBNRP and kqbnrp, "
                f"empty squares a number from 1 to 8"
            )
        codes = [code for sign in rank for code in _codes(sign)]
        if len(codes) != 8:
            raise TaskError(f"a rank has 8 squares, rank {number} ({rank!r}) has {len(codes)}")
        board[8 * (number - 1) : 8 * number] = codes
    for side, king in zip(_SIDES, (KING, KING + 6), strict=True):
        kings = int((board == king).sum())
        if kings != 1:
            raise TaskError(f"{side} must have exactly one king, got {kings} in {text!r}")
    ends = np.concatenate([board[:8], board[56:]])
    if np.isin(ends, (PAWN, PAWN + 6)).any():
        raise TaskError(f"no pawn can stand on rank 1 or 8, got one in {text!r}")
    return board


def _codes(sign: str) -> list[int]:
    """The codes of the squares that one sign of a rank stands for."""
    return [0] * int(sign) if sign.isdigit() else [LETTERS.index(sign)]


def _parse_castling(text: str, board: NDArray[np.uint8]) -> str:
    """The third field: rights whose king and rook are at home."""
    if text == "-":
        return text
    if set(text) - set("KQkq") or len(set(text)) != len(text):
        raise TaskError(f"castling must be - or some of KQkq, each once, got {text!r}; write -")
    for right in text:
        shift = 0 if right.isupper() else 6
        king, rook = (int(board[square_number(name)]) for name in _HOMES[right])
        if (king, rook) != (1 + shift, 5 + shift):
            raise TaskError(
                f"castling right {right!r} needs a king on {_HOMES[right][0]} and a rook on "
                f"{_HOMES[right][1]}, which the board does not have; write -"
            )
    return text


def _parse_en_passant(text: str, board: NDArray[np.uint8], black: bool) -> str:
    """The fourth field: the square that a pawn of the other side has just passed over."""
    if text == "-":
        return text
    rank = "3" if black else "6"
    if len(text) != 2 or text[0] not in "abcdefgh" or text[1] != rank:
        raise TaskError(
            f"the en passant square must be - or on rank {rank} with {_SIDES[black]} to move, "
            f"got {text!r}; write -"
        )
    passed = square_number(text)
    pawn, landed, left = (PAWN, 8, -8) if black else (PAWN + 6, -8, 8)
    around = [int(board[passed + step]) for step in (landed, 0, left)]
    if around != [pawn, 0, 0]:
        raise TaskError(
            f"en passant on {text} needs a pawn that has just passed over it, "
            f"which the board does not have; write -"
        )
    return text
