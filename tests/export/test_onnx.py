"""Exported graphs answer as the network does, at sizes other than the traced one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import onnxruntime
import pytest
import torch
from torch import Tensor, nn

import iterant
from iterant.errors import NetError
from iterant.export import export_onnx
from iterant.io import read_json, save_weights
from iterant.nets import FeedForwardConfig, LocalRuleConfig, MaxPlusConfig, PaperConfig, build

SUMS = PaperConfig(dims=1, channels=1, width=8, head=(6, 4), recall_relu=True)
PLAIN = PaperConfig(
    dims=2, channels=3, width=8, recall=False, group_norm=True, readout="argmax-open"
)
RULE = LocalRuleConfig(dims=2, channels=3, stem=2, masked=True, readout="argmax-open")
MESSAGES = replace(RULE, messages=True, width=12, hidden=10)
MAX_PLUS = MaxPlusConfig(dims=2, channels=3, stem=2, readout="argmax-open")
Config = PaperConfig | LocalRuleConfig | MaxPlusConfig


def saved(folder: Path, config: Config, task: str | None = None) -> Path:
    net: Any = build(config.kind, config.described(), seed=1)
    described = {"kind": config.kind, "config": config.described(), "task": task}
    return save_weights(folder, described, net.state_dict())


PARTS = ("read", "step", "answer")


def logits_of_files(folder: Path, inputs: Tensor, steps: int) -> Tensor:
    """The logits by the exported files alone."""
    read, step, answer = (onnxruntime.InferenceSession(folder / f"{name}.onnx") for name in PARTS)
    features, *memory = read.run(None, {"inputs": inputs.numpy()})
    recall = {"memory": memory[0]} if memory else {}
    for _ in range(steps):
        (features,) = step.run(None, {"features": features, **recall})
    return torch.from_numpy(answer.run(None, {"features": features})[0])


@pytest.mark.parametrize(
    ("config", "task", "size"),
    [
        (SUMS, "prefix-sums", 101),
        (PLAIN, "mazes", 15),
        (RULE, "mazes", 21),
        (MESSAGES, "mazes", 21),
        (MAX_PLUS, "mazes", 21),
    ],
    ids=["recall 1D", "no recall 2D", "local rule", "messages", "max-plus"],
)
def test_graphs_equal_the_network(tmp_path: Path, config: Config, task: str, size: int) -> None:
    folder = saved(tmp_path / "made", config, task)
    done = export_onnx(folder, tmp_path / "out")
    assert done.worst < 1e-4
    inputs = iterant.task(task).sample(3, size=size, seed=4).inputs
    with torch.no_grad():
        logits = iterant.last(iterant.think(iterant.load(folder), inputs, steps=12)).logits
    assert torch.allclose(logits_of_files(tmp_path / "out", inputs, 12), logits, atol=1e-4)
    manifest = read_json(tmp_path / "out" / "network.json")
    assert (manifest["task"], manifest["readout"]) == (task, config.readout)
    outputs = manifest["graphs"]["read"]["outputs"]
    assert ("memory" in outputs) == bool(getattr(config, "recall", True))
    example = manifest["example"]
    inputs = torch.tensor(example["inputs"]).float().view(example["shape"])
    logits = logits_of_files(tmp_path / "out", inputs, example["steps"])
    assert torch.allclose(logits.flatten(), torch.tensor(example["logits"]), atol=1e-4)
    for part in PARTS:  # no trace of the machine it was written on
        content = (tmp_path / "out" / f"{part}.onnx").read_bytes()
        assert str(Path(iterant.__file__).parent).encode() not in content


class Impatient(nn.Module):
    """Its step depends on the iteration's number, which no single graph can hold."""

    def __init__(self, **config: int) -> None:
        super().__init__()
        self.config = config
        self.weight = nn.Parameter(torch.ones(()))

    def read(self, inputs: Tensor) -> Tensor | None:
        return None

    def start(self, inputs: Tensor) -> Tensor:
        return inputs.clone()

    def step(self, features: Tensor, memory: Tensor | None, index: int) -> Tensor:
        return features + self.weight * index

    def answer(self, features: Tensor) -> Tensor:
        return torch.cat([features, -features], dim=1)


def test_networks_that_cannot_be_exported(tmp_path: Path) -> None:
    deep = FeedForwardConfig(dims=1, channels=1, width=4, depth=3, recall=False)
    with pytest.raises(NetError, match="feed-forward: each of its iterations"):
        export_onnx(saved(tmp_path / "deep", deep), tmp_path / "out")
    for config, message in (
        ({"dims": 1, "channels": 1}, r"differ by .* at iteration 2"),
        ({"dims": 3, "channels": 1, "width": 4}, 'says "dims"'),
        ({}, 'says "dims"'),
    ):
        described = {"kind": f"{__name__}:Impatient", "config": config}
        save_weights(tmp_path / "own", described, Impatient().state_dict())
        with pytest.raises(NetError, match=message):
            export_onnx(tmp_path / "own", tmp_path / f"out{len(config)}", trust=True)
