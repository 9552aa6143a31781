"""``iterant solve``: problems in all the forms that it takes."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from exact_networks import DeadEnds, exact_prefix_sums
from small_networks import small_net

import iterant
from iterant import draw

FEN, BLACK = "6k1/5ppp/8/8/8/8/8/K2R4 w - - 0 1", "k2r4/8/8/8/8/8/5PPP/6K1 b"
NOTE = "castling and en passant not given, taken as absent"
FAST = ("--max-steps", "2")


@pytest.fixture
def exact_networks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Networks with exact weights, and one with random weights for chess."""

    chess: Any = small_net("chess", "dt-recall")
    nets = {"mazes": DeadEnds(), "prefix-sums": exact_prefix_sums(), "chess": chess.float()}
    monkeypatch.setattr("iterant.zoo.loading.load", lambda name, device, trust: nets[name])


def facts(output: str) -> dict[str, str]:
    """The lines below the picture by their names."""
    return {line[:12].strip(): line[12:] for line in output.splitlines()}


def column(output: str, name: str) -> list[str]:
    """The cells of the table below that head."""
    lines = output.splitlines()
    top = next(number for number, line in enumerate(lines) if line.startswith(" problem "))
    at = lines[top].index(name)
    return [line[at:].split()[0] for line in lines[top + 1 :] if line.startswith(" ")]


@pytest.mark.parametrize(
    ("words", "stopped_by", "iterations", "since"),
    [
        ((), "settled", 23, 6),
        (("--max-steps", "4"), "budget", 4, 4),
        (("--halt", "stable", "--patience", "2"), "stable answer", 8, 6),
    ],
)
@pytest.mark.usefixtures("exact_networks")
def test_bits(
    words: tuple[str, ...], stopped_by: str, iterations: int, since: int, command: Any
) -> None:
    code, output, errors = command("solve", "prefix-sums", "1011001", *words, "--save", "a.json")
    assert (code, errors) == (0, "")
    settled, lines = stopped_by == "settled", facts(output)
    assert (lines["iterations"], lines["unchanged"]) == (str(iterations), f"since {since}")
    assert lines["settled"] == ("yes" if settled else "no")
    assert lines["right"] == ("no" if stopped_by == "budget" else "yes")
    assert ("--max-steps 16" in output) == (stopped_by == "budget")
    (solution,) = json.loads(Path("a.json").read_text())["solutions"]
    assert (solution["stopped_by"], solution["answer"]) == (stopped_by, lines["answer"])


