"""Reporters: where a run sends its progress.

    >>> train("mazes", out="runs/m0", reporter=TensorBoardReporter(SilentReporter()))
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
from typing import Any, Protocol

from iterant.errors import MissingExtra


@dataclass(frozen=True)
class Report:
    """Where a run stands."""

    update: int
    updates: int
    """How many there will be"""
    epoch: int
    epochs: int
    loss: float
    """Mean since the last report"""
    rate: float
    updates_per_second: float
    seconds_left: float
    figures: dict[str, float] = field(default_factory=dict)
    """The newest validation and watch figures by name: "validation", "48 at 4m", "48 change" …"""
    monitoring: tuple[str, ...] = ()
    """The names of those that only monitor and choose nothing"""
    fresh: tuple[str, ...] = ()
    """The names of those that were measured just now"""


class Reporter(Protocol):
    """Somebody who listens to a run."""

    def begin(self, title: str, folder: Path, report: Report) -> None:
        """The run starts, or goes on, here."""

    def show(self, report: Report) -> None:
        """The run stands here now."""

    def note(self, text: str) -> None:
        """Something worth a line of its own."""

    def end(self, text: str) -> None:
        """The run has ended: how, in a line."""


class SilentReporter:
    """A reporter that says nothing: the default in Python."""

    def begin(self, title: str, folder: Path, report: Report) -> None:
        """Say nothing."""

    def show(self, report: Report) -> None:
        """Say nothing."""

    def note(self, text: str) -> None:
        """Say nothing."""

    def end(self, text: str) -> None:
        """Say nothing."""


FOLDER = "events"


class TensorBoardReporter:
    """A reporter that writes every report down and passes it on."""

    def __init__(self, then: Reporter) -> None:
        """Pass everything on to ``then``; without tensorboard, refuse now, not in the run."""
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise MissingExtra("tensorboard", "track", "writing TensorBoard events") from error
        self._then, self._make = then, SummaryWriter
        self._writer: Any = None

    def begin(self, title: str, folder: Path, report: Report) -> None:
        """Open the folder; what lies past the update to resume from will be written again."""
        self._writer = self._make(str(folder / FOLDER), purge_step=report.update + 1)
        self._writer.add_text("run", title, report.update)
        self._then.begin(title, folder, report)

    def show(self, report: Report) -> None:
        """Write the losses of a look, or the figures that were measured just now."""
        if report.fresh:
            for name in report.fresh:
                kind = "monitoring" if name in report.monitoring else "validation"
                self._write(f"{kind}/{name}", report.figures[name], report.update)
        else:
            self._write("training/loss", report.loss, report.update)
            self._write("training/rate", report.rate, report.update)
            self._write("training/updates per second", report.updates_per_second, report.update)
        self._then.show(report)

    def note(self, text: str) -> None:
        """Pass it on."""
        self._then.note(text)

    def end(self, text: str) -> None:
        """Close the file."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None
        self._then.end(text)

    def _write(self, name: str, value: float, update: int) -> None:
        """One point of a curve; names hold only what TensorBoard takes, and NaN has no place."""
        if self._writer is not None and math.isfinite(value):
            self._writer.add_scalar(re.sub(r"[^\w/.-]+", "-", name), value, update)
