"""What is exported: a trained network, its weights, and what its folder says about it.

>>> source = open_source("runs/m0")
>>> source.net, source.task, source.parameters
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch import Tensor

from iterant.nets import Net, parameter_count
from iterant.runs import RunFolder, read_weights
from iterant.zoo.loading import folder_of, load


@dataclass(frozen=True)
class Source:
    """A network on the CPU, and what is known about it."""

    name: str
    net: Net
    kind: str
    """The word of `iterant.names` that builds it, or ``module:Class``"""
    config: Mapping[str, Any]
    tensors: Mapping[str, Tensor]
    task: str | None = None
    """The task it was trained for, where its folder says so"""
    about: Mapping[str, Any] = field(default_factory=dict)
    """What else its folder says: recipe, seed, origin, figures"""
    folder: Path | None = None
    """Where it was read from"""

    @property
    def parameters(self) -> int:
        """How many numbers were learned."""
        return parameter_count(self.net)

    @property
    def readout(self) -> str:
        """The word for how its logits become an answer."""
        return str(self.config.get("readout", "argmax"))


def open_source(name_or_path: str | os.PathLike[str], which: str | None = None) -> Source:
    """The network of that name, run or folder; ``which`` chooses a checkpoint of a run."""
    folder = folder_of(name_or_path)
    config, tensors = read_weights(folder, which)
    net = load(name_or_path, "cpu", which)
    about = {key: value for key, value in config.items() if key not in _OWN}
    run = folder.parent.parent if not folder.is_dir() else folder
    if (run / "checkpoints").is_dir():
        asked = RunFolder.open(run).config
        about |= {key: asked[key] for key in ("task", "recipe", "seed") if key in asked}
    word = about.pop("task", None)
    return Source(
        name=Path(os.fspath(name_or_path)).resolve().name,
        net=net,
        kind=config["kind"],
        config=config["config"],
        tensors=tensors,
        task=word if isinstance(word, str) else None,
        about=about,
        folder=folder,
    )


_OWN = ("format", "kind", "config")
