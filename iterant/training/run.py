"""Start and resume runs: ``iterant train`` from Python.

    >>> run = train("mazes", recipe="paper", seed=0, out="runs/m0", epochs=1)
    >>> run = train(resume="runs/m0", time_limit="9m")
    >>> run = train("mazes", start="runs/m0", out="runs/m1", schedule="cosine")

The last form starts a new run from the weights and optimizer state of another one: for example,
decay the learning rate in a branch and continue the original run later at its constant rate.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from iterant import registry
from iterant.errors import RunError, UsageError
from iterant.io import RunFolder, code_version
from iterant.nets import build, parameter_count
from iterant.rng import check_seed
from iterant.tasks.protocol import Size, Task
from iterant.training.data import TrainingSet, split_sizes
from iterant.training.distributed import ProcessGroup
from iterant.training.interrupts import Clock, Signals, seconds
from iterant.training.logging import Reporter
from iterant.training.loop import Loop, RunContext
from iterant.training.recipe import Recipe, label_changes
from iterant.training.recipe import recipe as named_recipe
from iterant.training.trainer import Trainer, build_network

RunIterator = Generator[None, None, RunFolder]
"""A run in progress: yields after every optimizer step, returns its folder."""


def train(
    task: Task | str | None = None,
    *,
    recipe: Recipe | str = "quick",
    net: str | type[nn.Module] | None = None,
    seed: int = 0,
    out: str | Path | None = None,
    resume: str | Path | None = None,
    start: str | Path | None = None,
    data: str | Path | None = None,
    device: str = "auto",
    time_limit: str | float | None = None,
    shard_mb: float | None = None,
    drop_pool: bool = False,
    until_perfect: bool = False,
    reporter: Reporter | None = None,
    **changes: Any,
) -> RunFolder:
    """Train a network and return its run folder; ``changes`` override fields of the recipe.

        >>> run = train("prefix-sums", epochs=1, count=100, batch=10, out="runs/tiny")
        >>> run.state
        'finished'

    Args:
        task: a task, its name or ``module:Class``; may be left out with ``resume``.
        recipe: a recipe or its name.
        net: the name of a network, ``module:Class`` or a class.
        seed: decides initial weights, order of problems and noise.
        out: a new folder; give either this or ``resume``.
        resume: an existing run folder.
        start: a run whose last weights and optimizer state the new run starts from.
        data: path of the task's problems; for a resumed run, if they were moved.
        device: ``auto``, ``cpu``, ``cuda`` or ``cuda:N``.
        time_limit: save and stop before this time is over: ``9m``, ``1h30m``, or seconds.
        shard_mb: split checkpoints into files of this size, in millions of bytes.
        drop_pool: leave the replay pool out of checkpoints; a resumed run then differs.
        until_perfect: stop at a validation accuracy of 100 %, unless weights are averaged.
        reporter: receives the progress.
        changes: fields of the recipe.
    """
    if (out is None) == (resume is None):
        raise UsageError("give either out= (a new run) or resume= (a run folder to go on with)")
    if isinstance(net, nn.Module):
        kind = type(net).__name__
        raise UsageError(
            f"a run begins with a new network, got a {kind}; give its class: net={kind}"
        )
    net = registry.name_of("net", net) if isinstance(net, type) else net
    check_seed(seed)
    clock = Clock(None if time_limit is None else seconds(time_limit))
    torch_device = use_device(device)
    several = int(os.environ.get("WORLD_SIZE", "1")) > 1  # set by torchrun
    processes = ProcessGroup(torch_device) if several else None
    if reporter is None or (processes and processes.rank):
        reporter = Reporter()
    context = RunContext(
        torch_device, clock, reporter, processes, shard_mb=shard_mb, drop_pool=drop_pool,
        until_perfect=until_perfect,
    )  # fmt: skip
    try:
        if resume is not None:
            changes |= {"net": net} if net else {}
            changes |= {"start": start} if start else {}
            if changes:
                raise UsageError(
                    f"a resumed run keeps its recipe; {', '.join(sorted(changes))} cannot change "
                    "(only --time-limit, --shard-mb, --drop-pool and --device can)"
                )
            steps = resume_run(task, Path(resume), context, data)
        else:
            name, task = find_task(task, data)
            chosen = recipe_for(task, recipe, net, changes)
            steps = start_run(name, task, chosen, seed, Path(str(out)), context, start=start)
        for _ in steps:
            pass
    except BaseException:
        if processes is not None:
            processes.leave()
        raise
    return RunFolder.open(Path(str(out or resume)))


def use_device(name: str) -> torch.device:
    """The device of that name, made the current one."""
    device = registry.device(name)
    if device.type == "cuda":
        torch.cuda.set_device(device)
    return device


@dataclass(frozen=True)
class Plan:
    """A recipe applied to a task: sizes and counts, before anything is trained."""

    network: dict[str, Any]
    """Kind and configuration, as in checkpoints"""
    parameters: int
    size: Size
    """Of the training problems"""
    problems: int
    """Training problems"""
    held_out: int
    """Validation problems"""
    updates_per_epoch: int
    updates: int


def plan(task: Task, recipe: Recipe) -> Plan:
    """What a run with this recipe would be; raises what the run would raise."""
    net, description = build_network(recipe, task.spec, seed=0)
    held_out, problems = split_sizes(task, recipe)
    size, per_epoch = task.check_size(recipe.size), problems // recipe.batch
    return Plan(description, parameter_count(net), size, problems, held_out, per_epoch,
                per_epoch * recipe.epochs)  # fmt: skip


def find_task(task: Task | str | None, data: str | Path | None = None) -> tuple[str, Task]:
    """The name to store for a task, and the task."""
    if task is None:
        raise UsageError("which task? give one of: " + ", ".join(registry.known("task")))
    if isinstance(task, type):
        raise UsageError(f"wanted a task, got the class {task.__name__}; give {task.__name__}()")
    if not isinstance(task, str):
        return _task_name(task), task
    return task, registry.task(task, **({} if data is None else {"data": data}))


def _task_name(task: Task) -> str:
    """``module:Class``, or the task's own name where the class is local to a function."""
    name = registry.name_of("task", type(task))
    return task.spec.name if "<" in name else name


