"""A screen for tests of the command line."""

from __future__ import annotations

import pytest
from rich.console import Console, ConsoleDimensions


@pytest.fixture
def wide_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    """200 columns, whatever console a command has made before: nothing is folded."""
    monkeypatch.setattr(Console, "size", property(lambda _: ConsoleDimensions(200, 50)))
