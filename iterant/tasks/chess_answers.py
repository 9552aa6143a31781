"""What is to be seen and said of an answer to a chess puzzle: a board, a move, whether it is legal.

    >>> tell_move(batch, 0, prediction)
    'd1d8'
    >>> judge_move(batch, 0, prediction)
    Verdict(keeps=True, words='rook d1 to d8 (Rd8#), legal')

Shapes: N positions, grids (N, 8, 8) as in `iterant.tasks.boards`.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from iterant.errors import MissingExtra, TaskError
from iterant.tasks.algebraic import Move, is_legal, squares_of
from iterant.tasks.answers import Verdict
from iterant.tasks.boards import boards_from_planes, square_at
from iterant.tasks.diagrams import as_move, diagram, move_text, move_words
from iterant.tasks.legality import assumed, best_legal, notation
from iterant.tasks.positions import Position, parse_fen
from iterant.tasks.protocol import Batch, Description

_PROMOTIONS = ("", "", "n", "b", "r", "q", "")
_UNSEEN = "whether it is legal was not looked at: that needs pip install 'iterant[chess]'"


def describe_position(batch: Batch, index: int, prediction: Tensor | None) -> Description:
    """One position seen by the side to move, with the answer and the move found."""
    if not 0 <= index < len(batch):
        raise TaskError(f"position {index} was asked for of {len(batch)}; count from 0")
    if prediction is not None and prediction.shape != batch.targets.shape:
        raise TaskError(
            f"the prediction has shape {tuple(prediction.shape)}, "
            f"the targets {tuple(batch.targets.shape)}; give those of the whole batch"
        )
    extras = {name: column[index] for name, column in batch.extras.items()}
    position = position_at(batch, index)
    black = position.black_to_move
    # A position that somebody gave is named by whoever shows it.
    puzzle = "id" in extras and "fen" not in extras
    title = f"Chess puzzle {extras['id']}" if puzzle else "Chess position"
    answer = _marked(batch.targets[index], black)
    found = None if prediction is None else _marked(prediction[index], black)
    if answer and found and any(set(found) == set(move) for move in _told(batch, index, "best")):
        answer = found  # of several best moves, the one that was found
    drawn = diagram(
        position.board,
        black,
        title=f"{title}, rating {extras['rating']}" if "rating" in extras else title,
        answer=answer,
        found=found,
        promotion=_PROMOTIONS[int(extras.get("promotion", 0))],
    )
    avoid = str(extras.get("avoid", ""))
    return replace(drawn, caption=f"{drawn.caption}; to avoid: {avoid}") if avoid else drawn


def position_at(batch: Batch, index: int) -> Position:
    """The position behind the planes; what only a FEN holds is None where there was none."""
    if "fen" in batch.extras:
        return parse_fen(str(batch.extras["fen"][index]))
    black = "black" in batch.extras and bool(batch.extras["black"][index])
    board = boards_from_planes(batch.inputs[index : index + 1], np.array([black]))[0]
    return Position(board, black, castling=None, en_passant=None)


def tell_move(batch: Batch, index: int, prediction: Tensor) -> str:
    """The move in the notation of engines, or what the marked squares are instead."""
    position = position_at(batch, index)
    black = position.black_to_move
    return move_text(_marked(prediction[index], black), position.board, black)


def judge_move(batch: Batch, index: int, prediction: Tensor) -> Verdict:
    """Whether the marked squares are a legal move, as far as that can be told here."""
    position = position_at(batch, index)
    black = position.black_to_move
    move = as_move(_marked(prediction[index], black), position.board, black)
    if move is None:
        return Verdict(False, _no_move(_marked(prediction[index], black), position))
    words = move_words(position.board, move, position.en_passant)
    try:
        written = notation(position, *move)
    except MissingExtra:
        return Verdict(None, f"{words}; {_UNSEEN}", lacking=_UNSEEN)
    said = f" ({assumed(position)})" if assumed(position) else ""
    if not written:
        return Verdict(False, f"{words}, not legal{said}")
    return Verdict(True, f"{words} ({written}), legal{said}")


def wanted_moves(batch: Batch, index: int) -> str:
    """What an EPD calls best, or to be avoided, as it writes the moves."""
    best, avoid = (
        " or ".join(str(batch.extras[name][index]).split()) if name in batch.extras else ""
        for name in ("best", "avoid")
    )
    return ", ".join(words for words in (best, f"not {avoid}" if avoid else "") if words)


def accepts_move(batch: Batch, index: int, prediction: Tensor) -> bool:
    """Whether it is one of the best moves; where none is told, a legal one that none forbids."""
    position = position_at(batch, index)
    black = position.black_to_move
    move = as_move(_marked(prediction[index], black), position.board, black)
    if move is None or move in _told(batch, index, "avoid"):
        return False
    best = _told(batch, index, "best")
    return move in best if best else is_legal(position, move)


def _told(batch: Batch, index: int, name: str) -> list[Move]:
    """The moves that an EPD calls so: "best" or "avoid"."""
    if name not in batch.extras:
        return []
    position = position_at(batch, index)
    return [squares_of(position, word) for word in str(batch.extras[name][index]).split()]


def _no_move(squares: list[int], position: Position) -> str:
    """Why marked squares are no move of the side to move."""
    if len(squares) != 2:
        return f"no move: two squares make one, here are {len(squares)}"
    side = "Black" if position.black_to_move else "White"
    held = position.board[squares].astype(int)
    own = ((held > 0) & ((held > 6) == position.black_to_move)).all()
    return f"no move: {'both squares hold' if own else 'neither square holds'} a piece of {side}'s"


def restrict_move(batch: Batch, index: int, logits: Tensor) -> tuple[Tensor, str]:
    """(8, 8) int64: the legal move with the highest scores, by logits (2, 8, 8).

    Scores are those of class 1, by which the plain answer is read too: where that is legal, it
    stays, and masking changes nothing else.
    """
    position = position_at(batch, index)
    black = position.black_to_move
    cells = [(row, column) for row in range(8) for column in range(8)]
    square_of = {square_at(row, column, black): (row, column) for row, column in cells}
    scores = logits[1].detach().cpu()
    move = best_legal(position, [float(scores[square_of[square]]) for square in range(64)])
    grid = torch.zeros(8, 8, dtype=torch.int64)
    for square in move:
        grid[square_of[square]] = 1
    return grid, assumed(position)


def _marked(grid: Tensor, black: bool) -> list[int]:
    """The squares of the cells that hold 1."""
    return [square_at(row, column, black) for row, column in (grid == 1).nonzero().tolist()]
