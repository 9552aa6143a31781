"""Every code block of the README and of docs/ runs, on small settings.

    <!-- test: parse only (needs several GPUs) -->       the next block is parsed, not run
    <!-- test: needs runs/m0 mazes -->                   a tiny run is trained there first

A Python block is executed after those above it on its page. Of a console block every command of
ours is run, with the settings of `SMALL`; of other programs only the names are checked.
"""

from __future__ import annotations

import ast
import re
import shlex
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch

import iterant
from iterant import draw
from iterant.cli.main import app, run

REPOSITORY = Path(__file__).resolve().parents[2]
PAGES = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").rglob("*.md"))]
LANGUAGES = {"python", "console", "text", "toml", "json", "bibtex", "directive"}

SMALL: dict[str, dict[str, int]] = {
    "train": {"epochs": 1, "count": 60, "width": 12, "batch_size": 10, "warmup_epochs": 0,
              "iterations": 6, "pool_slots": 20, "pool_shortest": 2, "monitor_every": 0},
    "evaluate": {"count": 4, "max_steps": 6},
    "analyze": {"count": 2, "max_steps": 56},
    "solve": {"max_steps": 6, "size": 9},
    "sample": {},
    "runs": {},
    "info": {},
}  # fmt: skip
"""Commands that are run, and the settings that make them quick; others are only parsed."""


@dataclass(frozen=True)
class Block:
    """One block of a page, with the marks directly above it."""

    language: str
    text: str
    line: int
    marks: tuple[str, ...] = ()

    @property
    def only_parsed(self) -> bool:
        return any(mark.startswith("parse only (") for mark in self.marks)


def blocks(page: Path) -> Iterator[Block]:
    marks: list[str] = []
    lines = iter(enumerate(page.read_text(encoding="utf-8").splitlines(), start=1))
    for number, line in lines:
        if mark := re.match(r"^<!-- test: (.+) -->$", line):
            marks.append(mark[1])
        elif fence := re.match(r"^(`{3,}|:{3,})(.*)$", line):
            body = []
            for _, inner in lines:
                if inner.rstrip() == fence[1]:
                    break
                body.append(inner)
            language = fence[2].strip() or "text"
            first = body[0] if body else ""
            if first.startswith(("iterant ", "make ", "pip ", "python ", "scripts/", "torchrun ")):
                language = "console" if language == "text" else language
            language = "directive" if language.startswith("{") else language
            yield Block(language, "\n".join(body) + "\n", number, tuple(marks))
            marks = []
        elif line.strip():
            marks = []


WITH_CODE = [p for p in PAGES if {b.language for b in blocks(p)} & {"python", "console"}]


