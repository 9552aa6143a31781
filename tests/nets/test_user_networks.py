"""Networks that users add: checked before training with one-line errors, or registered."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import nan
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn

import iterant
from iterant import registry
from iterant.errors import NetError, UnknownName
from iterant.nets import build
from iterant.nets.deep_thinking import DeepThinking, PaperConfig
from iterant.nets.from_recipe import build_network
from iterant.nets.protocol import NetConfig, check_user_net
from iterant.tasks import PlainTask, Task, TaskSpec
from iterant.training.recipe import Recipe


class Plain(nn.Module):
    """A valid network, with dropout, which would change the random state."""

    def __init__(self, dims: int, channels: int) -> None:
        super().__init__()
        conv = {1: nn.Conv1d, 2: nn.Conv2d}[dims]
        self.look = conv(channels + 4, 4, 3, padding=1)
        self.head = conv(4, 2, 1)
        self.drop = nn.Dropout(0.5)

    def read(self, inputs: Tensor) -> Tensor | None:
        return inputs

    def start(self, inputs: Tensor) -> Tensor:
        return inputs.new_zeros(len(inputs), 4, *inputs.shape[2:])

    def step(self, features: Tensor, memory: Tensor | None, index: int) -> Tensor:
        assert memory is not None
        out: Tensor = self.drop(self.look(torch.cat([features, memory], dim=1)))
        return out

    def answer(self, features: Tensor) -> Tensor:
        out: Tensor = self.head(features)
        return out


def network_with(**methods: Callable[..., object]) -> type[Plain]:
    """`Plain` with these methods replaced, which a type checker would refuse."""
    return type("Changed", (Plain,), methods)


class NoDims(Plain):
    def __init__(self, width: int = 4) -> None:
        super().__init__(1, width)


FourClasses = network_with(answer=lambda self, features: features)
Growing = network_with(
    step=lambda self, features, memory, index: torch.cat([features, features], dim=1)
)
InPlace = network_with(step=lambda self, features, memory, index: features.add_(memory))
# Errors inside a method and NaN are left for later.
Failing = network_with(step=lambda self, features, memory, index: len(index))
NaNStart = network_with(start=lambda self, inputs: inputs.new_full((2, 4, *inputs.shape[2:]), nan))


def check(cls: type[Plain], dims: int, channels: int, classes: int) -> None:
    with torch.random.fork_rng(devices=[]):
        net = cls(dims, channels)
    check_user_net(net, "mine:Net", dims=dims, channels=channels, classes=classes)
    assert net.training


@pytest.mark.parametrize(
    ("cls", "classes"), [(Plain, 2), (Failing, 2), (NaNStart, 2), (FourClasses, 4)]
)
@pytest.mark.parametrize("dims", [1, 2])
def test_a_valid_network_passes_and_is_unchanged(cls: type[Plain], classes: int, dims: int) -> None:
    check(cls, dims, 4, classes)


@pytest.mark.parametrize(
    ("cls", "classes", "text"),
    [
        (FourClasses, 2, "wanted (2, 2, 8): a score for each of 2 classes at every position"),
        (FourClasses, 3, "wanted (2, 3, 8)"),
        (Growing, 2, "makes features of shape (2, 8, 8) from (2, 4, 8)"),
        (InPlace, 2, "step() of 'mine:Net' changes the features that it is given"),
    ],
)
def test_wrong_networks(cls: type[Plain], classes: int, text: str) -> None:
    with pytest.raises(NetError, match=re.escape(text)):
        check(cls, 1, 1, classes)


@pytest.mark.parametrize(("name", "shape"), [("Plain", {"classes": 3}), ("NoDims", {})])
def test_a_network_without_the_build_arguments(name: str, shape: dict[str, int]) -> None:
    registry.allow(word := f"{Plain.__module__}:{name}")
    with pytest.raises(NetError, match=r"wanted __init__\(self, dims, channels"):
        build(word, {"dims": 1, "channels": 1, **shape})


class ThreeClasses(Plain):
    def __init__(self, dims: int, channels: int, classes: int) -> None:
        super().__init__(dims, channels)
        self.head = nn.Conv1d(4, classes, 1)


class Thirds(PlainTask):
    spec = TaskSpec(name="thirds", title="thirds", dims=1, channels=1, classes=3, train_size=8)

    def make(self, size: int, random: np.random.Generator) -> tuple[ArrayLike, ArrayLike]:
        digits = random.integers(0, 3, size)
        return digits[None], digits


@pytest.mark.parametrize(
    ("task", "net", "arguments"),
    [
        (iterant.task("prefix-sums"), Plain, {"dims": 1, "channels": 1}),
        (Thirds(), ThreeClasses, {"dims": 1, "channels": 1, "classes": 3}),
    ],
    ids=["two classes", "three classes"],
)
def test_a_class_is_trained_and_its_run_loads(
    tmp_path: Path, task: Task, net: type[Plain], arguments: dict[str, int]
) -> None:
    run, again = (
        iterant.train(
            task, net=net, out=tmp_path / name, size=8, count=20, batch_size=8, epochs=1,
            iterations=3, objective="progressive", monitor_every=0, device="cpu",
        )
        for name in ("run", "again")
    )  # fmt: skip
    kind = f"{__name__}:{net.__name__}"
    assert run.config["net"] == {"kind": kind, "config": arguments}
    loaded: Any = iterant.load(run)
    stored, _ = run.load("best", "net.")
    weights = {f"net.{name}": weight for name, weight in loaded.state_dict().items()}
    assert weights.keys() == stored.keys()
    assert all(torch.equal(weights[name], stored[name]) for name in stored)
    repeated, _ = again.load("best", "net.")
    assert all(torch.equal(repeated[name], stored[name]) for name in stored), "dropout is seeded"
    batch = task.sample(3, size=8)
    assert iterant.solve(loaded, batch.inputs, max_steps=5).prediction.shape == (3, 8)


class ThreeBlocks(DeepThinking):
    """DT-Recall with a third block."""

    def __init__(self, config: PaperConfig) -> None:
        super().__init__(replace(config, blocks=3))


def test_a_subclass_is_configured_like_the_network_it_extends(tmp_path: Path) -> None:
    run = iterant.train(
        "prefix-sums", net=ThreeBlocks, recipe="paper", width=8, count=40, batch_size=8, size=8,
        epochs=1, iterations=3, out=tmp_path / "run", device="cpu",
    )  # fmt: skip
    loaded: Any = iterant.load(run)
    assert type(loaded) is ThreeBlocks
    assert len(loaded.block) == loaded.config.blocks == 3
    assert (loaded.config.width, loaded.config.head) == (8, (8, 4)), "the paper's head in 1D"
    assert loaded.config.recall_relu, "the paper's ReLU in 1D"
    stored, _ = run.load("best", "net.")
    assert torch.equal(stored["net.projection.weight"], loaded.projection.weight)


@dataclass(frozen=True)
class SmallConfig(NetConfig):
    kind: ClassVar[str] = "small"
    width: int = 3
    hidden: int = 7


class Small(Plain):
    Config = SmallConfig

    def __init__(self, config: SmallConfig) -> None:
        super().__init__(config.dims, config.channels)
        self.config = config


def test_a_line_in_the_registry_makes_a_network_trainable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its configuration gets the fields that recipe or task have; the others keep defaults."""
    monkeypatch.setitem(registry.LOCATIONS["net"], "small", f"{__name__}:Small")
    spec = iterant.task("mazes").spec
    _, description = build_network(Recipe(net="small", hidden=9).described(), spec, seed=0)
    fields = {"dims": 2, "channels": 3, "width": 3, "hidden": 9}
    assert description == {"kind": "small", "config": fields}
    with pytest.raises(UnknownName, match="did you mean 'small'"):
        build_network(Recipe(net="smal").described(), spec, seed=0)
