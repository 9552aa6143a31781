"""CPU threads on a machine that other programs use, too.

OpenMP's threads wait for each other by spinning: the fastest way on idle cores. On busy cores the
waiting threads use up the time in which the others could compute, and training becomes ten times
slower or worse (``results/speed/threads-by-load.json``). So the load at the start decides, unless
the user has set one of the environment variables below.
"""

from __future__ import annotations

import os
import sys

_NUMBER = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")
_WAITING = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME")
_BUSY_SHARE = 0.25
"""Of the cores: from this load on, spinning costs more than sleeping does on idle cores."""


def load() -> float:
    """Processes that wanted to run in the last minute, on average; 0 where that is not known."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0


def is_busy() -> bool:
    """Whether other programs use a fair share of the cores."""
    return load() > _BUSY_SHARE * (os.cpu_count() or 1)


def free_cores() -> int:
    """Cores that other programs leave free, at least one."""
    return max(1, (os.cpu_count() or 1) - round(load()))


def number_is_chosen() -> bool:
    """Whether the user chose the number of threads by an environment variable."""
    return any(os.environ.get(name) for name in _NUMBER)


def waiting_is_chosen() -> bool:
    """Whether an environment variable says how threads wait."""
    return any(os.environ.get(name) for name in _WAITING)


def choose_waiting() -> None:
    """Let threads sleep while they wait if the machine is busy; the results are the same.

    OpenMP reads the variable once, when torch is imported: afterwards this changes nothing.
    """
    if "torch" not in sys.modules and not waiting_is_chosen() and is_busy():
        os.environ["OMP_WAIT_POLICY"] = "PASSIVE"
