"""Lichess's own puzzle file, read a row at a time and packed.

    >>> report = pack_csv("lichess_db_puzzle.csv.zst", "puzzles/")
    >>> report.kept, report.broken
    (4956458, 0)

The file may be plain, .zst or .bz2; what it is is read off its first bytes. Memory does not grow
with it while it is read: packed rows go to disk every few thousand. The sort at the end holds the
order and one column at a time (about 100 bytes a puzzle, half of them pages of the mapped file).
The position in a row is the one before the first move of its line; that move is played, and the
second is the one to find. python-chess plays and judges the moves.

Text files of any length, plain, .zst or .bz2, as numbered lines in little memory.

A compressed file that breaks off is an error here, never a shorter file.
"""

from __future__ import annotations

import bz2
import csv
import importlib
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, BinaryIO

import numpy as np

from iterant.errors import DataError, MissingExtra
from iterant.io.files import check_new_folder, make_folder
from iterant.tasks.chess.puzzles import FLAGS, Puzzles, write_puzzles

BLOCK = 1 << 16
LONGEST_LINE = 1 << 20
"""More than any row needs; a longer line means that the file is something else."""


def blocks(raw: BinaryIO, name: str) -> Iterator[bytes]:
    """The content of a file in portions; its first bytes tell how it is compressed."""
    first = raw.read(BLOCK)
    if first[:3] == b"BZh":
        yield from _decompressed(first, raw, name, bz2.BZ2Decompressor, OSError)
    elif first[:4] == b"\x28\xb5\x2f\xfd" or (first[1:4] == b"\x2a\x4d\x18" and first[0] >> 4 == 5):
        yield from _decompressed(first, raw, name, *_zstandard())
    else:
        while first:
            yield first
            first = raw.read(BLOCK)


def lines(content: Iterable[bytes], name: str) -> Iterator[tuple[int, str]]:
    """Each line with its number, from 1, without its end; bytes that are no text show as �."""
    number, rest = 0, b""
    for block in content:
        *whole, rest = (rest + block).split(b"\n")
        for line in whole:
            number += 1
            yield number, line.decode(errors="replace").removesuffix("\r")
        if len(rest) > LONGEST_LINE:
            raise DataError(f"line {number + 1} of {name} does not end; a text file is wanted")
    if rest:
        yield number + 1, rest.decode(errors="replace").removesuffix("\r")


def _decompressed(
    data: bytes, raw: BinaryIO, name: str, begin: Callable[[], Any], damage: type[Exception]
) -> Iterator[bytes]:
    """The content of a file of one or more compressed streams, each of which must end."""
    stream = begin()
    while data:
        try:
            content = stream.decompress(data)
        except (damage, ValueError) as error:
            raise DataError(f"{name} is damaged ({error}); fetch it again") from error
        if content:
            yield content
        if stream.eof:
            data = stream.unused_data or raw.read(BLOCK)
            if not data:
                return
            stream = begin()
        else:
            data = raw.read(BLOCK)
    raise DataError(f"{name} breaks off before its end: it is incomplete; fetch it again")


def _zstandard() -> tuple[Callable[[], Any], type[Exception]]:
    """What begins a .zst stream, whatever window its writer chose, and what it raises."""
    try:
        zstandard = importlib.import_module("zstandard")
    except ImportError as error:
        raise MissingExtra("zstandard", "chess", "reading a .zst file") from error

    def begin() -> Any:
        return zstandard.ZstdDecompressor(max_window_size=1 << 31).decompressobj()

    return begin, zstandard.ZstdError


NEEDED = ("PuzzleId", "FEN", "Moves", "Rating", "RatingDeviation", "Themes")
"""The columns that are read, found by their names in the first line."""

ROW = np.dtype(
    [
        ("boards", "u1", (32,)),
        ("moves", "<u2"),
        ("rating", "<u2"),
        ("rating_deviation", "<u2"),
        ("flags", "u1"),
        ("ids", "S5"),
    ]
)
"""One packed puzzle, as it waits on disk for the sort."""

