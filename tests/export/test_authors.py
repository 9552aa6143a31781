"""The authors' checkpoints give the same logits here as in a plain restatement of their network."""

from __future__ import annotations

import math
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from pickle_trap import Trap
from torch import Tensor, nn
from torch.nn import functional

import iterant
from iterant.errors import DataError
from iterant.export import import_checkpoint
from iterant.io import read_weights

Tensors = dict[str, Tensor]
CONVOLVE: dict[int, Any] = {3: functional.conv1d, 4: functional.conv2d}
TASKS = ("prefix-sums", "mazes", "chess")
MISSING = object()


def checkpoint(
    task: str, *, recall: bool, depth: int | None = None, width: int = 6, seed: int = 1
) -> Tensors:
    """Random weights under the authors' names; ``depth``: of a feed-forward network."""
    spec = iterant.task(task).spec
    rng = torch.Generator().manual_seed(seed)

    def kernel(outputs: int, inputs: int) -> Tensor:
        shape = (outputs, inputs, *[3] * spec.dims)
        return torch.randn(shape, generator=rng) / math.sqrt(inputs * 3**spec.dims)

    tensors = {"projection.0.weight": kernel(width, spec.channels)}
    place = (2 if spec.dims == 1 else 1) if recall else 0
    if recall:
        name = "recall_layer.weight" if depth else "recur_block.0.weight"
        tensors[name] = kernel(width, width + spec.channels)
    layers = [f"feedforward_layers.{i}.0" for i in range(depth)] if depth else []
    for stem in layers or [f"recur_block.{place}"]:
        for block in (0, 1):
            for number in (1, 2):
                tensors[f"{stem}.{block}.conv{number}.weight"] = kernel(width, width)
    inner = (width, width // 2) if spec.dims == 1 else (32, 8)
    sizes = [width, *inner, 2]
    for place in range(3):
        tensors[f"head.{2 * place}.weight"] = kernel(sizes[place + 1], sizes[place])
    return tensors


def restated(weights: Tensors, x: Tensor, iterations: int) -> Iterator[Tensor]:
    """Their network written independently: concatenate, convolve, two residual blocks, head."""

    def conv(values: Tensor, name: str) -> Tensor:
        kernel = weights[name].double()
        result: Tensor = CONVOLVE[kernel.dim()](values, kernel, padding=1)
        return result

    features = torch.relu(conv(x, "projection.0.weight"))
    for i in range(iterations):
        if "recur_block.0.weight" in weights:
            features = conv(torch.cat([features, x], dim=1), "recur_block.0.weight")
            features = torch.relu(features) if x.dim() == 3 else features
        if "recall_layer.weight" in weights:
            features = conv(torch.cat([features, x], dim=1), "recall_layer.weight")
        stems = (*(f"recur_block.{place}" for place in range(3)), f"feedforward_layers.{i}.0")
        stem = next(stem for stem in stems if f"{stem}.0.conv1.weight" in weights)
        for block in (0, 1):
            inner = torch.relu(conv(features, f"{stem}.{block}.conv1.weight"))
            features = torch.relu(features + conv(inner, f"{stem}.{block}.conv2.weight"))
        values = features
        for place in (0, 2, 4):
            values = conv(values, f"head.{place}.weight")
            values = torch.relu(values) if place < 4 else values
        yield values


def saved(path: Path, net: Any, prefix: str = "module.", **extra: Any) -> Path:
    tensors = {f"{prefix}{name}": tensor for name, tensor in net.items()}
    torch.save({"net": tensors, "epoch": 41, "optimizer": {"state": {}}, **extra}, path)
    return path


@pytest.mark.parametrize("depth", [None, 5])
@pytest.mark.parametrize("recall", [False, True])
@pytest.mark.parametrize("task", TASKS)
def test_logits_equal_those_of_the_authors(
    tmp_path: Path, task: str, recall: bool, depth: int | None
) -> None:
    weights = checkpoint(task, recall=recall, depth=depth)
    path = saved(tmp_path / "m.pth", weights, "module." if recall else "")
    if not (recall or depth):
        torch.save(weights, path)  # the tensors alone
    imported = import_checkpoint(path, task=iterant.task(task).spec, out=tmp_path / "out")
    net = iterant.load(imported.folder)
    assert isinstance(net, nn.Module)
    x = iterant.task(task).sample(3, seed=2).inputs.double()
    theirs = list(restated(weights, x, 5))
    ours = list(iterant.think(net.double(), x, steps=5))
    for thought, logits in zip(ours, theirs, strict=True):
        assert logits.abs().max() > 1e-3
        assert (thought.logits - logits).abs().max() < 1e-12


def test_report_and_folder(tmp_path: Path) -> None:
    weights = checkpoint("chess", recall=True, width=5)
    path = saved(tmp_path / "model_best.pth", weights)
    imported = import_checkpoint(path, task=iterant.task("chess").spec, out=tmp_path / "out")
    assert imported.epoch == 41
    assert imported.parameters == sum(tensor.numel() for tensor in weights.values())
    config, _ = read_weights(tmp_path / "out")
    assert (config["task"], config["origin"]["file"]) == ("chess", "model_best.pth")
    assert config["config"]["readout"] == "two-best"


def test_group_norm_must_be_given(tmp_path: Path) -> None:
    path = saved(tmp_path / "m.pth", checkpoint("mazes", recall=True, width=8))
    spec = iterant.task("mazes").spec
    plain = import_checkpoint(path, task=spec, out=tmp_path / "plain")
    normed = import_checkpoint(path, task=spec, out=tmp_path / "normed", group_norm=True)
    assert (plain.config.group_norm, normed.config.group_norm) == (False, True)


def error_of(tmp_path: Path, content: Any) -> str:
    path, out = tmp_path / "m.pth", tmp_path / "out"
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif content is not MISSING:
        torch.save(content, path)
    with pytest.raises(DataError) as refusal:
        import_checkpoint(path, task=iterant.task("mazes").spec, out=out)
    assert "\n" not in str(refusal.value)
    assert str(path) in str(refusal.value)
    assert not out.exists()
    return str(refusal.value)


def test_malicious_file_is_not_executed(tmp_path: Path) -> None:
    trace = tmp_path / "was-run"
    content = {"net": Trap(trace), "epoch": 1, "optimizer": {}}
    pickled = pickle.dumps(content, protocol=2)
    pickle.loads(pickled)  # noqa: S301
    assert trace.exists(), "the pickle would do nothing"
    trace.unlink()
    for malicious in (content, pickled):
        assert "nothing of it was run" in error_of(tmp_path, malicious)
        assert not trace.exists()


def test_files_without_a_network(tmp_path: Path) -> None:
    whole = saved(tmp_path / "whole.pth", checkpoint("mazes", recall=True)).read_bytes()
    for content in [
        MISSING,
        b"not a checkpoint",
        whole[: len(whole) // 2],
        [1, 2],
        {},
        {"net": {}},
        {"net": {"projection.0.weight": 3}},
        {"net": {"projection.0.weight": torch.ones(2, 3, 3).long()}},
        {"epoch": 3},
        {"net": {"conv1.weight": torch.ones(2, 3, 3, 3)}},
        {"net": {"projection.0.weight": torch.ones(2, 3), "head.0.weight": torch.ones(2)}},
    ]:
        error_of(tmp_path, content)
    (tmp_path / "m.pth").unlink()
    (tmp_path / "m.pth").mkdir()
    error_of(tmp_path, MISSING)


def changed(base: Tensors, **changes: Any) -> dict[str, Any]:
    """The same with names changed: a string is a new name, None removes, a tensor replaces."""
    tensors: dict[str, Any] = dict(base)
    for key, value in changes.items():
        name = key.replace("__", ".")
        if value is None or isinstance(value, str):
            tensor = tensors.pop(name)
            tensors |= {value: tensor} if value else {}
        else:
            tensors[name] = value
    return {"net": tensors}


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"head__2__weight": None}, "head.2.weight: wanted"),
        ({"head__4__weight": "head.5.weight"}, "head.5.weight: wanted none"),
        ({"recur_block__0__weight": None}, "recur_block.0.weight: wanted"),
        ({"bias": torch.ones(1)}, "bias: wanted none"),
        ({"recur_block__1__1__conv2__weight": None}, "recur_block.1.1.conv2.weight: wanted"),
        ({"recur_block__7__0__conv1__weight": torch.ones(6)}, "wanted none"),
        ({"recur_block__1__1__conv2__weight": torch.ones(6, 5, 3, 3)}, "(6, 5, 3, 3)"),
        ({"projection__0__weight": torch.ones(6, 3, 5, 5)}, "(6, 3, 3, 3)"),
        ({"projection__0__weight": torch.ones(0, 3, 3, 3)}, "width must be a whole number from 1"),
        ({"head__4__weight": torch.ones(())}, "classes must be a whole number from 1"),
    ],
)
def test_wrong_tensors_are_named(tmp_path: Path, changes: dict[str, Any], fault: str) -> None:
    assert fault in error_of(tmp_path, changed(checkpoint("mazes", recall=True), **changes))
