"""The chess task on the shipped sample, with python-chess as the oracle."""

from __future__ import annotations

from pathlib import Path

import chess
import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from iterant.errors import DataError, TaskError
from iterant.tasks.chess.boards import boards_from_planes, square_at
from iterant.tasks.chess.fen import write_fen
from iterant.tasks.chess.puzzles import write_puzzles
from iterant.tasks.chess.task import SAMPLE, Chess, cache_folder, find_puzzles
from iterant.tasks.datasets import save_easy_to_hard
from iterant.tasks.protocol import Batch, Size


@pytest.fixture(autouse=True)
def no_puzzles_elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("ITERANT_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def task() -> Chess:
    return Chess(SAMPLE)


def squares(grid: torch.Tensor, black: bool) -> set[int]:
    return {square_at(row, column, black) for row, column in grid.nonzero().tolist()}


def as_board(batch: Batch, index: int) -> chess.Board:
    black: NDArray[np.bool_] = batch.extras["black"]
    codes = boards_from_planes(batch.inputs, black)[index]
    return chess.Board(write_fen(codes, bool(black[index])))


def test_answers_of_the_sample_are_legal(task: Chess) -> None:
    batch = task.sample(4000, size=(0, 4000))
    boards = boards_from_planes(batch.inputs, batch.extras["black"])
    special = unsaid = 0
    for codes, grid, black, promotion in zip(
        boards, batch.targets, batch.extras["black"], batch.extras["promotion"], strict=True
    ):
        board = chess.Board(write_fen(codes, bool(black)))
        assert board.is_valid()
        ends = squares(grid, bool(black))
        special += bool(promotion)
        moves = {frozenset((move.from_square, move.to_square)) for move in board.legal_moves}
        # Castling and en passant cannot be told from the board alone: they are legal once the
        # right is given, on the king's own squares and on the square behind the pawn.
        if frozenset(ends) not in moves:
            unsaid += 1
            [origin] = [square for square in ends if board.color_at(square) == board.turn]
            [goal] = ends - {origin}
            board.set_castling_fen("KQkq")
            board.ep_square = goal if board.piece_type_at(origin) == chess.PAWN else None
            assert board.is_legal(chess.Move(origin, goal)), board.fen()
        assert len(ends) == 2
    assert 1000 < batch.extras["black"].sum() < 3000, "both colours move"
    assert special > 10, "promotions are among them"
    assert unsaid > 3, "so are castling and en passant"


def test_a_range_is_shuffled_without_repetition(task: Chess) -> None:
    whole = task.sample(300, size=(1000, 1300), seed=5)
    expected = task.puzzles.ids[1000:1300].astype(str).tolist()
    assert sorted(whole.extras["id"]) == sorted(expected)
    assert whole.extras["id"].tolist() != expected
    other = task.sample(300, size=(1000, 1300), seed=6)
    assert whole.extras["id"].tolist() != other.extras["id"].tolist()
    parts = [task.sample(100, size=(1000, 1300), seed=5, first=first) for first in (0, 100, 200)]
    assert torch.equal(torch.cat([part.inputs for part in parts]), whole.inputs)
    assert torch.equal(torch.cat([part.targets for part in parts]), whole.targets)


def test_packed_positions_are_the_sampled_ones(task: Chess) -> None:
    batch = task.sample(40, size=(100, 200), seed=2, first=7)
    inputs, targets = task.packed(40, size=(100, 200), seed=2, first=7)[:]
    assert torch.equal(inputs, batch.inputs)
    assert torch.equal(targets, batch.targets)


def test_sizes_are_ranges(task: Chess) -> None:
    assert task.parse_size("600000:700000") == (600_000, 700_000)
    assert task.parse_size(" 1_000_000:1_100_000 ") == (1_000_000, 1_100_000)
    assert task.check_size((0, 4000)) == (0, 4000)
    assert task.check_size(None) == (0, 1600), "the easiest two fifths, as in the paper"
    for text in ("", "5", "1:2:3", "a:b", "-1:5", "1.5:2", ":", "\u0661:\u0662"):
        with pytest.raises(TaskError, match="a size must be a range first:stop"):
            task.parse_size(text)


@pytest.mark.parametrize(
    ("size", "reason"),
    [
        ((5, 5), "the range 5:5 holds no puzzles"),
        ((7, 5), "the range 7:5 holds no puzzles"),
        ((-2, 5), "the range -2:5 holds no puzzles"),
        ((3999, 4001), "the range 3999:4001 goes beyond the set, which is all 4,000 puzzles in"),
        ((600_000, 700_000), r"choose one within 0:4000, or give a larger set with --data"),
        (13, "a size must be a range first:stop .*, got 13"),
        ((1, 2, 3), "a size must be a range first:stop"),
        ((0.0, 9.0), "a size must be a range first:stop"),
        ("0:9", "a size must be a range first:stop"),
    ],
)
def test_bad_ranges_are_refused(task: Chess, size: Size, reason: str) -> None:
    for call in (task.check_size, lambda size: task.sample(1, size=size)):
        with pytest.raises(TaskError, match=reason) as caught:
            call(size)
        assert "\n" not in str(caught.value)


def test_too_many_problems_are_refused(task: Chess) -> None:
    for count, first in ((11, 0), (1, 10), (5, 6), (1, -1)):
        with pytest.raises(TaskError, match="the range 0:10 holds 10 puzzles"):
            task.sample(count, size=(0, 10), first=first)
    with pytest.raises(TaskError, match="at least 1, got 0"):
        task.sample(0, size=(0, 10))
    with pytest.raises(TaskError, match="seed"):
        task.sample(1, size=(0, 10), seed=-1)


@pytest.mark.parametrize("side", ["w", "b"])
def test_a_fen_is_encoded(task: Chess, side: str) -> None:
    fen = f"r3k3/1P6/8/3pP3/8/8/8/4K2R {side} Kq {'d6' if side == 'w' else '-'} 0 1"
    batch = task.encode(f"  {fen} ")
    assert batch.inputs.shape == (1, 12, 8, 8)
    assert not batch.labelled
    assert batch.extras["fen"].tolist() == [fen]
    assert as_board(batch, 0).board_fen() == chess.Board(fen).board_fen()
    assert as_board(batch, 0).turn == chess.Board(fen).turn
    with pytest.raises(TaskError, match="not known"):
        task.solved(batch.targets, batch)


def test_encoding_agrees_with_sampling(task: Chess) -> None:
    batch = task.sample(20, seed=9)
    for index in range(20):
        assert torch.equal(task.encode(as_board(batch, index).fen()).inputs[0], batch.inputs[index])


def test_where_puzzles_are_looked_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, task: Chess
) -> None:
    assert find_puzzles() == SAMPLE
    few = task.puzzles.take(slice(0, 20))
    cached = cache_folder() / "chess"
    assert cached == tmp_path / "cache" / "iterant" / "chess"
    write_puzzles(few, cached, source="test")
    assert find_puzzles() == cached
    (tmp_path / "data").mkdir()
    monkeypatch.setenv("ITERANT_DATA", str(tmp_path / "data"))
    assert find_puzzles() == cached, "a folder of other data is passed over"
    write_puzzles(few.take(slice(0, 10)), tmp_path / "data" / "chess", source="test")
    assert find_puzzles() == tmp_path / "data" / "chess"
    assert len(Chess().puzzles) == 10
    monkeypatch.setenv("ITERANT_DATA", str(tmp_path / "data" / "chess"))
    assert find_puzzles() == tmp_path / "data" / "chess"
    assert find_puzzles(SAMPLE) == SAMPLE
    assert Chess().check_size(None) == (0, 4)
    monkeypatch.setenv("ITERANT_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(DataError, match=r"ITERANT_DATA names .*, which is no folder"):
        find_puzzles()
    with pytest.raises(DataError, match="is not a folder of packed puzzles"):
        Chess(tmp_path / "nowhere").sample(1)


def test_data_in_easy_to_hard_files(tmp_path: Path) -> None:
    own = Chess().sample(30, size=(0, 400), seed=2)
    white = own[~own.extras["black"].astype(bool)]
    save_easy_to_hard(white, tmp_path / "chess_data")
    task = Chess(data=tmp_path)
    assert task.check_size((0, len(white))) == (0, len(white))
    again = task.sample(len(white), size=(0, len(white)), seed=5)
    key = [tuple(row.flatten().tolist()) for row in white.inputs]
    assert sorted(tuple(row.flatten().tolist()) for row in again.inputs) == sorted(key)
    with pytest.raises(TaskError, match="goes beyond the set"):
        task.sample(1, size=(0, len(white) + 1))
