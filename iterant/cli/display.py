"""The display of training runs.

    >>> with display(console()) as shown:
    ...     train("mazes", out="runs/m0", reporter=shown.of(seed=0))

On a terminal it is redrawn; elsewhere it is a line every five seconds. Accuracy is that of
validation after m iterations; figures after more iterations and on larger problems are marked as
monitoring, because no checkpoint is chosen by them.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from pathlib import Path
from time import monotonic

from rich.console import Console, ConsoleOptions, RenderResult
from rich.segment import Segment
from rich.text import Text

from iterant.formatting import duration, percent
from iterant.training.logging import Progress, Reporter

_LINE_SECONDS = 5.0


class RunReporter(Reporter):
    """The reporter of one run."""

    def __init__(self, display: Display, prefix: str) -> None:
        """``prefix`` names the run in its lines."""
        self.display, self.prefix = display, prefix
        self.report: Progress | None = None
        self.ended = ""

    def begin(self, title: str, folder: Path, report: Progress) -> None:
        """The run starts or resumes."""
        self.report = report
        self.display.print(f"{title}, kept in {folder}")

    def show(self, report: Progress) -> None:
        """There is new progress."""
        self.report = report
        if self.display.due():
            self.note(", ".join(self.lines()))

    def note(self, text: str) -> None:
        """A remark for the user, one line."""
        self.display.print(f"{self.prefix}{text}")

    def end(self, text: str) -> None:
        """The run has ended."""
        self.ended = text
        if not self.display.live and self.report is not None:
            self.note(", ".join(self.lines()))

    def lines(self) -> list[str]:
        """Position, loss and speed; accuracy; monitoring. Empty before the run begins."""
        report = self.report
        if report is None:
            return []
        parts = [
            f"epoch {report.epoch} of {report.epochs}",
            f"update {report.update:,} of {report.updates:,}",
        ]
        if math.isfinite(report.loss):
            parts.append(f"loss {report.loss:.4g}")
        if self.ended.startswith("failed"):
            parts = ["failed"]
        if report.updates_per_second > 0:
            parts.append(f"{report.updates_per_second:.1f} steps/s")
            if not self.ended:
                parts.append(f"{duration(report.seconds_left)} left")
        lines = [", ".join(parts)]
        if "validation" in report.figures:
            lines.append(f"accuracy {percent(report.figures['validation'])} at m")
        monitored = [
            f"{name} {value:.0e}" if name.endswith("change") else f"{name} {percent(value)}"
            for name, value in report.figures.items()
            if name in report.monitoring
        ]
        return [*lines, f"monitoring: {', '.join(monitored)}"] if monitored else lines


class Display:
    """Progress of training runs; ``many``: of several seeds."""

    def __init__(self, screen: Console, *, many: bool = False) -> None:
        """Print to that console."""
        self.screen, self.many = screen, many
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
        if self.live or monotonic() - self._last < _LINE_SECONDS:
            return False
        self._last = monotonic()
        return True

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """A line for each of several runs; a bar and a few lines for one."""
        from rich.progress_bar import ProgressBar

        for run in self.runs.values():
            lines = run.lines()
            if self.many and lines:
                lines = [", ".join(lines)]
            elif run.report is not None:
                yield ProgressBar(run.report.updates, run.report.update, width=60)
                yield Segment.line()
            for line in lines:
                yield Text(f"{run.prefix}{line}", no_wrap=True, overflow="ellipsis")


@contextlib.contextmanager
def display(screen: Console, *, many: bool = False) -> Iterator[Display]:
    """The display of runs, redrawn four times a second on a terminal; ``many``: several seeds."""
    from rich.live import Live

    shown = Display(screen, many=many)
    if not shown.live:
        yield shown
        return
    with Live(shown, console=screen, refresh_per_second=4):
        yield shown
