"""Run a plan here or on a cluster, watch it, collect the result; train several seeds of a recipe.

    >>> plan = planned("widths", task="prefix-sums", seeds="0-4", grid={"width": [32, 64]})
    >>> done = sweep(plan, at_once=2)                               # here
    >>> done = sweep("widths.toml", on="slurm", cluster=Cluster(partition="gpu", gpus_per_node=1))
    >>> done.counts
    {'done': 10, 'running': 0, 'waiting': 0, 'failed': 0, 'left': 0}

The same call starts a sweep, resumes a stopped one, retries failed runs, and extends it by new
seeds, values or tests. Seeds of a point are averaged; runs that failed are named beside the average
with their error.
"""

from __future__ import annotations

import os
import re
import statistics
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch

from iterant import registry
from iterant.draw.figure import write_figure
from iterant.draw.plots import Line, Plot, Trace, panels_figure, save_curves
from iterant.errors import RunError, UsageError, argument
from iterant.evaluation import Curve
from iterant.formatting import counted, duration, percent, seconds, size_text
from iterant.io import RunFolder, write_atomic, write_result
from iterant.io.files import PathLike, check_writable_folder, lock_holder, make_folder
from iterant.nets.from_recipe import build_network
from iterant.runner import slurm
from iterant.runner.folder import STOP, SweepFolder, SweepStatus, status
from iterant.runner.plan import Plan, PlannedRun, parse_seeds, read_plan
from iterant.runner.slurm import Cluster
from iterant.runner.worker import Launch, Say, capacity, run_local
from iterant.tasks.protocol import Task
from iterant.threads import number_is_chosen
from iterant.training.interrupts import Signals
from iterant.training.recipe import RECIPES, Recipe
from iterant.training.recipe import recipe as named_recipe
from iterant.training.run import (
    find_task,
    recipe_for,
    run_summary,
    task_and_recipe,
    threads_for,
    threads_of,
)

_MOST_CURVES = 12
"""Curves in one picture, at most."""
_TICKS_WIDTH, _BESIDE = 90, 0.08
"""Characters below the axis of a picture, at most; distance between figures of one point."""
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
    if at_once is not None and at_once < 1:
        raise UsageError(f"at_once must be at least 1, got {at_once}")
    if not isinstance(plan, Plan):
        plan = read_plan(plan, seeds, trust=trust)
    elif seeds is not None:
        raise UsageError("seeds are for a plan in a file; give them to planned() instead")
    launch, cluster = launch or Launch(), cluster or Cluster()
    limit = None if time_limit is None else seconds(time_limit)
    if launch.nodes > 1 and on == "local":
        raise UsageError(f"this machine is one node; several need {argument('on', 'slurm')}")
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
        for file in collect(folder, results):
            say(f"written to {file}")
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
    run_summary(task_object, full_recipe)  # raises the errors of the runs before they start
    recipe_name, fields = _as_changes(full_recipe, task_object)
    runs = tuple(
        PlannedRun(path.name, name, recipe_name, seed, fields) for seed, path in paths.items()
    )
    plan = Plan(base.name, runs, data=None if data is None else str(data), options=options or {},
                beside=True)  # fmt: skip
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


def table(folder: SweepFolder) -> tuple[list[str], list[list[str]]]:
    """The head and a row for each point: mean ± standard deviation over the seeds that are done.

        >>> table(SweepFolder.open("runs/widths"))[0]
        ['', 'seeds', 'validation', 'size 64', 'size 512']

    No rows before the first run is done, and where a function other than ours executes the runs.
    Accuracies of tests are those after the last iteration; a higher peak is named beside them.
    """
    points, tests = _points(folder), _test_names(folder.plan)
    rows = []
    for title, point in points.items():
        cells = [_spread_text(point["best on validation"])]
        for key in tests:
            test = point["tests"].get(key, {})
            end, peak = test.get("end"), test.get("peak")
            more = f" (peak {percent(peak['mean'])})" if end and peak["mean"] > end["mean"] else ""
            cells.append(_spread_text(end) + more)
        rows.append([title, point["seeds"], *cells])
    return ["", "seeds", "validation", *tests.values()], rows


def save_picture(folder: SweepFolder) -> Path | None:
    """Draw the table into ``sweep.png`` in the sweep's folder; None where it has no rows.

    >>> save_picture(SweepFolder.open("runs/widths"))
    PosixPath('runs/widths/sweep.png')
    """
    points, tests = _points(folder), _test_names(folder.plan)
    series = {"validation": [point["best on validation"] for point in points.values()]}
    for key, name in tests.items():
        series[name] = [point["tests"].get(key, {}).get("end") for point in points.values()]
    lines = []
    for index, (name, spreads) in enumerate(series.items()):
        # Beside each other: equal accuracies would hide one another.
        shift = _BESIDE * (index - (len(series) - 1) / 2)
        known = [(at + shift, spread) for at, spread in enumerate(spreads) if spread is not None]
        if known:
            trace = Trace([x for x, _ in known], [100 * spread["mean"] for _, spread in known])
            errors = [100 * (spread["deviation"] or 0.0) for _, spread in known]
            lines.append(Line(trace, name, index, marker="osD^v"[index % 5], spread=errors))
    if not lines:
        return None
    settings = [point["settings"] for point in points.values()]
    names = list(dict.fromkeys(name for each in settings for name in each))
    ticks = [", ".join(str(each.get(name, "")) for name in names) for each in settings]
    if len("  ".join(ticks)) > _TICKS_WIDTH:
        names, ticks = ["row of the table, from 0"], []
    plot = Plot(folder.plan.name, ", ".join(names), "problems solved (%)", share=True, shade=False,
                ticks=tuple(ticks))  # fmt: skip
    return write_figure(panels_figure([(plot, lines)]), folder.path / "sweep.png")


