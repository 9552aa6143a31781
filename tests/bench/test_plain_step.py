"""The plain step computes what ours computes: losses, weights; a plain evaluation our curves."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from thinkers import small_batch, small_net
from torch import Tensor

import iterant
from iterant.bench.plain import EvenRng, PlainStep, iterate, plain_loss
from iterant.evaluation import evaluate_batch
from iterant.nets import DeepThinking, FeedForward, Net, build, paper_net
from iterant.tasks.protocol import Batch, Task
from iterant.training.objectives import Progressive
from iterant.training.recipe import Recipe
from iterant.training.recipe import recipe as named_recipe
from iterant.training.trainer import Trainer

PROBLEMS = ["prefix-sums", "mazes", "chess"]


def module(net: Net) -> DeepThinking | FeedForward:
    assert isinstance(net, DeepThinking | FeedForward)
    return net


@torch.no_grad()
def plain_curve(net: DeepThinking | FeedForward, task: Task, batch: Batch, steps: int) -> Tensor:
    """(steps,) int64: problems solved after each iteration."""
    inputs = batch.inputs
    features = torch.relu(net.projection(inputs))
    # (N, steps, classes, *space)
    outputs = inputs.new_zeros(len(inputs), steps, net.config.classes, *inputs.shape[2:])
    for index in range(steps):
        features = iterate(net, inputs, features, index)
        outputs[:, index] = net.head(features)
    predictions = [net.readout.predict(outputs[:, index], inputs) for index in range(steps)]
    solved = [task.solved(prediction, batch).sum() for prediction in predictions]
    return torch.stack(solved).cpu()


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("variant", ["dt", "dt-recall", "ff", "ff-recall"])
def test_curves_equal_ours(problem: str, variant: str) -> None:
    net, batch = module(small_net(problem, variant)), small_batch(problem)
    task = iterant.task(problem)
    with torch.no_grad():
        targets = iterant.last(iterant.think(net, batch.inputs, steps=6)).prediction
    batch = type(batch)(batch.inputs, targets, batch.extras)  # so that some are solved
    curve = evaluate_batch(net, task, batch, steps=12)
    assert int(curve.solved[5]) == len(batch)
    assert plain_curve(net, task, batch, 12).tolist() == curve.solved.tolist()


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("variant", ["dt", "dt-recall", "ff-recall"])
def test_several_steps_lead_to_the_same_weights(problem: str, variant: str) -> None:
    recipe = named_recipe("paper", problem, variant)
    recipe = recipe.changed(iterations=4, width=4, label_smoothing=0.1)
    config = replace(paper_net(problem, variant), width=4, head=(4, 3))
    net, batch = build(config.kind, config, seed=1), small_batch(problem)
    inputs, cpu = batch.inputs.float(), torch.device("cpu")
    plain, trainer = PlainStep(net, recipe, cpu), Trainer(net, recipe, cpu)  # plain has a copy
    before = {name: weight.clone() for name, weight in plain.net.state_dict().items()}
    for step in range(4):
        rng = EvenRng(0, step, of=4)
        first = trainer.step(inputs, batch.targets, rng, 0.5)
        second = plain.step(inputs, batch.targets, rng, 0.5)
        assert float(first) == pytest.approx(float(second), rel=1e-4)
    after = plain.net.state_dict()
    assert any(not torch.equal(before[name], after[name]) for name in after)
    for name, weight in trainer.master.state_dict().items():
        moved = (weight - before[name]).abs().max()
        assert (weight - after[name]).abs().max() < 0.05 * moved + 1e-7, name


def test_the_head_runs_at_every_iteration() -> None:
    """The head at every iteration, the full unroll even at α = 1, the prefix with gradients."""
    net = module(small_net("prefix-sums", "dt-recall"))
    heads: list[bool] = []
    net.head.register_forward_hook(lambda *_: heads.append(torch.is_grad_enabled()))
    batch = small_batch("prefix-sums")
    plain_loss(net, batch.inputs, batch.targets, Recipe(iterations=5), n=2, k=3)
    assert heads == [True] * (5 + 2 + 3)


@pytest.mark.parametrize(("m", "count"), [(1, 8), (5, 10), (30, 20), (30, 200)])
def test_even_draws_have_the_mean_of_all_draws(m: int, count: int) -> None:
    objective = Progressive(Recipe(iterations=m))
    draws = [objective.draw(EvenRng(0, step, of=count)) for step in range(count)]
    assert all(0 <= n < m and 1 <= k <= m - n for n, k in draws)
    n, k = (sum(draw[i] for draw in draws) / count for i in (0, 1))
    assert n == pytest.approx((m - 1) / 2, abs=0.02 * m)
    # The mean of k given n is (m - n + 1) / 2.
    assert k == pytest.approx((m + 3) / 4, abs=0.03 * m)