def recipe_for(
    task: Task, recipe: Recipe | str, net: str | None, changes: dict[str, Any]
) -> Recipe:
    """The recipe of that name for a task and a network, with the changes applied."""
    if isinstance(recipe, str):
        recipe = named_recipe(recipe, task.spec.name, net)
    return recipe.asked(**({"net": net} if net else {}), **changes)


def start_run(
    name: str,
    task: Task,
    recipe: Recipe,
    seed: int,
    out: Path,
    context: RunContext,
    problems: TrainingSet | None = None,
    start: str | Path | None = None,
) -> RunIterator:
    """A new run; everything that can fail is checked before its folder is created."""
    processes = context.processes
    first_process = processes is None or processes.rank == 0
    if processes is not None:
        processes.check(recipe.batch)
    if first_process:
        RunFolder.check_new(out)
    recipe = label_changes(recipe, task.spec.name)
    net, description = build_network(recipe, task.spec, seed)
    trainer = Trainer(net, recipe, context.device, processes)
    if start is not None:
        start_from(trainer, Path(start))
    problems = problems or TrainingSet.of(task, recipe, context.device)
    data = getattr(task, "data", None)
    config = {
        "task": name,
        "data": None if data is None else str(Path(data).resolve()),
        "recipe": recipe.described(),
        "net": description,
        "seed": seed,
        **({} if start is None else {"start": str(Path(start).resolve())}),
        # EMA weights keep improving after validation accuracy reaches 100 %; others do not.
        "prefer": "best" if recipe.average is None or recipe.choose == "watch" else "averaged",
    }
    folder = RunFolder.create(out, config) if first_process else None
    if context.drop_pool and recipe.objective == "pool":
        context.reporter.note("checkpoints leave out the replay pool: a resumed run will differ")
    loop = Loop(task, recipe, seed, trainer, problems, context, folder)
    return (yield from _run(loop, out, task.spec.title))


def start_from(trainer: Trainer, path: Path) -> None:
    """Load the last weights, optimizer state, EMA and replay pool of a run, at step 0.

    A pool of another size is not loaded. An EMA that the run did not keep starts at its weights.
    """
    folder = RunFolder.open(path)
    if not folder.has("last"):
        raise RunError(f"{path} has no checkpoint yet; train it first, or begin without start")
    theirs, ours = folder.config.get("recipe", {}).get("optimizer"), trainer.recipe.optimizer
    if theirs != ours:
        raise RunError(
            f"{path} was trained by {theirs}, and its moments mean nothing to {ours}; "
            f"--optimizer {theirs}"
        )
    tensors, _ = folder.load("last")
    slots = trainer.recipe.pool_slots if trainer.recipe.objective == "pool" else 0
    if "pool.filled" in tensors and len(tensors["pool.filled"]) != slots:
        tensors = {name: value for name, value in tensors.items() if not name.startswith("pool.")}
    for name, weight in list(tensors.items()):
        if name.startswith("net."):
            tensors.setdefault(f"average.{name.removeprefix('net.')}", weight)
    try:
        trainer.restore(tensors, 0)
    except (KeyError, RuntimeError, TypeError, ValueError) as error:
        reason = str(error).strip().splitlines()[-1].strip()  # torch begins with a heading line
        raise RunError(
            f"the last checkpoint of {path} does not fit this recipe ({reason}); a branch needs "
            "the network of the run that it begins with"
        ) from error


