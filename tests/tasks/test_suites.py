"""Test suites in EPD: what is read of a line, and which answers are right by it."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
import torch

from iterant.errors import TaskError
from iterant.solving.film import Film
from iterant.solving.problems import Solution
from iterant.tasks.chess.boards import targets
from iterant.tasks.chess.fen import square_number
from iterant.tasks.chess.formats import Entry, parse_epd
from iterant.tasks.chess.task import Chess
from iterant.tasks.inputs import gather
from iterant.tasks.protocol import Accepts, Batch, expected_answer, is_accepted

BOARD = "6k1/5ppp/8/8/8/8/8/K2R4 w - -"
BLACK = "1k1r4/8/8/8/8/8/6n1/K7 b - -"
TASK = Chess()


def marked(batch: Batch, move: str) -> torch.Tensor:
    """A prediction of that move."""
    coded = square_number(move[:2]) | square_number(move[2:]) << 6
    return targets(torch.tensor([coded]), torch.from_numpy(batch.extras["black"]))


@pytest.mark.parametrize(
    ("text", "entry"),
    [
        (f"{BOARD} bm Rd8#;", Entry(BOARD, best=("Rd8#",))),
        (f"{BOARD} bm Rd8#", Entry(BOARD, best=("Rd8#",))),
        (f"  {BOARD}   bm Rd8#  Rd7 ; id a.1", Entry(BOARD, "a.1", ("Rd8#", "Rd7"))),
        (f'{BOARD} id "one; two";am Rd7;', Entry(BOARD, "one; two", avoid=("Rd7",))),
        (f"{BOARD} 12 34 bm Rd8;", Entry(f"{BOARD} 12 34", best=("Rd8",))),
        (f'{BOARD} hmvc 3; c0 "id bm am"; bm Rd8;', Entry(BOARD, best=("Rd8",))),
        (f'{BOARD} id "";', Entry(BOARD)),
        (f'{BOARD} id "bell\a";', Entry(BOARD, "bell")),
        (f"{BOARD} pm;", Entry(BOARD)),
    ],
)
def test_what_is_read_of_a_line(text: str, entry: Entry) -> None:
    assert parse_epd(text) == entry


@pytest.mark.parametrize(
    "text", [BOARD, f"{BOARD} 0 1", "6k1/8/8/8/8/8/8/K2R4 w", f"{BOARD} and", ""]
)
def test_a_fen_is_none(text: str) -> None:
    assert parse_epd(text) is None


@pytest.mark.parametrize(
    "text", ['bm Rd8# Rd7; id "two"; acd 3;', "am Rd8#; ce 0;", "bm Rd8; am Rd7 Rd6;", "acd 1;"]
)
def test_the_judge_reads_the_same(text: str) -> None:
    chess = pytest.importorskip("chess")
    board, told = chess.Board.from_epd(f"{BOARD} {text}")
    entry = parse_epd(f"{BOARD} {text}")
    assert entry is not None
    assert entry.fen == board.epd()
    assert entry.label == told.get("id", "")
    for words, moves in ((entry.best, told.get("bm", [])), (entry.avoid, told.get("am", []))):
        assert [board.parse_san(word) for word in words] == moves
    batch = TASK.encode(f"{BOARD} {text}")
    for move in board.legal_moves:
        right = move in told["bm"] if "bm" in told else move not in told.get("am", [])
        found = is_accepted(TASK, batch, marked(batch, move.uci()))
        assert found is (right if "bm" in told or "am" in told else None), move


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
def test_wrong_ones_are_one_line(text: str, said: str) -> None:
    with pytest.raises(TaskError) as caught:
        gather(TASK, f"{BOARD} {text}")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_suite_is_named_by_line_and_label_and_bad_lines_are_left_out(tmp_path: Path) -> None:
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
    assert [expected_answer(TASK, batch) for batch in (first, second, third)] == [
        "Rd8",
        "Rd1+ or Ne1",
        "",
    ]
    stream = io.BytesIO(lines[1].encode())
    assert gather(TASK, "-", stdin=stream).problems[0].name == "standard input (first)"


def test_several_best_moves_are_right_drawn_and_kept() -> None:
    batch = TASK.encode(f'{BOARD} bm Rd8 Rd7; am Rd6; id "x";')
    assert isinstance(TASK, Accepts)
    for move, right in (("d1d8", True), ("d1d7", True), ("d1d6", False), ("d1d5", False)):
        assert TASK.accepts(batch, 0, marked(batch, move)) is right
        drawn = TASK.describe(batch, 0, marked(batch, move))
        assert drawn.caption == (
            f"White to move; answer {move if right else 'd1d8'}; found {move}, "
            f"{'right' if right else 'wrong'}; to avoid: Rd6"
        )
    nothing = torch.zeros(1, 8, 8, dtype=torch.int64)
    assert not TASK.accepts(batch, 0, nothing)
    (problem,) = gather(TASK, f'{BOARD} bm Rd8 Rd7; am Rd6; id "x";').problems
    about = Solution(problem, Film(1)).described()["about"]
    assert about == {"black": False, "fen": BOARD, "id": "x", "best": "Rd8 Rd7", "avoid": "Rd6"}


def test_of_moves_to_avoid_any_other_legal_one_is_right() -> None:
    batch = TASK.encode(f"{BLACK} am Rd1+;")
    assert TASK.wanted(batch, 0) == "not Rd1+"
    for move, right in (("d8d1", False), ("d8d2", True), ("d8a7", False), ("g2e1", True)):
        assert is_accepted(TASK, batch, marked(batch, move)) is right
    assert TASK.describe(batch).caption == "Black to move; to avoid: Rd1+"
