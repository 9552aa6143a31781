"""Start and resume runs: ``iterant train`` from Python.

    >>> run = train("mazes", recipe="paper", seed=0, out="runs/m0", epochs=1)
    >>> run = train(resume="runs/m0", time_limit="9m")
    >>> run = train("mazes", init_from="runs/m0", out="runs/m1", schedule="cosine")

The last form starts a new run from the weights and optimizer state of another one: for example,
decay the learning rate in a branch and later continue the original run, where it is constant.
"""

from __future__ import annotations

import inspect
import os
from dataclasses import fields
from pathlib import Path
from typing import Any, Literal

import torch
from torch import nn

from iterant import registry
from iterant.errors import RecipeError, RunError, UsageError, argument
from iterant.formatting import counted, seconds
from iterant.io import RunFolder, code_version
from iterant.io.checkpoint import NET
from iterant.io.files import quoted
from iterant.nets import Net, build, parameter_count
from iterant.nets.fast import can_unroll_messages
from iterant.nets.from_recipe import base_of, build_network
from iterant.nets.protocol import shape_faults
from iterant.rng import check_seed
from iterant.tasks.protocol import Task, offers, with_problems
from iterant.threads import spins_on_busy_cores
from iterant.training.data import TrainingSet, split_sizes
from iterant.training.distributed import ProcessGroup
from iterant.training.logging import LineReporter, Reporter
from iterant.training.loop import Clock, Loop, damaged_checkpoints, must_fit
from iterant.training.objectives import Objective, UserObjective
from iterant.training.recipe import OLD_NAMES, RECIPES, Recipe, recipe_from_json
from iterant.training.recipe import recipe as named_recipe
from iterant.training.trainer import Trainer

_NET_FIELDS = ("width", "head", "group_norm", "bounded", "hidden", "isotropic", "messages",
               "masked")  # fmt: skip
"""Fields that configure the networks of iterant; user-defined ones do not get them."""
_MOST_THREADS = 1024
"""A larger number in a file is ignored."""
_SMALL_NETWORK = 30_000
"""Parameters below which a run uses one thread (``results/speed/threads-by-load.json``)."""


