"""Checkpoints: named sets of tensors in safetensors files, replaced as a whole.

    >>> save_tensors("runs/m0/checkpoints/last", {"net.head": tensor}, {"step": 100})
    >>> tensors, metadata = load_tensors("runs/m0/checkpoints/last", prefix="net.")

``checkpoints/last`` stands for the index ``last.json`` and the files (shards) that it lists with
their sizes, checksums and tensor names. The shards get new names and are written first; replacing
the index is the one step that makes them valid. A process killed before that step leaves the old
set, one killed after it the new set. The next save removes what is left over.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
import secrets
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from iterant.errors import RunError, UsageError
from iterant.io.files import (
    PathLike,
    explain_os_error,
    quoted,
    read_bytes,
    read_json,
    to_json,
    write_atomic,
    write_json,
)

if TYPE_CHECKING:
    from torch import Tensor

Manifest = dict[str, Any]
"""The "weights" of an index: "shards" (file, bytes, sha256, names of tensors) and "split".

Earlier versions cut tensors above the shard size into flat parts ``name#0``, ``name#1``; "split"
has their shapes. It is still read, and written empty.
"""

FORMAT = 1
SMALLEST_SHARD_MB = 0.01
LARGEST_SHARD_MB = 512.0
"""The default: a shard is copied in memory while it is written."""

_READ_ATTEMPTS = 20
_REMEDY = "use another checkpoint or a copy of this one"


def index_path(path: PathLike) -> Path:
    """The index of a set: ``checkpoints/last`` has ``checkpoints/last.json``."""
    path = Path(path)
    return path.with_name(f"{path.name}.json")


def save_tensors(
    path: PathLike,
    tensors: Mapping[str, Tensor],
    metadata: Mapping[str, Any] | None = None,
    shard_mb: float | None = None,
) -> list[Path]:
    """Replace the set at ``path`` and return its files, the index first.

    Tensors may have any shape, memory layout and dtype that safetensors knows. ``metadata`` is
    JSON without NaN and infinities. A file has at most ``shard_mb`` million bytes, or one tensor.
    """
    index = index_path(path)
    content = {"format": FORMAT, "metadata": to_json(metadata or {})}
    manifest = replace_shards(
        index, Path(path).name, tensors, shard_mb, lambda manifest: {**content, "weights": manifest}
    )
    return [index, *(index.parent / shard["file"] for shard in manifest["shards"])]


def replace_shards(
    index: Path,
    stem: str,
    tensors: Mapping[str, Tensor],
    shard_mb: float | None,
    content: Callable[[Manifest], dict[str, Any]],
) -> Manifest:
    """Write the shards, then the index that makes them valid: ``content(manifest)``."""
    _remove_unlisted(index, stem)  # first: a nearly full disk needs the space
    try:
        manifest = _write_shards(index.parent, stem, tensors, shard_mb)
        write_json(index, content(manifest), checksummed=True)
    finally:
        # Read the index again: after a late signal it may be the new one.
        _remove_unlisted(index, stem)
    return manifest


def _write_shards(
    folder: Path, stem: str, tensors: Mapping[str, Tensor], shard_mb: float | None
) -> Manifest:
    import torch
    from safetensors.torch import save

    shard_mb = LARGEST_SHARD_MB if shard_mb is None else shard_mb
    if not SMALLEST_SHARD_MB <= shard_mb < float("inf"):
        raise UsageError(
            f"shard size must be at least {SMALLEST_SHARD_MB} MB, got {shard_mb}; try 15"
        )
    groups: list[list[str]] = [[]]
    size = 0
    for name, tensor in tensors.items():
        _check_savable(name, tensor)
        # The header of a file takes less than 300 bytes and the name for each tensor.
        cost = tensor.numel() * tensor.element_size() + 300 + len(name)
        if size + cost > shard_mb * 1_000_000 and groups[-1]:
            groups.append([])
            size = 0
        groups[-1].append(name)
        size += cost
    token = secrets.token_hex(6)
    shards = []
    for number, names in enumerate(groups, start=1):
        path = folder / f"{stem}-{token}-{number:05}-of-{len(groups):05}.safetensors"
        # Copies: safetensors refuses views and tensors that share memory.
        data = save(
            {
                name: tensors[name].detach().cpu().clone(memory_format=torch.contiguous_format)
                for name in names
            }
        )
        write_atomic(path, data)
        digest = hashlib.sha256(data).hexdigest()
        shards.append({"file": path.name, "bytes": len(data), "sha256": digest, "holds": names})
    return {"shards": shards, "split": {}}


def _check_savable(name: str, tensor: Tensor) -> None:
    import torch
    from safetensors.torch import save

    if not isinstance(name, str) or "#" in name or name == "__metadata__" or len(name) > 1000:
        raise UsageError(
            f"a tensor cannot be saved under the name {name!r}; use text without '#' of up to "
            "1000 characters, other than '__metadata__'"
        )
    if not isinstance(tensor, torch.Tensor) or tensor.layout is not torch.strided:
        raise UsageError(f"{name!r} cannot be saved: wanted a dense tensor, got {type(tensor)}")
    try:
        save({name: torch.empty(0, dtype=tensor.dtype)})
    except Exception as error:
        raise UsageError(
            f"{name!r} cannot be saved: safetensors has no {tensor.dtype}; convert it first"
        ) from error


def _remove_unlisted(index: Path, stem: str) -> None:
    """Remove shards, replaced or interrupted, that the index does not list.

    If the index exists but cannot be read, keep all: they may still be recovered.
    """
    shards = re.compile(
        rf"\.?{re.escape(stem)}-[0-9a-f]{{12}}-\d{{5}}-of-\d{{5}}\.safetensors"
        r"(\.[0-9a-f]{12}\.tmp)?"
    )
    try:
        listed = {shard["file"] for shard in read_index(index)[1]["shards"]}
    except RunError:
        if index.exists():
            return
        listed = set()
    with contextlib.suppress(OSError):
        for path in index.parent.iterdir():
            if shards.fullmatch(path.name) and path.name not in listed:
                with contextlib.suppress(OSError):
                    path.unlink()


def read_index(index: Path) -> tuple[dict[str, Any], Manifest]:
    """The verified content of an index, and its manifest, whose files lie in the same folder."""
    value = read_json(index, checksummed=True)
    manifest = value.get("weights")
    try:
        ok = all(isinstance(shape, list) for shape in manifest["split"].values()) and all(
            re.fullmatch(r"[\w.-]+\.safetensors", shard["file"])
            and isinstance(shard["bytes"], int)
            and isinstance(shard["sha256"], str)
            and isinstance(shard["holds"], list)
            for shard in manifest["shards"]
        )
    except (KeyError, TypeError, AttributeError):
        ok = False
    if not ok:
        raise RunError(f"{quoted(index)} lists no tensors that iterant wrote; check the path")
    return value, manifest


def load_tensors(path: PathLike, prefix: str = "") -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors and metadata saved at ``path``, after checking all sizes and checksums.

    With a prefix, only tensors whose names begin with it, and only their files are read. A path
    that ends in ``.safetensors`` is read as a single file without checksum.
    """
    path = Path(path)
    if path.suffix == ".safetensors":
        loaded = _parse(read_bytes(path), path)
        return {name: t for name, t in loaded.items() if name.startswith(prefix)}, {}
    index = index_path(path)
    if not index.exists():
        raise RunError(f"there are no tensors at {quoted(path)}: {quoted(index.name)} is missing")
    value, tensors = load_indexed(index, prefix)
    return tensors, dict(value.get("metadata", {}))


