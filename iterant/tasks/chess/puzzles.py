"""Chess puzzles on disk: a folder with one file per column, in which row i is one puzzle.

    >>> puzzles = load_puzzles("puzzles/")
    >>> puzzles.rating[0], puzzles.ids[0], len(puzzles)
    (399, b'025sW', 2815126)
    >>> subset(puzzles)                           # the 1.5 million that index ranges refer to

The columns are `boards` (N, 32) uint8 and `moves` uint16 as in `boards.py`, `rating` and
`rating_deviation` uint16, `flags` uint8 (one bit for each of `FLAGS`) and `ids` of five bytes. A
column is an ``.npy`` file, which is memory-mapped, or an ``.npy.xz`` file of a third of the size.
``meta.json``, which `write_puzzles` adds, has the number of puzzles, their source and a SHA-256 of
each file; a folder without it is read too.
"""

from __future__ import annotations

import hashlib
import json
import lzma
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from iterant.errors import DataError
from iterant.io.files import check_new_folder, make_folder
from iterant.tasks.chess.boards import origin_codes
from iterant.tasks.rng import mix

FLAGS = ("mateIn1", "mateIn2", "mateIn3", "mate", "oneMove", "short", "long", "veryLong")
"""The themes that are kept, the lowest bit of `flags` first."""

SUBSET = 1_500_000
"""How many puzzles index ranges refer to, as in the paper."""

VERSION = 1
_ENDINGS = (".npy", ".npy.xz")
_COLUMNS: dict[str, tuple[str, tuple[int, ...]]] = {
    "boards": ("|u1", (32,)),
    "moves": ("<u2", ()),
    "rating": ("<u2", ()),
    "rating_deviation": ("<u2", ()),
    "flags": ("|u1", ()),
    "ids": ("|S5", ()),
}


@dataclass(frozen=True, eq=False)
class Puzzles:
    """Columns of one length; `source` says in words where they came from."""

    boards: NDArray[np.uint8]
    moves: NDArray[np.uint16]
    rating: NDArray[np.uint16]
    rating_deviation: NDArray[np.uint16]
    flags: NDArray[np.uint8]
    ids: NDArray[np.bytes_]
    source: str = ""

    def __len__(self) -> int:
        """Number of puzzles."""
        return len(self.ids)

    @property
    def black(self) -> NDArray[np.bool_]:
        """(N,) whether black is to move."""
        return (self.moves >> 15).astype(bool)

    def take(self, rows: NDArray[np.int64] | slice) -> Puzzles:
        """The puzzles of these rows."""
        return replace(self, **{name: getattr(self, name)[rows] for name in _COLUMNS})


def holds_puzzles(folder: Path) -> bool:
    """Whether a folder looks like a packed set; `load_puzzles` checks it."""
    return any((folder / f"boards{ending}").is_file() for ending in _ENDINGS)


def load_puzzles(path: str | Path) -> Puzzles:
    """The packed set in a folder, with lengths, types, checksums and moves checked."""
    folder = Path(path)
    if not folder.is_dir():
        hint = (
            "pack it first: iterant data chess FILE --out DIR"
            if folder.exists()
            else "look at the path"
        )
        raise DataError(f"{folder} is not a folder of packed puzzles; {hint}")
    files = {}
    for name in _COLUMNS:
        candidates = [folder / f"{name}{ending}" for ending in _ENDINGS]
        file = next(filter(Path.is_file, candidates), None)
        if file is None:
            raise DataError(
                f"{folder} has no {name}.npy or {name}.npy.xz; it is no packed set of puzzles"
            )
        files[name] = file
    _check_meta(folder, files)
    columns: dict[str, Any] = {name: _read(file, name) for name, file in files.items()}
    count = len(columns["ids"])
    for name, column in columns.items():
        if len(column) != count:
            raise DataError(
                f"{files[name]} holds {len(column):,} rows, {files['ids'].name} {count:,}; "
                f"the columns of one set are wanted, so pack it again"
            )
    if not count:
        raise DataError(f"{folder} holds no puzzles; pack a CSV that does")
    puzzles = Puzzles(**columns, source=str(folder))
    _check_moves(puzzles, files["boards"])
    return puzzles


def write_puzzles(
    puzzles: Puzzles,
    out: str | Path,
    *,
    source: str,
    order: NDArray[np.int64] | None = None,
    compress: bool = False,
) -> None:
    """Write the set, with its rows in the given order, to a new folder: all of it or nothing.

    Only one column at a time is held in memory.
    """
    folder = check_new_folder(out)
    make_folder(folder.parent)
    rows = np.arange(len(puzzles)) if order is None else order
    try:
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".packing-") as temporary:
            part = Path(temporary) / "set"
            part.mkdir()
            digests = {}
            for name in _COLUMNS:
                file = part / (f"{name}.npy.xz" if compress else f"{name}.npy")
                with lzma.open(file, "wb", preset=9) if compress else file.open("wb") as stream:
                    npy.write_array(stream, getattr(puzzles, name)[rows])
                digests[file.name] = _digest(file)
            meta = {"version": VERSION, "count": len(rows), "source": source, "sha256": digests}
            (part / "meta.json").write_text(json.dumps(meta, indent=2) + "\n", encoding="utf-8")
            if folder.exists():
                folder.rmdir()
            part.replace(folder)
    except OSError as error:
        raise DataError(
            f"{folder} cannot be written ({error.strerror}); free some space or give another folder"
        ) from error


