"""Fill a table or figure: what is missing, how long it takes, and how a small machine does it.

    >>> runs = missing(EXPERIMENTS["table-prefix-peaks"], records, seeds=1)
    >>> estimate(runs)                                   # seconds on an H200
    >>> train_missing(runs, out="results/runs", budget="10m")

The runs are a plan of `iterant.runner`, whose folder is ``runs/campaign``: a process for each, as
many side by side as fit, resumed where they were stopped. Rows without curves are filled by
`fill_counts`: networks without a run folder are trained, then all are tested; the paper's networks
in half precision on a GPU, local rules on the CPU.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import torch

from iterant import registry
from iterant.experiments.catalogue import CountRow, Experiment
from iterant.experiments.models import MODELS, Model, usual_seconds
from iterant.experiments.records import Record, Records, keep_record
from iterant.experiments.train_and_test import EXACT, SEED, Say, is_over, measure_counts
from iterant.io import RunFolder
from iterant.io.files import PathLike, check_writable_folder
from iterant.nets import paper_net, parameter_count
from iterant.nets.fast import fastest_device
from iterant.runner.folder import SweepFolder
from iterant.runner.plan import Plan, PlannedRun
from iterant.runner.worker import Launch, capacity, run_local
from iterant.training.interrupts import Clock, seconds
from iterant.training.recipe import recipe as named_recipe
from iterant.zoo.loading import load

_T = TypeVar("_T")

FOLDER = "runs/campaign"
"""The folder of runs in full size."""

SMALL_FOLDER = "runs/reduced"
"""The folder of reduced runs."""

SMALLER: dict[str, dict[str, Any]] = {
    "prefix-sums": {"width": 32, "size": 16, "iterations": 16, "rate": 4e-3, "warmup": 2,
                    "validate_every": 1, "checkpoint_every": 1, "watch_every": 0},
    "mazes": {"width": 16, "count": 10_000, "warmup": 2, "validate_every": 1,
              "checkpoint_every": 1, "watch_every": 0},
    "chess": {"width": 16, "warmup": 2, "watch_every": 0},
}  # fmt: skip
"""Fields of the recipe on a machine without a GPU, by task."""

SMALLER_TESTS = 0.05
"""The share of every test set that is used on a machine without a GPU."""

PROCESSES = 2
"""Runs that share a GPU at the same time."""

_NARROW = 4
"""A network at least this many times narrower than the paper's is not reduced further."""

_TEST_SHARE, _TEST_SECONDS = 0.2, 30.0
"""Time reserved for tests: a share of the budget on a small machine, seconds on a GPU."""

_GRACE = 60.0
"""Seconds after the end of the budget until running processes are stopped."""

_ENOUGH = 0.6
"""The share of its usual time that must be left before a run starts."""


def smaller(model: Model) -> dict[str, Any]:
    """A model's recipe fields on a small machine.

    Fields that a grid varies shrink in proportion; a model's learning rate keeps its ratio to that
    of the paper's recipe.
    """
    fields = dict(SMALLER[model.task])
    recipe = named_recipe(model.recipe_name, model.task, model.net or None)
    width = paper_net(model.task).width
    if recipe.width is not None and _NARROW * recipe.width <= width:
        return {"watch_every": 0}
    usual = {"width": width, "iterations": recipe.iterations}
    for name in fields.keys() & model.changes.keys() & usual.keys():
        fields[name] = max(2, round(fields[name] * model.changes[name] / usual[name]))
    if "rate" in fields:
        fields["rate"] *= model.recipe().rate / named_recipe("paper", model.task).rate
    return fields


def smaller_text(experiment: Experiment) -> str:
    """The reduced fields with their usual values: ``prefix-sums: width 32 (400), size 16 (32)``."""
    parts = []
    for task in dict.fromkeys(model.task for model in experiment.models):
        spec, paper = registry.task(task).spec, named_recipe("paper", task)
        usual = {**paper.described(), "width": paper_net(task).width, "size": spec.train_size,
                 "count": spec.train_count}  # fmt: skip
        texts = [f"{name} {value} ({usual[name]})" for name, value in SMALLER[task].items()]
        parts.append(f"{task}: {', '.join(texts)}")
    return f"{'; '.join(parts)}, grids in proportion; our own recipe is small already"


