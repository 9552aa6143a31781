"""A chess position with its moves as a board to look at.

    >>> print(diagram(board, black=False, answer=(12, 28)).text)
    8  .  .  .  .  .  .  k  .
    …

The board is seen by the side to move, as if sitting at it: for black, rank 8 is at the bottom and
file h on the left. The planes of a network turn ranks only; the labels here are those of the
squares shown, so that either may be compared with any other diagram.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from iterant.tasks.chess.fen import LETTERS, square_name
from iterant.tasks.protocol import Arrow, Description, Glyph

Move = tuple[int, int]
"""Origin and destination, a1 = 0."""

ANSWER, RIGHT, WRONG = "#00695c", "#0072b2", "#e6550d"
"""Green, blue and orange that the colour-blind tell apart on these boards, too."""
_NAMES = {".": "", "k": "king", "q": "queen", "b": "bishop", "n": "knight", "r": "rook",
          "p": "pawn"}  # fmt: skip
_SIGNS = " ♔♕♗♘♖♙♚♛♝♞♜♟"
_LIGHT, _DARK = (240, 217, 181), (181, 136, 99)
_MARK = (246, 226, 80)


def as_move(squares: list[int], board: NDArray[np.uint8], black: bool) -> Move | None:
    """Two marked squares as a move of the side to move, if exactly one of them holds its piece."""
    own = [square for square in squares if board[square] and (board[square] > 6) == black]
    if len(squares) != 2 or len(own) != 1:
        return None
    return own[0], next(square for square in squares if square != own[0])


def move_text(squares: list[int], board: NDArray[np.uint8], black: bool) -> str:
    """Marked squares in words: ``e2e4``, or what they are if they are no move."""
    move = as_move(squares, board, black)
    if move:
        return square_name(move[0]) + square_name(move[1])
    if len(squares) > 4:
        return f"{len(squares)} squares, no move"
    names = " and ".join(square_name(square) for square in squares)
    return f"{names or 'no square'}, no move"


def move_words(board: NDArray[np.uint8], move: Move, passed: str | None = None) -> str:
    """A move as people say it: ``rook d1 takes queen d8``; the page says the same.

    ``passed`` is the square that a pawn has just passed. Whether it is check is not looked at.
    """
    origin, goal = move
    piece, other = (_NAMES[LETTERS[board[square]].lower()] for square in move)
    start, end = square_name(origin), square_name(goal)
    aside = (goal & 7) - (origin & 7)
    if piece == "king" and start in ("e1", "e8") and abs(aside) == 2 and start[1] == end[1]:
        return f"king {start} castles to {end}"
    if piece == "pawn" and aside and end == passed:
        return f"pawn {start} takes pawn {end[0]}{start[1]} en passant"
    doing = f"takes {other} {end}" if other else f"to {end}"
    promoted = " and is promoted" if piece == "pawn" and end[1] in "18" else ""
    return f"{piece} {start} {doing}{promoted}"


def diagram(
    board: NDArray[np.uint8],
    black: bool,
    *,
    title: str = "Chess position",
    answer: list[int] | None = None,
    found: list[int] | None = None,
    promotion: str = "",
) -> Description:
    """A board of (64,) codes with the squares of the answer and of a network's choice."""
    answer, marked = answer or [], found or []
    cells = np.zeros((8, 8, 3), np.uint8)
    glyphs = []
    for square in range(64):
        row, column = cell_of(square, black)
        cells[row, column] = _LIGHT if (square + (square >> 3)) % 2 else _DARK
        if square in marked:
            cells[row, column] = _MARK
        if board[square]:
            glyphs.append(Glyph(row, column, _SIGNS[board[square]]))
    sides = reversed(range(8)) if black else range(8)
    files = tuple("abcdefgh"[file] for file in sides)
    ranks = tuple(str(rank + 1 if black else 8 - rank) for rank in range(8))
    return Description(
        title=title,
        text=_text(board, black, answer, marked, ranks, files),
        cells=cells,
        glyphs=tuple(glyphs),
        arrows=_arrows(board, black, answer, marked),
        row_labels=ranks,
        column_labels=files,
        caption=_caption(board, black, answer, found, promotion),
    )


def cell_of(square: int, black: bool) -> tuple[int, int]:
    """(row, column) of a square on the board as it is shown."""
    rank, file = square >> 3, square & 7
    return (rank, 7 - file) if black else (7 - rank, file)


def _text(
    board: NDArray[np.uint8],
    black: bool,
    answer: list[int],
    found: list[int],
    ranks: tuple[str, ...],
    files: tuple[str, ...],
) -> str:
    """Letters, white's in capitals; [ ] around the answer's squares, ( ) around others found."""
    grid = [[""] * 8 for _ in range(8)]
    for square in range(64):
        row, column = cell_of(square, black)
        left, right = "[]" if square in answer else "()" if square in found else "  "
        grid[row][column] = left + LETTERS[board[square]] + right
    lines = [f"{rank} {''.join(cells)}" for rank, cells in zip(ranks, grid, strict=True)]
    return "\n".join([*lines, "  " + "".join(f" {file} " for file in files)])


def _arrows(
    board: NDArray[np.uint8], black: bool, answer: list[int], found: list[int]
) -> tuple[Arrow, ...]:
    """The answer's move, and the found one over it."""
    right = RIGHT if set(found) == set(answer) or not answer else WRONG
    arrows = []
    for squares, colour in ((answer, ANSWER), (found, right)):
        move = as_move(squares, board, black)
        if move:
            arrows.append(Arrow(cell_of(move[0], black), cell_of(move[1], black), colour))
    return tuple(arrows)


def _caption(
    board: NDArray[np.uint8],
    black: bool,
    answer: list[int],
    found: list[int] | None,
    promotion: str,
) -> str:
    """Who moves, what the answer is, what was found."""
    parts = ["Black to move" if black else "White to move"]
    if answer:
        parts.append(f"answer {move_text(answer, board, black)}{promotion}")
    if found is not None:
        verdict = "" if not answer else ", right" if set(found) == set(answer) else ", wrong"
        parts.append(f"found {move_text(found, board, black)}{verdict}")
    return "; ".join(parts)
