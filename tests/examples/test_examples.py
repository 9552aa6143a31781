"""The worked examples: short, and they do what they say on small settings."""

from __future__ import annotations

import importlib
import runpy
from collections import deque
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import iterant
from iterant.analysis import Subject
from iterant.cli.main import run as run_command
from iterant.tasks import Task
from iterant.training.recipe import Recipe
from iterant.training.trainer import build_network

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
FILES = sorted(EXAMPLES.glob("*.py"))
TINY: dict[str, Any] = {"epochs": 1, "count": 60, "batch": 10, "iterations": 4, "pool_slots": 20,
                        "pool_shortest": 2, "pool_longest": None, "watch_every": 0}  # fmt: skip


@pytest.fixture(autouse=True)
def beside_the_examples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if Python were started in the folder of examples; runs go elsewhere."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_an_example_is_short(path: Path) -> None:
    assert len(path.read_text().splitlines()) < 40


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_an_example_runs(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    train, evaluate = iterant.train, iterant.evaluate
    monkeypatch.setattr(iterant, "train", lambda *g, **how: train(*g, **{**how, **TINY}))
    monkeypatch.setattr(
        iterant, "evaluate", lambda *g, **how: evaluate(*g, **{**how, "count": 3, "max_steps": 4})
    )
    solve, analyze = iterant.solve, iterant.analyze
    monkeypatch.setattr(iterant, "solve", lambda *g, **how: solve(*g, **{**how, "max_steps": 4}))
    monkeypatch.setattr(
        iterant, "analyze", lambda *g, **how: analyze(*g, **{**how, "count": 2, "max_steps": 8})
    )
    runpy.run_path(str(path), run_name="__main__")
    assert list(Path("runs").iterdir())


def wet_by_walking(ground: Any, spring: tuple[int, int]) -> Any:
    """The second way: one square after another, from a queue."""
    seen, waiting = {spring}, deque([spring])
    while waiting:
        row, column = waiting.popleft()
        for place in ((row + 1, column), (row - 1, column), (row, column + 1), (row, column - 1)):
            inside = all(0 <= at < len(ground) for at in place)
            if inside and ground[place] and place not in seen:
                seen.add(place)
                waiting.append(place)
    wet = np.zeros_like(ground, dtype=int)
    wet[tuple(np.array(sorted(seen)).T)] = 1
    return wet


def test_the_flood_is_what_walking_reaches() -> None:
    task: Task = importlib.import_module("flood_fill").FloodFill()
    batch = task.sample(20, size=12, seed=4)
    for inputs, wet in zip(batch.inputs.numpy(), batch.targets.numpy(), strict=True):
        (spring,) = map(tuple, np.argwhere(inputs[1] > 0))
        assert np.array_equal(wet, wet_by_walking(inputs[0] > 0, spring))
    assert 0.1 < batch.targets.float().mean() < 0.9


def test_a_network_of_ones_own_from_the_command_line() -> None:
    small = [f"--{name.replace('_', '-')}={value}" for name, value in TINY.items() if value]
    small.append("--watch-every=0")
    for words in (
        ["train", "prefix-sums", "--net", "gated_network:Gated", "--out", "runs/g", *small],
        ["evaluate", "runs/g", "--size", "20", "--count", "3", "--max-steps", "4"],
        ["analyze", "runs/g", "--what", "zeros", "--count", "2", "--max-steps", "4"],
    ):
        with pytest.raises(SystemExit) as ended:
            run_command(words)
        assert ended.value.code == 0, words


@pytest.mark.parametrize("task", ["flood_fill:FloodFill", "running_sum:RunningSum"])
def test_a_task_of_ones_own_from_the_command_line(task: str) -> None:
    small = [f"--{name.replace('_', '-')}={value}" for name, value in TINY.items() if value]
    words = ["train", task, "--net", "local-rule", "--out", "runs/f", *small]
    for command in (
        words,
        ["evaluate", "runs/f", "--size", "12", "--count", "3", "--max-steps", "4"],
        ["analyze", "runs/f", "--what", "zeros", "--size", "9", "--count", "2", "--max-steps", "4"],
        ["solve", task, "--size", "9", "--net", "runs/f", "--save", "thought.json"],
        ["solve", task, "--size", "9", "--net", "runs/f", "--save", "thought.gif"],
        ["sample", task, "--size", "9", "--save", "problem.png"],
    ):
        with pytest.raises(SystemExit) as ended:
            run_command(command)
        assert ended.value.code == 0, command


def test_three_classes_are_learned_on_short_strings_and_right_on_long_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    evaluate, found = iterant.evaluate, []

    def smaller(net: Any, task: Task, **how: Any) -> Any:
        found.append(evaluate(net, task, size=64, count=20, max_steps=100))
        return found[0]

    monkeypatch.setattr(iterant, "evaluate", smaller)
    runpy.run_path(str(EXAMPLES / "running_sum.py"), run_name="__main__")
    assert found[0].end >= 0.9
    net = iterant.load("runs/running-sum")
    task: Task = importlib.import_module("running_sum").RunningSum()
    batch = task.sample(5, size=40, seed=9)
    answer = iterant.solve(net, batch.inputs)
    assert set(answer.prediction.flatten().tolist()) == {0, 1, 2}


def test_task_and_network_of_ones_own_are_found_again() -> None:
    """From objects in Python, a run that needs nothing but its folder."""
    fill = importlib.import_module("flood_fill").FloodFill()
    gated = importlib.import_module("gated_network").Gated
    run = iterant.train(fill, net=gated, out="runs/both", **TINY)
    assert (run.config["task"], run.config["net"]["kind"]) == (
        "flood_fill:FloodFill",
        "gated_network:Gated",
    )
    report = iterant.analyze("runs/both", what="zeros", size=9, count=2, max_steps=4)
    assert report.table()[1][0] == "both"
    assert iterant.train(resume="runs/both").state == "finished"
    assert isinstance(iterant.load("runs/both"), gated)


@pytest.mark.parametrize("net", ["dt-recall", "ff", "local-rule", "gated_network:Gated"])
def test_networks_have_a_score_for_each_class_of_the_task(net: str) -> None:
    task: Task = importlib.import_module("running_sum").RunningSum()
    made, described = build_network(Recipe(net=net, iterations=2), task.spec, seed=0)
    assert described["config"]["classes"] == 3
    thought = iterant.last(iterant.think(made, task.sample(2).inputs, steps=1))
    assert thought.logits.shape == (2, 3, 10)


def test_a_network_that_was_never_trained_here_is_analysed() -> None:
    task = iterant.task("mazes")
    net, _ = build_network(Recipe(net="gated_network:Gated"), task.spec, seed=0)
    subject = Subject(net, task, label="mine")
    report = iterant.analyze(subject, what="zeros", size=5, count=2, max_steps=4)
    assert report.table()[1][0] == "mine"