Packed = tuple[Any, ...]
"""The fields of one `ROW`."""

_CHUNK = 8192
_NAMED = 10


@dataclass(frozen=True)
class PackReport:
    """What became of a file: every row was kept, broken or a repeated id."""

    rows: int
    kept: int
    broken: int
    first_broken: tuple[tuple[int, str], ...]
    """(line number, reason) of the first few, the header being line 1"""
    repeated: int
    seconds: float


class RowError(ValueError):
    """A row that holds no puzzle; the text says why."""


def pack_csv(
    source: str | Path, out: str | Path, progress: Callable[[int, float], None] | None = None
) -> PackReport:
    """Pack a Lichess CSV into a new folder, sorted by (rating, id).

    `progress` is called now and then with the rows read so far and the share of the file (0 to 1).
    A file that breaks off is refused, and nothing is then left where the folder would have been.
    """
    began = time.monotonic()
    path, folder = Path(source), check_new_folder(out)
    make_folder(folder.parent)
    try:
        with (
            path.open("rb") as raw,
            tempfile.TemporaryDirectory(dir=folder.parent, prefix=".packing-") as place,
        ):
            waiting = Path(place) / "rows"
            rows, broken, named = _spool(raw, path, waiting, progress)
            if rows == broken:
                what = f"line {named[0][0]}: {named[0][1]}" if named else "it has no rows"
                raise DataError(f"{path} holds no puzzle that can be read ({what})")
            kept = _sort_and_write(waiting, folder, path.name)
    except OSError as error:
        raise DataError(
            f"{path} cannot be packed into {folder} ({error.strerror}); check both paths"
        ) from error
    if progress:
        progress(rows, 1.0)
    repeated = rows - broken - kept
    return PackReport(rows, kept, broken, named, repeated, time.monotonic() - began)


def _spool(
    raw: BinaryIO, path: Path, waiting: Path, progress: Callable[[int, float], None] | None
) -> tuple[int, int, tuple[tuple[int, str], ...]]:
    """Put the packed rows on disk as they come; how many rows, how many broken, and the first."""
    size = path.stat().st_size
    rows, broken = 0, 0
    named: list[tuple[int, str]] = []
    chunk: list[Packed] = []
    with waiting.open("wb") as sink:
        for line, packed in read_puzzles(raw, path.name):
            rows += 1
            if isinstance(packed, RowError):
                broken += 1
                named += [(line, str(packed))] if len(named) < _NAMED else []
            else:
                chunk.append(packed)
            if len(chunk) == _CHUNK:
                sink.write(np.array(chunk, ROW).tobytes())
                chunk.clear()
            if progress and not rows % 1024:
                progress(rows, raw.tell() / size)
        sink.write(np.array(chunk, ROW).tobytes())
    return rows, broken, tuple(named)


def read_puzzles(raw: BinaryIO, name: str) -> Iterator[tuple[int, Packed | RowError]]:
    """Each row's line number and its packed puzzle (the fields of `ROW`), or why it has none.

    >>> for line, packed in read_puzzles(open("puzzles.csv", "rb"), "puzzles.csv"): ...
    """
    chess = _python_chess()
    numbered = lines(blocks(raw, name), name)
    header = next(numbered, None)
    if header is None:
        raise DataError(f"{name} is empty; give Lichess's puzzle CSV, plain, .zst or .bz2")
    titles = _split(header[1].removeprefix("\ufeff"))
    missing = [title for title in NEEDED if title not in titles]
    if missing:
        raise DataError(
            f"{name} has no column {', '.join(missing)} in its first line; "
            f"Lichess's puzzle CSV with {', '.join(NEEDED)} is wanted"
        )
    places = [titles.index(title) for title in NEEDED]
    for number, line in numbered:
        if not line.strip():
            continue
        try:
            cells = _split(line)
            if len(cells) != len(titles):
                raise RowError(f"{len(cells)} fields where the first line has {len(titles)}")
            yield number, pack_row(chess, *(cells[place] for place in places))
        except RowError as reason:
            yield number, reason


