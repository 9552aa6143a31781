"""Several seeds of one recipe: side by side on a GPU, one after the other on a CPU.

    >>> runs = train_seeds("prefix-sums", recipe="paper", seeds=[0, 1, 2], out="runs/sums")
    >>> [run.path.name for run in runs]
    ['sums-s0', 'sums-s1', 'sums-s2']

A small network does not fill a large card. So each seed has a CUDA stream of its own, and the runs
take turns, an update each: while one is being launched, the others compute. Nothing else is
shared but the problems, so a seed trained among others is the seed trained alone.
"""

from __future__ import annotations

import contextlib
import os
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import torch

from iterant.errors import RunError, TrainingStopped, UsageError
from iterant.io import RunFolder
from iterant.io.files import check_writable_folder
from iterant.tasks.protocol import Task
from iterant.tasks.rng import check_seed
from iterant.training.data import TrainingSet
from iterant.training.distributed import ProcessGroup
from iterant.training.interrupts import Clock, Signals, seconds
from iterant.training.logging import Reporter, SilentReporter
from iterant.training.loop import CheckpointOptions
from iterant.training.recipe import Recipe
from iterant.training.run import (
    RunContext,
    RunIterator,
    recipe_for,
    resume_run,
    start_run,
    task_named,
    task_of_run,
    use_device,
)

SIDE_BY_SIDE = 8
"""Runs that share a GPU unless somebody says otherwise."""

_MOST = 1000


def parse_seeds(text: str) -> list[int]:
    """Seeds as people write them: ``0-7``, ``0,2,5``, ``0-3,8``."""
    found: list[int] = []
    for part in text.split(","):
        first, dash, last = (word.strip() for word in part.partition("-"))
        ends = [first, last] if dash else [first]
        if not all(end.isascii() and end.isdecimal() for end in ends):
            raise UsageError(f"seeds are written like 0-7 or 0,2,5, got {text!r}")
        low, high = int(ends[0]), int(ends[-1])
        if low > high:
            raise UsageError(f"seeds {low}-{high} run backwards; write {high}-{low}")
        if high - low >= _MOST:
            raise UsageError(f"{low}-{high} are more than {_MOST} seeds; give fewer")
        found += range(low, high + 1)
    return check_seeds(found)


def check_seeds(seeds: Sequence[int]) -> list[int]:
    """The seeds themselves if they are some, different and none is negative."""
    if not seeds:
        raise UsageError("no seeds were given; write them like 0-7 or 0,2,5")
    for place, seed in enumerate(seeds):
        check_seed(seed)
        if seed in seeds[:place]:
            raise UsageError(f"seed {seed} was given twice; each seed is one run")
    return list(seeds)


def seed_folder(out: str | Path, seed: int) -> Path:
    """Where a seed's run lies: ``runs/m0-s3``."""
    out = Path(out)
    return out.with_name(f"{out.name}-s{seed}")


