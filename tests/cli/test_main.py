"""The command as a whole: help without heavy imports, user modules, exit codes."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import iterant
from iterant.cli.main import app

COMMAND = [sys.executable, "-m", "iterant"]


@pytest.mark.parametrize(
    "words", ["--help", "--version", "", "train --help", "bench -h", "data chess -h", "smaple"]
)
def test_help_loads_nothing_heavy(words: str) -> None:
    script = (
        "import sys\nfrom iterant.cli.main import run\n"
        f"try:\n    run({words.split()!r})\n"
        "except SystemExit:\n    sys.stderr.write(' '.join(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    loaded = {name.partition(".")[0] for name in done.stderr.split()}
    assert "cyclopts" in loaded
    assert loaded.isdisjoint({"torch", "numpy", "matplotlib", "chess"})


NAMES = [word for word in app if not word.startswith("-")]
NAMES += [f"{name} {word}" for name in NAMES for word in app[name] if not word.startswith("-")]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.usefixtures("wide_screen")
def test_help_begins_with_valid_examples(name: str, command: Any) -> None:
    code, output, _ = command(*name.split(), "--help")
    assert code == 0
    before = output.partition("╭")[0].splitlines()[1:]
    examples = [line for line in before if f"iterant {name}" in line]
    assert examples
    assert max(map(len, examples)) <= 80, "a terminal would break it in two"
    for example in examples:
        words = shlex.split(example[example.index("iterant") :])[1:]
        assert words[: len(name.split())] == name.split()
        app.parse_args(words, print_error=False, exit_on_error=False)


@pytest.mark.usefixtures("wide_screen")
def test_help_joins_lines_and_lists_all_commands(command: Any) -> None:
    assert "[[tests]] of every finished run" in command("sweep", "--help")[1]
    output = command("--help")[1]
    assert all(f"│ {name} " in output for name in app if not name.startswith("-"))
    assert command("--version") == (0, f"{iterant.__version__}\n", "")


def test_user_modules_in_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Any
) -> None:
    """The installed command has no folder of its own on the Python path, as -m has."""
    task = "from iterant.tasks.prefix_sums import PrefixSums as Mine\n"
    (tmp_path / "of_this_folder.py").write_text(task)
    (tmp_path / "json.py").write_text("raise RuntimeError('not this one')\n")
    before = [place for place in sys.path if place]
    monkeypatch.setattr(sys, "path", list(before))
    for _ in range(2):
        code, output, _ = command("sample", "of_this_folder:Mine", "--size", "4")
        assert code == 0
        assert "4 bits" in output
    assert sys.path == [*before, str(tmp_path)]


def test_errors_in_user_code_show_a_traceback(tmp_path: Path, command: Any) -> None:
    (tmp_path / "failing_here.py").write_text(
        "from iterant.tasks.prefix_sums import PrefixSums\n"
        "class Mine(PrefixSums):\n"
        "    def sample(self, *given, **more):\n"
        "        return 1 / 0\n"
    )
    exit_code, _, errors = command("sample", "failing_here:Mine")
    assert exit_code == 1
    assert 'failing_here.py", line 4, in sample' in errors
    assert errors.splitlines()[-1].startswith("iterant: unexpected error")


@pytest.mark.parametrize(
    ("failure", "code", "text"),
    [
        (KeyboardInterrupt(), 130, "iterant: interrupted"),
        (BrokenPipeError(), 141, ""),
        (MemoryError(), 1, "iterant: error: out of memory"),
        (RuntimeError("alloc.cpp: can't allocate memory"), 1, "iterant: error: out of memory"),
        (PermissionError(13, "Permission denied", "a\nfile"), 1, "Permission denied"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else "",
)
def test_failures_of_the_machine_show_no_traceback(
    failure: BaseException, code: int, text: str, monkeypatch: pytest.MonkeyPatch, command: Any
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise failure

    monkeypatch.setattr("iterant.registry.task", fail)
    monkeypatch.setattr("iterant.cli.main.discard_output", lambda _: None)
    exit_code, _, errors = command("sample", "mazes")
    assert exit_code == code
    assert len(errors.strip().splitlines()) == bool(text)
    assert text in errors


def test_a_closed_pipe_is_silent() -> None:
    words = [*COMMAND, "sample", "prefix-sums", "--size", "4000", "--count", "8"]
    done = subprocess.run(
        ["/bin/sh", "-c", f"{shlex.join(words)} | head -n 1"], capture_output=True, check=True
    )
    assert done.stdout
    assert done.stderr == b""


def test_ascii_terminals() -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run([*COMMAND, "--help"], capture_output=True, text=True, env=environment)
    assert (done.returncode, done.stderr) == (0, "")
    assert "sample" in done.stdout