def train(
    task: Task | str | None = None,
    *,
    recipe: Recipe | str | None = None,
    net: str | type[nn.Module] | None = None,
    objective: str | UserObjective | None = None,
    seed: int | None = None,
    out: str | Path | None = None,
    resume: str | Path | None = None,
    init_from: str | Path | None = None,
    data: str | Path | None = None,
    device: str | torch.device = "auto",
    time_limit: str | float | None = None,
    until_perfect: bool = False,
    trust: bool = False,
    reporter: Reporter | Literal[False] | None = None,
    **changes: Any,
) -> RunFolder:
    """Train a network and return its run folder; ``changes`` override fields of the recipe.

        >>> run = train("prefix-sums", epochs=1, count=100, batch_size=10, out="runs/tiny")
        >>> run.state
        'finished'

    Args:
        task: a task, its name or ``module:Class``; may be left out with ``resume``.
        recipe: a recipe or its name; by default ``quick``.
        net: the name of a network, ``module:Class`` or a class.
        objective: its name, a function of logits and targets as loss, or a class of your own.
        seed: decides initial weights, order of problems and noise; by default 0.
        out: a new folder; give either this or ``resume``.
        resume: an existing run folder; task, recipe, seed and a loss of your own stay the same.
        init_from: a run whose last weights and optimizer state the new run starts from.
        data: path of the task's problems; for a resumed run, if they were moved.
        device: ``auto``, ``cpu``, ``cuda`` or ``cuda:N``.
        time_limit: save and stop before this time is over: ``9m``, ``1h30m``, or seconds.
        until_perfect: stop at a validation accuracy of 100 %, unless weights are averaged.
        trust: import user-defined code that the run to resume or a recipe object names.
        reporter: receives the progress; by default lines on the error stream; False: none.
        changes: fields of the recipe.
    """
    if (out is None) == (resume is None):
        raise UsageError("give either out= (a new run) or resume= (a run folder to continue)")
    if isinstance(net, nn.Module):
        kind = type(net).__name__
        raise UsageError(
            f"a run begins with a new network, got a {kind}; give its class: net={kind}"
        )
    changes |= {} if net is None else {"net": net}
    init_from = changes.pop("start", init_from)  # its former name
    _check_names(changes)
    if isinstance(objective, str):
        changes, objective = {**changes, "objective": objective}, None
    _check_types(recipe, reporter, objective, out=out, resume=resume, init_from=init_from)
    if data is not None and not isinstance(task, str | None):
        raise UsageError(
            "data is for a task given by its name; a task object has its own: "
            "iterant.task(name, data=…)"
        )
    registry.allow([task, net])
    clock = Clock(None if time_limit is None else seconds(time_limit))
    torch_device = registry.device(device)
    if torch_device.type == "cuda":
        torch.cuda.set_device(torch_device)
    processes = ProcessGroup(torch_device)
    first_process = processes.rank == 0
    threads_before = torch.get_num_threads()
    if reporter is None:
        reporter = LineReporter()
    reporter = reporter if reporter and first_process else Reporter()
    path = Path(out or resume or "")
    try:
        source = None
        if resume is not None:
            source = RunFolder.open(path)
            fixed = {"recipe": recipe, "seed": seed, "init_from": init_from, **changes}
            _check_resumable(source, task, [name for name, x in fixed.items() if x is not None])
            if source.state == "finished":
                for error in damaged_checkpoints(source).values():
                    raise error
                reporter.note(f"{path} has finished already; nothing to do")
                return source
            with registry.names_of_file(path, source.config, trust=trust):
                task, recipe, network, config = _prepare_resumed(
                    source, task, objective, data, reporter
                )
        else:
            if trust and isinstance(recipe, Recipe):
                registry.allow(recipe.net)
            seed = check_seed(0 if seed is None else seed)
            task, recipe, network, config = _prepare_new(
                task, recipe or "quick", changes, objective, seed, init_from, data
            )
        if torch_device.type == "cpu":
            _set_threads(network, source, reporter)
        task = with_problems(task, recipe.problems)
        processes.check(recipe.batch_size)
        trainer = Trainer(network, recipe, torch_device, processes, objective)
        first_loss = 0.0
        if "init_from" in config and not (source is not None and source.has("last")):
            first_loss = load_initial(trainer, Path(init_from or config["init_from"]))
        if first_process and source is None:
            RunFolder.check_new(path)
        problems = TrainingSet.of(task, recipe, torch_device)
        folder = (source or RunFolder.create(path, config)) if first_process else None
        for note in recipe.notes if source is None else ():
            reporter.note(f"note: {note}")
        loop = Loop(
            task, recipe, config["seed"], trainer, problems, folder, clock=clock,
            reporter=reporter, until_perfect=until_perfect, may_restart="init_from" not in config,
        )  # fmt: skip
        loop.guard.least_first = first_loss
        loop.run(source)
        processes.maximum(0)  # wait until the first process has written the end
    except BaseException:
        processes.leave()
        raise
    finally:
        if torch.get_num_threads() != threads_before:
            torch.set_num_threads(threads_before)
    return RunFolder.open(path)


def _prepare_new(
    task: Task | str | None,
    recipe: Recipe | str,
    changes: dict[str, Any],
    objective: UserObjective | None,
    seed: int,
    init_from: str | Path | None,
    data: str | Path | None,
) -> tuple[Task, Recipe, Net, dict[str, Any]]:
    """Task, recipe, network and the content of config.json of a new run."""
    name, task = find_task(task, data)
    recipe = recipe_for(task, recipe, **changes)
    if recipe.name in RECIPES:
        original = named_recipe(recipe.name, task.spec.name, recipe.net)
        if objective is not None or recipe != original:
            recipe = recipe.changed(name=f"{recipe.name}, changed")
    net, description = build_network(recipe.described(), task.spec, seed)
    path = getattr(task, "data", None)
    config = {
        "task": name,
        "data": None if path is None else str(Path(path).resolve()),
        "recipe": recipe.described(),
        "net": description,
        "seed": seed,
        **({} if init_from is None else {"init_from": str(Path(init_from).resolve())}),
        **({} if objective is None else {"objective": _objective_name(objective)}),
    }
    return task, recipe, net, config


