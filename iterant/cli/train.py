"""``iterant train``: train a network, resume a run, or show a recipe."""

from __future__ import annotations

import shlex
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypedDict, get_type_hints

from cyclopts import Group, Parameter

from iterant import registry
from iterant.cli.options import (
    FLAG,
    SEVERAL,
    TASKS,
    DataPath,
    DeviceName,
    Duration,
    Seed,
    Seeds,
    TrustCode,
)
from iterant.cli.output import echo, output_may_fail, print_table
from iterant.cli.sweep import print_outcome
from iterant.errors import UsageError
from iterant.formatting import percent
from iterant.io.files import read_toml
from iterant.io.run_folder import free_folder
from iterant.training.recipe import OLD_NAMES, RECIPES, Recipe
from iterant.training.recipe import recipe as named_recipe

if TYPE_CHECKING:
    from iterant.tasks.protocol import Task

_DEFAULT = "quick"


def _flags() -> dict[str, Any]:
    """The types of the flags of a recipe: all its fields but the notes, and their old names."""
    types, flags, group = get_type_hints(Recipe), dict[str, Any](), Group("")
    for number, field in enumerate(fields(Recipe)):
        if field.name == "notes":
            continue
        if section := field.metadata["section"]:  # of this field and those after it
            group = Group(section, sort_key=number + 1)
        # The task knows how its sizes are written: 32, or 0:600000.
        kind: Any = str if field.name == "size" else types[field.name]
        extra = SEVERAL if "tuple" in str(kind) else Parameter()
        text = Parameter(help=field.metadata["help"], group=group)
        flags[field.name] = Annotated[kind | None, extra, text]
    hidden = Parameter(show=False)
    return flags | {old: Annotated[types[name] | None, hidden] for old, name in OLD_NAMES.items()}


if TYPE_CHECKING:
    RecipeFlags = dict[str, Any]
else:
    # Holds only the flags that are given: --grad-clip none differs from no --grad-clip.
    RecipeFlags = TypedDict("RecipeFlags", _flags(), total=False)


def train(
    task: Annotated[str | None, Parameter(help=TASKS)] = None,
    /,
    *,
    recipe: Annotated[
        str | None, Parameter(help=f"{', '.join(RECIPES)} [default: {_DEFAULT}]")
    ] = None,
    recipe_file: Path | None = None,
    out: Path | None = None,
    seed: Seed | None = None,
    seeds: Seeds | None = None,
    resume: Path | None = None,
    init_from: Annotated[Path | None, Parameter(name=("--init-from", "--start"))] = None,
    time_limit: Duration | None = None,
    device: DeviceName = "auto",
    data: DataPath = None,
    tensorboard: Annotated[bool, FLAG] = False,
    show: Annotated[bool, FLAG] = False,
    json: Annotated[bool, FLAG] = False,
    trust_code: TrustCode = False,
    flags: Annotated[RecipeFlags | None, Parameter(name="*")] = None,
) -> None:
    """Train a network; every field of its recipe is a flag.

    iterant train mazes --out runs/m0
    iterant train --resume runs/m0 --time-limit 9m
    iterant train prefix-sums --recipe quick --seeds 0-7 --width 64
    iterant train chess --recipe paper --show

    Args:
        recipe_file: a TOML file whose fields change the recipe; flags take precedence
        out: the new run folder [default: runs/TASK-RECIPE-SEED]
        seed: of the weights and the order of problems [default: 0]
        seeds: several runs OUT-s0, OUT-s1 …, a process each: 0-7 or 0,2,5; in parallel on a GPU
        resume: continue this run (with --seeds: RESUME-s0 …)
        init_from: begin the new run with the last weights and optimizer state of this one
        time_limit: save a checkpoint and stop before this time is over: 9m, 90s, 1h30m; twice the
            longest step or validation is reserved for that, at most a quarter
        tensorboard: write events for TensorBoard into RUN/events
        show: print the whole recipe and train nothing
        json: with --show: print the recipe as JSON
    """
    changes = flags or {}
    if json and not show:
        raise UsageError("--json says how --show prints; give both")
    if seeds is not None and init_from is not None:
        raise UsageError("--init-from is for one run; start each seed by itself with --seed")
    if seeds is not None and seed is not None:
        raise UsageError("give --seed for one run or --seeds for several, not both")
    arguments: dict[str, Any] = {"task": task, "data": data, "device": device,
                                 "time_limit": time_limit, "trust": trust_code}  # fmt: skip
    if resume is not None:
        fixed = {"recipe": recipe, "recipe-file": recipe_file, "out": out, "seed": seed,
                 "init-from": init_from, "show": show or None}  # fmt: skip
        names = [*(flag for flag, value in fixed.items() if value is not None), *changes]
        if names:
            given = ", ".join(f"--{name.replace('_', '-')}" for name in names)
            raise UsageError(f"a resumed run keeps its recipe, seed and folder; leave out {given}")
        arguments["resume"] = resume
    elif task is None:
        raise UsageError(
            f"which task? give one of: {', '.join(registry.known('task'))}; "
            "or a run to continue: --resume DIR"
        )
    else:
        registry.allow([task, changes.get("net")])
        task_object = registry.task(task, data=data)
        in_file = {} if recipe_file is None else read_toml(recipe_file)
        if trust_code:
            registry.allow(in_file.get("net"))
        full_recipe = _recipe(task_object, recipe or _DEFAULT, in_file, changes)
        if show:
            _show_recipe(task_object, full_recipe, as_json=json)
            return
        if out is None:
            name = f"{task_object.spec.name}-{full_recipe.name}"
            out = free_folder(name if seeds is not None else f"{name}-{seed or 0}")
        arguments |= {"recipe": full_recipe, "out": out}
    with output_may_fail():
        if seeds is None:
            _train_one({**arguments, "seed": seed, "init_from": init_from}, tensorboard=tensorboard)
        else:
            _train_several(arguments, seeds, tensorboard=tensorboard)


