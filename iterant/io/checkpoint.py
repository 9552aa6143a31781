"""Tensors as safetensors files of bounded size, each with its checksum.

    >>> manifest = write_shards(folder, "last", {"net.head": tensor}, shard_mb=15)
    >>> read_shards(folder, manifest)
    {'net.head': tensor(...)}

A manifest is a small JSON object: the files with their sizes, checksums and the tensors in each,
and the shapes of tensors that were too large for one file. Every set of files has names of its
own, so that writing one never touches another: whoever keeps the manifest decides which is valid.
A tensor above the limit is cut flat into parts, ``name#0``, ``name#1``, and joined when read.

Named sets of tensors that are replaced as a whole: checkpoints.

``checkpoints/last`` stands for the index ``last.json`` and the files it lists. All files are
written under new names first; replacing the index is the one step that makes them valid. A
process killed before it leaves the old set, a process killed after it the new one; what is left
over is removed by the next save.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import secrets
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
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

SMALLEST_SHARD_MB = 0.01
LARGEST_SHARD_MB = 512.0
"""Without a limit asked for, files still end here: one of them at a time is copied in memory."""

_HEADER = 256
"""Bytes of a file besides tensors and their entries: length field, braces, padding."""

_REMEDY = "use another checkpoint or a copy of this one"


@dataclass(frozen=True)
class _Piece:
    """A tensor, or elements ``start`` to ``stop`` of one that is cut."""

    name: str
    part: int | None
    start: int
    stop: int

    @property
    def key(self) -> str:
        return self.name if self.part is None else f"{self.name}#{self.part}"


def write_shards(
    folder: Path, stem: str, tensors: Mapping[str, Tensor], shard_mb: float | None = None
) -> Manifest:
    """Write the files of one set and return its manifest; on failure none of them stays."""
    limit = _limit(shard_mb)
    for name, tensor in tensors.items():
        _check(name, tensor)
    plan = _plan(tensors, limit)
    token = secrets.token_hex(6)
    split: dict[str, list[int]] = {}
    shards: list[dict[str, Any]] = []
    written: list[Path] = []
    try:
        for number, pieces in enumerate(plan, start=1):
            path = folder / f"{stem}-{token}-{number:05}-of-{len(plan):05}.safetensors"
            data = _packed(tensors, pieces)
            written.append(path)
            write_atomic(path, data)
            shards.append(
                {
                    "file": path.name,
                    "bytes": len(data),
                    "sha256": hashlib.sha256(data).hexdigest(),
                    "holds": [piece.key for piece in pieces],
                }
            )
            split |= {p.name: list(tensors[p.name].shape) for p in pieces if p.part is not None}
    except BaseException:
        _remove(written)
        raise
    return {"shards": shards, "split": split}


def _limit(shard_mb: float | None) -> int:
    if shard_mb is None:
        shard_mb = LARGEST_SHARD_MB
    if not SMALLEST_SHARD_MB <= shard_mb < float("inf"):
        raise UsageError(
            f"shard size must be at least {SMALLEST_SHARD_MB} MB, got {shard_mb}; try 15"
        )
    return int(shard_mb * 1_000_000)


def _check(name: str, tensor: Tensor) -> None:
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


def _plan(tensors: Mapping[str, Tensor], limit: int) -> list[list[_Piece]]:
    """Which pieces go into which file, in order, so that no file exceeds the limit."""
    plan: list[list[_Piece]] = [[]]
    room = limit - _HEADER
    for name, tensor in tensors.items():
        for piece in _pieces(name, tensor, limit - _HEADER):
            cost = (piece.stop - piece.start) * tensor.element_size() + _entry(name, tensor)
            if cost > room and plan[-1]:
                plan.append([])
                room = limit - _HEADER
            plan[-1].append(piece)
            room -= cost
    return plan


def _pieces(name: str, tensor: Tensor, room: int) -> Iterator[_Piece]:
    count, item = tensor.numel(), tensor.element_size()
    if count * item + _entry(name, tensor) <= room:
        yield _Piece(name, None, 0, count)
        return
    length = max((room - _entry(name, tensor)) // item, 1)
    for part, start in enumerate(range(0, count, length)):
        yield _Piece(name, part, start, min(start + length, count))


def _entry(name: str, tensor: Tensor) -> int:
    """Bytes that a tensor takes in a header, or a few more."""
    return len(json.dumps(name)) + 24 * tensor.dim() + 120


def _packed(tensors: Mapping[str, Tensor], pieces: list[_Piece]) -> bytes:
    import torch
    from safetensors.torch import save

    content: dict[str, Tensor] = {}
    for piece in pieces:
        whole = tensors[piece.name].detach()
        if piece.part is not None:
            whole = whole.reshape(-1)[piece.start : piece.stop]
        # A copy of its own: safetensors refuses views, and tensors that share memory.
        content[piece.key] = whole.cpu().clone(memory_format=torch.contiguous_format)
    return save(content)


def read_shards(folder: Path, manifest: Manifest, prefix: str = "") -> dict[str, Tensor]:
    """The tensors of a set whose names begin with ``prefix``; every file is checked before."""
    import torch

    wanted = [
        shard for shard in manifest["shards"] if any(k.startswith(prefix) for k in shard["holds"])
    ]
    for shard in wanted:
        _check_size(folder, shard)
    loaded: dict[str, Tensor] = {}
    for shard in wanted:
        loaded |= _read_shard(folder, shard)
    for name, shape in manifest["split"].items():
        if name.startswith(prefix):
            parts: list[Tensor] = []
            while (key := f"{name}#{len(parts)}") in loaded:
                parts.append(loaded.pop(key))
            loaded[name] = torch.cat(parts).reshape(shape)
    order = [key.partition("#")[0] for shard in wanted for key in shard["holds"]]
    return {name: loaded[name] for name in dict.fromkeys(order) if name.startswith(prefix)}


def _check_size(folder: Path, shard: dict[str, Any]) -> None:
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


def _read_shard(folder: Path, shard: dict[str, Any]) -> dict[str, Tensor]:
    path = folder / shard["file"]
    data = read_bytes(path)
    if hashlib.sha256(data).hexdigest() != shard["sha256"]:
        raise RunError(
            f"{quoted(path)} does not match its checksum: its content was damaged; {_REMEDY}"
        )
    return unpacked(data, path)


def unpacked(data: bytes, path: Path) -> dict[str, Tensor]:
    """The tensors in the bytes of a safetensors file; nothing else is ever understood."""
    from safetensors.torch import load

    try:
        return load(data)
    except Exception as error:
        kind = "a pickle or zip archive" if data[:2] in (b"\x80\x02", b"\x80\x04", b"PK") else ""
        cause = " ".join(str(error).split()) or type(error).__name__
        raise RunError(
            f"{quoted(path)} is not a whole safetensors file ({kind or cause}); {_REMEDY}"
        ) from error


def checked_manifest(value: Any, where: Path) -> Manifest:
    """The value, when it is a manifest that stays within its folder."""
    try:
        for shard in value["shards"]:
            name, holds = shard["file"], shard["holds"]
            well = re.fullmatch(r"[\w.-]+\.safetensors", name) and isinstance(shard["bytes"], int)
            if not well or not isinstance(shard["sha256"], str) or not isinstance(holds, list):
                raise TypeError
        if not all(isinstance(shape, list) for shape in value["split"].values()):
            raise TypeError
    except (KeyError, TypeError, AttributeError):
        raise RunError(
            f"{quoted(where)} lists no tensors that iterant wrote; check the path"
        ) from None
    manifest: Manifest = value
    return manifest


def shard_files(manifest: Manifest) -> set[str]:
    """The names of the files of a set."""
    return {shard["file"] for shard in manifest["shards"]}


def remove_other_shards(folder: Path, stem: str, keep: set[str]) -> None:
    """Remove sets of this stem that nobody refers to: replaced ones, and interrupted writes."""
    ours = re.compile(
        rf"\.?{re.escape(stem)}-[0-9a-f]{{12}}-\d{{5}}-of-\d{{5}}\.safetensors"
        r"(\.[0-9a-f]{12}\.tmp)?"
    )
    with contextlib.suppress(OSError):
        _remove([p for p in folder.iterdir() if ours.fullmatch(p.name) and p.name not in keep])


def _remove(paths: list[Path]) -> None:
    for path in paths:
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)


FORMAT = 1

_ATTEMPTS = 20


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

    Any dtype that safetensors has, any shape and any memory layout; ``metadata`` is what JSON can
    hold, without NaN and infinities, because it comes back equal. No file is larger than
    ``shard_mb`` (millions of bytes).
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
    """Write a set, then the index that makes it valid: ``content(manifest)``, sealed."""
    _clear(index, stem)  # first: on a nearly full disk the room is needed
    manifest = write_shards(index.parent, stem, tensors, shard_mb)
    try:
        write_json(index, content(manifest), checksummed=True)
    except BaseException:
        _clear(index, stem)  # asks the index, which may be the new one if a signal came late
        raise
    remove_other_shards(index.parent, stem, shard_files(manifest))
    return manifest


def _clear(index: Path, stem: str) -> None:
    """Remove what the index does not list; while it cannot be read, its files may yet be saved."""
    try:
        remove_other_shards(index.parent, stem, shard_files(read_index(index)[1]))
    except RunError:
        if not index.exists():
            remove_other_shards(index.parent, stem, set())


def read_index(index: Path) -> tuple[dict[str, Any], Manifest]:
    """The verified content of an index, and the manifest within it."""
    value = read_json(index, checksummed=True)
    return value, checked_manifest(value.get("weights"), index)


def load_tensors(path: PathLike, prefix: str = "") -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors and metadata saved under ``path``, once all of it proved undamaged.

    With a prefix, only tensors whose names begin with it, and only their files are read. A path
    that ends in ``.safetensors`` is read as a single file of other origin, which has no checksum.
    """
    path = Path(path)
    if path.suffix == ".safetensors":
        loaded = unpacked(read_bytes(path), path)
        return {name: t for name, t in loaded.items() if name.startswith(prefix)}, {}
    index = index_path(path)
    if not index.exists():
        raise RunError(f"there are no tensors at {quoted(path)}: {quoted(index.name)} is missing")
    value, tensors = load_indexed(index, prefix)
    return tensors, dict(value.get("metadata", {}))


def load_indexed(index: Path, prefix: str = "") -> tuple[dict[str, Any], dict[str, Tensor]]:
    """An index and the tensors it lists, from one moment even while a run goes on saving."""
    attempts = 0
    while True:
        value, manifest = read_index(index)
        try:
            return value, read_shards(index.parent, manifest, prefix)
        except RunError:
            # A set that was replaced between the two reads is gone: read the new one.
            attempts += 1
            if attempts == _ATTEMPTS or read_index(index)[1] == manifest:
                raise
