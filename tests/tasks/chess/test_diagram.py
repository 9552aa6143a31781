"""Boards as people see them: every piece, label and arrow on its own square."""

from __future__ import annotations

import chess
import numpy as np
import pytest
import torch

from iterant.tasks.chess.boards import boards_from_planes, square_at
from iterant.tasks.chess.diagram import ANSWER, RIGHT, WRONG
from iterant.tasks.chess.fen import write_fen
from iterant.tasks.chess.task import SAMPLE, Chess
from iterant.tasks.protocol import Batch


@pytest.fixture(scope="module")
def task() -> Chess:
    return Chess(SAMPLE)


def test_orientation(task: Chess) -> None:
    white = task.describe(task.encode("6k1/5ppp/8/8/8/8/8/K2R4 w - - 0 1"))
    assert white.text.splitlines()[0] == "8  .  .  .  .  .  .  k  . "
    assert white.text.splitlines()[7] == "1  K  .  .  R  .  .  .  . "
    assert white.text.splitlines()[8] == "   a  b  c  d  e  f  g  h "
    assert white.caption == "White to move"
    black = task.describe(task.encode("6k1/5ppp/8/8/8/8/8/K2R4 b - - 0 1"))
    assert black.text.splitlines()[7] == "8  .  k  .  .  .  .  .  . "
    assert black.text.splitlines()[8] == "   h  g  f  e  d  c  b  a "
    assert black.caption == "Black to move"
    for shown in (white, black):
        assert len({len(line) for line in shown.text.splitlines()}) == 1
        names = {
            shown.column_labels[glyph.column] + shown.row_labels[glyph.row]: glyph.text
            for glyph in shown.glyphs
        }
        assert names == {"g8": "♚", "f7": "♟", "g7": "♟", "h7": "♟", "a1": "♔", "d1": "♖"}
        # The corner at the right hand is light for either player, and colours alternate.
        assert shown.cells[7, 7].sum() > shown.cells[7, 0].sum()
        assert (shown.cells[:, 1:] != shown.cells[:, :-1]).any(2).all()
        assert shown.cells.shape == (8, 8, 3)


def test_arrows_and_captions(task: Chess) -> None:
    batch = task.sample(12, seed=4)
    assert 0 < batch.extras["black"].sum() < 12
    for index in range(12):
        black = bool(batch.extras["black"][index])
        codes = boards_from_planes(batch.inputs, batch.extras["black"])[index]
        board = chess.Board(write_fen(codes, black))
        cells = batch.targets[index].nonzero().tolist()
        ends = {square_at(row, column, black) for row, column in cells}
        [origin] = [square for square in ends if board.color_at(square) == board.turn]
        [destination] = ends - {origin}
        uci = chess.square_name(origin) + chess.square_name(destination)
        shown = task.describe(batch, index, batch.targets)
        assert [arrow.colour for arrow in shown.arrows] == [ANSWER, RIGHT]
        for arrow in shown.arrows:
            named = "".join(
                shown.column_labels[column] + shown.row_labels[row]
                for row, column in (arrow.start, arrow.end)
            )
            assert named == uci
        assert f"answer {uci}" in shown.caption
        assert shown.caption.endswith(f"found {uci}, right")
        assert shown.text.count("[") == 2
        assert str(batch.extras["id"][index]) in shown.title
        assert str(batch.extras["rating"][index]) in shown.title


def test_wrong_and_impossible_predictions(task: Chess) -> None:
    batch = task.encode("6k1/5ppp/8/8/8/8/8/K2R4 w - - 0 1")
    grid = torch.zeros(1, 8, 8, dtype=torch.int64)
    assert task.describe(batch, 0, grid).caption.endswith("found no square, no move")
    grid[0, 7, 3] = grid[0, 7, 0] = 1
    shown = task.describe(batch, 0, grid)
    assert shown.caption == "White to move; found a1 and d1, no move"
    assert shown.arrows == ()
    assert shown.text.count("(") == 2
    assert task.describe(batch, 0, torch.ones_like(grid)).caption.endswith("64 squares, no move")
    grid[0, 7, 0], grid[0, 0, 3] = 0, 1
    assert task.describe(batch, 0, grid).caption == "White to move; found d1d8"
    labelled = Batch(batch.inputs, grid)
    other = grid.roll(1, 1)
    other[0] = 0
    other[0, 7, 3] = other[0, 1, 3] = 1
    shown = task.describe(labelled, 0, other)
    assert shown.caption == "White to move; answer d1d8; found d1d7, wrong"
    assert [arrow.colour for arrow in shown.arrows] == [ANSWER, WRONG]


def test_a_promotion_names_its_piece(task: Chess) -> None:
    batch = task.sample(1600)
    index = int(np.flatnonzero(batch.extras["promotion"] == chess.QUEEN)[0])
    answer = task.describe(batch, index).caption.split("answer ")[1]
    assert answer[3] in "18"
    assert answer.endswith("q")
