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
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from iterant.errors import DataError, IterantError, argument
from iterant.io import save_weights
from iterant.io.files import PathLike, check_new_folder, read_bytes
from iterant.io.pth import load_pth
from iterant.nets import FeedForwardConfig, PaperConfig, build
from iterant.nets.protocol import Needs, tensor_faults
from iterant.tasks.protocol import TaskSpec


@dataclass(frozen=True)
class Imported:
    """The result of an import."""

    folder: Path
    config: PaperConfig
    parameters: int
    epoch: int | None
    """The last epoch, if the file has it."""


def import_checkpoint(
    path: PathLike, *, task: TaskSpec, out: PathLike, group_norm: bool = False
) -> Imported:
    """Convert a checkpoint file to a weights folder, which must be new or empty.

    The file must have exactly the tensors of the network.
    """
    source, target = Path(path), check_new_folder(out)
    digest = hashlib.sha256(read_bytes(source)).hexdigest()
    tensors, epoch = _load(source)
    try:
        config, block_index = _architecture(tensors, task, group_norm)
        with torch.device("meta"):  # shapes only: do not allocate what a file claims
            net: Any = build(config.kind, config)
    except IterantError as error:
        raise DataError(f"{source} is not a network of the paper: {error}") from error
    needs = Needs(config.dims, config.channels, config.classes)
    offered = Needs(task.dims, task.channels, task.classes)
    if needs != offered:
        raise DataError(
            f"{source} holds a network for {needs}, and {task.name} has {offered}; "
            f"name the task that it was trained on: {argument('task')}"
        )
    theirs = {name: _their_name(name, config, block_index) for name in net.state_dict()}
    expected = {theirs[name]: weight for name, weight in net.state_dict().items()}
    if faults := tensor_faults(expected, tensors):
        raise DataError(
            f"{source} is not a complete network of the paper ({faults}); "
            "only DT, DT-Recall and feed-forward networks can be imported"
        )
    described = {
        "kind": config.kind,
        "config": config.described(),
        "task": task.name,
        "origin": {
            "what": "a checkpoint of the paper's authors",
            "file": source.name,
            "sha256": digest,
            "epoch": epoch,
        },
    }
    folder = save_weights(target, described, {ours: tensors[theirs[ours]] for ours in theirs})
    return Imported(folder, config, sum(tensor.numel() for tensor in tensors.values()), epoch)


def _load(path: Path) -> tuple[dict[str, Tensor], int | None]:
    """The tensors under "net" (or the whole file) by their names, and the epoch."""
    try:
        content = load_pth(path)
    except DataError as error:
        raise DataError(
            f"{path} cannot be read as a checkpoint of tensors ({error}); nothing of it was run: "
            "get the file again from where it came"
        ) from error
    state = content.get("net", content) if isinstance(content, dict) else None
    if not isinstance(state, dict) or not all(
        isinstance(name, str) and isinstance(tensor, Tensor) and tensor.is_floating_point()
        for name, tensor in state.items()
    ):
        raise DataError(
            f'{path} holds no network; wanted a dict with dense floating-point tensors under "net"'
        )
    epoch = content.get("epoch")
    tensors = {name.removeprefix("module."): tensor for name, tensor in state.items()}
    return tensors, epoch if isinstance(epoch, int) else None


def _architecture(
    tensors: dict[str, Tensor], task: TaskSpec, group_norm: bool
) -> tuple[PaperConfig, int]:
    """The configuration, and P in the names of tensors (0 for feed-forward networks)."""

    def numbered(pattern: str) -> dict[int, Tensor]:
        """The tensors whose name matches, by the number in it."""
        matches = {name: re.fullmatch(pattern, name) for name in tensors}
        return {int(match[1]): tensors[name] for name, match in matches.items() if match}

    first = tensors.get("projection.0.weight")
    head = numbered(r"head\.(\d{1,9})\.weight")
    if first is None or not head or first.dim() not in (3, 4):
        raise DataError("it has no head or no projection.0.weight of a 1D or 2D convolution")
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
    layers = numbered(r"feedforward_layers\.(\d{1,9})\..*")
    # Tensors of a later block are reported as unexpected.
    block_index = min(max(numbered(r"recur_block\.(\d{1,9})\.\d.*"), default=0), 2)
    inside = rf"feedforward_layers\.{min(layers)}\.0" if layers else rf"recur_block\.{block_index}"
    shared["blocks"] = max(1, len(numbered(inside + r"\.(\d{1,9})\.conv1\.weight")))
    if layers:
        recall = "recall_layer.weight" in tensors
        return FeedForwardConfig(**shared, recall=recall, depth=len(layers)), 0
    return PaperConfig(**shared, recall=block_index > 0, recall_relu=block_index == 2), block_index


def _their_name(name: str, config: PaperConfig, block_index: int) -> str:
    recurrent = not isinstance(config, FeedForwardConfig)
    if name == "projection.weight":
        return "projection.0.weight"
    if name == "recall.weight":
        return "recur_block.0.weight" if recurrent else "recall_layer.weight"
    if recurrent:
        return re.sub(r"^block\.", f"recur_block.{block_index}.", name)
    return re.sub(r"^blocks\.(\d+)\.", r"feedforward_layers.\1.0.", name)
