"""Muon and learning rate schedules, also against the rates in the authors' log."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import iterant
from iterant import registry
from iterant.nets import VARIANTS
from iterant.nets.from_recipe import build_network
from iterant.training.optim import Muon, build_optimizer, lr_factor, orthogonal
from iterant.training.recipe import Recipe, recipe


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("shape", [(1, 6, 6), (3, 5, 40), (2, 40, 5)])
def test_newton_schulz_moves_singular_values_near_one(shape: tuple[int, ...]) -> None:
    matrices = normal(*shape).double()
    chosen = orthogonal(matrices)
    assert chosen.shape == matrices.shape
    for before, after in zip(matrices, chosen, strict=True):
        u, sizes, vt = torch.linalg.svd(before, full_matrices=False)
        seen = u.T @ after @ vt.T  # diagonal: the same directions on both sides
        off = seen - torch.diag(seen.diag())
        assert float(off.abs().max()) < 1e-6
        sound = sizes > 0.1 * sizes[0]
        assert float(seen.diag()[sound].min()) > 0.5
        assert float(seen.diag().max()) < 1.3


def test_muon_is_adamw_for_other_parameters() -> None:
    ours, theirs = nn.Parameter(normal(5, 3)), nn.Parameter(normal(5, 3))
    muon = Muon([{"params": [ours]}], 0.01, betas=(0.9, 0.95), weight_decay=0.1)
    adamw = torch.optim.AdamW([theirs], lr=0.01, betas=(0.9, 0.95), weight_decay=0.1)
    for number in range(5):
        ours.grad, theirs.grad = normal(5, 3, seed=number), normal(5, 3, seed=number)
        muon.step()
        adamw.step()
    torch.testing.assert_close(ours, theirs)


def test_muon_orthogonalises_recurrent_kernels_only() -> None:
    spec, chosen = iterant.task("mazes").spec, Recipe(width=4, head=(4,), optimizer="muon")
    net: Any = build_network(chosen.described(), spec, seed=1)[0]
    (group,) = build_optimizer(chosen, net).param_groups
    names = [name for name, weight in net.named_parameters() if id(weight) in group["matrices"]]
    assert {name.partition(".")[0] for name in names} == {"recall", "block"}


@pytest.mark.parametrize(
    ("fields", "formula"),
    [
        ({"schedule": "wsd", "stable_fraction": 0.6}, lambda share: min(1.0, (1 - share) / 0.4)),
        ({"schedule": "cosine"}, lambda share: (1 + math.cos(math.pi * share)) / 2),
        ({"schedule": "constant", "warmup_steps": 4}, lambda share: min(1.0, 25 * share + 0.25)),
    ],
)
def test_schedules(fields: dict[str, Any], formula: Callable[[float], float]) -> None:
    chosen = Recipe(epochs=10, warmup_epochs=0, **fields)
    factors = [lr_factor(chosen, step, 10) for step in range(100)]
    assert factors == pytest.approx([formula(step / 100) for step in range(100)])


PROBLEMS = ("prefix-sums", "mazes", "chess")
LOG = json.loads((Path(__file__).parent / "data" / "authors-maze-run.json").read_text())


def authors_factors(
    epochs: int, period: int, milestones: Sequence[int], decay: float
) -> list[float]:
    """The rate of every epoch over the base rate: set anew in the warm-up, then decayed in place.

    Epochs count from 0. A milestone of 60 is met once 60 epochs are over.
    """
    factors, factor = [], 1.0
    for epoch in range(epochs):
        if epoch in milestones:
            factor *= decay
        if epoch < period:
            factor = 1.0 if epoch + 1 >= period else 1.0 - math.exp(-(epoch + 1) / period)
        factors.append(factor)
    return factors


def our_factors(chosen: Recipe, per_epoch: int = 80) -> list[float]:
    return [lr_factor(chosen, epoch * per_epoch, per_epoch) for epoch in range(chosen.epochs)]


@pytest.mark.parametrize("word", ["paper", "paper-code"])
@pytest.mark.parametrize("net", VARIANTS)
@pytest.mark.parametrize("problem", PROBLEMS)
def test_learning_rate_equals_the_authors_rule(word: str, net: str, problem: str) -> None:
    chosen = recipe(word, problem, net)
    steps = chosen.milestones if chosen.schedule == "steps" else ()
    theirs = authors_factors(chosen.epochs, chosen.warmup_epochs, steps, chosen.lr_decay)
    assert our_factors(chosen) == pytest.approx(theirs, rel=1e-12)
    assert chosen.validate_every == 1
    assert any("after every epoch" in note for note in chosen.notes)


def test_learning_rate_equals_the_authors_log() -> None:
    """They log after an epoch what the next one will have."""
    chosen, task, config = recipe("paper", "mazes"), registry.task("mazes"), LOG["config"]
    assert (chosen.epochs, chosen.warmup_epochs, chosen.lr) == (
        config["epochs"], config["warmup_period"], config["lr"],
    )  # fmt: skip
    net, _ = build_network(chosen.described(), task.spec, seed=0)
    assert isinstance(net, torch.nn.Module)
    first, recurrent = build_optimizer(chosen, net).param_groups
    logged = LOG["learning rate logged after each epoch"]
    for group, name in ((first, "all but the recurrent block"), (recurrent, "recurrent block")):
        rates = [chosen.lr * group["lr_factor"] * factor for factor in our_factors(chosen)]
        assert rates[1:] == pytest.approx(logged[name][:-1], rel=1e-5)
