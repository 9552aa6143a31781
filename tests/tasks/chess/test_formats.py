"""FEN, EPD and PGN, with python-chess as the reference."""

from __future__ import annotations

import io
from pathlib import Path

import chess
import numpy as np
import pytest
import torch

from iterant.errors import IterantError, TaskError
from iterant.solving.film import Film
from iterant.solving.problems import Solution
from iterant.tasks.chess.boards import targets
from iterant.tasks.chess.fen import LETTERS, parse_fen, square_name, square_number, write_fen
from iterant.tasks.chess.formats import Entry, parse_epd, read_game, split_games
from iterant.tasks.chess.task import Chess
from iterant.tasks.inputs import GAMES, Material, gather
from iterant.tasks.protocol import Batch, expected_answer, is_accepted

TASK = Chess()
START = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1"
BOARD = "6k1/5ppp/8/8/8/8/8/K2R4 w - -"
BLACK = "1k1r4/8/8/8/8/8/6n1/K7 b - -"


def marked(batch: Batch, move: str) -> torch.Tensor:
    """A prediction of that move."""
    coded = square_number(move[:2]) | square_number(move[2:4]) << 6
    return targets(torch.tensor([coded]), torch.from_numpy(batch.extras["black"]))


def test_fen_of_random_games_is_read_as_python_chess_reads_it() -> None:
    generator = np.random.default_rng(1)
    passed = 0
    for _ in range(40):
        board = chess.Board()
        for _ in range(generator.integers(1, 120)):
            moves = list(board.legal_moves)
            if not moves:
                break
            board.push(moves[generator.integers(len(moves))])
        position = parse_fen(board.fen(en_passant="fen"))
        pieces = [board.piece_at(square) for square in range(64)]
        codes = [LETTERS.index(piece.symbol()) if piece else 0 for piece in pieces]
        assert position.board.tolist() == codes
        assert position.black_to_move == (board.turn == chess.BLACK)
        assert position.castling == board.castling_xfen()
        passed += position.en_passant != "-"
        assert write_fen(position.board, position.black_to_move).split()[0] == board.board_fen()
    assert passed > 0
    unsaid = parse_fen(" ".join(START.split()[:2]))
    assert (unsaid.castling, unsaid.en_passant) == (None, None)


def test_names_of_squares() -> None:
    assert [square_name(square) for square in range(64)] == chess.SQUARE_NAMES
    assert [square_number(name) for name in chess.SQUARE_NAMES] == list(range(64))
    with pytest.raises(TaskError, match="like e4, got 'i9'"):
        square_number("i9")


BAD_FEN = {
    "": "a board and the side to move are wanted",
    "8/8/8/8/8/8/8/8": "a board and the side to move are wanted",
    "k7/8/8/8/8/8/8/8/K7 w - - 0 1": "8 ranks separated by /, got 9",
    "k7/9/8/8/8/8/8/K7 w - - 0 1": "rank 7 holds '9'",
    "k7/ppppppppp/8/8/8/8/8/K7 w - - 0 1": "rank 7 .* has 9",
    "k7/7/8/8/8/8/8/K7 w - - 0 1": "rank 7 .* has 7",
    "k7/3x4/8/8/8/8/8/K7 w - - 0 1": "rank 7 holds 'x'",
    "k7/\u0664\u0664/8/8/8/8/8/K7 w - - 0 1": "rank 7 holds",
    "k7/8/8/8/8/8/8/8 w - - 0 1": "White must have exactly one king, got 0",
    "k7/8/8/8/8/8/8/K6K w - - 0 1": "White must have exactly one king, got 2",
    "8/8/8/8/8/8/8/K7 w - - 0 1": "Black must have exactly one king, got 0",
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
    "k7/8/8/8/8/8/8/K7 w - - 0 1 bm Ka2": "at most 6 fields, got 8; take away .*'bm Ka2'",
}


@pytest.mark.parametrize(("fen", "reason"), BAD_FEN.items())
def test_bad_fens_are_refused_in_one_line(fen: str, reason: str) -> None:
    with pytest.raises(TaskError, match=reason) as caught:
        parse_fen(fen)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "entry"),
    [
        (f"{BOARD} bm Rd8#", Entry(BOARD, best=("Rd8#",))),
        (f"  {BOARD}   bm Rd8#  Rd7 ; id a.1", Entry(BOARD, "a.1", ("Rd8#", "Rd7"))),
        (f'{BOARD} id "one; two";am Rd7;', Entry(BOARD, "one; two", avoid=("Rd7",))),
        (f"{BOARD} 12 34 bm Rd8;", Entry(f"{BOARD} 12 34", best=("Rd8",))),
        (f'{BOARD} hmvc 3; c0 "id bm am"; bm Rd8;', Entry(BOARD, best=("Rd8",))),
        (f'{BOARD} id "";', Entry(BOARD)),
        (f'{BOARD} id "bell\a";', Entry(BOARD, "bell")),
        (f"{BOARD} pm;", Entry(BOARD)),
        (BOARD, None),
        (f"{BOARD} 0 1", None),
        (f"{BOARD} and", None),
        ("", None),
    ],
)
def test_parse_epd(text: str, entry: Entry | None) -> None:
    assert parse_epd(text) == entry


