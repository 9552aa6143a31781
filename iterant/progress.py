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
_WARM_UP_SECONDS, _ESTIMATE_SECONDS = 1.0, 1.0
"""Time that is not measured for an estimate, because work begins slowly; and time that is."""
_ESTIMATE_SHARE, _ANYWAY_SECONDS = 0.02, 30.0
"""Share of the work that must be measured for an estimate, or time after which there is one."""


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


def progress_lines() -> Callable[..., None]:
    """A function that writes a line of progress to the error stream, at most every five seconds.

    The first comes after two seconds, or ``now``. The text is a function, called only when a line
    is due.
    """
    due = monotonic() + _FIRST_LINE_SECONDS

    def write(text: Callable[[], str], *, now: bool = False) -> None:
        nonlocal due
        if now or monotonic() >= due:
            if os.environ.get("RANK", "0") == "0":
                warn(text())
            due = monotonic() + LINE_SECONDS

    return write


class ProgressLines:
    """Lines such as "evaluating: 40 % done, about 20 s to go" on the error stream."""

    def __init__(self) -> None:
        self._write = progress_lines()
        self._begin: float | None = None
        """When the first work was done"""
        self._start: tuple[float, float] | None = None
        """When measuring began, and which share was done then"""
        self._is_estimated = False

    def estimate(self, text: str, done: float) -> None:
        """A line if one is due; ``done`` is the share of the work."""
        now, first, to_go = monotonic(), False, ""
        if self._begin is None:  # what comes before the first call is done once
            self._begin = now
        elif self._start is None:
            self._start = (now, done) if now - self._begin >= _WARM_UP_SECONDS else None
        elif self._start[1] < done < 1:
            elapsed, measured = now - self._start[0], done - self._start[1]
            if elapsed >= (_ESTIMATE_SECONDS if measured >= _ESTIMATE_SHARE else _ANYWAY_SECONDS):
                left = elapsed * (1 - done) / measured
                first = left > LINE_SECONDS and not self._is_estimated
                self._is_estimated |= first
                # Problems that settle leave the batch, so the first estimates are too high.
                to_go = f", {'at most ' if first else ''}about {duration(left)} to go"
        if done < 1:
            self._write(lambda: f"{text}: {100 * done:.0f} % done{to_go}", now=first)

    def clear(self) -> None:
        """Nothing: lines stay."""


def default_display() -> NotebookLine | ProgressLines:
    """Where Python shows the progress of long work."""
    return NotebookLine() if in_notebook() else ProgressLines()
