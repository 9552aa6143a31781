"""A sweep on this machine: as many runs side by side as it holds.

>>> run_here(folder, ["prefix-sums-quick-s0", "prefix-sums-quick-s1"], Means())
"""

from __future__ import annotations

import os
import queue
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path

import torch

from iterant.errors import IterantError
from iterant.runner.folder import SweepFolder
from iterant.runner.worker import AT_ONCE, Means, mind
from iterant.training.device import device_of
from iterant.training.interrupts import Clock, Signals

MEMORY_A_PROCESS = 1 << 30
"""Bytes that a process on the CPU is taken to need: torch itself is about a third of it."""

Ended = Callable[[str, str], None]
"""Told a run's name and how it ended."""


def room(means: Means) -> int:
    """How many runs this machine holds side by side: its GPUs, or its cores and memory."""
    if device_of(means.device).type == "cuda":
        return max(1, torch.cuda.device_count() // means.processes)
    cores = len(os.sched_getaffinity(0)) // (means.processes * means.threads)
    memory = _free_memory() // (MEMORY_A_PROCESS * means.processes)
    return max(1, min(cores, memory))


def _free_memory() -> int:
    """Bytes that may still be used, as Linux reckons; without a word from it, plenty."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        return next(int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable"))
    except (OSError, StopIteration, ValueError, IndexError):
        return 1 << 60


def run_here(
    folder: SweepFolder,
    names: Sequence[str],
    means: Means,
    *,
    at_once: int | None = None,
    limit: float | None = None,
    ended: Ended = lambda name, how: None,
) -> str | None:
    """Carry out these runs; returns why it stopped before the end, if it did.

    An interrupt lets the running ones save; a second one ends them at once, and what they had
    done since their last checkpoint is done again next time. ``limit``: seconds.
    """
    count = min(len(names), at_once or room(means))
    places: queue.SimpleQueue[int] = queue.SimpleQueue()
    for place in range(count):
        places.put(place)
    clock, hurried = Clock(limit), [False]
    on_gpu = device_of(means.device).type == "cuda"
    with Signals() as signals:

        def told() -> str | None:
            if hurried[0]:
                return AT_ONCE
            return signals.raised or ("the time limit" if clock.over else None)

        def one(name: str) -> str:
            place = places.get()
            try:
                return mind(folder, name, means, told=told, more=_gpus(place, means, on_gpu))
            except IterantError as error:
                return f"failed: {error}"
            finally:
                places.put(place)

        with ThreadPoolExecutor(max_workers=max(1, count)) as pool:
            waiting = {pool.submit(one, name): name for name in names}
            while waiting:
                try:
                    _take(waiting, ended)
                except KeyboardInterrupt:
                    hurried[0] = True
        return told()


def _gpus(place: int, means: Means, on_gpu: bool) -> dict[str, str]:
    """The GPUs of one place: those that are there are shared out in order."""
    if not on_gpu:
        return {}
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    all_of_them = (
        visible.split(",") if visible else list(map(str, range(torch.cuda.device_count())))
    )
    first = place * means.processes % len(all_of_them)
    mine = [all_of_them[(first + k) % len(all_of_them)] for k in range(means.processes)]
    return {"CUDA_VISIBLE_DEVICES": ",".join(mine)}


def _take(waiting: dict[Future[str], str], ended: Ended) -> None:
    """Wait a moment for runs to end."""
    done, _ = wait(waiting, timeout=0.2, return_when=FIRST_COMPLETED)
    for future in done:
        ended(waiting.pop(future), future.result())
