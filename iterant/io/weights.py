"""Weights folders: a network's configuration and tensors, as `iterant.load(path)` reads them.

    >>> save_weights("mazes-net", {"kind": "deep-thinking", "config": {"width": 32}}, tensors)
    >>> config, tensors = read_weights("mazes-net")
    >>> config, tensors = read_weights("runs/m0")            # a run: its best weights
    >>> config, tensors = read_weights("runs/m0", "averaged")

``config.json`` describes the network and lists the files with their checksums; replacing it makes
new weights valid.
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
"""The prefix of the network's tensors in a checkpoint, beside those of the optimizer."""

ORDER = ("best", "averaged", "last")
"""The checkpoints of a run in order of preference, after "prefer" of its configuration."""

_STEM = "weights"


def save_weights(
    folder: PathLike,
    config: Mapping[str, Any],
    tensors: Mapping[str, Tensor],
    shard_mb: float | None = None,
) -> Path:
    """Write a network's configuration and tensors, replacing earlier weights.

    ``config`` has "kind" (a name of `iterant.registry`, or ``module:Class``), "config" (its
    arguments) and anything else worth keeping: task, origin, figures.
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
    content = read_json(folder / CONFIG)
    if isinstance(content, dict) and "net" in content and not {_STEM, "kind"} <= content.keys():
        return _read_run(RunFolder.open(folder), which)
    if not isinstance(content, dict) or not {_STEM, "kind"} <= content.keys():
        raise RunError(
            f"{quoted(folder / CONFIG)} describes neither weights of iterant nor a run "
            '(no "kind" with "weights", and no "net"); check the path, or use: iterant import'
        )
    if which is not None:
        raise RunError(f"{quoted(folder)} holds one set of weights, no checkpoint {which!r}")
    content, tensors = load_indexed(folder / CONFIG)
    if content.get("format") != FORMAT:
        raise RunError(
            f"{quoted(folder / CONFIG)} has format {content.get('format')!r}, and this version of "
            f"iterant reads {FORMAT}; use the version that wrote it"
        )
    return {key: value for key, value in content.items() if key != _STEM}, tensors


def _read_run(run: RunFolder, which: str | None) -> tuple[dict[str, Any], dict[str, Tensor]]:
    saved = run.checkpoints()
    order = (which,) if which else (run.config.get("prefer"), *ORDER)
    name = next((name for name in order if name in saved), None)
    if name is None:
        raise RunError(
            f"{quoted(run.path)} has no checkpoint {which or 'yet'}; "
            + (f"it has: {', '.join(saved)}" if saved else "let it train until its first")
        )
    tensors, _ = run.load(name, PREFIX)
    if not tensors:
        raise RunError(
            f"checkpoint {name!r} of {quoted(run.path)} holds no network (no tensor is named "
            f"{PREFIX}…); choose another checkpoint"
        )
    if not isinstance(run.config["net"], dict):
        raise RunError(f"{quoted(run.path / CONFIG)} describes no network; restore it from a copy")
    config: dict[str, Any] = {"format": FORMAT, **run.config["net"]}
    return config, {key.removeprefix(PREFIX): tensor for key, tensor in tensors.items()}
