"""Right answers that are lost on the way: known by hand, and the same as by thinking it through."""

from __future__ import annotations

import pytest
import torch
from exact import exact_prefix_sums
from thinkers import Ticking, small_batch, small_net

from iterant import registry
from iterant.engine import think
from iterant.evaluation import Regression, evaluate_long, track_answers
from iterant.tasks.prefix_sums import PrefixSums
from iterant.tasks.protocol import Batch

TASK = PrefixSums()


def ticking(*ticks: list[int]) -> Batch:
    """Strings that are right when every position has ticked an odd number of times."""
    inputs = torch.tensor(ticks).float()[:, None]
    return Batch(inputs, torch.ones(len(ticks), len(ticks[0]), dtype=torch.int64))


def test_a_lapse_is_told_as_it_was() -> None:
    # Ticks up to the numbers given; right where all are odd: after 1, 3, 5 … until they stop.
    batch = ticking([1, 1, 1], [5, 5, 4], [3, 3, 7], [2, 1, 1], [0, 1, 1])
    kept = track_answers(Ticking(), TASK, batch, 8)
    assert kept.right.T.int().tolist() == [
        [1, 1, 1, 1, 1, 1, 1, 1],
        [1, 0, 1, 0, 0, 0, 0, 0],
        [1, 0, 1, 0, 1, 0, 1, 1],
        [1, 0, 0, 0, 0, 0, 0, 0],
        [0, 0, 0, 0, 0, 0, 0, 0],
    ]
    assert kept.regressions == [
        Regression(1, since=1, first=2, until=8, iterations=6, worst=2, positions=3),
        Regression(2, since=1, first=2, until=6, iterations=3, worst=2, positions=3),
        Regression(3, since=1, first=2, until=8, iterations=7, worst=2, positions=1),
    ]
    # The worst of those that were lost; of the others the last.
    assert kept.worst.tolist() == [[1, 1, 1], [0, 0, 0], [0, 0, 0], [0, 1, 1], [0, 1, 1]]
    assert [kept.solved(step) for step in (1, 3, 8)] == [4, 3, 2]


def test_an_answer_that_was_never_right_is_no_lapse() -> None:
    net, batch = exact_prefix_sums(), TASK.sample(30, size=10, seed=1)
    kept = track_answers(net, TASK, batch, 6)
    assert 0 < kept.solved(6) < 30
    assert kept.regressions == []


@pytest.mark.parametrize("portion", [None, 1, 3])
@pytest.mark.parametrize("problem", ["mazes", "prefix-sums"])
def test_every_iteration_is_judged_as_by_thinking_it_through(
    problem: str, portion: int | None
) -> None:
    net, batch, task = small_net(problem, "dt-recall"), small_batch(problem), registry.task(problem)
    with torch.no_grad():
        answers = [thought.prediction for thought in think(net, batch.inputs, steps=8)]
    # What it says after three iterations is declared the truth, so that answers come and go.
    batch = Batch(batch.inputs, answers[2].clone(), batch.extras)
    told: list[tuple[int, int]] = []
    kept = track_answers(
        net, task, batch, 8, portion=portion, progress=lambda *done: told.append(done)
    )
    expected = torch.stack([(answer == batch.targets).flatten(1).all(1) for answer in answers])
    assert torch.equal(kept.right, expected)
    assert expected[2].all()
    assert len(kept.regressions) == 2, "else this tests nothing"
    for regression in kept.regressions:
        row = regression.problem
        wrong = [int((answer[row] != batch.targets[row]).sum()) for answer in answers]
        assert wrong[regression.since - 1] == 0 == min(wrong)
        assert regression.positions == max(wrong[regression.since :]) == wrong[regression.worst - 1]
        assert torch.equal(kept.worst[row], answers[regression.worst - 1][row])
    assert told[-1] == (len(batch), len(batch))
    assert len(told) == -(-len(batch) // (portion or len(batch)))


def test_both_looks_are_those_that_judge_far_takes_without_it() -> None:
    batch = ticking([1, 1, 1], [5, 5, 4], [3, 3, 7], [2, 1, 1], [0, 1, 1])
    plain = evaluate_long(Ticking(), TASK, batch, 3)
    every = evaluate_long(Ticking(), TASK, batch, 3, every=True)
    assert (plain.solved, plain.solved_at_twice) == (every.solved, every.solved_at_twice) == (3, 1)
    assert plain.wrong == every.wrong == [1, 2, 3, 4]
    assert every.lost == 2
    figures = every.figures()
    assert figures["lost on the way"] == 3, "one of them is right at neither look"
    assert figures["ever solved"] == 4
    assert figures["lapses"][0]["problem"] == 1
    assert every.prediction is not None
    assert every.prediction[1].tolist() == [0, 0, 0]
