"""Small networks and problems that the laws are tested on: every kind, for every task."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

import iterant
from iterant import registry
from iterant.nets import VARIANTS, LocalRule, Net, build, paper_net
from iterant.tasks.protocol import Batch, Size

SMALL: dict[str, tuple[Size, int]] = {"prefix-sums": (12, 4), "mazes": (5, 4), "chess": (0, 4)}
"""A size that is quick, and how many problems; chess takes its whole shipped sample."""

PAIRS = [(p, variant) for p in registry.known("task") for variant in (*VARIANTS, "local-rule")]
"""Every task with every architecture."""


def small_net(problem: str, variant: str, *, seed: int = 1, **changes: Any) -> Net:
    """One of the networks, narrow and in float64."""
    if variant == "local-rule":
        spec = iterant.task(problem).spec
        shape = {"dims": spec.dims, "channels": spec.channels, "stem": spec.square}
        rule = build("local-rule", {**shape, "readout": spec.readout, **changes}, seed=seed)
        assert isinstance(rule, nn.Module)
        return rule.double()
    config = replace(paper_net(problem, variant), width=8, head=(6, 4), **changes)
    if variant.startswith("ff"):
        config = replace(config, depth=12)  # type: ignore[call-arg]
    net = build(config.kind, config, seed=seed)
    assert isinstance(net, nn.Module)
    return net.double()


def small_batch(problem: str) -> Batch:
    """A few small problems, inputs in float64."""
    size, count = SMALL[problem]
    batch = iterant.task(problem).sample(count, size=size or None, seed=3)
    return Batch(batch.inputs.double(), batch.targets, batch.extras)


def local_rule(seed: int = 4, **changes: Any) -> LocalRule:
    """A local rule for mazes with random weights, in float64."""
    config = {"dims": 2, "channels": 3, "stem": 2, "masked": True, "readout": "argmax-open"}
    net = build("local-rule", {**config, **changes}, seed=seed)
    assert isinstance(net, LocalRule)
    return net.double()


def maze_inputs(count: int = 3, size: int = 9, seed: int = 5) -> Tensor:
    """Inputs of mazes, in float64."""
    return iterant.task("mazes").sample(count, size=size, seed=seed).inputs.double()


class Ticking:
    """A network built by hand: features count iterations, the answer is their parity.

    It stops changing after ``stop`` iterations where the input says so, so that every halting
    rule has a known moment.
    """

    def __init__(self) -> None:
        self.answers = 0
        self.reads = 0

    def read(self, inputs: Tensor) -> Tensor:
        self.reads += 1
        return inputs

    def start(self, inputs: Tensor) -> Tensor:
        return torch.zeros_like(inputs)

    def step(self, features: Tensor, memory: Tensor | None, index: int) -> Tensor:
        assert memory is not None
        return torch.minimum(features + 1, memory)

    def answer(self, features: Tensor) -> Tensor:
        self.answers += 1
        odd = features[:, 0] % 2
        return torch.stack([1 - odd, odd], dim=1)