def tested_enough(experiment: Experiment, records: Records) -> Records:
    """The records that have every test and study which the experiment shows."""
    needs = experiment.needs

    def enough(one: Record) -> bool:
        model = MODELS[one.model]
        names = {test.name for test in model.tests}
        names |= {study.name for study in model.studies if study.covers(one.seed)}
        return needs[one.model] & names <= {*one.tests, *one.studies}

    return Records(tuple(one for one in records.all if one.model in needs and enough(one)))


def planned_run(key: str, seed: int) -> PlannedRun:
    """A model with a seed, as a run of a plan."""
    model = MODELS[key]
    fields: dict[str, Any] = {"net": model.net} if model.net else {}
    fields |= {} if model.alpha is None else {"alpha": model.alpha}
    name = f"{key}-s{seed}"
    return PlannedRun(name, model.task, model.recipe_name, seed, {**fields, **model.changes})


def missing(experiment: Experiment, records: Records, seeds: int | None = None) -> list[PlannedRun]:
    """Runs without a record; ``seeds``: replaces the planned number of seeds."""
    planned = {model.key: seeds or model.seeds for model in experiment.models}
    runs = [planned_run(key, seed) for key, seed in _in_turn(planned)]
    return [run for run in runs if run.name not in records.names]


def _in_turn(planned: Mapping[_T, int]) -> Iterator[tuple[_T, int]]:
    """All planned (item, seed) pairs: seed 0 of every item, then seed 1, and so on."""
    for seed in range(max(planned.values(), default=0)):
        for item, seeds in planned.items():
            if seed < seeds:
                yield item, seed


def estimate(runs: Iterable[PlannedRun]) -> float:
    """Seconds to run them one after the other on an H200, from measured times per step."""
    return sum(usual_seconds(MODELS[run.point]) for run in runs)


def train_missing(
    runs: Sequence[PlannedRun],
    *,
    out: PathLike,
    folder: PathLike = FOLDER,
    device: str = "auto",
    budget: str | float | None = None,
    precision: str | None = None,
    processes: int | None = None,
    experiment: Experiment | None = None,
    data: str | None = None,
    recorded: Collection[str] = (),
    say: Say = print,
) -> list[str]:
    """Train and measure these runs, write records to ``out``; return the names without one.

    ``experiment``: for machines without a GPU: train reduced runs and test only what this
    experiment shows. Every run then gets a share of the budget; one that reaches its limit is
    measured as it is and resumed by the next call. ``precision``: of the paper's models (default:
    fp16 on a GPU). ``recorded``: names of runs that have a record already; they are trained, but
    not recorded again.
    """
    models = {run.point: MODELS[run.point] for run in runs}
    options: dict[str, Any] = {}
    reduced: dict[str, dict[str, Any]] = {}
    if experiment is not None:
        reduced = {key: smaller(model) for key, model in models.items()}
        needs = {key: sorted(names) for key, names in experiment.needs.items()}
        options = {"reduced": reduced, "needs": needs, "share": SMALLER_TESTS, "unfinished": True}
    elif precision is None and registry.device(device).type == "cuda":
        precision = "fp16"
    for key, model in models.items():
        task = registry.task(model.task, **({"data": data} if data else {}))
        for test in model.tests:  # raise now rather than after hours of training
            if not options or test.name in options["needs"][key]:
                task.check_size(test.size)
    for place in (out, folder):
        check_writable_folder(place if Path(place).suffix != ".jsonl" else Path(place).parent)
    by_name = {}
    for run in runs:
        half = {"precision": precision} if precision and models[run.point].half else {}
        changes = {**run.changes, **half, **reduced.get(run.point, {})}
        by_name[run.name] = replace(run, changes=changes)
    job = "iterant.experiments.train_and_test:train_and_measure"
    plan = Plan(Path(folder).name, tuple(by_name.values()), data=data, job=job, options=options)
    launch, limit = Launch(device=device), None if budget is None else seconds(budget)
    at_once = processes or (capacity(launch) if experiment else PROCESSES)
    done: set[str] = set()
    clock, waiting = Clock(None), len(runs)

    def time_for(name: str) -> float | None:
        nonlocal waiting
        share, waiting = min(1.0, at_once / waiting), waiting - 1
        if limit is None:
            return None
        if experiment is not None:
            return share * (1 - _TEST_SHARE) * (limit - clock.elapsed)
        left = limit - _TEST_SECONDS - clock.elapsed
        return left if left > _ENOUGH * estimate([by_name[name]]) else 0.0

    def ended(name: str, how: str) -> None:
        error = sweep.failures(name).error if how == "failed" else None
        outcome = sweep.outcome(name, partial=True)
        if how == "done" and outcome is not None:
            done.add(name)
            if name not in recorded:
                keep_record(out, name, outcome["record"], by_name[name].seed)
            how = "recorded" if outcome.get("finished", True) else "recorded as it was cut off"
        say(f"{name}: {how}{f': {error}' if error else ''} after {clock.elapsed:.0f} s")

    with SweepFolder.locked(folder, plan) as sweep:
        say(f"logs are in {sweep.work_path('NAME') / 'log'}")
        reason = run_local(
            sweep, list(by_name), launch, at_once=at_once, time_for=time_for, on_end=ended,
            limit=None if limit is None else limit + _GRACE,
        )  # fmt: skip
    if reason not in (None, "the time limit"):
        raise KeyboardInterrupt
    return [name for name in by_name if name not in done]


