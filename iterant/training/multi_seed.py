"""Train several seeds of one recipe: side by side on a GPU, one after the other on a CPU.

    >>> runs = train_seeds("prefix-sums", recipe="paper", seeds=[0, 1, 2], out="runs/sums")
    >>> [run.path.name for run in runs]
    ['sums-s0', 'sums-s1', 'sums-s2']

One small network does not fill a large GPU. Each run gets a CUDA stream and the runs take turns,
one optimizer step each: while the CPU launches one, the GPU computes the others. The runs share
only the training set, so a seed's result is the same as when trained alone.
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
from iterant.rng import check_seed
from iterant.tasks.protocol import Task
from iterant.training.data import TrainingSet
from iterant.training.interrupts import Clock, Signals, seconds
from iterant.training.logging import Reporter
from iterant.training.loop import RunContext
from iterant.training.recipe import Recipe
from iterant.training.run import (
    RunIterator,
    find_task,
    recipe_for,
    resume_run,
    start_run,
    task_and_recipe,
    use_device,
)

_RUNS_PER_GPU = 8
_MAX_SEEDS = 1000


def parse_seeds(text: str) -> list[int]:
    """Seeds from text: ``0-7``, ``0,2,5``, ``0-3,8``."""
    seeds: list[int] = []
    for part in text.split(","):
        first, dash, last = (word.strip() for word in part.partition("-"))
        ends = [first, last] if dash else [first]
        if not all(end.isascii() and end.isdecimal() for end in ends):
            raise UsageError(f"seeds are written like 0-7 or 0,2,5, got {text!r}")
        low, high = int(ends[0]), int(ends[-1])
        if low > high:
            raise UsageError(f"seeds {low}-{high} run backwards; write {high}-{low}")
        if high - low >= _MAX_SEEDS:
            raise UsageError(f"{low}-{high} are more than {_MAX_SEEDS} seeds; give fewer")
        seeds += range(low, high + 1)
    return check_seeds(seeds)


def check_seeds(seeds: Sequence[int]) -> list[int]:
    """The seeds, if there is at least one, none is negative and all differ."""
    if not seeds:
        raise UsageError("no seeds were given; write them like 0-7 or 0,2,5")
    for index, seed in enumerate(seeds):
        check_seed(seed)
        if seed in seeds[:index]:
            raise UsageError(f"seed {seed} was given twice; each seed is one run")
    return list(seeds)


def seed_folder(out: str | Path, seed: int) -> Path:
    """The run folder of a seed: ``runs/m0-s3``."""
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
    """Train every seed into its own folder ``OUT-s0``, ``OUT-s1`` … and return those started.

    A seed that fails does not stop the others: its folder's state says so. ``resume`` continues
    the runs ``RESUME-s0`` … and starts those that are missing. ``at_once`` is the number of runs
    that share the device, by default 1 on a CPU and 8 on a GPU. The other arguments are those of
    `iterant.training.run.train`; ``reporter`` returns the reporter of a seed.
    """
    seeds = check_seeds(seeds)
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise UsageError("several processes train one seed together; give --seed, not --seeds")
    base = out if resume is None else resume
    if base is None or (out is not None and resume is not None):
        raise UsageError("give either out= (new runs) or resume= (runs to go on with)")
    folders, given_task = {seed: seed_folder(base, seed) for seed in seeds}, task
    torch_device = use_device(device)
    at_once = at_once or (_RUNS_PER_GPU if torch_device.type == "cuda" else 1)
    limit = None if time_limit is None else seconds(time_limit)
    clock = Clock(limit, runs=min(len(seeds), at_once))
    with Signals() as signals:
        if resume is None:
            _check_new(folders)
            name, task = find_task(task, data)
            chosen = recipe_for(task, recipe, net, changes)
        else:
            if changes or net:
                raise UsageError("resumed runs keep their recipe; its fields cannot change")
            existing = [folder for folder in folders.values() if folder.exists()]
            if not existing:
                raise RunError(
                    f"there is no run {folders[seeds[0]]} to go on with; see: iterant runs"
                )
            # Seeds that are missing get the task and recipe of those that exist.
            config = RunFolder.open(existing[0]).config
            name = config["task"]
            task, chosen = task_and_recipe(config, task, data)
        # Built on the main stream, because all runs read it.
        new = resume is None or not all(folder.exists() for folder in folders.values())
        problems = TrainingSet.of(task, chosen, torch_device) if new else None

        def run(seed: int) -> RunIterator:
            own_reporter = Reporter() if reporter is None else reporter(seed)
            context = RunContext(
                torch_device, clock, own_reporter, signals=signals, shard_mb=shard_mb,
                drop_pool=drop_pool,
            )  # fmt: skip
            if resume is not None and folders[seed].exists():
                return (yield from resume_run(given_task, folders[seed], context, data))
            return (
                yield from start_run(name, task, chosen, seed, folders[seed], context, problems)
            )

        def stopping() -> bool:
            return signals.raised is not None or clock.over

        done = set(_take_turns(seeds, run, at_once, torch_device, stopping))
    return [RunFolder.open(folders[seed]) for seed in seeds if seed in done]


def _take_turns(
    seeds: Sequence[int],
    run: Callable[[int], RunIterator],
    at_once: int,
    device: torch.device,
    stopping: Callable[[], bool],
) -> Iterator[int]:
    """Step ``at_once`` runs in turn until all have ended; yields seeds as they end."""
    waiting, active = deque(seeds), deque[tuple[int, RunIterator, Any]]()
    try:
        while waiting or active:
            while waiting and len(active) < at_once and not stopping():
                seed = waiting.popleft()
                active.append((seed, run(seed), own_stream(device)))
            if not active:
                return
            seed, steps, stream = active.popleft()
            with on_stream(stream):
                try:
                    next(steps)
                except (StopIteration, TrainingStopped):
                    yield seed
                    continue
            active.append((seed, steps, stream))
    finally:
        for _, steps, stream in active:
            with on_stream(stream):
                steps.close()


def own_stream(device: torch.device) -> Any:
    """A new CUDA stream that waits for all work queued so far; None on a CPU."""
    if device.type != "cuda":
        return None
    make: Any = torch.cuda.Stream
    stream = make(device)
    stream.wait_stream(torch.cuda.current_stream(device))
    return stream


def on_stream(stream: Any) -> AbstractContextManager[object]:
    """Launch everything within on that stream; None: as usual."""
    return contextlib.nullcontext() if stream is None else torch.cuda.stream(stream)


def _check_new(folders: Mapping[int, Path]) -> None:
    """Refuse all folders if one exists, before the first run starts."""
    for seed, folder in folders.items():
        if check_writable_folder(folder).exists() and any(folder.iterdir()):
            raise RunError(
                f"{folder} for seed {seed} is there already; choose another --out, or go on with "
                f"all of them: --resume {str(folder).removesuffix(f'-s{seed}')} "
                f"--seeds {min(folders)}-{max(folders)}"
            )
