"""The rules of chess, from python-chess: legal moves, and moves as players write them.

    >>> parse_move(parse_fen("6k1/5ppp/8/8/8/8/8/K2R4 w - -"), "Rd8#")
    (3, 59)

A move is (origin, destination), a1 = 0; castling is the king's move, and what a pawn becomes is not
part of it. Without the extra ``chess`` these functions raise `MissingExtra`; reading a FEN and
solving it need no rules.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from iterant.errors import MissingExtra, TaskError
from iterant.tasks.chess.fen import SIDES, Position, write_fen

if TYPE_CHECKING:
    import chess

Move = tuple[int, int]


def python_chess(purpose: str, module: str = "chess") -> Any:
    """The module of python-chess; `MissingExtra` names the purpose if it is not installed."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtra("chess", "chess", purpose) from error


def _board(position: Position, purpose: str = "telling legal moves") -> chess.Board:
    fen = write_fen(
        position.board,
        position.black_to_move,
        position.castling or "-",
        position.en_passant or "-",
    )
    board: chess.Board = python_chess(purpose).Board(f"{fen} 0 1")
    return board


def check_position(position: Position) -> None:
    """Refuse an impossible position and one without a move; without the extra, do nothing."""
    try:
        board = _board(position)
    except MissingExtra:
        return
    mover, opponent = SIDES[position.black_to_move], SIDES[not position.black_to_move]
    if board.was_into_check():
        raise TaskError(
            f"{opponent} is in check although {mover} is to move, which cannot occur; "
            f"write {'bw'[position.black_to_move]} for the side to move or correct the board"
        )
    if not any(board.legal_moves):
        end = "checkmated" if board.is_check() else "stalemated"
        raise TaskError(f"{mover} is {end}: there is no move to find; give a position before it")


def legal_moves(position: Position) -> list[Move]:
    """Every legal move, each pair of squares once."""
    moves = _board(position).legal_moves
    return sorted({(move.from_square, move.to_square) for move in moves})


def best_legal(position: Position, scores: Sequence[float]) -> Move:
    """The legal move with the highest sum of the (64,) scores of its two squares."""
    moves = legal_moves(position)
    if not moves:
        raise TaskError("there is no legal move to choose from; give a position before the end")
    return max(moves, key=lambda move: (scores[move[0]] + scores[move[1]], -move[0], -move[1]))


def write_move(position: Position, move: Move) -> str:
    """A legal move in algebraic notation, ``Rd8#``; "" if it is not legal.

    A promotion is written without the new piece, which the network is not asked for.
    """
    board = _board(position)
    for legal in board.legal_moves:
        if (legal.from_square, legal.to_square) == move:
            return board.san(legal).partition("=")[0]
    return ""


def parse_move(position: Position, text: str) -> Move:
    """The squares of a move in algebraic notation (``Nf3``, ``exd5``, ``O-O``) or as ``g1f3``.

    Annotations such as + or ! are ignored, and a promotion may leave out the new piece.
    """
    board, chess = _board(position, "reading written moves"), python_chess("reading written moves")
    san = re.sub(r"e\.?p\.?$", "", text.rstrip("+#!?")).replace(":", "x")
    for attempt in (san, f"{san}=Q") if san[-1:] in ("1", "8") else (san,):
        try:
            move = board.parse_san(attempt)
        except chess.IllegalMoveError:
            continue
        except chess.AmbiguousMoveError:
            raise TaskError(
                f"the move {text!r} is ambiguous; say from which square, as in Nbd2"
            ) from None
        except ValueError:
            break
        if move:
            return move.from_square, move.to_square
        break
    else:
        raise TaskError(f"the move {text!r} is not legal there; correct it or the position")
    raise TaskError(f"{text!r} is no move as players write it; write it like Nf3, exd5 or O-O")
