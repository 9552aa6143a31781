"""Convert checkpoints of the paper's authors to weights folders.

    >>> import_checkpoint("model_best.pth", task=iterant.task("mazes").spec, out="imported")
    >>> net = iterant.load("imported")

The architecture is read from the tensors: one or two dimensions, channels, width, depth, recall,
the ReLU after it, the head. The task adds the readout. Group norm has no weights there, so it must
be given. Files are read with ``weights_only=True``, which executes nothing.

Their names of tensors (with ``module.`` in front if saved from DataParallel):

    projection.0.weight
    recur_block.0.weight                         the recall convolution, if there is one
    recur_block.P.B.conv{1,2}.weight             block B; P is 0 without recall, 1 with it, and 2
                                                 with a ReLU in between
    recall_layer.weight                          the same two in feed-forward networks,
    feedforward_layers.I.0.B.conv{1,2}.weight    whose iteration I has its own blocks
    head.{0,2,4}.weight
"""

from __future__ import annotations

import hashlib
import os
import re
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from iterant.errors import DataError, IterantError
from iterant.io import save_weights
from iterant.io.files import check_new_folder
from iterant.nets import FeedForwardConfig, PaperConfig, build
from iterant.nets.protocol import Needs
from iterant.tasks.protocol import TaskSpec
from iterant.zoo.loading import some, tensor_faults

Tensors = Mapping[str, Tensor]


@dataclass(frozen=True)
class Imported:
    """The result of an import."""

    folder: Path
    config: PaperConfig
    parameters: int
    epoch: int | None
    """The last epoch, if the file has it."""


def import_checkpoint(
    path: str | os.PathLike[str],
    *,
    task: TaskSpec,
    out: str | os.PathLike[str],
    group_norm: bool = False,
) -> Imported:
    """Convert a checkpoint file to a weights folder, which must be new or empty.

    The file must have exactly the tensors of the network.
    """
    source, target = Path(path), check_new_folder(out)
    content = _load(source)
    tensors = _network(content, source)
    config, place = _architecture(tensors, task, group_norm, source)
    needs = Needs(config.dims, config.channels, config.classes)
    offered = Needs(task.dims, task.channels, task.classes)
    if needs != offered:
        raise DataError(
            f"{source} holds a network for {needs.beside(offered)}, and {task.name} has "
            f"{offered.beside(needs)}; name the task that it was trained on with --task"
        )
    try:
        with torch.device("meta"):  # shapes only: do not allocate what a file claims
            net: Any = build(config.kind, config)
    except IterantError as error:
        raise DataError(f"{source} is no network of the paper: {error}") from error
    theirs = {name: _their_name(name, config, place) for name in net.state_dict()}
    expected = {theirs[name]: weight for name, weight in net.state_dict().items()}
    if faults := tensor_faults(expected, tensors):
        raise DataError(
            f"{source} is no whole network of the paper ({faults}); "
            "only DT, DT-Recall and feed-forward networks can be imported"
        )
    ours = {name: tensors[their_name].clone() for name, their_name in theirs.items()}
    epoch = content.get("epoch") if isinstance(content, dict) else None
    epoch = epoch if isinstance(epoch, int) else None
    described = {
        "kind": config.kind,
        "config": config.described(),
        "task": task.name,
        "origin": {
            "what": "a checkpoint of the paper's authors",
            "file": source.name,
            "sha256": hashlib.sha256(source.read_bytes()).hexdigest(),
            "epoch": epoch,
        },
    }
    folder = save_weights(target, described, ours)
    return Imported(folder, config, sum(tensor.numel() for tensor in ours.values()), epoch)


