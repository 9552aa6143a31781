"""Games in PGN: where one ends and the next begins, and what each of them asks."""

from __future__ import annotations

import pytest

from iterant.errors import TaskError
from iterant.tasks.chess.fen import square_name
from iterant.tasks.chess.formats import game_parts, position_of
from iterant.tasks.chess.task import Chess
from iterant.tasks.inputs import GAMES, Material, gather

pytest.importorskip("chess")

MATE = '[Event "mate"]\n\n1. f3 e5 2. g4 Qh4# 0-1\n'
POSITION = '[Event "position"]\n[FEN "6k1/5ppp/8/8/8/8/8/K2R4 w - - 0 1"]\n'


def asked(text: str) -> list[str]:
    """What each game of a file asks: the move played, or the note where none was."""
    found = []
    for part in game_parts(Material("g.pgn", text.encode(), GAMES)):
        _, move, said = position_of(part)
        found.append("".join(map(square_name, move)) if move else said)
    return found


@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize(
    ("text", "moves"),
    [
        (MATE, ["d8h4"]),
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
def test_a_part_is_a_game(text: str, moves: list[str], ends: str) -> None:
    assert asked(text.replace("\n", ends)) == moves


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
def test_squares_are_those_of_the_benchmark(
    fen: str, variant: str, played: str, squares: str
) -> None:
    tag = f'[Variant "{variant}"]\n' if variant else ""
    assert asked(f'[Event "x"]\n{tag}[FEN "{fen}"]\n\n1. {played} *\n') == [squares]


@pytest.mark.parametrize("variant", ["Atomic", "Crazyhouse", "Nobody's Chess"])
def test_games_by_other_rules_are_refused(variant: str) -> None:
    game = f'[Event "x"]\n[Variant "{variant}"]\n\n1. Nf3 Nf6 *\n'
    with pytest.raises(TaskError, match=r"of the variant .*; give games of plain chess") as caught:
        gather(Chess(), game, kind=GAMES)
    assert "\n" not in str(caught.value)


def test_a_bad_game_among_good_ones_is_left_out() -> None:
    found = gather(Chess(), f'{MATE}\n[Event "bad"]\n\n1. Ke3 *\n\n{MATE}', kind=GAMES)
    assert [problem.name for problem in found.problems] == ["game 1", "game 3"]
    [(name, error)] = found.refused
    assert name == "game 2"
    assert "cannot be played" in str(error)
