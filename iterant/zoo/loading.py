"""From a name or a path to a network that is ready to think.

    >>> net = load("runs/m0")                      # a run: its best weights
    >>> net = load("runs/m0", which="last")        # one of its other checkpoints
    >>> net = load("imported/mazes", "cuda")       # a folder that import or export wrote

A folder ``weights/NAME`` beside this file, written by `iterant.io.save_weights`, is all that it
takes for ``load("NAME")`` to work. Such a name wins over a folder of the same name where the
program was started; ``./NAME`` means the folder.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from iterant import registry
from iterant.errors import DataError, IterantError, UnknownName
from iterant.io import read_weights
from iterant.nets import Net, build
from iterant.training.device import device_of

SHIPPED = Path(__file__).parent / "weights"
"""Where the shipped weights are: a folder a name."""

_FEW = 3
"""How many tensors a message names."""


def shipped() -> tuple[str, ...]:
    """The names of the weights that ship with this version.

    >>> [card(name).parameters for name in shipped()]
    """
    return tuple(sorted(path.parent.name for path in SHIPPED.glob("*/config.json")))


def load(
    name_or_path: str | os.PathLike[str],
    device: str | torch.device = "cpu",
    which: str | None = None,
) -> Net:
    """The network of that name, or of that run or folder of weights.

        >>> net = load("mazes")
        >>> net.depth is None        # it can go on for ever
        True

    ``which`` chooses a checkpoint of a run: best, averaged or last. Weights that were stored in
    half precision are loaded as float32, so that inputs need no care.
    """
    target = device_of(str(device))
    folder = folder_of(name_or_path)
    config, tensors = read_weights(folder, which)
    net = _built(folder, config)
    _fill(net, tensors, folder)
    ready: Any = net.to(target).eval()
    made: Net = ready
    return made


def folder_of(name_or_path: str | os.PathLike[str]) -> Path:
    """Where the weights are; a word that is neither a name nor a path names nothing."""
    word = os.fspath(name_or_path)
    names_there = shipped()
    if word in names_there:
        return SHIPPED / word
    path = Path(word)
    is_word = path.name == word and not path.suffix
    if path.exists() or not is_word:
        return path
    remedy = "give the folder of a run, or one that iterant import wrote"
    if not names_there:
        raise UnknownName(
            f"there are no weights {word!r}: none ship with this version, and there is no folder "
            f"of that name here; {remedy}"
        )
    raise UnknownName(f"{registry.unknown_name('weights', word, names_there)}; or {remedy}")


def _built(folder: Path, config: Mapping[str, Any]) -> nn.Module:
    """The network that a configuration describes, with weights still to be filled in."""
    kind, own = config.get("kind"), config.get("config")
    if not isinstance(kind, str) or not isinstance(own, dict):
        raise DataError(f"{folder} does not say what network it holds; write the weights again")
    try:
        net: Any = build(kind, own)
    except IterantError as error:
        raise DataError(
            f"the network in {folder} cannot be built: {error}; "
            "do not use these weights unless you know where they come from"
        ) from error
    module: nn.Module = net
    return module


def _fill(net: nn.Module, tensors: Mapping[str, Tensor], folder: Path) -> None:
    """Copy the tensors into the network; every one must be there, wanted and of the right shape."""
    wanted = net.state_dict()
    faults = {
        "missing": [name for name in wanted if name not in tensors],
        "unexpected": [name for name in tensors if name not in wanted],
        "misshapen": [
            f"{name} {tuple(tensors[name].shape)} instead of {tuple(wanted[name].shape)}"
            for name in wanted
            if name in tensors and tensors[name].shape != wanted[name].shape
        ],
        "of another kind of number": [
            f"{name} {tensors[name].dtype} instead of {wanted[name].dtype}"
            for name in wanted
            if name in tensors
            and tensors[name].is_floating_point() != wanted[name].is_floating_point()
        ],
    }
    found = [f"{what}: {_some(which)}" for what, which in faults.items() if which]
    if found:
        raise DataError(
            f"the weights in {folder} do not fit the network they describe ({'; '.join(found)}); "
            "they were written by another version or put together by hand"
        )
    with torch.no_grad():
        for name, tensor in wanted.items():
            tensor.copy_(tensors[name])


def _some(which: list[str]) -> str:
    more = f" and {len(which) - _FEW} more" if len(which) > _FEW else ""
    return ", ".join(which[:_FEW]) + more
