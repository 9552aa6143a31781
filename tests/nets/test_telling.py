"""Messages that change are all that needs to be thought about."""

from __future__ import annotations

import pytest
import torch
from thinking_rules import plain, rule
from torch import Tensor

import iterant
from iterant.nets import LocalRule
from iterant.nets.active import Active
from iterant.nets.telling import Telling, attentive
from iterant.tasks.mazes.task import Mazes

MESSAGES: dict[str, object] = {"messages": True, "width": 24, "hidden": 80}


def talking(**changes: object) -> LocalRule:
    return rule(**{**MESSAGES, **changes})


def mazes(count: int = 3, size: int = 9) -> Tensor:
    return Mazes().sample(count, size=size, seed=5).inputs.double()


@pytest.mark.parametrize("masked", [True, False])
def test_without_tolerance_it_is_the_plain_iteration(masked: bool) -> None:
    net, inputs = talking(masked=masked), mazes()
    thinking = Telling(net, inputs, tolerance=0.0)
    for steps in (1, 2, 9, 40):
        thinking.go_on(steps - thinking.steps)
        assert thinking.steps == steps
        assert (thinking.features - plain(net, inputs, steps)).abs().max() < 1e-12


def test_strings_too() -> None:
    net = talking(dims=1, channels=1, stem=1, masked=False, width=12, hidden=15, readout="argmax")
    inputs = torch.randn(4, 1, 11, generator=torch.Generator().manual_seed(1)).double()
    thinking = Telling(net, inputs, tolerance=0.0)
    thinking.go_on(30)
    assert (thinking.features - plain(net, inputs, 30)).abs().max() < 1e-12


@pytest.mark.parametrize("count", [1, 4])
def test_it_rests_when_the_older_way_does_and_works_less(count: int) -> None:
    net, inputs = talking(), mazes(count, 13)
    ways = [Active(net, inputs, tolerance=1e-9), Telling(net, inputs, tolerance=1e-9)]
    for thinking in ways:
        thinking.go_on(1000)
        assert thinking.resting
    older, newer = ways
    assert newer.last == older.last < 400
    assert newer.squares == older.squares
    assert newer.worked < older.worked
    assert (newer.features - older.features).abs().max() < 1e-7
    worked = newer.worked
    newer.go_on(10_000)
    assert (newer.worked, newer.steps) == (worked, 11_000)


def test_what_is_at_rest_follows_from_what_was_told() -> None:
    net, inputs = talking(), mazes(2)
    thinking = Telling(net, inputs, tolerance=0.0)
    thinking.go_on(500)
    assert thinking.resting
    with torch.no_grad():
        once_more = net.step(thinking.features, net.read(inputs), 0)
    assert (once_more - thinking.features).abs().max() < 1e-12


def test_each_rule_gets_the_way_that_suits_it() -> None:
    inputs = mazes(1)
    assert type(attentive(talking(), inputs)) is Telling
    assert type(attentive(talking(isotropic=False), inputs)) is Active
    assert type(attentive(talking(messages=False), inputs)) is Active
    assert attentive(talking(), inputs, 0.5).tolerance == 0.5


@pytest.mark.parametrize("messages", [True, False])
def test_what_is_no_number_never_rests(messages: bool) -> None:
    net, inputs = talking() if messages else rule(), mazes(1)
    with torch.no_grad():
        for weight in net.mix.parameters():
            weight.fill_(torch.nan)
    thinking = attentive(net, inputs)
    thinking.go_on(5)
    assert not thinking.resting
    assert thinking.moved != thinking.moved  # is no number either
    assert not iterant.solve(net, inputs, max_steps=20).settled.any()
