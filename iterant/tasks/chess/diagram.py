"""A chess position with its moves as a drawn board.

    >>> print(diagram(position, title="Chess position", answer=[3, 59]).text)
    8  .  .  . [.] .  .  k  .
    …

The board is drawn from the side to move: for black, rank 8 is at the bottom and file h on the left.
(The planes of a network flip ranks only.)
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from iterant.tasks.chess.position import LETTERS, SIDES, Position, as_move, move_text
from iterant.tasks.protocol import Arrow, Description, Glyph

ANSWER, RIGHT, WRONG = "#00695c", "#0072b2", "#e6550d"
"""Colours of arrows that colour-blind readers can distinguish."""
_SIGNS = " ♔♕♗♘♖♙♚♛♝♞♜♟"
_LIGHT, _DARK, _MARK = (240, 217, 181), (181, 136, 99), (246, 226, 80)


def diagram(
    position: Position,
    *,
    title: str,
    answer: Sequence[int] = (),
    predicted: Sequence[int] | None = None,
    promotion: str = "",
) -> Description:
    """A board with the squares of the answer and of a network's prediction.

    In the text, [ ] are around squares of the answer and ( ) around other predicted ones.
    """
    flip = (0, 7) if position.black else (7, 0)  # ranks and files are drawn from the mover's side
    marked = predicted or ()
    cells = np.zeros((8, 8, 3), np.uint8)
    grid = np.full((8, 8), "   ")
    glyphs = []
    for square, code in enumerate(position.board.tolist()):
        row, column = square >> 3 ^ flip[0], square & 7 ^ flip[1]
        colour = _LIGHT if (square + (square >> 3)) % 2 else _DARK
        cells[row, column] = _MARK if square in marked else colour
        if code:
            glyphs.append(Glyph(row, column, _SIGNS[code]))
        left, right = "[]" if square in answer else "()" if square in marked else "  "
        grid[row, column] = left + LETTERS[code] + right
    files, ranks = ("hgfedcba", "12345678") if position.black else ("abcdefgh", "87654321")
    lines = [f"{rank} {''.join(signs)}" for rank, signs in zip(ranks, grid, strict=True)]
    same = set(marked) == set(answer)
    arrows = []
    for squares, paint in ((answer, ANSWER), (marked, RIGHT if same or not answer else WRONG)):
        if move := as_move(position, squares):
            start, end = ((each >> 3 ^ flip[0], each & 7 ^ flip[1]) for each in move)
            arrows.append(Arrow(start, end, paint))
    caption = [f"{SIDES[position.black]} to move"]
    if answer:
        caption.append(f"answer {move_text(position, answer)}{promotion}")
    if predicted is not None:
        verdict = "" if not answer else ", right" if same else ", wrong"
        caption.append(f"found {move_text(position, predicted)}{verdict}")
    return Description(
        title=title,
        text="\n".join([*lines, "  " + "".join(f" {file} " for file in files)]),
        cells=cells,
        glyphs=tuple(glyphs),
        arrows=tuple(arrows),
        row_labels=tuple(ranks),
        column_labels=tuple(files),
        caption="; ".join(caption),
    )
