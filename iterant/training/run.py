"""Starting and resuming runs: what ``iterant train`` does, from Python.

>>> run = train("mazes", recipe="paper", seed=0, out="runs/m0", epochs=1)
>>> run = train(resume="runs/m0", time_limit="9m")

Beginning a new run where another one stands.

A run whose rate is held can be gone on with for as long as there is time; its weights are at their
best only after the rate has fallen. So the fall is a run of its own, begun at the last checkpoint.
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from iterant import registry
from iterant.errors import RunError, UsageError
from iterant.io import RunFolder, code_version
from iterant.nets import Net, build, parameter_count
from iterant.tasks.protocol import Task
from iterant.tasks.rng import check_seed
from iterant.training.build import build_network
from iterant.training.data import TrainingSet
from iterant.training.device import device_of
from iterant.training.distributed import ProcessGroup, join
from iterant.training.interrupts import Clock, Signals, seconds
from iterant.training.logging import Reporter, SilentReporter
from iterant.training.loop import CheckpointOptions, Loop
from iterant.training.recipe import Recipe
from iterant.training.recipes import honest
from iterant.training.replay_pool import ReplayPool
from iterant.training.trainer import Trainer


def start_from(trainer: Trainer, path: Path) -> None:
    """Give a learner the last weights, moments, average and pool of a run; it begins at update 0.

    A pool of another size than the learner's is left out, and begins anew; so does an average that
    the run did not keep.
    """
    folder = RunFolder.open(path)
    if not folder.has("last"):
        raise RunError(f"{path} has no checkpoint yet; train it first, or begin without start")
    theirs, own = folder.config.get("recipe", {}).get("optimizer"), trainer.recipe.optimizer
    if theirs != own:
        raise RunError(
            f"{path} was trained by {theirs}, and its moments mean nothing to {own}; "
            f"--optimizer {theirs}"
        )
    tensors, _ = folder.load("last")
    slots = trainer.objective.slots if isinstance(trainer.objective, ReplayPool) else 0
    if "pool.filled" in tensors and len(tensors["pool.filled"]) != slots:
        tensors = {name: held for name, held in tensors.items() if not name.startswith("pool.")}
    if not any(name.startswith("average.") for name in tensors):
        tensors = average_anew(tensors)
    try:
        trainer.restore(tensors, 0)
    except (KeyError, RuntimeError, TypeError, ValueError) as error:
        said = str(error).strip().splitlines()
        # torch announces what is wrong in a line of its own.
        first = said[1].strip() if said[0].endswith(":") and said[1:] else said[0]
        raise RunError(
            f"the last checkpoint of {path} does not fit this recipe ({first}); a branch needs "
            "the network of the run that it begins with"
        ) from error


def average_anew(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """A checkpoint whose average begins at its weights."""
    average = {f"average.{name.removeprefix('net.')}": held for name, held in tensors.items()
             if name.startswith("net.")}  # fmt: skip
    return {**tensors, **average}


RunIterator = Generator[None, None, RunFolder]
"""A run under way: yields after every update, returns its folder."""


@dataclass(frozen=True)
class RunContext:
    """What a run is carried out with."""

    device: torch.device
    processes: ProcessGroup
    checkpoints: CheckpointOptions
    reporter: Reporter
    clock: Clock
    signals: Signals | None = None
    """Somebody who listens for several runs; None: the run listens itself"""


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
    reporter: Reporter | None = None,
    **changes: Any,
) -> RunFolder:
    """Train a network and return its run folder; ``changes`` override fields of the recipe.

        >>> run = train("prefix-sums", epochs=1, count=100, batch=10, out="runs/tiny")
        >>> run.state
        'finished'

    ``net`` is a word of the recipe's, ``module:Class`` or a class of your own. ``out`` is a new
    folder, ``resume`` one that exists; give one of the two. ``start`` is a run whose last weights
    and moments a new run begins with, such as to let the rate fall on a branch and go on with the
    run itself later. ``data`` is where the task finds its problems, if not where it found them
    before.
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
    checkpoints = CheckpointOptions(shard_mb, pool=not drop_pool)
    clock = Clock(None if time_limit is None else seconds(time_limit))
    where = use_device(device)
    processes = join(where)
    listener = SilentReporter() if reporter is None or processes.rank else reporter
    context = RunContext(where, processes, checkpoints, listener, clock)
    try:
        if resume is not None:
            changes |= {"net": net} if net else {}
            changes |= {"start": start} if start else {}
            if changes:
                raise UsageError(
                    f"a resumed run keeps its recipe; {', '.join(sorted(changes))} cannot change "
                    "(only --time-limit, --shard-mb, --drop-pool and --device can)"
                )
            return finish(resume_run(task, Path(resume), context, data))
        word, made = task_named(task, data)
        chosen = recipe_for(made, recipe, net, changes)
        return finish(start_run(word, made, chosen, seed, Path(str(out)), context, start=start))
    except BaseException:
        processes.leave()
        raise


