"""Progress of training on the terminal: one live display, or plain lines where there is none.

    >>> with display(console()) as shown:
    ...     train("mazes", out="runs/m0", reporter=shown.of(seed=0))

Accuracy is that of validation after m iterations; figures after more iterations and on larger
problems are marked as monitoring, because no checkpoint is chosen by them.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.text import Text

from iterant.formatting import duration, percent
from iterant.training.logging import Progress, Reporter

PAUSE = 5.0
"""Seconds between two plain lines."""
_SPARK = 24
_ROOM_FOR_SPARKS = 60
_BARS = "▁▂▃▄▅▆▇█"


@dataclass
class RunReporter:
    """The reporter of one seed's run: keeps what the display shows."""

    display: PlainDisplay
    seed: int
    title: str = ""
    report: Progress | None = None
    reported_at: float = 0.0
    losses: list[float] = field(default_factory=list)
    accuracies: list[float] = field(default_factory=list)
    measured: list[str] = field(default_factory=list)
    """Figures of the last plain line: they are printed again when they change"""
    ended: str = ""

    def begin(self, title: str, folder: Path, report: Progress) -> None:
        """The run starts or resumes."""
        self.title, self.report, self.reported_at = title, report, self.display.clock()
        self.display.begin(self, folder)

    def show(self, report: Progress) -> None:
        """The newest figures."""
        self.report, self.reported_at = report, self.display.clock()
        if "validation" in report.fresh:
            self.accuracies.append(report.figures["validation"])
        if not report.fresh:
            self.losses.append(report.loss)
        self.display.update(self)

    def note(self, text: str) -> None:
        """A line of its own."""
        self.display.print(f"{self.display.prefix(self)}{text}")

    def end(self, text: str) -> None:
        """The run has ended."""
        self.ended = text
        self.display.end(self)


class PlainDisplay:
    """Prints a line at most every five seconds; ``many``: of several seeds."""

    def __init__(
        self, console: Console, clock: Callable[[], float] = time.monotonic, *, many: bool = False
    ) -> None:
        """Print to that console; ``clock`` gives the time in seconds."""
        self.console, self.clock, self.many = console, clock, many
        self.runs: dict[int, RunReporter] = {}
        self._last = -PAUSE

    def of(self, seed: int) -> Reporter:
        """The reporter for a seed's run."""
        self.runs[seed] = RunReporter(self, seed)
        return self.runs[seed]

    def prefix(self, run: RunReporter) -> str:
        """Which run a line is about, if there are several."""
        return f"seed {run.seed}: " if self.many else ""

    def print(self, text: str) -> None:
        """Print one line."""
        self.console.print(text, soft_wrap=True)

    def begin(self, run: RunReporter, folder: Path) -> None:
        """A run starts."""
        self.print(f"{run.title}, kept in {folder}")

    def update(self, run: RunReporter) -> None:
        """A run has new figures."""
        if self.clock() - self._last >= PAUSE:
            self._last = self.clock()
            self.end(run)

    def end(self, run: RunReporter) -> None:
        """Print where the run stands, at its end or before."""
        report = run.report
        if report is None:
            return
        measured = [*accuracy(report), *monitored(report, "; ")]
        changed, run.measured = measured != run.measured, measured
        parts = [
            f"epoch {report.epoch} of {report.epochs}",
            f"update {report.update:,} of {report.updates:,}",
            *([f"loss {report.loss:.4g}"] if run.losses else []),
            *(measured if changed or run.ended else []),
            *speed(report, None if run.ended else report.seconds_left),
        ]
        self.print(f"{self.prefix(run)}{', '.join(parts)}")


class LiveDisplay(PlainDisplay):
    """One area of the terminal, drawn anew four times a second by rich."""

    def begin(self, run: RunReporter, folder: Path) -> None:
        """The folder stays above the display."""
        if not self.many:
            self.print(f"kept in {folder}")

    def update(self, run: RunReporter) -> None:
        """Nothing to do: rich redraws by itself."""

    def end(self, run: RunReporter) -> None:
        """Nothing to do: the last picture stays."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """All lines, cut to the terminal's width so that nothing wraps."""
        for run in self.runs.values():
            if run.report is None:
                continue
            passed = self.clock() - run.reported_at
            left = None if run.ended else max(0.0, run.report.seconds_left - passed)
            lines = [_row(run, run.report, left)] if self.many else (
                _block(run, run.report, left, options))  # fmt: skip
            for line in lines:
                line.no_wrap, line.overflow = True, "ellipsis"
                line.truncate(options.max_width, overflow="ellipsis")
                yield line


