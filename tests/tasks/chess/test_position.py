"""Boards, planes, FEN and moves, with python-chess as the oracle."""

from __future__ import annotations

import chess
import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from iterant.errors import TaskError
from iterant.tasks.chess.position import (
    LETTERS,
    boards_from_planes,
    check_position,
    marked_squares,
    parse_fen,
    planes,
    square_name,
    targets,
)
from iterant.tasks.chess.task import Chess

ORDER = (chess.KING, chess.QUEEN, chess.BISHOP, chess.KNIGHT, chess.ROOK, chess.PAWN)
CASTLES = "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1"


def random_game(seed: int) -> chess.Board:
    rng, board = np.random.default_rng(seed), chess.Board()
    for _ in range(rng.integers(4, 90)):
        if moves := list(board.legal_moves):
            board.push(moves[rng.integers(len(moves))])
    return board


GAMES = [random_game(seed) for seed in range(40)]
BOARDS = np.stack([parse_fen(board.fen()).board for board in GAMES])
PACKED = torch.from_numpy(BOARDS[:, ::2] + 16 * BOARDS[:, 1::2])
BLACK = torch.tensor([board.turn == chess.BLACK for board in GAMES])


def plain_planes(board: chess.Board) -> NDArray[np.float32]:
    """The definition, a square at a time."""
    expected = np.zeros((12, 8, 8), np.float32)
    for square, piece in board.piece_map().items():
        rank, file = chess.square_rank(square), chess.square_file(square)
        row = 7 - rank if board.turn == chess.WHITE else rank
        plane = ORDER.index(piece.piece_type) + (0 if piece.color == board.turn else 6)
        expected[plane, row, file] = 1
    return expected


def test_planes_equal_the_definition_and_have_an_inverse() -> None:
    assert 5 < int(BLACK.sum()) < 35, "both colours are needed"
    inputs = planes(PACKED, BLACK)
    assert inputs.dtype == torch.float32
    assert (inputs.numpy() == np.stack([plain_planes(board) for board in GAMES])).all()
    assert (boards_from_planes(inputs, BLACK.numpy()) == BOARDS).all()


def test_targets_are_origin_and_destination() -> None:
    for board in GAMES:
        black = board.turn == chess.BLACK
        for move in board.legal_moves:
            number = move.from_square | move.to_square << 6 | (move.promotion or 0) << 12
            code = torch.tensor([number | black << 15], dtype=torch.int32)
            grid = targets(code, torch.tensor([black]))[0]
            assert set(marked_squares(grid, black)) == {move.from_square, move.to_square}
            assert grid.sum() == 2


def test_mirroring_equals_python_chess() -> None:
    before = planes(PACKED, BLACK)
    answers = torch.zeros(len(before), 8, 8, dtype=torch.int64)
    answers[:, 2, 1] = 1
    every = torch.ones(len(before), dtype=torch.bool)
    after, marks = Chess().mirrored(before, answers, every)
    stayed = 0
    for game, mirrored, mark in zip(GAMES, after, marks, strict=True):
        board = game.copy(stack=False)
        board.castling_rights = chess.BB_CORNERS  # of those, the ones that fit the pieces
        king_and_rook = bool(board.clean_castling_rights())
        expected = board if king_and_rook else board.transform(chess.flip_horizontal)
        expected.turn = board.turn
        assert (mirrored.numpy() == plain_planes(expected)).all()
        assert mark.nonzero().tolist() == [[2, 1 if king_and_rook else 6]]
        stayed += king_and_rook
    assert 0 < stayed < len(GAMES)
    assert torch.equal(Chess().mirrored(before, answers, ~every)[0], before)


def test_fen_is_read_and_written_as_by_python_chess() -> None:
    for board in GAMES:
        position = parse_fen(board.fen(en_passant="fen"))
        pieces = [board.piece_at(square) for square in range(64)]
        codes = [LETTERS.index(piece.symbol()) if piece else 0 for piece in pieces]
        assert position.board.tolist() == codes
        assert position.black == (board.turn == chess.BLACK)
        assert position.castling == board.castling_xfen()
        assert position.fen == board.epd(en_passant="fen")
    assert any(parse_fen(board.fen(en_passant="fen")).en_passant != "-" for board in GAMES)
    short = parse_fen(" ".join(CASTLES.split()[:2]))
    assert (short.castling, short.en_passant) == (None, None)
    assert [square_name(square) for square in range(64)] == chess.SQUARE_NAMES


@pytest.mark.parametrize(
    "fen",
    [
        "",
        "8/8/8/8/8/8/8/8",
        "k7/8/8/8/8/8/8/8/K7 w - - 0 1",
        "k7/7/8/8/8/8/8/K7 w - - 0 1",
        "k7/......../8/8/8/8/8/K7 w - - 0 1",
        "k7/\u0664\u0664/8/8/8/8/8/K7 w - - 0 1",
        "k7/8/8/8/8/8/8/K7 x - - 0 1",
        "k7/8/8/8/8/8/8/K7 w - - 0 1 bm Ka2",
        f"k7/8/8/8/8/8/8/K7 w {'K' * 200} - 0 1",
    ],
)
def test_bad_fens_are_refused_in_one_line(fen: str) -> None:
    with pytest.raises(TaskError, match="write a FEN such as") as caught:
        parse_fen(fen)
    assert "\n" not in str(caught.value)


IMPOSSIBLE = {
    "k7/8/8/8/8/8/8/8 w - - 0 1": "no white king",
    "k7/8/8/8/8/8/8/K6K w - - 0 1": "too many kings",
    "k6P/8/8/8/8/8/8/K7 w - - 0 1": "pawns on backrank",
    "k6R/8/8/8/8/8/8/K7 w - - 0 1": "opposite check",
    "k7/8/8/8/8/8/8/K7 w KX - 0 1": "cannot be read: .*castling",
    "k7/8/8/8/8/8/8/K7 w K - 0 1": "bad castling rights",
    "k7/8/8/8/8/8/8/K7 w - e9 0 1": "cannot be read",
    "k7/8/8/8/8/8/8/K7 w - e6 0 1": "invalid ep square",
    "k6R/7R/8/8/8/8/8/K7 b - - 0 1": "Black is checkmated: there is no move to find",
    "k7/2Q5/8/8/8/8/8/K7 b - - 0 1": "Black is stalemated: there is no move to find",
}


@pytest.mark.parametrize(("fen", "reason"), IMPOSSIBLE.items())
def test_impossible_and_finished_positions_are_refused(fen: str, reason: str) -> None:
    parse_fen(fen)
    with pytest.raises(TaskError, match=reason) as caught:
        check_position(fen)
    assert "\n" not in str(caught.value)