def use_device(word: str) -> torch.device:
    """The device of that name, made the current one."""
    where = device_of(word)
    if where.type == "cuda":
        torch.cuda.set_device(where)
    return where


def task_named(task: Task | str | None, data: str | Path | None = None) -> tuple[str, Task]:
    """A task and the word that finds it again."""
    if task is None:
        raise UsageError("which task? give one of: " + ", ".join(registry.known("task")))
    if isinstance(task, type):
        raise UsageError(f"wanted a task, got the class {task.__name__}; give {task.__name__}()")
    if not isinstance(task, str):
        return _word_of(task), task
    return task, registry.task(task, **({} if data is None else {"data": data}))


def _word_of(task: Task) -> str:
    """What finds a task again; the name of one that is defined inside a function says so best."""
    word = registry.name_of("task", type(task))
    return task.spec.name if "<" in word else word


def recipe_for(
    task: Task, recipe: Recipe | str, net: str | None, changes: dict[str, Any]
) -> Recipe:
    """The recipe of that name for a task and a network, with the changes made."""
    if isinstance(recipe, str):
        recipe = registry.recipe(recipe, task.spec.name, net)
    return recipe.asked(**({"net": net} if net else {}), **changes)


def finish(going: RunIterator) -> RunFolder:
    """Carry a run to its end."""
    while True:
        try:
            next(going)
        except StopIteration as end:
            folder: RunFolder = end.value
            return folder


def start_run(
    word: str,
    task: Task,
    recipe: Recipe,
    seed: int,
    out: Path,
    context: RunContext,
    problems: TrainingSet | None = None,
    start: str | Path | None = None,
) -> RunIterator:
    """A new run; everything that can be refused is refused before the folder is made."""
    processes, checkpoints, reporter = context.processes, context.checkpoints, context.reporter
    processes.check(recipe.batch)
    if processes.rank == 0:
        RunFolder.check_new(out)
    recipe = honest(recipe, task.spec.name)
    net, described = build_network(recipe, task.spec, seed)
    trainer = Trainer(net, recipe, context.device, processes)
    if start is not None:
        start_from(trainer, Path(start))
    problems = problems or TrainingSet.of(task, recipe, context.device)
    data = getattr(task, "data", None)
    config = {
        "task": word,
        "data": None if data is None else str(Path(data).resolve()),
        "recipe": recipe.described(),
        "net": described,
        "seed": seed,
        **({} if start is None else {"start": str(Path(start).resolve())}),
        # Averaged weights go on improving after validation is perfect; others do not.
        "prefer": "best" if recipe.average is None or recipe.choose == "watch" else "averaged",
    }
    folder = RunFolder.create(out, config) if processes.rank == 0 else None
    loop = Loop(task, recipe, seed, trainer, problems, folder=folder, reporter=reporter,
                checkpoints=checkpoints, processes=processes)  # fmt: skip
    if not checkpoints.pool and isinstance(trainer.objective, ReplayPool):
        reporter.note("checkpoints leave out the replay pool: a resumed run will differ")
    title = f"{task.spec.title}: {_named(recipe, trainer, seed)}"
    return (yield from _going(loop, out, context, title))


