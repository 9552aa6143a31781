"""``iterant solve``: one problem, in all the forms that it takes."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from dead_ends import DeadEnds
from exact import exact_prefix_sums
from PIL import Image
from thinkers import small_net

import iterant
from iterant import draw, registry
from iterant.tasks.protocol import Task
from iterant.zoo import shipped

FEN = "6k1/5ppp/8/8/8/8/8/K2R4 w - - 0 1"


@pytest.fixture(autouse=True)
def networks_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """Networks that are right by construction, and one with random weights for chess."""

    def made(task: Task, word: str | None, device: str) -> Any:
        chess: Any = small_net("chess", "dt-recall")
        nets = {"mazes": DeadEnds(), "prefix-sums": exact_prefix_sums(), "chess": chess.float()}
        return nets[task.spec.name]

    monkeypatch.setattr("iterant.cli.solve.network", made)


def facts(output: str) -> dict[str, str]:
    """The lines below the picture by their first words."""
    pairs = [line.partition(" ") for line in output.splitlines()]
    return {name: words.strip() for name, _, words in pairs}


def test_text(command: Any) -> None:
    code, output, errors = command("solve", "prefix-sums", "1011001")
    assert (code, errors) == (0, "")
    said = facts(output)
    assert said["answer"] == "1101110"
    assert said["settled"] == "after 23 iterations; the answer is the same since iteration 6"
    assert said["right"] == "yes, it equals the true answer"
    assert " s, " in said["thinking"]
    assert "%" in said["sure"]


def test_an_answer_that_still_changes(
    command: Any,
) -> None:
    _, output, _ = command("solve", "prefix-sums", "1011001", "--max-steps", "4")
    assert facts(output)["stopped"] == (
        "after 4 iterations, all that were allowed, and not settled; the answer was still "
        "changing; allow more iterations with --max-steps 16"
    )


def test_a_stable_answer_is_not_settled(tmp_path: Path, command: Any) -> None:
    words = ("prefix-sums", "1011001", "--halt", "stable", "--patience", "2")
    code, output, _ = command("solve", *words, "--save", str(tmp_path / "a.json"))
    assert code == 0
    stopped = "after 8 iterations by the rule: stable answer; not known to be settled"
    assert facts(output)["stopped"].startswith(stopped)
    (saved,) = json.loads((tmp_path / "a.json").read_text())["solutions"]
    assert (saved["settled"], saved["stopped_by"]) == (False, "stable answer")


def test_an_answer_that_settled_between_two_frames(
    command: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("iterant.solving.film._MOST", 16)  # so that most looks are dropped
    _, output, _ = command("solve", "prefix-sums", "1" * 300, "--max-steps", "400")
    said = facts(output)["settled"]
    assert said == "after 316 iterations; the answer last changed in the last 32 iterations"


def test_standard_input(command: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"111\n")))
    code, output, _ = command("solve", "prefix-sums", "-")
    assert code == 0
    assert facts(output)["answer"] == "101"


def test_a_generated_maze_and_its_animation(tmp_path: Path, command: Any) -> None:
    target = tmp_path / "maze.gif"
    maze = iterant.task("mazes").sample(1, size=7, seed=3)
    words = ("mazes", "--size", "7", "--seed", "3", "--save", str(target))
    code, output, errors = command("solve", *words)
    assert (code, errors) == (0, "")
    assert iterant.task("mazes").describe(maze).text in output
    squares = int(maze.extras["path_length"][0]) + 1
    assert facts(output)["answer"] == f"{squares} squares: one way from start to end"
    with Image.open(target) as image:
        assert 3 < image.n_frames <= 48  # type: ignore[attr-defined]
    assert target.stat().st_size < 120_000


def test_a_maze_in_a_picture(tmp_path: Path, command: Any) -> None:
    task = iterant.task("mazes")
    batch = task.sample(1, size=9, seed=4)
    picture = draw.save_png(task.describe(batch), tmp_path / "photo.png")
    code, output, _ = command("solve", "mazes", str(picture), "--save", str(tmp_path / "m.png"))
    assert code == 0
    assert output.startswith("photo.png: 9 by 9 squares of 50 pixels, start at row")
    assert task.describe(batch).text in output
    assert facts(output)["right"].startswith("yes")
    assert (tmp_path / "m.png").exists()


def test_a_maze_without_a_solution(command: Any) -> None:
    code, output, _ = command("solve", "mazes", "S.#\n###\n#.G")
    assert code == 0
    assert facts(output)["answer"] == "none: no way leads from start to end"
    assert "*" not in output
    assert "thinking" not in facts(output)


def test_several_problems_are_numbered(command: Any) -> None:
    code, output, _ = command("solve", "prefix-sums", "101", "0000")
    assert code == 0
    rows = [line.split()[:3] for line in output.splitlines() if line.startswith(" problem ")]
    assert rows[-2:] == [["problem", "1", "110"], ["problem", "2", "0000"]]


def test_a_file_with_a_line_that_cannot_be_read(tmp_path: Path, command: Any) -> None:
    (tmp_path / "bits.txt").write_text("101\n2\n0000\n")
    target = tmp_path / "answers.json"
    code, output, errors = command(
        "solve", "prefix-sums", str(tmp_path / "bits.txt"), "--save", str(target)
    )
    assert code == 2
    assert "2 problems, 2 settled, 2 right of 2" in output
    assert "left out bits.txt line 2: bits are written 0 and 1, got '2'" in errors
    assert "1 of 3 problems could not be read" in errors
    told = json.loads(target.read_text())
    assert (told["format"], told["version"], told["task"]) == (
        "iterant-solutions",
        1,
        "prefix-sums",
    )
    assert [solution["answer"] for solution in told["solutions"]] == ["110", "0000"]


def test_legal(command: Any) -> None:
    pytest.importorskip("chess")
    code, output, _ = command("solve", "chess", FEN, "--legal", "--max-steps", "4")
    assert code == 0
    said = facts(output)
    assert said["allowed"].endswith("the best that the rules allow")
    assert said["plain"].endswith("whatever the rules")
    assert said["right"].startswith("not known")
    assert said["changes"].startswith("1: ")
    _, plain, _ = command("solve", "chess", FEN, "--max-steps", "4")
    assert facts(plain)["answer"] in said["plain"]


def test_legal_without_python_chess(command: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "chess", None)
    _, output, _ = command("solve", "chess", "--count", "8", "--max-steps", "2", "--save", "x.json")
    code, _, errors = command("solve", "chess", FEN, "--legal")
    assert code == 2
    assert "pip install 'iterant[chess]'" in errors
    assert output


GAMES = f"""[Event "a puzzle"]
[FEN "{FEN}"]
[SetUp "1"]