def _recipe(task: Task, name: str, in_file: dict[str, Any], changes: dict[str, Any]) -> Recipe:
    """The named recipe with the fields of a file, then of the flags, changed."""
    from iterant.tasks.protocol import with_problems
    from iterant.training.run import recipe_for

    # Recipes differ between networks, so the network must be known first.
    net = changes.get("net", in_file.get("net"))
    changed = named_recipe(name, task.spec.name, net).changed(**in_file)
    if isinstance(size := changes.get("size"), str):  # which sizes are valid depends on the kind
        kind = with_problems(task, changes.get("problems", changed.problems))
        changes = {**changes, "size": kind.parse_size(size)}
    return recipe_for(task, changed, **changes)


def _train_one(arguments: dict[str, Any], *, tensorboard: bool) -> None:
    from iterant.training.logging import LineReporter, TensorBoardReporter
    from iterant.training.run import train as train_run

    lines = LineReporter(echo)
    run = train_run(reporter=TensorBoardReporter(lines) if tensorboard else lines, **arguments)
    path = shlex.quote(str(run.path))
    if run.state == "finished":
        best = run.status.best.get("validation")
        text = "" if best is None else f"; best on validation: {percent(best)}"
        echo(f"finished{text}, kept in {run.path}")
        if (name := run.config["task"]) in registry.known("task"):
            larger = registry.task(name).spec.watch_sizes[-1]
            size = f" --size {larger}" if isinstance(larger, int) else ""
            echo(f"solve with it: iterant solve {name} --net {path}{size}{_trust()}")
        return
    echo(f"{run.status.reason or run.state} after step {run.status.step:,}; continue with:")
    echo(f"  iterant train --resume {path}{_trust()}")


def _train_several(arguments: dict[str, Any], seeds: str, *, tensorboard: bool) -> None:
    from iterant.runner import parse_seeds, train_seeds

    final = train_seeds(
        seeds=parse_seeds(seeds), options={"tensorboard": tensorboard}, say=echo, **arguments
    )
    folder = shlex.quote(str(arguments.get("resume") or arguments.get("out")))
    command = f"iterant train --resume {folder} --seeds {seeds}{_trust()}"
    if final.of("left"):
        echo("continue with:")
        echo(f"  {command}")
    print_outcome(final, command)


def _trust() -> str:
    """The flag that a command needs to continue this one, if it runs user-defined code."""
    return " --trust-code" if registry.allowed() else ""


def _show_recipe(task: Task, recipe: Recipe, *, as_json: bool) -> None:
    """Print the recipe, the network and the optimizer steps."""
    import json

    from iterant.training.run import run_summary

    summary = run_summary(task, recipe)
    if as_json:
        whole = {"task": task.spec.name, "recipe": recipe.described(), **summary}
        for line in json.dumps(whole, indent=2).split("\n"):
            echo(line)
        return
    echo(f"{task.spec.title}: recipe {recipe.name}", style="bold")
    shown = [field for field in fields(Recipe) if field.name not in ("name", "notes")]
    print_table(
        None,
        *([one.name, str(getattr(recipe, one.name)), one.metadata["help"]] for one in shown),
    )
    echo()
    config = ", ".join(f"{name} {value}" for name, value in summary["network"]["config"].items())
    echo(f"network: {summary['network']['kind']}, {summary['parameters']:,} parameters; {config}")
    echo(f"problems: {summary['problems']:,} for training, {summary['held_out']:,} for validation")
    echo(f"steps: {summary['steps_per_epoch']:,} per epoch, {summary['steps']:,} in total")
    for note in recipe.notes:
        echo(f"note: {note}")
