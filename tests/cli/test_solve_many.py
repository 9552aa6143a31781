"""``iterant solve`` with a file of positions: what is said of many, once and for each."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

import pytest
from thinkers import small_net

from iterant.cli.main import run

WHITE, BLACK = "6k1/5ppp/8/8/8/8/8/K2R4 w - - 0 1", "k2r4/8/8/8/8/8/5PPP/6K1 b"
GUESSED = "8/p2q2k1/2pp1Rp1/2p1p1P1/8/7r/PPP2Q2/4R1K1 b - -"
"""The network of these tests answers d7f5, which is legal: Qf5."""
MATED = "k6R/7R/8/8/8/8/8/K7 b - - 0 1"


@pytest.fixture(autouse=True)
def a_network_that_guesses(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    net: Any = small_net("chess", "dt-recall")
    monkeypatch.setattr("iterant.cli.solve.network", lambda *_: net.float())
    monkeypatch.chdir(tmp_path)


def solve(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[object, str, str]:
    """Exit code, output and errors of ``iterant solve chess …`` of two iterations."""
    with pytest.raises(SystemExit) as leaving:
        run(["solve", "chess", *words, "--max-steps", "2"])
    output, errors = capsys.readouterr()
    return leaving.value.code, output, errors


def column(output: str, name: str) -> list[str]:
    """The cells of the table below that head."""
    lines = output.splitlines()
    top = next(number for number, line in enumerate(lines) if line.startswith(" problem "))
    at = lines[top].index(name)
    return [line[at:].split()[0] for line in lines[top + 1 :] if line.startswith(" ")]


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_lines_for_people_and_bad_ones_between_good_ones(
    ends: str, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = ["# endings", "", WHITE, "hello", f"  {BLACK}  ", MATED, f"{WHITE} bm Rd9", WHITE]
    Path("p.fen").write_bytes(("\ufeff" + ends.join(lines)).encode())
    code, output, errors = solve(capsys, "p.fen")
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
def test_a_file_without_a_position(
    content: bytes, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("p.fen").write_bytes(content)
    assert solve(capsys, "p.fen") == (2, "", f"iterant: error: {said}\n")


def test_of_many_it_is_told_whether_each_is_legal(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("chess")
    code, output, _ = solve(capsys, "--count", "12", "--seed", "3", "--legal")
    assert code == 0
    kept = column(output, "rules")
    assert len(kept) == 12
    assert set(kept) <= {"yes", "no"}
    assert f"{kept.count('yes')} of 12 answers keep the rules" in output


def test_without_the_extra_that_is_said_once(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "chess", None)
    code, output, _ = solve(capsys, "--count", "3", "--seed", "4")
    assert code == 0
    assert column(output, "rules") == ["?", "?", "no"], "what is no move is not legal anyway"
    assert output.count("pip install 'iterant[chess]'") == 1
    assert "0 of 1 answers keep the rules" in output


def test_a_suite_is_compared_with_its_best_moves(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("chess")
    lines = ["bm Rh5 Qf5; id a", "am Qf5;", "bm Kg8 Kh8;", "am Rh5;", "acd 4;"]
    Path("s.epd").write_text("\n".join(f"{GUESSED} {line}" for line in lines))
    code, output, errors = solve(capsys, "s.epd")
    assert (code, errors) == (0, "")
    assert column(output, "answer") == ["d7f5"] * 5, "another position is needed for this test"
    assert column(output, "right") == ["yes", "no", "no", "yes", "?"]
    assert column(output, "wanted") == ["Rh5", "not", "Kg8", "not", "?"]
    assert "s.epd line 1 (a) " in output
    assert "2 right of 4 whose answer is known" in output
    _, output, _ = solve(capsys, f"{GUESSED} bm Kg8 Kh8; id 7;")
    assert "right     no, wanted: Kg8 or Kh8\n" in output
    assert "Chess position: 7" in output


def test_what_was_assumed_of_many_is_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    said = "castling and en passant not given, taken as absent"
    Path("p.fen").write_text("\n".join([WHITE, *[BLACK] * 5]))
    _, output, _ = solve(capsys, "p.fen")
    assert output.startswith(f"5 of 6 problems: {said}\n")
    assert output.count(said) == 1
    Path("p.fen").write_text(f"{WHITE}\n{BLACK}")
    assert solve(capsys, "p.fen")[1].startswith(f"p.fen line 2: {said}\n")


def test_a_puzzle_of_the_set_says_what_legal_moves_assume(
    capsys: pytest.CaptureFixture[str],
) -> None:
    pytest.importorskip("chess")
    said = "castling and en passant not given, taken as absent"
    _, output, _ = solve(capsys, "--seed", "4", "--legal")
    assert any(line.endswith(f": {said}") for line in output.splitlines())


class Screen(io.StringIO):
    """A terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("live", [True, False])
def test_a_terminal_shows_how_many_are_done(live: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen()
    monkeypatch.setattr(sys, "stdout", screen)
    for name, value in (("TERM", "xterm-256color"), ("COLUMNS", "100"), ("LINES", "40")):
        monkeypatch.setenv(name, value)
    with pytest.raises(SystemExit):
        run(
            ["solve", "chess", "--count", "3", "--max-steps", "2", *([] if live else ["--no-live"])]
        )
    assert ("thinking:" in screen.getvalue()) == live
    assert "3/3" in screen.getvalue() or not live
    assert "3 problems, " in screen.getvalue()