def name_of(page: Path) -> str:
    return str(page.relative_to(REPOSITORY))


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty folder to work in, and public functions that take no time."""

    def smaller(name: str) -> Any:
        function = getattr(iterant, name)

        def call(*args: Any, **options: Any) -> Any:
            if options.get("out") is not None:  # a page may show the same run twice
                shutil.rmtree(options["out"], ignore_errors=True)
            changes = {key: value for key, value in SMALL[name].items() if key != "size"}
            if "net" in options:  # a network of the reader's own has its own width
                changes.pop("width", None)
            return function(*args, **(options if "resume" in options else {**options, **changes}))

        return call

    monkeypatch.chdir(tmp_path)
    Path("examples").symlink_to(REPOSITORY / "examples")
    monkeypatch.syspath_prepend(str(REPOSITORY / "examples"))
    for name in ("train", "evaluate", "solve", "analyze"):
        monkeypatch.setattr(iterant, name, smaller(name))


def write_problems(words: list[str]) -> None:
    """Mazes and positions in the files that a page names, as a reader would have them."""
    task = iterant.task("mazes")
    maze = task.sample(1, size=9, seed=1)
    problem = replace(maze, targets=torch.full_like(maze.targets, -1))  # without the answer
    for before, word in pairwise(words):
        if word.endswith(".png") and not before.startswith("--") and not Path(word).exists():
            draw.save_png(task.describe(problem), word)


def smaller_command(words: list[str]) -> list[str]:
    """A command of ours with small settings."""
    if {"--resume", "--show", "--help"} & set(words):
        return words
    changes = {f"--{k.replace('_', '-')}": str(v) for k, v in SMALL[words[0]].items()}
    if "--size" not in words:  # problems that are given have their own
        changes.pop("--size", None)
    if "--seeds" in words:
        changes["--seeds"] = "0-1"
    left: list[str] = []
    dropping = False
    for word in words:
        dropping = word in changes if word.startswith("--") else dropping
        left += [] if dropping else [word]
    return left + [word for pair in changes.items() for word in pair]


def run_python(block: Block, page: Path, space: dict[str, Any]) -> None:
    """Execute it, with line numbers of the page."""
    tree = ast.parse(block.text)
    ast.increment_lineno(tree, block.line)
    code = compile(tree, str(page), "exec")
    if not block.only_parsed:
        with torch.random.fork_rng(devices=[]):  # a reader's own loader may draw from it
            exec(code, space)


def run_console(block: Block) -> None:
    """Run every command; lines without ``$`` are output where others have one."""
    lines = block.text.replace("\\\n", " ").splitlines()
    if any(line.startswith("$ ") for line in lines):
        lines = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
    for line in lines:
        # A pipe or a redirection ends the part that is ours.
        words = shlex.split(line.split(" | ")[0].split(" > ")[0], comments=True)
        if words:
            run_command(*words, only_parsed=block.only_parsed)


def run_command(program: str, *words: str, only_parsed: bool) -> None:
    """Run a command of ours; of other programs, check that what they name exists."""
    if program == "torchrun":
        program, *rest = words[words.index("iterant") :]
        words = tuple(rest)
    if program == "make":
        targets = re.findall(r"^([a-z-]+):", (REPOSITORY / "Makefile").read_text(), re.MULTILINE)
        assert set(words) <= set(targets)
    elif program == "python" or program.startswith("scripts/"):
        assert (REPOSITORY / (words[0] if program == "python" else program)).is_file()
    elif program == "iterant":
        app.parse_args(list(words), print_error=False, exit_on_error=False)
        if words[0] in SMALL and not only_parsed:
            tiny = smaller_command(list(words))
            if "--out" in tiny:
                shutil.rmtree(tiny[tiny.index("--out") + 1], ignore_errors=True)
            write_problems(tiny)
            with pytest.raises(SystemExit) as end:
                run(tiny)
            assert end.value.code == 0, tiny
    else:
        assert program in ("pip", "git", "cd"), f"{program} is not checked"


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("page", WITH_CODE, ids=name_of)
def test_every_block_runs(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    space: dict[str, Any] = {"__name__": "page"}
    modules = set(sys.modules)
    for block in blocks(page):
        for mark in block.marks:
            if mark.startswith("needs "):
                _, path, task = mark.split()
                if not Path(path).exists():
                    iterant.train(task, out=path)
        if block.language == "python":
            run_python(block, page, space)
        elif block.language == "console":
            run_console(block)
    for name in set(sys.modules) - modules:  # modules that only this page imports
        if not name.startswith("iterant"):
            monkeypatch.delitem(sys.modules, name)


def test_the_readme_names_only_files_that_are_there() -> None:
    page = REPOSITORY / "README.md"
    commands = "".join(block.text for block in blocks(page) if block.language == "console")
    words = [shlex.split(line, comments=True) for line in commands.splitlines()]
    named = [w for line in words for _, w in pairwise(line) if re.search(r"\w\.[a-z]{2,4}$", w)]
    assert named
    assert [word for word in named if not (REPOSITORY / word).is_file()] == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_languages_and_marks_are_known(page: Path) -> None:
    """A misspelt one would leave a block untested."""
    for block in blocks(page):
        assert block.language in LANGUAGES, block.line
        assert all(m.startswith(("parse only (", "needs ")) for m in block.marks), block.line