# Tests without a curve: a row and a seed.


def missing_counts(
    experiment: Experiment, records: Records, seeds: int | None = None
) -> list[tuple[CountRow, int]]:
    """Tests without a record; ``seeds``: replaces the planned number of seeds."""
    planned = {row: seeds or row.seeds for row in experiment.count_rows if row.seeds}
    done = {row: {one.seed for one in records.counts(row.model, row.size)} for row in planned}
    return [(row, seed) for row, seed in _in_turn(planned) if seed not in done[row]]


def untrained(tests: Sequence[tuple[CountRow, int]], folder: PathLike) -> list[PlannedRun]:
    """Runs that must be trained before these tests."""
    runs = dict.fromkeys((row.model, seed) for row, seed in tests)
    planned = [planned_run(model, seed) for model, seed in runs]
    return [run for run in planned if trained_run(run.name, folder) is None]


def estimate_counts(tests: Sequence[tuple[CountRow, int]], folder: PathLike = FOLDER) -> float:
    """Seconds to train and test them one after the other on an H200."""
    return estimate(untrained(tests, folder)) + sum(row.seconds for row, _ in tests)


def trained_run(name: str, folder: PathLike = FOLDER) -> RunFolder | None:
    """The folder of this run if its training is complete, otherwise None."""
    for path in (Path(folder) / "runs" / f"{name}-{EXACT}", Path(folder) / "runs" / name):
        if (path / "config.json").exists() and is_over(run := RunFolder.open(path)):
            return run
    return None


def fill_counts(
    tests: Sequence[tuple[CountRow, int]],
    records: Records,
    *,
    out: PathLike,
    folder: PathLike = FOLDER,
    device: str = "auto",
    budget: str | float | None = None,
    say: Say = print,
) -> list[str]:
    """Train missing runs, test them and write records; return the tests that were not made."""
    clock = Clock(None if budget is None else seconds(budget))
    if runs := untrained(tests, folder):
        train_missing(runs, out=out, folder=folder, device=device, budget=budget,
                      recorded=records.names, say=say)  # fmt: skip
    left = []
    for row, seed in tests:
        name = f"{row.model}-s{seed}"
        run = trained_run(name, folder)
        if run is None or clock.over:
            left.append(f"{name} at {row.size}")
            continue
        say(f"{name}: {row.problems} problems of size {row.size}, after "
            f"{row.iterations:,} iterations and twice as many")  # fmt: skip
        net: Any = load(run.path)
        where = fastest_device(net, registry.device(device))
        precision = "fp16" if where.type == "cuda" else EXACT
        net.to(where, torch.float16 if precision == "fp16" else torch.float32)
        task = MODELS[row.model].task
        label, test, _ = measure_counts(
            net, registry.task(task), int(row.size), row.problems, row.iterations, seed=SEED
        )
        record = {
            **count_record(row.model, seed, run.config["recipe"]),
            "parameters": parameter_count(net), "test precision": precision, "tests": {label: test},
        }  # fmt: skip
        result = f"measure-{task}-{name}-{row.size}"
        keep_record(out, result, record, seed)
        say(f"{name}: written to {Path(out) / result}.json")
    return left


def count_record(model: str, seed: int | None, recipe: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a record of a trained network except its tests."""
    about: dict[str, Any] = {"model": model, "seed": seed, "finished": True}
    about |= {"reduced": {}, "studies": {}}
    return about | ({"precision": recipe["precision"], "recipe": dict(recipe)} if recipe else {})
