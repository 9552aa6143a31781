"""How commands print: lines, tables, and the iterations on a problem.

>>> print_table(["size", "accuracy"], ["9", "100.0 %"], ["59", "99.2 %"], right=True)
"""

from __future__ import annotations

import contextlib
import math
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, TextIO, cast

from rich.console import Console, ConsoleOptions, RenderableType
from rich.live import Live
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from iterant.formatting import printable
from iterant.progress import progress_lines, warn

if TYPE_CHECKING:
    from iterant.solving import Film, Frame, Viewer
    from iterant.tasks.protocol import Problem, Task

_PICTURE_SECONDS = 1 / 8
"""Least time between two pictures of a problem that is being solved."""
_LINES_BESIDE, _FEWEST_LINES = 4, 6
"""Terminal lines for text beside such a picture; its least height."""


class _Console(Console):
    """A console that prints no control characters but its own."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterator[Segment]:
        for segment in super().render(renderable, options):
            if segment.control is None:
                yield Segment(printable(segment.text), segment.style)
            else:
                yield segment

    def on_broken_pipe(self) -> None:
        """Raise the error again, for the exit code of a closed pipe; rich would exit with 1."""
        raise  # rich calls this while it handles the BrokenPipeError


def console() -> Console:
    """A console on the current standard output; a pipe gets wide lines and no colours.

    Of several processes of torchrun, the one of rank 0 prints.
    """
    return _Console(
        file=sys.stdout,
        width=None if sys.stdout.isatty() else 200,
        quiet=os.environ.get("RANK", "0") != "0",
        highlight=False,
        markup=False,
        emoji=False,
    )


def echo(text: str = "", style: str | None = None) -> None:
    """Print one line without wrapping it."""
    console().print(printable(text, one_line=True), style=style, soft_wrap=True)


class _Output:
    """A stream that may fail: from the first error on, all output is discarded."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        """Encoding, isatty and the like are those of the stream."""
        return getattr(self._stream, name)

    def write(self, text: str) -> None:
        self._attempt(self._stream.write, text)

    def flush(self) -> None:
        self._attempt(self._stream.flush)

    def _attempt(self, action: Callable[..., object], *arguments: str) -> None:
        try:
            action(*arguments)
        except OSError as error:
            discard_output(self._stream)
            warn(f"iterant: standard output failed ({error.strerror}); going on without it")


def output_may_fail() -> contextlib.AbstractContextManager[object]:
    """Let long work end as usual when standard output fails: a closed pipe, a full disk.

    >>> with output_may_fail():
    ...     train("mazes", out="runs/m0", reporter=reporter)
    """
    return contextlib.redirect_stdout(cast("TextIO", _Output(sys.stdout)))


def discard_output(stream: TextIO) -> None:
    """Discard what is written to a stream that failed, also when Python flushes it at the exit."""
    with contextlib.suppress(OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno())
        os.close(null)


def print_table(head: Sequence[str] | None, *rows: Sequence[str], right: bool = False) -> None:
    """Print a table without lines; ``right``: all columns but the first are aligned right."""
    table = Table(box=None, show_header=head is not None, padding=(0, 1) if head else (0, 2, 0, 0))
    for index, name in enumerate(head or [""] * len(rows[0])):
        table.add_column(name, justify="right" if right and index else "left", overflow="fold")
    for row in rows:
        table.add_row(*(printable(cell, one_line=True) for cell in row))
    console().print(table)


def print_rows(rows: Sequence[Mapping[str, str]], *, right: bool = False) -> None:
    """Print a table of these columns without the empty ones; the first column always stays."""
    columns = dict.fromkeys(name for row in rows for name in row)
    first = next(iter(columns))
    head = [name for name in columns if name == first or any(row.get(name) for row in rows)]
    print_table(head, *([row.get(name, "") for name in head] for row in rows), right=right)


@contextlib.contextmanager
def iteration_display(
    task: Task, screen: Console, *, live: bool, pace: float | None = None
) -> Iterator[Viewer | None]:
    """A viewer that draws the iterations on one problem, a few times a second.

    Without a terminal, or on one without colours, a line every few seconds (`progress_lines`); None
    without ``live``. ``pace``: most iterations per second.
    """
    from iterant.draw.animation import describe_iteration
    from iterant.draw.terminal import has_colours, terminal

    def status(frame: Frame, film: Film) -> str:
        since = film.changes()[-1].step
        return f"iteration {frame.step:,}, answer unchanged since iteration {since:,}"

    if not live:
        yield None
        return
    if not (screen.is_terminal and has_colours(screen)):
        write = progress_lines()
        yield lambda problem, frame, film: write(lambda: f"solving: {status(frame, film)}")
        return
    start, last = monotonic(), -math.inf

    def view(problem: Problem, frame: Frame, film: Film) -> None:
        nonlocal last
        if pace is not None:
            sleep(max(0.0, start + frame.step / pace - monotonic()))
        if monotonic() - last < _PICTURE_SECONDS:
            return
        lines = screen.height - _LINES_BESIDE
        text = Text(status(frame, film), no_wrap=True, overflow="ellipsis")
        if lines >= _FEWEST_LINES:
            description = replace(describe_iteration(task, problem, frame), caption="")
            text = Text("\n").join([terminal(description, screen, lines=lines), text])
        display.update(text, refresh=True)
        # From the end of drawing: a slow terminal gets fewer pictures and does not slow us down.
        last = monotonic()

    with Live(console=screen, auto_refresh=False, transient=True) as display:
        yield view
