"""FEN and the small attack test, with python-chess as the oracle."""

from __future__ import annotations

import chess
import numpy as np
import pytest

from iterant.errors import TaskError
from iterant.tasks.chess.fen import (
    LETTERS,
    attacked,
    check_position,
    has_legal_move,
    in_check,
    parse_fen,
    square_name,
    square_number,
    write_fen,
)

START = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1"


def walks(count: int, seed: int) -> list[chess.Board]:
    """Positions of random games, the last of each mated, stalemated or cut off."""
    generator = np.random.default_rng(seed)
    boards: list[chess.Board] = []
    while len(boards) < count:
        board = chess.Board()
        for _ in range(generator.integers(1, 200)):
            moves = list(board.legal_moves)
            if not moves:
                break
            board.push(moves[generator.integers(len(moves))])
        boards.append(board)
    return boards


def scattered(count: int, seed: int) -> list[chess.Board]:
    """Few pieces thrown on the board: checks and mates are frequent, also impossible ones."""
    generator = np.random.default_rng(seed)
    boards = []
    for _ in range(count):
        board = chess.Board(None)
        squares = generator.permutation(64)[:7].tolist()
        board.set_piece_at(squares[0], chess.Piece.from_symbol("K"))
        board.set_piece_at(squares[1], chess.Piece.from_symbol("k"))
        for square in squares[2:]:
            signs = "QRBNqrbn" + ("" if square < 8 or square >= 56 else "Pp")
            sign = signs[generator.integers(len(signs))]
            board.set_piece_at(square, chess.Piece.from_symbol(sign))
        board.turn = bool(generator.random() < 0.5)
        boards.append(board)
    return boards


POSITIONS = walks(60, 1) + scattered(120, 2)


def codes(board: chess.Board) -> list[int]:
    signs = [board.piece_at(square) for square in range(64)]
    return [LETTERS.index(piece.symbol()) if piece else 0 for piece in signs]


def test_a_fen_is_read_as_python_chess_reads_it() -> None:
    for board in POSITIONS:
        position = parse_fen(board.fen())
        assert position.board.tolist() == codes(board)
        assert position.black_to_move == (board.turn == chess.BLACK)
        assert position.castling == board.castling_xfen()
        assert write_fen(position.board, position.black_to_move).split()[0] == board.board_fen()


def test_en_passant_is_read() -> None:
    board = chess.Board()
    for move in ("e2e4", "a7a6", "e4e5", "d7d5"):
        board.push_uci(move)
    assert parse_fen(board.fen()).en_passant == "d6"
    assert parse_fen(START).en_passant == "-"


def test_what_is_unsaid_is_none() -> None:
    position = parse_fen(" ".join(START.split()[:2]))
    assert position.castling is None
    assert position.en_passant is None


def test_squares_have_their_names() -> None:
    assert [square_name(square) for square in range(64)] == chess.SQUARE_NAMES
    assert [square_number(name) for name in chess.SQUARE_NAMES] == list(range(64))
    with pytest.raises(TaskError, match="like e4, got 'i9'"):
        square_number("i9")


def test_attacks_and_checks_agree_with_python_chess() -> None:
    for board in POSITIONS:
        squares = codes(board)
        for black in (False, True):
            side = chess.BLACK if black else chess.WHITE
            king = board.king(side)
            assert king is not None
            assert in_check(squares, black) == board.is_attacked_by(not side, king)
            expected = [board.is_attacked_by(side, square) for square in range(0, 64, 5)]
            assert [attacked(squares, square, black) for square in range(0, 64, 5)] == expected


def test_having_a_move_agrees_with_python_chess() -> None:
    ended = 0
    for board in POSITIONS:
        expected = any(board.legal_moves)
        ended += not expected
        square = board.ep_square if board.has_legal_en_passant() else None
        assert has_legal_move(codes(board), board.turn == chess.BLACK, square) == expected
    assert ended >= 3