def _points(folder: SweepFolder) -> dict[str, dict[str, Any]]:
    """The figures of every point (`_means`), by title; none before a run of ours is done."""
    runs, groups = _figures(folder)
    if folder.plan.job is not None or not any(run["state"] == "done" for run in runs.values()):
        return {}
    first = [group[0] for group in groups.values()]
    differ = [name for name in ("task", "recipe") if len({getattr(run, name) for run in first}) > 1]
    points = {}
    for run, group in zip(first, groups.values(), strict=True):
        settings = {name: getattr(run, name) for name in differ} | run.varied
        points[_title(run)] = _means(settings, {one.name: runs[one.name] for one in group})
    return points


def _title(run: PlannedRun) -> str:
    """The point of a run: its task, its recipe, and the settings that vary."""
    varied = [f"{name} {value}" for name, value in run.varied.items()]
    return ", ".join([str(run.task), str(run.recipe), *varied])  # any JSON, if the file was edited


def _test_names(plan: Plan) -> dict[str, str]:
    """A short name of every test, by its key."""
    short = {test.key: "training size" if test.size is None else f"size {size_text(test.size)}"
             for test in plan.tests}  # fmt: skip
    return short if len({*short.values()}) == len(short) else {key: key for key in short}


def _spread_text(spread: dict[str, Any] | None) -> str:
    if spread is None:
        return "-"
    deviation = spread["deviation"]
    return percent(spread["mean"]) + (f" ± {100 * deviation:.1f}" if deviation else "")


def _figures(folder: SweepFolder) -> tuple[dict[str, Any], dict[str, list[PlannedRun]]]:
    """The settings, state and figures of every run by name, and the runs of every point."""
    runs: dict[str, Any] = {}
    points: dict[str, list[PlannedRun]] = {}
    for state in status(folder).runs:
        run, outcome = folder.run(state.name), folder.outcome(state.name)
        points.setdefault(run.point, []).append(run)
        runs[run.name] = {
            "task": run.task, "recipe": run.recipe, "seed": run.seed, "changes": run.changes,
            "state": state.state, **({"error": state.error} if state.error else {}),
        }  # fmt: skip
        if outcome is not None:
            figures = ("seconds", "steps", "best", "tests")
            runs[run.name] |= {key: outcome.get(key) for key in figures}
    return runs, points


def collect(folder: SweepFolder, results: PathLike = "results") -> list[Path]:
    """Write the result and its pictures; returns their paths."""
    target, plan, now = make_folder(results), folder.plan, status(folder)
    outcomes = {name: one for name in folder.planned if (one := folder.outcome(name)) is not None}
    runs, points = _figures(folder)
    content = {
        "complete": now.counts["done"] == len(now.runs),
        "counts": now.counts,
        "points": {
            point: _means(group[0].varied, {run.name: runs[run.name] for run in group})
            for point, group in points.items()
        },
        "runs": runs,
    }
    seeds = sorted({run.seed for run in plan.runs})
    written = [write_result(plan.name, content, seed=seeds, folder=target)]
    iterations = {outcome["iterations"] for outcome in outcomes.values()}
    regime = iterations.pop() if len(iterations) == 1 else None
    for test in plan.tests:
        curves: dict[str, Curve] = {}
        for group in points.values():
            tests = [outcomes[run.name]["tests"] for run in group if run.name in outcomes]
            seen = [one[test.key] for one in tests if test.key in one]
            if len({len(one["solved"]) for one in seen}) != 1 or len(curves) == _MOST_CURVES:
                continue
            # The problems of all seeds are taken together.
            curves[f"{_title(group[0])} ({len(seen)} of {len(group)} seeds)"] = Curve(
                steps=tuple(seen[0].get("steps") or range(1, len(seen[0]["solved"]) + 1)),
                solved=torch.tensor([one["solved"] for one in seen]).sum(0),
                count=sum(one["problems"] for one in seen),
            )
        if curves:
            slug = re.sub(r"[^A-Za-z0-9]+", "-", test.key).strip("-")
            path = target / f"{plan.name}-{slug}.png"
            written.append(save_curves(curves, path, regime=regime, title=test.key))
    return written


def _means(settings: dict[str, Any], runs: dict[str, Any]) -> dict[str, Any]:
    """Means over the seeds of a point, and the runs that are missing from them."""
    done = [run for run in runs.values() if run["state"] == "done"]
    tests: dict[str, Any] = {}
    for key in dict.fromkeys(key for run in done for key in run["tests"]):
        figures = [run["tests"][key] for run in done if key in run["tests"]]
        tests[key] = {
            what: _spread([test[what]["accuracy"] for test in figures]) for what in ("peak", "end")
        }
    return {
        "settings": settings,
        "seeds": f"{len(done)} of {len(runs)}",
        "missing": {name: run.get("error") or run["state"] for name, run in runs.items()
                    if run["state"] != "done"},
        "best on validation": _spread([(run["best"] or {}).get("validation") for run in done]),
        "tests": tests,
    }  # fmt: skip


def _spread(values: Sequence[float | None]) -> dict[str, Any] | None:
    """Mean, standard deviation and range over the runs that have the figure."""
    known = [value for value in values if value is not None]
    if not known:
        return None
    return {
        "runs": len(known),
        "mean": statistics.fmean(known),
        "deviation": statistics.stdev(known) if len(known) > 1 else None,
        "lowest": min(known),
        "highest": max(known),
    }
