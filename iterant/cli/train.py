"""``iterant train``: train a network, resume a run, or show a recipe.

iterant train mazes --recipe paper --out runs/m0
iterant train --resume runs/m0 --time-limit 9m
iterant train prefix-sums --recipe quick --seeds 0-7 --width 64
iterant train chess --recipe paper --show
"""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from iterant import registry
from iterant.cli.options import (
    FLAG,
    TASKS,
    DataPath,
    DeviceName,
    console,
    recipe_fields,
    task_of,
    with_recipe_flags,
)
from iterant.errors import TrainingStopped, UsageError
from iterant.formatting import counted, percent
from iterant.training.recipe import Recipe, recipe_from_file
from iterant.training.recipes import RECIPES

if TYPE_CHECKING:
    from iterant.tasks.protocol import Task
    from iterant.training.build import Plan
    from iterant.training.logging import Reporter

_DEFAULT = "quick"


@with_recipe_flags
def train(
    task: Annotated[str | None, Parameter(help=TASKS)] = None,
    /,
    *,
    recipe: Annotated[
        str | None, Parameter(help=f"{', '.join(RECIPES)} [default: {_DEFAULT}]")
    ] = None,
    recipe_file: Path | None = None,
    out: Path | None = None,
    seed: int | None = None,
    seeds: str | None = None,
    resume: Path | None = None,
    start: Path | None = None,
    time_limit: str | None = None,
    shard_mb: float | None = None,
    drop_pool: Annotated[bool, FLAG] = False,
    device: DeviceName = "auto",
    data: DataPath = None,
    tensorboard: Annotated[bool, FLAG] = False,
    show: Annotated[bool, FLAG] = False,
    json: Annotated[bool, FLAG] = False,
    **changes: Any,
) -> None:
    """Train a network; every field of its recipe is a flag.

    Args:
        recipe_file: a TOML file whose fields change the recipe; flags win over it
        out: the new run folder [default: runs/TASK-RECIPE-SEED]
        seed: weights and order of problems [default: 0]
        seeds: several runs OUT-s0, OUT-s1 …: 0-7 or 0,2,5; side by side on a GPU
        resume: go on with this run (with --seeds: with RESUME-s0 …)
        start: begin the new run with the last weights and moments of this one
        time_limit: stop in time with a checkpoint: 9m, 90s, 1h30m
        shard_mb: size of a checkpoint file in millions of bytes; tensors stay whole
        drop_pool: leave the replay pool out of checkpoints: a resumed run then differs
        tensorboard: write events for TensorBoard into RUN/events
        show: print the whole recipe and train nothing
        json: print it as JSON (with --show)
    """
    if json and not show:
        raise UsageError("--json says how --show prints; give both")
    if resume is not None:
        fixed = {"recipe": recipe, "recipe-file": recipe_file, "out": out, "seed": seed,
                 "start": start, **changes, "show": show or None}  # fmt: skip
        refused = [f"--{flag.replace('_', '-')}" for flag in fixed
                   if flag in changes or fixed[flag] is not None]  # fmt: skip
        if refused:
            raise UsageError(
                f"a resumed run keeps its recipe, seed and folder; leave out {', '.join(refused)}"
            )
        where: dict[str, Any] = {"task": task, "resume": resume}
    elif task is None:
        raise UsageError(
            f"which task? give one of: {', '.join(registry.known('task'))}; "
            "or a run to go on with: --resume DIR"
        )
    else:
        opened = task_of(task, data)
        base, chosen = resolve_recipe(opened, recipe, recipe_file, changes)
        if show:
            _show_recipe(opened, chosen, base, as_json=json)
            return
        folder = out or free_folder(opened, chosen, seed, many=seeds is not None)
        where = {"task": task, "recipe": chosen, "out": folder}
        where |= {} if start is None else {"start": start}
    how = {**where, "data": data, "device": device, "time_limit": time_limit,
           "shard_mb": shard_mb, "drop_pool": drop_pool}  # fmt: skip
    if seeds is None:
        _train_one(how, seed or 0, tensorboard)
    elif start is not None:
        raise UsageError("--start is for one run; begin each seed's branch by itself with --seed")
    elif seed is not None:
        raise UsageError("give --seed for one run or --seeds for several, not both")
    else:
        _train_several(how, seeds, tensorboard)


def resolve_recipe(
    task: Task, word: str | None, file: Path | None, changes: dict[str, Any]
) -> tuple[Recipe, Recipe]:
    """The recipe of that name, and the same with the file's fields and then the flags' changed."""
    word = _DEFAULT if word is None else word
    if isinstance(size := changes.get("size"), str):
        changes = {**changes, "size": task.parse_size(size)}
    net = changes.get("net")
    if net is None and file is not None:
        net = recipe_from_file(file, registry.recipe(word, task.spec.name)).net
    # Recipes differ between networks, so the network must be known first.
    base = registry.recipe(word, task.spec.name, net)
    return base, (base if file is None else recipe_from_file(file, base)).asked(**changes)