@pytest.mark.parametrize(
    "text", ['bm Rd8# Rd7; id "two"; acd 3;', "am Rd8#; ce 0;", "bm Rd8; am Rd7 Rd6;", "acd 1;"]
)
def test_epd_is_read_as_python_chess_reads_it(text: str) -> None:
    board, operations = chess.Board.from_epd(f"{BOARD} {text}")
    entry = parse_epd(f"{BOARD} {text}")
    assert entry is not None
    assert (entry.fen, entry.label) == (board.epd(), operations.get("id", ""))
    batch = TASK.encode(f"{BOARD} {text}")
    for move in board.legal_moves:
        best, avoid = operations.get("bm"), operations.get("am")
        right = move in best if best else move not in avoid if avoid else None  # type: ignore[operator]
        assert is_accepted(TASK, batch, marked(batch, move.uci())) is right, move


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("bm;", "bm of an EPD names a move or more, got none"),
        ("bm Rd8; bm Rd7;", "bm stands twice in the EPD; write all of it once"),
        ('bm Rd8 id "x";', "a ; is missing before id in the EPD"),
        ('bm Rd8; id "x', "an operation of the EPD cannot be read: 'id \"x'"),
        ("bm Rd8; 17;", "an operation of the EPD cannot be read: '17;'"),
        ("bm Rd9;", "'Rd9' is no move as players write it"),
        ("am Nf3;", "the move 'Nf3' is not legal there"),
        ("bm e8=Q;", "the move 'e8=Q' is not legal there"),
    ],
)
def test_bad_epds_are_refused_in_one_line(text: str, said: str) -> None:
    with pytest.raises(TaskError) as caught:
        gather(TASK, f"{BOARD} {text}")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_names_and_answers_of_a_suite(tmp_path: Path) -> None:
    lines = ["# a suite", f'{BOARD} bm Rd8; id "first";', "", f"{BLACK} bm Rd9;",
             f'{BLACK} bm Rd1+ Ne1; id "a name of more than two dozen signs";', BOARD]  # fmt: skip
    (tmp_path / "s.epd").write_text("\r\n".join(lines))
    found = gather(TASK, str(tmp_path / "s.epd"))
    assert [problem.name for problem in found.problems] == [
        "s.epd line 2 (first)", "s.epd line 5 (a name of more than two…)", "s.epd line 6",
    ]  # fmt: skip
    assert [name for name, _ in found.refused] == ["s.epd line 4"]
    first, second, third = (problem.batch for problem in found.problems)
    assert torch.equal(first.targets, marked(first, "d1d8"))
    assert torch.equal(second.targets, marked(second, "d8d1")), "seen by black"
    assert not third.labelled
    expected = [expected_answer(TASK, batch) for batch in (first, second, third)]
    assert expected == ["Rd8", "Rd1+ or Ne1", ""]
    stream = io.BytesIO(lines[1].encode())
    assert gather(TASK, "-", stdin=stream).problems[0].name == "standard input (first)"


def test_several_best_moves() -> None:
    (problem,) = gather(TASK, f'{BOARD} bm Rd8 Rd7; am Rd6; id "x";').problems
    batch = problem.batch
    for move, right in (("d1d8", True), ("d1d7", True), ("d1d6", False), ("d1d5", False)):
        assert TASK.accepts(batch, 0, marked(batch, move)) is right
        assert TASK.describe(batch, 0, marked(batch, move)).caption == (
            f"White to move; answer {move if right else 'd1d8'}; found {move}, "
            f"{'right' if right else 'wrong'}; to avoid: Rd6"
        )
    assert not TASK.accepts(batch, 0, torch.zeros(1, 8, 8, dtype=torch.int64))
    about = Solution(problem, Film(1)).described()["about"]
    assert about == {"black": False, "fen": BOARD, "id": "x", "best": "Rd8 Rd7", "avoid": "Rd6"}


