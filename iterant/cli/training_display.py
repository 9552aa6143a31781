"""The display of a training run.

    >>> with display(console()) as reporter:
    ...     train("mazes", out="runs/m0", reporter=reporter)

On a terminal it is redrawn; elsewhere it is a line every five seconds. Accuracy is that of
validation after m iterations; figures after more iterations and on larger problems are marked as
monitoring, because they do not choose the checkpoint unless the recipe says so.
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


class Display(Reporter):
    """Shows the progress of a run on a console."""

    def __init__(self, screen: Console) -> None:
        """Print to that console."""
        self.screen = screen
        self.live = screen.is_terminal and not screen.is_dumb_terminal
        self.progress: Progress | None = None
        self.ended = ""
        """How the run ended; empty while it runs"""
        self.printed = -math.inf
        """When the last line was printed"""

    def begin(self, title: str, folder: Path, progress: Progress) -> None:
        """The run starts or resumes."""
        self.progress = progress
        self.note(f"{title}, kept in {folder}")

    def show(self, progress: Progress) -> None:
        """There is new progress."""
        self.progress = progress
        if not self.live and monotonic() - self.printed >= _LINE_SECONDS:
            self.printed = monotonic()
            self.note(", ".join(self._lines(progress)))

    def note(self, text: str) -> None:
        """Print one line, above what is redrawn."""
        self.screen.print(text, soft_wrap=True)

    def end(self, text: str) -> None:
        """The run has ended."""
        self.ended = text
        if not self.live and self.progress is not None:
            self.note(", ".join(self._lines(self.progress)))

    def _lines(self, progress: Progress) -> list[str]:
        """Position, loss and speed; accuracy; monitoring."""
        parts = [
            f"epoch {progress.epoch} of {progress.epochs}",
            f"update {progress.step:,} of {progress.steps:,}",
        ]
        if math.isfinite(progress.loss):
            parts.append(f"loss {progress.loss:.4g}")
        if progress.steps_per_second > 0:
            parts.append(f"{progress.steps_per_second:.1f} steps/s")
            if not self.ended:
                parts.append(f"{duration(progress.seconds_left)} left")
        lines = [", ".join(parts)]
        if "validation" in progress.figures:
            lines.append(f"accuracy {percent(progress.figures['validation'])} at m")
        monitored = [
            f"{name} {value:.0e}" if name.endswith("change") else f"{name} {percent(value)}"
            for name, value in progress.figures.items()
            if name != "validation"
        ]
        return [*lines, f"monitoring: {', '.join(monitored)}"] if monitored else lines

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """A bar and a few lines."""
        from rich.progress_bar import ProgressBar

        if self.progress is not None:
            yield ProgressBar(self.progress.steps, self.progress.step, width=60)
            yield Segment.line()
            for line in self._lines(self.progress):
                yield Text(line, no_wrap=True, overflow="ellipsis")


@contextlib.contextmanager
def display(screen: Console) -> Iterator[Reporter]:
    """A reporter whose display is redrawn four times a second on a terminal."""
    from rich.live import Live

    reporter = Display(screen)
    if not reporter.live:
        yield reporter
        return
    with Live(reporter, console=screen, refresh_per_second=4):
        yield reporter
