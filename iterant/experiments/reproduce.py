"""Fill a table or figure: what is missing, how long it takes, and how a small machine does it.

    >>> runs = missing(EXPERIMENTS["table-prefix-peaks"], records, seeds=1)
    >>> estimate(runs)                                   # seconds on an H200

Rows without curves are filled by `fill_counts`: networks without a run folder are trained, then all
are tested; the paper's networks in half precision on a GPU, local rules on the CPU.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from iterant import registry
from iterant.evaluation import evaluate_long
from iterant.experiments.catalogue import Counted, Experiment
from iterant.experiments.models import MODELS, Model, RunSpec, usual_seconds
from iterant.experiments.records import Records, keep_record, read_records
from iterant.experiments.train_and_test import (
    EXACT,
    FOLDER,
    SEED,
    Say,
    is_over,
    train_and_test,
    train_side_by_side,
)
from iterant.io import RunFolder
from iterant.io.files import PathLike, check_writable_folder
from iterant.nets import parameter_count
from iterant.nets.factory import paper_net
from iterant.nets.fast import has_sparse_form
from iterant.training.interrupts import Clock, seconds
from iterant.training.run import use_device
from iterant.zoo.loading import load

SMALLER: dict[str, dict[str, Any]] = {
    "prefix-sums": {"width": 32, "size": 16, "iterations": 16, "rate": 4e-3, "warmup": 2,
                    "validate_every": 1, "checkpoint_every": 1, "watch_every": 0},
    "mazes": {"width": 16, "count": 10_000, "warmup": 2, "validate_every": 1,
              "checkpoint_every": 1, "watch_every": 0},
    "chess": {"width": 16, "warmup": 2, "watch_every": 0},
}  # fmt: skip
"""Fields of the recipe on a machine without a GPU, by task."""

SMALLER_TESTS = 0.05
"""The share of every test set that is used then."""

SMALL_FOLDER = "runs/reduced"
"""Run folders of such runs."""

PROCESSES = 2
"""Runs that share a GPU."""

_NARROW = 4
"""A network this many times narrower than the paper's is small already."""

_TEST_SHARE = 0.2
"""The share of the time that is kept for tests on a small machine."""

_WORTH = 0.25
"""The share of the budget that must be left for a second round, more than tests need."""


def smaller(model: Model) -> dict[str, Any]:
    """A model's recipe fields on a small machine; what a grid varies shrinks in proportion.

    A learning rate of its own grows in proportion to the usual one.
    """
    fields = dict(SMALLER[model.task])
    recipe = registry.recipe(model.word, model.task, model.net or None)
    width = paper_net(model.task).width
    if recipe.width is not None and _NARROW * recipe.width <= width:
        return {"watch_every": 0}
    usual = {"width": width, "iterations": recipe.iterations}
    for name in fields.keys() & model.changes.keys() & usual.keys():
        fields[name] = max(2, round(fields[name] * model.changes[name] / usual[name]))
    if "rate" in fields:
        fields["rate"] *= model.recipe().rate / registry.recipe("paper", model.task).rate
    return fields


def smaller_text(experiment: Experiment) -> str:
    """What is made smaller, in words: ``width 32 instead of 400``."""
    parts = []
    for task in dict.fromkeys(model.task for model in experiment.models):
        models = [model for model in experiment.models if model.task == task]
        parts.append(f"{task}: {', '.join(_changes(task, models))}")
        if any(smaller(model).keys() < SMALLER[task].keys() for model in models):
            parts[-1] += ", but for our own recipe, which is small already"
    return "; ".join(parts)


def _changes(task: str, models: Sequence[Model]) -> Iterator[str]:
    """Every field with the value that the recipes of these models have."""
    spec = registry.task(task).spec
    default = {"width": paper_net(task).width, "size": spec.train_size, "count": spec.train_count}
    changed = [model for model in models if smaller(model).keys() >= SMALLER[task].keys()]
    for name in SMALLER[task] if changed else ():
        now = [smaller(model)[name] for model in changed]
        before = [getattr(model.recipe(), name) or default.get(name, 0) for model in changed]
        yield f"{name} {_each(now)} instead of {_each(before)}"


