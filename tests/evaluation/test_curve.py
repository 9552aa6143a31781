"""A curve's figures: peak, loss, intervals and costs, against slow and obvious ways."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq

from iterant.errors import UsageError
from iterant.evaluation import Curve, Operations, wilson

COUNTS = st.integers(1, 400).flatmap(lambda count: st.tuples(st.integers(0, count), st.just(count)))


def curve(*solved: int, count: int = 8, **more: object) -> Curve:
    steps = tuple(range(1, len(solved) + 1))
    return Curve(steps, torch.tensor(solved), count, 0.0, **more)  # type: ignore[arg-type]


@given(COUNTS)
def test_the_interval_holds_the_shares_that_are_not_too_unlikely(counts: tuple[int, int]) -> None:
    solved, count = counts
    low, high = wilson(torch.tensor(solved), count).tolist()
    share = solved / count
    assert 0 <= low <= share <= high <= 1

    def surprise(true: float) -> float:
        """How many standard deviations the share is from the true one, less 1.96."""
        return abs(share - true) / math.sqrt(true * (1 - true) / count) - 1.959963984540054

    # The ends are where the share is surprising enough: the definition of a score interval.
    nearly = 1e-12
    if solved > 0:
        assert low == pytest.approx(brentq(surprise, nearly, share - nearly), abs=1e-6)
    if solved < count:
        assert high == pytest.approx(brentq(surprise, share + nearly, 1 - nearly), abs=1e-6)


def test_peak_end_and_what_was_lost() -> None:
    made = curve(0, 6, 8, 8, 5)
    assert made.peak == (3, 1.0)
    assert made.end == 5 / 8
    assert made.lost == 3 / 8
    assert curve(1, 2, 2).lost == 0
    assert made.interval.shape == (5, 2)


@given(st.lists(st.integers(1, 30), min_size=1, max_size=20))
def test_mean_iterations_by_budget(taken: list[int]) -> None:
    made = curve(*[0] * 30, count=len(taken), taken=torch.tensor(taken))
    for budget, mean in zip(made.steps, made.iterations.tolist(), strict=True):
        assert mean == pytest.approx(sum(min(budget, one) for one in taken) / len(taken))


def test_operations_by_budget() -> None:
    parts = Operations(begin=1000, step=10, answer=1)
    made = curve(0, 1, 2, count=2, taken=torch.tensor([1, 3]), operations=parts)
    assert made.work is not None
    assert made.work.tolist() == [1011.0, 1016.0, 1021.0]
    parts = replace(parts, decodes_all=True)
    made = curve(0, 1, 2, count=2, taken=torch.tensor([1, 3]), operations=parts)
    assert made.work is not None
    assert made.work.tolist() == [1011.0, 1016.5, 1022.0]
    assert curve(1).work is None


def test_an_iteration_that_was_not_evaluated_is_refused() -> None:
    with pytest.raises(UsageError, match="iteration 9 was not evaluated"):
        curve(1, 2).at(9)


def test_what_json_holds() -> None:
    made = curve(0, 8, 6, taken=torch.full((8,), 3), seconds=torch.tensor([0.1, 0.2, 0.3]))
    figures = json.loads(json.dumps(made.described()))
    for name, step, accuracy in (("peak", 2, 1.0), ("end", 3, 0.75)):
        interval = made.interval[step - 1].tolist()
        assert figures[name] == {"step": step, "accuracy": accuracy, "interval": interval}
    assert (figures["lost"], figures["solved"], figures["not finite"]) == (0.25, [0, 8, 6], 0)
    assert "iterations of each" not in figures, "all took the same"
    assert "steps" not in figures
    halted = curve(0, 8, 6, taken=torch.tensor([1] * 7 + [3])).described()
    assert halted["iterations of each"] == [1] * 7 + [3]
    assert Curve((5, 10), torch.tensor([1, 2]), 4, 0.0).described()["steps"] == [5, 10]