def pack_row(
    chess: ModuleType, name: str, fen: str, moves: str, rating: str, deviation: str, themes: str
) -> Packed:
    """The fields of `ROW` for one puzzle, or RowError."""
    if len(name) != 5 or not (name.isascii() and name.isalnum()):
        raise RowError(f"the id must be five letters or digits, got {name[:20]!r}")
    line = moves.split()
    if len(line) < 2:
        raise RowError(f"at least two moves are wanted, got {moves[:40]!r}")
    try:
        board = chess.Board(fen)
        if board.status() & _impossible(chess):
            raise RowError(f"the position {fen!r} cannot occur")
        board.push(board.parse_uci(line[0]))
        found = board.parse_uci(line[1])
    except ValueError as error:
        raise error if isinstance(error, RowError) else RowError(str(error)) from error
    black = board.turn == chess.BLACK
    move = found.from_square | found.to_square << 6 | (found.promotion or 0) << 12 | black << 15
    held = themes.split()
    flags = sum(1 << bit for bit, theme in enumerate(FLAGS) if theme in held)
    numbers = _number(rating, "rating"), _number(deviation, "rating deviation")
    return _packed_board(chess, board), move, *numbers, flags, name.encode()


def _packed_board(chess: ModuleType, board: Any) -> Any:
    """The 32 bytes of a python-chess board."""
    kinds = board.kings, board.queens, board.bishops, board.knights, board.rooks, board.pawns
    packed = bytearray(32)
    for colour, first in ((chess.WHITE, 1), (chess.BLACK, 7)):
        for code, mask in enumerate(kinds, first):
            for square in chess.scan_forward(mask & board.occupied_co[colour]):
                packed[square >> 1] |= code << 4 * (square & 1)
    return np.frombuffer(packed, np.uint8)


def _impossible(chess: ModuleType) -> int:
    """The complaints of python-chess that no puzzle can have; the others are matters of taste."""
    kings = chess.STATUS_NO_WHITE_KING | chess.STATUS_NO_BLACK_KING | chess.STATUS_TOO_MANY_KINGS
    return int(kings | chess.STATUS_PAWNS_ON_BACKRANK | chess.STATUS_OPPOSITE_CHECK)


def _number(text: str, what: str) -> int:
    """A number as the packed columns can hold it."""
    if not (text.isascii() and text.isdigit()) or int(text[:9]) >= 1 << 16:
        raise RowError(f"the {what} must be a whole number below 65536, got {text[:20]!r}")
    return int(text)


def _split(line: str) -> list[str]:
    """The cells of one line; a stray quotation mark cannot swallow the lines after it."""
    return next(csv.reader([line])) if '"' in line else line.split(",")


def _sort_and_write(waiting: Path, folder: Path, source: str) -> int:
    """Sort the rows by (rating, id), drop repeated ids, write the set; how many it holds."""
    rows = np.memmap(waiting, ROW, mode="r")
    ids = np.asarray(rows["ids"])
    order = np.lexsort((np.asarray(rows["rating"]), ids))
    same = ids[order[1:]] == ids[order[:-1]]
    order = order[np.concatenate([[True], ~same])]
    order = order[np.lexsort((ids[order], rows["rating"][order]))]
    columns: dict[str, Any] = {name: rows[name] for name in ROW.names or ()}
    write_puzzles(Puzzles(**columns), folder, source=source, order=order)
    return len(order)


def _python_chess() -> ModuleType:
    """python-chess, which only this reader needs."""
    try:
        return importlib.import_module("chess")
    except ImportError as error:
        raise MissingExtra("chess", "chess", "reading Lichess's CSV") from error
