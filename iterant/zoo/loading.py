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

import contextlib
import os
from pathlib import Path
from typing import Any

import torch

from iterant import registry
from iterant.errors import DataError, IterantError, UnknownName, UntrustedCode
from iterant.io import read_weights
from iterant.nets import Net, build
from iterant.nets.protocol import shape_faults, tensor_faults
from iterant.zoo.cards import card_of

SHIPPED = Path(__file__).parent / "weights"


def shipped() -> tuple[str, ...]:
    """The names of the weights that ship with this version."""
    return tuple(sorted(path.parent.name for path in SHIPPED.glob("*/config.json")))


def load(
    name_or_path: str | os.PathLike[str],
    device: str | torch.device = "cpu",
    which: str | None = None,
    *,
    trust: bool = False,
) -> Net:
    """The network of this name, run or weights folder.

        >>> net = load("mazes")
        >>> net.depth is None        # no limit on iterations
        True

    Weights stored in half precision are loaded as float32. The network's ``card`` says how it was
    trained and tested, if it ships with iterant; it is None for a run.

    Args:
        name_or_path: a shipped name (``iterant info`` lists them), a run or a folder of weights.
        device: where the network computes, ``cuda`` for a GPU.
        which: a checkpoint of a run: best, averaged or last.
        trust: if the folder names a user-defined network, import its module.
    """
    target = registry.device(device)
    folder = folder_of(name_or_path)
    config, tensors = read_weights(folder, which)
    try:
        with registry.names_of_file(folder, config, trust=trust):
            faults = shape_faults(config["kind"], config["config"], tensors)
            net: Any = None if faults else build(config["kind"], config["config"])
    except UntrustedCode:
        raise
    except (IterantError, AttributeError, KeyError, RuntimeError, TypeError, ValueError) as error:
        reason = " ".join(str(error).split())[:300]
        raise DataError(
            f"the network in {folder} cannot be built: {reason}; "
            "do not use these weights unless you know where they come from"
        ) from error
    faults = faults or tensor_faults(net.state_dict(), tensors)
    if faults:
        raise DataError(
            f"the weights in {folder} do not fit the network they describe ({faults}); "
            "they were written by another version or put together by hand"
        )
    with torch.no_grad():
        for name, tensor in net.state_dict().items():
            tensor.copy_(tensors[name])
    net.card = None
    with contextlib.suppress(DataError):  # a card of another version; the weights are fine
        net.card = card_of(config, str(name_or_path))
    loaded: Net = net.to(target).eval()
    return loaded


def folder_of(name_or_path: str | os.PathLike[str]) -> Path:
    """The folder of shipped weights, or the path itself."""
    text, names = os.fspath(name_or_path), shipped()
    path = Path(text)
    if text in names:
        return SHIPPED / text
    if path.exists() or path.name != text or path.suffix:
        return path
    raise UnknownName(
        f"{registry.unknown_name('weights', text, names)}; "
        "or give the folder of a run, or one that iterant import wrote"
    )
