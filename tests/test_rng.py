"""Draws are a pure function of seed, stream, problem and counter, or of the optimizer step."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iterant.errors import TaskError
from iterant.rng import Shuffle, StepRng, Stream


def test_a_draw_does_not_depend_on_its_neighbours() -> None:
    stream = Stream(3, "x")
    table = stream.bits(np.arange(50)[:, None], np.arange(20)[None])
    assert table.shape == (50, 20)
    assert np.array_equal(table[7:9], stream.bits(np.array([[7], [8]]), np.arange(20)))
    assert np.array_equal(table[:, 4], stream.bits(np.arange(50), 4))
    assert len(np.unique(table)) == 1000


def test_fixed_values() -> None:
    bits = [7738302215956993247, 9273367190031653554, 7874514184154253356]
    assert Stream(0, "mazes", 9).bits(np.arange(3), 0).tolist() == bits
    dice = [1, 1, 2, 2, 2, 4, 0, 4]
    assert Stream(7, "mazes", 13).below(6, np.arange(8), 0).tolist() == dice
    step = StepRng(3, 5)
    assert step.generator("noise").initial_seed() == 950606287995557211
    assert step.integer(0, 2**31 - 1, "weights") == 2117765973
    assert step.integers(4, 1000, "pool").tolist() == [262, 280, 451, 92]
    assert step.choose(3, 50, "x").tolist() == [49, 37, 20]


@pytest.mark.parametrize(
    "other", [Stream(1, "a", 1), Stream(0, "b", 1), Stream(0, "a", 2), Stream(0, "a1"), Stream(0)]
)
def test_streams_of_other_names_differ(other: Stream) -> None:
    ours = Stream(0, "a", 1).bits(np.arange(100), 0)
    assert not np.isin(ours, other.bits(np.arange(100), 0)).any()


def test_draws_are_uniform_and_independent() -> None:
    stream = Stream(5, "uniform")
    table = stream.below(24, np.arange(4000)[:, None], np.arange(25)[None])
    counts = np.bincount(table.ravel(), minlength=24)
    expected = table.size / 24
    # 23 degrees of freedom: beyond 60 once in 40,000 streams.
    assert ((counts - expected) ** 2 / expected).sum() < 60
    # Neighbouring counters and neighbouring problems as pairs: 575 degrees of freedom.
    for left, right in [(table[:, :-1], table[:, 1:]), (table[:-1], table[1:])]:
        pairs = np.bincount((left * 24 + right).ravel(), minlength=576)
        share = left.size / 576
        assert ((pairs - share) ** 2 / share).sum() < 575 + 5 * np.sqrt(2 * 575)


def test_bounds_broadcast_and_hold() -> None:
    bounds = np.array([1, 2, 3, 2**32])
    values = Stream(0, "x").below(bounds, np.arange(500)[:, None], 0)
    assert values.shape == (500, 4)
    assert (values >= 0).all()
    assert (values < bounds).all()
    assert set(values[:, 2]) == {0, 1, 2}
    assert Stream(0, "x").below(bounds, 0, 0).shape == (4,)


@pytest.mark.parametrize("seed", [-1, 2**64, 1.0, "1", None, True, np.int64(-3), np.float32(2)])
def test_wrong_seeds_are_refused(seed: Any) -> None:
    with pytest.raises(TaskError, match="whole number from 0"):
        Stream(seed, "x")


seeds = st.integers(0, 2**32)
numbers = st.integers(0, 10**6)


@given(seeds, numbers, st.integers(1, 40))
def test_choose_is_without_replacement_and_repeatable(seed: int, step: int, of: int) -> None:
    chosen = StepRng(seed, step).choose(of // 2 + 1, of, "slots").tolist()
    assert len(set(chosen)) == len(chosen) == of // 2 + 1
    assert set(chosen) <= set(range(of))
    assert StepRng(seed, step).choose(of // 2 + 1, of, "slots").tolist() == chosen


@given(st.integers(1, 30), seeds)
def test_every_epoch_is_a_permutation(problems: int, seed: int) -> None:
    order = Shuffle(problems, seed)
    for epoch in range(3):
        seen = order.take(epoch * problems, problems)
        assert sorted(seen.tolist()) == list(range(problems))


@given(st.integers(1, 12), seeds, st.integers(0, 40), st.integers(0, 40))
def test_take_in_parts_equals_take_at_once(
    problems: int, seed: int, first: int, count: int
) -> None:
    whole = Shuffle(problems, seed).take(0, first + count).tolist() if first + count else []
    assert len(whole) == first + count
    if count:
        assert Shuffle(problems, seed).take(first, count).tolist() == whole[first:]
