"""What a person sees of training: one live display, or plain lines where there is no terminal.

    >>> with display(console()) as shown:
    ...     train("mazes", out="runs/m0", reporter=shown.of(seed=0))

Both are reporters a seed. Accuracy is that of validation, after m iterations; what is measured
after more iterations and on larger problems is marked as monitoring, for it chooses nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.text import Text

from iterant.cli.options import bar, sparkline, watched
from iterant.formatting import duration, percent
from iterant.training.logging import Report, Reporter

PAUSE = 5.0
"""Seconds between two plain lines."""

_SPARK = 24
_ROOM_FOR_SPARKS = 60


@dataclass
class Lane:
    """What is known of one seed's run; a reporter."""

    board: Board
    seed: int
    title: str = ""
    report: Report | None = None
    at: float = 0.0
    """When the report came"""
    losses: list[float] = field(default_factory=list)
    accuracies: list[float] = field(default_factory=list)
    measured: list[str] = field(default_factory=list)
    """What a plain line said last of accuracy: it is said again when it is another"""
    ended: str = ""

    def begin(self, title: str, folder: Path, report: Report) -> None:
        """The run starts, or goes on, here."""
        self.title, self.report, self.at = title, report, self.board.clock()
        self.board.begun(self, folder)

    def show(self, report: Report) -> None:
        """The run stands here now."""
        self.report, self.at = report, self.board.clock()
        if "validation" in report.fresh:
            self.accuracies.append(report.figures["validation"])
        if not report.fresh:
            self.losses.append(report.loss)
        self.board.shown(self)

    def note(self, text: str) -> None:
        """Something worth a line of its own."""
        self.board.say(f"{self.board.name(self)}{text}")

    def end(self, text: str) -> None:
        """The run has ended."""
        self.ended = text
        self.board.over(self)


class Board:
    """All lanes; says what happens in plain lines, at most one in five seconds a run."""

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        """Print there; ``clock`` tells the time in seconds."""
        self.console, self.clock = console, clock
        self.lanes: dict[int, Lane] = {}
        self.many = False
        self._last = -PAUSE

    def of(self, seed: int) -> Reporter:
        """The reporter for a seed's run."""
        self.lanes[seed] = Lane(self, seed)
        return self.lanes[seed]

    def name(self, lane: Lane) -> str:
        """Whose line it is, where that could be in doubt."""
        return f"seed {lane.seed}: " if self.many else ""

    def say(self, text: str) -> None:
        """A line of its own."""
        self.console.print(text, soft_wrap=True)

    def begun(self, lane: Lane, folder: Path) -> None:
        """Say which run starts, and where it is kept."""
        self.say(f"{lane.title}, kept in {folder}")

    def shown(self, lane: Lane) -> None:
        """Say how a run stands, if there was a pause; the first looks of all share the pause."""
        if self.clock() - self._last >= PAUSE:
            self._last = self.clock()
            self._line(lane)

    def over(self, lane: Lane) -> None:
        """Say how a run stands at its end."""
        self._line(lane)

    def _line(self, lane: Lane) -> None:
        report = lane.report
        if report is None:
            return
        measured = [
            *_together("accuracy", accuracy(report), ", "),
            *_together("monitoring", watched(report), "; "),
        ]
        news = measured != lane.measured or bool(lane.ended)
        lane.measured = measured
        parts = [
            f"epoch {report.epoch} of {report.epochs}",
            f"update {report.update:,} of {report.updates:,}",
            *([f"loss {report.loss:.4g}"] if lane.losses else []),
            *(measured if news else []),
            *pace(report, None if lane.ended else report.seconds_left),
        ]
        self.say(f"{self.name(lane)}{', '.join(parts)}")


