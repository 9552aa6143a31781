"""Thinking where something changes is thinking everywhere, for less."""

from __future__ import annotations

import pytest
import torch
from thinking_rules import plain, rule

from iterant.nets.active import Active
from iterant.tasks.mazes.task import Mazes


@pytest.mark.parametrize("isotropic", [True, False])
@pytest.mark.parametrize("masked", [True, False])
def test_without_tolerance_it_is_the_plain_iteration(isotropic: bool, masked: bool) -> None:
    net = rule(isotropic=isotropic, masked=masked)
    inputs = Mazes().sample(3, size=9, seed=5).inputs.double()
    thinking = Active(net, inputs, tolerance=0.0)
    for steps in (1, 2, 9, 40):
        thinking.go_on(steps - thinking.steps)
        assert thinking.steps == steps
        assert (thinking.features - plain(net, inputs, steps)).abs().max() < 1e-12


def test_strings_too() -> None:
    net = rule(dims=1, channels=1, stem=1, masked=False, isotropic=False)
    inputs = torch.randn(4, 1, 11, generator=torch.Generator().manual_seed(1)).double()
    thinking = Active(net, inputs, tolerance=0.0)
    thinking.go_on(30)
    assert (thinking.features - plain(net, inputs, 30)).abs().max() < 1e-12


def test_squares_rest_and_then_cost_nothing() -> None:
    net = rule()
    with torch.no_grad():  # a weaker rule forgets, so that it settles soon
        net.sight.weight.mul_(0.3)
    inputs = Mazes().sample(2, size=9, seed=5).inputs.double()
    thinking = Active(net, inputs, tolerance=1e-9)
    thinking.go_on(1000)
    assert thinking.resting
    worked = thinking.worked
    assert worked < 200 * thinking.squares
    thinking.go_on(10_000)
    assert (thinking.worked, thinking.steps) == (worked, 11_000)
    assert (thinking.features - plain(net, inputs, 1000)).abs().max() < 1e-7


def test_only_open_squares_count() -> None:
    batch = Mazes().sample(2, size=9, seed=5)
    assert Active(rule(), batch.inputs.double()).squares == 2 * 49
