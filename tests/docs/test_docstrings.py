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
FUNCTIONS = ["analyze", "evaluate", "last", "load", "solve", "task", "think", "train"]
TRUE = [
    "iterant",
    "iterant.draw.figure",
    "iterant.engine",
    "iterant.evaluation.evaluator",
    "iterant.halting",
    "iterant.nets.factory",
    "iterant.nets.protocol",
    "iterant.nets.readout",
    "iterant.solving.solver",
    "iterant.zoo.cards",
    "iterant.tasks.user",
    "iterant.tasks.prefix_sums",
    "iterant.tasks.protocol",
    "iterant.registry",
    "iterant.training.recipe",
]
"""Modules whose own examples are run; those of others show a use in a program of the reader's."""


def examples(name: str) -> list[doctest.DocTest]:
    """Every docstring of a module that holds an example."""
    try:
        module = importlib.import_module(name)
    except (MissingExtra, ModuleNotFoundError) as error:
        pytest.skip(str(error))
    return [found for found in doctest.DocTestFinder().find(module, name) if found.examples]


class Claims(doctest.OutputChecker):
    """An example that shows no output claims none: what it prints is the reader's to look at."""

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        return not want or super().check_output(want, got, optionflags)


def run(example: doctest.DocTest, space: dict[str, Any]) -> None:
    """Run one docstring's examples, in order."""
    example.globs = {**space, **example.globs}
    told: list[str] = []
    checker = doctest.DocTestRunner(
        checker=Claims(), verbose=False, optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    )
    # A reader's loader may draw from the global generator.
    with torch.random.fork_rng(devices=[]):
        checker.run(example, out=told.append)
    assert checker.summarize(verbose=False).failed == 0, "".join(told)


@pytest.fixture
def space(tmp_path: Path) -> Iterator[dict[str, Any]]:
    """What examples take for granted: a network, its task, a problem, a folder to write in."""
    task, net = iterant.task("mazes"), iterant.load("mazes")
    batch = task.sample(2, size=9, seed=1)
    with contextlib.chdir(tmp_path):
        yield {
            "iterant": iterant,
            "np": np,
            "torch": torch,
            "net": net,
            "last": iterant.last,
            "think": iterant.think,
            "axes": Figure().subplots(1, 2),
            "curve": iterant.evaluate(net, task, count=5, max_steps=60),
            "StableAnswer": StableAnswer,
            "task": task,
            "batch": batch,
            "x": batch.inputs,
            "inputs": batch.inputs,
            "logits": iterant.last(iterant.think(net, batch.inputs, steps=1)).logits,
        }


@pytest.mark.parametrize("name", MODULES)
def test_every_example_is_python(name: str) -> None:
    for found in examples(name):
        for example in found.examples:
            compile(example.source, found.name, "single")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_people_call_first_shows_a_true_example(name: str, space: dict[str, Any]) -> None:
    function = getattr(iterant, name)
    module = importlib.import_module(function.__module__)
    found = doctest.DocTestFinder(recurse=False).find(
        function, name, module=module, globs=dict(vars(module))
    )
    assert found[0].examples, f"iterant.{name} shows no example"
    run(found[0], space)


@pytest.mark.parametrize("name", TRUE)
def test_the_examples_of_a_module_are_true(name: str, space: dict[str, Any]) -> None:
    found = examples(name)
    assert found
    for example in found:
        run(example, space)


def test_a_false_example_is_found(space: dict[str, Any]) -> None:
    wrong = doctest.DocTestParser().get_doctest(">>> 1 + 1\n3\n", {}, "wrong", None, None)
    with pytest.raises(AssertionError, match="Got"):
        run(wrong, space)