def test_moves_to_avoid() -> None:
    batch = TASK.encode(f"{BLACK} am Rd1+;")
    assert TASK.wanted(batch, 0) == "not Rd1+"
    for move, right in (("d8d1", False), ("d8d2", True), ("d8a7", False), ("g2e1", True)):
        assert is_accepted(TASK, batch, marked(batch, move)) is right
    assert TASK.describe(batch).caption == "Black to move; to avoid: Rd1+"


MATE = '[Event "mate"]\n\n1. f3 e5 2. g4 Qh4# 0-1\n'
POSITION = '[Event "position"]\n[FEN "6k1/5ppp/8/8/8/8/8/K2R4 w - - 0 1"]\n'


def answers(text: str) -> list[str]:
    """For each game of a file the move to find, or the note if there is none."""
    found = []
    for part in split_games(Material("g.pgn", text.encode(), GAMES)):
        _, move, note = read_game(part)
        found.append("".join(map(square_name, move)) if move else note)
    return found


@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize(
    ("text", "moves"),
    [
        (f"{MATE}\n{POSITION}\n1. Rd8# *\n", ["d8h4", "d1d8"]),
        (f"{MATE}{MATE}", ["d8h4", "d8h4"]),
        (f"\n\n% escaped\n; said\n\n{MATE}\n\n\n", ["d8h4"]),
        ('[Event "c"]\n\n1. f3 {one\n\n[Site "no tag"] } e5 2. g4 ; {\nQh4# *', ["d8h4"]),
        (f'[Event "c"]\n\n1. f3 e5 2. g4 Qh4# {{left open\n\n{MATE}', ["d8h4", "d8h4"]),
        (f'[Site "a {{ b"]\n\n1. f3 e5 2. g4 Qh4# *\n\n{MATE}', ["d8h4", "d8h4"]),
        ("1. f3 e5 2. g4 Qh4# *\n\n1. e4 e5 *\n", ["d8h4", "the position after 2 half-moves"]),
        (f"{POSITION}\n{POSITION}", ["the game's own position, no move given"] * 2),
    ],
)
def test_games_of_a_file(text: str, moves: list[str], ends: str) -> None:
    assert answers(text.replace("\n", ends)) == moves


def test_the_position_is_the_one_before_the_move() -> None:
    fen, move, note = read_game(Material("g.pgn", MATE.encode(), GAMES))
    board = chess.Board()
    for san in ("f3", "e5", "g4"):
        board.push_san(san)
    assert fen == board.fen(en_passant="fen")
    assert move == (chess.D8, chess.H4)
    assert note == "the answer is the move of the game, Qh4#"


@pytest.mark.parametrize(
    ("fen", "variant", "played", "squares"),
    [
        ("4k3/8/8/8/8/8/8/R3K2R w KQ - 0 1", "", "O-O", "e1g1"),
        ("4k3/8/8/8/8/8/8/R3K2R w KQ - 0 1", "Chess960", "O-O", "e1g1"),
        ("r3k2r/8/8/8/8/8/8/4K3 b kq - 0 1", "Chess960", "O-O-O", "e8c8"),
        ("4k3/8/8/8/3Pp3/8/8/4K3 b - d3 0 1", "From Position", "exd3", "e4d3"),
        ("8/P3k3/8/8/8/8/8/4K3 w - - 0 1", "Standard", "a8=N", "a7a8"),
    ],
)
def test_squares_of_played_moves(fen: str, variant: str, played: str, squares: str) -> None:
    tag = f'[Variant "{variant}"]\n' if variant else ""
    assert answers(f'[Event "x"]\n{tag}[FEN "{fen}"]\n\n1. {played} *\n') == [squares]


@pytest.mark.parametrize(
    ("game", "said"),
    [
        ('[Event "x"]\n\n1. e5 e6 *', "cannot be played"),
        ('[Event "x"]\n[FEN "nonsense"]\n\n1. e4 *', "game"),
        ('[Event "x"]\n\n*', "no game in it"),
        ('[Event "x"]\n[Variant "Atomic"]\n\n1. Nf3 *\n', "of the variant 'Atomic'; give games"),
        ('[Event "x"]\n[Variant "My Chess"]\n\n1. Nf3 *\n', "of the variant 'My Chess'"),
    ],
)
def test_bad_games_are_refused_in_one_line(game: str, said: str) -> None:
    with pytest.raises(IterantError) as caught:
        gather(TASK, game, kind=GAMES)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_bad_game_among_good_ones_is_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    found = gather(Chess(), f'{MATE}\n[Event "bad"]\n\n1. Ke3 *\n\n{MATE}', kind=GAMES)
    assert [problem.name for problem in found.problems] == ["game 1", "game 3"]
    [(name, error)] = found.refused
    assert name == "game 2"
    assert "cannot be played" in str(error)
    assert capsys.readouterr().err == ""
