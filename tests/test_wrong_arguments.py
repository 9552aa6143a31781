"""Wrong networks, tasks, rules and inputs give one-line errors at every entry point."""

from __future__ import annotations

import copy
import importlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from small_networks import small_net

import iterant
from iterant import registry
from iterant.analysis import Subject
from iterant.errors import NetError, RunError, UsageError
from iterant.evaluation import evaluate_batch
from iterant.halting import StableAnswer
from iterant.nets import DeepThinking, build
from iterant.solving import check_fits, solutions
from iterant.tasks.protocol import sample_problems

SUMS, MAZES = iterant.task("prefix-sums"), iterant.task("mazes")
ENTRIES: dict[str, Callable[[Any, Any], object]] = {
    "evaluate": lambda net, task: iterant.evaluate(net, task, count=2, max_steps=2),
    "evaluate_batch": lambda net, task: evaluate_batch(net, task, SUMS.sample(2), steps=2),
    "solutions": lambda net, task: list(solutions(net, task, sample_problems(SUMS))),
    "analyze": lambda net, task: iterant.analyze(Subject(net, task, "mine"), "zeros", count=2),
}


@pytest.mark.parametrize("entry", ENTRIES)
def test_every_entry_refuses_another_network_and_a_name(entry: str) -> None:
    for kind in ("dt-recall", "local-rule"):
        with pytest.raises(NetError, match=r"for images of 3 channels .* prefix-sums has strings"):
            ENTRIES[entry](small_net("mazes", kind), SUMS)
    with pytest.raises(NetError, match=r"got 'mazes'; load one with iterant\.load"):
        ENTRIES[entry]("mazes", SUMS)


def test_the_configuration_of_a_network_is_compared_with_the_task() -> None:
    three = small_net("prefix-sums", "dt-recall", classes=3)
    with pytest.raises(NetError, match=r"1 channel and 3 classes, and prefix-sums .* 2 classes"):
        check_fits(three, SUMS)
    silent: Any = small_net("mazes", "dt")
    for config in ({"dims": "two", "channels": 3}, {"width": 4}, None):
        silent.config = config
        check_fits(silent, SUMS)


def test_a_user_network_is_checked_by_its_build_arguments(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).resolve().parents[1] / "examples"))
    importlib.import_module("gated_network")
    registry.allow("gated_network:Gated")
    net = build("gated_network:Gated", {"dims": 1, "channels": 1})
    check_fits(net, SUMS)
    with pytest.raises(NetError, match="take a network that was trained on mazes"):
        check_fits(net, MAZES)
    with pytest.raises(NetError, match=r"reads inputs of shape \(N, 1, H\), got \(1, 3, 16, 16\)"):
        iterant.solve(net, MAZES.sample(1, size=5).inputs)


API: Any = iterant  # type checkers would refuse these calls too
NAME: Any = "mazes"
NET: Any = small_net("prefix-sums", "dt")
BATCH = SUMS.sample(2, size=8)
INPUTS = BATCH.inputs.double()
WRONG: dict[str, Callable[[], object]] = {
    "wanted a task, .*; give iterant": lambda: evaluate_batch(NET, NAME, BATCH, steps=2),
    "expected a task": lambda: API.train(type(MAZES), out="nowhere"),
    "data is for a task given by its name": lambda: API.train(SUMS, data="bits", out="nowhere"),
    "give its class: net=DeepThinking": lambda: API.train(MAZES, net=NET, out="nowhere"),
    "the rules of mazes do not restrict": lambda: next(
        solutions(API.load("mazes"), MAZES, sample_problems(MAZES), restrict=True)
    ),
    "got ReLU; .* the methods read": lambda: API.solve(torch.nn.ReLU(), INPUTS),
    "wanted a network, got <class": lambda: API.evaluate(type(NET), SUMS, count=2),
    r"got Batch; use batch\.inputs": lambda: API.solve(NET, BATCH),
    r"got \(1, 8\); one problem alone is inputs\[None\]": lambda: API.solve(NET, INPUTS[0]),
    "inputs must be finite, got nan": lambda: API.solve(NET, INPUTS * torch.nan),
    "'cuda:9' is not available; use device='cpu'": lambda: API.solve(NET, INPUTS, device="cuda:9"),
    "'cuda:8' is not available": lambda: API.evaluate(NET, SUMS, count=2, device="cuda:8"),
    "a whole number from 1 on, got 2.5": lambda: API.task("mazes").sample(2.5),
    "wanted one of .*mazes.*, or the folder of a run .* got None": lambda: API.load(None),
    "or the folder of a run or of weights, got 3": lambda: API.load(3),
    "recipe is a Recipe or one of .*quick, .* got 3": lambda: API.train(SUMS, recipe=3, out="x"),
    "reporter is a Reporter of .*, got 3": lambda: API.train(SUMS, reporter=3, out="nowhere"),
    "out is the path of a folder, got 3": lambda: API.train(SUMS, out=3),
    "a task is a name or an object, .* got 3": lambda: API.train(3, out="nowhere"),
    "resume is the path of a folder, got 3": lambda: API.train(resume=3),
    "called with logits and targets: too many positional arguments": lambda: API.train(
        SUMS, objective=lambda x: x.mean(), out="nowhere"
    ),
    "state is the state of a thought": lambda: API.think(NET, INPUTS, steps=1, state=3),
    "a prediction is a tensor, such as .* got 3": lambda: API.task("mazes").solved(3, BATCH),
    r"is on meta, the targets are on cpu; use prediction.to\('cpu'\)": lambda: API.task(
        "mazes"
    ).solved(BATCH.targets.to("meta"), BATCH),
    "has 2 problems, numbered from 0, asked for 5": lambda: SUMS.describe(BATCH, 5),
    "asked for 5": lambda: MAZES.describe(MAZES.sample(2), 5),
    "a network is not called: iterant.solve": lambda: NET(INPUTS),
    "unknown rule 'stabel'; did you mean 'stable'": lambda: API.solve(NET, INPUTS, rule="stabel"),
    r"StableAnswer\(30\), got 3": lambda: API.solve(NET, INPUTS, rule=3),
    r"StableAnswer\(30\), got <class": lambda: API.solve(NET, INPUTS, rule=StableAnswer),
}


