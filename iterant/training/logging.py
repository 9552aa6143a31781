"""Reporters: where a run sends its progress.

    >>> train("mazes", out="runs/m0", reporter=TensorBoardReporter(Reporter()))
    $ tensorboard --logdir runs

The loop calls a `Reporter`; the live display and the plain lines of the command line are reporters
too. `TensorBoardReporter` writes into the folder ``events`` of the run, passes everything on to
another reporter, and needs the extra ``track``.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from iterant.errors import MissingExtra
from iterant.formatting import duration, percent
from iterant.notebook import NotebookLine, in_notebook


@dataclass(frozen=True)
class RunProgress:
    """The progress of a run."""

    step: int
    steps: int
    """In total"""
    epoch: int
    epochs: int
    loss: float
    """Mean since the last report"""
    lr: float
    """Learning rate"""
    steps_per_second: float
    seconds_left: float
    figures: dict[str, float] = field(default_factory=dict)
    """Latest figures by name: "validation", and those of monitoring: "48 at 4m", "48 change" …"""
    fresh: tuple[str, ...] = ()
    """Names of the figures measured just now"""

    def lines(self, *, is_over: bool = False) -> list[str]:
        """As text: position, loss and speed; accuracy; monitoring."""
        parts = [f"epoch {self.epoch} of {self.epochs}", f"step {self.step:,} of {self.steps:,}"]
        if math.isfinite(self.loss):
            parts.append(f"loss {self.loss:.4g}")
        if self.steps_per_second > 0:
            parts.append(f"{self.steps_per_second:.1f} steps/s")
            if not is_over:
                parts.append(f"{duration(self.seconds_left)} left")
        lines = [", ".join(parts)]
        if "validation" in self.figures:
            lines.append(f"accuracy {percent(self.figures['validation'])} at m")
        monitoring = [
            f"{name} {value:.0e}" if name.endswith("change") else f"{name} {percent(value)}"
            for name, value in self.figures.items()
            if name != "validation"
        ]
        return [*lines, f"monitoring: {', '.join(monitoring)}"] if monitoring else lines


class Reporter:
    """Receives the progress of a run; this one ignores it."""

    def begin(self, title: str, folder: Path, progress: RunProgress) -> None:
        """The run starts or resumes."""

    def show(self, progress: RunProgress) -> None:
        """There is new progress."""

    def note(self, text: str) -> None:
        """A remark for the user, one line."""

    def end(self, text: str) -> None:
        """The run has ended; ``text`` says how."""


class NotebookReporter(Reporter):
    """The progress of a run as one line of a notebook, the default there."""

    def __init__(self) -> None:
        self._line = NotebookLine()
        self._progress: RunProgress | None = None

    def begin(self, title: str, folder: Path, progress: RunProgress) -> None:
        self.note(f"{title}, kept in {folder}")

    def show(self, progress: RunProgress) -> None:
        self._progress = progress
        self._line.show(", ".join(progress.lines()), progress.step / progress.steps)

    def note(self, text: str) -> None:
        print(text)  # noqa: T201

    def end(self, text: str) -> None:
        if (progress := self._progress) is not None:
            lines = [*progress.lines(is_over=True), text]
            self._line.show(", ".join(lines), progress.step / progress.steps, at_once=True)


def default_reporter() -> Reporter:
    """The reporter of runs that are started in Python: silent, but in a notebook."""
    return NotebookReporter() if in_notebook() else Reporter()


class TensorBoardReporter(Reporter):
    """Writes TensorBoard events and passes everything on to another reporter."""

    def __init__(self, reporter: Reporter) -> None:
        """``reporter`` is the next one; raises MissingExtra without tensorboard."""
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise MissingExtra("tensorboard", "track", "writing TensorBoard events") from error
        self._next, self._writer_class = reporter, SummaryWriter
        self._writer: Any = None

    def begin(self, title: str, folder: Path, progress: RunProgress) -> None:
        """Open the event file; events after the step to resume from are discarded."""
        self._writer = self._writer_class(str(folder / "events"), purge_step=progress.step + 1)
        self._writer.add_text("run", title, progress.step)
        self._next.begin(title, folder, progress)

    def show(self, progress: RunProgress) -> None:
        """Write the figures measured just now or, without any, loss, learning rate and speed."""
        groups = {"validation": "validation"}  # the others are of monitoring
        values = {
            f"{groups.get(name, 'monitoring')}/{name}": progress.figures[name]
            for name in progress.fresh
        } or {
            "training/loss": progress.loss,
            "training/lr": progress.lr,
            "training/steps per second": progress.steps_per_second,
        }
        for name, value in values.items():
            if math.isfinite(value):  # tags may have letters, digits and _ / . - only
                self._writer.add_scalar(re.sub(r"[^\w/.-]+", "-", name), value, progress.step)
        self._next.show(progress)

    def note(self, text: str) -> None:
        self._next.note(text)

    def end(self, text: str) -> None:
        if self._writer is not None:
            self._writer.close()
        self._next.end(text)
