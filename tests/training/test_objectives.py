"""Objectives against plain restatements: random draws, losses and gradients."""

from __future__ import annotations

from collections import Counter

import pytest
import restated
import torch
from scipy import stats
from small_networks import small_batch, small_net
from torch import Tensor

import iterant
from iterant.nets import DeepThinking, Net
from iterant.nets.fast import fused
from iterant.nets.from_recipe import build_network
from iterant.rng import StepRng
from iterant.tasks.protocol import Batch, Size
from iterant.training.objectives import Criterion, Objective, Progressive, RunTimeWeighted, Unroll
from iterant.training.recipe import Recipe


def problems_of(name: str, size: Size) -> tuple[Net, Batch, Tensor]:
    """A network, three problems and logits for them."""
    task = iterant.task(name)
    net, _ = build_network(Recipe(width=4).described(), task.spec, seed=1)
    batch = task.sample(3, size=size, seed=2)
    shape = (3, 2, *batch.targets.shape[1:])
    return net, batch, torch.randn(shape, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("problem", ["prefix-sums", "mazes"])
@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_criterion_equals_the_formula(problem: str, smoothing: float) -> None:
    net, batch, _ = problems_of(problem, 3)
    features = restated.unrolled(net, batch.inputs, net.start(batch.inputs), 2)
    ours = Criterion(smoothing)(net, net.answer(features), *batch)
    theirs = restated.loss_of(net, features, batch.inputs, batch.targets, smoothing)
    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_loss_over_positions_equals_the_formula(smoothing: float) -> None:
    net, batch, logits = problems_of("chess", (0, 50))
    ours = Criterion(smoothing, position_loss=1.0)(net, logits, *batch)
    total = 0.0
    for scores, wanted in zip(logits[:, 1].flatten(1), batch.targets.flatten(1), strict=True):
        shares = (1 - smoothing) * 0.5 * wanted + smoothing / 64  # two squares are of class 1
        total -= float((shares * (scores.exp() / scores.exp().sum()).log()).sum()) / 3
    assert float(ours) == pytest.approx(total, rel=1e-5)
    classes = Criterion(smoothing)(net, logits, *batch)
    both = Criterion(smoothing, position_loss=0.25)(net, logits, *batch)
    torch.testing.assert_close(both, 0.75 * classes + 0.25 * ours)


def test_loss_over_positions_counts_no_walls() -> None:
    net, batch, logits = problems_of("mazes", 5)
    ours = Criterion(position_loss=1.0)(net, logits, *batch)
    losses = []
    for pixels, scores, target in zip(batch.inputs, logits[:, 1], batch.targets, strict=True):
        is_open = (pixels != 0).any(dim=0)
        losses.append(-scores[is_open].log_softmax(0)[target[is_open] == 1].mean())
    torch.testing.assert_close(ours, torch.stack(losses).mean())


def batch_of(problem: str) -> Batch:
    if problem == "mazes":
        mazes = iterant.task("mazes").sample(2, size=3, seed=3)
        return Batch(mazes.inputs.double(), mazes.targets)
    batch = small_batch(problem)[:2]
    return Batch(batch.inputs[..., :6], batch.targets[..., :6])


def progressive(m: int, alpha: float = 1.0, *, prefix: bool = True) -> Progressive:
    name = "progressive" if prefix else "progressive-n0"
    return Progressive(Recipe(objective=name, iterations=m, alpha=alpha))


@pytest.mark.parametrize("prefix", [True, False])
def test_n_and_k_are_uniform_in_the_ranges_of_algorithm_1(prefix: bool) -> None:
    m, steps, objective = 5, 4000, progressive(5, prefix=prefix)
    draws = Counter(objective.draw(StepRng(3, number)) for number in range(steps))
    starts = range(m) if prefix else range(1)
    pairs = [(n, k) for n in starts for k in range(1, m - n + 1)]
    assert set(draws) == set(pairs)
    expected = [steps / len(starts) / (m - n) for n, _ in pairs]
    assert stats.chisquare([draws[pair] for pair in pairs], expected).pvalue > 1e-3


@pytest.mark.parametrize("number", range(4))
def test_no_iteration_is_computed_twice(number: int) -> None:
    n, k = progressive(7).draw(StepRng(1, number))
    cases: list[tuple[Objective, dict[str, int]]] = [
        (progressive(7, alpha=1.0), {"without": n, "with": k, "answers": 1}),
        (progressive(7, alpha=0.0), {"with": 7, "answers": 1}),
        (progressive(7, alpha=0.5), {"with": 7 + k, "answers": 2}),
        (RunTimeWeighted(Recipe(iterations=7)), {"with": 7, "answers": 7}),
    ]
    for objective, counts in cases:
        net, batch = small_net("prefix-sums", "dt-recall"), batch_of("prefix-sums")
        calls = Counter[str]()
        assert isinstance(net, DeepThinking)
        net.head.register_forward_hook(lambda *_, calls=calls: calls.update(["answers"]))
        net.block.register_forward_hook(
            lambda *_, calls=calls: calls.update(["with" if torch.is_grad_enabled() else "without"])
        )
        objective.run(Unroll(net), batch.inputs, batch.targets, StepRng(1, number))
        assert calls == Counter(counts)


KINDS = [("prefix-sums", "dt-recall"), ("prefix-sums", "dt"), ("mazes", "dt-recall"),
         ("prefix-sums", "ff-recall")]  # fmt: skip


def assert_restated(
    objective: Objective, net: Net, batch: Batch, number: int, wanted: Tensor
) -> None:
    """Loss and gradients of a step, computed as in training, are those of ``wanted``."""
    weights = restated.parameters(net)
    for weight in weights:
        weight.grad = torch.zeros_like(weight)
    unroll = Unroll(fused(net))
    loss = objective.run(unroll, batch.inputs, batch.targets, StepRng(1, number))
    torch.testing.assert_close(loss, wanted.detach(), rtol=1e-12, atol=1e-12)
    gradients = [weight.grad for weight in weights if weight.grad is not None]
    restated.assert_same(gradients, restated.gradients_of(wanted, weights), 1e-12)


@pytest.mark.parametrize(("problem", "variant"), KINDS)
@pytest.mark.parametrize("alpha", [0.0, 0.01, 0.5, 1.0])
@pytest.mark.parametrize("prefix", [True, False])
def test_progressive_is_algorithm_1(problem: str, variant: str, alpha: float, prefix: bool) -> None:
    net, batch = small_net(problem, variant), batch_of(problem)
    objective = progressive(4, alpha, prefix=prefix)
    seen = set()
    for number in range(2 if problem == "mazes" else 5):
        n, k = objective.draw(StepRng(1, number))
        seen.add(n > 0)
        wanted = restated.progressive(net, batch.inputs, batch.targets, m=4, alpha=alpha, n=n, k=k)
        assert_restated(objective, net, batch, number, wanted)
    assert seen == ({True, False} if prefix and problem != "mazes" else seen)


@pytest.mark.parametrize(("problem", "variant"), KINDS)
def test_run_time_weighted(problem: str, variant: str) -> None:
    net, batch = small_net(problem, variant), batch_of(problem)
    wanted = restated.run_time_weighted(net, batch.inputs, batch.targets, m=4)
    assert_restated(RunTimeWeighted(Recipe(iterations=4)), net, batch, 0, wanted)
