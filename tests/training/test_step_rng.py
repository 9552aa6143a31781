"""Random numbers of training are a function of seed, step and name."""

from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st

from iterant.training.rng import Shuffle, StepRng

seeds = st.integers(0, 2**32)
numbers = st.integers(0, 10**6)


@given(seeds, numbers, st.integers(-5, 5), st.integers(0, 30))
def test_draws_depend_on_seed_step_and_name_only(
    seed: int, update: int, low: int, spread: int
) -> None:
    drawn = StepRng(seed, update).integer(low, low + spread, "prefix")
    StepRng(seed, update + 1).integer(0, 9, "prefix")
    assert low <= drawn <= low + spread
    assert StepRng(seed, update).integer(low, low + spread, "prefix") == drawn


@given(seeds, numbers, st.integers(1, 40))
def test_choose_is_without_replacement_and_repeatable(seed: int, update: int, of: int) -> None:
    chosen = StepRng(seed, update).choose(of // 2 + 1, of, "slots").tolist()
    assert len(set(chosen)) == len(chosen) == of // 2 + 1
    assert set(chosen) <= set(range(of))
    assert StepRng(seed, update).choose(of // 2 + 1, of, "slots").tolist() == chosen


def test_names_steps_and_seeds_draw_differently() -> None:
    def drawn(seed: int, update: int, what: str) -> list[float]:
        return torch.rand(4, generator=StepRng(seed, update).generator(what)).tolist()

    assert drawn(0, 1, "damage") == drawn(0, 1, "damage")
    others = [drawn(0, 2, "damage"), drawn(1, 1, "damage"), drawn(0, 1, "noise")]
    assert drawn(0, 1, "damage") not in others
    assert (
        StepRng(0, 1).integers(8, 1000, "a").tolist()
        != StepRng(0, 2).integers(8, 1000, "a").tolist()
    )


@given(st.integers(1, 30), seeds)
def test_every_epoch_is_a_permutation(problems: int, seed: int) -> None:
    order = Shuffle(problems, seed)
    for epoch in range(3):
        seen = order.take(epoch * problems, problems)
        assert sorted(seen.tolist()) == list(range(problems))


def test_epochs_and_seeds_shuffle_differently() -> None:
    order = Shuffle(50, 0)
    first, second = order.take(0, 50).tolist(), order.take(50, 50).tolist()
    assert first != second
    assert first != list(range(50))
    assert first != Shuffle(50, 1).take(0, 50).tolist()


@given(st.integers(1, 12), seeds, st.integers(0, 40), st.integers(0, 40))
def test_take_in_parts_equals_take_at_once(
    problems: int, seed: int, first: int, count: int
) -> None:
    integer = Shuffle(problems, seed).take(0, first + count).tolist() if first + count else []
    assert len(integer) == first + count
    if count:
        assert Shuffle(problems, seed).take(first, count).tolist() == integer[first:]
