"""A rule that thinks only where something changes answers as the rule itself does."""

from __future__ import annotations

import pytest
import torch
from thinking_rules import rule

import iterant
from iterant.errors import NetError
from iterant.nets import Net, build
from iterant.nets.wakeful import Wakeful, quickest


@pytest.mark.parametrize("isotropic", [True, False])
def test_every_iteration_is_that_of_the_rule(isotropic: bool) -> None:
    net = rule(isotropic=isotropic)
    inputs = iterant.task("mazes").sample(1, size=9, seed=1).inputs.double()
    with torch.no_grad():
        plain = list(iterant.think(net, inputs, steps=40))
        quick = list(iterant.think(Wakeful(net, tolerance=0), inputs, steps=40))
    for one, other in zip(plain, quick, strict=True):
        is_open = one.features.abs().sum(dim=1)[0] > 0
        held = one.features[0].movedim(0, -1)[is_open]
        assert torch.allclose(held, other.features[0], atol=1e-12)
        assert torch.allclose(one.logits, other.logits, atol=1e-12)
        assert torch.equal(one.prediction, other.prediction)
    assert not torch.equal(quick[0].features, quick[1].features), "features are not overwritten"


def test_only_one_problem_that_nobody_meddles_with() -> None:
    net, task = rule(), iterant.task("mazes")
    pair = task.sample(2, size=5).inputs.double()
    with pytest.raises(NetError, match="one problem at a time"):
        next(iterant.think(Wakeful(net), pair, steps=1))
    quick = Wakeful(net)
    thought = next(iterant.think(quick, pair[:1], steps=2))
    with pytest.raises(NetError, match="not those that were given out"):
        quick.step(thought.features.clone(), None, 1)


def test_features_that_do_not_last_are_not_answered_from() -> None:
    net = rule()
    inputs = iterant.task("mazes").sample(1, size=9, seed=1).inputs.double()
    with torch.no_grad():
        thinking = iterant.think(Wakeful(net, tolerance=0, lasting=False), inputs, steps=3)
        plain = iterant.think(net, inputs, steps=3)
        first, second = next(thinking), next(plain)
        assert torch.equal(first.prediction, second.prediction)
        stale = next(thinking)
        next(thinking)
        with pytest.raises(NetError, match="written over"):
            _ = stale.prediction


@pytest.mark.parametrize("changes", [{}, {"messages": True, "width": 24, "hidden": 80}])
def test_what_moved_is_what_a_comparison_finds(changes: dict[str, object]) -> None:
    quick = Wakeful(rule(**changes), tolerance=0)
    assert quick.moved is None
    inputs = iterant.task("mazes").sample(1, size=9, seed=1).inputs.double()
    before = None
    with torch.no_grad():
        for thought in iterant.think(quick, inputs, steps=20):
            if before is not None:
                assert quick.moved == pytest.approx(float((thought.features - before).abs().max()))
            before = thought.features


@pytest.mark.parametrize("changes", [{}, {"messages": True, "width": 24, "hidden": 80}])
def test_it_is_at_rest_after_as_many_iterations_as_the_rule(changes: dict[str, object]) -> None:
    net = rule(**changes)
    if not changes:
        with torch.no_grad():  # a weaker rule forgets, so that it settles soon
            net.sight.weight.mul_(0.3)
    inputs = iterant.task("mazes").sample(1, size=9, seed=1).inputs.double()
    plain = iterant.solve(net, inputs)
    quick = iterant.solve(quickest(net, inputs), inputs)
    assert bool(plain.settled[0])
    assert bool(quick.settled[0])
    assert 2 < int(plain.steps[0]) == int(quick.steps[0]) < 500
    assert torch.equal(plain.prediction, quick.prediction)


def test_it_is_chosen_for_masked_local_rules_and_single_problems() -> None:
    inputs = iterant.task("mazes").sample(2, size=5).inputs
    net, unmasked = rule(), rule(masked=False)
    other: Net = build("deep-thinking", {"dims": 2, "channels": 3, "width": 4, "head": (4, 4)})
    assert isinstance(quickest(net, inputs[:1]), Wakeful)
    assert quickest(net, inputs) is net
    assert quickest(unmasked, inputs[:1]) is unmasked
    assert quickest(other, inputs[:1]) is other