def _check_names(changes: dict[str, Any]) -> None:
    """Raise UsageError for an argument that is neither one of `train` nor a field of a recipe."""
    known = [*inspect.signature(train).parameters, *(field.name for field in fields(Recipe))]
    for name in changes:
        if name not in known and name not in OLD_NAMES:
            near = " or ".join(map(repr, registry.nearest(name, known)))
            hint = f"did you mean {near}?" if near else "help(iterant.train) has all"
            raise UsageError(f"train has no argument {name!r}; {hint}")


def _check_types(recipe: object, reporter: object, objective: object, **paths: object) -> None:
    """Raise UsageError for arguments of a wrong type, which would fail later or name a folder."""
    if not isinstance(recipe, Recipe | str | None):
        raise UsageError(f"recipe is a Recipe or one of {', '.join(RECIPES)}, got {recipe!r:.80}")
    if not isinstance(reporter or None, Reporter | None):
        raise UsageError(
            "reporter is a Reporter of iterant.training.logging, or False to print nothing, got "
            f"{reporter!r:.80}"
        )
    for name, path in paths.items():
        if not isinstance(path, str | os.PathLike | None):
            raise UsageError(f"{name} is the path of a folder, got {path!r:.80}")
    if objective is None or (isinstance(objective, type) and issubclass(objective, Objective)):
        return
    if isinstance(objective, type) or not callable(objective):
        raise UsageError(
            "objective is a name, a function of logits and targets, or a subclass of "
            f"iterant.training.objectives.Objective; got {objective!r:.80}"
        )
    try:
        inspect.signature(objective).bind("logits", "targets")
    except TypeError as error:
        raise UsageError(f"an objective is called with logits and targets: {error}") from None
    except ValueError:  # a built-in function without a signature
        pass


def _objective_name(objective: UserObjective) -> str:
    """The name to record; of an object that is called, such as nn.CrossEntropyLoss(), its class."""
    named: Any = objective if hasattr(objective, "__qualname__") else type(objective)
    return f"{named.__module__}:{named.__qualname__}"


def _check_resumable(run: RunFolder, task: Task | str | None, fixed: list[str]) -> None:
    """Raise an error for settings that cannot change, and for a run of another task or program."""
    config, path = run.config, run.path
    if fixed:
        raise UsageError(f"a resumed run keeps its recipe and seed; leave out {', '.join(fixed)}")
    if not {"task", "recipe", "net", "seed"} <= config.keys():
        raise RunError(f"{path} is a run, but not of iterant train; it cannot be resumed")
    name = task if isinstance(task, str) or task is None else _task_name(task)
    if name is not None and name != config["task"]:
        raise RunError(
            f"{path} is a run of {config['task']}, not of {name}; "
            f"give {config['task']}, or leave the task out"
        )


