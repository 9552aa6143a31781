"""Legal moves, and what is taken as absent where the notation does not say."""

from __future__ import annotations

import sys

import pytest
import torch

from iterant.errors import MissingExtra
from iterant.nets.readout import TwoBest
from iterant.tasks.chess.boards import targets
from iterant.tasks.chess.fen import parse_fen, square_number
from iterant.tasks.chess.rules import assumed, best_legal, legal_moves, notation
from iterant.tasks.chess.task import Chess
from iterant.tasks.inputs import gather

pytest.importorskip("chess")
TASK = Chess()


def move(text: str) -> tuple[int, int]:
    return square_number(text[:2]), square_number(text[2:])


@pytest.mark.parametrize(
    ("fen", "text", "legal"),
    [
        ("4k3/8/8/8/8/8/8/R3K2R w KQ - 0 1", "e1g1", True),
        ("4k3/8/8/8/8/8/8/R3K2R w KQ - 0 1", "e1c1", True),
        ("4k3/8/8/8/8/8/8/R3K2R w Q - 0 1", "e1g1", False),
        ("4k3/8/8/8/8/8/8/R3K2R w", "e1g1", False),
        ("r3k2r/8/8/8/8/8/8/4K3 b kq - 0 1", "e8g8", True),
        ("4k3/8/8/3pP3/8/8/8/4K3 w - d6 0 1", "e5d6", True),
        ("4k3/8/8/3pP3/8/8/8/4K3 w - -", "e5d6", False),
        ("4k3/8/8/3pP3/8/8/8/4K3 w -", "e5d6", False),
        ("8/P3k3/8/8/8/8/8/4K3 w - - 0 1", "a7a8", True),
        ("4k3/4r3/8/8/8/8/4N3/4K3 w - - 0 1", "e2c3", False),  # pinned
        ("4k3/8/8/8/8/8/8/R3K3 w - - 0 1", "a1b2", False),
    ],
)
def test_the_rules(fen: str, text: str, legal: bool) -> None:
    assert bool(notation(parse_fen(fen), *move(text))) is legal
    assert (move(text) in legal_moves(parse_fen(fen))) is legal
    batch = TASK.encode(fen)
    origin, destination = move(text)
    marked = targets(
        torch.tensor([origin | destination << 6]), torch.from_numpy(batch.extras["black"])
    )
    verdict = TASK.verdict(batch, 0, marked)
    assert verdict.keeps is legal
    assert TASK.tell(batch, 0, marked) == text


@pytest.mark.parametrize(
    ("fen", "text", "words"),
    [
        ("4k3/8/8/8/8/8/8/R3K2R w KQ - 0 1", "e1g1", "king e1 castles to g1 (O-O), legal"),
        ("4k3/8/8/8/8/8/8/R3K2R w Q - 0 1", "e1g1", "king e1 castles to g1, not legal"),
        ("r3k2r/8/8/8/8/8/8/4K3 b kq - 0 1", "e8c8", "king e8 castles to c8 (O-O-O), legal"),
        ("4k3/8/8/8/8/5K2/8/8 w - - 0 1", "f3h3", "king f3 to h3, not legal"),
        ("7k/8/8/8/8/8/8/K7 b - - 0 1", "h8b7", "king h8 to b7, not legal"),
        ("4k3/8/8/3pP3/8/8/8/4K3 w - d6 0 1", "e5d6",
         "pawn e5 takes pawn d5 en passant (exd6), legal"),
        ("4k3/8/8/3pP3/8/8/8/4K3 w - - 0 1", "e5d6", "pawn e5 to d6, not legal"),
        ("4k3/8/8/8/3Pp3/8/8/4K3 b - d3 0 1", "e4d3",
         "pawn e4 takes pawn d4 en passant (exd3), legal"),
        ("1r5k/P7/8/8/8/8/8/K7 w - - 0 1", "a7a8", "pawn a7 to a8 and is promoted (a8), legal"),
        ("1r5k/P7/8/8/8/8/8/K7 w - - 0 1", "a7b8",
         "pawn a7 takes rook b8 and is promoted (axb8), legal"),
        ("8/8/8/8/8/7k/p7/K7 b - - 0 1", "h3h2", "king h3 to h2 (Kh2), legal"),
        ("6k1/5ppp/8/8/8/8/8/K2R4 w", "d1d8", ("rook d1 to d8 (Rd8#), legal "
         "(castling and en passant not given, taken as absent)")),
        ("3qk3/8/8/8/8/8/8/3QK3 w - - 0 1", "d1d8", "queen d1 takes queen d8 (Qxd8+), legal"),
    ],
)  # fmt: skip
def test_a_move_is_said_as_people_say_it(fen: str, text: str, words: str) -> None:
    batch = TASK.encode(fen)
    origin, destination = move(text)
    marked = targets(
        torch.tensor([origin | destination << 6]), torch.from_numpy(batch.extras["black"])
    )
    assert TASK.verdict(batch, 0, marked).words == words


