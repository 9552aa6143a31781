"""Several processes on one run: how much faster, and which part of the time is communication.

    >>> figures = bench_scale("mazes", width=32, processes=(1, 2))
    >>> figures["processes"]["2"]["times faster"], figures["processes"]["2"]["talking"]

Strong scaling: the batch stays the same and is divided, as in training itself, with one all-reduce
of the gradients per update. Communication ("talking") includes waiting for the slowest process.
"""

from __future__ import annotations

import dataclasses
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch

from iterant import registry
from iterant.errors import RunError, UsageError
from iterant.nets import parameter_count
from iterant.training.build import build_network
from iterant.training.data import TrainingSet
from iterant.training.distributed import ProcessGroup, TorchProcessGroup
from iterant.training.interrupts import Clock, Signals
from iterant.training.logging import SilentReporter
from iterant.training.loop import CheckpointOptions, Loop
from iterant.training.trainer import Trainer

_CPU = torch.device("cpu")
_MARK = "bench-scale "
_WARM_UP = 3


class _Timed(TorchProcessGroup):
    """A process group that adds up the time of its communication."""

    talked = 0.0

    def _communicate(self, call: Callable[[], object]) -> None:
        start = time.perf_counter()
        super()._communicate(call)
        self.talked += time.perf_counter() - start


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
    """Updates per second of each number of processes, in turns; medians over the rounds.

    Each process has one thread; the first number is what the others are compared with.
    """
    if updates < 1 or rounds < 1 or not processes or min(processes) < 1:
        raise UsageError("at least one update, round and process are needed")
    changes = {"watch_every": 0, "validate_every": 10_000}
    changes |= {} if width is None else {"width": width}
    changes |= {} if batch is None else {"batch": batch}
    arguments = [task, recipe, json.dumps(changes), str(updates)]
    load = os.getloadavg()[0]
    measured: dict[int, list[dict[str, Any]]] = {count: [] for count in processes}
    for _ in range(rounds):
        for count in processes:
            measured[count].append(_launch(count, arguments))

    def medians(count: int) -> dict[str, float]:
        names = ("updates per second", "talking", "CPU seconds")
        return {name: statistics.median(one[name] for one in measured[count]) for name in names}

    base, rows = medians(processes[0])["updates per second"], {}
    for count, ones in measured.items():
        middle, speeds = medians(count), [one["updates per second"] for one in ones]
        faster = middle["updates per second"] / base
        rows[str(count)] = {
            "updates per second": middle["updates per second"],
            "lowest": min(speeds), "highest": max(speeds), "times faster": faster,
            "efficiency": faster * processes[0] / count, "talking": middle["talking"],
            "CPU seconds an update": middle["CPU seconds"],
        }  # fmt: skip
    first = measured[processes[0]][0]
    return {
        "task": task, "recipe": recipe, "updates": updates, "rounds": rounds,
        **{key: first[key] for key in ("net", "parameters", "batch", "bytes an update")},
        "threads a process": 1, "load before": load, "processes": rows,
    }  # fmt: skip


def _launch(count: int, arguments: Sequence[str]) -> dict[str, Any]:
    """Run `main` in that many processes; what rank 0 prints."""
    torchrun = ["torch.distributed.run", "--standalone", "--nproc-per-node", str(count), "-m"]
    launcher = [sys.executable, "-m", *(torchrun if count > 1 else [])]
    process = subprocess.run(
        [*launcher, "iterant.bench.scale", *arguments], capture_output=True, text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    lines = [line for line in process.stdout.splitlines() if line.startswith(_MARK)]
    if process.returncode or not lines:
        errors = [line for line in process.stderr.splitlines() if "Error" in line] or ["nothing"]
        raise RunError(
            f"{count} processes cannot be measured; the last error: {errors[-1].strip()}"
        )
    figures: dict[str, Any] = json.loads(lines[-1].removeprefix(_MARK))
    return figures


def measure(task: str, recipe: str, changes: dict[str, Any], updates: int) -> dict[str, Any]:
    """This process's part: a few updates to warm up, then those that count."""
    torch.set_num_threads(1)
    processes = _Timed(_CPU) if int(os.environ.get("WORLD_SIZE", "1")) > 1 else ProcessGroup()
    made = registry.task(task)
    chosen = registry.recipe(recipe, made.spec.name).changed(**changes)
    # One epoch with more problems than are needed, so that its end is not timed.
    count = chosen.batch * (updates + 10)
    chosen = dataclasses.replace(chosen, count=count, validation=0.0, epochs=1)
    processes.check(chosen.batch)
    net, _ = build_network(chosen, made.spec, 0)
    trainer = Trainer(net, chosen, _CPU, processes)
    loop = Loop(made, chosen, 0, trainer, TrainingSet.of(made, chosen, _CPU), folder=None,
                reporter=SilentReporter(), checkpoints=CheckpointOptions(),
                processes=processes)  # fmt: skip
    steps = loop.steps(Clock(None), Signals())
    for _ in range(_WARM_UP):
        next(steps)
    talked, start, cpu = getattr(processes, "talked", 0.0), time.perf_counter(), time.process_time()
    for _ in range(updates):
        next(steps)
    seconds = time.perf_counter() - start
    parameters = parameter_count(net)
    return {
        "net": chosen.net, "parameters": parameters, "batch": chosen.batch,
        "bytes an update": 4 * parameters,
        "updates per second": updates / seconds,
        "talking": (getattr(processes, "talked", 0.0) - talked) / seconds,
        "CPU seconds": (time.process_time() - cpu) / updates,
    }  # fmt: skip


def main() -> None:
    """What `_launch` starts."""
    task, recipe, changes, updates = sys.argv[1:]
    figures = measure(task, recipe, json.loads(changes), int(updates))
    if int(os.environ.get("RANK", "0")) == 0:
        os.write(1, f"{_MARK}{json.dumps(figures)}\n".encode())


if __name__ == "__main__":
    main()