def _prepare_resumed(
    run: RunFolder,
    task: Task | str | None,
    objective: UserObjective | None,
    data: str | Path | None,
    reporter: Reporter,
) -> tuple[Task, Recipe, Net, dict[str, Any]]:
    """Task, recipe, network and config.json of a run to resume."""
    config = run.config
    # The folder has the name of a user-defined objective, not its code. Compared without the
    # module: a script is __main__ at one time and imported at another.
    name = config.get("objective")
    given = None if objective is None else _objective_name(objective)
    if str(name).rpartition(":")[2] != str(given).rpartition(":")[2]:
        remedy = f"{name}; give it again:" if name else "the objective of its recipe; leave out"
        raise UsageError(f"{quoted(run.path)} was trained with {remedy} objective=")
    before, (now, _) = run.environment.get("commit"), code_version()
    if before != now:
        reporter.note(
            f"this run was started by another version of the code ({before or 'unknown'} then, "
            f"{now or 'unknown'} now): it continues, but an uninterrupted run may have differed"
        )
    task, recipe = task_and_recipe(config, task, data)
    described = config["net"]
    if run.has("last"):  # compare shapes before allocating what a stranger's file claims
        stored = {name.removeprefix(NET): x for name, x in run.load("last", NET)[0].items()}
        if faults := shape_faults(described["kind"], described["config"], stored):
            raise RunError(
                f"the last checkpoint of {quoted(run.path)} does not fit the network in its "
                f"config.json ({faults}); one of them was edited or is of another run"
            )
    net = build(described["kind"], described["config"], seed=config["seed"])
    return task, recipe, net, config


