"""Starting and resuming runs: what ``iterant train`` does, from Python.

>>> run = train("mazes", recipe="paper", seed=0, out="runs/m0", epochs=1)
>>> run = train(resume="runs/m0", time_limit="9m")
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Any

import torch

from iterant import names
from iterant.errors import RunError, UsageError
from iterant.nets import Net, build, parameter_count
from iterant.runs import RunFolder, code_version
from iterant.tasks.chance import check_seed
from iterant.tasks.protocol import Task
from iterant.training.crew import Crew, join
from iterant.training.learner import Learner
from iterant.training.loop import Keeping, Loop
from iterant.training.parts import network_of
from iterant.training.pool import ReplayPool
from iterant.training.problems import Problems
from iterant.training.progress import Reporter, Silent
from iterant.training.recipe import Recipe
from iterant.training.stopping import Clock, Signals, seconds


def device_of(word: str = "auto") -> torch.device:
    """The device of that name; ``auto`` is the GPU if there is one.

    Of several processes each takes the GPU of its own number.
    """
    if word == "auto":
        word = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(word)
    except RuntimeError as error:
        raise UsageError(f"unknown device {word!r}; use auto, cpu, cuda or cuda:0") from error
    if device.type == "cuda":
        if device.index is None and int(os.environ.get("WORLD_SIZE", "1")) > 1:
            device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
        if count <= (device.index or 0):
            raise UsageError(
                f"device {str(device)!r} was asked for and {count or 'no'} GPU is there; "
                "use --device cpu"
            )
    return device


def train(
    task: Task | str | None = None,
    *,
    recipe: Recipe | str = "quick",
    net: str | None = None,
    seed: int = 0,
    out: str | Path | None = None,
    resume: str | Path | None = None,
    device: str = "auto",
    time_limit: str | float | None = None,
    shard_mb: float | None = None,
    drop_pool: bool = False,
    reporter: Reporter | None = None,
    **changes: Any,
) -> RunFolder:
    """Train a network and return its run folder; ``changes`` override fields of the recipe.

    ``out`` is a new folder, ``resume`` one that exists; give one of the two.
    """
    if (out is None) == (resume is None):
        raise UsageError("give either out= (a new run) or resume= (a run folder to go on with)")
    check_seed(seed)
    keeping = Keeping(shard_mb, pool=not drop_pool)
    where = device_of(device)
    if where.type == "cuda":
        torch.cuda.set_device(where)
    crew = join(where)
    listener = reporter or Silent()
    if crew.rank:
        listener = Silent()
    try:
        clock = Clock(None if time_limit is None else seconds(time_limit))
        if resume is not None:
            changes |= {"net": net} if net else {}
            if changes:
                raise UsageError(
                    f"a resumed run keeps its recipe; {', '.join(sorted(changes))} cannot change "
                    "(only --time-limit, --shard-mb, --drop-pool and --device can)"
                )
            return _resume(task, Path(resume), where, crew, keeping, listener, clock)
        if task is None:
            raise UsageError("which task? give one of: " + ", ".join(names.known("task")))
        made = names.task(task) if isinstance(task, str) else task
        chosen = (
            names.recipe(recipe, made.spec.name, net or "dt-recall")
            if isinstance(recipe, str)
            else recipe
        )
        chosen = chosen.changed(**({"net": net} if net else {}), **changes)
        word = task if isinstance(task, str) else made.spec.name
        return _begin(
            word, made, chosen, seed, Path(str(out)), where, crew, keeping, listener, clock
        )
    finally:
        crew.leave()


def _begin(
    word: str,
    task: Task,
    recipe: Recipe,
    seed: int,
    out: Path,
    device: torch.device,
    crew: Crew,
    keeping: Keeping,
    reporter: Reporter,
    clock: Clock,
) -> RunFolder:
    """A new run; everything that can be refused is refused before the folder is made."""
    crew.check(recipe.batch)
    net, described = network_of(recipe, task.spec, seed)
    learner = Learner(net, recipe, device, crew)
    problems = Problems.of(task, recipe, device)
    data = getattr(task, "data", None)
    config = {
        "task": word,
        "data": None if data is None else str(Path(data).resolve()),
        "recipe": recipe.described(),
        "net": described,
        "seed": seed,
    }
    folder = RunFolder.create(out, config) if crew.rank == 0 else None
    loop = Loop(task, recipe, seed, learner, problems, folder=folder, reporter=reporter,
                keeping=keeping, crew=crew)  # fmt: skip
    if not keeping.pool and isinstance(learner.objective, ReplayPool):
        reporter.note("checkpoints leave out the replay pool: a resumed run will differ")
    return _go(loop, out, clock, f"{task.spec.title}: {_named(recipe, learner, seed)}")


def _resume(
    task: Task | str | None,
    path: Path,
    device: torch.device,
    crew: Crew,
    keeping: Keeping,
    reporter: Reporter,
    clock: Clock,
) -> RunFolder:
    """Go on with a run from its last checkpoint."""
    folder = RunFolder.open(path)
    config = folder.config
    if not {"task", "recipe", "net", "seed"} <= config.keys():
        raise RunError(f"{path} is a run, but not of iterant train; it cannot be resumed")
    wanted = task if isinstance(task, str) or task is None else task.spec.name
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
    made = _task_again(config) if task is None or isinstance(task, str) else task
    recipe = Recipe().changed(**config["recipe"])
    crew.check(recipe.batch)
    net: Net = build(config["net"]["kind"], config["net"]["config"], seed=config["seed"])
    learner = Learner(net, recipe, device, crew)
    loop = Loop(made, recipe, config["seed"], learner, Problems.of(made, recipe, device),
                folder=None if crew.rank else folder, reporter=reporter, keeping=keeping,
                crew=crew)  # fmt: skip
    title = f"{made.spec.title}: {_named(recipe, learner, config['seed'])}"
    return _go(loop, path, clock, title, source=folder)


def _task_again(config: dict[str, Any]) -> Task:
    options = {"data": config["data"]} if config.get("data") else {}
    return names.task(config["task"], **options)


def _named(recipe: Recipe, learner: Learner, seed: int) -> str:
    count = parameter_count(learner.net)
    return f"{recipe.net}, recipe {recipe.name}, {count:,} parameters, seed {seed}"


def _go(
    loop: Loop, path: Path, clock: Clock, title: str, source: RunFolder | None = None
) -> RunFolder:
    """Run the loop under the folder's lock, and leave the folder saying how it ended."""
    if loop.folder is None:
        with Signals() as signals:
            if source is not None:
                loop.resume(source)
            loop.run(clock, signals)
        return RunFolder.open(path)
    folder = loop.folder
    with folder.lock(), Signals() as signals:
        if source is not None:
            loop.resume(source)
        folder.set_status("running", step=loop.update, steps=loop.total)
        loop.reporter.begin(title, path, loop.report(float("nan"), 0.0))
        try:
            reason = loop.run(clock, signals)
        except BaseException as error:
            state = "stopped" if isinstance(error, KeyboardInterrupt) else "failed"
            said = str(error) or ("interrupted" if state == "stopped" else type(error).__name__)
            with contextlib.suppress(RunError):  # a full disk must not hide why
                folder.set_status(state, reason=said)
            loop.reporter.end(f"{state}: {said}")
            raise
        done = reason == "finished"
        folder.set_status("finished" if done else "stopped", reason=None if done else reason)
        loop.reporter.end(reason)
    return folder
