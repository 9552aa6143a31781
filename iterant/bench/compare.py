"""Two ways of the same work, in turns, so that whatever else the machine does meets both.

    >>> contest(fast, slow, rounds=5).ratio
    Spread(median=2.4, lowest=2.3, highest=2.6)

A machine that is busy or grows hot makes both slower; their ratio within a round stays. That is
the figure to quote, with its spread over the rounds.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

from iterant.errors import UsageError

Work = Callable[[], object]


@dataclass(frozen=True)
class Spread:
    """The middle of some numbers, and how far they lie apart."""

    median: float
    lowest: float
    highest: float

    @classmethod
    def of(cls, numbers: list[float]) -> Spread:
        """Of numbers, at least one."""
        return cls(statistics.median(numbers), min(numbers), max(numbers))


@dataclass(frozen=True)
class Contest:
    """Seconds that each round took, both ways."""

    ours: list[float]
    plain: list[float]

    @property
    def ratio(self) -> Spread:
        """How many times longer the plain way took, round by round."""
        return Spread.of([b / a for a, b in zip(self.ours, self.plain, strict=True)])


def contest(
    ours: Work,
    plain: Work,
    *,
    rounds: int,
    wait: Work = lambda: None,
    clock: Callable[[], float] = time.perf_counter,
    progress: Callable[[int, int], None] | None = None,
) -> Contest:
    """Time ours, plain, ours, plain, …; ``wait`` returns when the device has done all it was told.

    Neither is warmed up here: call both once before, where the first time is special.
    """
    if rounds < 1:
        raise UsageError(f"a measurement needs at least 1 round, got {rounds}")
    times: tuple[list[float], list[float]] = ([], [])
    for done in range(rounds):
        for kept, work in zip(times, (ours, plain), strict=True):
            wait()
            begin = clock()
            work()
            wait()
            kept.append(clock() - begin)
        if progress is not None:
            progress(done + 1, rounds)
    return Contest(*times)
