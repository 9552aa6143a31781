"""``iterant solve`` with files of chess positions."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from thinkers import small_net

WHITE, BLACK = "6k1/5ppp/8/8/8/8/8/K2R4 w - - 0 1", "k2r4/8/8/8/8/8/5PPP/6K1 b"
GUESSED = "8/p2q2k1/2pp1Rp1/2p1p1P1/8/7r/PPP2Q2/4R1K1 b - -"
"""The network of these tests answers d7f5, which is legal: Qf5."""
FAST = ("--max-steps", "2")
MATED = "k6R/7R/8/8/8/8/8/K7 b - - 0 1"


@pytest.fixture(autouse=True)
def a_network_that_guesses(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    net: Any = small_net("chess", "dt-recall")
    monkeypatch.setattr("iterant.cli.solve.network", lambda *_: net.float())


def column(output: str, name: str) -> list[str]:
    """The cells of the table below that head."""
    lines = output.splitlines()
    top = next(number for number, line in enumerate(lines) if line.startswith(" problem "))
    at = lines[top].index(name)
    return [line[at:].split()[0] for line in lines[top + 1 :] if line.startswith(" ")]


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_comments_and_bad_lines_in_a_file(ends: str, command: Any) -> None:
    lines = ["# endings", "", WHITE, "hello", f"  {BLACK}  ", MATED, f"{WHITE} bm Rd9", WHITE]
    Path("p.fen").write_bytes(("\ufeff" + ends.join(lines)).encode())
    code, output, errors = command("solve", "chess", "p.fen", *FAST)
    assert code == 2
    assert [f"line {number} " in output for number in range(1, 9)] == [
        number in (3, 5, 8) for number in range(1, 9)
    ]
    told = errors.splitlines()
    assert [line.partition(": ")[2][:23] for line in told[:3]] == [
        f"left out p.fen line {number}: " for number in (4, 6, 7)
    ]
    assert "Black is checkmated: there is no move to find" in told[1]
    assert told[3:] == [
        "iterant: error: 3 of 6 problems could not be read; the others are answered above"
    ]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "p.fen is empty; give a problem"),
        (b" \r\n\t\n", "p.fen is empty; give a problem"),
        (b"# nothing yet\n\n", "p.fen holds no problem; give some"),
        (b"\xff\xfe\x00", "p.fen is neither text nor a picture that is known"),
    ],
)
def test_files_without_a_problem(content: bytes, said: str, command: Any) -> None:
    Path("p.fen").write_bytes(content)
    assert command("solve", "chess", "p.fen", *FAST) == (2, "", f"iterant: error: {said}\n")


def test_legal_moves_are_counted(command: Any) -> None:
    pytest.importorskip("chess")
    code, output, _ = command("solve", "chess", "--count", "12", "--seed", "3", "--legal", *FAST)
    assert code == 0
    kept = column(output, "rules")
    assert len(kept) == 12
    assert set(kept) <= {"yes", "no"}
    assert f"{kept.count('yes')} of 12 answers keep the rules" in output


def test_without_python_chess_a_note_is_printed_once(
    command: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "chess", None)
    code, output, _ = command("solve", "chess", "--count", "3", "--seed", "4", *FAST)
    assert code == 0
    assert column(output, "rules") == ["?", "?", "no"], "what is no move is not legal anyway"
    assert output.count("pip install 'iterant[chess]'") == 1
    assert "0 of 1 answers keep the rules" in output


def test_suites_with_best_moves(command: Any) -> None:
    pytest.importorskip("chess")
    lines = ["bm Rh5 Qf5; id a", "am Qf5;", "bm Kg8 Kh8;", "am Rh5;", "acd 4;"]
    Path("s.epd").write_text("\n".join(f"{GUESSED} {line}" for line in lines))
    code, output, errors = command("solve", "chess", "s.epd", *FAST)
    assert (code, errors) == (0, "")
    assert column(output, "answer") == ["d7f5"] * 5, "another position is needed for this test"
    assert column(output, "right") == ["yes", "no", "no", "yes", "?"]
    assert column(output, "wanted") == ["Rh5", "not", "Kg8", "not", "?"]
    assert "s.epd line 1 (a) " in output
    assert "2 right of 4 whose answer is known" in output
    _, output, _ = command("solve", "chess", f"{GUESSED} bm Kg8 Kh8; id 7;", *FAST)
    assert "right     no, wanted: Kg8 or Kh8\n" in output
    assert "Chess position: 7" in output


def test_notes_of_many_problems_are_printed_once(command: Any) -> None:
    said = "castling and en passant not given, taken as absent"
    Path("p.fen").write_text("\n".join([WHITE, *[BLACK] * 5]))
    _, output, _ = command("solve", "chess", "p.fen", *FAST)
    assert output.startswith(f"5 of 6 problems: {said}\n")
    assert output.count(said) == 1
    Path("p.fen").write_text(f"{WHITE}\n{BLACK}")
    assert command("solve", "chess", "p.fen", *FAST)[1].startswith(f"p.fen line 2: {said}\n")


def test_notes_that_arise_while_solving(
    command: Any,
) -> None:
    pytest.importorskip("chess")
    said = "castling and en passant not given, taken as absent"
    _, output, _ = command("solve", "chess", "--seed", "4", "--legal", *FAST)
    assert any(line.endswith(f": {said}") for line in output.splitlines())


@pytest.mark.parametrize("live", [True, False])
def test_a_terminal_shows_progress(live: bool, terminal_command: Any) -> None:
    flags = [] if live else ["--no-live"]
    text = terminal_command("solve", "chess", "--count", "3", *FAST, *flags)
    assert ("thinking:" in text) == ("3/3" in text) == live
    assert "3 problems, " in text
