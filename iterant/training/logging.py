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


@dataclass(frozen=True)
class Progress:
    """The progress of a run."""

    step: int
    steps: int
    """In total"""
    epoch: int
    epochs: int
    loss: float
    """Mean since the last report"""
    rate: float
    steps_per_second: float
    seconds_left: float
    figures: dict[str, float] = field(default_factory=dict)
    """Latest figures by name: "validation", and of monitoring "48 at 4m", "48 change" …"""
    fresh: tuple[str, ...] = ()
    """Names of the figures measured just now"""


class Reporter:
    """Receives the progress of a run; this one ignores it."""

    def begin(self, title: str, folder: Path, report: Progress) -> None:
        """The run starts or resumes."""

    def show(self, report: Progress) -> None:
        """There is new progress."""

    def note(self, text: str) -> None:
        """A remark for the user, one line."""

    def end(self, text: str) -> None:
        """The run has ended; ``text`` says how."""


class TensorBoardReporter(Reporter):
    """Writes TensorBoard events and passes everything on to another reporter."""

    def __init__(self, then: Reporter) -> None:
        """``then`` is the next reporter; raises MissingExtra without tensorboard."""
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise MissingExtra("tensorboard", "track", "writing TensorBoard events") from error
        self._then, self._writer_class = then, SummaryWriter
        self._writer: Any = None

    def begin(self, title: str, folder: Path, report: Progress) -> None:
        """Open the event file; events after the step to resume from are discarded."""
        self._writer = self._writer_class(str(folder / "events"), purge_step=report.step + 1)
        self._writer.add_text("run", title, report.step)
        self._then.begin(title, folder, report)

    def show(self, report: Progress) -> None:
        """Write the new figures, or else loss, rate and speed."""
        values = {
            f"{'validation' if name == 'validation' else 'monitoring'}/{name}": report.figures[name]
            for name in report.fresh
        } or {
            "training/loss": report.loss,
            "training/rate": report.rate,
            "training/updates per second": report.steps_per_second,
        }
        for name, value in values.items():
            if math.isfinite(value):  # names are letters, digits and a few signs
                self._writer.add_scalar(re.sub(r"[^\w/.-]+", "-", name), value, report.step)
        self._then.show(report)

    def note(self, text: str) -> None:
        """Pass it on."""
        self._then.note(text)

    def end(self, text: str) -> None:
        """Close the event file."""
        if self._writer is not None:
            self._writer.close()
        self._then.end(text)