@pytest.mark.usefixtures("exact_networks")
def test_standard_input(command: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for content, code in ((b"111\n", 0), (b"", 2)):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        ended, output, errors = command("solve", "prefix-sums", "-")
        assert ended == code
        assert "is empty; give" in errors if code else facts(output)["answer"].startswith("101")


@pytest.mark.usefixtures("exact_networks")
def test_a_generated_maze_and_its_animation(command: Any) -> None:
    maze = iterant.task("mazes").sample(1, size=7, seed=3)
    code, output, errors = command("solve", "mazes", "--size", 7, "--seed", 3, "--save", "m.gif")
    assert (code, errors) == (0, "")
    assert iterant.task("mazes").describe(maze).text in output
    cells = int(maze.extras["path_length"][0]) + 1
    assert facts(output)["answer"].startswith(f"{cells} ")
    assert Path("m.gif").read_bytes().startswith(b"GIF8")


@pytest.mark.usefixtures("exact_networks")
def test_a_maze_in_a_picture(tmp_path: Path, command: Any) -> None:
    task = iterant.task("mazes")
    batch = task.sample(1, size=9, seed=4)
    picture = draw.save_png(task.describe(batch), tmp_path / "photo.png")
    code, output, _ = command("solve", "mazes", str(picture), "--save", str(tmp_path / "m.png"))
    assert code == 0
    assert output.startswith("photo.png: 9 by 9 ")
    assert task.describe(batch).text in output
    assert facts(output)["right"] == "yes"
    assert (tmp_path / "m.png").exists()


@pytest.mark.parametrize(("halt", "advised"), [("rest", True), ("stable", True), ("plain", False),
                                               ("max-confidence", False)])  # fmt: skip
def test_a_larger_budget_is_advised_where_it_may_help(
    command: Any, halt: str, advised: bool
) -> None:
    code, output, _ = command("solve", "prefix-sums", "0110", "--halt", halt, "--max-steps", "2")
    assert code == 0
    assert facts(output)["settled"] == "no"
    assert ("1 not settled within 2 iterations; try --max-steps 8" in output) == advised


@pytest.mark.usefixtures("exact_networks")
def test_a_maze_without_a_solution(command: Any) -> None:
    code, output, _ = command("solve", "mazes", "S.#\n###\n#.G")
    assert code == 0
    assert facts(output)["answer"].startswith("none: ")
    assert "*" not in output
    _, output, _ = command("solve", "mazes", "S.#\n###\n#.G", "S.G")
    assert column(output, "answer")[0] == "none:"
    assert "2 problems, 1 settled, 1 without a solution" in output


def test_what_a_network_was_not_made_for_is_said_before(command: Any) -> None:
    loop = "S..\n.#.\n..E"
    _, _, warned = command("solve", "mazes", loop, "--net", "mazes-messages")
    assert "mazes-messages may be wrong" in warned
    assert "loops or open rooms" in warned
    iterant.train("mazes", count=200, epochs=1, restart_below=0, out="m0", reporter=False)
    _, _, warned = command("solve", "mazes", loop, "--net", "m0")
    assert "m0 may be wrong" in warned
    _, output, warned = command("solve", "mazes", loop)
    assert "may be wrong" not in warned
    assert facts(output)["right"] == "yes"


@pytest.mark.usefixtures("exact_networks")
def test_many_problems_and_a_line_that_cannot_be_read(tmp_path: Path, command: Any) -> None:
    (tmp_path / "bits.txt").write_text("\ufeff101\r\n2\r\n0000\r\n", newline="")
    code, output, errors = command("solve", "prefix-sums", "bits.txt", "11", "--save", "a.json")
    assert code == 2
    assert column(output, "answer") == ["110", "0000", "10"]
    assert "3 problems, 3 settled, 3 right of 3" in output
    assert "left out bits.txt line 2: bits are written 0 and 1, got '2'" in errors
    assert "1 of 4 problems could not be read" in errors
    assert len(json.loads((tmp_path / "a.json").read_text())["solutions"]) == 3


@pytest.mark.usefixtures("exact_networks")
def test_legal_moves(command: Any) -> None:
    pytest.importorskip("chess")
    code, output, _ = command("solve", "chess", FEN, "--legal", "--max-steps", "4")
    assert code == 0
    assert facts(output)["allowed"].endswith(" (right: ?)")
    assert facts(output)["right"] == "?"
    _, plain, _ = command("solve", "chess", FEN, "--max-steps", "4")
    assert facts(plain)["answer"] == facts(output)["answer"]
    _, output, _ = command("solve", "chess", "--count", "12", "--seed", "3", "--legal", *FAST)
    verdicts = column(output, "rules")
    assert len(verdicts) == 12
    assert f"{verdicts.count('yes')} of 12 answers keep the rules" in output
    assert NOTE in output, "a note that arises while solving"


@pytest.mark.usefixtures("exact_networks")
def test_without_python_chess(command: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "chess", None)
    code, output, _ = command("solve", "chess", "--count", "3", "--seed", "4", *FAST)
    assert code == 0
    assert column(output, "rules") == ["?", "?", "no"], "an answer that is no move is illegal"
    assert output.count("pip install 'iterant[chess]'") == 1
    code, _, errors = command("solve", "chess", FEN, "--legal")
    assert code == 2
    assert "pip install 'iterant[chess]'" in errors


@pytest.mark.usefixtures("exact_networks")
def test_games_in_any_file(command: Any) -> None:
    pytest.importorskip("chess")
    Path("games.txt").write_text(f'[FEN "{FEN}"]\n[SetUp "1"]\n\n1. Rd8# 1-0\n\n1. e4 e5 *\n')
    code, output, _ = command("solve", "chess", "games.txt", "--pgn", *FAST, "--save", "g.json")
    assert code == 0
    assert "games.txt game 1: the answer is the move of the game, Rd8#" in output
    first, second = json.loads(Path("g.json").read_text())["solutions"]
    assert [row.count("1") for row in first["truth"]] == [1, 0, 0, 0, 0, 0, 0, 1]
    assert second["truth"] is None


@pytest.mark.usefixtures("exact_networks")
def test_notes_are_printed_once(command: Any) -> None:
    Path("p.fen").write_text("\n".join([FEN, *[BLACK] * 5]))
    _, output, _ = command("solve", "chess", "p.fen", *FAST)
    assert output.startswith(f"5 of 6 problems: {NOTE}\n")
    assert output.count(NOTE) == 1
    Path("p.fen").write_text(f"{FEN}\n{BLACK}")
    assert command("solve", "chess", "p.fen", *FAST)[1].startswith(f"p.fen line 2: {NOTE}\n")
