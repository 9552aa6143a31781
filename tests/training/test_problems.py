"""What is trained on: the task's own problems, in few bytes, mirrored only where that is fair."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

import iterant
from iterant.errors import RecipeError, TaskError
from iterant.tasks.protocol import Batch
from iterant.training.data import TrainingSet
from iterant.training.recipe import Recipe
from iterant.training.rng import StepRng

CPU = torch.device("cpu")


def made(task: str, **changes: Any) -> TrainingSet:
    return TrainingSet.of(iterant.task(task), Recipe(**{"batch": 10, "count": 60, **changes}), CPU)


def rows_of(inputs: Tensor, targets: Tensor) -> set[bytes]:
    return {
        i.float().numpy().tobytes() + t.numpy().tobytes()
        for i, t in zip(inputs, targets, strict=True)
    }


@pytest.mark.parametrize("task", ["prefix-sums", "mazes", "chess"])
def test_training_and_validation_share_out_the_tasks_own_problems(task: str) -> None:
    problems = made(task)
    whole: Batch = iterant.task(task).sample(60, seed=0)
    trained = rows_of(*problems.rows(torch.arange(48), StepRng(0, 0)))
    held = rows_of(problems.held_out.inputs, problems.held_out.targets)
    assert (len(problems), len(problems.held_out)) == (48, 12)
    assert trained | held == rows_of(whole.inputs, whole.targets)


def test_packed_problems_take_few_bytes() -> None:
    problems, sizes = made("chess", count=1000), []
    pending: list[object] = [problems.train]
    while pending:
        value = pending.pop()
        if isinstance(value, Tensor):
            sizes.append(value.untyped_storage().nbytes())
        else:
            pending += vars(value).values()
    assert sum(sizes) < 64 * 1000  # planes of floats would be 3,072 a position, before targets


def test_half_the_problems_are_mirrored_anew_at_every_update() -> None:
    task, problems = iterant.task("chess"), made("chess", mirror=True, count=400)
    plain, _ = made("chess", count=400).rows(torch.arange(320), StepRng(3, 7))
    inputs, targets = problems.rows(torch.arange(320), StepRng(3, 7))
    again, _ = problems.rows(torch.arange(320), StepRng(3, 7))
    later, _ = problems.rows(torch.arange(320), StepRng(3, 8))
    assert torch.equal(inputs, again)
    assert not torch.equal(inputs, later)
    same = (inputs == plain).flatten(1).all(1)
    turned = (inputs == plain.flip(-1)).flatten(1).all(1)
    assert bool((same | turned).all())
    assert 0.25 < turned.double().mean() < 0.55  # half of those that cannot castle
    assert task.solved(targets, Batch(inputs, targets)).all()


def test_a_task_without_mirror_images_says_so() -> None:
    with pytest.raises(RecipeError, match=r"prefix-sums has none.*leave it out"):
        made("prefix-sums", mirror=True)


def test_answers_that_no_score_stands_for_are_refused() -> None:
    """Of a task that checks nothing itself: a GPU would end the process without a word."""
    sums = iterant.task("prefix-sums")
    recipe = Recipe(batch=10, count=60)

    def beyond(*given: Any, **how: Any) -> Batch:
        return replace(sums.sample(*given, **how), targets=sums.sample(*given, **how).targets + 1)

    odd: Any = SimpleNamespace(spec=sums.spec, check_size=sums.check_size, sample=beyond)
    with pytest.raises(TaskError, match=r"class 1 to 2, and its spec says classes 0 to 1"):
        TrainingSet.of(odd, recipe, CPU)
    odd.spec = replace(sums.spec, classes=3)
    assert len(TrainingSet.of(odd, recipe, CPU)) == 48
    with pytest.raises(RecipeError, match=r"places asks where class 1 is, .* 3 classes"):
        TrainingSet.of(odd, recipe.changed(places=0.5), CPU)
