"""Bounds of the numbers that users give, in flags, recipes and files.

    >>> STEPS.holds(300), STEPS.holds(10**30), STEPS.holds(float("nan"))
    (True, False, False)
    >>> str(STEPS)
    'from 1 to 10,000,000'

They are far beyond any real use and small enough that no number overflows in torch, numpy, the
system or Slurm, so that a mistyped number is refused at once instead of failing after an hour.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Bounds:
    """The least and the largest valid number; also a validator of cyclopts."""

    least: float
    most: float

    def holds(self, value: object) -> bool:
        """Whether this is a number within the bounds; NaN and bools are not."""
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return is_number and self.least <= value <= self.most  # type: ignore[operator]

    def __str__(self) -> str:
        most = "2**64 - 1" if self.most == 2**64 - 1 else f"{self.most:,}"
        return f"from {self.least:,} to {most}"

    def __call__(self, kind: object, value: object) -> None:
        """Raise ValueError for a flag that is given and out of bounds."""
        if value is not None and not self.holds(value):
            raise ValueError(f"Must be {self}")


SEED = Bounds(0, 2**64 - 1)
COUNT = Bounds(1, 10_000_000)
"""Of problems."""
STEPS = Bounds(1, 10_000_000)
"""Iterations of a network."""
AFTER = Bounds(0, 10_000_000)
"""The iteration of an intervention; 0: before the first."""
UPDATES = Bounds(1, 1_000_000_000)
"""Epochs and optimizer steps."""
WIDTH = Bounds(1, 4096)
"""Channels of a layer."""
TOLERANCE = Bounds(1e-12, 1000)
PACE = Bounds(0.001, 1_000_000)
"""Iterations per second."""
ROUNDS = Bounds(1, 10_000)
SEEDS = Bounds(1, 1000)
"""The number of seeds."""
PORT = Bounds(0, 65_535)
PROCESSES = Bounds(1, 10_000)
"""Processes, threads, nodes, cores, or runs at a time."""
GPUS = Bounds(0, 1000)
MEMORY_GB = Bounds(0.001, 1_000_000)
WAIT_SECONDS = Bounds(0.01, 86_400)
"""Between two looks, or before a limit."""
TIME_SECONDS = Bounds(1e-9, 10 * 365 * 86_400)
"""Of a time limit."""
