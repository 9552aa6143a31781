"""Sweeps: plan, run here or on a cluster, watch, collect the result.

    >>> done = sweep("widths.toml", at_once=2)                      # here
    >>> done = sweep("widths.toml", on="slurm", cluster=Cluster(partition="gpu", gpus_per_node=1))
    >>> done.counts
    {'done': 10, 'running': 0, 'waiting': 0, 'failed': 0, 'left': 0}

The same call starts a sweep, goes on with a stopped one, retries failed runs, and extends it by new
seeds, values or tests. Seeds of a point are averaged; runs that failed are named beside the average
with their error.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from iterant import registry
from iterant.draw.plots import save_curves
from iterant.errors import RunError, UsageError
from iterant.evaluation import Curve
from iterant.formatting import counted, duration
from iterant.io import write_result
from iterant.io.files import PathLike, check_writable_folder, make_folder
from iterant.io.lock import lock_holder, lock_info
from iterant.runner import slurm
from iterant.runner.folder import Failures, SweepFolder, SweepStatus, refuse_foreign, status
from iterant.runner.local import capacity, run_local
from iterant.runner.plan import Plan, PlannedRun, TestSpec, read_plan
from iterant.runner.slurm import Cluster
from iterant.runner.worker import Launch
from iterant.training.interrupts import Signals, seconds

_MOST_CURVES = 12
"""Curves in one picture, at most."""


def collect(
    folder: SweepFolder, results: PathLike = "results", *, command: str | None = None
) -> list[Path]:
    """Write the result and its pictures; returns their paths."""
    seen = status(folder)
    place = make_folder(results)
    seeds = sorted({run.seed for run in folder.plan.runs})
    written = [
        write_result(folder.plan.name, figures(folder, seen), seed=seeds, folder=place,
                     command=command)
    ]  # fmt: skip
    for test in folder.plan.tests:
        curves, regimes = _curves(folder, test)
        if curves:
            path = place / f"{folder.plan.name}-{_slug(test)}.png"
            regime = regimes.pop() if len(regimes) == 1 else None
            written.append(save_curves(curves, path, regime=regime, title=test.key))
    return written


def figures(folder: SweepFolder, seen: SweepStatus) -> dict[str, Any]:
    """The figures of the result: counts, points and every run."""
    counts = seen.counts
    states = {run.name: run for run in seen.runs}
    runs: dict[str, Any] = {}
    for name, planned in folder.planned.items():
        outcome = folder.outcome(name)
        state = states[name]
        runs[name] = {
            "task": planned.task, "recipe": planned.recipe, "seed": planned.seed,
            "changes": planned.changes, "state": state.state,
            **({"error": state.error} if state.error else {}),
            **({key: outcome.get(key) for key in ("seconds", "steps", "best", "tests")}
               if outcome else {}),
        }  # fmt: skip
    return {
        "complete": counts["done"] == len(seen.runs),
        "counts": counts,
        "points": {point: _point(some, runs) for point, some in points_of(folder).items()},
        "runs": runs,
    }


def points_of(folder: SweepFolder) -> dict[str, list[PlannedRun]]:
    """The runs of each point, in the order of the plan."""
    found: dict[str, list[PlannedRun]] = {}
    for run in folder.plan.runs:
        found.setdefault(run.point, []).append(run)
    return found


def _point(planned: Sequence[PlannedRun], runs: Mapping[str, Any]) -> dict[str, Any]:
    done = [runs[run.name] for run in planned if runs[run.name]["state"] == "done"]
    missing = {
        run.name: runs[run.name].get("error") or runs[run.name]["state"]
        for run in planned
        if runs[run.name]["state"] != "done"
    }
    tests = dict.fromkeys(key for run in done for key in run["tests"])
    return {
        "settings": planned[0].varied,
        "seeds": f"{len(done)} of {len(planned)}",
        "missing": missing,
        "best on validation": _spread([run["best"].get("validation") for run in done]),
        "tests": {
            key: {
                what: _spread([run["tests"][key][what]["accuracy"] for run in done
                               if key in run["tests"]])
                for what in ("peak", "end")
            }
            for key in tests
        },
    }  # fmt: skip


def _spread(values: Sequence[float | None]) -> dict[str, Any] | None:
    """Mean and spread over the runs that have the figure."""
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


def _curves(folder: SweepFolder, test: TestSpec) -> tuple[dict[str, Curve], set[int]]:
    """The curve of each point, its seeds' problems taken together."""
    curves: dict[str, Curve] = {}
    regimes: set[int] = set()
    for planned in points_of(folder).values():
        outcomes = [folder.outcome(run.name) for run in planned]
        done = [outcome for outcome in outcomes if outcome and test.key in outcome["tests"]]
        taken = [outcome["tests"][test.key] for outcome in done]
        if not taken or len(curves) == _MOST_CURVES:
            continue
        lengths = {len(one["solved"]) for one in taken}
        if len(lengths) > 1:
            continue
        settings = ", ".join(f"{key} {value}" for key, value in planned[0].varied.items())
        title = ", ".join(filter(None, [planned[0].task, planned[0].recipe, settings]))
        curves[f"{title} ({len(taken)} of {len(planned)} seeds)"] = Curve(
            steps=tuple(taken[0].get("steps") or range(1, lengths.pop() + 1)),
            solved=torch.tensor([one["solved"] for one in taken]).sum(0),
            count=sum(one["problems"] for one in taken),
            change=float("nan"),
        )
        regimes |= {outcome["iterations"] for outcome in done}
    return curves, regimes