def subset(puzzles: Puzzles, count: int = SUBSET) -> Puzzles:
    """The puzzles that index ranges refer to: distinct positions, `count` of them, by (rating, id).

    Of puzzles with the same board and side to move, the first by (rating, id) is kept. Of these,
    the `count` with the smallest hash are kept: the id, read as a big-endian integer of five bytes,
    through `iterant.tasks.rng.mix`. The choice depends on ids alone, so another dump of the
    database gives nearly the same one. If there are fewer, all are kept, and `source` says so.
    """
    order = np.lexsort((puzzles.ids, puzzles.rating))
    rows = order[_first_occurrences(puzzles, order)]
    repeated = len(puzzles) - len(rows)
    if len(rows) > count:
        digits = np.ascontiguousarray(puzzles.ids[rows]).view(np.uint8).reshape(-1, 5)
        powers = np.uint64(1) << np.arange(32, -1, -8, dtype=np.uint64)
        hashes = mix(digits.astype(np.uint64) @ powers)
        rows = rows[np.sort(np.argsort(hashes, kind="stable")[:count])]
    share = "all" if len(rows) == len(puzzles) else f"{len(rows):,} of the"
    fewer = f", fewer than {count:,}" if len(rows) < count else ""
    source = f"{share} {len(puzzles):,} puzzles in {puzzles.source}{fewer}"
    if repeated:
        source += f" ({repeated:,} repeated positions dropped)"
    return replace(puzzles.take(rows), source=source)


def _first_occurrences(puzzles: Puzzles, order: NDArray[np.int64]) -> NDArray[np.bool_]:
    """(N,) along an order: whether no puzzle before it has the same board and side to move."""
    words = np.ascontiguousarray(puzzles.boards).view("<u8")  # (N, 4)
    keys = puzzles.black.astype(np.uint64)
    for column in range(words.shape[1]):
        keys = mix(keys ^ words[:, column]) + np.uint64(1)
    keys = keys[order]
    by_key = np.argsort(keys, kind="stable")
    same = keys[by_key[1:]] == keys[by_key[:-1]]
    first = np.ones(len(order), dtype=bool)
    seen: set[tuple[bytes, bool]] = set()
    # Equal hashes only narrow the search: the boards themselves decide, so no puzzle is lost.
    for place in np.unique(np.concatenate([by_key[1:][same], by_key[:-1][same]])):
        row = order[place]
        position = (puzzles.boards[row].tobytes(), bool(puzzles.moves[row] >> 15))
        first[place] = position not in seen
        seen.add(position)
    return first


def _read(file: Path, name: str) -> NDArray[Any]:
    """One column, memory-mapped or decompressed; pickles and truncated files are refused."""
    try:
        if file.suffix == ".npy":
            column: NDArray[Any] = npy.open_memmap(file, mode="r")
        else:
            with lzma.open(file) as stream:
                column = npy.read_array(stream, allow_pickle=False)
                if stream.read(1):  # reading to the end also verifies the checksum
                    raise ValueError("something follows the array")
    except (ValueError, EOFError, OSError, lzma.LZMAError, MemoryError) as error:
        reason = " ".join(str(error).split())
        raise DataError(f"{file} is no whole array ({reason}); copy or pack it again") from error
    kind, row = _COLUMNS[name]
    if column.dtype != np.dtype(kind) or column.ndim != 1 + len(row) or column.shape[1:] != row:
        shape = ", ".join(["N", *map(str, row)])
        raise DataError(
            f"{file} must hold ({shape}) {np.dtype(kind)}, got {column.shape} {column.dtype}; "
            f"pack the set again"
        )
    return column


def _digest(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _check_meta(folder: Path, files: dict[str, Path]) -> None:
    """Compare the files with the checksums of meta.json, if there is one."""
    path = folder / "meta.json"
    if not path.is_file():
        return
    try:
        meta = json.loads(path.read_text(encoding="utf-8"))
        version, digests = int(meta["version"]), dict(meta["sha256"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(f"{path} is not what the packer writes; pack the set again") from error
    if version != VERSION:
        raise DataError(f"{path} is of version {version}, wanted {VERSION}; pack the set again")
    for file in files.values():
        if digests.get(file.name) != _digest(file):
            raise DataError(f"{file} is not the file that {path.name} names; pack the set again")


def _check_moves(puzzles: Puzzles, file: Path) -> None:
    """Check that piece codes are known and that moves start on a piece of the side to move."""
    for first in range(0, len(puzzles), 1 << 18):
        part = puzzles.take(slice(first, first + (1 << 18)))
        code = origin_codes(part.boards, part.moves)
        wrong = (code == 0) | ((code > 6) != part.black)
        wrong |= ((part.boards & 15) > 12).any(axis=1) | ((part.boards >> 4) > 12).any(axis=1)
        if wrong.any():
            row = first + int(wrong.argmax())
            raise DataError(
                f"{file}, row {row}: the board has unknown pieces, or none of the side to move "
                f"where the move begins; pack the set again"
            )
