"""Pack Lichess's puzzle CSV, plain, .zst or .bz2, for `iterant.tasks.chess.puzzles`.

    >>> report = pack_csv("lichess_db_puzzle.csv.zst", "puzzles/")
    >>> report.kept, report.broken
    (4956458, 0)

The position of a row is the one before the first of its moves: that move is played, and the second
is the answer. The file is streamed, and packed rows are written to disk every few thousand; the
final sort holds the order and one column at a time (about 100 bytes per puzzle). A compressed file
that breaks off is an error, never a shorter file. Needs the extra ``chess``.
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
from typing import Any, BinaryIO

import numpy as np

from iterant.errors import DataError, MissingExtra
from iterant.io.files import check_new_folder, make_folder
from iterant.tasks.chess.puzzles import FLAGS, Puzzles, write_puzzles
from iterant.tasks.chess.rules import python_chess

BLOCK = 1 << 16
LONGEST_LINE = 1 << 20
"""Longer than any row: a longer line means that this is another kind of file."""
NEEDED = ("PuzzleId", "FEN", "Moves", "Rating", "RatingDeviation", "Themes")
"""The columns that are read, found by name in the first line."""
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
"""One packed puzzle in the temporary file that is sorted."""

Packed = tuple[Any, ...]
"""The fields of one `ROW`."""

_CHUNK = 8192
_REPORTED = 10


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


class RowError(ValueError):
    """A row without a valid puzzle; the text says why."""


def pack_csv(
    source: str | Path, out: str | Path, progress: Callable[[int, float], None] | None = None
) -> PackReport:
    """Pack a Lichess CSV into a new folder, sorted by (rating, id).

    `progress` is called now and then with the rows read and the share of the file (0 to 1). If the
    file is refused, no folder is left behind.
    """
    started = time.monotonic()
    path, folder = Path(source), check_new_folder(out)
    make_folder(folder.parent)
    rows, broken = 0, 0
    reasons: list[tuple[int, str]] = []
    chunk: list[Packed] = []
    try:
        size = path.stat().st_size
        with (
            path.open("rb") as raw,
            tempfile.TemporaryDirectory(dir=folder.parent, prefix=".packing-") as temporary,
        ):
            unsorted = Path(temporary) / "rows"
            with unsorted.open("wb") as sink:
                for line, packed in read_puzzles(raw, path.name):
                    rows += 1
                    if isinstance(packed, RowError):
                        broken += 1
                        reasons += [(line, str(packed))] if len(reasons) < _REPORTED else []
                    else:
                        chunk.append(packed)
                    if len(chunk) == _CHUNK:
                        sink.write(np.array(chunk, ROW).tobytes())
                        chunk.clear()
                    if progress and not rows % 1024:
                        progress(rows, raw.tell() / size)
                sink.write(np.array(chunk, ROW).tobytes())
            if rows == broken:
                why = f"line {reasons[0][0]}: {reasons[0][1]}" if reasons else "it has no rows"
                raise DataError(f"{path} holds no puzzle that can be read ({why})")
            kept = _sort_and_write(unsorted, folder, path.name)
    except OSError as error:
        raise DataError(
            f"{path} cannot be packed into {folder} ({error.strerror}); check both paths"
        ) from error
    if progress:
        progress(rows, 1.0)
    seconds = time.monotonic() - started
    return PackReport(rows, kept, broken, tuple(reasons), rows - broken - kept, seconds)


def read_puzzles(raw: BinaryIO, name: str) -> Iterator[tuple[int, Packed | RowError]]:
    """The line number and the packed puzzle (the fields of `ROW`) of each row, or its error.

    >>> for line, packed in read_puzzles(open("puzzles.csv", "rb"), "puzzles.csv"): ...
    """
    chess = python_chess("reading Lichess's CSV")
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
    columns = [titles.index(title) for title in NEEDED]
    for number, line in numbered:
        if not line.strip():
            continue
        try:
            fields = _split(line)
            if len(fields) != len(titles):
                raise RowError(f"{len(fields)} fields where the first line has {len(titles)}")
            yield number, _pack_row(chess, *(fields[column] for column in columns))
        except RowError as error:
            yield number, error


def _pack_row(
    chess: Any, name: str, fen: str, moves: str, rating: str, deviation: str, themes: str
) -> Packed:
    """The fields of `ROW` for one puzzle, or RowError."""
    if len(name) != 5 or not (name.isascii() and name.isalnum()):
        raise RowError(f"the id must be five letters or digits, got {name[:20]!r}")
    line = moves.split()
    if len(line) < 2:
        raise RowError(f"at least two moves are wanted, got {moves[:40]!r}")
    for what, text in (("rating", rating), ("rating deviation", deviation)):
        if not (text.isascii() and text.isdigit()) or int(text[:9]) >= 1 << 16:
            raise RowError(f"the {what} must be a whole number below 65536, got {text[:20]!r}")
    # Other complaints of python-chess, such as too many pieces, do not spoil a puzzle.
    impossible = (
        chess.STATUS_NO_WHITE_KING
        | chess.STATUS_NO_BLACK_KING
        | chess.STATUS_TOO_MANY_KINGS
        | chess.STATUS_PAWNS_ON_BACKRANK
        | chess.STATUS_OPPOSITE_CHECK
    )
    try:
        board = chess.Board(fen)
        if board.status() & impossible:
            raise RowError(f"the position {fen!r} cannot occur")
        board.push(board.parse_uci(line[0]))
        answer = board.parse_uci(line[1])
    except ValueError as error:
        raise error if isinstance(error, RowError) else RowError(str(error)) from error
    packed = bytearray(32)
    kinds = board.kings, board.queens, board.bishops, board.knights, board.rooks, board.pawns
    for colour, first in ((chess.WHITE, 1), (chess.BLACK, 7)):
        for code, mask in enumerate(kinds, first):
            for square in chess.scan_forward(mask & board.occupied_co[colour]):
                packed[square >> 1] |= code << 4 * (square & 1)
    black = board.turn == chess.BLACK
    move = answer.from_square | answer.to_square << 6 | (answer.promotion or 0) << 12 | black << 15
    names = themes.split()
    flags = sum(1 << bit for bit, theme in enumerate(FLAGS) if theme in names)
    board_bytes = np.frombuffer(packed, np.uint8)
    return board_bytes, move, int(rating), int(deviation), flags, name.encode()


def _split(line: str) -> list[str]:
    """The fields of one line; a stray quotation mark cannot swallow the lines after it."""
    return next(csv.reader([line])) if '"' in line else line.split(",")


def _sort_and_write(unsorted: Path, folder: Path, source: str) -> int:
    """Sort the rows by (rating, id), drop repeated ids, write the set and return its length."""
    rows = np.memmap(unsorted, ROW, mode="r")
    ids = np.asarray(rows["ids"])
    order = np.lexsort((np.asarray(rows["rating"]), ids))
    repeated = ids[order[1:]] == ids[order[:-1]]
    order = order[np.concatenate([[True], ~repeated])]
    order = order[np.lexsort((ids[order], rows["rating"][order]))]
    columns: dict[str, Any] = {name: rows[name] for name in ROW.names or ()}
    write_puzzles(Puzzles(**columns), folder, source=source, order=order)
    return len(order)


def blocks(raw: BinaryIO, name: str) -> Iterator[bytes]:
    """The decompressed content of a file; its first bytes tell the compression."""
    data = raw.read(BLOCK)
    if data[:3] == b"BZh":
        start: Callable[[], Any] = bz2.BZ2Decompressor
        errors: tuple[type[Exception], ...] = (OSError, ValueError)
    elif data[:4] == b"\x28\xb5\x2f\xfd" or (data[1:4] == b"\x2a\x4d\x18" and data[0] >> 4 == 5):
        try:
            zstandard = importlib.import_module("zstandard")
        except ImportError as error:
            raise MissingExtra("zstandard", "chess", "reading a .zst file") from error

        def start() -> Any:
            return zstandard.ZstdDecompressor(max_window_size=1 << 31).decompressobj()

        errors = (zstandard.ZstdError, ValueError)
    else:
        while data:
            yield data
            data = raw.read(BLOCK)
        return
    stream = start()
    while data:
        try:
            content = stream.decompress(data)
        except errors as error:
            raise DataError(f"{name} is damaged ({error}); fetch it again") from error
        if content:
            yield content
        if stream.eof:  # another compressed stream may follow
            data = stream.unused_data or raw.read(BLOCK)
            if not data:
                return
            stream = start()
        else:
            data = raw.read(BLOCK)
    raise DataError(f"{name} breaks off before its end: it is incomplete; fetch it again")


def lines(content: Iterable[bytes], name: str) -> Iterator[tuple[int, str]]:
    """Each line with its number, from 1, without its end; invalid UTF-8 is shown as �."""
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
