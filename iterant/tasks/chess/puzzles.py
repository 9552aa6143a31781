"""Chess puzzles on disk, and the packing of Lichess's puzzle CSV.

    >>> report = pack_csv("lichess_db_puzzle.csv.zst", "puzzles/")       # plain, .zst or .bz2
    >>> report.kept, report.broken
    (4956458, 0)
    >>> subset(load_puzzles("puzzles/"))          # the 1.5 million that index ranges refer to

A set is a folder with one file per column of `ROW`, in which row i is one puzzle: `boards` and
`moves` packed as in `position.py`, `flags` with one bit for each of `FLAGS`. A column is an
``.npy`` file, which is memory-mapped, or an ``.npy.xz`` file of a third of the size. ``meta.json``,
which `write_puzzles` adds, has the number of puzzles, their source and a SHA-256 of each file; a
folder without it is read too.

The position of a CSV row is the one before the first of its moves: that move is played, and the
second is the answer. The file is streamed; packed rows take 44 bytes each. A compressed file that
breaks off is an error, never a shorter file. Packing needs the extra ``chess``.
"""

from __future__ import annotations

import bz2
import hashlib
import io
import lzma
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from iterant.errors import DataError
from iterant.io.files import (
    check_new_folder,
    check_regular,
    make_folder,
    one_line_errors,
    open_to_read,
    read_bytes,
    read_json,
    write_atomic,
    write_json,
)
from iterant.rng import mix
from iterant.tasks.chess.position import LETTERS, from_extra, impossible, pack

FLAGS = ("mateIn1", "mateIn2", "mateIn3", "mate", "oneMove", "short", "long", "veryLong")
"""The themes that are kept, the lowest bit of `flags` first."""
SUBSET = 1_500_000
"""How many puzzles index ranges refer to, as in the paper."""
VERSION = 1
ROW = np.dtype([("boards", "u1", (32,)), ("moves", "<u2"), ("rating", "<u2"),
                ("rating_deviation", "<u2"), ("flags", "u1"), ("ids", "S5")])  # fmt: skip
"""One packed puzzle."""
NEEDED = ("PuzzleId", "FEN", "Moves", "Rating", "RatingDeviation", "Themes")
"""The columns of the CSV that are read, found by name in the first line."""
BLOCK = 1 << 16
"""Bytes of text that are handled at a time."""
LONGEST_LINE = 1 << 20
"""Longer than any row: a longer line means that this is another kind of file."""
MOST_UNREADABLE = 10_000
"""Lines that are not puzzles; with more of them, at least half of the lines must be puzzles."""

_COLUMNS: tuple[str, ...] = ROW.names or ()
_ENDINGS = (".npy", ".npy.xz")
_LARGEST_DICTIONARY = 128 << 20
"""Memory to decompress xz or zst; their usual settings need half of it."""
_MAX_REPORTED = 10


@dataclass(frozen=True, eq=False)
class Puzzles:
    """Columns of equal length, a row per puzzle; `source` describes where they came from."""

    boards: NDArray[np.uint8]
    """(N, 32); the other columns are (N,)"""
    moves: NDArray[np.uint16]
    rating: NDArray[np.uint16]
    rating_deviation: NDArray[np.uint16]
    flags: NDArray[np.uint8]
    ids: NDArray[np.bytes_]
    source: str = ""

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def black(self) -> NDArray[np.bool_]:
        """(N,) whether black is to move."""
        return (self.moves >> 15).astype(bool)

    def take(self, rows: NDArray[np.int64] | slice) -> Puzzles:
        return replace(self, **{name: getattr(self, name)[rows] for name in _COLUMNS})


def load_puzzles(path: str | Path) -> Puzzles:
    """The packed set in a folder, with lengths, types and checksums checked."""
    folder = Path(path)
    files = {
        name: file
        for name in _COLUMNS
        for file in (folder / f"{name}{ending}" for ending in reversed(_ENDINGS))
        if file.is_file()
    }
    if missing := [name for name in _COLUMNS if name not in files]:
        raise DataError(
            f"{folder} is not a folder of packed puzzles, it has no {missing[0]}.npy; check the "
            "path or pack a CSV: iterant data chess FILE --out DIR"
        )
    if (folder / "meta.json").is_file():
        meta = read_json(folder / "meta.json")
        expected = {"version": VERSION, "sha256": {f.name: _digest(f) for f in files.values()}}
        if not isinstance(meta, dict) or not expected.items() <= meta.items():
            raise DataError(
                f"{folder / 'meta.json'} names other files or another version than {VERSION}; "
                "pack the set again"
            )
    columns: dict[str, Any] = {name: _read(files[name], ROW[name]) for name in _COLUMNS}
    counts = {name: len(column) for name, column in columns.items()}
    if len(set(counts.values())) > 1 or not counts["ids"]:
        raise DataError(f"the columns in {folder} hold {counts} rows; pack the set again")
    return Puzzles(**columns, source=str(folder))


