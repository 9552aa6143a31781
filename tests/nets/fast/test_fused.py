"""The fused form of the paper's networks computes what they compute, gradients included."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from iterant.engine import State, last, think
from iterant.nets import DeepThinking, FeedForward, FeedForwardConfig, PaperConfig, build
from iterant.nets.fast import fused
from iterant.nets.fast.deep_thinking import Fused, Layer, Tape


def random(*shape: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def network(kind: str = "deep-thinking", **changes: object) -> Any:
    if kind == "feed-forward":
        changes = {"recall": False, "depth": 4, **changes}
    config = {"dims": 1, "channels": 3, "width": 16, "head": (16, 8), **changes}
    return build(kind, config, seed=5).double()  # type: ignore[attr-defined]


def gradients(net: nn.Module) -> dict[str, Tensor]:
    """The gradients of all weights that have one, which are then removed."""
    weights = [(name, weight.grad) for name, weight in net.named_parameters()]
    net.zero_grad()
    return {name: gradient for name, gradient in weights if gradient is not None}


def test_which_networks_have_this_form() -> None:
    for kind in ("deep-thinking", "feed-forward"):
        assert type(fused(network(kind))) is Fused
        other = network(kind)
        other.__class__ = type("Other", (type(other),), {})  # may compute something else
        for net in (network(kind, group_norm=True), other):
            assert fused(net) is net


CONFIGS = [
    *(
        PaperConfig(dims=dims, channels=3, width=8, recall=recall, recall_relu=dims == 1,
                    bounded=bounded)
        for dims in (1, 2) for recall in (False, True) for bounded in (False, True)
    ),
    *(
        FeedForwardConfig(dims=dims, channels=3, width=8, recall=recall, blocks=blocks, depth=4)
        for dims in (1, 2) for recall in (False, True) for blocks in (1, 2)
    ),
]  # fmt: skip


@pytest.mark.parametrize("resumed", [False, True])
@pytest.mark.parametrize("config", CONFIGS, ids=str)
def test_logits_and_gradients_equal_the_plain_network(config: PaperConfig, resumed: bool) -> None:
    net = build(config.kind, config, seed=5)
    assert isinstance(net, DeepThinking | FeedForward)
    net, space = net.double(), [6] * config.dims
    x = random(3, config.channels, *space, seed=config.dims)
    state = State(random(3, 8, *space, seed=7).abs(), 1) if resumed else None
    plain = last(think(net, x, steps=3, state=state)).logits
    torch.autograd.backward(plain.square().sum())
    wanted = gradients(net)
    fast = Fused(net)
    logits = last(think(fast, x, steps=3, state=state)).logits
    torch.autograd.backward(logits.square().sum())
    fast.flush()
    got = gradients(net)
    assert (logits - plain).abs().max() < 1e-12
    assert got.keys() == wanted.keys()
    for name, gradient in wanted.items():
        assert gradient.norm() > 0, name
        assert (got[name] - gradient).norm() <= 1e-12 * gradient.norm(), name


def test_gradients_are_summed_in_float32() -> None:
    weight = torch.zeros(1, 1, 1, 1, dtype=torch.bfloat16, requires_grad=True)
    layer, tape = Layer(weight), Tape()
    for part in (1.0, *[2**-9] * 512):  # bfloat16 has eight bits: 1 + 2**-9 is 1 there
        tape.record(layer, torch.ones_like(layer.kernel), torch.full_like(layer.kernel, part))
    tape.flush()
    assert weight.grad is not None
    assert weight.grad.item() == 2.0
