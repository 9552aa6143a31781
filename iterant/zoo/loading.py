"""Load a trained network by name or path.

    >>> net = load("mazes")                        # shipped weights
    >>> net = load("runs/m0")                      # a run: its best weights
    >>> net = load("runs/m0", which="last")        # one of its other checkpoints
    >>> net = load("imported/mazes", "cuda")       # a folder that import or export wrote

A folder ``weights/NAME`` beside this file, written by `iterant.io.save_weights`, makes
``load("NAME")`` work. The name has precedence over a folder of the same name in the current
folder; ``./NAME`` means the folder.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from iterant import registry
from iterant.errors import DataError, IterantError, UnknownName
from iterant.io import read_weights
from iterant.nets import Net, build

SHIPPED = Path(__file__).parent / "weights"


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
    """The network of this name, run or weights folder.

        >>> net = load("mazes")
        >>> net.depth is None        # no limit on iterations
        True

    ``which`` chooses a checkpoint of a run: best, averaged or last. Weights stored in half
    precision are loaded as float32.
    """
    target = registry.device(str(device))
    folder = folder_of(name_or_path)
    config, tensors = read_weights(folder, which)
    kind, arguments = config.get("kind"), config.get("config")
    if not isinstance(kind, str) or not isinstance(arguments, dict):
        raise DataError(f"{folder} does not say what network it holds; write the weights again")
    try:
        net: Any = build(kind, arguments)
    except IterantError as error:
        raise DataError(
            f"the network in {folder} cannot be built: {error}; "
            "do not use these weights unless you know where they come from"
        ) from error
    state = net.state_dict()
    if faults := tensor_faults(state, tensors):
        raise DataError(
            f"the weights in {folder} do not fit the network they describe ({faults}); "
            "they were written by another version or put together by hand"
        )
    with torch.no_grad():
        for name, tensor in state.items():
            tensor.copy_(tensors[name])
    loaded: Net = net.to(target).eval()
    return loaded


def folder_of(name_or_path: str | os.PathLike[str]) -> Path:
    """The folder of shipped weights, or the path itself."""
    word, names = os.fspath(name_or_path), shipped()
    if word in names:
        return SHIPPED / word
    path = Path(word)
    is_name = path.name == word and not path.suffix
    if path.exists() or not is_name:
        return path
    remedy = "give the folder of a run, or one that iterant import wrote"
    if not names:
        raise UnknownName(
            f"there are no weights {word!r}: none ship with this version, and there is no folder "
            f"of that name here; {remedy}"
        )
    raise UnknownName(f"{registry.unknown_name('weights', word, names)}; or {remedy}")


def tensor_faults(expected: Mapping[str, Tensor], tensors: Mapping[str, Tensor]) -> str:
    """How tensors differ from those of a network in names, shapes and types; "" if they fit."""
    common = [name for name in expected if name in tensors]
    faults = {
        "missing": [name for name in expected if name not in tensors],
        "unexpected": [name for name in tensors if name not in expected],
        "misshapen": [
            f"{name} {tuple(tensors[name].shape)} instead of {tuple(expected[name].shape)}"
            for name in common
            if tensors[name].shape != expected[name].shape
        ],
        "of another kind of number": [
            f"{name} {tensors[name].dtype} instead of {expected[name].dtype}"
            for name in common
            if tensors[name].is_floating_point() != expected[name].is_floating_point()
        ],
    }
    return "; ".join(f"{what}: {some(names)}" for what, names in faults.items() if names)


def some(names: Iterable[str]) -> str:
    """The first three names, for a message."""
    listed = list(names)
    more = f" and {len(listed) - 3} more" if len(listed) > 3 else ""
    return ", ".join(listed[:3]) + more