def _load(path: Path) -> Any:
    """The content of a file, without executing anything in it."""
    if not path.is_file():
        what = "is a folder" if path.is_dir() else "does not exist"
        raise DataError(f"{path} {what}; wanted a checkpoint file such as model_best.pth")
    try:
        with warnings.catch_warnings():
            # torch warns about foreign pickles before it refuses them.
            warnings.simplefilter("ignore")
            return torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # damaged files raise nearly any exception
        forbidden, text = re.search(r"GLOBAL (\S+)", str(error)), str(error).strip()
        if not re.search("[a-z]", text):  # the text of a KeyError is the key alone
            text = "it is of another kind"
        reason = (
            f"it asks for {forbidden[1]}, which tensors do not need"
            if forbidden
            else text.splitlines()[0].split(". ")[0]
        )
        raise DataError(
            f"{path} cannot be read as a checkpoint of tensors ({reason}); nothing of it was run: "
            "get the file again from where it came"
        ) from error


def _network(content: Any, path: Path) -> dict[str, Tensor]:
    """The tensors under "net" (or the whole file), without the prefix of DataParallel."""
    state = content.get("net", content) if isinstance(content, dict) else content
    if not isinstance(state, dict) or not state:
        is_dict = isinstance(content, dict) and content
        keys = f" with the keys {some(map(str, content))}" if is_dict else ""
        raise DataError(
            f'{path} holds no network: wanted a dict with tensors under "net", got '
            f"a {type(content).__name__}{keys}"
        )
    strange = [
        str(key)
        for key, value in state.items()
        if not isinstance(key, str)
        or not isinstance(value, Tensor)
        or value.layout is not torch.strided
        or not value.is_floating_point()
    ]
    if strange:
        raise DataError(
            f"{path} holds under {some(strange)} no dense tensor of floating-point numbers; "
            "wanted a network's weights and nothing else"
        )
    return {str(key).removeprefix("module."): value.detach() for key, value in state.items()}


def _architecture(
    tensors: Tensors, task: TaskSpec, group_norm: bool, path: Path
) -> tuple[PaperConfig, int]:
    """The configuration, and P of the tensors' names (0 for feed-forward networks)."""
    first = tensors.get("projection.0.weight")
    head = dict(_numbered(tensors, r"head\.(\d+)\.weight"))
    if first is None or not head or first.dim() not in (3, 4):
        raise DataError(
            f"{path} is no network of the paper: it has no projection.0.weight of a 1D or 2D "
            f"convolution or no head, but {some(tensors)}"
        )
    sizes = [head[number].shape[0] if head[number].dim() else 0 for number in sorted(head)]
    shared: dict[str, Any] = {
        "dims": first.dim() - 2,
        "channels": first.shape[1],
        "width": first.shape[0],
        "head": tuple(sizes[:-1]),
        "classes": sizes[-1],
        "group_norm": group_norm,
        "readout": task.readout,
    }
    layers = dict(_numbered(tensors, r"feedforward_layers\.(\d+)\..*"))
    places = dict(_numbered(tensors, r"recur_block\.(\d+)\.\d.*"))
    place = min(max(places, default=0), 2)  # tensors of a later block are reported as unexpected
    inside = rf"feedforward_layers\.{min(layers)}\.0" if layers else rf"recur_block\.{place}"
    shared["blocks"] = max(1, len(dict(_numbered(tensors, inside + r"\.(\d+)\.conv1\.weight"))))
    try:
        if layers:
            recall = "recall_layer.weight" in tensors
            return FeedForwardConfig(**shared, recall=recall, depth=len(layers)), 0
        return PaperConfig(**shared, recall=place > 0, recall_relu=place == 2), place
    except IterantError as error:
        raise DataError(f"{path} is no network of the paper: {error}") from error


def _numbered(tensors: Tensors, pattern: str) -> Iterable[tuple[int, Tensor]]:
    """The tensors whose name matches, by the number in it."""
    for name, tensor in tensors.items():
        if match := re.fullmatch(pattern, name):
            yield int(match[1][:9]), tensor


def _their_name(name: str, config: PaperConfig, place: int) -> str:
    recurrent = not isinstance(config, FeedForwardConfig)
    if name == "projection.weight":
        return "projection.0.weight"
    if name == "recall.weight":
        return "recur_block.0.weight" if recurrent else "recall_layer.weight"
    if recurrent:
        return re.sub(r"^block\.", f"recur_block.{place}.", name)
    return re.sub(r"^blocks\.(\d+)\.", r"feedforward_layers.\1.0.", name)
