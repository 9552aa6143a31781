"""What a person sees while a network thinks: one picture that redraws, or plain lines.

    >>> with watching(task, console(), wanted=True) as spectator:
    ...     list(solutions(net, task, problems, spectator=spectator))

The picture is drawn a few times a second, however fast the iterations are, and fits the terminal:
what is larger is made smaller. Where there is no terminal, or none with colours, a line now and
then says how far it is.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from rich.console import Console
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

from iterant.draw.terminal import has_colours, terminal
from iterant.draw.thinking import at_work
from iterant.solving.film import Film, Frame
from iterant.solving.solutions import Spectator
from iterant.tasks.protocol import Task
from iterant.tasks.reading import Problem

PICTURES = 8
"""A second."""
PAUSE = 3.0
"""Seconds between two plain lines."""
_AROUND = 4
"""Lines of the terminal that the picture leaves free: title, status, cursor."""
_LOWEST = 6
"""Lines: a picture in fewer shows nothing."""


class Plain:
    """A line now and then; a spectator."""

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        """Print there; ``clock`` tells the time in seconds."""
        self.console, self.clock = console, clock
        self.last = clock()

    def __call__(self, problem: Problem, frame: Frame, film: Film) -> None:
        """Say how far it is, if there was a pause."""
        if self.clock() - self.last >= PAUSE:
            self.last = self.clock()
            self.console.print(status(frame, film), soft_wrap=True)


class Moving:
    """One picture that is drawn anew; a spectator."""

    def __init__(
        self,
        task: Task,
        live: Live,
        pace: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Draw there; ``pace``: iterations a second at most; ``clock`` tells the time."""
        self.task, self.live, self.pace, self.clock = task, live, pace, clock
        self.began, self.last = clock(), -1.0

    def __call__(self, problem: Problem, frame: Frame, film: Film) -> None:
        """Draw the answer as it stands, unless it was drawn a moment ago."""
        if self.pace is not None:
            time.sleep(max(0.0, self.began + frame.step / self.pace - self.clock()))
        if self.clock() - self.last < 1 / PICTURES:
            return
        self.live.update(self.drawn(problem, frame, film), refresh=True)
        # Counted from the end of drawing: a slow terminal gets fewer pictures, not all the time.
        self.last = self.clock()

    def drawn(self, problem: Problem, frame: Frame, film: Film) -> Text:
        """The picture and a line below it, in what room there is."""
        console = self.live.console
        room = console.height - _AROUND
        said = Text(status(frame, film), no_wrap=True, overflow="ellipsis")
        if room < _LOWEST:
            return said
        described = replace(at_work(self.task, problem, frame), caption="")
        picture = terminal(described, console, lines=room)
        return Text("\n").join([picture, said])


def status(frame: Frame, film: Film) -> str:
    """How far it is: the iteration, how sure, and how long the answer has stood."""
    changes = film.changes()
    since = changes[-1].step if changes else frame.step
    stood = frame.step - since
    held = f"the answer stands since iteration {since}" if stood else "the answer is changing"
    return f"thinking: iteration {frame.step:,}, {held}"


@contextmanager
def watching(
    task: Task, console: Console, *, wanted: bool, pace: float | None = None
) -> Iterator[Spectator | None]:
    """The spectator that suits the terminal; None where nobody wants to watch."""
    if not wanted:
        yield None
    elif not console.is_terminal or console.is_dumb_terminal or not has_colours(console):
        yield Plain(console)
    else:
        with Live(
            console=console, auto_refresh=False, transient=True, vertical_overflow="crop"
        ) as live:
            yield Moving(task, live, pace)


@contextmanager
def counting(console: Console, total: int, *, wanted: bool) -> Iterator[Callable[[], None]]:
    """Something to call for each of many problems; a terminal shows how many are done."""
    if not (wanted and console.is_terminal):
        yield lambda: None
        return
    columns = (TextColumn("thinking:"), MofNCompleteColumn(), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        done = bar.add_task("thinking", total=total)
        yield lambda: bar.advance(done)