def _each(values: Sequence[Any]) -> str:
    """All values once, in their order."""
    texts = [f"{value:g}" if isinstance(value, float) else str(value) for value in values]
    *most, last = dict.fromkeys(texts)
    return f"{', '.join(most)} and {last}" if most else last


def needed_tests(experiment: Experiment) -> dict[str, Model]:
    """Its models with only those tests and studies that it shows."""
    needs: dict[str, set[str]] = {}
    for row in experiment.rows:
        needs.setdefault(row.model, set()).add(row.measure.needs)
    for panel in experiment.panels:
        for key in panel.models:
            needs.setdefault(key, set()).add(panel.measure.needs)
    return {
        model.key: replace(
            model,
            tests=tuple(test for test in model.tests if test.name in needs[model.key]),
            studies=tuple(one for one in model.studies if one.name in needs[model.key]),
        )
        for model in experiment.models
    }


def tested_enough(experiment: Experiment, records: Records) -> Records:
    """The records that have every test and study which the experiment shows."""
    models = needed_tests(experiment)
    return Records(
        tuple(
            one
            for one in records.all
            if (model := models.get(one.model))
            and all(test.name in one.tests for test in model.tests)
            and all(s.name in one.studies or not s.covers(one.seed) for s in model.studies)
        )
    )


def check_before_training(
    experiment: Experiment, out: PathLike, small: bool, data: str | None
) -> None:
    """Raise now, not after hours of training, where nothing could be written or tested."""
    for folder in (out, SMALL_FOLDER if small else FOLDER):
        check_writable_folder(folder)
    for model in needed_tests(experiment).values():
        task = registry.task(model.task, **({"data": data} if data else {}))
        for test in model.tests:
            task.check_size(test.size)


def missing(experiment: Experiment, records: Records, seeds: int | None = None) -> list[RunSpec]:
    """Runs that are not recorded yet: a seed of every model, then the next."""
    models = experiment.models
    most = max((seeds or model.seeds for model in models), default=0)
    return [
        RunSpec(model.key, seed)
        for seed in range(most)
        for model in models
        if seed < (seeds or model.seeds) and f"{model.key}-s{seed}" not in records.names
    ]


def estimate(runs: Sequence[RunSpec]) -> float:
    """Seconds on an H200, one after the other, from measured costs of an optimizer step."""
    return sum(usual_seconds(MODELS[run.model]) for run in runs)


def produce(
    experiment: Experiment,
    runs: Sequence[RunSpec],
    *,
    out: PathLike,
    device: str,
    budget: str | float | None,
    small: bool,
    say: Say,
    data: str | None = None,
) -> list[RunSpec]:
    """Train and test these runs, records into ``out``; returns those there was no time for.

    ``small``: without a GPU, everything is smaller and only what the experiment shows is tested.
    Every run gets its share of the budget; one that is cut off is tested as it is, and goes on in
    what others leave of the budget.
    """
    if not small:
        return train_side_by_side(
            runs, processes=PROCESSES, out=out, device=device, time_limit=budget,
            precision="fp16", say=say, data=data,
            enough_time=lambda run, left: left > 0.6 * usual_seconds(MODELS[run.model]),
        )  # fmt: skip

    def train(some: Sequence[RunSpec], limit: str | float | None) -> list[RunSpec]:
        return train_and_test(
            some, out=out, folder=SMALL_FOLDER, device=device, time_limit=limit,
            reserve=0.0 if limit is None else _TEST_SHARE * seconds(limit),
            reduced=smaller, share=SMALLER_TESTS, fair=True, unfinished=True, say=say, data=data,
            models=needed_tests(experiment),
        )  # fmt: skip

    clock, left = Clock(None), train(runs, budget)
    if budget is None or left:
        return left
    spare, done = seconds(budget) - clock.elapsed, read_records(out).names
    cut_off = [run for run in runs if run.name not in done]
    if cut_off and spare > _WORTH * seconds(budget):
        say(f"{spare:.0f} s of the budget are left: what was cut off goes on")
        train(cut_off, spare)
    return left


