"""Corrupt inputs for readers and command lines, distinguishing refusals from crashes."""

from __future__ import annotations

import contextlib
import copy
import io
import json
import math
import signal
import traceback
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
from cyclopts import App, CycloptsError
from readers import TINY, Reader, readers

from iterant.cli.main import app
from iterant.errors import IterantError
from iterant.io.files import checksum
from iterant.training import train

HANG_SECONDS = 60
NASTY = [
    b"", b"\x00", b"\xff", b"\n", b"\r\n", b" ", b"\t", b"0", b"-1", b"9" * 40, b"1e999", b"nan",
    b"inf", b"null", b"[", b"]" * 9, b"{", b"}", b'"', b"'", b"\\", b"/", b"../" * 5, b"%s", b"#",
    b",", b"=", b":", b";", b"--", b"$(touch EXPLODED)", b"`id`", b"\xf0\x9f\x98\x80",
    "٣".encode(), "½".encode(), "\u202e".encode(), "\ufeff".encode(), b"\xed\xa0\x80", b"A" * 3000,
]  # fmt: skip
WORDS = ["mazes", "chess", "prefix-sums", "13", "0-7", "quick", "cpu", "9m", "a.toml", "x.png",
         "true", "none", "512", "0:100", "--", "-", "--help", "-h"]  # fmt: skip


def build_readers(home: Path) -> dict[str, Reader]:
    """Every reader, with files in a folder to work in."""
    run = train("prefix-sums", recipe="quick", out=home / "run", **TINY)
    return readers(home, run.path)


def mutated(seeds: Sequence[bytes], count: int, seed: int) -> Iterator[bytes]:
    """Inputs that are valid ones with one to six mutations."""
    rng = np.random.default_rng(seed)
    for number in range(count):
        content = seeds[number % len(seeds)]
        for _ in range(int(rng.integers(1, 7))):
            content = _mutate(content, seeds, rng)
        yield content


def _mutate(content: bytes, seeds: Sequence[bytes], rng: np.random.Generator) -> bytes:
    first, last = sorted(int(rng.integers(0, len(content) + 1)) for _ in range(2))
    kind, other = int(rng.integers(7)), seeds[int(rng.integers(len(seeds)))]
    flipped = bytearray(content)
    if content:
        flipped[min(first, len(content) - 1)] ^= 1 << int(rng.integers(8))
    return [
        content[:first] + content[last:],
        content[:last] + content[first:last] * 2 + content[last:],
        content[:first] + NASTY[int(rng.integers(len(NASTY)))] + content[first:],
        bytes(flipped),
        content[:last],
        content[:first] + rng.bytes(int(rng.integers(1, 9))) + content[last:],
        content[:first] + other[min(first, len(other)) :],
    ][kind]


DEEP: list[Any] = []
for _ in range(200):
    DEEP = [DEEP]
VALUES: list[Any] = [None, True, -1, 0, 3.5, 4097, 2**63, 10**30, 1e308, "x", "a" * 5000, [], DEEP,
                     [1, "x", None], {}, {"a": 1}]  # fmt: skip
"""What a field is replaced with, where a file is crafted."""


def crafted(content: bytes, count: int, seed: int) -> Iterator[bytes]:
    """A JSON file with one field replaced or missing and a valid checksum."""
    value, rng = json.loads(content), np.random.default_rng(seed)
    sealed = value.pop("sha256", None) is not None
    places = list(_fields(value))
    for _ in range(count):
        *way, last = places[int(rng.integers(len(places)))]
        changed = copy.deepcopy(value)
        inner = changed
        for key in way:
            inner = inner[key]
        choice = int(rng.integers(len(VALUES) + 1))
        if choice == len(VALUES):
            del inner[last]
        else:
            inner[last] = VALUES[choice]
        yield json.dumps({**changed, "sha256": checksum(changed)} if sealed else changed).encode()


def _fields(value: Any) -> Iterator[tuple[Any, ...]]:
    """The way to every field of nested objects and lists."""
    inner = value.items() if isinstance(value, dict) else ()
    for key, one in enumerate(value[:2]) if isinstance(value, list) else inner:
        yield (key,)
        yield from ((key, *way) for way in _fields(one))


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
    count = math.ceil(count * reader.share)
    inputs = mutated(reader.seeds, count, seed) if reader.share == 1 else iter(())
    if reader.is_json:
        inputs = chain(inputs, crafted(reader.seeds[0], count, seed))
    outcomes = [(one, tried(reader, one, folder)) for one in inputs]
    return [(content, why) for content, why in outcomes if why is not None]


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


def all_commands(one: App = app, before: tuple[str, ...] = ()) -> dict[tuple[str, ...], App]:
    """Every command and subcommand, by its words."""
    commands = {before: one}
    for name in one:
        if not name.startswith("-"):
            commands |= all_commands(one[name], (*before, name))
    return commands


def fuzzed_commands(count: int, seed: int) -> list[tuple[list[str], str]]:
    """Command lines that the parser neither takes nor refuses; nothing is carried out."""
    commands, rng = all_commands(), np.random.default_rng(seed)
    flags = sorted({
        name
        for one in commands.values() if one.default_command is not None
        for argument in one.assemble_argument_collection()
        for name in argument.names if name.startswith("--")
    })  # fmt: skip
    values = [*(word.decode(errors="replace") for word in NASTY), *WORDS]
    crashes: list[tuple[list[str], str]] = []
    for number in range(count):
        words = list(list(commands)[number % len(commands)])
        for _ in range(int(rng.integers(0, 8))):
            flag, value = str(rng.choice(flags)), values[int(rng.integers(len(values)))]
            words.append([value, flag, f"{flag}={value}"][int(rng.integers(3))])
        if rng.random() < 0.1:
            rng.shuffle(words)
        try:
            with _limited(), contextlib.redirect_stdout(io.StringIO()):
                app.parse_args(words, print_error=False, exit_on_error=False)
        except (CycloptsError, IterantError, SystemExit):
            continue
        except Exception as error:
            crashes.append((words, f"{type(error).__name__}: {error}"))
    return crashes
