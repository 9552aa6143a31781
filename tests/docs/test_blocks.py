"""Every code block of the README and of docs/ runs, on small settings."""

from __future__ import annotations

import ast
import re
import shutil
import sys
import textwrap
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import markdown_blocks as md
import pytest
import torch

import iterant
from iterant import draw
from iterant.cli.main import app, run

REPOSITORY = Path(__file__).resolve().parents[2]
PAGES = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").rglob("*.md"))]
TRIED = {"python", "console"}
WITH_CODE = [page for page in PAGES if {md.language_of(b) for b in md.blocks(page)} & TRIED]

TINY: dict[str, Any] = {"epochs": 1, "count": 60, "width": 8, "batch": 10, "warmup": 0,
                        "iterations": 6, "pool_slots": 20, "pool_shortest": 2,
                        "watch_every": 0, "device": "cpu"}  # fmt: skip


def name_of(page: Path) -> str:
    """Its path in the repository."""
    return str(page.relative_to(REPOSITORY))


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty folder to work in, and public functions that take no time."""
    train, evaluate, solve, analyze = (
        iterant.train,
        iterant.evaluate,
        iterant.solve,
        iterant.analyze,
    )

    def small_train(*given: Any, **how: Any) -> Any:
        make_room(how.get("out"))
        # A network of the reader's own has a width of its own.
        tiny = {word: value for word, value in TINY.items() if word != "width" or "net" not in how}
        return train(*given, **(how if "resume" in how else {**how, **tiny}))

    def small_analyze(*given: Any, **how: Any) -> Any:
        return analyze(*given, **{**how, "count": 2, "max_steps": 56})

    def small_evaluate(*given: Any, **how: Any) -> Any:
        return evaluate(*given, **{**how, "count": 4, "max_steps": 6})

    def small_solve(*given: Any, **how: Any) -> Any:
        return solve(*given, **{**how, "max_steps": 6})

    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(REPOSITORY / "examples"))
    monkeypatch.setattr(iterant, "train", small_train)
    monkeypatch.setattr(iterant, "evaluate", small_evaluate)
    monkeypatch.setattr(iterant, "solve", small_solve)
    monkeypatch.setattr(iterant, "analyze", small_analyze)


def make_room(out: Any) -> None:
    """A page may show the same run twice, as a command and in Python."""
    if out is not None:
        shutil.rmtree(out, ignore_errors=True)


def provide(path: str, task: str) -> None:
    """A tiny run at a path that a page speaks of."""
    if not Path(path).exists():
        iterant.train(task, out=path)


def provide_problems(words: list[str]) -> None:
    """Mazes and positions in the files that a page speaks of, as a reader would have them."""
    task = iterant.task("mazes")
    maze = task.sample(1, size=9, seed=1)
    asked = replace(maze, targets=torch.full_like(maze.targets, -1))  # without the answer
    for before, word in pairwise(words):
        if word.endswith(".png") and not before.startswith("--") and not Path(word).exists():
            draw.save_png(task.describe(asked), word)
        if word.endswith(".epd"):
            Path(word).write_text("6k1/5ppp/8/8/8/8/8/K2R4 w - - bm Rd8#; id 1;\n", "utf-8")


def try_python(block: md.Block, page: Path, space: dict[str, Any]) -> None:
    """Execute it, with line numbers of the page."""
    tree = ast.parse(block.text)
    ast.increment_lineno(tree, block.line)
    code = compile(tree, str(page), "exec")
    if not block.only_parsed:
        with torch.random.fork_rng(devices=[]):  # a reader's own loader may draw from it
            exec(code, space)


def try_command(words: list[str], *, only_parsed: bool) -> None:
    """Run a command of ours; of others, look whether what they name is there."""
    program, *rest = words
    if program == "torchrun":
        program, *rest = rest[rest.index("iterant") :]
    if program == "make":
        targets = re.findall(r"^([a-z-]+):", (REPOSITORY / "Makefile").read_text(), re.MULTILINE)
        assert set(rest) <= set(targets)
    elif program == "python" or program.startswith("scripts/"):
        assert (REPOSITORY / (rest[0] if program == "python" else program)).is_file()
    elif program == "iterant":
        tiny = md.smaller(rest)
        app.parse_args(rest, print_error=False, exit_on_error=False)
        if tiny is not None and not only_parsed:
            make_room(tiny[tiny.index("--out") + 1] if "--out" in tiny else None)
            provide_problems(tiny)
            with pytest.raises(SystemExit) as ended:
                run(tiny)
            assert ended.value.code == 0, " ".join(["iterant", *tiny])
    else:
        assert program in ("pip", "git", "cd"), f"who tries {program}?"


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("page", WITH_CODE, ids=name_of)
def test_every_block_runs(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    space: dict[str, Any] = {"__name__": "page"}
    modules = set(sys.modules)
    for block in md.blocks(page):
        for path, task in block.needs:
            provide(path, task)
        if md.language_of(block) == "python":
            try_python(block, page, space)
        elif md.language_of(block) == "console":
            for words in md.commands(block):
                try_command(words, only_parsed=block.only_parsed)
    for name in set(sys.modules) - modules:  # what a page imported is its own
        if not name.startswith("iterant"):
            monkeypatch.delitem(sys.modules, name)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_block_says_what_it_holds(page: Path) -> None:
    """Nothing is left untried because of a misspelt language or mark."""
    for block in md.blocks(page):
        language = md.language_of(block)
        assert language in md.KNOWN | {"directive"}, f"line {block.line}: {language}?"
        for mark in block.marks:
            fine = mark.startswith(("parse only (", "needs "))
            assert fine, f"line {block.line}: what is {mark!r}?"


def test_blocks_marks_and_commands_are_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        textwrap.dedent(
            """\
            <!-- test: needs runs/a mazes -->
            ```console
            $ iterant evaluate runs/a --size 9 \\
                  --count 1000 | less     # long
            9: 100 %
            $ make test
            ```
            <!-- test: parse only (a reason) -->

            words between
            ```python
            x = 1
            ```
            ```
            iterant info
            ```
            """
        )
    )
    first, second, third = md.blocks(page)
    assert first.needs == [("runs/a", "mazes")]
    assert list(md.commands(first)) == [
        ["iterant", "evaluate", "runs/a", "--size", "9", "--count", "1000"],
        ["make", "test"],
    ]
    assert not second.only_parsed
    assert [md.language_of(block) for block in (second, third)] == ["python", "console"]
    assert md.smaller(["evaluate", "runs/a", "--count", "1000", "--size", "9"]) == [
        "evaluate", "runs/a", "--size", "9", "--count", "4", "--max-steps", "6",
    ]  # fmt: skip
    assert md.smaller(["demo"]) is None


@pytest.mark.usefixtures("small")
def test_a_block_that_is_wrong_fails(tmp_path: Path) -> None:
    with pytest.raises(NameError):
        try_python(md.Block("python", "nobody", 1), tmp_path, {})
    with pytest.raises(SyntaxError):
        try_python(md.Block("python", "1 +", 1, ("parse only (why)",)), tmp_path, {})
    with pytest.raises(Exception, match="--sise"):
        try_command(["iterant", "sample", "mazes", "--sise", "9"], only_parsed=True)
    with pytest.raises(AssertionError):
        try_command(["make", "tea"], only_parsed=False)
