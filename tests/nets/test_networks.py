"""Laws of the paper's networks, their configurations, and readouts against slow loops."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from small_networks import PAIRS, small_batch, small_net
from torch import Tensor
from torch.nn import functional

from iterant.engine import last, think
from iterant.errors import DataError, NetError, UnknownName
from iterant.nets import (
    Argmax,
    ArgmaxOpen,
    DeepThinking,
    PaperConfig,
    TwoBest,
    build,
    catalogue,
    depth_of,
    paper_net,
)
from iterant.zoo import load


def plain_forward(net: DeepThinking, x: Tensor, steps: int) -> Tensor:
    """The paper's equations written out with concatenation, nothing shared with the package."""
    config = net.config
    convolve = {1: functional.conv1d, 2: functional.conv2d}[config.dims]
    weights = dict(net.named_parameters())

    def layer(name: str, value: Tensor) -> Tensor:
        return convolve(value, weights[name], padding=1)

    def norm(value: Tensor) -> Tensor:
        return functional.group_norm(value, 4) if config.group_norm else value

    phi = torch.relu(layer("projection.weight", x))
    for _ in range(steps):
        if config.recall:
            phi = layer("recall.weight", torch.cat([phi, x], dim=1))
            phi = torch.relu(phi) if config.recall_relu else phi
        for block in range(config.blocks):
            inner = torch.relu(norm(layer(f"block.{block}.conv1.weight", phi)))
            phi = torch.relu(norm(layer(f"block.{block}.conv2.weight", inner)) + phi)
        if config.bounded:
            phi = phi / ((phi**2).sum(dim=1, keepdim=True) / config.width + 1e-6) ** 0.5
    for index in range(0, 2 * len(config.head) + 1, 2):
        phi = layer(f"head.{index}.weight", torch.relu(phi) if index else phi)
    return phi


@pytest.mark.parametrize("dims", [1, 2])
@pytest.mark.parametrize("recall", [False, True])
@pytest.mark.parametrize("group_norm", [False, True])
@pytest.mark.parametrize("bounded", [False, True])
def test_the_network_is_the_papers_equations(
    dims: int, recall: bool, group_norm: bool, bounded: bool
) -> None:
    config = PaperConfig(dims=dims, channels=3, width=8, recall=recall, recall_relu=dims == 1,
                         group_norm=group_norm, bounded=bounded, head=(6, 4))  # fmt: skip
    net = build(config.kind, config, seed=3)
    assert isinstance(net, DeepThinking)
    net = net.double()
    x = torch.randn(2, 3, *[6] * dims, generator=torch.Generator().manual_seed(1)).double()
    logits = last(think(net, x, steps=4)).logits
    assert (logits - plain_forward(net, x, 4)).abs().max() < 1e-12


def test_parameter_counts_are_those_of_the_authors_code() -> None:
    counts = dict(catalogue())
    assert len(counts) == 12
    assert counts["prefix-sums dt-recall"] == 3_123_600
    assert counts["mazes dt-recall"] == 783_504
    assert counts["chess dt-recall"] == 12_056_976


def test_weights_are_drawn_from_the_seed() -> None:
    config = replace(paper_net("mazes"), width=8)
    nets: list[Any] = [build(config.kind, config, seed=seed) for seed in (1, 1, 2)]
    first, again, other = (net.projection.weight for net in nets)
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_a_configuration_as_json() -> None:
    config = replace(paper_net("chess", "ff-recall"), width=4)
    again: Any = build(config.kind, {**asdict(config), "head": list(config.head)})
    assert again.config == config


MESSAGES = {"kind": "local-rule", "messages": True, "hidden": 3}


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"dims": 3}, "1 or 2 dimensions"),
        ({"width": 0}, "width must be a whole number from 1 to 4,096, got 0"),
        ({"width": 6, "group_norm": True}, "multiple of 4: 6"),
        ({"kind": "feed-forward", "depth": 4096, "blocks": 4096}, "at most 4,096 blocks"),
        ({"head": [8] * 5000}, "at most 4,096 blocks"),
        ({"head": [8, 0]}, "head must be whole numbers from 1"),
        ({"width": "4"}, "width must be a whole number from 1"),
        ({"kind": "feed-forward", "depth": 0}, "depth must be a whole number from 1"),
        ({"kind": "local-rule", "stem": 3}, "1 or 2 pixels"),
        ({**MESSAGES, "width": 6}, "width must be a multiple of 4 .* got 6"),
        ({**MESSAGES, "width": 12, "hidden": 64}, "hidden must be a multiple of 3 .* got 64"),
        ({**MESSAGES, "width": 3600, "hidden": 3600}, "at most 1,048,576 weights"),
        ({"kind": "max-plus", "width": 3}, "come in pairs"),
    ],
)
def test_wrong_configurations(change: dict[str, Any], text: str) -> None:
    config = {"dims": 1, "channels": 1, "width": 4, **change}
    with pytest.raises(NetError, match=text):
        build(config.pop("kind", "deep-thinking"), config)


def test_unknown_fields_and_names() -> None:
    with pytest.raises(DataError, match="another version or edited"):
        build("deep-thinking", {"dims": 1, "chanels": 1, "width": 4})
    with pytest.raises(UnknownName, match="did you mean 'deep-thinking'"):
        build("deep-thinkin", {})
    with pytest.raises(UnknownName, match="did you mean 'dt-recall'"):
        paper_net("mazes", "dt-recal")


@pytest.mark.parametrize(("problem", "variant"), PAIRS)
def test_networks_say_whether_an_iteration_depends_on_its_index(problem: str, variant: str) -> None:
    """CUDA graphs rely on it."""
    net, x = small_net(problem, variant), small_batch(problem).inputs
    with torch.no_grad():
        memory, features = net.read(x), net.start(x) + 0.1
        same = torch.equal(net.step(features, memory, 0), net.step(features, memory, 7))
    assert getattr(net, "uses_index", True) is not same
    assert same == (depth_of(net) is None)


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


def test_a_printed_network_names_its_kind_and_size() -> None:
    assert "max-plus, 124 parameters" in repr(load("mazes"))
