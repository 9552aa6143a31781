"""Many runs on this machine, as many side by side as fit.

>>> run_local(folder, ["prefix-sums-quick-s0", "prefix-sums-quick-s1"], Launch())

`run_pool` is the one loop that does so: sweeps and ``iterant reproduce`` both use it.
"""

from __future__ import annotations

import os
import queue
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from pathlib import Path

import torch

from iterant import registry
from iterant.errors import IterantError
from iterant.runner.folder import SweepFolder
from iterant.runner.worker import KILL, Launch, Stop, supervise
from iterant.training.interrupts import Clock, Signals

MEMORY_PER_PROCESS = 1 << 30
"""Bytes that a process on the CPU is taken to need; torch itself is about a third of it."""

Ended = Callable[[str, str], None]
"""Called with the name of a run and how it ended."""

Work = Callable[[str, Mapping[str, str], Stop], str]
"""Carries out the run of that name, with these variables in the environment of its process, until
its end or until there is a reason to stop. Returns how it ended."""


def capacity(launch: Launch) -> int:
    """How many runs fit on this machine side by side: by GPUs, or by cores and memory."""
    if registry.device(launch.device).type == "cuda":
        return max(1, torch.cuda.device_count() // launch.processes)
    cores = len(os.sched_getaffinity(0)) // (launch.processes * launch.threads)
    return max(1, min(cores, _free_memory() // (MEMORY_PER_PROCESS * launch.processes)))


def _free_memory() -> int:
    """Bytes available by Linux's own estimate; elsewhere, plenty."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        return next(int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable"))
    except (OSError, StopIteration, ValueError, IndexError):
        return 1 << 60


def run_local(
    folder: SweepFolder,
    names: Sequence[str],
    launch: Launch,
    *,
    at_once: int | None = None,
    limit: float | None = None,
    ended: Ended = lambda name, how: None,
) -> str | None:
    """Carry out runs of a sweep; see `run_pool`."""

    def work(name: str, environment: Mapping[str, str], stop: Stop) -> str:
        return supervise(folder, name, launch, stop=stop, environment=environment)

    return run_pool(names, work, launch, at_once=at_once, limit=limit, ended=ended)


def run_pool(
    names: Sequence[str],
    work: Work,
    launch: Launch,
    *,
    at_once: int | None = None,
    limit: float | None = None,
    ended: Ended = lambda name, how: None,
) -> str | None:
    """Carry out runs side by side; returns why it stopped before the end, or None.

    An interrupt lets the runs save; a second one kills them, and they lose what they did since
    their last checkpoint. ``limit``: seconds. GPUs are assigned in turn.
    """
    count = max(1, min(len(names), at_once or capacity(launch)))
    slots: queue.SimpleQueue[int] = queue.SimpleQueue()
    for slot in range(count):
        slots.put(slot)
    clock, kill = Clock(limit), False
    on_gpu = registry.device(launch.device).type == "cuda"
    with Signals() as signals:

        def stop() -> str | None:
            if kill:
                return KILL
            return signals.raised or ("the time limit" if clock.over else None)

        def one(name: str) -> str:
            slot = slots.get()
            try:
                return work(name, _visible_gpus(slot, launch) if on_gpu else {}, stop)
            except IterantError as error:
                return f"failed: {error}"
            finally:
                slots.put(slot)

        with ThreadPoolExecutor(max_workers=count) as pool:
            waiting = {pool.submit(one, name): name for name in names}
            while waiting:
                try:
                    for future in wait(waiting, timeout=0.2, return_when=FIRST_COMPLETED).done:
                        ended(waiting.pop(future), future.result())
                except KeyboardInterrupt:
                    kill = True
        return stop()


def _visible_gpus(slot: int, launch: Launch) -> dict[str, str]:
    """The GPUs of one slot."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    gpus = visible.split(",") if visible else list(map(str, range(torch.cuda.device_count())))
    first = slot * launch.processes % len(gpus)
    mine = [gpus[(first + k) % len(gpus)] for k in range(launch.processes)]
    return {"CUDA_VISIBLE_DEVICES": ",".join(mine)}
