"""Chess puzzles on disk: a folder of columns, a file each, in which row i is one puzzle.

    >>> puzzles = load_puzzles("puzzles/")
    >>> puzzles.rating[0], puzzles.ids[0], len(puzzles)
    (399, b'025sW', 2815126)
    >>> easiest = subset(puzzles)                 # the 1.5 million that index ranges refer to

The columns are `boards` (N, 32) uint8 and `moves` uint16 as in `boards.py`, `rating`
and `rating_deviation` uint16, `flags` uint8 (a bit for each of `FLAGS`) and `ids` of five bytes.
Each is a plain ``.npy`` file, which is mapped and not read, or an ``.npy.xz`` file, which is about
a third as large. A folder that we wrote also holds ``meta.json`` with the number of puzzles, where
they came from and a SHA-256 of each file; a folder without it is read all the same.
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
        """How many puzzles."""
        return len(self.ids)

    @property
    def black(self) -> NDArray[np.bool_]:
        """(N,) whether black is to move."""
        return (self.moves >> 15).astype(bool)

    def take(self, rows: NDArray[np.int64] | slice) -> Puzzles:
        """Some of the puzzles, in the order of the rows."""
        return replace(self, **{name: getattr(self, name)[rows] for name in _COLUMNS})


def holds_puzzles(folder: Path) -> bool:
    """Whether a folder looks like a packed set: `load_puzzles` then says what may be wrong."""
    return any((folder / f"boards{ending}").is_file() for ending in (".npy", ".npy.xz"))


def load_puzzles(path: str | Path) -> Puzzles:
    """The packed set in a folder, checked: lengths, types, checksums, pieces where moves begin."""
    folder = Path(path)
    if not folder.is_dir():
        hint = (
            "pack it first: iterant data chess FILE --out DIR"
            if folder.exists()
            else "look at the path"
        )
        raise DataError(f"{folder} is not a folder of packed puzzles; {hint}")
    files = {name: _file_of(folder, name) for name in _COLUMNS}
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
    """A new folder with the set (its rows in the given order): whole, or not there at all.

    Only one column at a time is held in memory.
    """
    folder = check_new_folder(out)
    make_folder(folder.parent)
    rows = np.arange(len(puzzles)) if order is None else order
    try:
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".packing-") as place:
            made = Path(place) / "set"
            made.mkdir()
            digests = {}
            for name in _COLUMNS:
                file = made / (f"{name}.npy.xz" if compress else f"{name}.npy")
                with lzma.open(file, "wb", preset=9) if compress else file.open("wb") as stream:
                    npy.write_array(stream, getattr(puzzles, name)[rows])
                digests[file.name] = _digest(file)
            meta = {"version": VERSION, "count": len(rows), "source": source, "sha256": digests}
            (made / "meta.json").write_text(json.dumps(meta, indent=2) + "\n", encoding="utf-8")
            if folder.exists():
                folder.rmdir()
            made.replace(folder)
    except OSError as error:
        raise DataError(
            f"{folder} cannot be written ({error.strerror}); free some space or give another folder"
        ) from error


def subset(puzzles: Puzzles, count: int = SUBSET) -> Puzzles:
    """The puzzles that index ranges refer to: no position twice, `count` of them, by (rating, id).

    Of puzzles with the same board and side to move, the first by (rating, id) is kept. Of these,
    the `count` with the smallest number are kept, where a puzzle's number is its id, read as one
    big-endian number of five bytes, scrambled by `iterant.tasks.rng.mix`: a rule that depends on
    the id alone, so that another dump of the database gives nearly the same choice. Where there
    are fewer, all are kept, and `source` says so.
    """
    order = np.lexsort((puzzles.ids, puzzles.rating))
    rows = order[_first_of_twins(puzzles, order)]
    twins = len(puzzles) - len(rows)
    if len(rows) > count:
        numbers = mix(_id_numbers(puzzles.ids[rows]))
        rows = rows[np.sort(np.argsort(numbers, kind="stable")[:count])]
    share = "all" if len(rows) == len(puzzles) else f"{len(rows):,} of the"
    fewer = f", fewer than {count:,}" if len(rows) < count else ""
    said = f"{share} {len(puzzles):,} puzzles in {puzzles.source}{fewer}"
    if twins:
        said += f" ({twins:,} repeated positions dropped)"
    return replace(puzzles.take(rows), source=said)


def _first_of_twins(puzzles: Puzzles, order: NDArray[np.int64]) -> NDArray[np.bool_]:
    """(N,) along an order: whether no puzzle before it has the same board and side to move."""
    words = np.ascontiguousarray(puzzles.boards).view("<u8")
    keys = puzzles.black.astype(np.uint64)
    for column in range(words.shape[1]):
        keys = mix(keys ^ words[:, column]) + np.uint64(1)
    keys = keys[order]
    by_key = np.argsort(keys, kind="stable")
    same = keys[by_key[1:]] == keys[by_key[:-1]]
    alike = np.unique(np.concatenate([by_key[1:][same], by_key[:-1][same]]))
    first = np.ones(len(order), dtype=bool)
    seen: set[tuple[bytes, bool]] = set()
    # Equal keys only narrow the search: the boards themselves decide, so no puzzle is lost.
    for place in alike:
        row = order[place]
        position = (puzzles.boards[row].tobytes(), bool(puzzles.moves[row] >> 15))
        first[place] = position not in seen
        seen.add(position)
    return first


def _id_numbers(ids: NDArray[np.bytes_]) -> NDArray[np.uint64]:
    """The five bytes of each id as one big-endian number."""
    signs = np.ascontiguousarray(ids).view(np.uint8).reshape(-1, 5).astype(np.uint64)
    numbers = np.zeros(len(ids), np.uint64)
    for column in range(5):
        numbers = (numbers << np.uint64(8)) | signs[:, column]
    return numbers


def _file_of(folder: Path, name: str) -> Path:
    """The file of one column, the mapped kind first because it opens at once."""
    for ending in (".npy", ".npy.xz"):
        if (folder / f"{name}{ending}").is_file():
            return folder / f"{name}{ending}"
    raise DataError(f"{folder} has no {name}.npy or {name}.npy.xz; it is no packed set of puzzles")


def _read(file: Path, name: str) -> NDArray[Any]:
    """One column, mapped or decompressed; pickles and half files are refused."""
    try:
        if file.suffix == ".npy":
            column: NDArray[Any] = npy.open_memmap(file, mode="r")
        else:
            with lzma.open(file) as stream:
                column = npy.read_array(stream, allow_pickle=False)
                if stream.read(1):  # Reading on to the end also verifies the file's checksum.
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
    """The SHA-256 of a file."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _check_meta(folder: Path, files: dict[str, Path]) -> None:
    """Compare the files with what the packer wrote about them, where it did."""
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
    """Every board holds known pieces, and every move begins on a piece of the side to move."""
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