def number_is_chosen() -> bool:
    """Whether the user chose the number of CPU threads by an environment variable."""
    return any(os.environ.get(name) for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"))


def threads_of(run: RunFolder) -> int | None:
    """The number of CPU threads a run was started with; None: not recorded by earlier versions."""
    hardware = run.environment.get("hardware")
    threads = hardware.get("threads") if isinstance(hardware, dict) else None
    return threads if isinstance(threads, int) and 0 < threads <= _MOST_THREADS else None


def threads_for(net: Net) -> int:
    """The number of CPU threads for a new run; one that an environment variable sets is kept.

    A rule with message passing and a small network are trained by many operations on small tensors,
    for which one thread is fastest.
    """
    small = parameter_count(net) < _SMALL_NETWORK or can_unroll_messages(net)
    return 1 if small and not number_is_chosen() else torch.get_num_threads()


def _set_threads(net: Net, source: RunFolder | None, reporter: Reporter) -> None:
    """Compute with as many threads as fit the network, or as the run to resume was started with.

    Sums depend on how threads divide them.
    """
    now = torch.get_num_threads()
    threads = threads_for(net) if source is None else threads_of(source) or now
    if source is None and threads > 1 and spins_on_busy_cores():
        reporter.note(
            "other programs use this machine: training is faster with OMP_WAIT_POLICY=PASSIVE, set "
            "before torch is imported"
        )
    if source is not None and threads != now:
        if number_is_chosen():
            reporter.note(
                f"this run was started with {counted(threads, 'thread')}, and OMP_NUM_THREADS or "
                f"MKL_NUM_THREADS sets {now}: it continues, but may not equal an uninterrupted run "
                "bit for bit"
            )
            return
        reporter.note(
            f"continued with {counted(threads, 'thread')}, as it was started (here: {now})"
        )
    torch.set_num_threads(threads)


def load_initial(trainer: Trainer, path: Path) -> float:
    """Load the last weights, optimizer state, EMA and replay pool of a run, at step 0.

    Returns the first loss of that run. A pool with other slots or problems of another size is not
    loaded. An EMA that the run did not keep starts at its weights, the loss scale at its default.
    """
    folder = RunFolder.open(path)
    if not folder.has("last"):
        raise RunError(f"{path} has no checkpoint yet; train it first, or begin without init_from")
    recipe = recipe_from_json(folder.config["recipe"], resume=True)
    theirs, ours = recipe.optimizer, trainer.recipe.optimizer
    if theirs != ours:
        raise RunError(
            f"{path} was trained by {theirs}, whose state {ours} cannot use; "
            f"give {argument('optimizer', theirs)}"
        )
    tensors, metadata = folder.load("last")
    same = ("objective", "size", "pool_slots", "pool_until_solved")
    if any(getattr(recipe, name) != getattr(trainer.recipe, name) for name in same):
        tensors = {name: value for name, value in tensors.items() if not name.startswith("pool.")}
    for name, weight in list(tensors.items()):
        if name.startswith("net."):
            tensors.setdefault(f"average.{name.removeprefix('net.')}", weight)
    if trainer.loss_scale is not None:
        tensors.setdefault("scaling.scale", trainer.loss_scale.scale)
        tensors.setdefault("scaling.grown", trainer.loss_scale.grown)
    with must_fit(folder, "a branch needs the network of the run that it begins with"):
        trainer.restore(tensors, 0)
    return float(metadata.get("first_loss") or 0.0)


def run_summary(task: Task, recipe: Recipe) -> dict[str, Any]:
    """Network, problems and optimizer steps of a run with this recipe, for JSON.

    Raises the errors that the run would raise.
    """
    task = with_problems(task, recipe.problems)
    net, description = build_network(recipe.described(), task.spec, seed=0)
    held_out, problems = split_sizes(task, recipe)
    steps_per_epoch = problems // recipe.batch_size
    return {
        "network": description,
        "parameters": parameter_count(net),
        "size": task.check_size(recipe.size),
        "problems": problems,
        "held_out": held_out,
        "steps_per_epoch": steps_per_epoch,
        "steps": steps_per_epoch * recipe.epochs,
    }


def find_task(task: Task | str | None, data: str | Path | None = None) -> tuple[str, Task]:
    """The name to store for a task that the caller gives, and the task."""
    if task is None:
        raise UsageError(f"which task? give one of: {', '.join(registry.known('task'))}")
    if not isinstance(task, str):
        name = _task_name(task)
        registry.allow([name, task.spec.readout])  # so that its run can be loaded
        return name, task
    return task, registry.task(task, data=data)


def _task_name(task: Task) -> str:
    """``module:Class``, or the task's own name where the class is local to a function."""
    if isinstance(task, type):
        raise UsageError(f"expected a task, got the class {task.__name__}; give {task.__name__}()")
    if not hasattr(task, "spec"):
        raise UsageError(f'a task is a name or an object, iterant.task("mazes"), got {task!r:.80}')
    name = registry.name_of("task", type(task))
    return task.spec.name if "<" in name else name


def recipe_for(task: Task, recipe: Recipe | str, **changes: Any) -> Recipe:
    """The recipe, or the one of that name for this task, with a user's changes applied.

    The kind of problems of a task object, ``Mazes(problems="p=0.1")``, is such a change: the run
    has to record it. Fields that a user-defined network would ignore are an error.
    """
    if offers(task, "with_problems") and (problems := getattr(task, "problems", "")):
        changes = {"problems": problems, **changes}
    if isinstance(changes.get("net"), type):
        changes["net"] = registry.name_of("net", changes["net"])
        registry.allow(changes["net"])
    if isinstance(recipe, str):
        recipe = named_recipe(recipe, task.spec.name, changes.get("net"))
    net = str(changes.get("net") or recipe.net)
    ignored = [name for name in _NET_FIELDS if name in changes]
    if ":" in net and ignored and base_of(net) is None:
        raise RecipeError(
            f"{', '.join(ignored)}: for networks that come with iterant; {net} is built from "
            "dims and channels alone, so write its sizes as defaults of its own"
        )
    changed = recipe.changed(**changes)
    if changed.alpha != recipe.alpha and changed.objective in ("pool", "run-time-weighted"):
        note = f"alpha has no effect: the objective is {changed.objective}, not progressive"
        changed = changed.changed(notes=(*changed.notes, note))
    return changed


def task_and_recipe(
    config: dict[str, Any], task: Task | str | None = None, data: str | Path | None = None
) -> tuple[Task, Recipe]:
    """Task and recipe of a run to resume; ``data`` replaces the path of its problems."""
    if task is None or isinstance(task, str):
        task = registry.task(config["task"], data=data or config.get("data") or None)
    return task, recipe_from_json(config["recipe"], resume=True)