@pytest.mark.parametrize(
    ("side", "squares", "why"),
    [
        ("w", "a1e1", "both squares hold a piece of White's"),
        ("b", "a1e1", "neither square holds a piece of Black's"),
        ("b", "h8e8", "both squares hold a piece of Black's"),
        ("w", "h8e8", "neither square holds a piece of White's"),
        ("w", "c4d5", "neither square holds a piece of White's"),
        ("w", "", "two squares make one, here are 0"),
    ],
)
def test_squares_that_are_no_move_are_said_to_be_none(side: str, squares: str, why: str) -> None:
    batch = TASK.encode(f"4k2r/8/8/8/8/8/8/R3K3 {side} - - 0 1")
    marked = torch.zeros(1, 8, 8).long()
    if squares:
        first, second = move(squares)
        marked = targets(torch.tensor([first | second << 6]), torch.tensor([side == "b"]))
    verdict = TASK.verdict(batch, 0, marked)
    assert verdict.keeps is False
    assert verdict.words == f"no move: {why}"


def test_the_best_of_the_legal_moves_has_the_highest_sum_of_scores() -> None:
    position = parse_fen("4k3/8/8/8/8/8/8/R3K3 w Q - 0 1")
    generator = torch.Generator().manual_seed(5)
    for _ in range(20):
        scores = torch.randn(64, generator=generator).tolist()
        found = best_legal(position, scores)
        sums = {pair: scores[pair[0]] + scores[pair[1]] for pair in legal_moves(position)}
        assert found in sums
        assert sums[found] == max(sums.values())


@pytest.mark.parametrize("side", ["w", "b"])
def test_a_plain_answer_that_is_legal_stays(side: str) -> None:
    batch = TASK.encode(f"4k2r/8/8/3q4/3Q4/8/8/R3K3 {side} Qk - 0 1")
    generator, stayed = torch.Generator().manual_seed(7), 0
    for _ in range(200):
        logits = torch.randn(1, 2, 8, 8, generator=generator, requires_grad=True)
        plain = TwoBest().predict(logits, batch.inputs)
        allowed, _ = TASK.restrict(batch, 0, logits[0])
        assert TASK.verdict(batch, 0, allowed[None]).keeps
        if TASK.verdict(batch, 0, plain).keeps:
            stayed += 1
            assert torch.equal(allowed, plain[0])
    assert stayed > 2


@pytest.mark.parametrize(
    ("fen", "said"),
    [
        ("4k3/8/8/8/8/8/8/R3K3 w - - 0 1", ""),
        ("4k3/8/8/8/8/8/8/R3K3 w -", "en passant not given, taken as absent"),
        ("4k3/8/8/8/8/8/8/R3K3 w", "castling and en passant not given, taken as absent"),
    ],
)
def test_what_is_not_given_is_said(fen: str, said: str) -> None:
    assert assumed(parse_fen(fen)) == said
    (problem,) = gather(TASK, fen).problems
    assert problem.notes == ((said,) if said else ())


def test_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "chess", None)
    with pytest.raises(MissingExtra, match="legal moves"):
        legal_moves(parse_fen("4k3/8/8/8/8/8/8/R3K3 w"))
    batch = TASK.encode("4k3/8/8/8/8/8/8/R3K3 w")
    marked = targets(torch.tensor([0 | 8 << 6]), torch.tensor([False]))
    verdict = TASK.verdict(batch, 0, marked)
    assert verdict.keeps is None
    assert "iterant[chess]" in verdict.words


@pytest.mark.parametrize(
    ("game", "said"),
    [
        ('[Event "x"]\n\n1. e5 e6 *', "cannot be played"),
        ('[Event "x"]\n[FEN "nonsense"]\n\n1. e4 *', "game"),
        ('[Event "x"]\n\n*', "no game in it"),
    ],
)
def test_games_that_cannot_be_played(game: str, said: str, tmp_path: object) -> None:
    from iterant.errors import IterantError
    from iterant.tasks.inputs import GAMES

    with pytest.raises(IterantError) as caught:
        gather(TASK, game, kind=GAMES)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
