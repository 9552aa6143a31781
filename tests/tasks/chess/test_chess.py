"""The chess task on the shipped sample, with python-chess as the oracle."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import chess
import numpy as np
import pytest
import torch

from iterant.errors import DataError, MissingExtra, TaskError
from iterant.nets import TwoBest
from iterant.tasks.chess.position import legal_moves, targets
from iterant.tasks.chess.puzzles import write_puzzles
from iterant.tasks.chess.task import (
    ANSWER,
    RIGHT,
    SAMPLE,
    WRONG,
    Chess,
    position_at,
)
from iterant.tasks.datasets import save_easy_to_hard
from iterant.tasks.inputs import GAMES, gather
from iterant.tasks.protocol import Batch

TASK = Chess(SAMPLE)


def marked(batch: Batch, text: str) -> torch.Tensor:
    """A prediction of two squares."""
    coded = torch.tensor([chess.parse_square(text[:2]) | chess.parse_square(text[2:4]) << 6])
    return targets(coded, torch.from_numpy(batch.extras["black"]))


def test_answers_of_the_sample_are_legal() -> None:
    batch = TASK.sample(1000, size=(0, 4000))
    # The board alone does not show castling and en passant rights: a few answers are not legal.
    legal = [bool(TASK.verdict(batch, row, batch.targets).legal) for row in range(1000)]
    assert sum(legal) > 990
    assert 300 < batch.extras["black"].sum() < 700, "both colours move"
    assert (batch.extras["promotion"] > 0).any(), "promotions are among them"


def test_every_puzzle_is_in_one_range_of_ratings() -> None:
    batch = TASK.sample(200, size=(0, 4000))
    kinds = TASK.kinds(batch)
    ranges = [kind for kind in kinds if kind.scale == "rating"]
    assert torch.stack([kind.among for kind in ranges]).sum(dim=0).tolist() == [1] * 200
    for kind in ranges:
        assert (abs(batch.extras["rating"][kind.among.numpy()] - kind.at) <= 50).all()
    (mates,) = (kind.among for kind in kinds if kind.name == "mate")
    for kind in kinds:
        assert not kind.name.startswith("mateIn") or not (kind.among & ~mates).any()
    assert TASK.kinds(TASK.encode("6k1/5ppp/8/8/8/8/8/K2R4 w - - 0 1")) == []


def test_a_range_is_shuffled_without_repetition() -> None:
    whole = TASK.sample(300, size=(1000, 1300), seed=5)
    expected = TASK.puzzles.ids[1000:1300].astype(str).tolist()
    assert sorted(whole.extras["id"]) == sorted(expected)
    assert whole.extras["id"].tolist() != expected
    packed = TASK.packed(40, size=(1000, 1300), seed=5, first=7)
    assert packed is not None
    inputs, answers = packed[:]
    assert torch.equal(inputs, whole.inputs[7:47])
    assert torch.equal(answers, whole.targets[7:47])
    # Torch refuses to mix devices, so on a device without memory nothing can come from the host.
    some = torch.tensor([7, 0, 7], device="meta")
    assert packed.to("meta")[some][0].shape == (3, 12, 8, 8)


def test_sizes_are_ranges() -> None:
    assert TASK.parse_size(" 1_000_000:1_100_000 ") == (1_000_000, 1_100_000)
    assert TASK.check_size((0, 4000)) == (0, 4000)
    assert TASK.check_size(None) == (0, 1600), "the easiest two fifths, as in the paper"
    texts = ("", "5", "1:2:3", "a:b", "-1:5", "1.5:2", ":", "\u0661:\u0662")
    for wrong in (*texts, 13, (1, 2, 3), (0.0, 9.0)):
        with pytest.raises(TaskError, match="a size must be a range first:stop"):
            TASK.parse_size(wrong) if isinstance(wrong, str) else TASK.check_size(wrong)  # type: ignore[arg-type]
    for first, stop in ((5, 5), (7, 5), (-2, 5), (3999, 4001), (600_000, 700_000)):
        with pytest.raises(TaskError, match=f"the range {first}:{stop} .* within 0:4000"):
            TASK.sample(1, size=(first, stop))
    for count, place in ((11, 0), (1, 10), (5, 6)):
        with pytest.raises(TaskError, match="the range 0:10 holds 10 puzzles"):
            TASK.sample(count, size=(0, 10), first=place)


def test_encoding_agrees_with_sampling() -> None:
    batch = TASK.sample(20, seed=9)
    for index in range(20):
        encoded = TASK.encode(f"  {position_at(batch, index).fen} ")
        assert torch.equal(encoded.inputs[0], batch.inputs[index])
        assert encoded.extras["fen"].tolist() == [position_at(batch, index).fen]
        assert not encoded.labelled


def test_a_folder_without_puzzles(tmp_path: Path) -> None:
    assert "the sample that comes with the package" in Chess().source()
    with pytest.raises(DataError, match="is not a folder of packed puzzles"):
        Chess(tmp_path / "nowhere").sample(1)
    write_puzzles(TASK.puzzles.take(slice(0, 10)), tmp_path / "few", source="test")
    assert Chess(tmp_path / "few").check_size(None) == (0, 4)


def test_data_in_easy_to_hard_files(tmp_path: Path) -> None:
    own = TASK.sample(30, size=(0, 400), seed=2)
    white = own[~own.extras["black"].astype(bool)]
    save_easy_to_hard(white, tmp_path / "chess_data")
    task = Chess(data=tmp_path)
    again = task.sample(len(white), size=(0, len(white)), seed=5)
    key = [tuple(row.flatten().tolist()) for row in white.inputs]
    assert sorted(tuple(row.flatten().tolist()) for row in again.inputs) == sorted(key)
    assert task.packed(1) is None
    with pytest.raises(TaskError, match="goes beyond the set"):
        task.sample(1, size=(0, len(white) + 1))


ASSUMED = "(castling and en passant not given, taken as absent)"
VERDICTS = [
    ("4k3/8/8/8/8/8/8/R3K2R w KQ - 0 1", "e1g1", "king e1 castles to g1 (O-O), legal"),
    ("4k3/8/8/8/8/8/8/R3K2R w Q - 0 1", "e1g1", "king e1 castles to g1, not legal"),
    ("4k3/8/8/8/8/8/8/R3K2R w", "e1g1", f"king e1 castles to g1, not legal {ASSUMED}"),
    ("r3k2r/8/8/8/8/8/8/4K3 b kq - 0 1", "e8c8", "king e8 castles to c8 (O-O-O), legal"),
    ("4k3/8/8/8/8/5K2/8/8 w - - 0 1", "f3h3", "king f3 to h3, not legal"),
    ("4k3/4r3/8/8/8/8/4N3/4K3 w - - 0 1", "e2c3", "knight e2 to c3, not legal"),  # pinned
    ("4k3/8/8/3pP3/8/8/8/4K3 w - d6 0 1", "e5d6", "pawn e5 takes pawn d5 en passant (exd6), legal"),
    ("4k3/8/8/3pP3/8/8/8/4K3 w - - 0 1", "e5d6", "pawn e5 to d6, not legal"),
    ("1r5k/P7/8/8/8/8/8/K7 w - - 0 1", "a7a8", "pawn a7 to a8 and is promoted (a8), legal"),
    ("1r5k/P7/8/8/8/8/8/K7 w - - 0 1", "a7b8",
     "pawn a7 takes rook b8 and is promoted (axb8), legal"),
    ("6k1/5ppp/8/8/8/8/8/K2R4 w", "d1d8", f"rook d1 to d8 (Rd8#), legal {ASSUMED}"),
    ("3qk3/8/8/8/8/8/8/3QK3 w - - 0 1", "d1d8", "queen d1 takes queen d8 (Qxd8+), legal"),
]  # fmt: skip


@pytest.mark.parametrize(("fen", "text", "words"), VERDICTS)
def test_verdict(fen: str, text: str, words: str) -> None:
    batch = TASK.encode(fen)
    verdict = TASK.verdict(batch, 0, marked(batch, text))
    assert verdict.words == words
    assert verdict.legal is ("not legal" not in words)
    assert TASK.answer_text(batch, 0, marked(batch, text)) == text
    (problem,) = gather(TASK, fen).problems
    assert problem.notes == (() if fen.endswith("1") else (ASSUMED.strip("()"),))


@pytest.mark.parametrize(
    ("side", "squares"), [("w", "a1e1"), ("b", "a1e1"), ("b", "h8e8"), ("w", "c4d5"), ("w", "")]
)
def test_squares_that_are_no_move(side: str, squares: str) -> None:
    batch = TASK.encode(f"4k2r/8/8/8/8/8/8/R3K3 {side} - - 0 1")
    prediction = marked(batch, squares) if squares else torch.zeros(1, 8, 8).long()
    verdict = TASK.verdict(batch, 0, prediction)
    assert verdict.legal is False
    assert verdict.words.startswith("no move: ")


def test_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("chess", "chess.pgn"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(TaskError, match=r"games in PGN needs .*'chess'.*iterant\[chess\]"):
        gather(TASK, "1. e4 e5 *", kind=GAMES)
    TASK.encode("k6R/7R/8/8/8/8/8/K7 b - - 0 1")  # checkmate, which needs the rules
    batch = TASK.encode("4k3/8/8/8/8/8/8/R3K3 w")
    verdict = TASK.verdict(batch, 0, marked(batch, "a1a2"))
    assert verdict.legal is None
    assert "iterant[chess]" in verdict.words
    with pytest.raises(MissingExtra, match="moves"):
        TASK.restrict(batch, 0, torch.zeros(2, 8, 8))


@pytest.mark.parametrize("side", ["w", "b"])
def test_restricting_takes_the_best_legal_move_and_keeps_a_legal_answer(side: str) -> None:
    batch = TASK.encode(f"4k2r/8/8/3q4/3Q4/8/8/R3K3 {side} Qk - 0 1")
    position = position_at(batch, 0)
    generator, kept = torch.Generator().manual_seed(7), 0
    for _ in range(200):
        logits = torch.randn(1, 2, 8, 8, generator=generator, requires_grad=True)
        plain = TwoBest().predict(logits, batch.inputs)
        allowed, _ = TASK.restrict(batch, 0, logits[0])
        assert TASK.verdict(batch, 0, allowed[None]).legal
        codes = torch.tensor([origin | goal << 6 for origin, goal in legal_moves(position)])
        grids = targets(codes, torch.full_like(codes, position.black))
        sums = (grids * logits[0, 1].detach()).sum((1, 2))
        assert (allowed * logits[0, 1].detach()).sum() == pytest.approx(float(sums.max()))
        if TASK.verdict(batch, 0, plain).legal:
            kept += 1
            assert torch.equal(allowed, plain[0])
    assert kept > 1
    finished = Batch(batch.inputs, batch.targets, {"fen": np.array(["k6R/7R/8/8/8/8/8/K7 b - -"])})
    with pytest.raises(TaskError, match="no legal move"):
        TASK.restrict(finished, 0, logits[0])


def test_orientation_of_the_drawing() -> None:
    board = "6k1/5ppp/8/8/8/8/8/K2R4"
    for side, corner in (("w", "1  K  .  .  R"), ("b", "8  .  k  .  .")):
        shown = TASK.describe(TASK.encode(f"{board} {side} - - 0 1"))
        assert shown.text.splitlines()[7].startswith(corner)
        names = {
            shown.column_labels[glyph.column] + shown.row_labels[glyph.row]: glyph.text
            for glyph in shown.glyphs
        }
        assert names == {"g8": "♚", "f7": "♟", "g7": "♟", "h7": "♟", "a1": "♔", "d1": "♖"}
        # The corner at the right hand is light for either player.
        assert shown.cells[7, 7].sum() > shown.cells[7, 0].sum()


def test_arrows_and_captions() -> None:
    batch = TASK.sample(12, seed=4)
    assert 0 < batch.extras["black"].sum() < 12
    for index in range(12):
        uci = TASK.answer_text(batch, index, batch.targets)
        shown = TASK.describe(batch, index, batch.targets)
        for arrow in shown.arrows:
            ends = (arrow.start, arrow.end)
            names = [shown.column_labels[column] + shown.row_labels[row] for row, column in ends]
            assert "".join(names) == uci
        assert f"answer {uci}" in shown.caption
        assert shown.text.count("[") == 2
        assert f"{batch.extras['id'][index]}, rating {batch.extras['rating'][index]}" in shown.title


@pytest.mark.parametrize(
    ("squares", "words", "arrows"),
    [
        ("d1d8", "found d1d8, right", [ANSWER, RIGHT]),
        ("d1d7", "found d1d7, wrong", [ANSWER, WRONG]),
        ("a1d1", "found a1 and d1, no move, wrong", [ANSWER]),
    ],
)
def test_predictions_are_drawn(squares: str, words: str, arrows: list[str]) -> None:
    batch = TASK.encode("6k1/5ppp/8/8/8/8/8/K2R4 w - - 0 1")
    labelled = Batch(batch.inputs, marked(batch, "d1d8"), batch.extras)
    shown = TASK.describe(labelled, 0, marked(batch, squares))
    assert shown.caption == f"White to move; answer d1d8; {words}"
    assert [arrow.colour for arrow in shown.arrows] == arrows
    assert TASK.describe(batch, 0, batch.targets + 2).caption.endswith("found 64 squares, no move")
    promoted = replace(labelled, extras={**batch.extras, "promotion": np.array([5])})
    assert TASK.describe(promoted).caption == "White to move; answer d1d8q"