class LiveBoard(Board):
    """All lanes in one place of the terminal, drawn anew four times a second."""

    def begun(self, lane: Lane, folder: Path) -> None:
        """Nothing to say: the display shows it, and the folder stays above it."""
        if not self.many:
            self.say(f"kept in {folder}")

    def shown(self, lane: Lane) -> None:
        """Nothing to do: the display looks by itself."""

    def over(self, lane: Lane) -> None:
        """Nothing to do: the last picture stays."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Every line cut to the terminal's width, so that nothing wraps and nothing jumps."""
        lanes = [lane for lane in self.lanes.values() if lane.report is not None]
        for lane in lanes:
            lines = self._row(lane) if self.many else self._lines(lane, options)
            for line in lines:
                line.no_wrap, line.overflow = True, "ellipsis"
                line.truncate(options.max_width, overflow="ellipsis")
                yield line

    def _left(self, lane: Lane, report: Report) -> float | None:
        """Seconds left, counted down since the report came; None at the end."""
        passed = self.clock() - lane.at
        return None if lane.ended else max(0.0, report.seconds_left - passed)

    def _row(self, lane: Lane) -> Iterator[Text]:
        """A run among several: a line."""
        report = lane.report
        if report is None:
            return
        state = "" if lane.ended in ("", "finished") else lane.ended.partition(":")[0]
        parts = [
            f"seed {lane.seed}",
            state or f"epoch {report.epoch}/{report.epochs}",
            f"loss {report.loss:.4f}" if lane.losses else "",
            *_together("accuracy", accuracy(report), ", "),
            *pace(report, self._left(lane, report)),
            *_together("monitoring", watched(report), "; "),
        ]
        yield Text("  ".join(part for part in parts if part))

    def _lines(self, lane: Lane, options: ConsoleOptions) -> Iterator[Text]:
        """A run alone: what it is, how far, how well, and what is watched."""
        report = lane.report
        if report is None:
            return
        plain, sparks = options.ascii_only, options.max_width >= _ROOM_FOR_SPARKS
        yield Text(lane.title, style="bold")
        room = max(0, min(30, options.max_width - 50))
        done = bar(report.update / max(1, report.updates), room, ascii_only=plain)
        yield Text.assemble(
            ("epoch     ", "dim"),
            f"{report.epoch} of {report.epochs}  ",
            (f"{done}  " if done else "", "green"),
            "  ".join(pace(report, self._left(lane, report))),
        )
        if lane.losses:
            curve = sparkline(lane.losses, _SPARK, log=True) if sparks and not plain else ""
            yield Text.assemble(
                ("loss      ", "dim"), f"{report.loss:<9.4g}", (f"  {curve}", "cyan")
            )
        if found := accuracy(report):
            curve = sparkline(lane.accuracies, _SPARK) if sparks and not plain else ""
            yield Text.assemble(("accuracy  ", "dim"), ", ".join(found), (f"  {curve}", "cyan"))
        for place, text in enumerate(watched(report)):
            label = "monitored " if place == 0 else " " * 10
            yield Text.assemble((label, "dim"), text)


def accuracy(report: Report) -> list[str]:
    """Accuracy on held-out problems after m iterations, where it was measured."""
    return (
        [f"{percent(report.figures['validation'])} at m"] if "validation" in report.figures else []
    )


def _together(label: str, texts: list[str], between: str) -> list[str]:
    """One text under a label, or none."""
    return [f"{label} {between.join(texts)}"] if texts else []


def pace(report: Report, left: float | None) -> list[str]:
    """How fast, and for how long still."""
    if report.updates_per_second <= 0:
        return []
    speed = report.updates_per_second
    said = [f"{speed:.{1 if speed < 100 else 0}f} steps/s"]
    return said if left is None else [*said, f"{duration(left)} left"]


@contextmanager
def display(console: Console, *, many: bool = False) -> Iterator[Board]:
    """The live display on a terminal, plain lines elsewhere; ``many``: of several seeds."""
    if not console.is_terminal or console.is_dumb_terminal:
        board = Board(console)
        board.many = many
        yield board
        return
    shown = LiveBoard(console)
    shown.many = many
    with Live(shown, console=console, refresh_per_second=4, transient=False) as live:
        yield shown
        live.refresh()
