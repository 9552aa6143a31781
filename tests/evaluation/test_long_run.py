"""Long runs and lost answers: known by hand, and equal to comparing every iteration."""

from __future__ import annotations

import pytest
import torch
from exact import exact_prefix_sums, first_right
from thinkers import Ticking, small_batch, small_net

from iterant import registry
from iterant.engine import think
from iterant.evaluation import evaluate_batch, evaluate_long
from iterant.nets import LocalRule
from iterant.tasks.prefix_sums import PrefixSums
from iterant.tasks.protocol import Batch
from iterant.zoo import load

TASK = PrefixSums()
BATCH = TASK.sample(40, size=10, seed=1)


@pytest.mark.parametrize("steps", [2, 3, 6, 30])
def test_both_counts_of_the_exact_network_are_known(steps: int) -> None:
    figures = evaluate_long(exact_prefix_sums(), TASK, BATCH, steps).figures
    moments = first_right(BATCH.targets)
    assert figures["solved"] == int((moments <= steps).sum())
    assert figures["solved at twice"] == int((moments <= 2 * steps).sum())
    assert figures["wrong"] == (moments > 2 * steps).nonzero().flatten().tolist()[:20]
    assert figures["problems"] == 40
    assert "lost" not in figures  # counts alone do not say which
    low, high = figures["interval"]
    assert low <= figures["solved"] / 40 <= high


def test_a_local_rule_gives_the_counts_of_evaluate_batch() -> None:
    mazes = registry.task("mazes")
    net = load("mazes")
    assert isinstance(net, LocalRule)
    batch = mazes.sample(60, size=9, seed=2)
    long = evaluate_long(net, mazes, batch, 9)
    plain = evaluate_batch(net, mazes, batch, steps=18, at=[9, 18])
    solved, twice = long.figures["solved"], long.figures["solved at twice"]
    assert 0 < solved < twice < 60, "otherwise this tests nothing"
    assert [solved, twice] == plain.solved.tolist()
    assert plain.right is not None
    assert long.figures["wrong"] == (~plain.right).nonzero().flatten().tolist()[:20]
    assert solved - long.figures["lost"] <= twice
    assert long.prediction is not None
    assert torch.equal(mazes.solved(long.prediction, batch), plain.right)
    figures = evaluate_long(net, mazes, batch, 200).figures
    assert figures["solved"] == figures["solved at twice"] == 60
    assert figures["problems in portions that rest"] == 60
    assert figures["last iteration in which anything changed"] < 100
    assert figures["computations a square"] < 10


def ticking(*ticks: list[int]) -> Batch:
    """Strings that are right when every position has ticked an odd number of times."""
    inputs = torch.tensor(ticks).float()[:, None]
    return Batch(inputs, torch.ones(len(ticks), len(ticks[0]), dtype=torch.int64))


def test_lost_answers_of_a_known_network() -> None:
    # Ticks up to the numbers given; right where all are odd: after 1, 3, 5 … until they stop.
    batch = ticking([1, 1, 1], [5, 5, 4], [3, 3, 7], [2, 1, 1], [0, 1, 1])
    plain = evaluate_long(Ticking(), TASK, batch, 4).figures
    every = evaluate_long(Ticking(), TASK, batch, 4, every=True)
    for figures in (plain, every.figures):
        assert (figures["solved"], figures["solved at twice"]) == (1, 2)
        assert figures["wrong"] == [1, 3, 4]
    assert every.figures["lost"] == 0
    assert every.figures["lost on the way"] == 3
    assert every.figures["ever solved"] == 4
    assert every.figures["iterations until all those were solved once"] == 1
    names = ("problem", "since", "first", "until", "iterations", "worst", "positions")
    values = [(1, 1, 2, 8, 6, 2, 3), (2, 1, 2, 6, 3, 2, 3), (3, 1, 2, 8, 7, 2, 1)]
    lapses = [dict(zip(names, numbers, strict=True)) for numbers in values]
    assert every.figures["lapses"] == lapses
    # The worst of those that were lost; of the others the last.
    assert every.prediction is not None
    assert every.prediction.tolist() == [[1, 1, 1], [0, 0, 0], [0, 0, 0], [0, 1, 1], [0, 1, 1]]


@pytest.mark.parametrize("portion", [None, 1, 3])
@pytest.mark.parametrize("problem", ["mazes", "prefix-sums"])
def test_lost_answers_are_those_found_by_comparing_every_iteration(
    problem: str, portion: int | None
) -> None:
    net, batch, task = small_net(problem, "dt-recall"), small_batch(problem), registry.task(problem)
    with torch.no_grad():
        answers = [thought.prediction for thought in think(net, batch.inputs, steps=8)]
    # What it says after three iterations is declared the truth, so that answers come and go.
    batch = Batch(batch.inputs, answers[2].clone(), batch.extras)
    long = evaluate_long(net, task, batch, 4, every=True, portion=portion)
    right = torch.stack([(answer == batch.targets).flatten(1).all(1) for answer in answers])
    assert long.figures["solved"] == int(right[3].sum())
    assert long.figures["lost"] == int((right[3] & ~right[7]).sum())
    assert long.prediction is not None
    assert len(long.figures["lapses"]) == 2, "else this tests nothing"
    for lapse in long.figures["lapses"]:
        row, since = lapse["problem"], lapse["since"]
        wrong = [int((answer[row] != batch.targets[row]).sum()) for answer in answers]
        assert wrong[since - 1] == 0 == min(wrong)
        assert lapse["positions"] == max(wrong[since:]) == wrong[lapse["worst"] - 1]
        assert torch.equal(long.prediction[row], answers[lapse["worst"] - 1][row])
