"""``iterant train``: train a network, go on with a run, or show what a recipe comes to.

iterant train mazes --recipe paper --out runs/m0
iterant train --resume runs/m0 --time-limit 9m
iterant train prefix-sums --recipe quick --seeds 0-7 --width 64
iterant train chess --recipe paper --show

``iterant train … --show``: a recipe with every open question answered, to read or as JSON.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from iterant import registry
from iterant.cli.options import (
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
    from iterant.io import RunFolder
    from iterant.tasks.protocol import Task
    from iterant.training.build import Plan
    from iterant.training.logging import Reporter


def show_recipe(task: Task, recipe: Recipe, base: Recipe, *, as_json: bool) -> None:
    """Print the recipe, what differs from the one in the book, and what it comes to."""
    from iterant.training.build import plan

    found = plan(task, recipe)
    if as_json:
        whole = {"task": task.spec.name, "recipe": recipe.described(), **asdict(found)}
        print_plain(json.dumps(whole, indent=2, ensure_ascii=False))
        return
    _print_table(task, recipe, base, found)


def print_plain(text: str) -> None:
    """Text as it is, however wide."""
    console().print(text, soft_wrap=True)


def _print_table(task: Task, recipe: Recipe, base: Recipe, found: Plan) -> None:
    from rich.table import Table

    from iterant.training.build import plan

    screen = console()
    screen.print(f"{task.spec.title}: recipe {recipe.name}", style="bold")
    answers, before, section = _answers(found), _answers(plan(task, base)), ""
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    table.add_column(style="dim", overflow="fold")
    for field in recipe_fields():
        if field.name in ("name", "notes"):
            continue
        if field.section != section:
            section = field.section
            table.add_row()
            table.add_row(section)
        value, old = getattr(recipe, field.name), getattr(base, field.name)
        text, was = (
            _written(found.get(field.name) if given is None else given)
            for given, found in ((value, answers), (old, before))
        )
        about = f"({base.name}: {was}) " if value != old else ""
        table.add_row(f"  {field.name}", text, f"{about}{field.words}")
    screen.print(table)
    screen.print()
    kind = found.network["kind"]
    for line in (
        f"network: {kind}, {found.parameters:,} parameters",
        f"problems: {found.problems:,} trained on, {found.held_out:,} held out for validation",
        f"updates: {found.updates_per_epoch:,} an epoch, {found.updates:,} in all",
        *(f"note: {note}" for note in recipe.notes),
    ):
        screen.print(line, soft_wrap=not screen.is_terminal)


def _answers(found: Plan) -> dict[str, Any]:
    """What a field that is None comes to."""
    config = found.network["config"]
    return {
        "width": config.get("width"),
        "head": config.get("head"),
        "size": found.size,
        "count": found.problems + found.held_out,
    }


def _written(value: Any) -> str:
    """A value as its flag takes it."""
    if isinstance(value, tuple | list):
        return " ".join(map(str, value)) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


_DEFAULT = "quick"


@with_recipe_flags
def train(
    task: Annotated[
        str | None,
        Parameter(help=f"{', '.join(registry.known('task'))}, or module:Class of your own"),
    ] = None,
    /,
    *,
    recipe: Annotated[
        str | None, Parameter(help=f"{', '.join(RECIPES)} [default: {_DEFAULT}]")
    ] = None,
    recipe_file: Annotated[
        Path | None, Parameter(help="a TOML file whose fields change the recipe; flags win over it")
    ] = None,
    out: Annotated[
        Path | None, Parameter(help="the new run folder [default: runs/TASK-RECIPE-SEED]")
    ] = None,
    seed: Annotated[
        int | None, Parameter(help="weights and order of problems [default: 0]")
    ] = None,
    seeds: Annotated[
        str | None,
        Parameter(help="several runs OUT-s0, OUT-s1 …: 0-7 or 0,2,5; side by side on a GPU"),
    ] = None,
    resume: Annotated[
        Path | None, Parameter(help="go on with this run (with --seeds: with RESUME-s0 …)")
    ] = None,
    start: Annotated[
        Path | None,
        Parameter(help="begin the new run with the last weights and moments of this one"),
    ] = None,
    time_limit: Annotated[
        str | None, Parameter(help="stop in time with a checkpoint: 9m, 90s, 1h30m")
    ] = None,
    shard_mb: Annotated[
        float | None,
        Parameter(help="size of a checkpoint file in millions of bytes; tensors stay whole"),
    ] = None,
    drop_pool: Annotated[
        bool,
        Parameter(
            negative="",
            show_default=False,
            help="leave the replay pool out of checkpoints: a resumed run then differs",
        ),
    ] = False,
    device: DeviceName = "auto",
    data: DataPath = None,
    tensorboard: Annotated[
        bool,
        Parameter(
            negative="", show_default=False, help="write events for TensorBoard into RUN/events"
        ),
    ] = False,
    show: Annotated[
        bool,
        Parameter(negative="", show_default=False, help="print the whole recipe and train nothing"),
    ] = False,
    json: Annotated[
        bool, Parameter(negative="", show_default=False, help="print it as JSON (with --show)")
    ] = False,
    **changes: Any,
) -> None:
    """Train a network; every field of its recipe is a flag."""
    if json and not show:
        raise UsageError("--json says how --show prints; give both")
    if resume is not None:
        given = {"--recipe": recipe, "--recipe-file": recipe_file, "--out": out, "--seed": seed,
                 "--start": start}  # fmt: skip
        refused = [flag for flag, value in given.items() if value is not None]
        refused += [f"--{name.replace('_', '-')}" for name in changes]
        refused += ["--show"] if show else []
        if refused:
            raise UsageError(
                f"a resumed run keeps its recipe, seed and folder; leave out {', '.join(refused)}"
            )
        where: dict[str, Any] = {"task": task, "resume": resume}
    else:
        if task is None:
            raise UsageError(
                f"which task? give one of: {', '.join(registry.known('task'))}; "
                "or a run to go on with: --resume DIR"
            )
        made = task_of(task, data)
        base, chosen = resolved(made, _DEFAULT if recipe is None else recipe, recipe_file, changes)
        if show:
            show_recipe(made, chosen, base, as_json=json)
            return
        place = out or free_folder(made, chosen, seed, many=seeds is not None)
        where = {"task": task, "recipe": chosen, "out": place}
        where |= {} if start is None else {"start": start}
    how = {"data": data, "device": device, "time_limit": time_limit, "shard_mb": shard_mb,
           "drop_pool": drop_pool}  # fmt: skip
    if seeds is None:
        _one({**where, **how}, seed or 0, tensorboard)
    elif start is not None:
        raise UsageError("--start is for one run; begin each seed's branch by itself with --seed")
    elif seed is not None:
        raise UsageError("give --seed for one run or --seeds for several, not both")
    else:
        _several({**where, **how}, seeds, tensorboard)


def resolved(
    task: Task, word: str, file: Path | None, changes: dict[str, Any]
) -> tuple[Recipe, Recipe]:
    """The recipe of that name, and the same with the file's fields, then the flags', changed."""
    if isinstance(size := changes.get("size"), str):
        changes = {**changes, "size": task.parse_size(size)}
    net = changes.get("net")
    if net is None and file is not None:
        net = recipe_from_file(file, registry.recipe(word, task.spec.name)).net
    # The book has other figures for other networks, so the network is known first.
    base = registry.recipe(word, task.spec.name, net)
    filed = base if file is None else recipe_from_file(file, base)
    return base, filed.asked(**changes)


def free_folder(task: Task, recipe: Recipe, seed: int | None, *, many: bool) -> Path:
    """``runs/TASK-RECIPE-SEED``, or the same with the first number that makes it new."""
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise UsageError("several processes write into one folder; name it: --out DIR")
    name = f"{task.spec.name}-{recipe.name}" + ("" if many else f"-{seed or 0}")
    place, number = Path("runs") / name, 1
    while place.exists() or any(place.parent.glob(f"{place.name}-s[0-9]*")):
        number += 1
        place = Path("runs") / f"{name}-{number}"
    return place


def _one(how: dict[str, Any], seed: int, tensorboard: bool) -> None:
    """Train or resume one run; rank 0 of several processes speaks."""
    from iterant.cli.live import display
    from iterant.training import train as train_run

    screen = console()
    if int(os.environ.get("RANK", "0")):
        screen.quiet = True
    with display(screen) as shown:
        run = train_run(seed=seed, reporter=_tracked(shown.of(seed), tensorboard), **how)
    best = run.status.best.get("validation")
    if run.state == "finished":
        said = "" if best is None else f"; best on validation: {percent(best)}"
        screen.print(f"finished{said}, kept in {run.path}", soft_wrap=True)
        return
    reason = run.status.reason or run.state
    screen.print(f"{reason} after update {run.status.step:,}; go on with:", soft_wrap=True)
    screen.print(f"  iterant train --resume {run.path}", soft_wrap=True)


def _several(how: dict[str, Any], text: str, tensorboard: bool) -> None:
    """Train or resume several seeds; one that failed does not hide that others did not."""
    from iterant.cli.live import display
    from iterant.training.device import device_of
    from iterant.training.multi_seed import parse_seeds, train_seeds

    screen, seeds = console(), parse_seeds(text)
    if device_of(how["device"]).type == "cpu" and len(seeds) > 1:
        screen.print("on a CPU the seeds are trained one after the other", soft_wrap=True)
    with display(screen, many=True) as shown:
        runs = train_seeds(
            seeds=seeds, reporter=lambda seed: _tracked(shown.of(seed), tensorboard), **how
        )
    failed = [run for run in runs if run.state == "failed"]
    finished = sum(run.state == "finished" for run in runs)
    base, many = how.get("resume") or how.get("out"), counted(len(seeds), "seed")
    screen.print(f"{finished} of {many} finished: {base}-s…", soft_wrap=True)
    if finished + len(failed) < len(seeds):
        screen.print("go on with:")
        screen.print(f"  iterant train --resume {base} --seeds {text}", soft_wrap=True)
    if failed:
        raise TrainingStopped(_failures(failed))


def _failures(failed: list[RunFolder]) -> str:
    first = failed[0]
    names_of = ", ".join(run.path.name for run in failed)
    return f"{len(failed)} failed ({names_of}); {first.path.name}: {first.status.reason}"


def _tracked(reporter: Reporter, tensorboard: bool) -> Reporter:
    """The reporter itself, or one that writes TensorBoard events too."""
    if not tensorboard:
        return reporter
    from iterant.training.logging import TensorBoardReporter

    return TensorBoardReporter(reporter)
