"""EPD and PGN, with python-chess as the reference."""

from __future__ import annotations

import io
from pathlib import Path

import chess
import pytest
import torch
from test_chess import marked

from iterant.errors import IterantError, TaskError
from iterant.solving import Film, Solution
from iterant.tasks.chess.position import read_game, split_games, square_name
from iterant.tasks.chess.task import Chess
from iterant.tasks.inputs import GAMES, Material, gather
from iterant.tasks.protocol import is_accepted

TASK = Chess()
BOARD = "6k1/5ppp/8/8/8/8/8/K2R4 w - -"
BLACK = "1k1r4/8/8/8/8/8/6n1/K7 b - -"


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        (f"{BOARD} bm Rd8#", {"best": "Rd8#"}),
        (f"  {BOARD}   bm Rd8#  Rd7 ; id a.1", {"best": "Rd8# Rd7", "id": "a.1"}),
        (f'{BOARD} id "one; two";am Rd7;', {"id": "one; two", "avoid": "Rd7"}),
        (f"{BOARD} 12 34 bm Rd8;", {"fen": f"{BOARD} 12 34", "best": "Rd8"}),
        (f'{BOARD} hmvc 3; c0 "id bm am"; bm Rd8;', {"best": "Rd8"}),
        (f'{BOARD} id "";', {}),
        (f'{BOARD} id "bell\a";', {"id": "bell"}),
        (f"{BOARD} pm;", {}),
        (BOARD, {}),
        (f"{BOARD} 0 1", {"fen": f"{BOARD} 0 1"}),
    ],
)
def test_fields_of_an_epd(text: str, fields: dict[str, str]) -> None:
    extras = TASK.encode(text).extras
    words = {name: str(column[0]) for name, column in extras.items() if name != "black"}
    assert words == {"fen": BOARD, **fields}


@pytest.mark.parametrize(
    "text",
    ["bm;", "bm Rd8; bm Rd7;", 'bm Rd8 id "x";', 'bm Rd8; id "x', "bm Rd8; 17;", "bm Rd9;"],
)
def test_bad_epds_are_refused_in_one_line(text: str) -> None:
    with pytest.raises(TaskError, match="; write ") as caught:
        gather(TASK, f"{BOARD} {text}")
    assert "\n" not in str(caught.value)


def test_names_and_answers_of_a_suite(tmp_path: Path) -> None:
    lines = ["# a suite", f'{BOARD} bm Rd8; id "first";', "", f"{BLACK} bm Rd9;",
             f'{BLACK} bm Rd1+ Ne1; id "a name";', BOARD]  # fmt: skip
    (tmp_path / "s.epd").write_text("\r\n".join(lines))
    gathered = gather(TASK, str(tmp_path / "s.epd"))
    assert [problem.name for problem in gathered.problems] == [
        "s.epd line 2 (first)",
        "s.epd line 5 (a name)",
        "s.epd line 6",
    ]
    assert [name for name, _ in gathered.refused] == ["s.epd line 4"]
    first, second, third = (problem.batch for problem in gathered.problems)
    assert torch.equal(first.targets, marked(first, "d1d8"))
    assert torch.equal(second.targets, marked(second, "d8d1")), "seen by black"
    assert not third.labelled
    expected = [TASK.expected(batch, 0) for batch in (first, second, third)]
    assert expected == ["Rd8", "Rd1+ or Ne1", ""]
    stream = io.BytesIO(lines[1].encode())
    assert gather(TASK, "-", stdin=stream).problems[0].name == "standard input (first)"


def test_several_best_moves_and_moves_to_avoid() -> None:
    (problem,) = gather(TASK, f'{BOARD} bm Rd8 Rd7; am Rd6; id "x";').problems
    batch = problem.batch
    for move, right in (("d1d7", True), ("d1d6", False)):
        assert TASK.accepts(batch, 0, marked(batch, move)) is right
        assert TASK.describe(batch, 0, marked(batch, move)).caption == (
            f"White to move; answer {move if right else 'd1d8'}; found {move}, "
            f"{'right' if right else 'wrong'}; to avoid: Rd6"
        )
    assert not TASK.accepts(batch, 0, torch.zeros(1, 8, 8, dtype=torch.int64))
    about = Solution(problem, Film(1)).described()["about"]
    assert about == {"black": False, "fen": BOARD, "id": "x", "best": "Rd8 Rd7", "avoid": "Rd6"}
    batch = TASK.encode(f"{BLACK} am Rd1+;")
    assert TASK.expected(batch, 0) == "not Rd1+"
    assert not is_accepted(TASK, batch, marked(batch, "d8a7")), "not legal"


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
