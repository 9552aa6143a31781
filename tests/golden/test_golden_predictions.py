"""Shipped networks give the same answers, and seeds the same problems, as when they were stored."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest
import torch
from torch import Tensor

import iterant

# Network, task, size, count, iterations. Steps are chosen where the two best classes of every
# position differ by 2e-4 or more, so that rounding does not flip a prediction.
NETS = [
    ("prefix-sums", "prefix-sums", 64, 16, (100, 150)),
    ("prefix-sums-paper", "prefix-sums", 64, 4, (20, 40)),
    ("mazes", "mazes", 13, 8, (5, 20, 150)),
    ("mazes-messages", "mazes", 13, 8, (5, 20, 150)),
    ("mazes-paper", "mazes", 9, 2, (40, 80)),
    ("chess", "chess", None, 4, (5, 20)),
]


def digest(values: Tensor) -> str:
    """SHA-256 of integers, whatever type holds them."""
    whole = values.to(torch.int64)
    assert torch.equal(whole.to(values.dtype), values)
    return hashlib.sha256(whole.contiguous().numpy().tobytes()).hexdigest()


@pytest.mark.parametrize(("name", "problem", "size", "count", "steps"), NETS)
def test_shipped_networks_predict_the_same(
    golden: Any, name: str, problem: str, size: int | None, count: int, steps: tuple[int, ...]
) -> None:
    net, task = iterant.load(name), iterant.task(problem)
    batch = task.sample(count, size=size, seed=5)
    seen: dict[str, Any] = {}
    with torch.no_grad():
        for thought in iterant.think(net, batch.inputs, steps=steps[-1]):
            if thought.step in steps:
                best, second = thought.logits.topk(2, dim=1).values.unbind(dim=1)
                assert (best - second).min() > 2e-4, "choose another step: rounding may flip this"
                seen[str(thought.step)] = {
                    "prediction": digest(thought.prediction),
                    "solved": task.solved(thought.prediction, batch).tolist(),
                    "features": float(thought.features.square().mean().sqrt()),
                }
    parameters = sum(weight.numel() for weight in net.parameters())  # type: ignore[attr-defined]
    answer = iterant.solve(net, batch.inputs, max_steps=300)
    seen["solve"] = digest(answer.prediction)
    golden(f"predictions-{name}", {"parameters": parameters, **seen}, rel=1e-3)
    # Rounding may shift the step at which a state comes to rest.
    golden(f"steps-{name}", answer.steps.double().tolist(), abs=2.0)


SAMPLES = [
    ("prefix-sums", (1, 32, 512)),
    ("mazes", (3, 9, 13, 59)),
    ("chess", (None, (0, 100), (100, 200))),
]


@pytest.mark.parametrize(("problem", "sizes"), SAMPLES)
def test_seeds_give_the_same_problems(golden: Any, problem: str, sizes: tuple[Any, ...]) -> None:
    task = iterant.task(problem)
    seen = {}
    for size in sizes:
        for seed in (0, 7):
            batch = task.sample(3, size=size, seed=seed)
            seen[f"size {size}, seed {seed}"] = {
                "inputs": [list(batch.inputs.shape), digest(2 * batch.inputs)],
                "targets": [list(batch.targets.shape), digest(batch.targets)],
            }
    golden(f"problems-{problem}", seen)
