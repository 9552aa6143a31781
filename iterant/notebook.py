"""Progress in a notebook: one line below the cell, redrawn a few times a second.

>>> if in_notebook():
...     NotebookLine().show("evaluating", done=0.3)
"""

from __future__ import annotations

import html
import importlib
import sys
import time
from typing import Any

from iterant.formatting import duration

_SECONDS = 0.25
"""Between two pictures of a line."""


def in_notebook() -> bool:
    """Whether this is a cell of a notebook; a terminal with IPython is none."""
    ipython = sys.modules.get("IPython")
    return hasattr(ipython.get_ipython() if ipython is not None else None, "kernel")


class NotebookLine:
    """A bar and a text below the present cell."""

    def __init__(self) -> None:
        self._start, self._last = time.monotonic(), -_SECONDS
        self._handle: Any = None

    def show(self, text: str, done: float, *, at_once: bool = False) -> None:
        """Redraw it, unless that was done just now; ``done`` is the share of the work."""
        now = time.monotonic()
        if now - self._last >= _SECONDS or at_once:
            self._last = now
            bar = f'<progress value="{done:.3f}"></progress> {html.escape(text)}'
            self._draw({"text/plain": text, "text/html": bar})

    def estimate(self, text: str, done: float) -> None:
        """As `show`, with the time left if all work is as fast as that done so far."""
        elapsed = time.monotonic() - self._start
        left = f", {duration(elapsed * (1 - done) / done)} left" if done > 0 else ""
        self.show(f"{text}{left}", done)

    def clear(self) -> None:
        """Remove it."""
        if self._handle is not None:
            self._draw({"text/plain": "", "text/html": ""})

    def _draw(self, content: dict[str, str]) -> None:
        if self._handle is None:
            display = importlib.import_module("IPython.display").display
            self._handle = display(content, raw=True, display_id=True)
        else:
            self._handle.update(content, raw=True)
