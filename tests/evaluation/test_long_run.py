"""Long runs of networks whose answers are known."""

from __future__ import annotations

import pytest
import torch
from exact import exact_prefix_sums, first_right
from thinkers import Ticking

from iterant import registry
from iterant.evaluation import evaluate_batch, evaluate_long
from iterant.nets import LocalRule
from iterant.tasks.prefix_sums import PrefixSums
from iterant.tasks.protocol import Batch
from iterant.zoo import load

TASK = PrefixSums()
BATCH = TASK.sample(40, size=10, seed=1)


@pytest.mark.parametrize("steps", [2, 3, 6, 30])
def test_both_counts_of_the_exact_network_are_known(steps: int) -> None:
    figures = evaluate_long(exact_prefix_sums(), TASK, BATCH, steps)
    solved_at = first_right(BATCH.targets)
    assert figures["solved"] == int((solved_at <= steps).sum())
    assert figures["solved at twice"] == int((solved_at <= 2 * steps).sum())
    assert figures["wrong"] == (solved_at > 2 * steps).nonzero().flatten().tolist()[:20]
    assert figures["problems"] == 40
    assert figures["lost"] == 0
    assert figures["thinking"] == "everywhere"
    low, high = figures["interval"]
    assert low <= figures["solved"] / 40 <= high


def test_a_local_rule_gives_the_counts_of_evaluate_batch() -> None:
    mazes = registry.task("mazes")
    net = load("mazes-messages")
    assert isinstance(net, LocalRule)
    batch = mazes.sample(60, size=9, seed=2)
    long = evaluate_long(net, mazes, batch, 18)
    plain = evaluate_batch(net, mazes, batch, steps=36, at=[18, 36])
    solved, twice = long["solved"], long["solved at twice"]
    assert 0 < solved < twice < 60, "otherwise this tests nothing"
    assert [solved, twice] == plain.solved.tolist()
    assert plain.right is not None
    assert long["wrong"] == (~plain.right).nonzero().flatten().tolist()[:20]
    assert solved - long["lost"] <= twice
    figures = evaluate_long(net, mazes, batch, 200)
    assert figures["solved"] == figures["solved at twice"] == 60
    assert figures["problems in portions that rest"] == 60
    assert figures["last iteration in which anything changed"] < 100
    assert figures["computations a square"] < 10


def test_answers_lost_between_the_two_checks() -> None:
    # Features count up to these numbers; an answer is right where all are odd.
    counts = torch.tensor([[4, 4], [9, 9], [3, 3], [8, 1]])
    batch = Batch(counts.float()[:, None], torch.ones_like(counts))
    figures = evaluate_long(Ticking(), TASK, batch, 3)
    assert (figures["solved"], figures["solved at twice"]) == (4, 1)
    assert figures["wrong"] == [0, 1, 3]
    assert figures["lost"] == 3
    assert figures["peak"] == {"iterations": 1, "accuracy": 1.0}
    assert figures["solved by iteration"] == {"1": 4, "2": 0, "3": 4, "4": 1, "5": 3, "6": 1}
