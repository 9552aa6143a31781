"""What tests of commands share."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from iterant.cli.main import run


@pytest.fixture
def command(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[object, str, str]]:
    """Run a command line in an empty folder: its exit code, output and errors."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    # On a slow machine, no lines of progress among the errors.
    monkeypatch.setattr("iterant.progress._FIRST_LINE_SECONDS", 1e6)

    def call(*words: object) -> tuple[object, str, str]:
        with pytest.raises(SystemExit) as end:
            run(list(map(str, words)))
        output, errors = capsys.readouterr()
        return end.value.code, output, errors

    return call


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal_command(monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Run a command line on a terminal with colours of that size: what it shows."""
    for name in ("NO_COLOR", "COLORTERM", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)

    def call(*words: str, columns: int = 100, lines: int = 40, term: str = "xterm-256color") -> str:
        screen = Terminal()
        monkeypatch.setattr(sys, "stdout", screen)
        for name, value in (("TERM", term), ("COLUMNS", columns), ("LINES", lines)):
            monkeypatch.setenv(name, str(value))
        with pytest.raises(SystemExit):
            run(words)
        return screen.getvalue()

    return call
