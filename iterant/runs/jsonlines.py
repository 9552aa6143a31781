"""JSON lines: one record a line, appended while a run goes on.

    >>> append_line("metrics.jsonl", {"step": 1, "loss": 0.69})
    >>> read_lines("metrics.jsonl")
    [{'step': 1, 'loss': 0.69}]

A process killed while it appends leaves a torn last line. Reading passes over it, and the next
append cuts it off, so that it never ends up in the middle. A last line that only lacks its end of
line is whole, and is kept.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from iterant.errors import RunError
from iterant.runs.files import (
    PathLike,
    explained,
    parsed,
    read_bytes,
    shown,
    write_all,
    write_atomic,
)
from iterant.runs.plain import plain

Record = dict[str, Any]

_BLOCK = 1 << 16


def append_line(path: PathLike, record: Mapping[str, Any]) -> None:
    """Add one record at the end; on failure the file keeps the whole lines that it had.

    NaN and infinities become null. The line is handed to the system at once, so a killed process
    loses nothing; a power cut may lose the last seconds.
    """
    data = _line(record)
    path = Path(path)
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            end, joint = _whole_end(handle)
            os.ftruncate(handle, end)
            os.lseek(handle, end, os.SEEK_SET)
            try:
                write_all(handle, joint + data)
            except BaseException:
                os.ftruncate(handle, end)
                raise
        finally:
            os.close(handle)
    except OSError as error:
        raise explained(error, "append to", path, len(data)) from error


def _line(record: Mapping[str, Any]) -> bytes:
    return json.dumps(plain(record, gaps=True), allow_nan=False).encode() + b"\n"


def _whole_end(handle: int) -> tuple[int, bytes]:
    """Where the next line may begin, and what must stand before it (a missing end of line)."""
    size = os.fstat(handle).st_size
    tail, start = b"", size
    while start > 0 and b"\n" not in tail:
        length = min(_BLOCK, start)
        start -= length
        tail = os.pread(handle, length, start) + tail
    torn = tail.rpartition(b"\n")[2]
    if torn and _record(torn) is not None:
        return size, b"\n"
    return size - len(torn), b""


def _record(line: bytes) -> Record | None:
    try:
        value = parsed(line, "")
    except RunError:
        return None
    return value if isinstance(value, dict) else None


def read_lines(path: PathLike) -> list[Record]:
    """All whole records, in order; a damaged line other than a torn last one is an error."""
    *lines, tail = read_bytes(path).split(b"\n")
    records: list[Record] = []
    for number, line in enumerate(lines, start=1):
        record = parsed(line, f"line {number} of {shown(path)}")
        if not isinstance(record, dict):
            raise RunError(
                f"line {number} of {shown(path)} is not a JSON object; restore it from a copy"
            )
        records.append(record)
    last = _record(tail) if tail else None
    return records if last is None else [*records, last]


def is_torn(path: PathLike) -> bool:
    """Whether its last line is no whole record, which `read_lines` passes over.

    >>> is_torn("runs/m0/metrics.jsonl")
    """
    tail = read_bytes(path).rpartition(b"\n")[2]
    return bool(tail) and _record(tail) is None


def write_lines(path: PathLike, records: Iterable[Mapping[str, Any]]) -> None:
    """Replace the whole file atomically by these records."""
    write_atomic(path, b"".join(map(_line, records)))