def resume_run(
    task: Task | str | None,
    path: Path,
    context: RunContext,
    data: str | Path | None = None,
    problems: TrainingSet | None = None,
) -> RunIterator:
    """Go on with a run from its last checkpoint."""
    processes, reporter = context.processes, context.reporter
    folder = RunFolder.open(path)
    config = folder.config
    if not {"task", "recipe", "net", "seed"} <= config.keys():
        raise RunError(f"{path} is a run, but not of iterant train; it cannot be resumed")
    wanted = task if isinstance(task, str) or task is None else _word_of(task)
    if wanted is not None and wanted != config["task"]:
        raise RunError(
            f"{path} is a run of {config['task']}, not of {wanted}; "
            f"resume it as: iterant train {config['task']} --resume {path}"
        )
    if folder.state == "finished":
        reporter.note(f"{path} has finished already; nothing to do")
        return folder
    began, (now, _) = folder.environment.get("commit"), code_version()
    if began != now:
        reporter.note(
            f"this run was begun by another version of the code ({began or 'unknown'} then, "
            f"{now or 'unknown'} now): it goes on, but an unbroken run may have differed"
        )
    made = task_of_run(config, data) if task is None or isinstance(task, str) else task
    recipe = Recipe().changed(**config["recipe"])
    processes.check(recipe.batch)
    net: Net = build(config["net"]["kind"], config["net"]["config"], seed=config["seed"])
    trainer = Trainer(net, recipe, context.device, processes)
    problems = problems or TrainingSet.of(made, recipe, context.device)
    loop = Loop(made, recipe, config["seed"], trainer, problems,
                folder=None if processes.rank else folder, reporter=reporter,
                checkpoints=context.checkpoints, processes=processes)  # fmt: skip
    title = f"{made.spec.title}: {_named(recipe, trainer, config['seed'])}"
    return (yield from _going(loop, path, context, title, source=folder))


def task_of_run(config: dict[str, Any], data: str | Path | None = None) -> Task:
    """The task of a run, on the data that it had or on that of now."""
    place = data or config.get("data")
    return registry.task(config["task"], **({"data": place} if place else {}))


def _named(recipe: Recipe, trainer: Trainer, seed: int) -> str:
    count = parameter_count(trainer.net)
    return f"{recipe.net}, recipe {recipe.name}, {count:,} parameters, seed {seed}"


def _going(
    loop: Loop, path: Path, context: RunContext, title: str, source: RunFolder | None = None
) -> RunIterator:
    """Run the loop under the folder's lock, and leave the folder saying how it ended."""
    listening = Signals() if context.signals is None else contextlib.nullcontext(context.signals)
    if loop.folder is None:
        with listening as signals:
            if source is not None:
                loop.resume(source)
            yield from loop.steps(context.clock, signals)
        loop.processes.any_process(False)  # wait until the first process has written the end
        return RunFolder.open(path)
    folder = loop.folder
    with folder.lock(), listening as signals:
        if source is not None:
            loop.resume(source)
        folder.set_status("running", step=loop.update, steps=loop.total)
        loop.reporter.begin(title, path, loop.report(float("nan"), 0.0))
        try:
            reason = yield from loop.steps(context.clock, signals)
        except BaseException as error:
            broken_off = isinstance(error, KeyboardInterrupt | GeneratorExit)
            state = "stopped" if broken_off else "failed"
            said = str(error) or ("interrupted" if broken_off else type(error).__name__)
            with contextlib.suppress(RunError):  # a full disk must not hide why
                folder.set_status(state, reason=said)
            loop.reporter.end(f"{state}: {said}")
            raise
        done = reason == "finished"
        folder.set_status("finished" if done else "stopped", reason=None if done else reason)
        loop.reporter.end(reason)
    loop.processes.any_process(False)
    return folder
