"""Text files of any length, plain, .zst or .bz2, as numbered lines in little memory.

    >>> with open("lichess_db_puzzle.csv.zst", "rb") as raw:
    ...     for number, line in lines(blocks(raw, raw.name), raw.name): ...

A compressed file that breaks off is an error here, never a shorter file.
"""

from __future__ import annotations

import bz2
import importlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any, BinaryIO

from iterant.errors import DataError, MissingExtra

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
