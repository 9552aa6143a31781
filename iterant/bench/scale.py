"""Several processes on one run: how much faster, and what share of the time they spend talking.

    >>> figures = bench_scale("mazes", width=32, processes=(1, 2))
    >>> figures["processes"]["2"]["times faster"], figures["processes"]["2"]["talking"]

The batch stays the same and is shared out (strong scaling), as in training itself: the loop, the
gradients' mean in one message an update, and the two questions whether to stop. Talking includes
waiting for the slowest process. Started by torchrun, as a person would.
"""

from __future__ import annotations

import dataclasses
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Any

import torch

from iterant import registry
from iterant.errors import RunError, UsageError
from iterant.nets import parameter_count
from iterant.training.build import build_network
from iterant.training.data import TrainingSet
from iterant.training.distributed import Joined, ProcessGroup
from iterant.training.interrupts import Clock, Signals
from iterant.training.logging import SilentReporter
from iterant.training.loop import CheckpointOptions, Loop
from iterant.training.trainer import Trainer

_CPU = torch.device("cpu")
_MARK = "bench-scale "


class Timed(Joined):
    """A crew that keeps account of the time it spends talking."""

    talked = 0.0

    def _together(self, talk: object) -> None:
        begun = time.perf_counter()
        super()._together(talk)
        self.talked += time.perf_counter() - begun


def bench_scale(
    task: str = "mazes",
    *,
    recipe: str = "quick",
    width: int | None = None,
    batch: int | None = None,
    updates: int = 20,
    rounds: int = 3,
    processes: Sequence[int] = (1, 2),
) -> dict[str, Any]:
    """Updates a second by so many processes of one thread each, in turns; medians over rounds."""
    if updates < 1 or rounds < 1 or not processes or min(processes) < 1:
        raise UsageError("at least one update, round and process are needed")
    changes = {"width": width, "batch": batch, "watch_every": 0, "validate_every": 10_000}
    given = {key: value for key, value in changes.items() if value is not None}
    told: dict[int, list[dict[str, Any]]] = {count: [] for count in processes}
    for _ in range(rounds):
        for count in processes:
            told[count].append(_started(count, [task, recipe, json.dumps(given), str(updates)]))
    first = told[processes[0]][0]
    figures: dict[str, Any] = {
        "task": task, "recipe": recipe, "updates": updates, "rounds": rounds,
        **{key: first[key] for key in ("net", "parameters", "batch", "bytes an update")},
        "threads a process": 1, "load before": os.getloadavg()[0], "processes": {},
    }  # fmt: skip
    alone = statistics.median(one["updates per second"] for one in told[processes[0]])
    for count, ones in told.items():
        paces = [one["updates per second"] for one in ones]
        pace = statistics.median(paces)
        figures["processes"][str(count)] = {
            "updates per second": pace, "lowest": min(paces), "highest": max(paces),
            "times faster": pace / alone,
            "efficiency": pace / alone * processes[0] / count,
            "talking": statistics.median(one["talking"] for one in ones),
            "CPU seconds an update": statistics.median(one["CPU seconds"] for one in ones),
        }  # fmt: skip
    return figures


def _started(count: int, words: Sequence[str]) -> dict[str, Any]:
    """What the first of so many processes tells."""
    alone = [sys.executable, "-m", "iterant.bench.scale"]
    joined = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node",
              str(count), "-m", "iterant.bench.scale"]  # fmt: skip
    done = subprocess.run(
        [*(alone if count == 1 else joined), *words], capture_output=True, text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    told = [line for line in done.stdout.splitlines() if line.startswith(_MARK)]
    if done.returncode or not told:
        lines = [line for line in done.stderr.splitlines() if "Error" in line] or ["nothing"]
        last = lines[-1].strip()
        raise RunError(f"{count} processes cannot be measured; the last error: {last}")
    found: dict[str, Any] = json.loads(told[-1].removeprefix(_MARK))
    return found


def measure(task: str, recipe: str, changes: dict[str, Any], updates: int) -> dict[str, Any]:
    """One process's part: a few updates to warm up, then those that count."""
    torch.set_num_threads(1)
    several = int(os.environ.get("WORLD_SIZE", "1")) > 1
    processes: ProcessGroup = Timed(_CPU) if several else ProcessGroup()
    made = registry.task(task)
    chosen = registry.recipe(recipe, made.spec.name).changed(**changes)
    # Just the problems that are needed, so that an epoch's end does not fall among the updates.
    count = chosen.batch * (updates + 10)
    chosen = dataclasses.replace(chosen, count=count, validation=0.0, epochs=1)
    processes.check(chosen.batch)
    net, _ = build_network(chosen, made.spec, 0)
    trainer = Trainer(net, chosen, _CPU, processes)
    loop = Loop(made, chosen, 0, trainer, TrainingSet.of(made, chosen, _CPU), folder=None,
                reporter=SilentReporter(), checkpoints=CheckpointOptions(),
                processes=processes)  # fmt: skip
    going = loop.steps(Clock(None), Signals())
    for _ in range(3):
        next(going)
    before, begun, spent = (
        getattr(processes, "talked", 0.0),
        time.perf_counter(),
        time.process_time(),
    )
    for _ in range(updates):
        next(going)
    length = time.perf_counter() - begun
    count = parameter_count(net)
    return {
        "net": chosen.net, "parameters": count, "batch": chosen.batch,
        "bytes an update": 4 * count,
        "updates per second": updates / length,
        "talking": (getattr(processes, "talked", 0.0) - before) / length,
        "CPU seconds": (time.process_time() - spent) / updates,
    }  # fmt: skip


def main() -> None:
    """What torchrun starts."""
    task, recipe, changes, updates = sys.argv[1:]
    told = measure(task, recipe, json.loads(changes), int(updates))
    if int(os.environ.get("RANK", "0")) == 0:
        os.write(1, f"{_MARK}{json.dumps(told)}\n".encode())


if __name__ == "__main__":
    main()
