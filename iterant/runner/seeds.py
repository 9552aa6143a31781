"""Train several seeds of one recipe: ``iterant train --seeds``.

    >>> train_seeds("prefix-sums", recipe="paper", seeds=[0, 1, 2], out="runs/sums").counts
    {'done': 3, 'running': 0, 'waiting': 0, 'failed': 0, 'left': 0}

This is a sweep in ``runs/sums`` whose run folders ``runs/sums-s0`` … lie beside it. Each seed is
trained by its own process, so its result is the same as when trained alone, and
``iterant sweep status runs/sums`` shows the progress.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from iterant import registry
from iterant.errors import RunError, UsageError
from iterant.io import RunFolder
from iterant.io.files import check_writable_folder
from iterant.runner.folder import SweepFolder, SweepStatus, status
from iterant.runner.plan import Plan, PlannedRun, check_seeds
from iterant.runner.sweeps import run_here
from iterant.runner.worker import Launch, Say
from iterant.tasks.protocol import Task
from iterant.training.interrupts import seconds
from iterant.training.recipe import RECIPES, Recipe
from iterant.training.recipe import recipe as named_recipe
from iterant.training.run import find_task, recipe_for, task_and_recipe
from iterant.training.run import plan as check_recipe

_RUNS_PER_GPU = 8


def train_seeds(
    task: str | None = None,
    *,
    seeds: Sequence[int],
    recipe: Recipe | str = "quick",
    net: str | None = None,
    out: str | Path | None = None,
    resume: str | Path | None = None,
    data: str | Path | None = None,
    device: str = "auto",
    time_limit: str | float | None = None,
    at_once: int | None = None,
    say: Say = lambda _: None,
    options: dict[str, Any] | None = None,
    **changes: Any,
) -> SweepStatus:
    """Train every seed into its own folder ``OUT-s0``, ``OUT-s1`` …; returns their final states.

    A seed that fails does not stop the others. ``resume`` continues the runs ``RESUME-s0`` … and
    starts those that are missing. ``at_once`` is the number of runs side by side, by default 1 on
    a CPU and 8 on a GPU. ``options``: shard_mb, drop_pool and tensorboard of each run. The other
    arguments are those of `iterant.training.run.train`.
    """
    seeds = check_seeds(seeds)
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise UsageError("several processes train one seed together; give --seed, not --seeds")
    if (out is None) == (resume is None):
        raise UsageError("give either out= (new runs) or resume= (runs to continue)")
    base = Path(str(out or resume))
    paths = {seed: base.with_name(f"{base.name}-s{seed}") for seed in seeds}
    if resume is None:
        for seed, path in paths.items():
            if check_writable_folder(path).exists() and any(path.iterdir()):
                raise RunError(
                    f"{path} for seed {seed} exists already; choose another --out, or "
                    f"continue all of them: --resume {base} --seeds {min(seeds)}-{max(seeds)}"
                )
        name, task_object = find_task(task, data)
        full_recipe = recipe_for(task_object, recipe, **({"net": net} if net else {}), **changes)
    else:
        if changes or net:
            raise UsageError("resumed runs keep their recipe; its fields cannot change")
        existing = [path for path in paths.values() if path.exists()]
        if not existing:
            raise RunError(f"there is no run {paths[seeds[0]]} to continue; see: iterant runs")
        # Seeds that are missing get the task and recipe of those that exist.
        config = RunFolder.open(existing[0]).config
        name, data = config["task"], data or config.get("data")
        if task not in (None, name):
            raise RunError(f"{existing[0]} is a run of {name}, not of {task}; leave {task} out")
        task_object, full_recipe = task_and_recipe(config, None, data)
    check_recipe(task_object, full_recipe)
    recipe_name, fields = _as_changes(full_recipe, task_object)
    runs = tuple(
        PlannedRun(path.name, name, recipe_name, seed, fields) for seed, path in paths.items()
    )
    plan = Plan(base.name, runs, data=None if data is None else str(data), options=options or {},
                beside=True)  # fmt: skip
    # A run equals one of `iterant train` bit for bit only with as many threads.
    launch = Launch(threads=torch.get_num_threads(), device=device)
    on_gpu = registry.device(device).type == "cuda"
    with SweepFolder.locked(base, plan) as folder:
        names = [run.name for run in runs if folder.outcome(run.name) is None]
        say(f"{len(names)} of {len(runs)} seeds to train; progress: iterant sweep status {base}")
        run_here(
            folder, names, launch, at_once or (_RUNS_PER_GPU if on_gpu else 1),
            None if time_limit is None else seconds(time_limit), say,
        )  # fmt: skip
    return status(folder)


def _as_changes(recipe: Recipe, task: Task) -> tuple[str, dict[str, Any]]:
    """The name of a recipe and the fields in which it differs from the recipe of that name."""
    recipe = recipe.changed(name=recipe.name.removesuffix(", changed"))
    name = recipe.name if recipe.name in RECIPES else "quick"
    default = named_recipe(name, task.spec.name, recipe.net).described()
    changes = {key: value for key, value in recipe.described().items() if value != default[key]}
    return name, {"net": recipe.net, **changes}
