"""The fast form of a network computes what the plain form computes, gradients included."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from iterant.engine import State, last, think
from iterant.nets import DeepThinking, PaperConfig, build
from iterant.nets.fused import Fused, can_fuse


def gradients(net: DeepThinking) -> dict[str, Tensor]:
    made = {name: weight.grad for name, weight in net.named_parameters()}
    net.zero_grad()
    return {name: gradient.clone() for name, gradient in made.items() if gradient is not None}


@pytest.mark.parametrize("dims", [1, 2])
@pytest.mark.parametrize("recall", [False, True])
@pytest.mark.parametrize("resumed", [False, True])
@pytest.mark.parametrize("bounded", [False, True])
def test_logits_and_gradients_equal_the_plain_network(
    dims: int, recall: bool, resumed: bool, bounded: bool
) -> None:
    config = PaperConfig(
        dims=dims, channels=3, width=8, recall=recall, recall_relu=dims == 1, bounded=bounded
    )
    net = build(config.kind, config, seed=5)
    assert isinstance(net, DeepThinking)
    net = net.double()
    generator = torch.Generator().manual_seed(dims)
    x = torch.randn(3, 3, *[6] * dims, generator=generator, dtype=torch.float64)
    phi = torch.rand(3, 8, *[6] * dims, generator=generator, dtype=torch.float64)
    state = State(phi, 7) if resumed else None
    plain = last(think(net, x, steps=5, state=state)).logits
    torch.autograd.backward(plain.square().sum())
    wanted = gradients(net)
    fast = Fused(net)
    logits = last(think(fast, x, steps=5, state=state)).logits
    torch.autograd.backward(logits.square().sum())
    fast.flush()
    got = gradients(net)
    assert (logits - plain).abs().max() < 1e-12
    assert got.keys() == wanted.keys()
    for name, gradient in wanted.items():
        assert (got[name] - gradient).norm() <= 1e-12 * gradient.norm(), name


def test_what_cannot_be_fused_is_known() -> None:
    plain = {"dims": 1, "channels": 1, "width": 4}
    assert can_fuse(build("deep-thinking", plain))
    assert not can_fuse(build("deep-thinking", {**plain, "group_norm": True}))
    assert not can_fuse(build("feed-forward", {**plain, "depth": 2}))
