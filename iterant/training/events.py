"""A run's figures for TensorBoard, in the folder ``events`` of the run.

    >>> train("mazes", out="runs/m0", reporter=Events(Silent()))
    $ tensorboard --logdir runs

`Events` stands between the loop and another reporter: the loop knows nothing of it. It needs the
extra ``track``.
"""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

from iterant.errors import MissingExtra
from iterant.training.progress import Report, Reporter

FOLDER = "events"


class Events:
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
