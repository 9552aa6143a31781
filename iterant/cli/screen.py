"""Output of the commands: lines, tables, progress bars and the display of training runs.

    >>> with display(console()) as shown:
    ...     train("mazes", out="runs/m0", reporter=shown.of(seed=0))

On a terminal the display is redrawn; elsewhere it is a line every five seconds. Accuracy is that of
validation after m iterations; figures after more iterations and on larger problems are marked as
monitoring, because no checkpoint is chosen by them.
"""

from __future__ import annotations

import contextlib
import math
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console, ConsoleOptions, RenderResult
from rich.segment import Segment
from rich.text import Text

from iterant.formatting import duration, percent
from iterant.training.logging import Progress, Reporter

_PIPE_COLUMNS = 200
_LINE_SECONDS = 5.0


def console() -> Console:
    """A console on the current standard output; a pipe gets wide lines and no colours.

    Of several processes of torchrun, the one of rank 0 prints.
    """
    width = None if sys.stdout.isatty() else _PIPE_COLUMNS
    quiet = os.environ.get("RANK", "0") != "0"
    return Console(
        file=sys.stdout, width=width, quiet=quiet, highlight=False, markup=False, emoji=False
    )


def echo(text: str = "", style: str | None = None) -> None:
    """Print one line; only the terminal breaks it."""
    console().print(text, style=style, soft_wrap=True)


def warn(text: str) -> None:
    """Write one line to the error stream; a closed stream is ignored."""
    for stream, line in ((sys.stdout, ""), (sys.stderr, f"{' '.join(text.split())}\n")):
        with contextlib.suppress(OSError):
            stream.write(line)
            stream.flush()


def print_table(head: Sequence[str] | None, *rows: Sequence[str], right: bool = False) -> None:
    """Print a table without lines; ``right``: all columns but the first are aligned right."""
    from rich.table import Table

    table = Table(box=None, show_header=head is not None, padding=(0, 1) if head else (0, 2, 0, 0))
    for place, name in enumerate(head or [""] * len(rows[0])):
        table.add_column(name, justify="right" if right and place else "left", overflow="fold")
    for row in rows:
        table.add_row(*row)
    console().print(table)


@contextlib.contextmanager
def progress_bar(label: str, *, show: bool = True) -> Iterator[Callable[..., None]]:
    """A bar on a terminal, nothing elsewhere; yields ``update(done, total, label)``."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    screen = console()
    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    hidden = not (show and screen.is_terminal)
    with Progress(*columns, console=screen, transient=True, disable=hidden) as bar:
        turn = bar.add_task(label, total=None)
        yield lambda done, total, label=label: bar.update(
            turn, completed=done, total=total, description=label
        )


@dataclass
class RunReporter(Reporter):
    """The reporter of one run."""

    display: Display
    prefix: str
    report: Progress | None = None
    reported_at: float = 0.0
    printed: list[str] = field(default_factory=list)
    """Figures of the last line; they are printed again when they change"""
    ended: str = ""

    def begin(self, title: str, folder: Path, report: Progress) -> None:
        """The run starts or resumes."""
        self.report, self.reported_at = report, self.display.clock()
        self.display.print(f"{title}, kept in {folder}")

    def show(self, report: Progress) -> None:
        """There is new progress."""
        self.report, self.reported_at = report, self.display.clock()
        if self.display.due():
            self._print_line(report)

    def note(self, text: str) -> None:
        """A remark for the user, one line."""
        self.display.print(f"{self.prefix}{text}")

    def end(self, text: str) -> None:
        """The run has ended."""
        self.ended = text
        if self.report is not None and not self.display.live:
            self._print_line(self.report)

    def _print_line(self, report: Progress) -> None:
        position, figures, speed = self.status(report)
        shown = figures if figures != self.printed or self.ended else []
        self.printed = figures
        self.note(", ".join([*position, *shown, *speed]))

    def status(self, report: Progress) -> tuple[list[str], list[str], list[str]]:
        """Position and loss, measured figures, speed and time left."""
        position = [
            f"epoch {report.epoch} of {report.epochs}",
            f"update {report.update:,} of {report.updates:,}",
            *([f"loss {report.loss:.4g}"] if math.isfinite(report.loss) else []),
        ]
        if self.ended.startswith("failed"):
            position = ["failed"]
        figures, sizes = [], dict[str, list[str]]()
        for name, value in report.figures.items():
            size, _, what = name.partition(" ")
            text = f"change {value:.0e}" if what == "change" else f"{percent(value)} {what}"
            if name in report.monitoring:
                sizes.setdefault(size, []).append(text)
            elif name == "validation":
                figures = [f"accuracy {percent(value)} at m"]
        if sizes:
            texts = (f"{size}: {', '.join(parts)}" for size, parts in sizes.items())
            figures.append(f"monitoring {'; '.join(texts)}")
        rate, speed = report.updates_per_second, []
        if rate > 0:
            left = report.seconds_left - (self.display.clock() - self.reported_at)
            speed = [f"{rate:.{1 if rate < 100 else 0}f} steps/s"]
            speed += [] if self.ended else [f"{duration(max(0.0, left))} left"]
        return position, figures, speed


class Display:
    """Progress of training runs; ``many``: of several seeds."""

    def __init__(
        self, screen: Console, *, many: bool = False, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Print to that console; ``clock`` gives the time in seconds."""
        self.screen, self.many, self.clock = screen, many, clock
        self.live = screen.is_terminal and not screen.is_dumb_terminal
        self.runs: dict[int, RunReporter] = {}
        self._last = -math.inf

    def of(self, seed: int) -> Reporter:
        """The reporter for a seed's run."""
        self.runs[seed] = RunReporter(self, f"seed {seed}: " if self.many else "")
        return self.runs[seed]

    def print(self, text: str) -> None:
        """Print one line, above what is redrawn."""
        self.screen.print(text, soft_wrap=True)

    def due(self) -> bool:
        """Whether it is time for another line."""
        if self.live or self.clock() - self._last < _LINE_SECONDS:
            return False
        self._last = self.clock()
        return True

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """A line for each of several runs; a bar and a few lines for one."""
        from rich.progress_bar import ProgressBar

        for run in self.runs.values():
            if run.report is None:
                continue
            position, figures, speed = run.status(run.report)
            lines = [", ".join([*position, *speed]), *figures]
            if self.many:
                lines = [", ".join(lines)]
            else:
                yield ProgressBar(run.report.updates, run.report.update, width=60)
                yield Segment.line()
            for line in lines:
                yield Text(f"{run.prefix}{line}", no_wrap=True, overflow="ellipsis")


@contextlib.contextmanager
def display(screen: Console, *, many: bool = False) -> Iterator[Display]:
    """The display of runs, redrawn four times a second on a terminal; ``many``: several seeds."""
    from rich.live import Live

    shown = Display(screen, many=many)
    with Live(shown, console=screen, refresh_per_second=4) if shown.live else (
            contextlib.nullcontext()):  # fmt: skip
        yield shown
