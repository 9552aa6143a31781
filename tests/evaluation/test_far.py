"""Two looks after many iterations: known by hand, and the same for both ways to think."""

from __future__ import annotations

import pytest
import torch
from exact import exact_prefix_sums, first_right

from iterant import registry
from iterant.evaluation import evaluate_batch, evaluate_long
from iterant.nets import LocalRule
from iterant.tasks.prefix_sums import PrefixSums
from iterant.zoo import load

TASK = PrefixSums()
BATCH = TASK.sample(40, size=10, seed=1)


@pytest.mark.parametrize("steps", [2, 3, 6, 30])
def test_both_looks_of_the_exact_network_are_known(steps: int) -> None:
    far = evaluate_long(exact_prefix_sums(), TASK, BATCH, steps)
    moments = first_right(BATCH.targets)
    assert far.solved == int((moments <= steps).sum())
    assert far.solved_at_twice == int((moments <= 2 * steps).sum())
    assert far.wrong == (moments > 2 * steps).nonzero().flatten().tolist()[:20]
    figures = far.figures()
    assert figures["problems"] == 40
    assert "lost" not in figures  # counts alone do not say which
    low, high = figures["interval"]
    assert low <= far.solved / 40 <= high


def test_a_local_rule_is_judged_as_if_it_thought_everywhere() -> None:
    mazes = registry.task("mazes")
    net = load("mazes")
    assert isinstance(net, LocalRule)
    batch = mazes.sample(60, size=9, seed=2)
    far = evaluate_long(net, mazes, batch, 9)
    plain = evaluate_batch(net, mazes, batch, steps=18, at=[9, 18])
    assert 0 < far.solved < far.solved_at_twice < 60  # else the looks would be no test
    assert [far.solved, far.solved_at_twice] == plain.solved.tolist()
    assert plain.right is not None
    assert far.wrong == (~plain.right).nonzero().flatten().tolist()[:20]
    assert far.lost is not None
    assert far.solved - far.lost <= far.solved_at_twice
    assert far.prediction is not None
    assert torch.equal(mazes.solved(far.prediction, batch), plain.right)
    figures = evaluate_long(net, mazes, batch, 200).figures()
    assert figures["solved"] == figures["solved at twice"] == 60
    assert figures["problems in portions that rest"] == 60
    assert figures["last iteration in which anything changed"] < 100
    assert figures["computations a square"] < 10
