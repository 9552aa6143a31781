"""Steps without torch's compiler are the optimiser's own steps, bit for bit."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch

from iterant.training.trainer import spare_the_compiler, step

MAKERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "adam": torch.optim.Adam,
    "adamw": torch.optim.AdamW,
    "sgd": torch.optim.SGD,
}


@pytest.mark.parametrize("kind", MAKERS)
def test_a_step_is_the_optimisers_own(kind: str) -> None:
    spare_the_compiler()
    outcome = []
    for own in (False, True):
        generator = torch.Generator().manual_seed(0)
        weight = torch.nn.Parameter(torch.randn(5, 3, generator=generator))
        given: dict[str, Any] = {"momentum": 0.9} if kind == "sgd" else {}
        optimizer = MAKERS[kind]([weight], lr=0.1, weight_decay=0.01, fused=True, **given)
        for _ in range(4):
            weight.grad = torch.randn(5, 3, generator=generator)
            step(optimizer) if own else optimizer.step()
        assert weight.requires_grad
        outcome.append((weight.detach().clone(), optimizer.state_dict()["state"]))
    assert torch.equal(outcome[0][0], outcome[1][0])
    assert len(outcome[1][1]) == 1


CHILD = """
import sys, torch, iterant
from iterant.training.trainer import Learner
from iterant.training.rng import Moment
from iterant.training.build import network_of
from iterant.training.recipes import recipe
made = recipe("paper", "prefix-sums").changed(width=4, batch=4)
task = iterant.task("prefix-sums")
net, _ = network_of(made, task.spec, 0)
learner = Learner(net, made, torch.device("cpu"))
batch = task.sample(4, size=8, seed=0)
learner.update(batch.inputs, batch.targets, Moment(0, 0), 1.0)
learner.restore({k: v.clone() for k, v in learner.tensors().items()}, 1)
sys.exit("torch._dynamo" in sys.modules)
"""


def test_training_does_not_import_the_compiler() -> None:
    assert subprocess.run([sys.executable, "-c", CHILD], check=False).returncode == 0
