"""The model card of an exported network: what it is, in words that people and the hub read.

What is exported: a trained network, its weights, and what its folder says about it.

A network as a folder in the layout of the Hugging Face hub, with a model card.

    README.md           the model card: what it is, what it was trained on, how to use it
    *.png               what the card of a shipped network shows
    config.json         the network's description, and the checksum of the weights
    model.safetensors   the weights

Nothing is uploaded; the folder is what a person would upload.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
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
from iterant.zoo.cards import written
from iterant.zoo.loading import folder_of, load


@dataclass(frozen=True)
class Source:
    """A network on the CPU, and what is known about it."""

    name: str
    net: Net
    kind: str
    """The word of `iterant.registry` that builds it, or ``module:Class``"""
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


_RECIPE = ("objective", "epochs", "batch", "alpha", "optimizer", "rate", "precision")
"""What of a recipe is worth a line in a card."""


def card(source: Source) -> str:
    """The text of ``README.md``: a header that the hub reads, then prose."""
    return "\n".join([*_header(source), "", *_what(source), "", *_use(source), *_training(source)])


def pictures(source: Source) -> list[Path]:
    """The files that the card of a shipped network shows; nothing from outside its folder."""
    if source.folder is None or "card" not in source.about:
        return []
    named = shipped_card(str(source.folder)).pictures
    found = [source.folder / name for name in named if Path(name).name == name]
    return [path for path in found if path.is_file()]


def _header(source: Source) -> list[str]:
    tags = ["iterant", "logical-extrapolation", "deep-thinking", *([source.task or ""])]
    return [
        "---",
        "library_name: iterant",
        "tags:",
        *(f"- {json.dumps(tag)}" for tag in tags if tag),
        "---",
    ]


def _what(source: Source) -> list[str]:
    config, depth = source.config, depth_of(source.net)
    task = f" for the task `{source.task}`" if source.task else ""
    thinks = (
        "It repeats one step: harder problems take more iterations, not more weights."
        if depth is None
        else f"It has {counted(depth, 'iteration')}, each with weights of its own."
    )
    return [
        f"# {source.name}",
        "",
        f"A network of kind `{source.kind}` with {source.parameters:,} parameters{task}. {thinks}",
        "",
        *markdown_table(
            ["field", "value"], [[name, f"`{_shown(value)}`"] for name, value in config.items()]
        ),
    ]


def _use(source: Source) -> list[str]:
    if source.task is None:
        problems = ["inputs = ...   # what it was trained on"]
    else:
        problems = [
            f"task = iterant.task({json.dumps(source.task)})",
            "inputs = task.sample(4, seed=1).inputs",
        ]
    return [
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
    ]


def _training(source: Source) -> list[str]:
    """What the folder says about the training; only what is known is claimed."""
    about = dict(source.about)
    if source.folder is not None and "card" in about:
        # A shipped network has a card of its own; its first lines say what is said above.
        return [
            "## Training and figures",
            *written(shipped_card(str(source.folder))).splitlines()[4:],
            "",
        ]
    recipe = about.pop("recipe", None)
    rows: list[tuple[str, Any]] = []
    if isinstance(recipe, dict):
        rows += [(name, recipe[name]) for name in _RECIPE if recipe.get(name) is not None]
    rows += list(about.items())
    if not rows:
        return ["## Training", "How it was trained is not recorded.", ""]
    return [
        "## Training",
        *markdown_table(["what", "value"], [[name, f"`{_shown(value)}`"] for name, value in rows]),
        "",
    ]


def _shown(value: Any) -> str:
    """A value in one cell of a table."""
    text = value if isinstance(value, str) else json.dumps(value)
    return text.replace("`", "'").replace("\n", " ")


FORMAT = 1
WEIGHTS = "model.safetensors"


def export_hub(
    source: str | os.PathLike[str] | Source,
    out: str | os.PathLike[str],
    *,
    which: str | None = None,
) -> Path:
    """Write a trained network as a folder for the hub, which must be new or empty."""
    given = source if isinstance(source, Source) else open_source(source, which)
    folder = check_new_folder(out)
    make_folder(folder)
    tensors = {
        # Copies of their own: safetensors refuses views, and tensors that share memory.
        name: tensor.detach().cpu().clone(memory_format=torch.contiguous_format)
        for name, tensor in given.tensors.items()
    }
    data = save(tensors, metadata={"format": "pt"})
    write_atomic(folder / WEIGHTS, data)
    write_atomic(folder / "README.md", card(given).encode())
    for picture in pictures(given):
        write_atomic(folder / picture.name, picture.read_bytes())
    listed = {
        "file": WEIGHTS,
        "bytes": len(data),
        "sha256": hashlib.sha256(data).hexdigest(),
        "holds": list(tensors),
    }
    described = {
        "format": FORMAT,
        "model_type": "iterant",
        "kind": given.kind,
        "config": dict(given.config),
        **({"task": given.task} if given.task else {}),
        **{key: value for key, value in given.about.items() if key != "model_type"},
        "weights": {"shards": [listed], "split": {}},
    }
    # Last: a folder with a config.json is a whole one.
    write_json(folder / "config.json", described, checksummed=True)
    return folder
