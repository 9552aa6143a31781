"""The loss: which class each position has, and where class 1 is."""

from __future__ import annotations

import pytest
import restated
import torch

import iterant
from iterant.training.build import build_network
from iterant.training.objectives import Criterion
from iterant.training.recipe import Recipe


@pytest.mark.parametrize("problem", ["prefix-sums", "mazes"])
@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_the_loss_is_the_formula(problem: str, smoothing: float) -> None:
    task = iterant.task(problem)
    batch = task.sample(3, size=3, seed=2)
    net, _ = build_network(Recipe(width=4), task.spec, seed=1)
    features = restated.unrolled(net, batch.inputs, net.start(batch.inputs), 2)
    ours = Criterion(smoothing)(net, net.answer(features), batch.inputs, batch.targets)
    theirs = restated.loss_of(net, features, batch.inputs, batch.targets, smoothing)
    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_the_question_where_is_cross_entropy_over_positions(smoothing: float) -> None:
    task = iterant.task("chess")
    batch = task.sample(3, size=(0, 50), seed=2)
    net, _ = build_network(Recipe(width=4), task.spec, seed=1)
    logits = torch.randn(3, 2, 8, 8, generator=torch.Generator().manual_seed(1))
    ours = Criterion(smoothing, places=1.0)(net, logits, batch.inputs, batch.targets)
    total = 0.0
    for scores, wanted in zip(logits[:, 1].flatten(1), batch.targets.flatten(1), strict=True):
        chances = scores.exp() / scores.exp().sum()
        for square, chance in enumerate(chances):
            share = (1 - smoothing) * 0.5 * int(wanted[square]) + smoothing / 64
            total -= share * float(chance.log()) / 3
    assert float(ours) == pytest.approx(total, rel=1e-5)
    classes = Criterion(smoothing)(net, logits, batch.inputs, batch.targets)
    both = Criterion(smoothing, places=0.25)(net, logits, batch.inputs, batch.targets)
    torch.testing.assert_close(both, 0.75 * classes + 0.25 * ours)


def test_where_is_not_asked_of_positions_that_do_not_count() -> None:
    task = iterant.task("mazes")
    batch = task.sample(2, size=5, seed=2)
    net, _ = build_network(Recipe(width=4), task.spec, seed=1)
    logits = torch.randn(2, 2, 16, 16, generator=torch.Generator().manual_seed(1))
    walls = ~(batch.inputs > 0).any(dim=1)
    raised = logits + 50.0 * walls.unsqueeze(1)
    before, after = (
        Criterion(places=1.0)(net, some, batch.inputs, batch.targets) for some in (logits, raised)
    )
    assert torch.equal(before, after)


def test_what_stands_on_a_wall_costs_nothing() -> None:
    task = iterant.task("mazes")
    batch = task.sample(2, size=5, seed=2)
    net, _ = build_network(Recipe(width=4), task.spec, seed=1)
    logits = torch.randn(2, 2, 16, 16, generator=torch.Generator().manual_seed(1))
    walls = ~(batch.inputs > 0).any(dim=1)
    assert walls.any()
    changed = logits + 100.0 * walls.unsqueeze(1) * torch.tensor([1.0, -1.0]).view(1, 2, 1, 1)
    before, after = (
        Criterion()(net, some, batch.inputs, batch.targets) for some in (logits, changed)
    )
    assert torch.equal(before, after)
