"""Written moves are read as python-chess reads and writes them."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iterant.errors import TaskError
from iterant.tasks.chess.boards import unpack
from iterant.tasks.chess.fen import parse_fen, square_number, write_fen
from iterant.tasks.chess.puzzles import load_puzzles
from iterant.tasks.chess.rules import is_legal, squares_of
from iterant.tasks.chess.task import SAMPLE

CASTLES = "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1"
BLACK_CASTLES = "r3k2r/8/8/8/8/8/8/1R2KR2 b kq - 0 1"
PROMOTES = "1n2k3/P1P5/8/3pP3/8/8/6K1/8 w - d6 0 1"
KNIGHTS = "4k3/8/8/1N1N4/8/2r5/1N1K4/8 w - - 0 1"
PINNED = "4k3/4r3/8/8/8/2N1N3/8/4K3 w - - 0 1"
SAID = (CASTLES, BLACK_CASTLES, PROMOTES, KNIGHTS, PINNED)


def positions(count: int) -> list[str]:
    """Puzzles spread over the sample that ships, and some with every special move."""
    puzzles = load_puzzles(SAMPLE)
    rows = np.linspace(0, len(puzzles) - 1, count).astype(np.int64)
    chosen = puzzles.take(rows)
    boards = unpack(chosen.boards)
    return [
        *SAID,
        *(write_fen(boards[row], bool(chosen.black[row])) for row in range(count)),
    ]


def judge(fen: str) -> Any:
    return pytest.importorskip("chess").Board(fen if fen.count(" ") == 5 else f"{fen} 0 1")


def read(fen: str, text: str) -> tuple[int, int] | None:
    try:
        return squares_of(parse_fen(fen), text)
    except TaskError:
        return None


def test_every_legal_move_is_read_as_it_is_written() -> None:
    seen = 0
    for fen in positions(15):
        board = judge(fen)
        for move in board.legal_moves:
            squares = move.from_square, move.to_square
            for text in (board.san(move), board.lan(move), move.uci()):
                assert read(fen, text) == squares, (fen, text)
                seen += 1
    assert seen > 1500


def test_legal_moves_are_those_of_the_judge() -> None:
    for fen in SAID:
        legal = {(move.from_square, move.to_square) for move in judge(fen).legal_moves}
        position = parse_fen(fen)
        held = [square for square in range(64) if position.board[square]]
        goals = sorted({goal for _, goal in legal} | set(range(0, 64, 5)))
        pairs = [(origin, goal) for origin in held for goal in goals]
        assert {move for move in pairs if is_legal(position, move)} == legal


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from(positions(20)),
    st.from_regex(
        r"[KQBNR]?[a-h]?[1-8]?[-x]?[a-h][1-8](=?[QRBN])?[+#]?|O-O(-O)?|0-0(-0)?", fullmatch=True
    ),
)
def test_anything_else_is_refused_where_the_judge_refuses(fen: str, text: str) -> None:
    try:
        move = judge(fen).parse_san(text)
        wanted = move.from_square, move.to_square
    except ValueError:
        wanted = None
    if wanted is None and (found := read(fen, text)) is not None:
        # Only this is more lenient here: what a pawn becomes need not be said.
        assert "=" not in text
        wanted = found
        last = judge(fen).parse_san(text.rstrip("+#") + "=Q")
        assert (last.from_square, last.to_square) == found
    assert read(fen, text) == wanted


@pytest.mark.parametrize(
    ("fen", "text", "move"),
    [
        (CASTLES, "O-O", "e1g1"),
        (CASTLES, "0-0-0+!", "e1c1"),
        (BLACK_CASTLES, "O-O-O", "e8c8"),
        (BLACK_CASTLES, "O-O", None),  # over an attacked square
        (CASTLES.replace("KQkq", "kq"), "O-O", None),
        (PROMOTES, "a8", "a7a8"),
        (PROMOTES, "axb8=N+", "a7b8"),
        (PROMOTES, "exd6 e.p.", None),  # a space begins another operand
        (PROMOTES, "exd6e.p.", "e5d6"),
        (PROMOTES, "Kf3=Q", None),
        (KNIGHTS, "Nbd4", "b5d4"),  # there are two on file b, and one of them cannot
        (KNIGHTS, "Nxc3", None),
        (KNIGHTS, "Nbxc3!?", "b5c3"),
        (PINNED, "Nd5", "c3d5"),  # the other is pinned
    ],
)
def test_special_moves(fen: str, text: str, move: str | None) -> None:
    wanted = None if move is None else (square_number(move[:2]), square_number(move[2:]))
    assert read(fen, text) == wanted


@pytest.mark.parametrize(
    ("fen", "text", "said"),
    [
        (KNIGHTS, "Nxc3", "the move 'Nxc3' may be from b5 or d5; say from which, as in Nbd2"),
        (KNIGHTS, "Nf8", "the move 'Nf8' is not legal there; correct it or the position"),
        (KNIGHTS, "knight", "'knight' is no move as players write it; write it like Nf3, exd5"),
    ],
)
def test_what_is_wrong_is_said(
    fen: str, text: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "chess", None)
    with pytest.raises(TaskError) as caught:
        squares_of(parse_fen(fen), text)
    assert str(caught.value).startswith(said)
