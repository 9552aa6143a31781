"""The rate from epoch to epoch: warm-up, milestones, cosine."""

from __future__ import annotations

import math

import pytest

from iterant.training.optim import lr_factor
from iterant.training.recipe import Recipe
from iterant.training.recipes import recipe


def by_epoch(chosen: Recipe, per_epoch: int = 7) -> list[float]:
    """The factor at the first and the last update of every epoch, which must be one."""
    factors = []
    for epoch in range(chosen.epochs):
        first = lr_factor(chosen, epoch * per_epoch, per_epoch)
        assert first == lr_factor(chosen, (epoch + 1) * per_epoch - 1, per_epoch)
        factors.append(first)
    return factors


def test_warm_up_epoch_by_epoch() -> None:
    factors = by_epoch(Recipe(epochs=8, warmup=5, schedule="constant"))
    for epoch in range(4):
        assert factors[epoch] == 1 - math.exp(-(epoch + 1) / 5)
    assert factors[4:] == [1.0] * 4  # the last epoch of the warm-up has the full rate


def test_no_warm_up() -> None:
    assert by_epoch(Recipe(epochs=3, warmup=0, schedule="constant")) == [1.0] * 3


def test_the_rate_falls_at_each_milestone_and_stays_there() -> None:
    factors = by_epoch(Recipe(epochs=8, warmup=0, milestones=(3, 5), decay=0.1))
    assert factors == pytest.approx([1, 1, 1, 0.1, 0.1, 0.01, 0.01, 0.01])


def test_warm_up_and_milestones_multiply() -> None:
    factors = by_epoch(Recipe(epochs=4, warmup=4, milestones=(1,), decay=0.5))
    assert factors[2] == pytest.approx(0.5 * (1 - math.exp(-3 / 4)))


def test_hold_is_constant_and_then_falls_straight_to_nothing() -> None:
    chosen = Recipe(epochs=10, warmup=0, schedule="hold", hold=0.6)
    factors = [lr_factor(chosen, update, 10) for update in range(100)]
    assert factors[:61] == [1.0] * 61
    assert factors[60:] == pytest.approx([1 - step / 40 for step in range(40)])


def test_linear_warm_up_update_by_update() -> None:
    chosen = Recipe(epochs=2, warmup=0, warmup_updates=4, schedule="constant")
    assert [lr_factor(chosen, update, 5) for update in range(6)] == [0.25, 0.5, 0.75, 1, 1, 1]


def test_the_papers_sums_by_the_numbers() -> None:
    factors = by_epoch(recipe("paper", "prefix-sums"))
    assert factors[0] == pytest.approx(0.0951626)
    assert factors[8] == pytest.approx(0.5934303)
    assert factors[9] == factors[59] == 1.0
    assert factors[60] == factors[99] == pytest.approx(0.01)
    assert factors[100] == factors[149] == pytest.approx(0.0001)


def test_cosine_goes_from_one_to_nearly_nothing() -> None:
    chosen = Recipe(epochs=10, warmup=0, schedule="cosine")
    factors = [lr_factor(chosen, update, 10) for update in range(100)]
    assert factors[0] == 1.0
    assert factors[50] == pytest.approx(0.5)
    assert 0 < factors[-1] < 0.001
    assert factors == sorted(factors, reverse=True)
