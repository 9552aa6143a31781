"""Feed-forward networks by matrix products compute what the plain ones compute."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import Tensor

from iterant.errors import NetError
from iterant.nets import build
from iterant.nets.deep_thinking import FeedForward, FeedForwardConfig
from iterant.nets.fast.deep_thinking import Fused
from iterant.nets.fast.towers import FusedTower, fastest


def network(blocks: int = 2, *, recall: bool = False) -> FeedForward:
    config = FeedForwardConfig(
        dims=1, channels=3, width=16, recall=recall, head=(16, 8), blocks=blocks, depth=4
    )
    net = build(config.kind, config, seed=5)
    assert isinstance(net, FeedForward)
    return net.double()


def random(*shape: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def gradients(net: FeedForward) -> dict[str, Tensor]:
    made = {name: weight.grad for name, weight in net.named_parameters()}
    net.zero_grad()
    return {name: gradient.clone() for name, gradient in made.items() if gradient is not None}


@pytest.mark.parametrize("blocks", [1, 2])
@pytest.mark.parametrize("pinned", [False, True])
def test_features_and_gradients_are_those_of_the_plain_network(blocks: int, pinned: bool) -> None:
    net, x, aims = network(blocks), random(3, 3, 6), random(3, 3, 16, 6, seed=1)
    outcome = {}
    for kind in ("plain", "tower"):
        fast = FusedTower(net) if kind == "tower" else None
        if fast is not None and pinned:
            fast.pin()
        it = fast or net
        start = random(3, 16, 6, seed=2).requires_grad_()
        states = [it.start(x) + start]
        if fast is not None:
            states += fast.segment(states[0], None, 1)
            states += fast.segment(states[1], None, 3, done=1)
        else:
            for index in range(4):
                states.append(it.step(states[-1], None, index))
        # Some features are used on the way, one of them not at all.
        loss = it.answer(states[-1]).square().sum() + it.answer(states[2]).cos().sum()
        loss = loss + sum((states[i] * aims[i]).sum() for i in (0, 1, 2))
        torch.autograd.backward(loss)
        if fast is not None:
            fast.flush()
        assert start.grad is not None
        outcome[kind] = {**gradients(net), "start": start.grad, "end": states[-1].detach()}
    assert outcome["plain"].keys() == outcome["tower"].keys()
    for name, wanted in outcome["plain"].items():
        assert wanted.norm() > 0, name
        assert (outcome["tower"][name] - wanted).norm() <= 1e-11 * wanted.norm(), name


def test_without_gradients_a_stretch_gives_its_end() -> None:
    net, x = network(), random(3, 3, 6)
    fast = FusedTower(net)
    with torch.no_grad():
        wanted = net.step(net.step(net.start(x), None, 0), None, 1)
        ends = fast.segment(fast.start(x), None, 2)
        third = fast.step(wanted, None, 2)
        assert len(ends) == 1
        assert (ends[0] - wanted).abs().max() < 1e-12
        assert (third - net.step(wanted, None, 2)).abs().max() < 1e-12


def test_there_is_no_iteration_beyond_the_last() -> None:
    fast = FusedTower(network())
    with pytest.raises(NetError, match="has 4 iterations, asked for iteration 5"):
        fast.segment(fast.start(random(1, 3, 6)), None, 2, done=3)


def test_the_form_follows_from_network_and_machine() -> None:
    assert type(fastest(network())) is Fused  # a CPU has no use for a tower
    assert type(fastest(network(recall=True))) is Fused
    recurrent = build("deep-thinking", {"dims": 1, "channels": 3, "width": 16})
    assert type(fastest(recurrent)) is Fused


def hopper() -> bool:
    return torch.cuda.is_available() and torch.cuda.get_device_capability() == (9, 0)


@pytest.mark.skipif(not hopper(), reason="the kernels are for Hopper GPUs")
def test_the_kernels_give_the_gradients_of_plain_float32() -> None:
    config = FeedForwardConfig(dims=1, channels=1, width=160, recall=False, head=(160, 80), depth=3)
    net = build(config.kind, config, seed=5)
    assert isinstance(net, FeedForward)
    x = random(8, 1, 32).sign().float().to("cuda")
    found = []
    for dtype in (torch.float32, torch.float16):
        it = copy.deepcopy(net).to("cuda", dtype)
        fast = fastest(it)
        assert (type(fast) is FusedTower) == (dtype == torch.float16)
        start = it.start(x.to(dtype)).detach().requires_grad_()
        if isinstance(fast, FusedTower):
            fast.pin()
            end = fast.segment(start, None, 3)[-1]
        else:
            end = it.step(it.step(it.step(start, None, 0), None, 1), None, 2)
        torch.autograd.backward(end.float().square().sum())
        if fast is not None:
            fast.flush()
        assert start.grad is not None
        found.append({**gradients(it), "start": start.grad})
    assert found[0].keys() == found[1].keys()
    for name, wanted in found[0].items():
        got = found[1][name].double()
        assert (got - wanted.double()).norm() <= 0.01 * wanted.double().norm(), name