def test_en_passant_can_be_the_only_move() -> None:
    fen = "2B5/8/8/k1K5/1Pp5/8/8/3B4 b - b3 0 1"
    assert [move.uci() for move in chess.Board(fen).legal_moves] == ["c4b3"]
    board = parse_fen(fen).board.tolist()
    assert has_legal_move(board, True, square_number("b3"))
    assert not has_legal_move(board, True)
    assert check_position(parse_fen(fen)).en_passant == "b3"


BAD = {
    "": "a board and the side to move are wanted",
    "8/8/8/8/8/8/8/8": "a board and the side to move are wanted",
    "k7/8/8/8/8/8/8/8/K7 w - - 0 1": "8 ranks separated by /, got 9",
    "k7/8/8/8/8/8/K7 w - - 0 1": "8 ranks separated by /, got 7",
    "k7/9/8/8/8/8/8/K7 w - - 0 1": "rank 7 holds '9'",
    "k7/ppppppppp/8/8/8/8/8/K7 w - - 0 1": "rank 7 .* has 9",
    "k7/7/8/8/8/8/8/K7 w - - 0 1": "rank 7 .* has 7",
    "k7/3x4/8/8/8/8/8/K7 w - - 0 1": "rank 7 holds 'x'",
    "k7/\u0664\u0664/8/8/8/8/8/K7 w - - 0 1": "rank 7 holds",
    "k7/8/8/8/8/8/8/8 w - - 0 1": "White must have exactly one king, got 0",
    "8/8/8/8/8/8/8/K7 w - - 0 1": "Black must have exactly one king, got 0",
    "k7/8/8/8/8/8/8/K6K w - - 0 1": "White must have exactly one king, got 2",
    "k6P/8/8/8/8/8/8/K7 w - - 0 1": "no pawn can stand on rank 1 or 8",
    "k7/8/8/8/8/8/8/K6p w - - 0 1": "no pawn can stand on rank 1 or 8",
    "k7/8/8/8/8/8/8/K7 x - - 0 1": "must be w or b, got 'x'",
    "k7/8/8/8/8/8/8/K7 w KX - 0 1": "castling must be - or some of KQkq",
    "k7/8/8/8/8/8/8/K7 w KK - 0 1": "castling must be - or some of KQkq",
    "k7/8/8/8/8/8/8/K7 w K - 0 1": "castling right 'K' needs a king on e1",
    "k7/8/8/8/8/8/8/K7 w - e9 0 1": "en passant square must be - or on rank 6",
    "k7/8/8/8/8/8/8/K7 b - e6 0 1": "en passant square must be - or on rank 3",
    "k7/8/8/8/8/8/8/K7 w - e6 0 1": "en passant on e6 needs a pawn",
    "k7/8/8/8/8/8/8/K7 w - - x 1": "half-move clock must be a whole number",
    "k7/8/8/8/8/8/8/K7 w - - 0 -1": "move number must be a whole number",
    'k7/8/8/8/8/8/8/K7 w - - bm Ka2; id "a";': "no EPD; take away .*'bm Ka2; id \"a\";'",
    "k7/8/8/8/8/8/8/K7 w - - 0 1 bm Ka2": "at most 6 fields, got 8; take away .*'bm Ka2'",
}


@pytest.mark.parametrize(("fen", "reason"), BAD.items())
def test_a_bad_fen_is_refused_in_one_line(fen: str, reason: str) -> None:
    with pytest.raises(TaskError, match=reason) as caught:
        parse_fen(fen)
    assert "\n" not in str(caught.value)


def test_impossible_and_finished_positions_are_refused() -> None:
    for fen, reason in {
        "k6R/8/8/8/8/8/8/K7 w - - 0 1": "Black is in check although White is to move",
        "k7/8/8/8/8/8/8/K6r b - - 0 1": "White is in check although Black is to move",
        "k6R/7R/8/8/8/8/8/K7 b - - 0 1": "Black is checkmated",
        "k7/2Q5/8/8/8/8/8/K7 b - - 0 1": "Black is stalemated",
    }.items():
        with pytest.raises(TaskError, match=reason):
            check_position(parse_fen(fen))
    start = parse_fen(START)
    assert check_position(start) is start
