"""Random numbers of training are a function of seed, step and name."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from iterant.training.rng import Shuffle, StepRng

seeds = st.integers(0, 2**32)
numbers = st.integers(0, 10**6)


@given(seeds, numbers, st.integers(1, 40))
def test_choose_is_without_replacement_and_repeatable(seed: int, update: int, of: int) -> None:
    chosen = StepRng(seed, update).choose(of // 2 + 1, of, "slots").tolist()
    assert len(set(chosen)) == len(chosen) == of // 2 + 1
    assert set(chosen) <= set(range(of))
    assert StepRng(seed, update).choose(of // 2 + 1, of, "slots").tolist() == chosen


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
    integer = Shuffle(problems, seed).take(0, first + count).tolist() if first + count else []
    assert len(integer) == first + count
    if count:
        assert Shuffle(problems, seed).take(first, count).tolist() == integer[first:]
