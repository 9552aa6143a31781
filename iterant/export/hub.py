"""A network as a folder in the layout of the Hugging Face hub, with a model card.

    >>> export_hub("runs/m0", "m0-hub")
    >>> net = iterant.load("m0-hub")            # the same network

    README.md           the model card: what it is, what it was trained on, how to use it
    *.png               what the card of a shipped network shows
    config.json         the network's description, and the checksum of the weights
    model.safetensors   the weights

Nothing is uploaded; the folder is what a person would upload.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import torch
from safetensors.torch import save

from iterant.export.card import card, pictures
from iterant.export.source import Source, open_source
from iterant.runs import write_atomic, write_json
from iterant.runs.files import make_folder
from iterant.runs.places import check_new_folder

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
    write_json(folder / "config.json", described, sealed=True)
    return folder
