"""Load a trained network by name or path.

    >>> net = load("mazes")                        # shipped weights
    >>> net = load("runs/m0")                      # a run: its best weights
    >>> net = load("runs/m0", which="last")        # one of its other checkpoints
    >>> net = load("imported/mazes", "cuda")       # a folder that import or export wrote

A folder ``weights/NAME`` beside this file, written by `iterant.io.save_weights`, makes
``load("NAME")`` work. The name has precedence over a folder of the same name in the current
folder; ``./NAME`` means the folder.

    >>> card("mazes")["figures"]["59"]["solved"]
    1000

A card is data in the ``config.json`` of shipped weights; ``CARD.md`` beside it is the same as text.
scripts/ship writes both.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import torch

from iterant import registry
from iterant.errors import DataError, IterantError, UnknownName, UntrustedCode, UsageError
from iterant.io import read_json, read_weights
from iterant.io.checkpoint import CONFIG
from iterant.io.files import read_bytes
from iterant.nets import Net, build
from iterant.nets.protocol import shape_faults, tensor_faults

SHIPPED = Path(__file__).parent / "weights"
CARD = "CARD.md"


class Card(dict[str, Any]):
    """How a network was trained and tested, as a dict.

        >>> print(card("prefix-sums"))
        prefix-sums: 4402 parameters, trained on 8,000 of 10,000 strings of 32 bits ...

    Figures are by size as flags write it, "59" or "600000:700000"; they are of the weights as they
    ship, those under "earlier" of the weights before they were converted. Notebooks show CARD.md.
    """

    def __init__(self, content: dict[str, Any], folder: Path) -> None:
        super().__init__(content)
        self.folder = folder

    def __str__(self) -> str:
        name, count, data = map(self.get, ("name", "parameters", "trained_on"))
        return f"{name}: {count} parameters, trained on {data}"

    def _repr_markdown_(self) -> str:
        return read_bytes(self.folder / CARD).decode()


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
    trained and tested, if it ships with iterant; it is None for a run. ``trained_problems`` is the
    kind of problems that it was trained on, as recipes name it, or None if that is not known.

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
    net.card = Card(config["card"], folder) if config.get("card") else None
    recipe = None if config.get("data") else config.get("recipe")
    net.trained_problems = (net.card or recipe or {}).get("problems")
    loaded: Net = net.to(target).eval()
    return loaded


def card(name: str) -> Card:
    """The card of a shipped network, or of a folder; also ``iterant.load(name).card``."""
    folder = folder_of(name)
    content = read_json(folder / CONFIG, checksummed=True).get("card")
    if not isinstance(content, dict):
        raise DataError(f"{name} has no card; its weights were not written by scripts/ship")
    return Card(content, folder)


def folder_of(name_or_path: str | os.PathLike[str]) -> Path:
    """The folder of shipped weights, or the path itself."""
    if not isinstance(name_or_path, str | os.PathLike):
        raise UsageError(
            f"wanted one of {', '.join(shipped())}, or the folder of a run or of weights, got "
            f"{name_or_path!r:.80}"
        )
    text, names = os.fspath(name_or_path), shipped()
    path = Path(text)
    if text in names:
        return SHIPPED / text
    if path.exists() or path.name != text or path.suffix:
        return path
    other = "the folder of a run, or one that iterant import wrote"
    raise UnknownName(registry.unknown_name("weights", text, names, or_give=other))
