"""Whether a move is legal, and the best of the legal ones: python-chess knows the rules.

    >>> notation(position, origin=3, destination=59)
    'Rd8#'
    >>> best_legal(position, scores)              # of (64,) scores: the move with the highest sum
    (3, 59)

Needs the extra ``chess``; where it is not installed, `MissingExtra` says so.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from iterant.errors import MissingExtra, TaskError
from iterant.tasks.positions import Position, write_fen

if TYPE_CHECKING:
    from collections.abc import Sequence

    import chess


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