def _slug(test: TestSpec) -> str:
    """A test as part of a file name."""
    return re.sub(r"[^A-Za-z0-9]+", "-", test.key).strip("-")


PLACES = ("local", "slurm")

Say = Callable[[str], None]


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
    say: Say = lambda _: None,
) -> SweepStatus:
    """Run a plan, or the plan in a file; returns where the sweep stands then.

    ``out`` is runs/NAME unless given. ``time_limit`` is for runs here; a cluster's jobs have
    their own. Without ``watch`` the jobs are submitted and left alone. ``results``: the folder
    for the result, once all runs ended; None: write none.
    """
    if on not in PLACES:
        raise UsageError(registry.unknown_name("place", on, PLACES))
    if at_once is not None and at_once < 1:
        raise UsageError(f"at least one run must go at once, got {at_once}")
    if not isinstance(plan, Plan):
        plan = read_plan(plan, seeds)
    elif seeds is not None:
        raise UsageError("seeds are for a plan in a file; give them to planned() instead")
    launch, limit = launch or Launch(), None if time_limit is None else seconds(time_limit)
    if launch.nodes > 1 and on == "local":
        raise UsageError("here is one node; give --nodes with --on slurm")
    if results is not None:
        check_writable_folder(results)
    folder = make_folder(Path("runs") / plan.name if out is None else out)
    refuse_foreign(folder)
    with SweepFolder(folder, plan).lock():
        opened = SweepFolder.prepare(folder, plan)
        before = status(opened, slurm.queued(opened) if on == "slurm" else None)
        for run in before.of("failed"):  # asked for again: they get their attempts back
            opened.write_failures(run.name, Failures(0, run.error))
        left = [run.name for run in before.runs if run.state in ("left", "failed")]
        say(f"{len(left)} of {counted(len(opened.planned), 'run')} to do in {folder}")
        if on == "local":
            side_by_side = at_once or capacity(launch)

            def ended(name: str, how: str) -> None:
                error = opened.failures(name).error if how == "failed" else None
                state = summary(status(opened, at_once=side_by_side))
                say(f"{name}: {how}{f': {error}' if error else ''} ({state})")

            if left:
                run_local(opened, left, launch, at_once=side_by_side, limit=limit, ended=ended)
            now = status(opened)
        else:
            if left:
                slurm.submit(opened, left, launch, cluster or Cluster())
            say(f"{counted(len(left), 'job')} submitted")
            now = _watch(opened, launch, cluster or Cluster(), look_seconds if watch else None, say)
    if now.ended and results is not None:
        for path in collect(opened, results):
            say(f"written to {path}")
    return now


def _watch(
    folder: SweepFolder, launch: Launch, cluster: Cluster, look_seconds: float | None, say: Say
) -> SweepStatus:
    """Poll the queue until no job is left; a job that vanished is submitted once more."""
    again: set[str] = set()
    missed: set[str] = set()
    shown: dict[str, int] = {}
    with Signals() as signals:
        while True:
            # The queue first: a job that has left it has written all its files.
            now = status(folder, slurm.queued(folder))
            if now.counts != shown:
                shown = now.counts
                say(summary(now))
            open_runs = now.of("running") + now.of("waiting")
            vanished = {run.name for run in now.of("left")} - again
            if look_seconds is None or (not open_runs and not vanished):
                return now
            if signals.raised is not None:
                say("no longer watching; the jobs go on (stop them with: iterant sweep stop "
                    f"{folder.path})")  # fmt: skip
                return now
            lost = sorted(vanished & missed)
            if lost:
                say(f"submitted once more: {', '.join(lost)}")
                slurm.submit(folder, lost, launch, cluster)
                again |= set(lost)
            missed = vanished
            end = time.monotonic() + look_seconds
            while time.monotonic() < end and signals.raised is None:
                time.sleep(0.1)


def summary(now: SweepStatus) -> str:
    """A line: ``4 of 10 done, 2 running, 1 failed, 3 left, about 5 min to go``."""
    counts = now.counts
    parts = [f"{counts['done']} of {len(now.runs)} done"]
    parts += [f"{counts[state]} {state}" for state in ("running", "waiting", "failed", "left")
              if counts[state]]  # fmt: skip
    if now.seconds_left:
        parts.append(f"about {duration(now.seconds_left)} to go")
    return ", ".join(parts)


def stop(path: PathLike) -> str:
    """Stop a sweep: its process here saves the runs, its jobs on a cluster are cancelled.

    >>> stop("runs/widths")
    """
    folder = SweepFolder.open(path)
    texts = []
    who = lock_info(folder.path)
    if who is not None:
        if who.get("host") != socket.gethostname():
            words = lock_holder(folder.path) or "another process"
            raise RunError(f"{folder.path} is run by {words}; stop it there")
        os.kill(int(who["pid"]), signal.SIGTERM)
        texts.append(f"process {who['pid']} was told to save and leave")
    cancelled = slurm.cancel(folder)
    if cancelled:
        texts.append(f"{counted(cancelled, 'job was', 'jobs were')} cancelled")
    return "; ".join(texts) or "nothing was running"
