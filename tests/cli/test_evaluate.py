"""``iterant evaluate`` on networks with known curves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from exact_networks import exact_prefix_sums, first_right, poisoned
from matplotlib.image import imread
from small_networks import small_net

import iterant
from cli.files import feed_forward
from iterant.analysis import Subject
from iterant.io import read_result
from iterant.nets import Net
from iterant.progress import progress_estimates
from iterant.tasks.chess.task import SAMPLE, Chess
from iterant.tasks.prefix_sums import PrefixSums

TASK = PrefixSums()
SMALL = ("--size", "8", "--count", "20", "--max-steps", "12", "--device", "cpu")


@pytest.fixture
def exact_networks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Load these two networks by the names exact and poisoned, in an empty folder."""
    networks: dict[str, Net] = {"exact": exact_prefix_sums(), "poisoned": poisoned(2)}

    def subject(name: str, **_: Any) -> Subject:
        return Subject(networks[name], TASK, label=name, regime=6)

    monkeypatch.setattr("iterant.analysis.studies.subject_of", subject)
    monkeypatch.chdir(tmp_path)


def cells(output: str, title: str) -> list[str]:
    """The words of the table's row of that title."""
    rows = [line.split() for line in output.splitlines() if "%" in line]
    (row,) = (row for row in rows if row[:2] == title.split())
    return row


@pytest.mark.usefixtures("exact_networks")
def test_table_picture_and_result(command: Any) -> None:
    words = ("exact", "--size", "8", "12", "--count", "20", "--seed", "3", "--max-steps", "15")
    code, output, errors = command(
        "evaluate", *words, "--save", "c.png", "--json", "out/figures.json"
    )
    assert (code, errors) == (0, "")
    figures = read_result("out/figures.json")["figures"]
    assert figures["rule"] == "plain"
    for size, evaluation in zip((8, 12), figures["evaluations"], strict=True):
        steps_needed = first_right(TASK.sample(20, size=size, seed=3).targets)
        assert evaluation["size"] == size
        assert evaluation["solved"] == [int((steps_needed <= step).sum()) for step in range(1, 16)]
        row = cells(output, f"size {size}")
        assert row[2:4] == ["100.0", "%"]
        assert int(row[4]) == int(steps_needed.max()) == evaluation["peak"]["step"]
        assert "iterations:" not in output, "all problems have the same"
        low, high = evaluation["end"]["interval"]
        assert f"{100 * low:.1f} – {100 * high:.1f}" in output
    assert imread("c.png").ndim == 3
    assert "drawn in c.png" in output
    assert "written to out/figures.json" in output


@pytest.mark.usefixtures("exact_networks")
def test_a_budget_that_is_too_small_is_named(command: Any) -> None:
    words = ("evaluate", "exact", "--size", "64", "--count", "20", "--device", "cpu")
    assert (
        "still changing at the last iteration; try --max-steps 20"
        in (command(*words, "--max-steps", "5")[1])
    )
    assert "still changing" not in command(*words, "--max-steps", "80")[1]


def test_pipes_get_lines_with_the_time_to_go(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = [100.0]
    monkeypatch.setattr("iterant.progress.monotonic", lambda: clock[0])
    show = progress_estimates()
    clock[0] += 30  # preparations, which say nothing about the time to go
    for done in range(1, 13):
        show(done, 60, f"size {done}")
        clock[0] += 1
    assert capsys.readouterr().err.splitlines() == [
        "size 1: 2 % done",
        "size 6: 10 % done, about 54 s to go",
        "size 11: 18 % done, about 49 s to go",
    ]


@pytest.mark.usefixtures("exact_networks")
def test_tradeoffs_and_halting_rules(command: Any) -> None:
    words = ("exact", "--size", "8", "--count", "20", "--max-steps", "30")
    code, output, _ = command("evaluate", *words, "--trade", "--json", "trade.json")
    assert code == 0
    (evaluation,) = read_result("trade.json")["figures"]["evaluations"]
    assert all(one["rule"] in output for one in evaluation["trade"])
    _, output, _ = command("evaluate", *words, "--rule", "settled")
    assert "iterations: mean of a problem" in output
    assert cells(output, "size 8")[-5] == "24.0", "8 iterations, and 16 at rest"


@pytest.mark.usefixtures("exact_networks")
def test_networks_that_diverge(command: Any) -> None:
    code, output, _ = command("evaluate", "exact", "poisoned", *SMALL)
    bad = int((TASK.sample(20, size=8, seed=1).targets[:, 0] == 1).sum())
    assert code == 0
    assert f"poisoned, size 8: features of {bad} of 20 problems became NaN" in output
    assert "exact, size 8: features" not in output
    assert list(Path.cwd().iterdir()) == [], "nothing is written without --save and --json"


def test_weights_are_evaluated_as_in_python(tmp_path: Path, command: Any) -> None:
    folder = feed_forward(tmp_path / "ff")
    where = str(tmp_path / "f.json")
    small = ("--size", "6", "--count", "9", "--device", "cpu", "--portion", "4")
    words = (folder, *small, "--json", where)
    code, output, errors = command("evaluate", *words)
    assert (code, errors) == (0, "")
    (evaluation,) = read_result(where)["figures"]["evaluations"]
    curve = iterant.evaluate(iterant.load(folder), TASK, size=6, count=9, seed=1)
    assert evaluation["solved"] == curve.solved.tolist()
    assert len(evaluation["solved"]) == 5, "the depth of the network"
    assert "size 6" in output
    assert command("evaluate", *words, "--precision", "bf16")[0] == 0


def test_results_name_the_set_of_problems(
    command: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    net: Any = small_net("chess", "dt-recall")
    subjects = {"chess": Subject(net.float(), Chess(SAMPLE), label="chess", regime=6),
            "sums": Subject(exact_prefix_sums(), TASK, label="sums", regime=6)}  # fmt: skip
    monkeypatch.setattr("iterant.analysis.studies.subject_of", lambda run, **_: subjects[run])
    monkeypatch.chdir(tmp_path)
    few = ("--count", "3", "--max-steps", "2", "--device", "cpu", "--json", "figures.json")
    _, output, _ = command("evaluate", "chess", "--size", "0:9", "9:20", *few)
    source = "all 4,000 puzzles in the sample that comes with the package, fewer than 1,500,000"
    assert output.count(f"Chess puzzles: {source}\n") == 1
    evaluations = read_result("figures.json")["figures"]["evaluations"]
    assert [one["set"] for one in evaluations] == [source, source]
    command("evaluate", "sums", "--size", "8", *few)
    assert "set" not in read_result("figures.json")["figures"]["evaluations"][0], (
        "generated problems have no source"
    )


def test_commands_take_kinds(command: Any) -> None:
    words = ("sample", "mazes", "--size", "9", "--seed", "1")
    assert command(*words, "--problems", "p=0.5")[1].count("#") < command(*words)[1].count("#")
    line = "mazes-messages --size 9 --count 50 --max-steps 150 --problems p=0.5 --json loops.json"
    assert command("evaluate", *line.split())[0] == 0
    (figures,) = read_result("loops.json")["figures"]["evaluations"]
    assert figures["end"]["accuracy"] < 0.5, "it marks whole loops"
    assert figures["any right answer at the end"] < 25
    code, _, errors = command("solve", "prefix-sums", "--problems", "start=any")
    assert (code, "prefix-sums has one kind" in errors) == (2, True)