AGAIN = "recorded-already.jsonl"
"""Records of networks that are trained again because their weights are gone."""

Train = Callable[[Sequence[RunSpec], Path], object]
"""Trains runs, records into that place."""


@dataclass(frozen=True)
class CountTest:
    """A test of one network without a curve."""

    row: Counted
    run: RunSpec


def missing_counts(
    experiment: Experiment, records: Records, seeds: int | None = None
) -> list[CountTest]:
    """Tests without a record: a seed of every row, then the next."""
    rows = [row for row in experiment.counted if row.seeds]
    done = {row: {one.seed for one in records.counts(row.model, row.size)} for row in rows}
    most = max((seeds or row.seeds for row in rows), default=0)
    return [
        CountTest(row, RunSpec(row.model, seed))
        for seed in range(most)
        for row in rows
        if seed < (seeds or row.seeds) and seed not in done[row]
    ]


def estimate_counts(tests: Sequence[CountTest], folder: PathLike = FOLDER) -> float:
    """Seconds on an H200, one after the other."""
    untrained = {one.run for one in tests if trained_run(one.run, folder) is None}
    return estimate(list(untrained)) + sum(one.row.takes for one in tests)


def trained_run(run: RunSpec, folder: PathLike) -> RunFolder | None:
    """Its run folder, if more training could not change what is tested."""
    for name in (f"{run.name}-{EXACT}", run.name):
        if (Path(folder) / name / "config.json").exists():
            found = RunFolder.open(Path(folder) / name)
            if is_over(found):
                return found
    return None


def fill_counts(
    tests: Sequence[CountTest],
    records: Records,
    *,
    out: PathLike,
    folder: PathLike,
    device: str,
    train: Train,
    limit: float | None = None,
    say: Say = print,
) -> list[CountTest]:
    """Train what has no run, test, write a record each; returns the tests that are left."""
    clock = Clock(limit)
    untrained = dict.fromkeys(one.run for one in tests if trained_run(one.run, folder) is None)
    for recorded, place in ((False, Path(out)), (True, Path(folder) / AGAIN)):
        runs = [run for run in untrained if (run.name in records.names) == recorded]
        if runs:
            train(runs, place)
    left = []
    for one in tests:
        run, row = trained_run(one.run, folder), one.row
        if run is None or clock.over:
            left.append(one)
            continue
        say(f"{one.run.name}: {row.problems} problems of size {row.size}, after "
            f"{row.iterations:,} iterations and twice as many")  # fmt: skip
        name = f"measure-{MODELS[row.model].task}-{one.run.name}-{row.size}"
        keep_record(out, name, _count(one, run, device), one.run.seed)
        say(f"{one.run.name}: written to {Path(out) / name}.json")
    return left


def _count(one: CountTest, run: RunFolder, device: str) -> dict[str, Any]:
    """The record of one network's test."""
    row, precision = one.row, EXACT
    net: Any = load(run.path)
    task = registry.task(MODELS[row.model].task)
    # Local rules are fastest on the CPU, where only cells that change are computed.
    if not has_sparse_form(net):
        where = use_device(device)
        precision = "fp16" if where.type == "cuda" else EXACT
        net.to(where, torch.float16 if precision == "fp16" else torch.float32)
    batch = task.sample(row.problems, size=int(row.size), seed=SEED)
    name, test = count_figures(row.size, evaluate_long(net, task, batch, row.iterations).figures())
    return {
        "model": row.model, "seed": one.run.seed, "finished": True, "reduced": {},
        "precision": run.config["recipe"]["precision"], "recipe": run.config["recipe"],
        "parameters": parameter_count(net), "test precision": precision,
        "tests": {name: {**test, "test seed": SEED}}, "studies": {},
    }  # fmt: skip


def count_figures(size: str, figures: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """A long run's figures as records have them: the name of the test, and the test."""
    rest = dict(figures)
    steps, problems = rest.pop("iterations"), rest["problems"]
    solved = {str(steps): rest.pop("solved"), str(2 * steps): rest.pop("solved at twice")}
    return f"{size}:{problems}:{steps}", {**rest, "solved": solved}
