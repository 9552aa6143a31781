"""Why a run ends before its last update: the clock, a signal, a loss that is no number.

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
    """A duration as people write it: ``9m``, ``90s``, ``1h30m``, or a number of seconds."""
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
    """How long a run has been going; stops it early enough to save."""

    def __init__(self, limit: float | None, runs: int = 1) -> None:
        """A limit in seconds from now, or none, for so many runs side by side."""
        self._start, self._limit, self._runs = time.monotonic(), limit, runs
        self._longest = 0.0

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._start

    def took(self, duration: float) -> None:
        """Something that cannot be broken off (an epoch's end, a save) took so long."""
        self._longest = max(self._longest, duration)

    @property
    def over(self) -> bool:
        """Whether it is time to save and leave: as much time is kept as the longest save took."""
        if self._limit is None:
            return False
        spare = min(2 * self._longest * self._runs + 1.0, 0.25 * self._limit)
        return self.elapsed >= self._limit - spare


_LISTENED = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)
"""A person; whoever ends a process; a cluster whose time limit comes near."""


class Signals:
    """SIGINT, SIGTERM and SIGUSR1 as a wish to save and leave; a second SIGINT leaves at once.

    Only a person is in a hurry: clusters and torchrun repeat their signals, each to the whole
    tree of processes, and have SIGKILL for the end.
    """

    def __init__(self) -> None:
        """Nothing raised yet."""
        self.raised: str | None = None
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Signals:
        """Listen, if this is the thread that may."""
        if threading.current_thread() is threading.main_thread():
            for number in _LISTENED:
                self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        """Give the signals back to whom they belonged."""
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.raised is None:
            self.raised = signal.Signals(number).name
        elif number == signal.SIGINT:
            raise KeyboardInterrupt


class LossGuard:
    """Stops a run whose loss is no number or has exploded, with the recent history.

    Single losses may leap: with the paper's recipe for prefix sums one of 122 was seen between
    losses of 1e-6, and the run recovered. Exploded is a loss that stays up.
    """

    def __init__(
        self, factor: float = 10.0, patience: int = 50, keep: int = 8, *, forgiving: bool = False
    ) -> None:
        """Exploded: ``patience`` losses in a row above ``factor`` times the first one.

        ``forgiving``: one that is no number is no worse, because the update was left out.
        """
        self._factor, self._patience, self._forgiving = factor, patience, forgiving
        self.first: float | None = None
        self.above = 0
        """Losses in a row that were too high"""
        self.saved = False
        """Whether there is a checkpoint from before"""
        self._recent: deque[tuple[int, float]] = deque(maxlen=keep)

    @property
    def advice(self) -> str:
        """What is left of the run, and what to do."""
        if self.first is None and not self.saved:
            return "none was a number: look at the network and its problems, or try fp32"
        left = "the last good checkpoint is kept; resumed, the run would end here again: begin"
        return (
            f"{left if self.saved else 'no checkpoint was saved yet; begin'} a new one with a "
            "lower --rate, with --clip 1 or in --precision fp32"
        )

    def see(self, update: int, loss: float) -> None:
        """Take note of a loss; raise TrainingStopped when it cannot go on."""
        self._recent.append((update, loss))
        if math.isfinite(loss) or self._forgiving:
            if self.first is None and math.isfinite(loss):
                self.first = loss
            high = self.first is None or not loss <= self._factor * self.first
            self.above = self.above + 1 if high else 0
            if self.above < self._patience:
                return
        what = "exploded" if math.isfinite(loss) else f"became {loss}"
        history = ", ".join(f"{number}: {value:.4g}" for number, value in self._recent)
        raise TrainingStopped(
            f"the loss {what} at update {update} (recent: {history}); {self.advice}"
        )