1. Rd8# 1-0

[Event "a game"]

1. e4 e5 2. Qh5 Nc6 3. Bc4 Nf6 4. Qxf7# 1-0

[Event "one that breaks off"]

1. e4 e5 *
"""


def test_games(tmp_path: Path, command: Any) -> None:
    pytest.importorskip("chess")
    (tmp_path / "games.txt").write_text(GAMES)
    words = ("chess", "games.txt", "--pgn", "--max-steps", "2", "--save", "g.json")
    code, output, _ = command("solve", *words)
    assert code == 0
    assert "games.txt game 1: the answer is the move of the game, Rd8#" in output
    assert "games.txt game 2: the answer is the move of the game, Qxf7#" in output
    told = json.loads((tmp_path / "g.json").read_text())["solutions"]
    marked = [[row.count("1") for row in one["truth"]] for one in told[:2]]
    assert marked == [[1, 0, 0, 0, 0, 0, 0, 1], [0, 1, 0, 1, 0, 0, 0, 0]]
    assert told[2]["truth"] is None


def test_empty_standard_input(command: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
    code, _, errors = command("solve", "mazes", "-")
    assert code == 2
    assert errors == "iterant: error: standard input is empty; give a problem\n"


def test_tasks_without_a_shipped_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    monkeypatch.setattr("iterant.zoo.loading.shipped", lambda: ())
    from iterant.cli.solve import network
    from iterant.errors import UsageError

    with pytest.raises(UsageError, match="no network for mazes ships"):
        network(registry.task("mazes"), None, "cpu")
    assert isinstance(shipped(), tuple)
