"""Readouts, against slow loops."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from iterant.nets import Argmax, ArgmaxOpen, TwoBest


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
    inputs = torch.eye(3).repeat(1, 2)[None, :, : logits.shape[2]]
    inputs[..., 1] = 0  # a wall; other positions have one of the three channels
    is_open = torch.arange(logits.shape[2])[None] != 1
    wanted = logits.argmax(dim=1)
    assert torch.equal(Argmax().predict(logits, inputs), wanted)
    assert Argmax().counted(inputs) is None
    assert torch.equal(ArgmaxOpen().counted(inputs), is_open)
    assert torch.equal(ArgmaxOpen().predict(logits, inputs), wanted * is_open)
