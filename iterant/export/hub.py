"""Export to a folder in the layout of the Hugging Face hub, with a model card.

    README.md           the model card: network, training, use
    CARD.md, *.png      the card of a shipped network and its pictures
    config.json         the network's configuration, and the checksum of the weights
    model.safetensors   the weights

Nothing is uploaded.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from iterant.io import read_weights, write_atomic, write_json
from iterant.io.checkpoint import CONFIG, write_shard
from iterant.io.files import PathLike, check_new_folder, make_folder, read_bytes
from iterant.nets import Net, parameter_count
from iterant.zoo.loading import CARD, folder_of, load

_README = """\
---
library_name: iterant
tags:
{tags}
---

# {name}

A network with {parameters:,} parameters{purpose}.

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


def export_hub(
    name_or_path: PathLike, out: PathLike, *, which: str | None = None, trust: bool = False
) -> Path:
    """Write a trained network as a folder for the hub, which must be new or empty.

        >>> export_hub("runs/m0", "m0-hub")

    ``which`` chooses a checkpoint of a run. ``trust``: import the user-defined network that the
    folder names.
    """
    source = folder_of(name_or_path)
    saved, tensors = read_weights(source, which)
    net = load(name_or_path, which=which, trust=trust)
    folder = make_folder(check_new_folder(out))
    shard = write_shard(folder / "model.safetensors", tensors, {"format": "pt"})
    # The path of the problems of a run means nothing elsewhere.
    config = {**saved, "model_type": "iterant"}
    config.pop("data", None)
    files: dict[str, bytes] = {}
    if (source / CARD).is_file():  # a shipped network
        paths = [source / CARD, *source.glob("*.png")]
        files = {path.name: read_bytes(path) for path in paths if not path.is_symlink()}
    name = Path(name_or_path).resolve().name
    files["README.md"] = _readme(name, net, config, files.get(CARD, b"")).encode()
    for file, content in files.items():
        write_atomic(folder / file, content)
    # Last: a folder with a config.json is complete.
    config["weights"] = {"shards": [shard], "split": {}}
    write_json(folder / CONFIG, config, checksummed=True)
    return folder


def _readme(name: str, net: Net, config: Mapping[str, Any], card: bytes) -> str:
    """The model card: a header for the hub, then prose and what is recorded."""
    task = config.get("task")
    tags = ["iterant", "logical-extrapolation", "deep-thinking", *([task] if task else [])]
    problems = "inputs = ...   # what it was trained on"
    if task:
        problems = f"inputs = iterant.task({json.dumps(task)}).sample(4, seed=1).inputs"
    recorded = {key: value for key, value in config.items() if key not in ("card", "format")}
    return _README.format(
        tags="\n".join(f"- {json.dumps(tag)}" for tag in tags),
        name=name,
        trust=", trust=True" if ":" in config["kind"] else "",  # a user-defined network
        parameters=parameter_count(net),
        purpose=f" for the task `{task}`" if task else "",
        problems=problems,
        config=json.dumps(recorded, indent=1).replace("`", "'"),  # stays within the code block
        # The first lines of a card repeat the text above.
        card="\n".join(card.decode(errors="replace").splitlines()[5:]),
    )
