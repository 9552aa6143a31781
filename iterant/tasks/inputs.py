"""Problems from what people have: text, a file, a folder, standard input, a picture.

    >>> gather(task, "1011001").problems[0].batch.inputs.shape
    torch.Size([1, 1, 7])
    >>> gather(task, "mazes/")                   # every file of a folder, sorted by name
    >>> gather(task, "-", stdin=sys.stdin.buffer)

A task that reads more than the text that `Task.encode` takes offers the methods of
`ReadsInputs`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO, Protocol, runtime_checkable

from iterant.errors import DataError, IterantError, TaskError
from iterant.tasks.protocol import Batch, Size, Task

TEXT, PICTURE, GAMES = "text", "picture", "games"
"""Kinds of material: characters, an image file, chess games in PGN."""

_LARGEST = {TEXT: 8 << 20, GAMES: 64 << 20, PICTURE: 64 << 20}
"""Bytes that are read of each kind: more would fill the memory before anything is said."""
_MOST = 10_000
"""Problems at once."""
_MAGIC = (b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"BM", b"RIFF", b"II*\x00", b"MM\x00*")
_SUFFIXES = {".png", ".jpg", ".jpeg", ".gif", ".bmp", ".webp", ".tif", ".tiff", ".txt", ".fen",
             ".epd", ".pgn", ".maze", ".bits"}  # fmt: skip


@dataclass(frozen=True)
class Material:
    """Something to read: what people call it, its bytes, and what kind of thing they are."""

    name: str
    content: bytes
    kind: str = TEXT

    @property
    def text(self) -> str:
        """The characters, whatever the line ends."""
        try:
            text = self.content.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise TaskError(f"{self.name} is neither text nor a picture that is known") from None
        return text.replace("\r\n", "\n").replace("\r", "\n")

    def part(self, text: str, place: str) -> Material:
        """A piece of it, called by where it stands: ``material.part("1011", "line 3")``."""
        name = f"{self.name} {place}".strip()
        return replace(self, name=name, content=text.encode())

    def lines(self) -> list[Material]:
        """A piece a line; empty lines and those that begin with # are for people."""
        found = [
            (number, line.strip())
            for number, line in enumerate(self.text.split("\n"), start=1)
            if line.strip() and not line.lstrip().startswith("#")
        ]
        many = len(found) > 1
        return [self.part(line, f"line {number}" if many else "") for number, line in found]

    def only(self, *kinds: str, reader: str) -> None:
        """Raise TaskError unless it is of a kind that the reader takes."""
        if self.kind not in kinds:
            taken = " or ".join(kinds)
            name = self.name or "the problem"
            raise TaskError(f"{reader} read {taken}, and {name} is of the kind {self.kind}")


@dataclass(frozen=True)
class Problem:
    """One problem with its name and what is to be said of it."""

    batch: Batch
    """Of one problem"""
    name: str = ""
    notes: tuple[str, ...] = ()
    """What was seen or assumed in reading: the detected grid, castling taken as absent"""
    unsolvable: str = ""
    """Why there is no answer, where that is known"""
    made: bool = False
    """Whether the task made it itself; anything else came from a file, a stream or an argument"""


@runtime_checkable
class ReadsInputs(Protocol):
    """A task whose problems come in other ways than one text."""

    def split(self, material: Material) -> list[Material]:
        """The parts that hold one problem each: lines, blocks, games; a picture is one part."""

    def read(self, material: Material) -> Problem:
        """The problem in one part, or TaskError."""


@dataclass(frozen=True)
class Gathered:
    """What could be read, and what could not: (name, why) each."""

    problems: tuple[Problem, ...]
    refused: tuple[tuple[str, IterantError], ...] = ()


