"""Packed boards and planes, with python-chess as the oracle."""

from __future__ import annotations

import chess
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from iterant.tasks.chess.boards import (
    PackedPositions,
    boards_from_planes,
    mirrored,
    pack,
    planes,
    square_at,
    targets,
    unpack,
)
from iterant.tasks.chess.fen import parse_fen

ORDER = (chess.KING, chess.QUEEN, chess.BISHOP, chess.KNIGHT, chess.ROOK, chess.PAWN)


def games(count: int) -> list[chess.Board]:
    generator = np.random.default_rng(5)
    boards = []
    for _ in range(count):
        board = chess.Board()
        for _ in range(generator.integers(4, 90)):
            moves = list(board.legal_moves)
            board.push(moves[generator.integers(len(moves))])
            if board.is_game_over():
                board.pop()
                break
        boards.append(board)
    return boards


GAMES = games(40)


def plain_planes(board: chess.Board) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    """The definition, a square at a time."""
    found = np.zeros((12, 8, 8), np.float32)
    for square, piece in board.piece_map().items():
        rank, file = chess.square_rank(square), chess.square_file(square)
        row = 7 - rank if board.turn == chess.WHITE else rank
        plane = ORDER.index(piece.piece_type) + (0 if piece.color == board.turn else 6)
        found[plane, row, file] = 1
    return found


def packed_games() -> tuple[torch.Tensor, torch.Tensor]:
    packed = pack(np.stack([parse_fen(board.fen()).board for board in GAMES]))
    return torch.from_numpy(packed), torch.tensor([board.turn == chess.BLACK for board in GAMES])


@given(arrays(np.uint8, (3, 64), elements=st.integers(0, 12)))
def test_pack_and_unpack(boards: np.ndarray[tuple[int, int], np.dtype[np.uint8]]) -> None:
    assert pack(boards).shape == (3, 32)
    assert (unpack(pack(boards)) == boards).all()
    assert pack(boards)[0, 0] == boards[0, 0] + 16 * boards[0, 1]


def test_planes_equal_the_definition() -> None:
    packed, black = packed_games()
    assert 5 < int(black.sum()) < 35, "both colours are needed"
    expected = np.stack([plain_planes(board) for board in GAMES])
    found = planes(packed, black)
    assert found.dtype == torch.float32
    assert (found.numpy() == expected).all()


def test_boards_from_planes() -> None:
    packed, black = packed_games()
    found = boards_from_planes(planes(packed, black), black.numpy())
    assert (found == unpack(packed.numpy())).all()


@pytest.mark.parametrize("side", ["w", "b"])
def test_the_mover_stands_on_row_seven_and_files_are_not_mirrored(side: str) -> None:
    position = parse_fen(f"4k2r/8/8/8/8/8/8/R3K3 {side} Qk - 0 1")
    black = torch.tensor([position.black_to_move])
    found = planes(torch.from_numpy(pack(position.board[None])), black)[0]
    assert found[0, 7, 4] == 1, "the mover's king, on file e"
    assert found[6, 0, 4] == 1, "the opponent's king, on file e"
    assert found[4, 7, 7 if position.black_to_move else 0] == 1, "the mover's rook, on its file"


def test_targets_are_origin_and_destination() -> None:
    for board in GAMES:
        black = board.turn == chess.BLACK
        for move in board.legal_moves:
            number = move.from_square | move.to_square << 6 | (move.promotion or 0) << 12
            found = targets(
                torch.tensor([number | black << 15], dtype=torch.int32), torch.tensor([black])
            )[0]
            cells = {square_at(int(row), int(column), black) for row, column in found.nonzero()}
            assert cells == {move.from_square, move.to_square}
            assert found.sum() == 2


def test_packed_positions() -> None:
    packed, black = packed_games()
    moves = torch.tensor(
        [
            move.from_square | move.to_square << 6 | int(side) << 15
            for board, side in zip(GAMES, black, strict=True)
            for move in [next(iter(board.legal_moves))]
        ],
        dtype=torch.int32,
    )
    positions = PackedPositions(packed, moves).to("cpu")
    assert len(positions) == len(GAMES)
    which = torch.tensor([7, 0, 7, 31])
    inputs, answers = positions[which]
    assert torch.equal(inputs, planes(packed, black)[which])
    assert torch.equal(answers, targets(moves, black)[which])
    assert torch.equal(positions[3:5][0], planes(packed, black)[3:5])


def test_batches_are_made_on_the_device_of_the_bytes() -> None:
    # Torch refuses to mix devices, so on a device without memory nothing can come from the host.
    bytes_there = torch.zeros(9, 32, dtype=torch.uint8, device="meta")
    positions = PackedPositions(bytes_there, torch.zeros(9, dtype=torch.int32, device="meta"))
    inputs, answers = positions[torch.zeros(4, dtype=torch.int64, device="meta")]
    assert (inputs.device.type, inputs.shape) == ("meta", (4, 12, 8, 8))
    assert (answers.device.type, answers.shape) == ("meta", (4, 8, 8))


def test_mirroring_equals_python_chess() -> None:
    packed, black = packed_games()
    before = planes(packed, black)
    answers = torch.zeros(len(before), 8, 8, dtype=torch.int64)
    answers[:, 2, 1] = 1
    after, marks = mirrored(before, answers, torch.ones(len(before), dtype=torch.bool))
    stayed = 0
    for board, found, mark in zip(GAMES, after, marks, strict=True):
        king_and_rook = any(
            board.piece_at(chess.square(4, rank)) == chess.Piece(chess.KING, colour)
            and chess.Piece(chess.ROOK, colour)
            in (board.piece_at(chess.square(0, rank)), board.piece_at(chess.square(7, rank)))
            for rank, colour in ((0, chess.WHITE), (7, chess.BLACK))
        )
        turned = board if king_and_rook else board.transform(chess.flip_horizontal)
        turned.turn = board.turn
        assert (found.numpy() == plain_planes(turned)).all()
        assert mark.nonzero().tolist() == [[2, 1 if king_and_rook else 6]]
        stayed += king_and_rook
    assert 0 < stayed < len(GAMES)


def test_only_chosen_positions_are_mirrored() -> None:
    packed, black = packed_games()
    before, answers = planes(packed, black), torch.zeros(len(packed), 8, 8, dtype=torch.int64)
    after, _ = mirrored(before, answers, torch.zeros(len(before), dtype=torch.bool))
    assert torch.equal(after, before)
