"""How CPU threads wait for each other on a machine that other programs use, too.

OpenMP's threads wait by spinning: the fastest way on idle cores. On busy cores the waiting threads
use up the time in which the others could compute, and training becomes ten times slower or worse
(``results/speed/threads-by-load.json``). So the load at the start decides how they wait, unless the
user has set one of the environment variables below. Results do not depend on it; they do depend on
the number of threads, which therefore is never chosen by the load.
"""

from __future__ import annotations

import os
import sys

_WAITING = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME")
_BUSY_SHARE = 0.25
"""Load per core from which spinning costs more than sleeping does on idle cores."""


def spins_on_busy_cores() -> bool:
    """Whether other programs use a fair share of the cores and nothing says how threads wait."""
    is_chosen = any(os.environ.get(name) for name in _WAITING)
    return not is_chosen and load() > _BUSY_SHARE * (os.cpu_count() or 1)


def load() -> float:
    """The mean number of processes that wanted to run in the last minute; 0 on Windows."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0


def choose_waiting() -> None:
    """Let threads sleep while they wait if the machine is busy.

    OpenMP reads the variable once, when torch is imported: afterwards this changes nothing.
    """
    if "torch" not in sys.modules and spins_on_busy_cores():
        os.environ["OMP_WAIT_POLICY"] = "PASSIVE"
