"""Tensors on disk: checkpoints of runs, and folders with the weights of a network.

    >>> save_tensors("runs/m0/checkpoints/last", {"net.head": tensor}, {"step": 100})
    >>> tensors, metadata = load_tensors("runs/m0/checkpoints/last", prefix="net.")

    >>> save_weights("mazes-net", {"kind": "deep-thinking", "config": {"width": 32}}, tensors)
    >>> config, tensors = read_weights("mazes-net")
    >>> config, tensors = read_weights("runs/m0")            # a run: its best weights
    >>> config, tensors = read_weights("runs/m0", "averaged")

``checkpoints/last`` stands for the index ``last.json`` and the safetensors file that it lists with
its size, checksum and tensor names; the index of a weights folder is its ``config.json``, which
also describes the network. The file gets a new name and is written first; replacing the index is
the one step that makes it valid. A process killed before that step leaves the old set, one killed
after it the new set. The next save removes what is left over.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from iterant.errors import RunError
from iterant.io.files import (
    PathLike,
    make_folder,
    quoted,
    read_bytes,
    read_json,
    to_json,
    write_atomic,
    write_json,
)

if TYPE_CHECKING:
    from torch import Tensor

FORMAT = 1
CONFIG, CHECKPOINTS = "config.json", "checkpoints"

NET = "net."
"""The prefix of the network's tensors in a checkpoint, beside those of the optimizer."""

CHECKPOINT_PRIORITY = ("best", "averaged", "last")
"""Which checkpoint of a run to read first, unless its configuration has "prefer", as those of
earlier versions."""


def save_tensors(
    path: PathLike,
    tensors: Mapping[str, Tensor],
    metadata: Mapping[str, Any] | None = None,
) -> None:
    """Replace the set of tensors at ``path``.

    Tensors may have any shape, memory layout and dtype that safetensors knows. ``metadata`` is
    JSON, with null for NaN.
    """
    path = Path(path)
    content = {"format": FORMAT, "metadata": to_json(metadata or {}, nan_to_null=True)}
    _replace(path.with_name(f"{path.name}.json"), path.name, content, tensors)


def save_weights(
    folder: PathLike, config: Mapping[str, Any], tensors: Mapping[str, Tensor]
) -> Path:
    """Write a network's configuration and tensors, replacing earlier weights.

    ``config`` has "kind" (a name of `iterant.registry`, or ``module:Class``), "config" (its
    arguments) and anything else worth keeping: task, origin, figures.
    """
    content = {"format": FORMAT, **to_json(config)}
    target = make_folder(folder)
    if (target / CHECKPOINTS).exists():
        raise RunError(f"{quoted(target)} is a run folder; write weights into another folder")
    _replace(target / CONFIG, "weights", content, tensors)
    return target


def _replace(
    index: Path, stem: str, content: dict[str, Any], tensors: Mapping[str, Tensor]
) -> None:
    """Write the tensors, then the index that makes them valid."""
    file = index.with_name(f"{stem}-{secrets.token_hex(6)}-00001-of-00001.safetensors")
    _remove_unlisted(index, stem)  # first: a nearly full disk needs the space
    try:
        # "split" is for earlier versions, which look for it.
        weights = {"shards": [write_shard(file, tensors)], "split": {}}
        write_json(index, {**content, "weights": weights}, checksummed=True)
    finally:
        # Read the index again: after a late signal it may be the new one.
        _remove_unlisted(index, stem)


def write_shard(
    path: Path, tensors: Mapping[str, Tensor], metadata: dict[str, str] | None = None
) -> dict[str, Any]:
    """Write one safetensors file; return its entry for an index."""
    import torch
    from safetensors.torch import save

    # Copies: safetensors refuses views and tensors that share memory.
    copies = {
        name: tensor.detach().cpu().clone(memory_format=torch.contiguous_format)
        for name, tensor in tensors.items()
    }
    data = save(copies, metadata)
    write_atomic(path, data)
    digest = hashlib.sha256(data).hexdigest()
    return {"file": path.name, "bytes": len(data), "sha256": digest, "holds": list(tensors)}


def _remove_unlisted(index: Path, stem: str) -> None:
    """Remove files of replaced and interrupted sets.

    If the index exists but cannot be read, keep all: they may still be recovered.
    """
    shard_or_temporary = re.compile(
        rf"{re.escape(stem)}-[0-9a-f]{{12}}-\d{{5}}-of-\d{{5}}\.safetensors"
        r"|\..*\.[0-9a-f]{12}\.tmp"
    )
    listed = set()
    try:
        if index.exists():
            content = read_json(index, checksummed=True)
            listed = {shard["file"] for shard in content["weights"]["shards"]}
    except (RunError, LookupError, TypeError):
        return
    with contextlib.suppress(OSError):
        for path in index.parent.iterdir():
            if shard_or_temporary.fullmatch(path.name) and path.name not in listed:
                path.unlink(missing_ok=True)


