"""Networks on strings by matrix products compute what the plain networks compute.

On the CPU the products are plain torch, which tests everything around the Triton kernels; the
kernels themselves are compared with it where Triton is installed (interpreted, without a GPU).
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from iterant.nets import DeepThinking, PaperConfig, build
from iterant.nets.fast.deep_thinking import Fused
from iterant.nets.fast.hopper.program import tiled
from iterant.nets.fast.hopper.rows import Rows, aligned, kernel_gradients
from iterant.nets.fast.strings import FusedStrings, fused

DOUBLE = torch.float64


def random(*shape: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=DOUBLE)


def network(*, recall: bool = True, relu: bool = True, blocks: int = 2) -> DeepThinking:
    config = PaperConfig(
        dims=1, channels=3, width=16, recall=recall, recall_relu=relu, head=(16, 8), blocks=blocks
    )
    net = build(config.kind, config, seed=5)
    assert isinstance(net, DeepThinking)
    return net.double()


def gradients(net: DeepThinking) -> dict[str, Tensor]:
    made = {name: weight.grad for name, weight in net.named_parameters()}
    net.zero_grad()
    return {name: gradient.clone() for name, gradient in made.items() if gradient is not None}


@pytest.mark.parametrize(("strings", "length", "channels"), [(1, 1, 1), (5, 9, 8), (40, 12, 3)])
def test_packing_keeps_strings_apart(strings: int, length: int, channels: int) -> None:
    x = random(strings, channels, length)
    rows = Rows.of(x)
    packed = rows.pack(x, aligned(channels))
    assert packed.shape == (rows.count, aligned(channels))
    assert rows.count % 128 == 0
    assert torch.equal(rows.unpack(packed, channels), x)
    assert packed.abs().sum() == x.abs().sum()  # all else is zero
    assert not packed[:: length + 1].any()
    assert not packed[strings * (length + 1) :].any()


def test_what_was_unpacked_is_not_packed_again() -> None:
    rows = Rows(3, 5)
    packed = rows.pack(random(3, 8, 5), 8)
    assert rows.pack(rows.unpack(packed), 8) is packed
    assert rows.pack(rows.unpack(packed) + 0, 8) is not packed
    assert rows.pack(rows.unpack(packed, 4), 8) is not packed
    assert Rows(3, 4).pack(rows.unpack(packed)[:, :, :4], 8) is not packed


def test_convolutions_of_rows_are_convolutions_of_strings() -> None:
    x, weight = random(5, 8, 9), random(16, 8, 3, seed=1)
    more, sign = random(5, 16, 9, seed=2), random(5, 16, 9, seed=3)
    rows = Rows.of(x)
    kernel = weight.transpose(1, 2).reshape(16, -1)
    out = torch.full((rows.count, 16), torch.nan, dtype=DOUBLE)
    plain = torch.conv1d(x, weight, padding=1)
    added, signs = rows.pack(more, 16), rows.pack(sign, 16)
    wanted = [plain, (plain + more).relu(), torch.where(sign > 0, plain, 0),
              torch.where(sign > 0, plain + more, 0)]  # fmt: skip
    got = [
        rows.convolve(rows.pack(x, 8), kernel, out.clone()),
        rows.convolve(rows.pack(x, 8), kernel, out.clone(), added=added, relu=True),
        rows.convolve(rows.pack(x, 8), kernel, out.clone(), sign=signs),
        rows.convolve(rows.pack(x, 8), kernel, out.clone(), added=added, sign=signs),
    ]
    for y, expected in zip(got, wanted, strict=True):
        assert (rows.unpack(y) - expected).abs().max() < 1e-12
        assert (y.abs().sum() - expected.abs().sum()).abs() < 1e-9  # all else is zero


@pytest.mark.parametrize("recall", [False, True])
@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("blocks", [1, 2])
def test_a_stretch_and_its_gradients_are_those_of_the_plain_network(
    recall: bool, relu: bool, blocks: int
) -> None:
    net = network(recall=recall, relu=relu, blocks=blocks)
    x, aims = random(3, 3, 6), random(4, 3, 16, 6, seed=1)
    outcome = {}
    for kind in ("plain", "strings"):
        fast = FusedStrings(net) if kind == "strings" else None
        it = fast or net
        # Negative features, such as noise, are a start like any other.
        start = random(3, 16, 6, seed=2).requires_grad_()
        memory, states = it.read(x), [it.start(x) + start]
        if fast is not None:
            states += fast.segment(states[0], memory, 4)
        else:
            for index in range(4):
                states.append(it.step(states[-1], memory, index))
        # Some features are used on the way, one of them not at all.
        loss = it.answer(states[-1]).square().sum() + it.answer(states[2]).cos().sum()
        loss = loss + sum((states[i] * aims[i]).sum() for i in (0, 1, 2))
        torch.autograd.backward(loss)
        if fast is not None:
            fast.flush()
        assert start.grad is not None
        outcome[kind] = {**gradients(net), "start": start.grad, "end": states[-1].detach()}
    assert outcome["plain"].keys() == outcome["strings"].keys()
    for name, wanted in outcome["plain"].items():
        got = outcome["strings"][name]
        assert wanted.norm() > 0, name
        assert (got - wanted).norm() <= 1e-11 * wanted.norm(), name


def test_without_gradients_a_stretch_gives_its_end() -> None:
    net, x = network(), random(3, 3, 6)
    fast = FusedStrings(net)
    with torch.no_grad():
        memory, wanted = net.read(x), net.start(x)
        for index in range(5):
            wanted = net.step(wanted, memory, index)
        ends = fast.segment(fast.start(x), fast.read(x), 5)
        stepped = fast.step(fast.step(fast.start(x), fast.read(x), 0), fast.read(x), 1)
        two = net.step(net.step(net.start(x), memory, 0), memory, 1)
    assert len(ends) == 1
    assert (ends[0] - wanted).abs().max() < 1e-12
    assert (stepped - two).abs().max() < 1e-12


def test_pinned_kernels_follow_the_weights_when_refreshed() -> None:
    net, x = network(), random(3, 3, 6)
    fast = FusedStrings(net)
    fast.pin()
    with torch.no_grad():
        before = fast.answer(fast.start(x))
        for weight in net.parameters():
            weight.mul_(1.1)
    fast.refresh()
    loss = fast.answer(fast.segment(fast.start(x), fast.read(x), 2)[-1]).square().sum()
    torch.autograd.backward(loss)
    fast.flush()
    got = gradients(net)
    states = net.step(net.step(net.start(x), net.read(x), 0), net.read(x), 1)
    torch.autograd.backward(net.answer(states).square().sum())
    for name, wanted in gradients(net).items():
        assert (got[name] - wanted).norm() <= 1e-11 * wanted.norm(), name
    with torch.no_grad():
        assert not torch.allclose(before, net.answer(net.start(x)))


def test_the_form_follows_from_network_and_machine() -> None:
    assert type(fused(network())) is Fused  # a CPU has no use for the other
    two = build("deep-thinking", {"dims": 2, "channels": 3, "width": 128})
    assert type(fused(two)) is Fused
    normed = {"dims": 1, "channels": 1, "width": 4, "group_norm": True}
    assert fused(build("deep-thinking", normed)) is None


@pytest.mark.parametrize(("width", "kind"), [(120, Fused), (300, Fused), (304, FusedStrings)])
def test_rows_are_whole_pieces(
    monkeypatch: pytest.MonkeyPatch, width: int, kind: type[Fused]
) -> None:
    monkeypatch.setattr("iterant.nets.fast.strings.has_kernels", lambda tensor: True)
    net = build("deep-thinking", {"dims": 1, "channels": 1, "width": width})
    assert type(fused(net)) is kind


def test_the_kernels_compute_what_plain_torch_computes(monkeypatch: pytest.MonkeyPatch) -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cpu":
        monkeypatch.setenv("TRITON_INTERPRET", "1")
    kernels = pytest.importorskip(
        "iterant.nets.fast.hopper.kernels", reason="Triton is not installed", exc_type=ImportError
    )
    x, weight = random(5, 8, 9).half().to(device), random(16, 8, 3, seed=1).half().to(device)
    more, sign = (random(5, 16, 9, seed=seed).half().to(device) for seed in (2, 3))
    rows = Rows.of(x)
    kernel = weight.transpose(1, 2).reshape(16, -1)
    parts = {"added": rows.pack(more, 16), "sign": rows.pack(sign, 16)}
    cases: list[dict[str, Any]] = [
        {},
        {"relu": True},
        {"added": parts["added"], "relu": True},
        parts,
    ]
    for given in cases:
        out = torch.full((rows.count, 16), torch.nan, dtype=torch.float16, device=device)
        kernels.convolve(rows.pack(x, 8), kernel, out, strings=5, period=10, **given)
        wide: dict[str, Any] = {
            key: v.double() if isinstance(v, Tensor) else v for key, v in given.items()
        }
        wanted = rows.convolve(rows.pack(x, 8).double(), kernel.double(), out.double(), **wide)
        assert (out.double() - wanted).norm() <= 1e-3 * wanted.norm()
    stack = torch.stack([rows.pack(x, 8), rows.pack(x.flip(0), 8)])
    arriving = torch.stack([rows.pack(more, 16), rows.pack(sign, 16)])
    made = torch.full((2, 16, 24), torch.nan, device=device)
    kernels.kernel_gradients(stack, arriving, made)
    wanted = kernel_gradients(stack.double(), arriving.double())
    assert (made - wanted).norm() <= 1e-3 * wanted.norm()


def test_tiles_hold_blocks_of_eight_by_eight() -> None:
    kernel = random(160, 160, 3)
    tiles = tiled(kernel, 160)
    assert tiles.shape == (2, 2, 3, 10, 10, 8, 8)
    generator = torch.Generator().manual_seed(0)
    for _ in range(50):
        tile, chunk, tap, k8, n8, n, k = (
            int(torch.randint(size, (), generator=generator)) for size in tiles.shape
        )
        place = tile * 80 + n8 * 8 + n, chunk * 80 + k8 * 8 + k, tap
        assert tiles[tile, chunk, tap, k8, n8, n, k] == kernel[place]


def hopper() -> bool:
    return torch.cuda.is_available() and torch.cuda.get_device_capability() == (9, 0)


@pytest.mark.skipif(not hopper(), reason="the program is for Hopper GPUs")
@pytest.mark.parametrize("recall", [True, False])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_program_computes_what_single_kernels_compute(dtype: torch.dtype, recall: bool) -> None:
    config = PaperConfig(
        dims=1, channels=1, width=160, recall=recall, recall_relu=recall, head=(160, 80)
    )
    net = build(config.kind, config, seed=5)
    assert isinstance(net, DeepThinking)
    fast = FusedStrings(net.to("cuda", dtype))
    fast.pin()
    x = random(8, 1, 32).to("cuda", dtype)
    assert fast.program(Rows.of(x), fast.start(x)) is not None
    ends, starts = [], []
    for single in (True, False):
        start = (fast.start(x) + 0.1).detach().requires_grad_()
        states = fast.segment(start, fast.read(x), 3)
        if single:
            node: Any = states[-1].grad_fn
            node.program = None
        torch.autograd.backward(states[-1].float().square().sum())
        assert start.grad is not None
        starts.append(start.grad.double())
        with torch.no_grad():
            walked = fast.segment(start, fast.read(x), 3)[-1]
            stepped = start
            for index in range(3):
                stepped = net.step(stepped, net.read(x), index)
        ends.append((walked.double(), stepped.double()))
    near = 0.002 if dtype == torch.float16 else 0.02
    assert (ends[0][0] - ends[0][1]).norm() <= near * ends[0][1].norm()
    assert (starts[1] - starts[0]).norm() <= near * starts[0].norm()
