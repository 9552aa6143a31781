"""Examples in docstrings: all are Python, and those of what people call first are true."""

from __future__ import annotations

import contextlib
import doctest
import importlib
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from matplotlib.figure import Figure

import iterant
from iterant.errors import MissingExtra
from iterant.halting import StableAnswer

MODULES = [
    module.name
    for module in pkgutil.walk_packages(iterant.__path__, "iterant.")
    if not module.name.endswith("__main__")
]
TRUE = ["draw.figure", "engine", "evaluation", "halting", "nets.deep_thinking",
        "nets.protocol", "registry", "solving", "tasks.prefix_sums",
        "tasks.protocol", "tasks.user", "training.recipe"]  # fmt: skip
"""Modules whose examples are run; those of others show a use in a program of the reader's."""


def examples(name: str) -> list[doctest.DocTest]:
    """Every docstring of a module that holds an example."""
    try:
        module = importlib.import_module(name)
    except (MissingExtra, ModuleNotFoundError) as error:
        pytest.skip(str(error))
    return [test for test in doctest.DocTestFinder().find(module, name) if test.examples]


class Claims(doctest.OutputChecker):
    """An example that shows no output may print anything."""

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        return not want or super().check_output(want, got, optionflags)


def run(example: doctest.DocTest, space: dict[str, Any]) -> None:
    example.globs = {**space, **example.globs}
    output: list[str] = []
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    runner = doctest.DocTestRunner(checker=Claims(), verbose=False, optionflags=flags)
    with torch.random.fork_rng(devices=[]):  # a loader may draw from the global generator
        runner.run(example, out=output.append)
    assert runner.summarize(verbose=False).failed == 0, "".join(output)


@pytest.fixture
def space(tmp_path: Path) -> Iterator[dict[str, Any]]:
    """The names that examples take for granted, in a folder to write in."""
    task, net = iterant.task("mazes"), iterant.load("mazes")
    batch = task.sample(2, size=9, seed=1)
    with contextlib.chdir(tmp_path):
        yield {
            "iterant": iterant,
            "np": np,
            "torch": torch,
            "last": iterant.last,
            "think": iterant.think,
            "StableAnswer": StableAnswer,
            "net": net,
            "task": task,
            "batch": batch,
            "x": batch.inputs,
            "inputs": batch.inputs,
            "axes": Figure().subplots(1, 2),
            "curve": iterant.evaluate(net, task, count=5, max_steps=60),
            "logits": iterant.last(iterant.think(net, batch.inputs, steps=1)).logits,
        }


@pytest.mark.parametrize("name", MODULES)
def test_every_example_is_python(name: str) -> None:
    for test in examples(name):
        for example in test.examples:
            compile(example.source, test.name, "single")


@pytest.mark.parametrize(
    "name", ["analyze", "evaluate", "last", "load", "solve", "task", "think", "train"]
)
def test_public_functions_have_a_true_example(name: str, space: dict[str, Any]) -> None:
    function = getattr(iterant, name)
    module = importlib.import_module(function.__module__)
    finder = doctest.DocTestFinder(recurse=False)
    (test,) = finder.find(function, name, module=module, globs=dict(vars(module)))
    assert test.examples
    run(test, space)


@pytest.mark.parametrize("name", ["iterant", *(f"iterant.{name}" for name in TRUE)])
def test_the_examples_of_a_module_are_true(name: str, space: dict[str, Any]) -> None:
    tests = examples(name)
    assert tests
    for test in tests:
        run(test, space)
