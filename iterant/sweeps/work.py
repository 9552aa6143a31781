"""What one process does for a sweep: train one run, or go on with it, and take its tests.

    $ iterant sweep one runs/widths prefix-sums-quick-width32-s0
    $ torchrun --nproc-per-node 2 -m iterant sweep one runs/widths prefix-sums-quick-width32-s0

Locally and on a cluster the same words are run; nothing else is ever handed over.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from iterant import names
from iterant.errors import TrainingStopped
from iterant.evaluation import evaluate
from iterant.runs import RunFolder
from iterant.sweeps.folder import SweepFolder
from iterant.sweeps.plan import Exam, PlannedRun
from iterant.sweeps.points import recipe_of
from iterant.training.devices import device_of
from iterant.training.progress import Reporter
from iterant.training.start import train
from iterant.zoo.loading import load

STOPPED = 75
"""The exit code of a process that was told to stop and saved: not done, and not failed."""

Say = Callable[[str], None]


def carry_out(
    path: str | Path,
    name: str,
    *,
    resume: bool | None = None,
    device: str = "auto",
    time_limit: str | None = None,
    reporter: Reporter | None = None,
    say: Say = lambda _: None,
) -> bool:
    """Train a run of a sweep and take its tests; False: it was stopped before the end.

    ``resume`` says whether the run has been begun: of several processes none may look, because
    the first of them makes the folder.
    """
    folder = SweepFolder.open(path)
    planned = folder.run(name)
    first = int(os.environ.get("RANK", "0")) == 0
    going = folder.begun(name) if resume is None else resume
    with folder.work_lock(name) if first else contextlib.nullcontext():
        begun = time.monotonic()
        how: dict[str, Any] = {"device": device, "time_limit": time_limit, "reporter": reporter,
                               "data": folder.plan.data}  # fmt: skip
        run = train(resume=folder.run_path(name), **how) if going else _begin(folder, planned, how)
        if run.state != "finished":
            return False
        if first:
            _finish(folder, planned, run, device, time.monotonic() - begun, say)
    return True


def _begin(folder: SweepFolder, planned: PlannedRun, how: dict[str, Any]) -> RunFolder:
    data = folder.plan.data
    task = names.task(planned.task, **({"data": data} if data else {}))
    recipe = recipe_of(planned.recipe, planned.changes, task)
    out = folder.run_path(planned.name)
    return train(planned.task, recipe=recipe, seed=planned.seed, out=out, **how)


def _finish(
    folder: SweepFolder, planned: PlannedRun, run: RunFolder, device: str, seconds: float, say: Say
) -> None:
    """Take the tests that were not taken yet, and write down that the run is done."""
    before = folder.partial_outcome(planned.name) or {"seconds": seconds, "tests": {}}
    tests = dict(before["tests"])
    for test in folder.plan.tests_of(planned):
        if test.key not in tests:
            say(f"test: {test.key}")
            tests[test.key] = _taken(folder, planned, run, test, device)
    status = run.status
    if status.step != status.steps:
        raise TrainingStopped(f"{run.path} says finished at {status.step} of {status.steps}")
    outcome = {"seconds": before["seconds"], "steps": status.steps, "best": dict(status.best),
               "iterations": run.config["recipe"]["iterations"], "tests": tests}  # fmt: skip
    folder.write_outcome(planned.name, outcome)


def _taken(
    folder: SweepFolder, planned: PlannedRun, run: RunFolder, test: Exam, device: str
) -> dict[str, Any]:
    data = folder.plan.data
    task = names.task(planned.task, **({"data": data} if data else {}))
    curve = evaluate(
        load(run.path, device_of(device)), task, size=test.size, count=test.count, seed=test.seed,
        max_steps=test.max_steps,
    )  # fmt: skip
    figures = curve.described()
    figures.pop("operations a problem", None)
    return {"size": test.size, **figures}
