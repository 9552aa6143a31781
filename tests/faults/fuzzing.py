"""Trying inputs on readers and command lines, and telling refusals from crashes."""

from __future__ import annotations

import contextlib
import io
import signal
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

from cyclopts import App, CycloptsError
from mutations import command_lines, mutated
from readers import Reader, readers
from test_places import TINY

from iterant.cli.main import app
from iterant.errors import IterantError
from iterant.training import train

HANG_SECONDS = 60

COUNTS = {
    "FEN": 300, "games": 100, "bit strings": 300, "text mazes": 200, "PNG mazes": 60,
    "CSV puzzles": 150, "recipe files": 300, "sweep files": 100, "result files": 200,
    "safetensors": 200, "seeds": 300, "times": 300, "sizes": 150, "metrics": 200,
    "run folders: config.json": 60, "run folders: status.json": 60,
    "run folders: environment.json": 60, "run folders: checkpoints/last.json": 60,
}  # fmt: skip
"""How many inputs each reader gets in the tests."""


def made_readers(home: Path) -> dict[str, Reader]:
    run = train("prefix-sums", recipe="quick", out=home / "run", **TINY)
    (home / "files").mkdir()
    return readers(home / "files", run.path)


def tried(reader: Reader, content: bytes, folder: Path) -> str | None:
    """None where the input was read or refused in one line; else what came instead."""
    try:
        with _limited():
            reader.read(content, folder)
    except IterantError as error:
        return f"more than a line: {error!r}" if "\n" in str(error) else None
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__}: {error} ({Path(place.filename).name}:{place.lineno})"
    return None


def crashes_of(reader: Reader, count: int, *, seed: int, folder: Path) -> list[tuple[bytes, str]]:
    found = []
    for content in mutated(reader.seeds, count, seed):
        why = tried(reader, content, folder)
        if why is not None:
            found.append((content, why))
    return found


@contextlib.contextmanager
def _limited() -> Iterator[None]:
    """A hang is a crash, too."""

    def late(number: int, frame: FrameType | None) -> None:
        raise TimeoutError(f"still reading after {HANG_SECONDS} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(HANG_SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def all_commands(one: App = app, before: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Every command and subcommand, by its words."""
    found: list[tuple[str, ...]] = [before]
    for name in one:
        if not name.startswith("-"):
            found += all_commands(one[name], (*before, name))
    return found


def all_flags(commands: list[tuple[str, ...]]) -> list[str]:
    """Every flag of every command."""
    found: set[str] = set()
    for words in commands:
        one = app
        for word in words:
            one = one[word]
        if one.default_command is not None:
            for argument in one.assemble_argument_collection():
                found |= {name for name in argument.names if name.startswith("--")}
    return sorted(found)


def fuzzed_commands(count: int, seed: int) -> list[tuple[list[str], str]]:
    """Command lines that the parser neither takes nor refuses; nothing is carried out."""
    commands = all_commands()
    crashes: list[tuple[list[str], str]] = []
    for words in command_lines(commands, all_flags(commands), count, seed):
        try:
            with _limited(), contextlib.redirect_stdout(io.StringIO()):
                app.parse_args(words, print_error=False, exit_on_error=False)
        except (CycloptsError, IterantError):
            continue
        except SystemExit:
            continue
        except Exception as error:
            crashes.append((words, f"{type(error).__name__}: {error}"))
    return crashes
