"""Legal moves, written moves, and verdicts on predictions."""

from __future__ import annotations

import sys

import chess
import numpy as np
import pytest
import torch

from iterant.errors import MissingExtra, TaskError
from iterant.nets.readout import TwoBest
from iterant.tasks.chess.boards import targets, unpack
from iterant.tasks.chess.fen import parse_fen, square_number, write_fen
from iterant.tasks.chess.puzzles import load_puzzles
from iterant.tasks.chess.rules import best_legal, legal_moves, parse_move, write_move
from iterant.tasks.chess.task import SAMPLE, Chess
from iterant.tasks.inputs import gather
from iterant.tasks.protocol import Batch

TASK = Chess()
CASTLES = "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1"
BLACK_CASTLES = "r3k2r/8/8/8/8/8/8/1R2KR2 b kq - 0 1"
PROMOTES = "1n2k3/P1P5/8/3pP3/8/8/6K1/8 w - d6 0 1"
KNIGHTS = "4k3/8/8/1N1N4/8/2r5/1N1K4/8 w - - 0 1"
PINNED = "4k3/4r3/8/8/8/2N1N3/8/4K3 w - - 0 1"


def move(text: str) -> tuple[int, int]:
    return square_number(text[:2]), square_number(text[2:])


def marked(batch: Batch, text: str) -> torch.Tensor:
    """A prediction of the two squares."""
    origin, destination = move(text)
    return targets(
        torch.tensor([origin | destination << 6]), torch.from_numpy(batch.extras["black"])
    )


@pytest.mark.parametrize(
    ("fen", "text", "legal"),
    [
        ("4k3/8/8/8/8/8/8/R3K2R w KQ - 0 1", "e1g1", True),
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
def test_legality(fen: str, text: str, legal: bool) -> None:
    assert bool(write_move(parse_fen(fen), move(text))) is legal
    assert (move(text) in legal_moves(parse_fen(fen))) is legal
    batch = TASK.encode(fen)
    assert TASK.verdict(batch, 0, marked(batch, text)).keeps is legal
    assert TASK.tell(batch, 0, marked(batch, text)) == text


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
        ("1r5k/P7/8/8/8/8/8/K7 w - - 0 1", "a7a8", "pawn a7 to a8 and is promoted (a8), legal"),
        ("1r5k/P7/8/8/8/8/8/K7 w - - 0 1", "a7b8",
         "pawn a7 takes rook b8 and is promoted (axb8), legal"),
        ("6k1/5ppp/8/8/8/8/8/K2R4 w", "d1d8", ("rook d1 to d8 (Rd8#), legal "
         "(castling and en passant not given, taken as absent)")),
        ("3qk3/8/8/8/8/8/8/3QK3 w - - 0 1", "d1d8", "queen d1 takes queen d8 (Qxd8+), legal"),
    ],
)  # fmt: skip
def test_verdict_in_words(fen: str, text: str, words: str) -> None:
    batch = TASK.encode(fen)
    assert TASK.verdict(batch, 0, marked(batch, text)).words == words


@pytest.mark.parametrize(
    ("side", "squares", "why"),
    [
        ("w", "a1e1", "both squares hold a piece of White's"),
        ("b", "a1e1", "neither square holds a piece of Black's"),
        ("b", "h8e8", "both squares hold a piece of Black's"),
        ("w", "c4d5", "neither square holds a piece of White's"),
        ("w", "", "two squares make one, here are 0"),
    ],
)
def test_squares_that_are_no_move(side: str, squares: str, why: str) -> None:
    batch = TASK.encode(f"4k2r/8/8/8/8/8/8/R3K3 {side} - - 0 1")
    prediction = marked(batch, squares) if squares else torch.zeros(1, 8, 8).long()
    verdict = TASK.verdict(batch, 0, prediction)
    assert verdict.keeps is False
    assert verdict.words == f"no move: {why}"


def test_best_legal_move_has_the_highest_sum_of_scores() -> None:
    position = parse_fen("4k3/8/8/8/8/8/8/R3K3 w Q - 0 1")
    generator = torch.Generator().manual_seed(5)
    for _ in range(20):
        scores = torch.randn(64, generator=generator).tolist()
        sums = {pair: scores[pair[0]] + scores[pair[1]] for pair in legal_moves(position)}
        assert sums[best_legal(position, scores)] == max(sums.values())
    knight = parse_fen("4k3/8/8/8/8/8/8/NK6 w - - 0 1")
    assert best_legal(knight, [0.0] * 64) == move("a1c2"), "ties go to the first squares"
    with pytest.raises(TaskError, match="no legal move"):
        best_legal(parse_fen("k6R/7R/8/8/8/8/8/K7 b - - 0 1"), [0.0] * 64)


@pytest.mark.parametrize("side", ["w", "b"])
def test_restricting_keeps_a_legal_answer(side: str) -> None:
    batch = TASK.encode(f"4k2r/8/8/3q4/3Q4/8/8/R3K3 {side} Qk - 0 1")
    generator, kept = torch.Generator().manual_seed(7), 0
    for _ in range(200):
        logits = torch.randn(1, 2, 8, 8, generator=generator, requires_grad=True)
        plain = TwoBest().predict(logits, batch.inputs)
        allowed, _ = TASK.restrict(batch, 0, logits[0])
        assert TASK.verdict(batch, 0, allowed[None]).keeps
        if TASK.verdict(batch, 0, plain).keeps:
            kept += 1
            assert torch.equal(allowed, plain[0])
    assert kept > 2


