"""What a checkpoint gives back: the same learner, in numbers and in memory."""

from __future__ import annotations

import copy
from typing import Any

import torch

import iterant
from iterant.training.build import build_network
from iterant.training.recipe import Recipe
from iterant.training.rng import StepRng
from iterant.training.trainer import Trainer

SMALL: dict[str, Any] = {"width": 4, "head": (4,), "iterations": 3, "objective": "progressive"}


def learner_of(problem: str = "prefix-sums", **changes: Any) -> Trainer:
    chosen = Recipe(**{**SMALL, **changes})
    net, _ = build_network(chosen, iterant.task(problem).spec, seed=1)
    return Trainer(net, chosen, torch.device("cpu"))


def test_restored_is_the_same_learner() -> None:
    batch = iterant.task("prefix-sums").sample(10, size=6)
    changes: dict[str, Any] = {"objective": "pool", "batch": 10, "pool_slots": 12,
                               "pool_shortest": 1, "average": 0.9}  # fmt: skip
    first = learner_of(**changes)
    for number in range(3):
        first.update(batch.inputs[:3], batch.targets[:3], StepRng(0, number), 1.0)
    second = learner_of(**changes)
    second.restore(copy.deepcopy(first.tensors()), first.updates)
    for trainer in (first, second):
        for number in range(3, 6):
            trainer.update(batch.inputs[3:6], batch.targets[3:6], StepRng(0, number), 0.5)
    theirs = second.tensors()
    assert theirs.keys() == first.tensors().keys()
    for name, value in first.tensors().items():
        assert torch.equal(value, theirs[name]), name


def test_restored_moments_lie_in_memory_as_their_weights_do() -> None:
    """The GPU's fused optimiser refuses moments in another order than its weights'."""
    before, after = learner_of("mazes"), learner_of("mazes")
    batch = iterant.task("mazes").sample(2, size=5)
    before.update(batch.inputs, batch.targets, StepRng(0, 1), 1.0)
    for weight in after.module.parameters():
        if weight.dim() == 4:
            weight.data = weight.data.contiguous(memory_format=torch.channels_last)
    after.restore(before.tensors(), 1)
    olds = before.optimizer.state.values()
    for old, own in zip(olds, list(after.optimizer.state), strict=True):
        for key in ("exp_avg", "exp_avg_sq"):
            rng = after.optimizer.state[own][key]
            assert rng.stride() == own.stride()
            assert torch.equal(rng, old[key])
