"""Reporters: where a run sends its progress.

    >>> train("mazes", out="runs/m0", reporter=TensorBoardReporter(LineReporter()))
    $ tensorboard --logdir runs

The loop calls a `Reporter`: `LineReporter`, if none is given. `TensorBoardReporter` writes into the
folder ``events`` of the run, passes everything on to another reporter, and needs the extra
``track``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any

from iterant.errors import MissingExtra
from iterant.formatting import counted, duration, percent
from iterant.progress import LINE_SECONDS, warn


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
    """Latest figures by name: "validation", and of monitoring: "48 at 4m" (after 4 m iterations)"""
    fresh: tuple[str, ...] = ()
    """Names of the figures measured just now"""
    iterations: int = 1
    """m: iterations in training, after which validation accuracy is measured"""

    def position(self, *, is_over: bool = False) -> str:
        """Epoch, step, loss, speed and the time left."""
        parts = [f"epoch {self.epoch} of {self.epochs}", f"step {self.step:,} of {self.steps:,}"]
        if math.isfinite(self.loss):
            parts.append(f"loss {self.loss:.4g}")
        if self.steps_per_second > 0:
            parts.append(f"{self.steps_per_second:.1f} steps/s")
            if not is_over:
                parts.append(f"{duration(self.seconds_left)} left")
        return ", ".join(parts)

    def accuracies(self, names: Iterable[str]) -> str:
        """As text: "validation 78.0 % after 30 iterations; size 48: 79.0 % after 60 …"."""
        groups: dict[str, list[str]] = {}
        for name in names:
            if name not in self.figures or name.endswith(" change"):
                continue
            what, _, mark = name.partition(" at ")  # "validation", "48 at 2m"
            count = self.iterations * int(mark.removesuffix("m") or 1)
            after = f"{count:,}" if groups else counted(count, "iteration")
            title = what if what.startswith("validation") else f"size {what}:"
            groups.setdefault(title, []).append(f"{percent(self.figures[name])} after {after}")
        return "; ".join(f"{title} {', '.join(shares)}" for title, shares in groups.items())


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


class LineReporter(Reporter):
    """Prints a line every five seconds, by default on the error stream, and each accuracy once."""

    def __init__(self, write: Callable[[str], object] = warn) -> None:
        """``write`` prints one line."""
        self._write, self._last_time = write, -math.inf
        self._progress: RunProgress | None = None
        self._new: dict[str, None] = {}
        """Names of the figures that no line has had"""

    def begin(self, title: str, folder: Path, progress: RunProgress) -> None:
        self._progress = progress
        self.note(f"{title}, kept in {folder}")

    def show(self, progress: RunProgress) -> None:
        self._progress = progress
        self._new |= dict.fromkeys(progress.fresh)
        is_last = progress.step == progress.steps  # `end` prints it
        if not is_last and monotonic() - self._last_time >= LINE_SECONDS:
            self._last_time = monotonic()
            self._write_lines(progress, progress.position())

    def note(self, text: str) -> None:
        self._write(text)

    def end(self, text: str) -> None:
        if (progress := self._progress) is not None:
            how, _, _ = text.partition(":")  # the error itself is raised
            self._write_lines(progress, f"{progress.position(is_over=True)}, {how}")

    def _write_lines(self, progress: RunProgress, position: str) -> None:
        self._write(position)
        if accuracies := progress.accuracies(self._new):
            self._write(accuracies)
        self._new.clear()


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
