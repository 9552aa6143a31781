"""Time several ways of the same work in turns, and measure the memory that each takes.

    >>> times = compare({"ours": fast, "plain": slow}, rounds=5)
    >>> times.ratio("plain", "ours")
    Spread(median=2.4, lowest=2.3, highest=2.6)

A machine that is busy or hot slows all sides alike, so the figure to quote is the ratio within a
round, with its spread over the rounds.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import torch

from iterant.errors import UsageError

Work = Callable[[], object]
T = TypeVar("T")


@dataclass(frozen=True)
class Spread:
    """Median and range of some numbers."""

    median: float
    lowest: float
    highest: float

    @classmethod
    def of(cls, numbers: list[float]) -> Spread:
        """Of one number or more."""
        return cls(statistics.median(numbers), min(numbers), max(numbers))


@dataclass(frozen=True)
class Times:
    """Seconds of each round, by side."""

    seconds: dict[str, list[float]]

    def median(self, side: str) -> float:
        """The median over the rounds."""
        return statistics.median(self.seconds[side])

    def ratio(self, slow: str, fast: str) -> Spread:
        """How many times longer ``slow`` took than ``fast``, round by round."""
        pairs = zip(self.seconds[slow], self.seconds[fast], strict=True)
        return Spread.of([a / b for a, b in pairs])


def waiter(device: torch.device) -> Work:
    """A function that returns when the device has finished all work submitted to it."""
    return (lambda: torch.cuda.synchronize(device)) if device.type == "cuda" else lambda: None


def compare(
    sides: Mapping[str, Work],
    *,
    rounds: int,
    wait: Work = lambda: None,
    clock: Callable[[], float] = time.perf_counter,
    progress: Callable[[int, int], None] | None = None,
) -> Times:
    """Time each side once a round, one after the other; warm them up before.

    ``wait``: see `waiter`. ``progress``: called with the rounds done and their number.
    """
    if rounds < 1:
        raise UsageError(f"a measurement needs at least 1 round, got {rounds}")
    seconds: dict[str, list[float]] = {side: [] for side in sides}
    for done in range(1, rounds + 1):
        for side, work in sides.items():
            wait()
            start = clock()
            work()
            wait()
            seconds[side].append(clock() - start)
        if progress is not None:
            progress(done, rounds)
    return Times(seconds)


def machine() -> dict[str, Any]:
    """What else decides about times: threads of torch and the load of the machine."""
    return {"threads": torch.get_num_threads(), "load before": round(os.getloadavg()[0], 2)}


def memory_figures(peaks: Mapping[str, int], what: str) -> dict[str, Any]:
    """Bytes of both sides and their ratio; ``what`` was counted."""
    ratio = peaks["plain"] / max(peaks["ours"], 1)
    return {"what": what, **peaks, "ratio": ratio}


def gpu_peak(work: Callable[[], T], device: torch.device) -> tuple[T, int]:
    """The result of the work, and the bytes that it allocated on the GPU at its peak."""
    if device.type != "cuda":
        return work(), 0
    torch.cuda.synchronize(device)
    before = torch.cuda.memory_allocated(device)
    torch.cuda.reset_peak_memory_stats(device)
    result = work()
    torch.cuda.synchronize(device)
    return result, torch.cuda.max_memory_allocated(device) - before


def process_growth(prepare: Callable[..., Work], **arguments: Any) -> int:
    """Bytes by which a new process grows, at its peak, by the work that ``prepare`` returns.

    A process of its own, because memory that one side freed and the allocator kept would not be
    counted for the other. The arguments go there as JSON.
    """
    source = str(Path(__file__).resolve().parents[2])
    paths = [source, *filter(None, [os.environ.get("PYTHONPATH")])]
    request = {"module": prepare.__module__, "name": prepare.__name__, "arguments": arguments}
    process = subprocess.run(
        [sys.executable, "-c", f"from {__name__} import print_growth; print_growth()"],
        input=json.dumps(request),
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
    )
    if process.returncode != 0:
        reason = (process.stderr.strip().splitlines() or [f"code {process.returncode}"])[-1]
        raise UsageError(
            f"the memory could not be measured, the process for it ended early ({reason}); "
            "try a smaller --width or fewer problems, or --no-memory"
        )
    return int(process.stdout)


def print_growth() -> None:
    """The other end of `process_growth`: its request is read from the standard input."""
    request = json.load(sys.stdin)
    prepare = getattr(importlib.import_module(request["module"]), request["name"])
    work = prepare(**request["arguments"])
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")  # resets the peak: importing does not count
    before = _peak_resident()
    work()
    sys.stdout.write(f"{_peak_resident() - before}\n")


def _peak_resident() -> int:
    """The largest resident size of this process so far, in bytes."""
    # getrusage also counts the process before exec, so the kernel's own figure comes first.
    with contextlib.suppress(OSError):
        if match := re.search(r"VmHWM:\s*(\d+) kB", Path("/proc/self/status").read_text()):
            return 1024 * int(match[1])
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
