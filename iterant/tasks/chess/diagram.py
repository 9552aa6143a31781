"""A chess position with its moves as a drawn board.

    >>> print(diagram(board, black=False, answer=[3, 59]).text)
    8  .  .  . [.] .  .  k  .
    …

The board is drawn from the side to move: for black, rank 8 is at the bottom and file h on the left.
(The planes of a network flip ranks only.)
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from iterant.tasks.chess.fen import LETTERS, square_name
from iterant.tasks.chess.rules import Move
from iterant.tasks.protocol import Arrow, Description, Glyph

ANSWER, RIGHT, WRONG = "#00695c", "#0072b2", "#e6550d"
"""Colours of arrows, told apart by colour-blind readers too."""
_NAMES = {".": "", "k": "king", "q": "queen", "b": "bishop", "n": "knight", "r": "rook",
          "p": "pawn"}  # fmt: skip
_SIGNS = " ♔♕♗♘♖♙♚♛♝♞♜♟"
_LIGHT, _DARK, _MARK = (240, 217, 181), (181, 136, 99), (246, 226, 80)


def as_move(squares: list[int], board: NDArray[np.uint8], black: bool) -> Move | None:
    """Two marked squares as a move, if exactly one of them holds a piece of the side to move."""
    own = [square for square in squares if board[square] and (board[square] > 6) == black]
    if len(squares) != 2 or len(own) != 1:
        return None
    return own[0], next(square for square in squares if square != own[0])


def move_text(squares: list[int], board: NDArray[np.uint8], black: bool) -> str:
    """Marked squares as ``e2e4``, or a note that they are no move."""
    move = as_move(squares, board, black)
    if move:
        return square_name(move[0]) + square_name(move[1])
    if len(squares) > 4:
        return f"{len(squares)} squares, no move"
    names = " and ".join(square_name(square) for square in squares)
    return f"{names or 'no square'}, no move"


def move_words(board: NDArray[np.uint8], move: Move, en_passant: str | None = None) -> str:
    """A move in words: ``rook d1 takes queen d8``; the web page writes the same.

    ``en_passant`` is the square that a pawn has just passed over. Check is not mentioned.
    """
    piece, captured = (_NAMES[LETTERS[board[square]].lower()] for square in move)
    start, end = map(square_name, move)
    aside = (move[1] & 7) - (move[0] & 7)
    if piece == "king" and start in ("e1", "e8") and abs(aside) == 2 and start[1] == end[1]:
        return f"king {start} castles to {end}"
    if piece == "pawn" and aside and end == en_passant:
        return f"pawn {start} takes pawn {end[0]}{start[1]} en passant"
    action = f"takes {captured} {end}" if captured else f"to {end}"
    promoted = " and is promoted" if piece == "pawn" and end[1] in "18" else ""
    return f"{piece} {start} {action}{promoted}"


def diagram(
    board: NDArray[np.uint8],
    black: bool,
    *,
    title: str = "Chess position",
    answer: list[int] | None = None,
    found: list[int] | None = None,
    promotion: str = "",
) -> Description:
    """A board of (64,) codes with the squares of the answer and of a network's prediction.

    In the text, [ ] are around squares of the answer and ( ) around other predicted ones.
    """
    answer, predicted = answer or [], found or []
    cells = np.zeros((8, 8, 3), np.uint8)
    grid = [[""] * 8 for _ in range(8)]
    glyphs = []
    for square in range(64):
        row, column = _cell(square, black)
        colour = _LIGHT if (square + (square >> 3)) % 2 else _DARK
        cells[row, column] = _MARK if square in predicted else colour
        if board[square]:
            glyphs.append(Glyph(row, column, _SIGNS[board[square]]))
        left, right = "[]" if square in answer else "()" if square in predicted else "  "
        grid[row][column] = left + LETTERS[board[square]] + right
    files = tuple("hgfedcba" if black else "abcdefgh")
    ranks = tuple("12345678" if black else "87654321")
    lines = [f"{rank} {''.join(signs)}" for rank, signs in zip(ranks, grid, strict=True)]
    same = set(predicted) == set(answer)
    arrows = []
    for squares, paint in ((answer, ANSWER), (predicted, RIGHT if same or not answer else WRONG)):
        if move := as_move(squares, board, black):
            arrows.append(Arrow(_cell(move[0], black), _cell(move[1], black), paint))
    caption = ["Black to move" if black else "White to move"]
    if answer:
        caption.append(f"answer {move_text(answer, board, black)}{promotion}")
    if found is not None:
        verdict = "" if not answer else ", right" if same else ", wrong"
        caption.append(f"found {move_text(found, board, black)}{verdict}")
    return Description(
        title=title,
        text="\n".join([*lines, "  " + "".join(f" {file} " for file in files)]),
        cells=cells,
        glyphs=tuple(glyphs),
        arrows=tuple(arrows),
        row_labels=ranks,
        column_labels=files,
        caption="; ".join(caption),
    )


def _cell(square: int, black: bool) -> tuple[int, int]:
    """(row, column) of a square on the drawn board."""
    rank, file = square >> 3, square & 7
    return (rank, 7 - file) if black else (7 - rank, file)
