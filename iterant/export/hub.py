"""Export to a folder in the layout of the Hugging Face hub, with a model card.

    README.md           the model card: network, training, use
    *.png               pictures of the card of a shipped network
    config.json         the network's configuration, and the checksum of the weights
    model.safetensors   the weights

Nothing is uploaded.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save
from torch import Tensor

from iterant.formatting import counted, markdown_table
from iterant.io import RunFolder, read_weights, write_atomic, write_json
from iterant.io.files import check_new_folder, make_folder
from iterant.nets import Net, depth_of, parameter_count
from iterant.zoo.cards import card as shipped_card
from iterant.zoo.cards import card_markdown
from iterant.zoo.loading import folder_of, load

FORMAT = 1
WEIGHTS = "model.safetensors"

_RECIPE = ("objective", "epochs", "batch", "alpha", "optimizer", "rate", "precision")
"""The fields of a recipe that a card shows."""


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

    @property
    def parameters(self) -> int:
        """The number of parameters."""
        return parameter_count(self.net)

    @property
    def readout(self) -> str:
        """The name of its readout."""
        return str(self.config.get("readout", "argmax"))


def open_source(name_or_path: str | os.PathLike[str], which: str | None = None) -> Source:
    """The network of this name, run or folder; ``which`` chooses a checkpoint of a run."""
    folder = folder_of(name_or_path)
    config, tensors = read_weights(folder, which)
    net = load(name_or_path, "cpu", which)
    about = {key: config[key] for key in config if key not in ("format", "kind", "config")}
    run = folder.parent.parent if not folder.is_dir() else folder
    if (run / "checkpoints").is_dir():
        settings = RunFolder.open(run).config
        about |= {key: settings[key] for key in ("task", "recipe", "seed") if key in settings}
    task = about.pop("task", None)
    return Source(
        name=Path(os.fspath(name_or_path)).resolve().name,
        net=net,
        kind=config["kind"],
        config=config["config"],
        tensors=tensors,
        task=task if isinstance(task, str) else None,
        about=about,
        folder=folder,
    )


def card(source: Source) -> str:
    """The text of ``README.md``: a header for the hub, then prose."""
    tags = ["iterant", "logical-extrapolation", "deep-thinking", source.task or ""]
    depth = depth_of(source.net)
    task = f" for the task `{source.task}`" if source.task else ""
    iterates = (
        "It repeats one step: harder problems take more iterations, not more weights."
        if depth is None
        else f"It has {counted(depth, 'iteration')}, each with weights of its own."
    )
    problems = ["inputs = ...   # what it was trained on"]
    if source.task is not None:
        problems = [
            f"task = iterant.task({json.dumps(source.task)})",
            "inputs = task.sample(4, seed=1).inputs",
        ]
    return "\n".join(
        [
            "---",
            "library_name: iterant",
            "tags:",
            *(f"- {json.dumps(tag)}" for tag in tags if tag),
            "---",
            "",
            f"# {source.name}",
            "",
            f"A network of kind `{source.kind}` with {source.parameters:,} parameters{task}. "
            + iterates,
            "",
            *_table("field", source.config.items()),
            "",
            "## Use",
            "```python",
            "import iterant",
            "",
            'net = iterant.load("PATH/TO/THIS/FOLDER")',
            *problems,
            "answer = iterant.solve(net, inputs, max_steps=1000)",
            "print(answer.prediction, answer.steps, answer.settled)",
            "```",
            "",
            *_training(source),
        ]
    )


def pictures(source: Source) -> list[Path]:
    """The pictures of the card of a shipped network that lie in its folder."""
    if source.folder is None or "card" not in source.about:
        return []
    names = shipped_card(str(source.folder)).pictures
    paths = [source.folder / name for name in names if Path(name).name == name]
    return [path for path in paths if path.is_file()]


def _training(source: Source) -> list[str]:
    about = dict(source.about)
    if source.folder is not None and "card" in about:
        # The first lines of a shipped network's card repeat what is said above.
        lines = card_markdown(shipped_card(str(source.folder))).splitlines()[4:]
        return ["## Training and figures", *lines, ""]
    recipe = about.pop("recipe", None)
    rows: list[tuple[str, Any]] = []
    if isinstance(recipe, dict):
        rows += [(name, recipe[name]) for name in _RECIPE if recipe.get(name) is not None]
    rows += about.items()
    if not rows:
        return ["## Training", "How it was trained is not recorded.", ""]
    return ["## Training", *_table("what", rows), ""]


def _table(head: str, rows: Iterable[tuple[str, Any]]) -> list[str]:
    cells = []
    for name, value in rows:
        text = value if isinstance(value, str) else json.dumps(value)
        cells.append([name, "`" + text.replace("`", "'").replace("\n", " ") + "`"])
    return markdown_table([head, "value"], cells)


def export_hub(
    source: str | os.PathLike[str] | Source,
    out: str | os.PathLike[str],
    *,
    which: str | None = None,
) -> Path:
    """Write a trained network as a folder for the hub, which must be new or empty."""
    if not isinstance(source, Source):
        source = open_source(source, which)
    folder = check_new_folder(out)
    make_folder(folder)
    tensors = {
        # Copies: safetensors refuses views and tensors that share memory.
        name: tensor.detach().cpu().clone(memory_format=torch.contiguous_format)
        for name, tensor in source.tensors.items()
    }
    data = save(tensors, metadata={"format": "pt"})
    write_atomic(folder / WEIGHTS, data)
    write_atomic(folder / "README.md", card(source).encode())
    for picture in pictures(source):
        write_atomic(folder / picture.name, picture.read_bytes())
    shard = {
        "file": WEIGHTS,
        "bytes": len(data),
        "sha256": hashlib.sha256(data).hexdigest(),
        "holds": list(tensors),
    }
    config = {
        "format": FORMAT,
        "model_type": "iterant",
        "kind": source.kind,
        "config": dict(source.config),
        **({"task": source.task} if source.task else {}),
        **{key: value for key, value in source.about.items() if key != "model_type"},
        "weights": {"shards": [shard], "split": {}},
    }
    # Last: a folder with a config.json is complete.
    write_json(folder / "config.json", config, checksummed=True)
    return folder