def resume_run(
    task: Task | str | None,
    path: Path,
    context: RunContext,
    data: str | Path | None = None,
    problems: TrainingSet | None = None,
) -> RunIterator:
    """Continue a run from its last checkpoint."""
    processes, reporter = context.processes, context.reporter
    folder = RunFolder.open(path)
    config = folder.config
    if not {"task", "recipe", "net", "seed"} <= config.keys():
        raise RunError(f"{path} is a run, but not of iterant train; it cannot be resumed")
    name = task if isinstance(task, str) or task is None else _task_name(task)
    if name is not None and name != config["task"]:
        raise RunError(
            f"{path} is a run of {config['task']}, not of {name}; "
            f"resume it as: iterant train {config['task']} --resume {path}"
        )
    if folder.state == "finished":
        reporter.note(f"{path} has finished already; nothing to do")
        return folder
    started, (now, _) = folder.environment.get("commit"), code_version()
    if started != now:
        reporter.note(
            f"this run was begun by another version of the code ({started or 'unknown'} then, "
            f"{now or 'unknown'} now): it goes on, but an unbroken run may have differed"
        )
    task, recipe = task_and_recipe(config, task, data)
    if processes is not None:
        processes.check(recipe.batch)
    net = build(config["net"]["kind"], config["net"]["config"], seed=config["seed"])
    trainer = Trainer(net, recipe, context.device, processes)
    problems = problems or TrainingSet.of(task, recipe, context.device)
    mine = None if processes and processes.rank else folder
    loop = Loop(task, recipe, config["seed"], trainer, problems, context, mine)
    return (yield from _run(loop, path, task.spec.title, source=folder))


def task_and_recipe(
    config: dict[str, Any], task: Task | str | None = None, data: str | Path | None = None
) -> tuple[Task, Recipe]:
    """Task and recipe of a run; ``data`` replaces the path of its problems."""
    if task is None or isinstance(task, str):
        path = data or config.get("data")
        task = registry.task(config["task"], **({"data": path} if path else {}))
    return task, Recipe().changed(**config["recipe"])


def _run(loop: Loop, path: Path, task: str, source: RunFolder | None = None) -> RunIterator:
    """Run the loop, resumed from ``source`` if given, and record in the folder how it ended.

    Only the first process has the folder; it holds the folder's lock throughout.
    """
    folder = loop.folder
    with contextlib.ExitStack() as stack:
        if folder is not None:
            stack.enter_context(folder.lock())
        signals = loop.context.signals or stack.enter_context(Signals())
        if source is not None:
            loop.resume(source)
        if folder is None:
            yield from loop.steps(signals)
        else:
            folder.set_status("running", step=loop.update, steps=loop.total)
            size = parameter_count(loop.trainer.net)
            title = (f"{task}: {loop.recipe.net}, recipe {loop.recipe.name}, {size:,} parameters, "
                     f"seed {loop.seed}")  # fmt: skip
            loop.reporter.begin(title, path, loop.report(float("nan"), 0.0))
            try:
                reason = yield from loop.steps(signals)
            except BaseException as error:
                interrupted = isinstance(error, KeyboardInterrupt | GeneratorExit)
                state = "stopped" if interrupted else "failed"
                message = str(error) or ("interrupted" if interrupted else type(error).__name__)
                with contextlib.suppress(RunError):  # a full disk must not hide the reason
                    folder.set_status(state, reason=message)
                loop.reporter.end(f"{state}: {message}")
                raise
            done = reason == "finished"
            folder.set_status("finished" if done else "stopped", reason=None if done else reason)
            loop.reporter.end(reason)
    if loop.processes is not None:
        loop.processes.any_process(False)  # wait until the first process has written the end
    return folder or RunFolder.open(path)
