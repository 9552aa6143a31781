"""Loading networks by name, run and folder; what is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import iterant
from iterant.errors import DataError, UnknownName, UntrustedCode, UsageError
from iterant.io import RunFolder, save_weights
from iterant.nets import Net, PaperConfig, build
from iterant.zoo import loading

CONFIG = PaperConfig(dims=2, channels=3, width=4, head=(4, 3), readout="argmax-open")
DESCRIBED: dict[str, Any] = {"kind": CONFIG.kind, "config": CONFIG.described()}
Tensors = dict[str, Tensor]


def weights(seed: int = 1) -> Tensors:
    return state_of(build(CONFIG.kind, CONFIG, seed=seed))


def state_of(net: Net) -> Tensors:
    assert isinstance(net, nn.Module)
    return dict(net.state_dict())


def same(first: Tensors, second: Tensors) -> bool:
    return first.keys() == second.keys() and all(torch.equal(first[n], second[n]) for n in first)


def test_load_a_folder(tmp_path: Path) -> None:
    save_weights(tmp_path / "w", DESCRIBED, weights())
    for path in (tmp_path / "w", str(tmp_path / "w")):
        net: Any = iterant.load(path)
        assert same(state_of(net), weights())
        assert (net.config, net.training) == (CONFIG, False)


def test_checkpoint_of_a_run(tmp_path: Path) -> None:
    config = {"task": "mazes", "net": DESCRIBED, "recipe": None}
    run = RunFolder.create(tmp_path / "run", config)
    for seed, name in enumerate(("last", "best")):
        tensors = {f"net.{key}": tensor for key, tensor in weights(seed).items()}
        run.save(name, {**tensors, "optimizer.0": torch.ones(3)}, {"step": seed})
    assert same(state_of(iterant.load(run)), weights(1)), "a run is a path"
    assert same(state_of(iterant.load(run.path, which="last")), weights(0))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_half_precision_becomes_float32(tmp_path: Path, dtype: torch.dtype) -> None:
    stored = {name: tensor.to(dtype) for name, tensor in weights().items()}
    save_weights(tmp_path / "w", DESCRIBED, stored)
    loaded = state_of(iterant.load(tmp_path / "w"))
    assert {tensor.dtype for tensor in loaded.values()} == {torch.float32}
    assert all(torch.equal(loaded[name], stored[name].float()) for name in stored)


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda t: {name: t[name] for name in t if name != "head.0.weight"}, "0.weight: wanted"),
        (lambda t: {**t, "extra": torch.ones(1)}, "extra: wanted none"),
        (lambda t: {**t, "head.0.weight": t["head.0.weight"][:1]}, "(1, 4, 3, 3)"),
        (lambda t: {**t, "head.0.weight": t["head.0.weight"].long()}, "head.0.weight: wanted"),
        (lambda t: {"other": torch.ones(1)}, "and 7 more"),
    ],
)
def test_wrong_tensors_are_named(
    tmp_path: Path, change: Callable[[Tensors], Tensors], fault: str
) -> None:
    save_weights(tmp_path / "w", DESCRIBED, change(weights()))
    with pytest.raises(DataError) as refusal:
        iterant.load(tmp_path / "w")
    assert fault in str(refusal.value)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"config": {"width": 4}}, "missing"),
        ({"config": {**CONFIG.described(), "wdith": 4}}, "wdith"),
        ({"config": {**CONFIG.described(), "dims": 3}}, "1 or 2 dimensions"),
        ({"config": {**CONFIG.described(), "readout": "best"}}, "unknown readout 'best'"),
        ({"config": 3}, "of the wrong type"),
        ({"kind": [3]}, "of the wrong type"),
    ],
)
def test_invalid_configuration(tmp_path: Path, changes: dict[str, Any], fault: str) -> None:
    save_weights(tmp_path / "w", {**DESCRIBED, **changes}, weights())
    with pytest.raises(DataError, match=fault):
        iterant.load(tmp_path / "w")


@pytest.mark.parametrize("trust", [False, True])
def test_configuration_builds_only_networks(tmp_path: Path, trust: bool) -> None:
    trace = tmp_path / "was-run"
    for kind, config in (
        ("subprocess:Popen", {"args": ["touch", str(trace)]}),
        ("pathlib:Path.touch", {"self": str(trace)}),
        ("torch.nn:Identity", {}),
    ):
        save_weights(tmp_path / "w", {"kind": kind, "config": config}, {"a": torch.ones(1)})
        with pytest.raises(DataError if trust else UntrustedCode):
            iterant.load(tmp_path / "w", trust=trust)
    assert not trace.exists()


def test_shipped_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "SHIPPED", tmp_path / "weights")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UnknownName, match="unknown weights 'mazes'"):
        iterant.load("mazes")
    save_weights(tmp_path / "weights" / "mazes", DESCRIBED, weights(1))
    save_weights(tmp_path / "mazes", DESCRIBED, weights(2))
    assert loading.shipped() == ("mazes",)
    assert same(state_of(iterant.load("mazes")), weights(1))
    assert same(state_of(iterant.load("./mazes")), weights(2))
    with pytest.raises(UnknownName, match=r"did you mean 'mazes'\? Or give the folder"):
        iterant.load("maze")
    save_weights(tmp_path / "maze", DESCRIBED, weights(3))
    assert same(state_of(iterant.load("maze")), weights(3))


def test_missing_device(tmp_path: Path) -> None:
    save_weights(tmp_path / "w", DESCRIBED, weights())
    for device in ("warp", "cuda:99"):
        with pytest.raises(UsageError, match=device):
            iterant.load(tmp_path / "w", device)
