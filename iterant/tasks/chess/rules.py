"""Moves as players write them, read without python-chess: ``Nf3``, ``exd5``, ``O-O``, ``e8=Q``.

    >>> squares_of(parse_fen("6k1/5ppp/8/8/8/8/8/K2R4 w - -"), "Rd8#")
    (3, 59)

Marks such as x, + or ! are not checked, ``g1f3`` and ``Ng1-f3`` are understood too, and of a
promotion only the squares are told. A move that is not legal, or that may be two, is a TaskError.

Whether a move is legal, and the best of the legal ones: python-chess knows the rules.

Needs the extra ``chess``; where it is not installed, `MissingExtra` says so.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from iterant.errors import MissingExtra, TaskError
from iterant.tasks.chess.fen import (
    LETTERS,
    PAWN,
    Position,
    attacked,
    is_safe,
    kind_of,
    moves,
    square_name,
    square_number,
    write_fen,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    import chess


Move = tuple[int, int]
"""Origin and destination, a1 = 0; castling is the king's."""

_WRITTEN = re.compile(
    r"(?P<piece>[KQBNR])?(?P<file>[a-h])?(?P<rank>[1-8])?[-x:]?(?P<goal>[a-h][1-8])"
    r"(?P<promoted>=?[QRBNqrbn])?(?:e\.?p\.?)?"
)
_CASTLING = {"O-O": "Kg", "0-0": "Kg", "O-O-O": "Kc", "0-0-0": "Kc"}
_PATHS = {"K": ("e1", "f1", "g1"), "Q": ("e1", "d1", "c1", "b1"),
          "k": ("e8", "f8", "g8"), "q": ("e8", "d8", "c8", "b8")}  # fmt: skip
"""The king's square and those that must be empty; the first three must not be attacked."""


def squares_of(position: Position, text: str) -> Move:
    """The squares of a written move, or a TaskError that says why it is none here."""
    plain = text.rstrip("+#!?")
    castles = plain in _CASTLING
    written = _WRITTEN.fullmatch(
        f"{_CASTLING[plain]}{'18'[position.black_to_move]}" if castles else plain
    )
    if written is None:
        raise TaskError(f"{text!r} is no move as players write it; write it like Nf3, exd5 or O-O")
    candidates = _castlings(position) if castles else _moves(position)
    close = [move for move in candidates if _fits(position, move, written)]
    found = [move for move in close if _is_legal(position, move)]
    if not found:
        raise TaskError(f"the move {text!r} is not legal there; correct it or the position")
    if len(found) > 1:
        whence = " or ".join(square_name(origin) for origin, _ in found)
        raise TaskError(f"the move {text!r} may be from {whence}; say from which, as in Nbd2")
    return found[0]


def is_legal(position: Position, move: Move) -> bool:
    """Whether a move, origin and destination, keeps the rules of chess."""
    return move in _moves(position) and _is_legal(position, move)


def _moves(position: Position) -> Iterator[Move]:
    """By the way pieces move, kings perhaps left in check; castling is checked already."""
    yield from moves(position.board.tolist(), position.black_to_move, _passed(position))
    yield from _castlings(position)


def _is_legal(position: Position, move: Move) -> bool:
    return is_safe(position.board.tolist(), move, _passed(position))


def _passed(position: Position) -> int | None:
    """The square that a pawn has just passed over."""
    return None if position.en_passant in (None, "-") else square_number(str(position.en_passant))


def _fits(position: Position, move: Move, written: re.Match[str]) -> bool:
    """Whether everything that is written is true of the move."""
    origin, goal = move
    start, end = square_name(origin), square_name(goal)
    kind = kind_of(int(position.board[origin]))
    exact = written["file"] and written["rank"]  # such as g1f3, whatever stands there
    wanted = written["piece"] or (LETTERS[kind] if exact else LETTERS[PAWN])
    return (
        end == written["goal"]
        and LETTERS[kind] == wanted
        and written["file"] in (None, start[0])
        and written["rank"] in (None, start[1])
        and (not written["promoted"] or (kind == PAWN and end[1] in "18"))
    )


def _castlings(position: Position) -> Iterator[Move]:
    """Castling by rights that the notation gives, over empty squares that nobody attacks."""
    board, black = position.board.tolist(), position.black_to_move
    for right in position.castling or "":
        if right in ("kq" if black else "KQ"):
            king, *between = map(square_number, _PATHS[right])
            if not any(board[square] for square in between) and not any(
                attacked(board, square, by_black=not black) for square in (king, *between[:2])
            ):
                yield king, between[1]


def legal_moves(position: Position) -> list[tuple[int, int]]:
    """(origin, destination) of every legal move, a1 = 0, each pair once; castling is the king's."""
    moves = _board(position).legal_moves
    return sorted({(move.from_square, move.to_square) for move in moves})


def notation(position: Position, origin: int, destination: int) -> str:
    """A legal move as players write it, ``Rd8#``, "" for one that is not legal.

    A promotion is written without what the pawn becomes, which nobody was asked.
    """
    board = _board(position)
    for move in board.legal_moves:
        if (move.from_square, move.to_square) == (origin, destination):
            return board.san(move).partition("=")[0]
    return ""


def best_legal(position: Position, scores: Sequence[float]) -> tuple[int, int]:
    """The legal move whose two squares have the highest sum of (64,) scores, a1 first."""
    moves = legal_moves(position)
    if not moves:
        raise TaskError("there is no legal move to choose from; give a position before the end")
    return max(moves, key=lambda move: (scores[move[0]] + scores[move[1]], -move[0], -move[1]))


def assumed(position: Position) -> str:
    """What the notation left unsaid and was taken as absent; "" where it said everything."""
    unsaid = [
        words
        for words, value in (("castling", position.castling), ("en passant", position.en_passant))
        if value is None
    ]
    return f"{' and '.join(unsaid)} not given, taken as absent" if unsaid else ""


def _board(position: Position) -> chess.Board:
    try:
        library = importlib.import_module("chess")
    except ImportError as error:
        raise MissingExtra("chess", "chess", "telling legal moves") from error
    fen = write_fen(
        position.board,
        position.black_to_move,
        position.castling or "-",
        position.en_passant or "-",
    )
    board: chess.Board = library.Board(f"{fen} 0 1")
    return board
