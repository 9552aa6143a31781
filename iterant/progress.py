"""Progress of long work, as lines on the error stream.

>>> show = progress_estimates("evaluating")
>>> show(30, 100)
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Callable
from time import monotonic

from iterant.formatting import duration, printable

_FIRST_LINE_SECONDS, LINE_SECONDS = 2.0, 5.0
"""Time until the first line of progress, and between two lines."""


def warn(text: str) -> None:
    """Write one line to the error stream; a closed or missing stream is ignored."""
    text = re.sub(r"(\S{300})\S+", r"\1…", text)  # a number or a name of thousands of characters
    # Flush the output first, so that the two streams appear in order.
    for stream, line in ((sys.stdout, ""), (sys.stderr, f"{printable(' '.join(text.split()))}\n")):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.write(line)
            stream.flush()


def progress_lines() -> Callable[[Callable[[], str]], None]:
    """A function that writes a line of progress, at most every five seconds.

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


def progress_estimates(what: str = "") -> Callable[..., None]:
    """A function that writes lines such as "evaluating: 40 % done, about 20 s to go".

    It is called with the work done and the total, and a third argument in place of ``what``.
    """
    write = progress_lines()
    start: tuple[float, float] | None = None
    """When measuring began, and which share was done then"""

    def show(done: float, total: float, what: str = what) -> None:
        nonlocal start
        now, share, to_go = monotonic(), done / total, ""
        start = start or (now, share)  # what comes before the first call is done once
        begin, before = start
        if share > before:
            to_go = f", about {duration((now - begin) * (1 - share) / (share - before))} to go"
        if share < 1:
            write(lambda: f"{what}: {100 * share:.0f} % done{to_go}")

    return show