def free_folder(task: Task, recipe: Recipe, seed: int | None, *, many: bool) -> Path:
    """``runs/TASK-RECIPE-SEED``, with a number behind it if that exists."""
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise UsageError("several processes write into one folder; name it: --out DIR")
    name = f"{task.spec.name}-{recipe.name}" + ("" if many else f"-{seed or 0}")
    folder, number = Path("runs") / name, 1
    while folder.exists() or any(folder.parent.glob(f"{folder.name}-s[0-9]*")):
        number += 1
        folder = Path("runs") / f"{name}-{number}"
    return folder


def _train_one(how: dict[str, Any], seed: int, tensorboard: bool) -> None:
    from iterant.cli.live import display
    from iterant.training import train as train_run

    screen = console()
    screen.quiet = os.environ.get("RANK", "0") != "0"  # rank 0 of several processes prints
    with display(screen) as shown:
        run = train_run(seed=seed, reporter=_reporter(shown.of(seed), tensorboard), **how)
    if run.state == "finished":
        best = run.status.best.get("validation")
        text = "" if best is None else f"; best on validation: {percent(best)}"
        screen.print(f"finished{text}, kept in {run.path}", soft_wrap=True)
        return
    reason = run.status.reason or run.state
    screen.print(f"{reason} after update {run.status.step:,}; go on with:", soft_wrap=True)
    screen.print(f"  iterant train --resume {run.path}", soft_wrap=True)


def _train_several(how: dict[str, Any], text: str, tensorboard: bool) -> None:
    from iterant.cli.live import display
    from iterant.training.multi_seed import parse_seeds, train_seeds

    screen, seeds = console(), parse_seeds(text)
    if registry.device(how["device"]).type == "cpu" and len(seeds) > 1:
        screen.print("on a CPU the seeds are trained one after the other", soft_wrap=True)
    with display(screen, many=True) as shown:
        runs = train_seeds(
            seeds=seeds, reporter=lambda seed: _reporter(shown.of(seed), tensorboard), **how
        )
    failed = [run for run in runs if run.state == "failed"]
    finished = sum(run.state == "finished" for run in runs)
    base = how.get("resume") or how.get("out")
    screen.print(f"{finished} of {counted(len(seeds), 'seed')} finished: {base}-s…", soft_wrap=True)
    if finished + len(failed) < len(seeds):
        screen.print("go on with:")
        screen.print(f"  iterant train --resume {base} --seeds {text}", soft_wrap=True)
    if failed:
        names, first = ", ".join(run.path.name for run in failed), failed[0]
        raise TrainingStopped(
            f"{len(failed)} failed ({names}); {first.path.name}: {first.status.reason}"
        )


def _reporter(reporter: Reporter, tensorboard: bool) -> Reporter:
    if not tensorboard:
        return reporter
    from iterant.training.logging import TensorBoardReporter

    return TensorBoardReporter(reporter)


def _show_recipe(task: Task, recipe: Recipe, base: Recipe, *, as_json: bool) -> None:
    """Print the recipe, what differs from ``base``, and the network and updates that follow."""
    import json

    from rich.table import Table

    from iterant.training.build import plan

    screen, planned = console(), plan(task, recipe)
    if as_json:
        whole = {"task": task.spec.name, "recipe": recipe.described(), **asdict(planned)}
        screen.print(json.dumps(whole, indent=2, ensure_ascii=False), soft_wrap=True)
        return
    screen.print(f"{task.spec.title}: recipe {recipe.name}", style="bold")
    values, base_values, section = _values(recipe, planned), _values(base, plan(task, base)), ""
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    table.add_column(style="dim", overflow="fold")
    for field in recipe_fields():
        name = field.name
        if name in ("name", "notes"):
            continue
        if field.section != section:
            section = field.section
            table.add_row()
            table.add_row(section)
        changed = getattr(recipe, name) != getattr(base, name)
        before = f"({base.name}: {base_values[name]}) " if changed else ""
        table.add_row(f"  {name}", values[name], f"{before}{field.help}")
    screen.print(table)
    screen.print()
    for line in (
        f"network: {planned.network['kind']}, {planned.parameters:,} parameters",
        f"problems: {planned.problems:,} trained on, {planned.held_out:,} held out for validation",
        f"updates: {planned.updates_per_epoch:,} an epoch, {planned.updates:,} in all",
        *(f"note: {note}" for note in recipe.notes),
    ):
        screen.print(line, soft_wrap=not screen.is_terminal)


def _values(recipe: Recipe, planned: Plan) -> dict[str, str]:
    """All fields as their flags take them; None as what it stands for."""

    def text(value: Any) -> str:
        if isinstance(value, tuple | list):
            return " ".join(map(str, value)) or "none"
        if isinstance(value, bool):
            return "yes" if value else "no"
        return "none" if value is None else f"{value:g}" if isinstance(value, float) else str(value)

    config = planned.network["config"]
    defaults = {"width": config.get("width"), "head": config.get("head"), "size": planned.size,
                "count": planned.problems + planned.held_out}  # fmt: skip
    return {
        name: text(defaults.get(name) if value is None else value)
        for name, value in vars(recipe).items()
    }
