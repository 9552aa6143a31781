"""Wrong networks, tasks, rules and inputs give one-line errors at every entry point."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from thinkers import small_net

import iterant
from iterant.analysis import Subject
from iterant.cli.main import run as run_command
from iterant.errors import NetError, UsageError
from iterant.evaluation import evaluate_batch, evaluate_long, tradeoff
from iterant.nets import Net, build
from iterant.solving import check_fits, solutions
from iterant.tasks.inputs import generated
from iterant.tasks.protocol import Task

SUMS, MAZES = iterant.task("prefix-sums"), iterant.task("mazes")
ENTRIES: dict[str, Callable[[Net, Task], object]] = {
    "evaluate": lambda net, task: iterant.evaluate(net, task, count=2, max_steps=2),
    "evaluate_batch": lambda net, task: evaluate_batch(net, task, task.sample(2), steps=2),
    "tradeoff": lambda net, task: tradeoff(net, task, task.sample(2), steps=2),
    "evaluate_long": lambda net, task: evaluate_long(net, task, task.sample(2), steps=2),
    "solutions": lambda net, task: list(solutions(net, task, generated(task).problems)),
    "analyze": lambda net, task: iterant.analyze(Subject(net, task, "mine"), "zeros", count=2),
}


@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize("kind", ["dt-recall", "local-rule"])
def test_every_entry_refuses_a_network_for_other_inputs(entry: str, kind: str) -> None:
    with pytest.raises(NetError, match=r"is for images of 3 channels .* prefix-sums has strings"):
        ENTRIES[entry](small_net("mazes", kind), SUMS)


def test_classes_are_compared_and_named_where_they_differ() -> None:
    net: Any = small_net("prefix-sums", "dt-recall")
    check_fits(net, SUMS)
    three: Any = small_net("prefix-sums", "dt-recall", classes=3)
    with pytest.raises(
        NetError, match=r"1 channel and 3 classes, and prefix-sums has .* 2 classes"
    ):
        check_fits(three, SUMS)


def test_a_network_without_a_configuration_is_accepted() -> None:
    silent: Any = small_net("mazes", "dt")
    for said in ({"dims": "two", "channels": 3}, {"width": 4}, None):
        silent.config = said
        check_fits(silent, SUMS)


def test_a_user_network_is_checked_by_its_build_arguments(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    examples = Path(__file__).resolve().parents[2] / "examples"
    monkeypatch.syspath_prepend(str(examples))
    importlib.import_module("gated_network")
    net = build("gated_network:Gated", {"dims": 1, "channels": 1})
    check_fits(net, SUMS)
    with pytest.raises(NetError, match="take a network that was trained on mazes"):
        check_fits(net, MAZES)
    with pytest.raises(NetError, match=r"reads inputs of shape \(N, 1, H\), got \(1, 3, 16, 16\)"):
        iterant.solve(net, MAZES.sample(1, size=5).inputs)


@pytest.mark.parametrize(
    "words",
    [
        ["evaluate", "mazes", "--task", "prefix-sums", "--count", "2", "--max-steps", "2"],
        ["solve", "prefix-sums", "0110", "--net", "mazes"],
    ],
    ids=" ".join,
)
def test_commands_print_one_line(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        run_command(words)
    said = capsys.readouterr().err
    assert ended.value.code == 2
    assert said.count("\n") == 1
    assert said.startswith("iterant: error: this network is for images")
    assert "take a network that was trained on prefix-sums" in said


@pytest.mark.parametrize("entry", ENTRIES)
def test_a_name_instead_of_a_network(entry: str) -> None:
    word: Any = "mazes"
    with pytest.raises(NetError, match=r"got 'mazes'; load one with iterant\.load"):
        ENTRIES[entry](word, MAZES)


def test_a_name_or_a_class_instead_of_a_task() -> None:
    net = small_net("mazes", "dt")
    wrong: Any
    for wrong in ("mazes", type(MAZES)):
        with pytest.raises(UsageError, match=r"wanted a task, .*; give iterant\.task"):
            iterant.evaluate(net, wrong, count=2)
    with pytest.raises(UsageError, match="wanted a task"):
        iterant.train(wrong, out="nowhere")
    built: Any = net
    with pytest.raises(UsageError, match="give its class: net=DeepThinking"):
        iterant.train(MAZES, net=built, out="nowhere")


def test_a_module_without_the_methods() -> None:
    wrong: Any = torch.nn.ReLU()
    with pytest.raises(NetError, match=r"got ReLU; .* the methods read, start, step, answer"):
        iterant.solve(wrong, torch.ones(1, 1, 4))


@pytest.mark.parametrize("think", [iterant.solve, lambda net, given: list(iterant.think(
    net, given, steps=1))], ids=["solve", "think"])  # fmt: skip
def test_a_batch_or_one_problem_instead_of_inputs(think: Callable[..., Any]) -> None:
    net = small_net("prefix-sums", "dt-recall")
    batch = SUMS.sample(2, size=8)
    with pytest.raises(NetError, match=r"got Batch; use batch\.inputs"):
        think(net, batch)
    with pytest.raises(NetError, match=r"got \(1, 8\); one problem alone is inputs\[None\]"):
        think(net, batch.inputs[0].double())


def test_a_class_instead_of_a_network_and_a_name_instead_of_a_rule() -> None:
    net: Any = small_net("prefix-sums", "dt")
    made: Any = type(net)
    with pytest.raises(NetError, match=r"wanted a network, got <class"):
        iterant.evaluate(made, SUMS, count=2, max_steps=2)
    word: Any = "stable"
    for think in (
        lambda: iterant.solve(net, SUMS.sample(2).inputs.double(), rule=word),
        lambda: iterant.evaluate(net, SUMS, count=2, max_steps=2, rule=word),
    ):
        with pytest.raises(UsageError, match=r"such as halting.StableAnswer\(30\), got 'stable'"):
            think()


def test_numpy_integers_are_accepted() -> None:
    net, inputs = small_net("prefix-sums", "dt"), SUMS.sample(2).inputs.double()
    two: Any = np.int64(2)
    assert iterant.last(iterant.think(net, inputs, steps=two)).step == 2
    assert iterant.solve(net, inputs, max_steps=two).steps.tolist() == [2, 2]
    assert iterant.evaluate(net, SUMS, count=two, max_steps=two).steps == (1, 2)
    assert iterant.analyze(Subject(net, SUMS, "mine"), "clean", count=2, max_steps=two).of("clean")
