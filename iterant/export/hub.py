"""Export to a folder in the layout of the Hugging Face hub, with a model card.

    README.md           the model card: network, training, use
    CARD.md, *.png      the card of a shipped network and its pictures
    config.json         the network's configuration, and the checksum of the weights
    model.safetensors   the weights

Nothing is uploaded.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch import Tensor

from iterant.formatting import counted
from iterant.io import read_weights, write_atomic, write_json
from iterant.io.checkpoint import CONFIG, FORMAT, write_shard
from iterant.io.files import check_new_folder, make_folder, read_bytes
from iterant.nets import Net, depth_of, parameter_count
from iterant.zoo.loading import CARD, folder_of, load

_README = """\
---
library_name: iterant
tags:
{tags}
---

# {name}

A network with {parameters:,} parameters{task}. {iterates}

## Use
```python
import iterant

net = iterant.load("PATH/TO/THIS/FOLDER"{trust})
{problems}
answer = iterant.solve(net, inputs, max_steps=1000)
print(answer.prediction, answer.steps, answer.settled)
```

## Configuration and training
```json
{config}
```

{card}
"""


@dataclass(frozen=True)
class Source:
    """A network on the CPU, and the information about it in its folder."""

    name: str
    net: Net
    kind: str
    """Its name in `iterant.registry`, or ``module:Class``"""
    config: Mapping[str, Any]
    tensors: Mapping[str, Tensor]
    task: str | None = None
    """The task it was trained for, if known"""
    about: Mapping[str, Any] = field(default_factory=dict)
    """Everything else: recipe, seed, origin, figures"""
    folder: Path | None = None
    """The folder it was read from"""
    data: str | None = None
    """The path of the problems of a run, if they are not generated"""

    @property
    def parameters(self) -> int:
        """The number of parameters."""
        return parameter_count(self.net)


def open_source(
    name_or_path: str | os.PathLike[str], which: str | None = None, *, trust: bool = False
) -> Source:
    """The network of this name, run or folder; ``which`` chooses a checkpoint of a run.

    ``trust``: import the user-defined network that the folder names.
    """
    folder = folder_of(name_or_path)
    config, tensors = read_weights(folder, which)
    known = ("format", "kind", "config", "task", "data")
    return Source(
        name=Path(os.fspath(name_or_path)).resolve().name,
        net=load(name_or_path, "cpu", which, trust=trust),
        kind=config["kind"],
        config=config["config"],
        tensors=tensors,
        task=config.get("task"),
        about={key: config[key] for key in config if key not in known},
        folder=folder,
        data=config.get("data"),
    )


def export_hub(
    source: str | os.PathLike[str] | Source,
    out: str | os.PathLike[str],
    *,
    which: str | None = None,
    trust: bool = False,
) -> Path:
    """Write a trained network as a folder for the hub, which must be new or empty."""
    if not isinstance(source, Source):
        source = open_source(source, which, trust=trust)
    folder = make_folder(check_new_folder(out))
    shard = write_shard(folder / "model.safetensors", source.tensors, {"format": "pt"})
    config = {
        "format": FORMAT,
        **source.about,
        "model_type": "iterant",
        "kind": source.kind,
        "config": dict(source.config),
        **({"task": source.task} if source.task else {}),
    }
    files: dict[str, bytes] = {}
    if source.folder is not None and (source.folder / CARD).is_file():  # a shipped network
        paths = [source.folder / CARD, *source.folder.glob("*.png")]
        files = {path.name: read_bytes(path) for path in paths if not path.is_symlink()}
    files["README.md"] = _readme(source, config, files.get(CARD, b"")).encode()
    for name, content in files.items():
        write_atomic(folder / name, content)
    # Last: a folder with a config.json is complete.
    config["weights"] = {"shards": [shard], "split": {}}
    write_json(folder / CONFIG, config, checksummed=True)
    return folder


def _readme(source: Source, config: Mapping[str, Any], card: bytes) -> str:
    """The model card: a header for the hub, then prose and what is recorded."""
    tags = ["iterant", "logical-extrapolation", "deep-thinking", source.task]
    depth = depth_of(source.net)
    problems, task = "inputs = ...   # what it was trained on", ""
    if source.task:
        problems = f"task = iterant.task({json.dumps(source.task)})\n"
        problems += "inputs = task.sample(4, seed=1).inputs"
        task = f" for the task `{source.task}`"
    iterates = "It repeats one step: harder problems take more iterations, not more weights."
    if depth is not None:
        iterates = f"It has {counted(depth, 'iteration')}, each with weights of its own."
    recorded = {key: value for key, value in config.items() if key not in ("card", "format")}
    return _README.format(
        tags="\n".join(f"- {json.dumps(tag)}" for tag in tags if tag),
        name=source.name,
        trust=", trust=True" if ":" in source.kind else "",  # a user-defined network
        parameters=source.parameters,
        task=task,
        iterates=iterates,
        problems=problems,
        config=json.dumps(recorded, indent=1).replace("`", "'"),  # stays within the code block
        # The first lines of a card repeat the text above.
        card="\n".join(card.decode(errors="replace").splitlines()[5:]),
    )
