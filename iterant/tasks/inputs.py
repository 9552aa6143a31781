"""Problems from text, a file, a folder, standard input or a picture.

    >>> gather(task, "1011001").problems[0].batch.inputs.shape
    torch.Size([1, 1, 7])
    >>> gather(task, "mazes/")                   # every file of a folder, sorted by name
    >>> gather(task, "-", stdin=sys.stdin.buffer)

A task may have the methods `split`, for several problems in a file, and `read`, for more than the
text that `encode` takes.
"""

from __future__ import annotations

import io
import os.path
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from iterant.errors import DataError, IterantError, TaskError
from iterant.formatting import byte_size
from iterant.io.files import one_line_errors, open_to_read
from iterant.tasks.protocol import Problem, Task, offers

TEXT, PICTURE, GAMES = "text", "picture", "games"
"""Kinds of `Material`: plain text, an image file, chess games in PGN."""

_LARGEST = 64 << 20
"""Most bytes that are read of a file, to bound memory."""
_MOST_PROBLEMS = 10_000
_PICTURE_HEADERS = (b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"BM", b"RIFF", b"II*\x00", b"MM\x00*")
_SUFFIXES = {".png", ".jpg", ".jpeg", ".gif", ".bmp", ".webp", ".tif", ".tiff", ".txt", ".fen",
             ".epd", ".pgn", ".maze", ".bits"}  # fmt: skip


@dataclass(frozen=True)
class Material:
    """The bytes of one or more problems: their kind, and a name for error messages."""

    name: str
    content: bytes
    kind: str = TEXT

    @property
    def text(self) -> str:
        """The content as text, with all line ends as newlines."""
        try:
            text = self.content.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise TaskError(f"{self.name} is neither text nor a picture that is known") from None
        return text.replace("\r\n", "\n").replace("\r", "\n")

    def part(self, text: str, place: str) -> Material:
        """A part, named by where it is: ``material.part("1011", "line 3")``."""
        return replace(self, name=f"{self.name} {place}".strip(), content=text.encode())

    def lines(self) -> Iterator[Material]:
        """One part per line; empty lines and comments (#) are left out."""
        for number, line in enumerate(io.StringIO(self.text), start=1):
            if (text := line.strip()) and not text.startswith("#"):
                yield self.part(text, f"line {number}")

    def only(self, *kinds: str, reader: str) -> None:
        """Raise TaskError unless the material is of one of these kinds."""
        if self.kind not in kinds:
            name = self.name or "the problem"
            kind = " or ".join(kinds)
            raise TaskError(f"{reader} read {kind}, and {name} is of the kind {self.kind}")


@dataclass(frozen=True)
class InputProblems:
    """The problems that could be read, and the (name, error) of those that could not."""

    problems: tuple[Problem, ...]
    refused: tuple[tuple[str, IterantError], ...] = ()


def gather(
    task: Task, where: str, *, stdin: BinaryIO | None = None, kind: str | None = None
) -> InputProblems:
    """The problems in a file, a folder, standard input (``-``) or the text itself.

    A problem that cannot be read goes to ``refused``; if none can be read, the first error is
    raised. ``kind`` overrides the detected kind.
    """
    problems: list[Problem] = []
    refused: list[tuple[str, IterantError]] = []
    read = getattr(task, "read", lambda part: Problem(task.encode(part.text), part.name))
    for name, content in _contents(where, stdin):
        try:
            parts = _parts(task, _detect_kind(name, content(), kind))
        except IterantError as error:
            refused.append((name, error))
            continue
        for part in parts:
            try:
                problems.append(read(part))
            except IterantError as error:
                refused.append((part.name, error))
            if len(problems) + len(refused) > _MOST_PROBLEMS:
                raise TaskError(
                    f"{where} holds more than {_MOST_PROBLEMS:,} problems; give it in parts"
                )
    if not problems:
        if not refused:
            raise TaskError(f"{where} holds no problem; give some")
        name, first = refused[0]
        text = str(first) if name in str(first) else f"{name}: {first}"
        raise (DataError if isinstance(first, DataError) else TaskError)(text) from first
    return InputProblems(tuple(problems), tuple(refused))


def _contents(where: str, stdin: BinaryIO | None) -> Iterator[tuple[str, Callable[[], bytes]]]:
    """The name of each file, stream or text, and what reads it: one file at a time."""
    path = Path(where)
    if where == "-":
        if stdin is None:
            raise TaskError("there is no standard input here; give a file or the problem itself")
        yield "standard input", partial(stdin.read, _LARGEST + 1)
    elif os.path.exists(where):  # noqa: PTH110  # Path.exists raises for a text too long for a path
        files = [path]
        if path.is_dir():
            files = sorted(each for each in path.glob("[!.]*") if each.is_file())
        if not files:
            raise DataError(f"the folder {where} holds no file; give one with problems in it")
        for each in files:
            yield each.name, partial(_read_file, each)
    elif "\n" not in where and (
        path.suffix.lower() in _SUFFIXES or where.startswith(("/", "./", "../"))
    ):
        raise TaskError(f"there is no file {where!r}; check the path")
    else:
        yield "", where.encode


def _read_file(path: Path) -> bytes:
    with one_line_errors("read", path), open_to_read(path, pipes=True) as file:
        return file.read(_LARGEST + 1)


def _parts(task: Task, material: Material) -> list[Material]:
    """The parts that hold one problem each, at most one more than are allowed."""
    if not material.content.strip():
        raise TaskError(f"{material.name or 'the problem'} is empty; give a problem")
    if not offers(task, "read"):
        material.only(TEXT, reader=task.spec.title)
    parts = [material]
    if offers(task, "split"):
        parts = list(islice(task.split(material), _MOST_PROBLEMS + 1))
    return parts if len(parts) > 1 else [replace(part, name=material.name) for part in parts]


def _detect_kind(name: str, content: bytes, kind: str | None) -> Material:
    """The material with its kind detected by name and first bytes; DataError if too large."""
    if name and content.startswith(_PICTURE_HEADERS):  # a problem given as text has no name
        kind = kind or PICTURE
    elif name.lower().endswith(".pgn") or content.lstrip().startswith(b"[Event "):
        kind = kind or GAMES
    if len(content) > _LARGEST:
        raise DataError(
            f"{name} has more than {byte_size(_LARGEST)}, the most that is read; give it in parts"
        )
    return Material(name, content, kind or TEXT)