@pytest.mark.parametrize(
    ("fen", "note"),
    [
        ("4k3/8/8/8/8/8/8/R3K3 w - - 0 1", ""),
        ("4k3/8/8/8/8/8/8/R3K3 w -", "en passant not given, taken as absent"),
        ("4k3/8/8/8/8/8/8/R3K3 w", "castling and en passant not given, taken as absent"),
    ],
)
def test_assumptions_are_noted(fen: str, note: str) -> None:
    (problem,) = gather(TASK, fen).problems
    assert problem.notes == ((note,) if note else ())


@pytest.mark.parametrize(
    ("fen", "reason"),
    [
        ("k6R/8/8/8/8/8/8/K7 w - - 0 1", "Black is in check although White is to move.*write b"),
        ("k7/8/8/8/8/8/8/K6r b - - 0 1", "White is in check although Black is to move.*write w"),
        ("k6R/7R/8/8/8/8/8/K7 b - - 0 1", "Black is checkmated: there is no move to find"),
        ("k7/2Q5/8/8/8/8/8/K7 b - - 0 1", "Black is stalemated: there is no move to find"),
    ],
)
def test_impossible_and_finished_positions_are_refused(fen: str, reason: str) -> None:
    with pytest.raises(TaskError, match=reason):
        TASK.encode(fen)


def test_en_passant_as_the_only_move() -> None:
    fen = "2B5/8/8/k1K5/1Pp5/8/8/3B4 b - b3 0 1"
    assert legal_moves(parse_fen(fen)) == [move("c4b3")]
    assert not TASK.encode(fen).labelled


def test_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "chess", None)
    batch = TASK.encode("k6R/7R/8/8/8/8/8/K7 b - - 0 1")  # checkmate, which needs the rules
    assert batch.inputs.shape == (1, 12, 8, 8)
    batch = TASK.encode("4k3/8/8/8/8/8/8/R3K3 w")
    verdict = TASK.verdict(batch, 0, marked(batch, "a1a2"))
    assert verdict.keeps is None
    assert "iterant[chess]" in verdict.words
    for call in (
        lambda: legal_moves(parse_fen("4k3/8/8/8/8/8/8/R3K3 w")),
        lambda: TASK.encode("4k3/8/8/8/8/8/8/R3K3 w - - bm Ra8+;"),
    ):
        with pytest.raises(MissingExtra, match="moves"):
            call()


def test_written_moves_are_read_back() -> None:
    puzzles = load_puzzles(SAMPLE).take(np.linspace(0, 3999, 15).astype(np.int64))
    boards = zip(unpack(puzzles.boards), puzzles.black, strict=True)
    fens = [f"{write_fen(board, bool(black))} 0 1" for board, black in boards]
    seen = 0
    for fen in (CASTLES, BLACK_CASTLES, PROMOTES, KNIGHTS, PINNED, *fens):
        board, position = chess.Board(fen), parse_fen(fen)
        for legal in board.legal_moves:
            for text in (board.san(legal), board.lan(legal), legal.uci()):
                assert parse_move(position, text) == (legal.from_square, legal.to_square)
                seen += 1
    assert seen > 1500


@pytest.mark.parametrize(
    ("fen", "text", "squares"),
    [
        (CASTLES, "0-0-0+!", "e1c1"),
        (PROMOTES, "a8", "a7a8"),
        (PROMOTES, "axb8+", "a7b8"),
        (PROMOTES, "a7a8", "a7a8"),
        (PROMOTES, "exd6e.p.", "e5d6"),
        (PROMOTES, "e:d6", "e5d6"),
        (KNIGHTS, "Nbd4", "b5d4"),  # the other knight on file b cannot
        (KNIGHTS, "Nbxc3!?", "b5c3"),
        (PINNED, "Nd5", "c3d5"),
    ],
)
def test_lenient_notation(fen: str, text: str, squares: str) -> None:
    assert parse_move(parse_fen(fen), text) == move(squares)


@pytest.mark.parametrize(
    ("fen", "text", "said"),
    [
        (BLACK_CASTLES, "O-O", "not legal there"),  # over an attacked square
        (CASTLES.replace("KQkq", "kq"), "O-O", "not legal there"),
        (PROMOTES, "Kf3=Q", "not legal there"),
        (KNIGHTS, "Nf8", "not legal there; correct it or the position"),
        (KNIGHTS, "Nxc3", "'Nxc3' is ambiguous; say from which square, as in Nbd2"),
        (KNIGHTS, "knight", "'knight' is no move as players write it; write it like Nf3, exd5"),
        (KNIGHTS, "--", "no move as players write it"),
    ],
)
def test_wrong_moves_are_refused(fen: str, text: str, said: str) -> None:
    with pytest.raises(TaskError) as caught:
        parse_move(parse_fen(fen), text)
    assert said in str(caught.value)
