"""Small files that claim to be large: read in a process of its own, which reports time and memory.

    $ python tests/faults/bombs.py FOLDER

reads every file that `write_bombs` wrote there, and prints a line of JSON for each: its name, what
the reader said, seconds, and the most memory (in MB) of the process so far.
"""

from __future__ import annotations

import bz2
import io
import json
import lzma
import resource
import struct
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
import zstandard
from PIL import Image

from iterant.errors import IterantError
from iterant.export.authors import import_checkpoint
from iterant.io.files import read_json, read_toml
from iterant.registry import task
from iterant.tasks.chess.puzzles import load_puzzles, pack_csv
from iterant.tasks.datasets import _load
from iterant.tasks.inputs import gather

Reader = Callable[[Path], object]

CSV = b"PuzzleId,FEN,Moves,Rating,RatingDeviation,Themes\n"
GAME = '[Event "x"]\n\n1. e4 '


def _repacked(tensors: object, method: int, change: Callable[[bytes], bytes]) -> bytes:
    """What torch.save writes, its pickle changed, in a zip with another method of compression."""
    saved, out = io.BytesIO(), io.BytesIO()
    torch.save(tensors, saved)
    with zipfile.ZipFile(saved) as source, zipfile.ZipFile(out, "w", method) as target:
        for member in source.infolist():
            data = source.read(member)
            is_pickle = member.filename.endswith("data.pkl")
            target.writestr(member.filename, change(data) if is_pickle else data)
    return out.getvalue()


def _grown(data: bytes) -> bytes:
    """A pickle in which 77 elements have become 2**28."""
    assert b"K\x4d" in data
    return data.replace(b"K\x4d", b"J" + struct.pack("<i", 1 << 28))


def _with_key(key: bytes) -> Callable[[bytes], bytes]:
    """A pickle of a dict whose key is the tuple that these opcodes leave in the memo as 0."""
    return lambda _: b"\x80\x02" + key + b"q\x00}h\x00Ns."


def _legacy(tensor: torch.Tensor) -> bytes:
    saved = io.BytesIO()
    torch.save(tensor, saved, _use_new_zipfile_serialization=False)
    return _grown(saved.getvalue())


def _doubled_tuples() -> bytes:
    """A tuple of two of a tuple of two …: 300 bytes, whose hash takes 2**60 steps."""
    levels = [b"h" + bytes([n]) + b"h" + bytes([n]) + b"\x86q" + bytes([n + 1]) for n in range(60)]
    return b"Nq\x00" + b"".join(levels)


def _xz_set(folder: Path) -> None:
    """A packed set of nine million puzzles, all zeros."""
    rows = 9_000_000
    for name, dtype, shape in (
        ("boards", "u1", (32,)), ("moves", "<u2", ()), ("rating", "<u2", ()),
        ("rating_deviation", "<u2", ()), ("flags", "u1", ()), ("ids", "S5", ()),
    ):  # fmt: skip
        header = io.BytesIO()
        np.lib.format.write_array_header_1_0(
            header, {"descr": dtype, "fortran_order": False, "shape": (rows, *shape)}
        )
        size = rows * np.dtype(dtype).itemsize * (shape[0] if shape else 1)
        packer = lzma.LZMACompressor(preset=0)
        parts = [packer.compress(header.getvalue())]
        parts += [packer.compress(bytes(min(1 << 24, size - at))) for at in range(0, size, 1 << 24)]
        (folder / f"{name}.npy.xz").write_bytes(b"".join([*parts, packer.flush()]))


def _picture(side: int) -> bytes:
    image = Image.new("RGB", (side, side), "white")
    for row in range(20, side - 20, 2):
        image.paste((0, 0, 0), (0, row, side, row + 1))
    image.paste((0, 255, 0), (0, 0, 10, 10))
    image.paste((255, 0, 0), (side - 10, side - 10, side, side))
    content = io.BytesIO()
    image.save(content, "PNG")
    return content.getvalue()


