"""The fused forms of the paper's networks compute what the networks compute, gradients included.

On the CPU the matrix products of strings are plain torch, which tests everything around the Triton
kernels. The kernels themselves are tested on a Hopper GPU: ``pytest tests/nets/fast`` there.
"""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from iterant.engine import State, last, think
from iterant.nets import DeepThinking, FeedForward, FeedForwardConfig, PaperConfig, build
from iterant.nets.fast import fuse_for_training
from iterant.nets.fast.deep_thinking import Fused, Layer, Tape
from iterant.nets.fast.strings import FusedStrings, Rows, fuse_strings, kernel_gradients

needs_hopper = pytest.mark.skipif(
    not torch.cuda.is_available() or torch.cuda.get_device_capability()[0] != 9,
    reason="needs a Hopper GPU",
)


def random(*shape: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def network(kind: str = "deep-thinking", **changes: object) -> Any:
    if kind == "feed-forward":
        changes = {"recall": False, "depth": 4, **changes}
    config = {"dims": 1, "channels": 3, "width": 16, "head": (16, 8), **changes}
    return build(kind, config, seed=5).double()  # type: ignore[attr-defined]


def gradients(net: nn.Module) -> dict[str, Tensor]:
    got = {
        name: weight.grad.clone()
        for name, weight in net.named_parameters()
        if weight.grad is not None
    }
    net.zero_grad()
    return got


CASES: list[dict[str, Any]] = [
    {},
    {"added": True, "relu": True},
    {"sign": True},
    {"added": True, "sign": True},
]


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("on_gpu", [False, pytest.param(True, marks=needs_hopper)])
def test_convolutions_of_rows_are_convolutions_of_strings(
    case: dict[str, Any], on_gpu: bool
) -> None:
    x, weight = random(5, 8, 9), random(16, 8, 3, seed=1)
    added, sign = random(5, 16, 9, seed=2), random(5, 16, 9, seed=3)
    wanted = torch.conv1d(x, weight, padding=1)
    wanted = wanted + added if "added" in case else wanted
    wanted = wanted.relu() if "relu" in case else wanted
    wanted = torch.where(sign > 0, wanted, 0) if "sign" in case else wanted
    rows = Rows(len(x), x.shape[2])

    def there(values: Tensor) -> Tensor:
        return values.to("cuda", torch.float16) if on_gpu else values

    out = there(torch.full((rows.count, 16), torch.nan, dtype=torch.float64))
    rows.convolve(
        there(rows.pack(x, 8)), there(weight.transpose(1, 2).reshape(16, -1)), out,
        added=there(rows.pack(added, 16)) if "added" in case else None,
        sign=there(rows.pack(sign, 16)) if "sign" in case else None,
        relu="relu" in case,
    )  # fmt: skip
    out = out.cpu().double()
    near = 1e-3 if on_gpu else 1e-12
    assert (rows.unpack(out) - wanted).norm() <= near * wanted.norm()
    rows.unpack(out).zero_()
    assert not out.any(), "rows that are no position are zero"


@needs_hopper
def test_kernel_gradients_on_the_gpu_are_those_of_plain_torch() -> None:
    rows = Rows(5, 9)
    x = torch.stack([rows.pack(random(5, 8, 9, seed=seed), 8) for seed in (0, 1)])
    gradient = torch.stack([rows.pack(random(5, 16, 9, seed=seed), 16) for seed in (2, 3)])
    wanted = kernel_gradients(x, gradient)
    got = kernel_gradients(x.to("cuda", torch.float16), gradient.to("cuda", torch.float16))
    assert got.dtype == torch.float32
    assert (got.cpu() - wanted).norm() <= 1e-3 * wanted.norm()


def results_of(net: Any, fast: FusedStrings | None, x: Tensor, steps: int = 4) -> dict[str, Tensor]:
    """Gradients of a loss on some states of a segment, and its end."""
    it = fast or net
    # Negative features, such as noise, are a start like any other.
    start = random(len(x), net.config.width, x.shape[2], seed=2).to(x).requires_grad_()
    memory, states = it.read(x), [it.start(x) + start]
    if fast is not None:
        states += fast.segment(states[0], memory, 1)
        states += fast.segment(states[1], memory, steps - 1, done=1)
    else:
        for index in range(steps):
            states.append(it.step(states[-1], memory, index))
    # Some features are used on the way, one of them not at all.
    loss = it.answer(states[-1]).float().square().sum() + it.answer(states[2]).cos().sum()
    aims = random(3, *start.shape, seed=1).to(x)
    loss = loss + sum((states[i] * aims[i]).sum() for i in (0, 1, 2))
    torch.autograd.backward(loss)
    if fast is not None:
        fast.flush()
    assert start.grad is not None
    return {**gradients(net), "start": start.grad, "end": states[-1].detach()}


NETWORKS: list[dict[str, Any]] = [
    {"kind": kind, "recall": recall, "recall_relu": relu, "blocks": blocks}
    for kind, recall, relu in (
        ("deep-thinking", True, True), ("deep-thinking", True, False),
        ("deep-thinking", False, False), ("feed-forward", False, False),
    )
    for blocks in (1, 2)
]  # fmt: skip


@pytest.mark.parametrize("changes", NETWORKS, ids=str)
@pytest.mark.parametrize("changed", [False, True])
def test_a_segment_and_its_gradients_equal_the_plain_network(
    changes: dict[str, Any], changed: bool
) -> None:
    net, x = network(**changes), random(3, 3, 6)
    fast = FusedStrings(net)
    if changed:
        with torch.no_grad():
            for weight in net.parameters():
                weight.mul_(1.1)
        fast.refresh()
    wanted, got = results_of(net, None, x), results_of(net, fast, x)
    assert got.keys() == wanted.keys()
    for name, value in wanted.items():
        assert value.norm() > 0, name
        assert (got[name] - value).norm() <= 1e-6 * value.norm(), name


@pytest.mark.parametrize("kind", ["deep-thinking", "feed-forward"])
def test_without_gradients_a_segment_returns_the_last_features(kind: str) -> None:
    net, x = network(kind), random(3, 3, 6)
    fast = FusedStrings(net)
    with torch.no_grad():
        memory, wanted = net.read(x), net.start(x)
        for index in range(3):
            wanted = net.step(wanted, memory, index)
        ends = fast.segment(fast.start(x), fast.read(x), 3)
        after = fast.step(wanted, memory, 3)
        assert len(ends) == 1
        assert (ends[0] - wanted).abs().max() < 1e-12
        assert (after - net.step(wanted, memory, 3)).abs().max() < 1e-12


def test_which_networks_have_this_form(monkeypatch: pytest.MonkeyPatch) -> None:
    def has_form(kind: str = "deep-thinking", **changes: object) -> bool:
        return fuse_strings(network(kind, **changes)) is not None

    assert type(fuse_for_training(network(width=128))) is Fused
    for kind in ("deep-thinking", "feed-forward"):
        assert fuse_for_training(network(kind, group_norm=True)) is None
        subclass = network(kind)
        subclass.__class__ = type("Other", (type(subclass),), {})  # may compute something else
        assert fuse_for_training(subclass) is None
    assert not has_form(width=128), "a CPU has no kernels"
    monkeypatch.setattr("iterant.nets.fast.strings.has_kernels", lambda tensor: True)
    assert has_form(width=128)
    assert has_form("feed-forward", width=128)
    assert not has_form("feed-forward", width=128, recall=True)
    assert not has_form(width=120)
    assert not has_form(width=300), "rows are whole pieces of 16 bytes"
    assert not has_form(width=128, bounded=True)
    assert not has_form(width=128, dims=2)


@needs_hopper
@pytest.mark.parametrize("changes", NETWORKS, ids=str)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_on_the_gpu_gradients_are_those_of_float32(
    changes: dict[str, Any], dtype: torch.dtype
) -> None:
    net, x = network(width=160, channels=1, **changes), random(8, 1, 32).sign()
    half = copy.deepcopy(net).to("cuda", dtype)
    fast = fuse_for_training(half)
    assert isinstance(fast, FusedStrings)
    wanted, got = results_of(net, None, x, 3), results_of(half, fast, x.to("cuda", dtype), 3)
    assert got.keys() == wanted.keys()
    for name, value in wanted.items():
        error = (got[name].cpu().double() - value).norm() / value.norm()
        assert error <= (0.05 if dtype == torch.float16 else 0.15), name


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
        tape.accumulate(layer, torch.full_like(weight, part))
    tape.flush()
    assert weight.grad is not None
    assert weight.grad.item() == 2.0
