"""Folders of weights: what `iterant.load(path)` reads, and what export and import write.

    >>> save_weights("mazes-net", {"kind": "deep-thinking", "config": {"width": 32}}, tensors)
    >>> config, tensors = read_weights("mazes-net")
    >>> config, tensors = read_weights("runs/m0")            # a run: its best weights
    >>> config, tensors = read_weights("runs/m0", "averaged")

``config.json`` says what network it is and lists the files with their checksums; replacing it is
what makes new weights valid. Networks are built elsewhere: this room knows only their tensors.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from iterant.errors import RunError, UsageError
from iterant.io.checkpoint import FORMAT, load_indexed, replace_shards
from iterant.io.files import PathLike, make_folder, quoted, read_json, to_json
from iterant.io.run_folder import CHECKPOINTS, CONFIG, RunFolder

if TYPE_CHECKING:
    from torch import Tensor


PREFIX = "net."
"""How the network's tensors are named in a checkpoint, beside the optimiser's and others."""

ORDER = ("best", "averaged", "last")
"""Which checkpoint of a run is its weights, unless its configuration says "prefer"."""

_STEM = "weights"


def save_weights(
    folder: PathLike,
    config: Mapping[str, Any],
    tensors: Mapping[str, Tensor],
    shard_mb: float | None = None,
) -> Path:
    """Write a network's configuration and tensors; weights that were there are replaced.

    ``config`` has "kind" (a word of `iterant.registry`, or ``module:Class``) and "config" (what
    builds it), and whatever else should be remembered: task, origin, figures.
    """
    content = {"format": FORMAT, **to_json(config)}
    if not isinstance(content.get("kind"), str) or not isinstance(content.get("config"), dict):
        raise UsageError(
            f'weights need a configuration with "kind" (text) and "config" (a dict), got the keys '
            f"{', '.join(map(str, config)) or 'none'}"
        )
    if _STEM in content or content["format"] != FORMAT:
        raise UsageError(f'"{_STEM}" and "format" are written by save_weights; leave them out')
    target = make_folder(folder)
    if (target / CHECKPOINTS).exists():
        raise RunError(f"{quoted(target)} is a run folder; write weights into another folder")
    replace_shards(
        target / CONFIG, _STEM, tensors, shard_mb, lambda manifest: {**content, _STEM: manifest}
    )
    return target


def read_weights(
    folder: PathLike, which: str | None = None
) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The configuration ("kind", "config", …) and tensors in a weights folder or a run.

    ``which`` names a checkpoint of a run; a path ``runs/m0/checkpoints/last`` does the same.
    """
    folder = Path(folder)
    if folder.parent.name == CHECKPOINTS and which is None and not folder.is_dir():
        folder, which = folder.parent.parent, folder.name
    if not folder.is_dir():
        what = "is not a folder" if folder.exists() else "does not exist"
        raise RunError(f"{quoted(folder)} {what}; give a run folder or a folder with {CONFIG}")
    if not (folder / CONFIG).exists():
        raise RunError(f"{quoted(folder)} holds no weights and no run: {CONFIG} is missing")
    found = read_json(folder / CONFIG)
    if isinstance(found, dict) and _STEM in found and "kind" in found:
        return _from_weights_folder(folder, which)
    if isinstance(found, dict) and "net" in found:
        return _from_run(RunFolder.open(folder), which)
    raise RunError(
        f"{quoted(folder / CONFIG)} describes neither weights of iterant nor a run "
        '(no "kind" with "weights", and no "net"); check the path, or use: iterant import'
    )


def _from_weights_folder(
    folder: Path, which: str | None
) -> tuple[dict[str, Any], dict[str, Tensor]]:
    if which is not None:
        raise RunError(f"{quoted(folder)} holds one set of weights, no checkpoint {which!r}")
    content, tensors = load_indexed(folder / CONFIG)
    if content.get("format") != FORMAT:
        raise RunError(
            f"{quoted(folder / CONFIG)} has format {content.get('format')!r}, and this version of "
            f"iterant reads {FORMAT}; use the version that wrote it"
        )
    return {key: value for key, value in content.items() if key != _STEM}, tensors


def _from_run(run: RunFolder, which: str | None) -> tuple[dict[str, Any], dict[str, Tensor]]:
    there = run.checkpoints()
    order = (which,) if which else (run.config.get("prefer"), *ORDER)
    chosen = next((name for name in order if name in there), None)
    if chosen is None:
        raise RunError(
            f"{quoted(run.path)} has no checkpoint {which or 'yet'}; "
            + (f"it has: {', '.join(there)}" if there else "let it train until its first")
        )
    tensors, _ = run.load(chosen, PREFIX)
    if not tensors:
        raise RunError(
            f"checkpoint {chosen!r} of {quoted(run.path)} holds no network (no tensor is named "
            f"{PREFIX}…); choose another checkpoint"
        )
    if not isinstance(run.config["net"], dict):
        raise RunError(f"{quoted(run.path / CONFIG)} describes no network; restore it from a copy")
    config: dict[str, Any] = {"format": FORMAT, **run.config["net"]}
    return config, {name.removeprefix(PREFIX): tensor for name, tensor in tensors.items()}