def gather(
    task: Task, where: str, *, stdin: BinaryIO | None = None, kind: str | None = None
) -> Gathered:
    """The problems in a file, a folder, standard input (``-``) or the words themselves.

    One bad problem among several is left out and named; where none can be read, its error is
    raised. ``kind`` overrides what the bytes look like.
    """
    found: list[Problem] = []
    refused: list[tuple[str, IterantError]] = []
    for material in _materials(where, stdin, kind):
        try:
            parts = _split(task, material)
        except IterantError as error:
            refused.append((material.name, error))
            continue
        for part in parts:
            try:
                found.append(_read(task, part))
            except IterantError as error:
                refused.append((part.name, error))
            if len(found) + len(refused) > _MOST:
                raise TaskError(f"{where} holds more than {_MOST:,} problems; give it in parts")
    if not found:
        if not refused:
            raise TaskError(f"{where} holds no problem; give some")
        name, first = refused[0]
        told = str(first) if str(first).startswith(name) else f"{name}: {first}"
        raise _same_kind(first, told) from first
    return Gathered(tuple(found), tuple(refused))


def generated(task: Task, *, count: int = 1, size: Size | None = None, seed: int = 0) -> Gathered:
    """Problems of the task's own making."""
    wanted = task.check_size(size)
    batch = task.sample(count, size=wanted, seed=seed)
    called = f"{wanted[0]}:{wanted[1]}" if isinstance(wanted, tuple) else str(wanted)
    name = f"{task.spec.name}, size {called}, seed {seed}"
    numbers = [f" ({number} of {count})" if count > 1 else "" for number in range(1, count + 1)]
    return Gathered(
        tuple(Problem(batch[[row]], name + number, made=True) for row, number in enumerate(numbers))
    )


def _same_kind(error: IterantError, told: str) -> IterantError:
    """An error of the same family that says something else; some take other things to be made."""
    return DataError(told) if isinstance(error, DataError) else TaskError(told)


def _split(task: Task, material: Material) -> list[Material]:
    if not material.content.strip():
        raise TaskError(f"{material.name or 'the problem'} is empty; give a problem")
    return task.split(material) if isinstance(task, ReadsInputs) else [material]


def _read(task: Task, part: Material) -> Problem:
    if isinstance(task, ReadsInputs):
        return task.read(part)
    part.only(TEXT, reader=task.spec.title)
    return Problem(task.encode(part.text), part.name)


def _materials(where: str, stdin: BinaryIO | None, kind: str | None) -> Iterator[Material]:
    """What is to be read, one file at a time."""
    if where == "-":
        if stdin is None:
            raise TaskError("there is no standard input here; give a file or the problem itself")
        name = "standard input"
        yield _known(name, stdin.read(max(_LARGEST.values()) + 1), kind)
        return
    path = Path(where)
    if _exists(path):
        files = _files(path) if path.is_dir() else [path]
        if not files:
            raise DataError(f"the folder {where} holds no file; give one with problems in it")
        for inside in files:
            with inside.open("rb") as file:
                yield _known(inside.name, file.read(max(_LARGEST.values()) + 1), kind)
        return
    looks_like_a_path = path.suffix.lower() in _SUFFIXES or where.startswith(("/", "./", "../"))
    if "\n" not in where and looks_like_a_path:
        raise DataError(f"there is no file {where!r}; check the path")
    yield Material("", where.encode(), kind or TEXT)


def _files(folder: Path) -> list[Path]:
    """Its files by name; hidden ones are the system's."""
    inside = (path for path in folder.iterdir() if not path.name.startswith("."))
    return sorted(path for path in inside if path.is_file())


def _exists(path: Path) -> bool:
    """Whether it is there: a long text or one with odd characters is no path at all."""
    try:
        return os.fspath(path) != "." and path.exists()
    except (OSError, ValueError):
        return False


def _known(name: str, content: bytes, kind: str | None) -> Material:
    """The material with its kind, by its first bytes; a larger one than is read is refused."""
    if kind is None:
        if content.startswith(_MAGIC):
            kind = PICTURE
        elif name.lower().endswith(".pgn") or content.lstrip().startswith(b"[Event "):
            kind = GAMES
        else:
            kind = TEXT
    if len(content) > _LARGEST[kind]:
        raise DataError(
            f"{name} has more than {_LARGEST[kind] >> 20} MiB, which is the most that is read of "
            f"a {kind}; give less at a time"
        )
    return Material(name, content, kind)
