"""The training set: split, packing, mirror images, checks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

import iterant
from iterant.errors import RecipeError, TaskError
from iterant.rng import StepRng
from iterant.tasks.protocol import Batch
from iterant.training.data import TrainingSet
from iterant.training.recipe import Recipe
from iterant.training.run import train

CPU = torch.device("cpu")


def training_set(task: str, **changes: Any) -> TrainingSet:
    recipe = Recipe(**{"batch_size": 10, "count": 60, **changes})
    return TrainingSet.of(iterant.task(task), recipe, CPU)


def rows_of(inputs: Tensor, targets: Tensor) -> set[bytes]:
    return {
        i.float().numpy().tobytes() + t.numpy().tobytes()
        for i, t in zip(inputs, targets, strict=True)
    }


@pytest.mark.parametrize("task", ["prefix-sums", "mazes", "chess"])
def test_training_and_validation_split_the_problems(task: str) -> None:
    problems = training_set(task)
    whole = iterant.task(task).sample(60, seed=0)
    trained = rows_of(*problems.rows(torch.arange(48), StepRng(0, 0)))
    validation = rows_of(problems.held_out.inputs, problems.held_out.targets)
    assert (len(problems), len(problems.held_out)) == (48, 12)
    assert trained | validation == rows_of(whole.inputs, whole.targets)


def test_a_range_of_stored_problems_has_no_more_than_its_own() -> None:
    problems = training_set("chess", size=(100, 150), count=None)
    assert (len(problems), len(problems.held_out)) == (40, 10)


def test_half_of_the_problems_are_mirrored_at_every_step() -> None:
    task, problems = iterant.task("chess"), training_set("chess", mirror=True, count=400)
    plain, _ = training_set("chess", count=400).rows(torch.arange(320), StepRng(3, 7))
    inputs, targets = problems.rows(torch.arange(320), StepRng(3, 7))
    again, _ = problems.rows(torch.arange(320), StepRng(3, 7))
    later, _ = problems.rows(torch.arange(320), StepRng(3, 8))
    assert torch.equal(inputs, again)
    assert not torch.equal(inputs, later)
    same = (inputs == plain).flatten(1).all(1)
    mirrored = (inputs == plain.flip(-1)).flatten(1).all(1)
    assert bool((same | mirrored).all())
    assert 0.25 < mirrored.double().mean() < 0.55  # half of those that cannot castle
    assert task.solved(targets, Batch(inputs, targets)).all()


def test_a_recipe_names_the_kind_of_problems(tmp_path: Path) -> None:
    with pytest.raises(TaskError, match="prefix-sums has one kind"):
        train("prefix-sums", problems="start=any", out=tmp_path / "run")
    small: dict[str, Any] = {"width": 4, "size": 5, "count": 40, "batch_size": 8, "epochs": 1}
    small |= {"iterations": 2, "recipe": "paper"}
    first, other = (
        train("mazes", **small, problems=kind, out=tmp_path / f"{kind}-").load("last")[0]
        for kind in ("", "start=any")
    )
    assert not all(torch.equal(first[name], other[name]) for name in first)


def test_what_a_task_does_not_fit_is_refused() -> None:
    """On a GPU a target outside the classes would end the process without a location."""
    sums = iterant.task("prefix-sums")
    recipe = Recipe(batch_size=10, count=60)

    def beyond(*given: Any, **how: Any) -> Batch:
        return replace(sums.sample(*given, **how), targets=sums.sample(*given, **how).targets + 1)

    unchecked: Any = SimpleNamespace(spec=sums.spec, check_size=sums.check_size, sample=beyond)
    with pytest.raises(TaskError, match=r"class 1 to 2, and its spec says classes 0 to 1"):
        TrainingSet.of(unchecked, recipe, CPU)
    unchecked.spec = replace(sums.spec, classes=3)
    assert len(TrainingSet.of(unchecked, recipe, CPU)) == 48
    for changes, message in (
        ({"position_loss": 0.5}, r"position_loss asks where class 1 is, .* 3 classes"),
        ({"mirror": True}, r"prefix-sums has none.*leave it out"),
    ):
        with pytest.raises(RecipeError, match=message):
            TrainingSet.of(unchecked, recipe.changed(**changes), CPU)
