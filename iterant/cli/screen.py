"""Where commands print: a terminal as it is, a file or a pipe without colours or broken lines."""

from __future__ import annotations

import sys

from rich.console import Console

_PIPE_COLUMNS = 200


def console() -> Console:
    """The console on standard output; made anew, so that it sees a redirected stream."""
    width = None if sys.stdout.isatty() else _PIPE_COLUMNS
    return Console(file=sys.stdout, width=width, highlight=False, markup=False, emoji=False)