def _digest(file: Path) -> str:
    with one_line_errors("read", file), open_to_read(file) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _read(file: Path, dtype: np.dtype[Any]) -> NDArray[Any]:
    """One column, memory-mapped or decompressed; pickles and truncated files are refused."""
    try:
        if file.suffix == ".npy":
            check_regular(file)
            column: NDArray[Any] = npy.open_memmap(file, mode="r")
        else:
            packed = read_bytes(file)
            # Columns become at most four times as large; the one sorted by rating is small anyway.
            most = (16 << 20) + 8 * len(packed)
            xz = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_LARGEST_DICTIONARY)
            stream = io.BytesIO(xz.decompress(packed, most))
            column = npy.read_array(stream, allow_pickle=False)
            if not xz.eof or stream.read(1):
                raise ValueError("it is cut off, or larger than its file allows")
    except Exception as error:  # on arbitrary bytes numpy raises nearly anything
        reason = " ".join(str(error).split())[:200]
        raise DataError(f"{file} is not a complete array ({reason}); pack it again") from error
    if column.dtype != dtype.base or column.ndim < 1 or column.shape[1:] != dtype.shape:
        raise DataError(
            f"{file} must hold {dtype} in each row, got {column.shape} {column.dtype}; "
            f"pack the set again"
        )
    return column


def write_puzzles(
    puzzles: Puzzles, out: str | Path, *, source: str, compress: bool = False
) -> None:
    """Write the set to a new folder; a column is written whole or not at all."""
    folder = make_folder(check_new_folder(out))
    digests = {}
    for name in _COLUMNS:
        stream = io.BytesIO()
        npy.write_array(stream, getattr(puzzles, name))
        data = lzma.compress(stream.getvalue(), preset=9) if compress else stream.getvalue()
        file = f"{name}{_ENDINGS[compress]}"
        digests[file] = hashlib.sha256(data).hexdigest()
        write_atomic(folder / file, data)
    meta = {"version": VERSION, "count": len(puzzles), "source": source, "sha256": digests}
    write_json(folder / "meta.json", meta)


def subset(puzzles: Puzzles, count: int = SUBSET) -> Puzzles:
    """The puzzles that index ranges refer to: distinct positions, `count` of them, by (rating, id).

    Of puzzles with the same board and side to move, the first by (rating, id) is kept. Of these,
    the `count` with the smallest hash are kept: the id, read as a big-endian integer of five bytes,
    through `iterant.rng.mix`. The choice depends on ids alone, so another dump of the
    database gives nearly the same one. If there are fewer, all are kept, and `source` says so.
    """
    order = np.lexsort((puzzles.ids, puzzles.rating))
    words = np.ascontiguousarray(puzzles.boards).view("<u8")[order]  # (N, 4)
    position = (*words.T, puzzles.black[order])
    by_position = np.lexsort(position)  # stable: equal positions stay in order
    same = [key[by_position[1:]] == key[by_position[:-1]] for key in position]
    rows = np.delete(order, by_position[1:][np.logical_and.reduce(same)])
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


@dataclass(frozen=True)
class PackReport:
    """Counts of a packed file: every row was kept, broken or had a repeated id."""

    rows: int
    kept: int
    broken: int
    first_broken: tuple[tuple[int, str], ...]
    """(line number, reason) of the first few; the header is line 1"""
    repeated: int
    seconds: float


def pack_csv(
    source: str | Path, out: str | Path, progress: Callable[[int, float], None] | None = None
) -> PackReport:
    """Pack a Lichess CSV into a new folder, sorted by (rating, id).

    `progress` is called now and then with the rows read and the share of the file (0 to 1). If the
    file is refused, no folder is left behind.
    """
    start = time.monotonic()
    path, folder = Path(source), check_new_folder(out)
    rows, broken, packed_rows = 0, 0, bytearray()
    first_broken: list[tuple[int, str]] = []
    with one_line_errors("read", path), open_to_read(path) as raw:
        size = path.stat().st_size
        for line, packed in read_puzzles(raw, path.name):
            rows += 1
            if isinstance(packed, str):
                broken += 1
                first_broken += [(line, packed)] if broken <= _MAX_REPORTED else []
            else:
                packed_rows += np.array(packed, ROW).tobytes()
            if progress and not rows % 1024:
                progress(rows, raw.tell() / size)
    table = np.frombuffer(packed_rows, ROW)
    if not len(table):
        why = "line {}: {}".format(*first_broken[0]) if broken else "it has no rows"
        raise DataError(f"{path} holds no puzzle that can be read ({why})")
    # Of a repeated id the lowest rating is kept: the first in this order.
    table = table[np.lexsort((table["ids"], table["rating"]))]
    first = np.sort(np.unique(table["ids"], return_index=True)[1])
    columns: dict[str, Any] = {name: table[name][first] for name in _COLUMNS}
    puzzles = Puzzles(**columns)
    write_puzzles(puzzles, folder, source=path.name)
    if progress:
        progress(rows, 1.0)
    repeated, seconds = rows - broken - len(puzzles), time.monotonic() - start
    return PackReport(rows, len(puzzles), broken, tuple(first_broken), repeated, seconds)


