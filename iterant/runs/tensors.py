"""Named sets of tensors that are replaced as a whole: checkpoints.

    >>> save_tensors("checkpoints/last", {"net.head": tensor}, {"step": 100}, shard_mb=15)
    >>> tensors, metadata = load_tensors("checkpoints/last")

``checkpoints/last`` stands for the index ``last.json`` and the files it lists. All files are
written under new names first; replacing the index is the one step that makes them valid. A
process killed before it leaves the old set, a process killed after it the new one; what is left
over is removed by the next save.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from iterant.errors import RunError
from iterant.runs.files import PathLike, read_bytes, read_json, shown, write_json
from iterant.runs.plain import plain
from iterant.runs.shards import (
    Manifest,
    checked_manifest,
    read_shards,
    remove_other_shards,
    shard_files,
    unpacked,
    write_shards,
)

if TYPE_CHECKING:
    from torch import Tensor

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
    content = {"format": FORMAT, "metadata": plain(metadata or {})}
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
        write_json(index, content(manifest), sealed=True)
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
    value = read_json(index, sealed=True)
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
        raise RunError(f"there are no tensors at {shown(path)}: {shown(index.name)} is missing")
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