def load_indexed(index: Path, prefix: str = "") -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The content of an index and its tensors, consistent even while a run is saving."""
    attempts = 0
    while True:
        value, manifest = read_index(index)
        try:
            return value, _read_shards(index.parent, manifest, prefix)
        except RunError:
            # If the set was replaced between the two reads, its files are gone: read the new one.
            attempts += 1
            if attempts == _READ_ATTEMPTS or read_index(index)[1] == manifest:
                raise


def _read_shards(folder: Path, manifest: Manifest, prefix: str) -> dict[str, Tensor]:
    import torch

    shards = [s for s in manifest["shards"] if any(key.startswith(prefix) for key in s["holds"])]
    for shard in shards:  # all sizes before any content: a cut file is found at once
        path = folder / shard["file"]
        try:
            size = path.stat().st_size
        except OSError as error:
            raise explain_os_error(error, "read", path) from error
        if size != shard["bytes"]:
            raise RunError(
                f"{quoted(path)} holds {size} bytes where {shard['bytes']} were written: it is "
                f"{'cut short' if size < shard['bytes'] else 'not the same file'}; {_REMEDY}"
            )
    loaded: dict[str, Tensor] = {}
    for shard in shards:
        path = folder / shard["file"]
        data = read_bytes(path)
        if hashlib.sha256(data).hexdigest() != shard["sha256"]:
            raise RunError(
                f"{quoted(path)} does not match its checksum: its content was damaged; {_REMEDY}"
            )
        loaded |= _parse(data, path)
    for name, shape in manifest["split"].items():
        if name.startswith(prefix):
            parts: list[Tensor] = []
            while (key := f"{name}#{len(parts)}") in loaded:
                parts.append(loaded.pop(key))
            loaded[name] = torch.cat(parts).reshape(shape)
    order = [key.partition("#")[0] for shard in shards for key in shard["holds"]]
    return {name: loaded[name] for name in dict.fromkeys(order) if name.startswith(prefix)}


def _parse(data: bytes, path: Path) -> dict[str, Tensor]:
    from safetensors.torch import load

    try:
        return load(data)
    except Exception as error:
        pickled = data[:2] in (b"\x80\x02", b"\x80\x04", b"PK")
        cause = " ".join(str(error).split()) or type(error).__name__
        raise RunError(
            f"{quoted(path)} is not a whole safetensors file "
            f"({'a pickle or zip archive' if pickled else cause}); {_REMEDY}"
        ) from error
