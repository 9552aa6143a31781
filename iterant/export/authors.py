"""Checkpoints of the paper's authors become folders of weights that `iterant.load` reads.

    >>> import_checkpoint("model_best.pth", task=iterant.task("mazes").spec, out="imported")
    >>> net = iterant.load("imported")

What network a file holds is read off its tensors: one dimension or two, channels, width, depth,
recall, the ReLU after it, the head. The task adds how answers are read out. Group norm leaves no
trace in the tensors, so whoever trained with it must say so. Files are read through torch's
restricted loading only, which runs nothing that they contain.

How tensors are named there (``module.`` in front where several GPUs could be used):

    projection.0.weight
    recur_block.0.weight                         the recall convolution, if there is one
    recur_block.P.B.conv{1,2}.weight             block B; P is 0 without recall, 1 with it, and 2
                                                 where a ReLU stands between
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
from torch import Tensor, nn

from iterant.errors import DataError, IterantError
from iterant.io import save_weights
from iterant.io.files import check_new_folder
from iterant.nets import FeedForwardConfig, PaperConfig, build
from iterant.nets.protocol import Needs
from iterant.tasks.protocol import TaskSpec

Tensors = Mapping[str, Tensor]

_FEW = 3
"""How many tensors a message names."""


@dataclass(frozen=True)
class Imported:
    """What an import found and where it is now."""

    folder: Path
    config: PaperConfig
    parameters: int
    epoch: int | None
    """The last epoch that the file remembers."""


@dataclass(frozen=True)
class _Layout:
    """A network, and where each of its tensors is in the file."""

    config: PaperConfig
    place: int
    """The position of the blocks behind the recall convolution; 0 in feed-forward networks"""

    def theirs(self, name: str) -> str:
        """The name there of one of our tensors."""
        recurrent = not isinstance(self.config, FeedForwardConfig)
        fixed = {
            "projection.weight": "projection.0.weight",
            "recall.weight": "recur_block.0.weight" if recurrent else "recall_layer.weight",
        }
        if name in fixed:
            return fixed[name]
        if recurrent:
            return re.sub(r"^block\.", f"recur_block.{self.place}.", name)
        return re.sub(r"^blocks\.(\d+)\.", r"feedforward_layers.\1.0.", name)


def import_checkpoint(
    path: str | os.PathLike[str],
    *,
    task: TaskSpec,
    out: str | os.PathLike[str],
    group_norm: bool = False,
) -> Imported:
    """Write the network in one of the authors' files as a folder of weights.

    ``out`` is a new or empty folder. Every tensor of the file must be one that the network needs,
    and every one that it needs must be there.
    """
    source, target = Path(path), check_new_folder(out)
    content = _restricted(source)
    tensors = _network(content, source)
    layout = _layout(tensors, task, group_norm, source)
    _check_task(layout.config, task, source)
    ours = _renamed(layout, tensors, source)
    config, epoch = layout.config, _epoch(content)
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


def _restricted(path: Path) -> Any:
    """What a file holds, through the loading that runs nothing."""
    if not path.is_file():
        what = "is a folder" if path.is_dir() else "does not exist"
        raise DataError(f"{path} {what}; wanted a checkpoint file such as model_best.pth")
    try:
        with warnings.catch_warnings():
            # torch remarks on foreign pickles before it refuses them; the refusal is enough.
            warnings.simplefilter("ignore")
            return torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # fed with any bytes, the restricted reader raises nearly anything
        forbidden, said = re.search(r"GLOBAL (\S+)", str(error)), str(error).strip()
        if not re.search("[a-z]", said):  # a KeyError says the key alone
            said = "it is of another kind"
        reason = (
            f"it asks for {forbidden[1]}, which tensors do not need"
            if forbidden
            else said.splitlines()[0].split(". ")[0]
        )
        raise DataError(
            f"{path} cannot be read as a checkpoint of tensors ({reason}); nothing of it was run: "
            "get the file again from where it came"
        ) from error


def _network(content: Any, path: Path) -> dict[str, Tensor]:
    """The tensors under "net" (or the file's own), without the prefix of several GPUs."""
    found = content.get("net", content) if isinstance(content, dict) else content
    if not isinstance(found, dict) or not found:
        raise DataError(
            f'{path} holds no network: wanted a dict with tensors under "net", got {_kind(content)}'
        )
    strange = [str(key) for key, value in found.items() if not _usable(key, value)]
    if strange:
        raise DataError(
            f"{path} holds under {_some(strange)} no dense tensor of floating-point numbers; "
            "wanted a network's weights and nothing else"
        )
    return {str(key).removeprefix("module."): value.detach() for key, value in found.items()}


def _kind(content: Any) -> str:
    keys = f" with the keys {_some(map(str, content))}" if isinstance(content, dict) else ""
    return f"a {type(content).__name__}{keys if content else ''}"


def _usable(key: object, value: object) -> bool:
    return (
        isinstance(key, str)
        and isinstance(value, Tensor)
        and value.layout is torch.strided
        and value.is_floating_point()
    )


def _epoch(content: Any) -> int | None:
    epoch = content.get("epoch") if isinstance(content, dict) else None
    return epoch if isinstance(epoch, int) else None


def _layout(tensors: Tensors, task: TaskSpec, group_norm: bool, path: Path) -> _Layout:
    """The network that the tensors belong to."""
    first = tensors.get("projection.0.weight")
    head = dict(_numbered(tensors, r"head\.(\d+)\.weight"))
    if first is None or not head or first.dim() not in (3, 4):
        raise DataError(
            f"{path} is no network of the paper: it has no projection.0.weight of a 1D or 2D "
            f"convolution or no head, but {_some(tensors)}"
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
    turns = dict(_numbered(tensors, r"feedforward_layers\.(\d+)\..*"))
    places = dict(_numbered(tensors, r"recur_block\.(\d+)\.\d.*"))
    place = min(max(places, default=0), 2)  # a block further behind is unknown, and named as such
    inside = rf"feedforward_layers\.{min(turns)}\.0" if turns else rf"recur_block\.{place}"
    shared["blocks"] = max(1, len(dict(_numbered(tensors, inside + r"\.(\d+)\.conv1\.weight"))))
    try:
        if turns:
            recall = "recall_layer.weight" in tensors
            return _Layout(FeedForwardConfig(**shared, recall=recall, depth=len(turns)), 0)
        return _Layout(PaperConfig(**shared, recall=place > 0, recall_relu=place == 2), place)
    except IterantError as error:
        raise DataError(f"{path} is no network of the paper: {error}") from error


def _numbered(tensors: Tensors, pattern: str) -> Iterable[tuple[int, Tensor]]:
    """The tensors whose name fits, by the number in it."""
    for name, tensor in tensors.items():
        found = re.fullmatch(pattern, name)
        if found:
            yield int(found[1][:9]), tensor


def _check_task(config: PaperConfig, task: TaskSpec, path: Path) -> None:
    held = Needs(config.dims, config.channels, config.classes)
    offered = Needs(task.dims, task.channels, task.classes)
    if held != offered:
        raise DataError(
            f"{path} holds a network for {held.beside(offered)}, and {task.name} has "
            f"{offered.beside(held)}; name the task that it was trained on with --task"
        )


def _renamed(layout: _Layout, tensors: Tensors, path: Path) -> dict[str, Tensor]:
    """The tensors under our names; not one may be missing, left over or of another shape."""
    try:
        with torch.device("meta"):  # shapes alone: nothing is allocated for what a file claims
            net: Any = build(layout.config.kind, layout.config)
    except IterantError as error:
        raise DataError(f"{path} is no network of the paper: {error}") from error
    module: nn.Module = net
    wanted = {layout.theirs(name): (name, weight) for name, weight in module.state_dict().items()}
    faults = {
        "missing": [name for name in wanted if name not in tensors],
        "unknown": [name for name in tensors if name not in wanted],
        "misshapen": [
            f"{name} {tuple(tensors[name].shape)} instead of {tuple(weight.shape)}"
            for name, (_, weight) in wanted.items()
            if name in tensors and tensors[name].shape != weight.shape
        ],
    }
    found = [f"{what}: {_some(names)}" for what, names in faults.items() if names]
    if found:
        raise DataError(
            f"{path} is no whole network of the paper ({'; '.join(found)}); "
            "only DT, DT-Recall and feed-forward networks can be imported"
        )
    return {ours: tensors[theirs].clone() for theirs, (ours, _) in wanted.items()}


def _some(names: Iterable[str]) -> str:
    listed = list(names)
    more = f" and {len(listed) - _FEW} more" if len(listed) > _FEW else ""
    return ", ".join(listed[:_FEW]) + more