def write_bombs(folder: Path) -> None:
    """Write one file or folder for each of `READERS`."""
    big = 64 << 20
    zst = [zstandard.compress(letters * (big // len(letters))) for letters in (b"\n", b"x\n", b"x")]
    content = {
        "blank.zst": zstandard.compress(CSV) + zst[0] * (6_000_000 // len(zst[0])),
        "broken.zst": zstandard.compress(CSV) + zst[1] * (6_000_000 // len(zst[1])),
        "one-line.zst": zstandard.compress(CSV) + zst[2] * 100,
        "window.zst": b"\x28\xb5\x2f\xfd\x00\xa8\x01\x00\x00",
        "blank.bz2": bz2.compress(CSV) + bz2.compress(b"\n" * big) * 1000,
        "many-streams.bz2": bz2.compress(CSV) + bz2.compress(b"") * 400_000,
        "broken.csv": CSV + b"a\n" * 4_500_000,
        "expanded.pth": _repacked(torch.zeros(1).expand(1 << 30), 0, lambda data: data),
        "claims.pth": _repacked(torch.zeros(77), 0, _grown),
        "legacy.pth": _legacy(torch.zeros(77)),
        "deflated.pth": _repacked(torch.zeros(1 << 24), zipfile.ZIP_DEFLATED, bytes),
        "hash.pth": _repacked(torch.zeros(1), 0, _with_key(_doubled_tuples())),
        "deep.pth": _repacked(torch.zeros(1), 0, _with_key(b"N" + b"\x85" * 900_000)),
        "pickle.pth": _repacked(
            torch.zeros(1), 0, lambda _: b"\x80\x02]" + b"]a" * 3_000_000 + b"."
        ),
        "bytes.pth": _repacked(
            torch.zeros(1), 0,
            lambda _: b"\x80\x02cbuiltins\nbytearray\nJ\xff\xff\xff\x7f\x85R.",
        ),
        "variations.pgn": (GAME + "e5 " + "Nf3 Nf6 Ng1 Ng8 " * 2000 + "(d4) " * 40_000).encode(),
        "comments.pgn": (GAME + "{}" * 120_000 + " e5 *").encode(),
        "nested.pgn": (GAME + "(d4 " * 60_000).encode(),
        "long.pgn": (GAME + "e5 " + "Nf3 Nf6 Ng1 Ng8 " * 500_000).encode(),
        "many.pgn": b'[Event "x"]\n' * 700_000,
        "long.epd": b"6k1/5ppp/8/8/8/8/8/K2R4 w " + b"-" * 9_000_000,
        "lines.epd": b"12\n" * 3_000_000,
        "mazes.txt": b"#\n\n" * 3_000_000,
        "column.txt": b"#\n" * 4_500_000,
        "stripes.png": _picture(5000),
        "dotted.toml": b"a." * 400_000 + b"a = 1",
        "digits.toml": b"a = " + b"1" * 900_000,
        "lists.json": b"[" + b"[]," * 1_500_000 + b"[]]",
        "claims.npy": b"",
    }  # fmt: skip
    shared = torch.zeros(1 << 20)
    saved = io.BytesIO()
    torch.save({str(n): shared[n:] for n in range(1000)}, saved)
    content["views.pth"] = saved.getvalue()
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "<f4", "fortran_order": False, "shape": (1 << 34, 3, 24, 24)}
    )
    content["claims.npy"] = header.getvalue() + bytes(1000)
    for name, data in content.items():
        assert len(data) < 10_000_000, name
        (folder / name).write_bytes(data)
    (folder / "puzzles").mkdir()
    _xz_set(folder / "puzzles")


def _read_csv(path: Path) -> object:
    return pack_csv(path, path.parent / "packed" / path.name)


def _read_pth(path: Path) -> object:
    return import_checkpoint(path, task=task("mazes").spec, out=path.parent / "imported")


def _read_set(path: Path) -> object:
    return _load(path).sum()


def _read_maze(path: Path) -> object:
    return gather(task("mazes"), str(path))


def _read_chess(path: Path) -> object:
    return gather(task("chess"), str(path))


READERS: dict[str, Reader] = {
    ".zst": _read_csv, ".bz2": _read_csv, ".csv": _read_csv, ".pth": _read_pth, ".npy": _read_set,
    ".pgn": _read_chess, ".epd": _read_chess, ".txt": _read_maze, ".png": _read_maze,
    ".toml": read_toml, ".json": lambda path: read_json(path, checksummed=True), "": load_puzzles,
}  # fmt: skip


def report(folder: Path) -> None:
    paths = sorted(path for path in folder.iterdir() if path.name not in ("packed", "imported"))
    for path in paths:
        readers = [READERS[path.suffix], *([_read_set] if path.suffix == ".pth" else [])]
        for reader in readers:
            start = time.monotonic()
            try:
                reader(path)
                text = "read"
            except IterantError as error:
                text = str(error)
            seconds = time.monotonic() - start
            # Not getrusage: its peak includes that of the process that started this one.
            status = Path("/proc/self/status").read_text(encoding="utf-8")
            memory = int(status.partition("VmHWM:")[2].split()[0]) >> 10
            sys.stdout.write(json.dumps([path.name, text, seconds, memory]) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    # More than the test allows, so that a failure is reported and does not fill the machine.
    resource.setrlimit(resource.RLIMIT_AS, (12 << 30, 12 << 30))
    report(Path(sys.argv[1]))