def load_tensors(path: PathLike, prefix: str = "") -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors and metadata saved at ``path``, after checking all checksums.

    With a prefix, only tensors whose names begin with it, and only their files are read.
    """
    path = Path(path)
    content, tensors = _load(path.with_name(f"{path.name}.json"), prefix)
    metadata = content.get("metadata", {})
    if not isinstance(metadata, dict):
        raise RunError(f"'metadata' of {quoted(path)} is of the wrong type")
    return tensors, metadata


def read_weights(
    folder: PathLike, which: str | None = None
) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The configuration ("kind", "config", "task" …) and tensors in a weights folder or a run.

    ``which`` names a checkpoint of a run; a path ``runs/m0/checkpoints/last`` does the same.
    """
    folder = Path(folder)
    if folder.parent.name == CHECKPOINTS and which is None and not folder.is_dir():
        folder, which = folder.parent.parent, folder.name
    path = folder / CONFIG
    if not path.exists():
        raise RunError(
            f"{quoted(folder)} does not exist or has no {CONFIG}; "
            "give a run folder or a folder of weights"
        )
    config = read_json(path)
    keys = config.keys() if isinstance(config, dict) else set()
    if {"weights", "kind"} <= keys:
        if which is not None:
            raise RunError(f"{quoted(folder)} holds one set of weights, no checkpoint {which!r}")
        config, tensors = _load(path)
        del config["weights"]
    elif "net" in keys:
        config, tensors = _read_run(folder, which)
    else:
        raise RunError(
            f"{quoted(path)} describes neither weights of iterant nor a run; "
            "check the path, or use: iterant import"
        )
    check_format(config, path)
    return config, tensors


def _read_run(folder: Path, which: str | None) -> tuple[dict[str, Any], dict[str, Tensor]]:
    config = read_json(folder / CONFIG, checksummed=True)
    saved = checkpoint_names(folder)
    order = (which,) if which else (config.get("prefer"), *CHECKPOINT_PRIORITY)
    name = next((name for name in order if name in saved), None)
    if name is None:
        raise RunError(
            f"{quoted(folder)} has no checkpoint {which or 'yet'}; choose one that it has "
            f"({', '.join(saved) or 'none'}) or let it train longer"
        )
    tensors, _ = load_tensors(folder / CHECKPOINTS / name, NET)
    if not tensors or not isinstance(config["net"], dict):
        raise RunError(f"checkpoint {name!r} of {quoted(folder)} holds no network; choose another")
    about = {key: config[key] for key in ("task", "data", "recipe", "seed") if key in config}
    net = {"format": config.get("format"), **config["net"], **about}
    return net, {key.removeprefix(NET): tensor for key, tensor in tensors.items()}


_TYPES: dict[str, Any] = {"task": str, "seed": int, "recipe": dict, "net": dict, "kind": str,
                          "config": dict, "data": str, "card": dict}  # fmt: skip


def check_format(config: Mapping[str, Any], path: Path) -> None:
    """Raise an error for a file of another format version."""
    if config.get("format") != FORMAT:
        raise RunError(
            f"{quoted(path)} has format {config.get('format')!r}, and this version of iterant "
            f"reads {FORMAT}; use the version that wrote it"
        )
    for key, kind in _TYPES.items():
        if not isinstance(config.get(key), kind | None):
            raise RunError(
                f"{key!r} in {quoted(path)} is of the wrong type; the file was edited by hand"
            )


def checkpoint_names(run: Path) -> list[str]:
    """The names of all checkpoints of a run."""
    return sorted(path.stem for path in (run / CHECKPOINTS).glob("[!.]*.json"))


def _load(index: Path, prefix: str = "") -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The content of an index and its tensors, consistent even while a run is saving."""
    while True:
        content = read_json(index, checksummed=True)
        try:
            return content, _read_shards(index.parent, content["weights"]["shards"], prefix)
        except Exception as error:
            # If the set was replaced between the two reads, its files are gone: read the new one.
            if read_json(index, checksummed=True) != content:
                continue
            if isinstance(error, RunError):
                raise
            raise RunError(
                f"{quoted(index)} lists no tensors that iterant wrote; check the path"
            ) from error


def _read_shards(folder: Path, shards: list[dict[str, Any]], prefix: str) -> dict[str, Tensor]:
    """The tensors of all files in an index; earlier versions wrote several files."""
    from safetensors.torch import load

    tensors: dict[str, Tensor] = {}
    files = [shard["file"] for shard in shards]
    if len(set(files)) < len(files):
        raise RunError(f"{quoted(folder)} lists a file twice; use another checkpoint or a copy")
    for shard in shards:
        names = [name for name in shard["holds"] if name.startswith(prefix)]
        if names:
            path = folder / Path(shard["file"]).name  # no path out of the folder
            data = read_bytes(path)
            if hashlib.sha256(data).hexdigest() != shard["sha256"]:
                raise RunError(
                    f"{quoted(path)} does not match its checksum: damaged or cut short; "
                    "use another checkpoint or a copy of this one"
                )
            loaded = load(data)
            tensors |= {name: loaded[name] for name in names}
    return tensors
