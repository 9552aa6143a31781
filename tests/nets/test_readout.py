"""Readouts, against slow loops."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from iterant.nets import Argmax, ArgmaxOpen, TwoBest


def test_walls_are_0_and_do_not_count() -> None:
    inputs = torch.zeros(1, 3, 1, 4)
    inputs[0, :, 0, 1] = 1  # free
    inputs[0, 1, 0, 2] = 1  # start: green alone
    inputs[0, 0, 0, 3] = 1  # end: red alone
    logits = torch.zeros(1, 2, 1, 4)
    logits[:, 1] = 5
    assert ArgmaxOpen().counted(inputs).tolist() == [[[False, True, True, True]]]
    assert ArgmaxOpen().predict(logits, inputs).tolist() == [[[0, 1, 1, 1]]]


@given(
    st.lists(st.integers(-3, 3), min_size=12, max_size=12),
    st.lists(st.integers(-3, 3), min_size=12, max_size=12),
)
def test_two_best_against_sorting(zero: list[int], one: list[int]) -> None:
    logits = torch.tensor([zero, one], dtype=torch.float32).view(1, 2, 3, 4)
    prediction = TwoBest().predict(logits, torch.zeros(1, 12, 3, 4))
    # Highest score first, the earlier position on a tie.
    best = sorted(range(12), key=lambda position: (-one[position], position))[:2]
    assert prediction.sum() == 2
    assert sorted(prediction.flatten().nonzero().flatten().tolist()) == sorted(best)


@pytest.mark.parametrize("classes", [2, 4])
@given(
    st.lists(st.sampled_from([-1.0, 0.0, 2.0, float("inf"), float("nan")]), min_size=8, max_size=8)
)
def test_classes_against_argmax(classes: int, values: list[float]) -> None:
    logits = torch.tensor(values).view(1, classes, -1)
    inputs = torch.ones(1, 1, logits.shape[2])
    inputs[..., 1] = 0
    wanted = logits.argmax(dim=1)
    assert torch.equal(Argmax().predict(logits, inputs), wanted)
    assert Argmax().counted(inputs) is None
    assert torch.equal(ArgmaxOpen().predict(logits, inputs), wanted * (inputs[:, 0] > 0))