def train_seeds(
    task: Task | str | None = None,
    *,
    seeds: Sequence[int],
    recipe: Recipe | str = "quick",
    net: str | None = None,
    out: str | Path | None = None,
    resume: str | Path | None = None,
    data: str | Path | None = None,
    device: str = "auto",
    time_limit: str | float | None = None,
    shard_mb: float | None = None,
    drop_pool: bool = False,
    at_once: int | None = None,
    reporter: Callable[[int], Reporter] | None = None,
    **changes: Any,
) -> list[RunFolder]:
    """Train every seed into its own folder ``OUT-s0``, ``OUT-s1`` … and return those begun.

    A seed that fails does not stop the others: its folder's state says so. ``resume`` goes on
    with the runs ``RESUME-s0`` …, and begins those that were not started. ``at_once`` is how many
    share the device: 1 on a CPU, 8 on a GPU.
    """
    seeds = check_seeds(seeds)
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise UsageError("several processes train one seed together; give --seed, not --seeds")
    base = out if resume is None else resume
    if base is None or (out is not None and resume is not None):
        raise UsageError("give either out= (new runs) or resume= (runs to go on with)")
    folders = {seed: seed_folder(base, seed) for seed in seeds}
    checkpoints = CheckpointOptions(shard_mb, pool=not drop_pool)
    where = use_device(device)
    together = min(len(seeds), at_once or (SIDE_BY_SIDE if where.type == "cuda" else 1))
    clock = Clock(None if time_limit is None else seconds(time_limit), runs=together)
    listeners = reporter or (lambda _: SilentReporter())
    with Signals() as signals:

        def context(seed: int) -> RunContext:
            return RunContext(where, ProcessGroup(), checkpoints, listeners(seed), clock, signals)

        if resume is None:
            _refuse_taken(folders)
            word, made = task_named(task, data)
            chosen = recipe_for(made, recipe, net, changes)
        else:
            if changes or net:
                raise UsageError("resumed runs keep their recipe; its fields cannot change")
            word, made, chosen = _as_begun(task, folders, data)
        # Before any run has a stream of its own, for all of them will read it.
        new = resume is None or not all(folder.exists() for folder in folders.values())
        shared = TrainingSet.of(made, chosen, where) if new else None

        def going(seed: int) -> RunIterator:
            if resume is not None and folders[seed].exists():
                return (yield from resume_run(task, folders[seed], context(seed), data))
            return (
                yield from start_run(word, made, chosen, seed, folders[seed], context(seed), shared)
            )

        def enough() -> bool:
            return signals.raised is not None or clock.over

        ended = set(_in_turns(seeds, going, together, where, enough))
    return [RunFolder.open(folders[seed]) for seed in seeds if seed in ended]


def _in_turns(
    seeds: Sequence[int],
    going: Callable[[int], RunIterator],
    at_once: int,
    device: torch.device,
    enough: Callable[[], bool],
) -> Iterator[int]:
    """An update of each run in turn, at most so many side by side; gives the seeds as they end."""
    waiting, turns = deque(seeds), deque[tuple[int, RunIterator, Any]]()
    try:
        while waiting or turns:
            while waiting and len(turns) < at_once and not enough():
                seed = waiting.popleft()
                turns.append((seed, going(seed), own_stream(device)))
            if not turns:
                return
            seed, run, stream = turns.popleft()
            with on_stream(stream):
                try:
                    next(run)
                except (StopIteration, TrainingStopped):
                    yield seed
                    continue
            turns.append((seed, run, stream))
    finally:
        for _, run, stream in turns:
            with on_stream(stream):
                run.close()


def own_stream(device: torch.device) -> Any:
    """A stream for a run of its own, which begins when all that was asked for so far is there."""
    if device.type != "cuda":
        return None
    make: Any = torch.cuda.Stream
    stream = make(device)
    stream.wait_stream(torch.cuda.current_stream(device))
    return stream


def on_stream(stream: Any) -> AbstractContextManager[object]:
    """Everything within is launched on that stream, or as usual where there is none."""
    return contextlib.nullcontext() if stream is None else torch.cuda.stream(stream)


def _refuse_taken(folders: Mapping[int, Path]) -> None:
    """All folders or none: a run that is there already is refused before the first begins."""
    for seed, folder in folders.items():
        if check_writable_folder(folder).exists() and any(folder.iterdir()):
            first, last = min(folders), max(folders)
            raise RunError(
                f"{folder} for seed {seed} is there already; choose another --out, or go on with "
                f"all of them: --resume {str(folder).removesuffix(f'-s{seed}')} "
                f"--seeds {first}-{last}"
            )


def _as_begun(
    task: Task | str | None, folders: Mapping[int, Path], data: str | Path | None
) -> tuple[str, Task, Recipe]:
    """Task and recipe of the runs that exist, for those that do not yet."""
    there = [folder for folder in folders.values() if folder.exists()]
    if not there:
        wanted = next(iter(folders.values()))
        raise RunError(f"there is no run {wanted} to go on with; see: iterant runs")
    config = RunFolder.open(there[0]).config
    made = task_of_run(config, data) if task is None or isinstance(task, str) else task
    return config["task"], made, Recipe().changed(**config["recipe"])
