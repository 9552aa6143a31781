"""Time several implementations of the same work in turns, and measure the memory of each.

    >>> times = compare({"ours": fast, "plain": slow}, rounds=5, device=device)
    >>> ratio(times["plain"], times["ours"])
    {'median': 2.4, 'lowest': 2.3, 'highest': 2.6}

A machine that is busy or hot slows all sides equally, so the figure to quote is the ratio within a
round, with its spread over the rounds.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import re
import resource
import socket
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import torch

from iterant.errors import RunError, UsageError
from iterant.formatting import counted

T = TypeVar("T")
Work = Callable[[], object]
Progress = Callable[[int, int], None]
"""Called with the number of rounds done and of all rounds."""
SIDES = ("ours", "plain")


def compare(
    sides: Mapping[str, Work],
    *,
    rounds: int,
    device: torch.device,
    progress: Progress | None = None,
) -> dict[str, list[float]]:
    """The seconds of each side in each round, one side after the other; warm them up before."""
    if rounds < 1:
        raise UsageError(f"a measurement needs at least 1 round, got {rounds}")
    seconds: dict[str, list[float]] = {side: [] for side in sides}
    for done in range(1, rounds + 1):
        for side, work in sides.items():
            _wait(device)
            start = time.perf_counter()
            work()
            _wait(device)
            seconds[side].append(time.perf_counter() - start)
        if progress is not None:
            progress(done, rounds)
    return seconds


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def medians(seconds: Mapping[str, list[float]]) -> dict[str, float]:
    """The median of each side over the rounds."""
    return {side: statistics.median(rounds) for side, rounds in seconds.items()}


def ratio(slow: Iterable[float], fast: Iterable[float]) -> dict[str, float]:
    """How many times longer ``slow`` took than ``fast``, round by round."""
    ratios = [a / b for a, b in zip(slow, fast, strict=True)]
    return {"median": statistics.median(ratios), "lowest": min(ratios), "highest": max(ratios)}


def machine() -> dict[str, Any]:
    """Conditions that affect times: the threads of torch and the load of the machine."""
    return {"threads": torch.get_num_threads(), "load before": round(os.getloadavg()[0], 2)}


def peak_memory(
    prepare: Callable[..., Mapping[str, Work]], device: torch.device, *arguments: Any
) -> dict[str, Any]:
    """Peak bytes of the work of each side, and their ratio.

    ``prepare(device, *arguments)`` returns the work by side. On the CPU each side has its own
    process: memory that one side freed and the allocator kept would not be counted for the other.
    """
    peaks = {}
    for side in SIDES:
        if device.type == "cuda":
            work = prepare(device, *arguments)[side]
            torch.cuda.synchronize(device)
            before = torch.cuda.memory_allocated(device)
            torch.cuda.reset_peak_memory_stats(device)
            work()
            torch.cuda.synchronize(device)
            peaks[side] = torch.cuda.max_memory_allocated(device) - before
        else:
            peaks[side] = in_new_process(growth, side, prepare, device, *arguments)
    what = "allocated on the GPU" if device.type == "cuda" else "growth of a process"
    return {"what": what, **peaks, "ratio": peaks["plain"] / max(peaks["ours"], 1)}


def growth(side: str, prepare: Callable[..., Mapping[str, Work]], *arguments: Any) -> int:
    """Bytes by which the work of one side raises the peak memory of this process."""
    work = prepare(*arguments)[side]
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")  # resets the peak: importing does not count
    before = _peak_resident()
    work()
    return _peak_resident() - before


def _peak_resident() -> int:
    """The largest resident size of this process so far, in bytes."""
    # getrusage also counts the process before exec, so the kernel's own figure comes first.
    with contextlib.suppress(OSError):
        if match := re.search(r"VmHWM:\s*(\d+) kB", Path("/proc/self/status").read_text()):
            return 1024 * int(match[1])
    unit = 1 if sys.platform == "darwin" else 1024
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def in_new_process(function: Callable[..., T], *arguments: Any, processes: int = 1) -> T:
    """The result of a function in a new Python process, or in rank 0 of several.

    Each process gets the variables that torchrun would set.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    spawn = multiprocessing.get_context("spawn")
    try:
        with ProcessPoolExecutor(processes, spawn) as pool:
            ranks = [
                pool.submit(_run_rank, rank, processes, port, function, arguments)
                for rank in range(processes)
            ]
            first, *_ = [rank.result() for rank in ranks]
            return first
    except Exception as error:  # anything that the function raised, or its process was killed
        where, cause = counted(processes, "process", "processes"), str(error).partition("\n")[0]
        raise RunError(
            f"a measurement in {where} ended early ({cause}); "
            "try a smaller --width, fewer problems, or --no-memory"
        ) from error


def _run_rank(
    rank: int, size: int, port: int, function: Callable[..., T], arguments: tuple[Any, ...]
) -> T:
    os.environ |= {
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(size),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
    }
    return function(*arguments)
