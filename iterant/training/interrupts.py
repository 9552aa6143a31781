"""Why a run ends early: the time limit, a signal, a perfect validation, a loss that diverges.

>>> with Signals() as signals:
...     clock = Clock(limit=540)
...     while not clock.over and signals.raised is None: ...
"""

from __future__ import annotations

import math
import signal
import threading
import time
from collections import deque
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, ClassVar

from iterant.errors import TrainingStopped

PERFECT = "stopped by a perfect validation"
"""The reason to stop at 100 %: no later weights can replace the first of equally good ones."""

AT_LIMIT = "stopped at the time limit"
"""The reason to stop when only the reserved part of the time limit is left."""


class Clock:
    """The time limit of a run in seconds, some of them reserved for saving; None: no limit."""

    def __init__(self, limit: float | None) -> None:
        self._start, self._limit, self._longest = time.monotonic(), limit, 0.0

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self._start

    def record(self, duration: float) -> None:
        """Record the time between two readings of `over`, in which the run cannot stop."""
        self._longest = max(self._longest, duration)

    @property
    def reserved(self) -> float:
        """Seconds of the limit that are kept for the end of the work and for saving.

        Twice the longest uninterruptible work and a second, at most a quarter of the limit.
        """
        return 0.0 if self._limit is None else min(2 * self._longest + 1.0, 0.25 * self._limit)

    @property
    def over(self) -> bool:
        """Whether to save and stop now."""
        return self._limit is not None and self.elapsed >= self._limit - self.reserved


_SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGUSR1")
            if hasattr(signal, name)]  # fmt: skip
"""SIGUSR1: Slurm's warning before the time limit; Windows has none."""


class Signals:
    """SIGINT, SIGTERM and SIGUSR1 mean save and stop; a second SIGINT stops at once.

    Only a repeated SIGINT does: clusters and torchrun send the others several times.
    """

    def __init__(self) -> None:
        self.raised: str | None = None
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Signals:
        if threading.current_thread() is threading.main_thread():  # others may not set handlers
            for number in _SIGNALS:
                self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.raised is None:
            self.raised = signal.Signals(number).name
        elif number == signal.SIGINT:
            raise KeyboardInterrupt


@dataclass
class LossGuard:
    """Stops a run whose loss is NaN or has exploded, and reports the recent losses.

    Exploded: ``patience`` losses in a row above ``factor`` times the first one. A single high loss
    is not a divergence: with the paper's recipe for prefix sums a loss of 122 was seen between
    losses of 1e-6, and the run recovered.
    """

    ADVICE: ClassVar[str] = (
        "a run resumed from its last checkpoint would end here again: begin a new one with a lower "
        "lr, with grad_clip 1 or in precision fp32"
    )

    factor: float = 10.0
    patience: int = 50
    forgiving: bool = False
    """NaN is only a high loss, because loss scaling skipped that step"""
    first: float | None = None
    above: int = 0
    """Number of consecutive losses that were too high"""
    recent: deque[tuple[int, float]] = field(default_factory=lambda: deque(maxlen=8))

    def check(self, step: int, loss: float) -> None:
        """Check a loss; raise TrainingStopped if training has diverged."""
        self.recent.append((step, loss))
        if math.isfinite(loss) or self.forgiving:
            if self.first is None and math.isfinite(loss):
                self.first = loss
            high = self.first is None or not loss <= self.factor * self.first
            self.above = self.above + 1 if high else 0
            if self.above < self.patience:
                return
        event = "exploded" if math.isfinite(loss) else f"became {loss}"
        history = ", ".join(f"{number}: {value:.4g}" for number, value in self.recent)
        raise TrainingStopped(f"the loss {event} at step {step} (recent: {history}); {self.ADVICE}")