def _row(run: RunReporter, report: Progress, left: float | None) -> Text:
    """One run among several."""
    state = "" if run.ended in ("", "finished") else run.ended.partition(":")[0]
    parts = [
        f"seed {run.seed}",
        state or f"epoch {report.epoch}/{report.epochs}",
        *([f"loss {report.loss:.4f}"] if run.losses else []),
        *accuracy(report),
        *speed(report, left),
        *monitored(report, "; "),
    ]
    return Text("  ".join(parts))


def _block(
    run: RunReporter, report: Progress, left: float | None, options: ConsoleOptions
) -> Iterator[Text]:
    """One run alone."""
    sparks = options.max_width >= _ROOM_FOR_SPARKS and not options.ascii_only
    yield Text(run.title, style="bold")
    width = max(0, min(30, options.max_width - 50))
    done = bar(report.update / max(1, report.updates), width, ascii_only=options.ascii_only)
    yield Text.assemble(
        ("epoch     ", "dim"),
        f"{report.epoch} of {report.epochs}  ",
        (f"{done}  " if done else "", "green"),
        "  ".join(speed(report, left)),
    )
    if run.losses:
        curve = sparkline(run.losses, _SPARK, log=True) if sparks else ""
        yield Text.assemble(("loss      ", "dim"), f"{report.loss:<9.4g}", (f"  {curve}", "cyan"))
    for text in accuracy(report):
        curve = sparkline(run.accuracies, _SPARK) if sparks else ""
        text = text.removeprefix("accuracy ")
        yield Text.assemble(("accuracy  ", "dim"), text, (f"  {curve}", "cyan"))
    for place, text in enumerate(monitored(report)):
        label = " " * 10 if place else "monitored "
        yield Text.assemble((label, "dim"), text)


def accuracy(report: Progress) -> list[str]:
    """Validation accuracy after m iterations, if it was measured."""
    value = report.figures.get("validation")
    return [] if value is None else [f"accuracy {percent(value)} at m"]


def monitored(report: Progress, separator: str | None = None) -> list[str]:
    """Figures on larger problems, a text per size: "48: 97.0 % at 2m, 98.0 % at 4m".

    With a separator: one labelled text.
    """
    sizes: dict[str, list[str]] = {}
    for name, value in report.figures.items():
        if name in report.monitoring:
            size, _, what = name.partition(" ")
            text = f"change {value:.0e}" if what == "change" else f"{percent(value)} {what}"
            sizes.setdefault(size, []).append(text)
    texts = [f"{size}: {', '.join(parts)}" for size, parts in sizes.items()]
    return [f"monitoring {separator.join(texts)}"] if separator and texts else texts


def speed(report: Progress, left: float | None) -> list[str]:
    """Updates per second and the time left."""
    rate = report.updates_per_second
    if rate <= 0:
        return []
    text = f"{rate:.{1 if rate < 100 else 0}f} steps/s"
    return [text] if left is None else [text, f"{duration(left)} left"]


def sparkline(values: Sequence[float], width: int, *, log: bool = False) -> str:
    """A curve of at most ``width`` characters, each the mean of its part of the values."""
    finite = [value for value in values if math.isfinite(value)]
    if log:
        finite = [math.log(max(value, 1e-8)) for value in finite]
    if len(finite) < 2:
        return ""
    parts = min(width, len(finite))
    edges = [len(finite) * part // parts for part in range(parts + 1)]
    means = [math.fsum(finite[start:stop]) / (stop - start) for start, stop in pairwise(edges)]
    low, height = min(means), (max(means) - min(means)) or 1.0
    return "".join(_BARS[round((mean - low) / height * (len(_BARS) - 1))] for mean in means)


def bar(done: float, width: int, *, ascii_only: bool = False) -> str:
    """A progress bar of ``width`` characters."""
    full = round(min(max(done, 0.0), 1.0) * width)
    return ("#" * full + "-" * (width - full)) if ascii_only else "━" * full + "╌" * (width - full)


@contextmanager
def display(console: Console, *, many: bool = False) -> Iterator[PlainDisplay]:
    """The live display on a terminal, plain lines elsewhere; ``many``: of several seeds."""
    if not console.is_terminal or console.is_dumb_terminal:
        yield PlainDisplay(console, many=many)
        return
    shown = LiveDisplay(console, many=many)
    with Live(shown, console=console, refresh_per_second=4, transient=False) as live:
        yield shown
        live.refresh()
