"""Files that several tests of commands need."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from small_networks import small_net

from iterant.io import RunFolder, save_weights
from iterant.nets import DeepThinking, FeedForwardConfig, PaperConfig, build


def authors_checkpoint(path: Path) -> None:
    """A maze network without recall, as the paper's authors save it."""
    with torch.device("meta"):  # only the shapes are needed
        net = DeepThinking(PaperConfig(dims=2, channels=3, width=4, recall=False))
    tensors = {}
    for name, weight in net.state_dict().items():
        theirs = name.replace("projection", "projection.0").replace("block", "recur_block.0")
        tensors[f"module.{theirs}"] = torch.ones(weight.shape)
    torch.save({"net": tensors, "epoch": 7}, path)


def maze_run(path: Path) -> Path:
    """The folder of a run on mazes."""
    net: Any = small_net("mazes", "dt-recall")
    recipe = {"net": "dt-recall", "alpha": 0.5, "iterations": 30}
    described = {"kind": net.config.kind, "config": net.config.described()}
    folder = RunFolder.create(path, {"task": "mazes", "net": described, "recipe": recipe})
    tensors: dict[str, torch.Tensor] = net.state_dict()
    folder.save("best", {f"net.{name}": tensor.float() for name, tensor in tensors.items()}, {})
    return folder.path


def feed_forward(path: Path) -> str:
    """The folder of a feed-forward network with five layers for prefix sums."""
    config = FeedForwardConfig(dims=1, channels=1, width=4, head=(4,), depth=5)
    net: Any = build(config.kind, config, seed=1)
    described = {"kind": config.kind, "config": config.described(), "task": "prefix-sums"}
    return str(save_weights(path, described, net.state_dict()))
