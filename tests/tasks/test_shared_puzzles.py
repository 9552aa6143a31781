"""What holds on the whole shared set of 2.8 million puzzles, which takes seconds to read."""

from __future__ import annotations

from pathlib import Path

import chess
import numpy as np
import pytest
import torch

from iterant.tasks.chess.boards import square_at, targets, unpack
from iterant.tasks.chess.fen import write_fen
from iterant.tasks.chess.lichess import pack_csv
from iterant.tasks.chess.puzzles import Puzzles, load_puzzles, subset
from iterant.tasks.chess.task import SAMPLE

COLUMNS = ("boards", "moves", "rating", "rating_deviation", "flags", "ids")


@pytest.fixture(scope="module")
def shared_puzzles(shared_data: Path) -> Puzzles:
    return load_puzzles(shared_data / "lichess-puzzles")


def test_the_sample_encodes_as_the_shared_rows(
    shared_data: Path, shared_puzzles: Puzzles, tmp_path: Path
) -> None:
    report = pack_csv(shared_data / "lichess-puzzles" / "sample_2000.csv", tmp_path / "set")
    assert (report.kept, report.broken) == (2000, 0)
    ours = load_puzzles(tmp_path / "set")
    wanted = set(ours.ids.tolist())
    theirs = [row for row, name in enumerate(shared_puzzles.ids.tolist()) if name in wanted]
    mine = np.flatnonzero(np.isin(ours.ids, shared_puzzles.ids[theirs]))
    assert len(mine) == len(theirs) == 1975, "25 rows of the sample are not in the shared set"
    for name in COLUMNS:
        assert (getattr(ours, name)[mine] == getattr(shared_puzzles, name)[theirs]).all(), name


def test_the_sample_is_spread_over_the_subset_of_the_shared_set(
    shared_puzzles: Puzzles,
) -> None:
    sample = load_puzzles(SAMPLE)
    chosen = subset(shared_puzzles)
    assert len(shared_puzzles) == 2_815_126
    assert len(chosen) == 1_500_000
    assert "18,588 repeated positions dropped" in chosen.source
    spread = chosen.take(375 * np.arange(4000) + 187)
    for name in COLUMNS:
        assert (getattr(spread, name) == getattr(sample, name)).all(), name
    edges = [0, 600_000, 700_000, 800_000, 1_000_000, 1_100_000]
    assert chosen.rating[edges].tolist() == [399, 1389, 1506, 1619, 1839, 1967]


def test_castling_and_en_passant_are_the_squares_of_king_and_pawn(shared_puzzles: Puzzles) -> None:
    """Every such puzzle of a part of the set, judged by python-chess once the right is given."""
    part = shared_puzzles.take(slice(2_000_000, 2_250_000))
    boards, moves = unpack(part.boards), part.moves.astype(np.int64)
    origin, goal, each = moves & 63, moves >> 6 & 63, np.arange(len(part))
    piece, aside = boards[each, origin] % 6, np.abs((origin & 7) - (goal & 7))
    castles = (piece == 1) & (aside == 2)
    passing = (piece == 0) & (aside == 1) & (boards[each, goal] == 0)
    assert min(castles.sum(), passing.sum()) > 100
    for row in np.flatnonzero(castles | passing):
        black = bool(part.black[row])
        board = chess.Board(write_fen(boards[row], black))
        if castles[row]:
            board.set_castling_fen("KQkq")
        else:
            board.ep_square = int(goal[row])
        move = chess.Move(int(origin[row]), int(goal[row]))
        assert board.is_legal(move), board.fen()
        assert board.is_castling(move) if castles[row] else board.is_en_passant(move)
        grid = targets(torch.tensor([int(moves[row])]), torch.tensor([black]))[0]
        marked = {square_at(line, column, black) for line, column in grid.nonzero().tolist()}
        assert marked == {move.from_square, move.to_square}
