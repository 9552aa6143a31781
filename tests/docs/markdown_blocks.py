"""Code blocks of a Markdown page, and how each is tried.

    <!-- test: parse only (needs several GPUs) -->       the next block is parsed, not run
    <!-- test: needs runs/m0 mazes -->                   a tiny run is trained there first

A Python block is executed, after those above it on its page. Of a console block every command
of ours is run, with the small settings of `SMALL`; other programs are looked at, not started.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

KNOWN = {"python", "console", "text", "toml", "json", "bibtex"}
"""What a block of ours may hold; only the first two are tried."""

_FENCE = re.compile(r"^(?P<fence>`{3,}|:{3,})(?P<words>.*)$")
_MARK = re.compile(r"^<!-- test: (?P<said>.+) -->$")
_FIRST_WORDS = ("iterant ", "make ", "pip ", "python ", "scripts/", "torchrun ")
"""What a block without a language begins with if it holds commands."""

SMALL: dict[str, dict[str, str]] = {
    "train": {"--epochs": "1", "--count": "60", "--width": "8", "--batch": "10", "--warmup": "0",
              "--iterations": "6", "--pool-slots": "20", "--pool-shortest": "2",
              "--watch-every": "0"},
    "evaluate": {"--count": "4", "--max-steps": "6"},
    "analyze": {"--count": "2", "--max-steps": "56"},
    "solve": {"--max-steps": "4", "--size": "9"},
    "sample": {},
    "runs": {},
    "info": {},
}  # fmt: skip
"""Commands that are run, and what is changed so that they take no time; others are parsed."""


@dataclass(frozen=True)
class Block:
    """One block of a page."""

    language: str
    text: str
    line: int
    marks: tuple[str, ...] = ()

    @property
    def only_parsed(self) -> bool:
        """Whether the page says that it must not be run."""
        return any(mark.startswith("parse only (") for mark in self.marks)

    @property
    def needs(self) -> list[tuple[str, str]]:
        """Runs that must be there: (path, task)."""
        found = [mark.split() for mark in self.marks if mark.startswith("needs ")]
        return [(path, task) for _, path, task in found]


def blocks(page: Path) -> Iterator[Block]:
    """Every fenced block of a page with the marks directly above it."""
    marks: list[str] = []
    lines = iter(enumerate(page.read_text(encoding="utf-8").splitlines(), start=1))
    for number, line in lines:
        if found := _MARK.match(line):
            marks.append(found["said"])
        elif opened := _FENCE.match(line):
            body = []
            for _, inner in lines:
                if inner.rstrip() == opened["fence"]:
                    break
                body.append(inner)
            yield Block(opened["words"].strip(), "\n".join(body) + "\n", number, tuple(marks))
            marks = []
        elif line.strip():
            marks = []


def language_of(block: Block) -> str:
    """What a block holds; one that does not say holds commands if it begins like one."""
    if block.language.startswith("{"):
        return "directive"
    if not block.language and block.text.startswith(_FIRST_WORDS):
        return "console"
    return block.language or "text"


def commands(block: Block) -> Iterator[list[str]]:
    """The words of each command; lines without ``$`` are output where others have one."""
    lines = block.text.replace("\\\n", " ").splitlines()
    if any(line.startswith("$ ") for line in lines):
        lines = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
    for line in lines:
        # A pipe or a redirection ends what is ours to try.
        if words := shlex.split(line.split(" | ")[0].split(" > ")[0], comments=True):
            yield words


def smaller(words: list[str]) -> list[str] | None:
    """A command of ours with small settings; None: it is not run."""
    settings = SMALL.get(words[0])
    if settings is None:
        return None
    if {"--resume", "--show", "--help"} & set(words):
        return words
    kept: list[str] = []
    dropping = False
    for word in words:
        if word.startswith("--"):
            dropping = word in settings or word == "--seeds"
        if not dropping:
            kept.append(word)
    seeds = ["--seeds", "0-1"] if "--seeds" in words else []
    # A size belongs to problems that are made; those that are given have their own.
    changed = [pair for pair in settings.items() if pair[0] != "--size" or "--size" in words]
    return kept + seeds + [word for pair in changed for word in pair]
