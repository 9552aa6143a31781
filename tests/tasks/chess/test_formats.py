"""Games in PGN, with python-chess as the reference."""

from __future__ import annotations

import chess
import pytest

from iterant.errors import IterantError
from iterant.tasks.chess.position import read_game, split_games, square_name
from iterant.tasks.chess.task import Chess
from iterant.tasks.inputs import GAMES, Material, gather

TASK = Chess()
MATE = '[Event "mate"]\n\n1. f3 e5 2. g4 Qh4# 0-1\n'
POSITION = '[Event "position"]\n[FEN "6k1/5ppp/8/8/8/8/8/K2R4 w - - 0 1"]\n'


def answers(text: str) -> list[str]:
    """For each game of a file the move to find, or the note if there is none."""
    read = [read_game(part) for part in split_games(Material("g.pgn", text.encode(), GAMES))]
    return ["".join(map(square_name, move)) if move else note for _, move, note in read]


@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize(
    ("text", "moves"),
    [
        (f"{MATE}\n{POSITION}\n1. Rd8# *\n", ["d8h4", "d1d8"]),
        (f"{MATE}{MATE}", ["d8h4", "d8h4"]),
        (f"\n\n% escaped\n; message\n\n{MATE}\n\n\n", ["d8h4"]),
        ('[Event "c"]\n\n1. f3 {one\n\n[Site "no tag"] } e5 2. g4 ; {\nQh4# *', ["d8h4"]),
        (f'[Event "c"]\n\n1. f3 e5 2. g4 Qh4# {{left open\n\n{MATE}', ["d8h4", "d8h4"]),
        (f'[Site "a {{ b"]\n\n1. f3 e5 2. g4 Qh4# *\n\n{MATE}', ["d8h4", "d8h4"]),
        ("1. f3 e5 2. g4 Qh4# *\n\n1. e4 e5 *\n", ["d8h4", "the position after 2 half-moves"]),
        (f"{POSITION}\n{POSITION}", ["the position after 0 half-moves"] * 2),
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
    ("game", "message"),
    [
        ('[Event "x"]\n\n1. e5 e6 *', "cannot be played"),
        ('[Event "x"]\n[FEN "nonsense"]\n\n1. e4 *', "game"),
        ('[Event "x"]\n\n*', "no game in it"),
        ('[Event "x"]\n[Variant "Atomic"]\n\n1. Nf3 *\n', "Atomic is another game"),
        ('[Event "x"]\n[Variant "My Chess"]\n\n1. Nf3 *\n', "My Chess"),
    ],
)
def test_bad_games_are_refused_in_one_line(game: str, message: str) -> None:
    with pytest.raises(IterantError, match=message) as caught:
        gather(TASK, game, kind=GAMES)
    assert "\n" not in str(caught.value)


def test_a_bad_game_among_good_ones_is_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    gathered = gather(Chess(), f'{MATE}\n[Event "bad"]\n\n1. Ke3 *\n\n{MATE}', kind=GAMES)
    assert [problem.name for problem in gathered.problems] == ["game 1", "game 3"]
    assert [name for name, _ in gathered.refused] == ["game 2"]
    assert capsys.readouterr().err == ""
