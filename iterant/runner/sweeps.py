"""Run a plan here or on a cluster, and watch it; train several seeds of a recipe.

    >>> plan = planned("widths", task="prefix-sums", seeds="0-4", grid={"width": [32, 64]})
    >>> done = sweep(plan, at_once=2)                               # here
    >>> done = sweep("widths.toml", on="slurm", cluster=Cluster(partition="gpu", gpus_per_node=1))
    >>> done.counts
    {'done': 10, 'running': 0, 'waiting': 0, 'failed': 0, 'left': 0}

The same call starts a sweep, resumes a stopped one, retries failed runs, and extends it by new
seeds, values or tests.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from iterant import registry
from iterant.errors import RunError, UsageError, argument
from iterant.formatting import counted, duration, seconds
from iterant.io import RunFolder, write_atomic
from iterant.io.files import PathLike, check_writable_folder, lock_holder
from iterant.nets.from_recipe import build_network
from iterant.runner import slurm
from iterant.runner.folder import STOP, SweepFolder, SweepStatus, status
from iterant.runner.plan import Plan, PlannedRun, parse_seeds, read_plan
from iterant.runner.results import collect
from iterant.runner.slurm import Cluster
from iterant.runner.worker import Launch, Say, capacity, run_local
from iterant.tasks.protocol import Task, with_problems
from iterant.training.data import split_sizes
from iterant.training.loop import Signals
from iterant.training.recipe import RECIPES, Recipe
from iterant.training.recipe import recipe as named_recipe
from iterant.training.run import (
    find_task,
    number_is_chosen,
    recipe_for,
    task_and_recipe,
    threads_for,
    threads_of,
)

_RUNS_PER_GPU = 8
"""Seeds of one recipe that share a GPU."""


def sweep(
    plan: Plan | PathLike,
    *,
    out: PathLike | None = None,
    seeds: str | Sequence[int] | None = None,
    on: str = "local",
    launch: Launch | None = None,
    cluster: Cluster | None = None,
    at_once: int | None = None,
    time_limit: str | float | None = None,
    watch: bool = True,
    look_seconds: float = 5.0,
    results: PathLike | None = "results",
    trust: bool = False,
    say: Say = lambda _: None,
) -> SweepStatus:
    """Run a plan, or the plan in a file; returns the state of the sweep at the end.

    ``out`` is runs/NAME unless given. Of a sweep that is there already, the runs of this plan are
    executed. ``at_once`` limits the runs side by side: by default as many as fit here, or as Slurm
    allows. ``time_limit`` is for runs here; a cluster's jobs have their own. Without ``watch`` the
    jobs are submitted and left alone. ``results``: the folder for the result, once all runs ended;
    None: write none. ``trust``: import the user-defined code that the file, or the plan that is
    already in ``out``, names.
    """
    if on not in ("local", "slurm"):
        raise UsageError(registry.unknown_name("place", on, ("local", "slurm")))
    if not isinstance(plan, Plan):
        plan = read_plan(plan, seeds, trust=trust)
    elif seeds is not None:
        raise UsageError("seeds are for a plan in a file; give them to planned() instead")
    launch, cluster = launch or Launch(), cluster or Cluster()
    limit = None if time_limit is None else seconds(time_limit)
    if results is not None:
        check_writable_folder(results)
    path = Path("runs") / plan.name if out is None else Path(out)
    with SweepFolder.locked(path, plan) as folder:
        if trust:
            registry.allow(folder.plan.described())
        before = status(folder, slurm.queued(folder) if on == "slurm" else None)
        names = {run.name for run in plan.runs}
        # Here also the running ones: their processes may be about to save and stop.
        states = ("running", "left") if on == "local" else ("left",)
        left = [run.name for run in before.of(*states) if run.name in names]
        say(f"{len(left)} of {counted(len(names), 'run')} to do; progress: "
            f"iterant sweep status {path}")  # fmt: skip
        if on == "local":
            run_local(
                folder,
                left,
                launch,
                at_once=at_once or capacity(launch),
                limit=limit,
                on_end=lambda name, how: say(f"{name}: {how} ({summary(status(folder))})"),
            )
            now = status(folder)
        else:
            submit = partial(slurm.submit, folder, launch=launch, cluster=cluster, at_once=at_once)
            if left:
                submit(left)
            say(f"{counted(len(left), 'job')} submitted")
            now = _watch(folder, names, submit, look_seconds if watch else None, say)
    if len(now.of("done", "failed")) == len(now.runs) and results is not None:
        say(f"written to {collect(folder, results)}")
    return now


def train_seeds(
    task: str | None = None,
    *,
    seeds: Sequence[int],
    recipe: Recipe | str = "quick",
    out: str | Path | None = None,
    resume: str | Path | None = None,
    data: str | Path | None = None,
    device: str = "auto",
    time_limit: str | float | None = None,
    at_once: int | None = None,
    trust: bool = False,
    say: Say = lambda _: None,
    options: dict[str, Any] | None = None,
    **changes: Any,
) -> SweepStatus:
    """Train several seeds of one recipe into ``OUT-s0``, ``OUT-s1`` …; returns their final states.

        >>> train_seeds("prefix-sums", recipe="paper", seeds=[0, 1, 2], out="runs/sums").counts
        {'done': 3, 'running': 0, 'waiting': 0, 'failed': 0, 'left': 0}

    This is a sweep in OUT whose run folders lie beside it. Each seed is trained by its own process,
    so its result is the same as when trained alone, and one that fails does not stop the others.
    ``resume`` continues the runs ``RESUME-s0`` … and starts those that are missing. ``at_once`` is
    the number of runs side by side, by default 1 on a CPU and 8 on a GPU. ``options``:
    tensorboard of each run. The other arguments are those of `train`.
    """
    seeds = parse_seeds(seeds)
    registry.allow([task, changes.get("net")])
    if trust and isinstance(recipe, Recipe):
        registry.allow(recipe.net)
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise UsageError("several processes train one seed together; give one seed, not several")
    if (out is None) == (resume is None):
        raise UsageError("give either out= (new runs) or resume= (runs to continue)")
    base = Path(str(out or resume))
    paths = {seed: base.with_name(f"{base.name}-s{seed}") for seed in seeds}
    if resume is None:
        for seed, path in paths.items():
            if check_writable_folder(path).exists() and any(path.iterdir()):
                raise RunError(
                    f"{path} for seed {seed} exists already; choose another {argument('out')}, or "
                    f"continue all of them: {argument('resume', base)} "
                    f"{argument('seeds', f'{min(seeds)}-{max(seeds)}')}"
                )
        threads = None
        name, task_object = find_task(task, data)
        full_recipe = recipe_for(task_object, recipe, **changes)
    else:
        if changes:
            raise UsageError("resumed runs keep their recipe; its fields cannot change")
        existing = [path for path in paths.values() if path.exists()]
        if not existing:
            raise RunError(f"there is no run {paths[seeds[0]]} to continue; see: iterant runs")
        # Seeds that are missing get the task and recipe of those that exist.
        started = RunFolder.open(existing[0])
        config, threads = started.config, None if number_is_chosen() else threads_of(started)
        name, data = config["task"], data or config.get("data")
        if task not in (None, name):
            raise RunError(f"{existing[0]} is a run of {name}, not of {task}; leave {task} out")
        with registry.names_of_file(existing[0], config, trust=trust):
            task_object, full_recipe = task_and_recipe(config, None, data)
    split_sizes(with_problems(task_object, full_recipe.problems), full_recipe)  # checks the batch
    recipe_name, fields = _as_changes(full_recipe, task_object)
    runs = tuple(PlannedRun(path.name, name, recipe_name, seed, fields)
                 for seed, path in paths.items())  # fmt: skip
    plan = Plan(base.name, runs, data=None if data is None else str(data), options=options or {},
                sibling_folders=True)  # fmt: skip
    # A run equals one of `iterant train` bit for bit only with as many threads.
    threads = threads or threads_for(build_network(full_recipe.described(), task_object.spec, 0)[0])
    launch = Launch(threads=threads, device=device)
    if at_once is None:
        at_once = _RUNS_PER_GPU if registry.device(device).type == "cuda" else 1
    return sweep(plan, out=base, launch=launch, at_once=at_once, time_limit=time_limit,
                 results=None, say=say)  # fmt: skip


def _as_changes(recipe: Recipe, task: Task) -> tuple[str, dict[str, Any]]:
    """The name of a recipe and the fields in which it differs from the recipe of that name."""
    recipe = recipe.changed(name=recipe.name.removesuffix(", changed"))
    name = recipe.name if recipe.name in RECIPES else "quick"
    default = named_recipe(name, task.spec.name, recipe.net).described()
    # Notes are prose, and may be of another version.
    fields = {**recipe.described(), "notes": default["notes"]}
    changes = {key: value for key, value in fields.items() if value != default[key]}
    return name, {"net": recipe.net, **changes}


def _watch(
    folder: SweepFolder,
    names: set[str],
    submit: Callable[[Sequence[str]], object],
    look_seconds: float | None,
    say: Say,
) -> SweepStatus:
    """Poll the queue until no job is left; a job missing from it is submitted once more."""
    missing_before: set[str] = set()
    last_counts: dict[str, int] = {}
    with Signals() as signals:
        while True:
            # The queue first: a job that has left it has written all its files.
            now = status(folder, slurm.queued(folder))
            if now.counts != last_counts:
                last_counts = now.counts
                say(summary(now))
            missing = {run.name for run in now.of("left")} & names
            if look_seconds is None or not (now.of("running", "waiting") or missing):
                return now
            if signals.raised is not None or folder.is_stopping():
                say("no longer watching; the jobs continue (stop them with: iterant sweep stop "
                    f"{folder.path})")  # fmt: skip
                return now
            # Only runs missing in two polls in a row: one may be between two states.
            if lost := sorted(missing & missing_before):
                say(f"submitted once more: {', '.join(lost)}")
                submit(lost)
                names = names - set(lost)
            missing_before = missing
            end = time.monotonic() + look_seconds
            while time.monotonic() < end and signals.raised is None:
                time.sleep(0.1)


def summary(now: SweepStatus) -> str:
    """A line: ``4 of 10 done, 2 running, 1 failed, 3 left, about 5 min to go``."""
    parts = [f"{count} {state}" for state, count in now.counts.items() if count or state == "done"]
    parts[0] = f"{now.counts['done']} of {len(now.runs)} done"
    if now.seconds_left:
        parts.append(f"about {duration(now.seconds_left)} to go")
    return ", ".join(parts)


def stop(path: PathLike) -> str:
    """Stop a sweep: its process saves the runs, its jobs on a cluster are cancelled.

    >>> stop("runs/widths")
    """
    folder, texts = SweepFolder.open(path), []
    if holder := lock_holder(folder.path):
        write_atomic(folder.path / STOP, b"")
        texts.append(f"{holder} was asked to save and stop")
    if cancelled := slurm.cancel(folder):
        texts.append(f"{counted(cancelled, 'job was', 'jobs were')} cancelled")
    return "; ".join(texts) or "nothing was running"