def read_puzzles(raw: BinaryIO, name: str) -> Iterator[tuple[int, tuple[Any, ...] | str]]:
    """The line number of each row, and its packed puzzle (the fields of `ROW`) or an error message.

    >>> for line, packed in read_puzzles(open("puzzles.csv", "rb"), "puzzles.csv"): ...
    """
    chess = from_extra("chess", "reading Lichess's CSV")
    numbered = enumerate(_lines(raw, name), start=1)
    _, header = next(numbered, (1, ""))
    titles = header.removeprefix("\ufeff").split(",")
    if missing := [title for title in NEEDED if title not in titles]:
        raise DataError(
            f"{name} has no column {', '.join(missing)} in its first line; "
            "give Lichess's puzzle CSV, plain, .zst or .bz2"
        )
    columns = [titles.index(title) for title in NEEDED]
    puzzles = 0
    for number, line in numbered:
        if number - puzzles > MOST_UNREADABLE and puzzles < number // 2:
            raise DataError(
                f"{name} has {puzzles} puzzles in its first {number:,} lines; "
                "give Lichess's puzzle CSV, plain, .zst or .bz2"
            )
        if not line.strip():
            continue
        try:
            fields = line.split(",")  # no field of Lichess's is quoted
            if len(fields) != len(titles):
                raise ValueError(f"{len(fields)} fields where the first line has {len(titles)}")
            packed = _pack_row(chess, *(fields[column] for column in columns))
        except ValueError as error:
            yield number, str(error)[:200]
        else:
            puzzles += 1
            yield number, packed


def _pack_row(
    chess: Any, name: str, fen: str, moves: str, rating: str, deviation: str, themes: str
) -> tuple[Any, ...]:
    """The fields of `ROW` for one puzzle; ValueError if it is not one."""
    if len(name) != 5 or not (name.isascii() and name.isalnum()):
        raise ValueError(f"the id must be five letters or digits, got {name[:20]!r}")
    line = moves.split()
    if len(line) < 2:
        raise ValueError(f"at least two moves are wanted, got {moves[:40]!r}")
    for text in (rating, deviation):
        if not (text.isascii() and text.isdigit()) or int(text[:9]) >= 1 << 16:
            raise ValueError(f"a rating must be a whole number below 65536, got {text[:20]!r}")
    board = chess.Board(fen)
    if reason := impossible(board):
        raise ValueError(f"the position {fen!r} cannot occur: {reason}")
    board.push_uci(line[0])
    answer = board.parse_uci(line[1])
    codes = np.zeros((1, 64), np.uint8)
    for square, piece in board.piece_map().items():
        codes[0, square] = LETTERS.index(piece.symbol())
    black = board.turn == chess.BLACK
    move = answer.from_square | answer.to_square << 6 | (answer.promotion or 0) << 12 | black << 15
    names = themes.split()
    flags = sum(1 << bit for bit, theme in enumerate(FLAGS) if theme in names)
    return pack(codes)[0], move, int(rating), int(deviation), flags, name.encode()


def _lines(raw: BinaryIO, name: str) -> Iterator[str]:
    """The lines without their ends; invalid UTF-8 is shown as �."""
    rest = b""
    for block in _decompressed(raw, name):
        *whole, rest = (rest + block).split(b"\n")
        for line in whole:
            yield line.decode(errors="replace").removesuffix("\r")
        if len(rest) > LONGEST_LINE:
            raise DataError(f"{name} has a line without end; a text file is wanted")
    if rest:
        yield rest.decode(errors="replace").removesuffix("\r")


def _decompressed(raw: BinaryIO, name: str) -> Iterator[bytes]:
    """The content of a file, block by block; the compression is detected by the first bytes."""
    magic = raw.read(4)
    raw.seek(0)
    errors: tuple[type[Exception], ...] = (OSError, ValueError)
    if magic[:3] == b"BZh":
        new_stream: Callable[[], Any] = bz2.BZ2Decompressor
    elif magic == b"\x28\xb5\x2f\xfd" or (magic[1:] == b"\x2a\x4d\x18" and magic[0] >> 4 == 5):
        zstandard = from_extra("zstandard", "reading a .zst file")
        new_stream = zstandard.ZstdDecompressor(max_window_size=_LARGEST_DICTIONARY).decompressobj
        errors = (zstandard.ZstdError, ValueError)
    else:
        yield from iter(lambda: raw.read(BLOCK), b"")
        return
    stream = None
    # A few bytes at a time: one byte can become 30,000.
    for part in iter(lambda: raw.read(1 << 10), b""):
        while part:
            stream = stream or new_stream()
            try:
                block = stream.decompress(part)
            except errors as error:
                raise DataError(f"{name} is damaged ({error}); fetch it again") from error
            for begin in range(0, len(block), BLOCK):
                yield block[begin : begin + BLOCK]
            part = stream.unused_data
            if stream.eof:  # another compressed stream may follow
                stream = None
    if stream:
        raise DataError(f"{name} breaks off before its end: it is incomplete; fetch it again")