@pytest.mark.parametrize("message", WRONG)
def test_other_wrong_arguments(message: str) -> None:
    with pytest.raises((NetError, UsageError), match=message):
        WRONG[message]()


WRONG_NAMES = {
    "learning_rate": "'lr'", "steps": "'epochs' or 'iterations'", "T": "'iterations'",
    "criterion": "'objective'", "n_epochs": "'epochs'", "time_limt": "'time_limit'",
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG_NAMES)
def test_other_names_of_arguments(tmp_path: Path, name: str) -> None:
    (tmp_path / "config.json").touch()  # the folder is not free, which is checked later
    message = f"train has no argument '{name}'; did you mean {WRONG_NAMES[name]}?"
    with pytest.raises(UsageError, match=re.escape(message)):
        API.train(SUMS, out=tmp_path, **{name: 1})


def test_arguments_are_checked_before_the_folder(tmp_path: Path) -> None:
    (tmp_path / "config.json").touch()
    with pytest.raises(UsageError, match="epochs must be a whole number"):
        API.train(SUMS, out=tmp_path, epochs="many")
    with pytest.raises(RunError, match="holds a run already"):
        API.train(SUMS, out=tmp_path)


def test_tasks_and_rules_by_name() -> None:
    named = iterant.evaluate(NET, "prefix-sums", size=8, count=2, max_steps=40, rule="stable")
    given = iterant.evaluate(NET, SUMS, size=8, count=2, max_steps=40, rule=StableAnswer())
    assert named.described() | {"seconds": 0} == given.described() | {"seconds": 0}
    answers = [iterant.solve(NET, INPUTS, rule=rule) for rule in ("stable", StableAnswer())]
    assert answers[0].stopped_by == answers[1].stopped_by == ("stable answer",) * 2


def test_half_precision_of_a_network_that_needs_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(DeepThinking, "exact_precision", True, raising=False)
    for dtype in (torch.bfloat16, torch.float16):
        net: Any = copy.deepcopy(NET).to(dtype)
        with pytest.raises(NetError, match=rf"would be wrong in {dtype}; use precision='fp32'"):
            iterant.solve(net, INPUTS.to(dtype))
        with pytest.raises(NetError, match=r"DeepThinking needs numbers that are exact"):
            iterant.evaluate(net, SUMS, count=2, max_steps=2)
    with pytest.raises(NetError, match=r"wrong in torch\.bfloat16"):
        iterant.train(SUMS, net="dt", precision="bf16", out=tmp_path / "run")
    assert iterant.evaluate(NET, SUMS, count=2, max_steps=2).count == 2


def test_numpy_integers_are_accepted() -> None:
    two: Any = np.int64(2)
    assert iterant.last(iterant.think(NET, INPUTS, steps=two)).step == 2
    assert iterant.solve(NET, INPUTS, max_steps=two).steps.tolist() == [2, 2]
    assert iterant.evaluate(NET, SUMS, count=two, max_steps=two).steps == (1, 2)
    assert iterant.analyze(Subject(NET, SUMS, "mine"), "clean", count=2, max_steps=two).of("clean")


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_the_answer_is_on_the_device_of_the_inputs() -> None:
    answer, here = (iterant.solve(NET, INPUTS, max_steps=3, device=x) for x in ("cuda", None))
    assert torch.equal(answer.prediction, here.prediction)
    assert answer.settled.device == NET.projection.weight.device == torch.device("cpu")
    curve = iterant.evaluate(NET, SUMS, count=2, max_steps=2, device="cuda")
    assert curve.steps == (1, 2)
