"""Why a run ends before its last step: the time limit, a signal, a loss that diverged.

>>> with Signals() as signals:
...     while not signals.raised: ...
"""

from __future__ import annotations

import math
import re
import signal
import threading
import time
from collections import deque
from types import FrameType
from typing import Any

from iterant.errors import TrainingStopped, UsageError

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def seconds(text: str | float) -> float:
    """A duration in seconds, from text: ``9m``, ``90s``, ``1h30m``, or a number of seconds."""
    if isinstance(text, int | float):
        value = float(text)
    else:
        parts = re.findall(r"(\d+(?:\.\d+)?)([smhd]?)", text.strip())
        if not parts or "".join(a + b for a, b in parts) != text.strip().replace(" ", ""):
            raise UsageError(f"a time is written like 9m, 90s or 1h30m, got {text!r}")
        value = sum(float(number) * _UNITS[unit or "s"] for number, unit in parts)
    if not 0 < value < math.inf:
        raise UsageError(f"a time limit must be above 0, got {text!r}")
    return value


class Clock:
    """The time limit of a run, with time reserved for saving."""

    def __init__(self, limit: float | None) -> None:
        """``limit``: seconds from now, or None."""
        self._start, self._limit, self._longest = time.monotonic(), limit, 0.0

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._start

    def record(self, duration: float) -> None:
        """Record how long uninterruptible work took, such as the end of an epoch."""
        self._longest = max(self._longest, duration)

    @property
    def over(self) -> bool:
        """Whether to save and stop now.

        Twice the longest uninterruptible work is reserved, at most a quarter of the limit.
        """
        if self._limit is None:
            return False
        spare = min(2 * self._longest + 1.0, 0.25 * self._limit)
        return self.elapsed >= self._limit - spare


_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)
"""SIGUSR1: Slurm's warning before the time limit."""


class Signals:
    """SIGINT, SIGTERM and SIGUSR1 mean save and stop; a second SIGINT stops at once.

    Only a repeated SIGINT does: clusters and torchrun send the others several times.
    """

    def __init__(self) -> None:
        """No signal received yet."""
        self.raised: str | None = None
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Signals:
        """Install the handlers, if this is the main thread."""
        if threading.current_thread() is threading.main_thread():
            for number in _SIGNALS:
                self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        """Restore the previous handlers."""
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.raised is None:
            self.raised = signal.Signals(number).name
        elif number == signal.SIGINT:
            raise KeyboardInterrupt


class LossGuard:
    """Stops a run whose loss is NaN or has exploded, and reports the recent losses.

    Exploded: ``patience`` losses in a row above ``factor`` times the first one. A single high loss
    is not a divergence: with the paper's recipe for prefix sums a loss of 122 was seen between
    losses of 1e-6, and the run recovered.
    """

    ADVICE = (
        "a run resumed from its last checkpoint would end here again: begin a new one with a lower "
        "--rate, with --clip 1 or in --precision fp32"
    )

    def __init__(
        self, factor: float = 10.0, patience: int = 50, *, forgiving: bool = False
    ) -> None:
        """``forgiving``: NaN is only a high loss, because loss scaling skipped that step."""
        self._factor, self._patience, self._forgiving = factor, patience, forgiving
        self.first: float | None = None
        self.above = 0
        """Number of consecutive losses that were too high"""
        self._recent: deque[tuple[int, float]] = deque(maxlen=8)

    def check(self, step: int, loss: float) -> None:
        """Check a loss; raise TrainingStopped if training has diverged."""
        self._recent.append((step, loss))
        if math.isfinite(loss) or self._forgiving:
            if self.first is None and math.isfinite(loss):
                self.first = loss
            high = self.first is None or not loss <= self._factor * self.first
            self.above = self.above + 1 if high else 0
            if self.above < self._patience:
                return
        event = "exploded" if math.isfinite(loss) else f"became {loss}"
        history = ", ".join(f"{number}: {value:.4g}" for number, value in self._recent)
        raise TrainingStopped(f"the loss {event} at step {step} (recent: {history}); {self.ADVICE}")
