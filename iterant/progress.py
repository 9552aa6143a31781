"""Progress of long work: a line below the notebook cell, elsewhere lines on the error stream.

>>> display = default_display()
>>> display.estimate("evaluating", done=0.3)
>>> display.clear()
"""

from __future__ import annotations

import contextlib
import html
import importlib
import os
import re
import sys
from collections.abc import Callable
from time import monotonic
from typing import Any

from iterant.formatting import duration, printable

_SECONDS = 0.25
"""Between two redraws of the line in a notebook."""
_FIRST_LINE_SECONDS, LINE_SECONDS = 2.0, 5.0
"""Elsewhere: time until the first line of progress, and between two lines."""


def in_notebook() -> bool:
    """Whether this runs in a notebook; IPython in a terminal does not count."""
    ipython = sys.modules.get("IPython")
    return hasattr(ipython.get_ipython() if ipython is not None else None, "kernel")


class NotebookLine:
    """A progress bar and a text below the current cell."""

    def __init__(self) -> None:
        self._start, self._last = monotonic(), -_SECONDS
        self._handle: Any = None

    def show(self, text: str, done: float, *, at_once: bool = False) -> None:
        """Redraw it, unless that was done just now; ``done`` is the share of the work."""
        now = monotonic()
        if now - self._last >= _SECONDS or at_once:
            self._last = now
            bar = f'<progress value="{done:.3f}"></progress> {html.escape(text)}'
            self._draw({"text/plain": text, "text/html": bar})

    def estimate(self, text: str, done: float) -> None:
        """As `show`, with the time left if all work is as fast as that done so far."""
        elapsed = monotonic() - self._start
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


def warn(text: str) -> None:
    """Write one line to the error stream; a closed or missing stream is ignored."""
    text = re.sub(r"(\S{300})\S+", r"\1…", text)  # a number or a name of thousands of characters
    # Flush the output first, so that the two streams appear in order.
    for stream, line in ((sys.stdout, ""), (sys.stderr, f"{printable(' '.join(text.split()))}\n")):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.write(line)
            stream.flush()


def progress_lines() -> Callable[[Callable[[], str]], None]:
    """A function that writes a line of progress to the error stream, at most every five seconds.

    The first comes after two seconds. The text is a function, called only when a line is due.
    """
    due = monotonic() + _FIRST_LINE_SECONDS

    def write(text: Callable[[], str]) -> None:
        nonlocal due
        if monotonic() >= due:
            if os.environ.get("RANK", "0") == "0":
                warn(text())
            due = monotonic() + LINE_SECONDS

    return write


class ProgressLines:
    """Lines such as "evaluating: 40 % done, about 20 s to go" on the error stream."""

    def __init__(self) -> None:
        self._write = progress_lines()
        self._start: tuple[float, float] | None = None
        """When measuring began, and which share was done then"""

    def estimate(self, text: str, done: float) -> None:
        """A line if one is due; ``done`` is the share of the work."""
        now = monotonic()
        if self._start is None:  # what comes before the first call is done once
            self._start = now, done
        start, before = self._start
        to_go = ""
        if done > before:
            to_go = f", about {duration((now - start) * (1 - done) / (done - before))} to go"
        if done < 1:
            self._write(lambda: f"{text}: {100 * done:.0f} % done{to_go}")

    def clear(self) -> None:
        """Nothing: lines stay."""


def default_display() -> NotebookLine | ProgressLines:
    """Where Python shows the progress of long work."""
    return NotebookLine() if in_notebook() else ProgressLines()
