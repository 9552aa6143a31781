"""The sparse form of a local rule computes what the rule computes, with less work."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from small_networks import local_rule, maze_inputs
from torch import Tensor

import iterant
from iterant.engine import After, last, think
from iterant.errors import NetError
from iterant.halting import Resting, StableAnswer
from iterant.nets import LocalRule
from iterant.nets.fast import SparseRule, accelerate, threads
from iterant.nets.protocol import last_change_of

MESSAGES: dict[str, Any] = {"messages": True, "width": 24, "hidden": 80}
STRINGS: dict[str, Any] = {"dims": 1, "channels": 1, "stem": 1, "masked": False}
FORMS: list[dict[str, Any]] = [
    {},
    {"isotropic": False},
    MESSAGES,
    {**MESSAGES, "isotropic": False},
    {**MESSAGES, "masked": False},
    {**STRINGS, "isotropic": False, "readout": "argmax"},
]


def mixed() -> Tensor:
    """Mazes that take from 1 to dozens of iterations, two of them with fewer open cells."""
    inputs = maze_inputs(6, size=13)
    inputs[1, :, :, 12:] = 0  # half of it is wall
    inputs[4] = 0  # all of it is
    return inputs


@pytest.mark.parametrize("changes", FORMS, ids=str)
def test_every_iteration_is_that_of_the_dense_local_rule(changes: dict[str, Any]) -> None:
    net = local_rule(**changes)
    inputs = mixed() if net.config.dims == 2 else mixed()[:, :1, 12]
    fast = SparseRule(net)
    previous = fast.start(inputs)
    dense = think(net, inputs, steps=40, grad=False)
    for plain, quick in zip(dense, think(fast, inputs, steps=40, grad=False), strict=True):
        assert torch.allclose(plain.logits, quick.logits, atol=1e-12)
        reported = last_change_of(fast)
        assert reported is not None
        # An earlier iteration's features can be compared with: they are not overwritten.
        assert torch.equal(reported, (quick.features - previous).abs().flatten(1).amax(dim=1))
        previous = quick.features


@pytest.mark.parametrize("halting", [None, StableAnswer(5), Resting()])
def test_each_sample_stops_when_the_dense_rule_stops(
    halting: StableAnswer | Resting | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    net = iterant.load("mazes-messages")
    inputs = torch.cat([maze_inputs(8, size=13, seed=seed) for seed in range(2)]).float()
    inputs[3] = 0
    quick = iterant.solve(net, inputs, max_steps=400, rule=halting)
    monkeypatch.setattr("iterant.solving.accelerate", lambda net, *_, **__: net)
    plain = iterant.solve(net, inputs, max_steps=400, rule=halting)
    assert torch.equal(quick.prediction, plain.prediction)
    assert torch.equal(quick.settled, plain.settled)
    assert torch.equal(quick.steps, plain.steps)
    assert len(set(quick.steps.tolist())) > 4


def test_cells_at_rest_are_not_computed_again() -> None:
    net, inputs = local_rule(**MESSAGES), maze_inputs(4, size=13)
    fast = SparseRule(net)
    with torch.no_grad():
        half = last(think(fast, inputs, steps=400))
        updates = fast.updates_per_cell
        last(think(fast, inputs, steps=400, state=half.state))
        assert fast.last_change is not None
        assert not fast.last_change.any()
        assert fast.updates_per_cell == updates < 100
        rest = last(think(net, inputs, steps=400))
        again = net.step(rest.features, net.read(inputs), 400)
    assert float((again - rest.features).abs().max()) < 1e-14


def test_interventions_on_features_apply() -> None:
    net, inputs = local_rule(), mixed()
    fast = SparseRule(net)
    halve = After(20, features=lambda features: features / 2)
    with torch.no_grad():
        plain = last(think(net, inputs, steps=25, intervene=[halve]))
        quick = last(think(fast, inputs, steps=25, intervene=[halve]))
        assert torch.allclose(plain.logits, quick.logits, atol=1e-12)
        # Features written where there is no cell have no effect, as in the rule itself.
        noisy = quick.features + 1
        cleared = fast.step(noisy, fast.read(inputs), 25)
    assert not cleared[4].any()
    assert not cleared[:, -1].any()


def test_features_that_were_overwritten_are_refused() -> None:
    net, inputs = local_rule(), maze_inputs(2)
    fast = accelerate(net, inputs, reuse=True)
    with torch.no_grad():
        thoughts = think(fast, inputs, steps=3)
        first = next(thoughts)
        assert torch.equal(first.prediction, next(think(net, inputs, steps=1)).prediction)
        stale = next(thoughts)
        next(thoughts)
        with pytest.raises(NetError, match="overwritten"):
            _ = stale.prediction


def test_other_inputs_must_be_read_first() -> None:
    net, inputs = local_rule(), maze_inputs(2)
    fast = SparseRule(net)
    memory, features = fast.read(inputs), fast.start(inputs)
    fast.read(maze_inputs(2, seed=6))
    with pytest.raises(NetError, match="read them again"):
        fast.step(features, memory, 0)
    fast.read(maze_inputs(3))
    with pytest.raises(NetError, match="other inputs"):
        fast.answer(features)


@pytest.mark.parametrize("changes", FORMS[:3], ids=str)
def test_nan_counts_as_changed(changes: dict[str, Any]) -> None:
    net, inputs = local_rule(**changes), maze_inputs(2)
    with torch.no_grad():
        for weight in net.mix.parameters():
            weight.fill_(torch.nan)
        fast = SparseRule(net)
        last(think(fast, inputs, steps=5))
    assert fast.last_change is not None
    assert fast.last_change.isnan().all()
    assert not iterant.solve(net, inputs, max_steps=20).settled.any()


def test_accelerate_chooses_it_for_local_rules_on_a_cpu() -> None:
    inputs, net = maze_inputs(2), local_rule()
    other = local_rule()
    other.__class__ = type("Other", (LocalRule,), {})  # may compute something else
    assert isinstance(accelerate(net, inputs), SparseRule)
    assert accelerate(net, inputs.to("meta")) is net
    assert accelerate(other, inputs) is other


def test_threads_are_restored() -> None:
    net, before = local_rule(), torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with threads(SparseRule(net)):
            assert torch.get_num_threads() == 1
        assert torch.get_num_threads() == 2
        with threads(net):
            assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
