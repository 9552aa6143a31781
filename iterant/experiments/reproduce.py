"""Making a table or a figure: what is missing, how long it takes, what a small machine leaves out.

>>> wanted = missing(EXPERIMENTS["table-prefix-peaks"], records, seeds=1)
>>> estimate(wanted)                                   # seconds on an H200

Filling rows without curves: networks that nobody has a run of are trained, then all are tested.

A run folder that a campaign left is not trained again. Networks of the paper think in half
precision on a GPU; local rules think only where something changes, on the CPU.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from iterant import registry
from iterant.evaluation import evaluate_long
from iterant.experiments.campaign import EXACT, SEED, Say, campaign, in_processes, is_over
from iterant.experiments.catalogue import Counted, Experiment
from iterant.experiments.counts import Counts
from iterant.experiments.models import MODELS, Model, Unit, usual_seconds
from iterant.experiments.records import Records, read_records
from iterant.io import RunFolder, write_result
from iterant.io.files import PathLike, check_writable_folder
from iterant.nets import parameter_count
from iterant.nets.factory import paper_net
from iterant.nets.fast import has_sparse_form
from iterant.nets.protocol import Net
from iterant.training.interrupts import Clock, seconds
from iterant.zoo.loading import load

SMALLER: dict[str, dict[str, Any]] = {
    "prefix-sums": {"width": 32, "size": 16, "iterations": 16, "rate": 4e-3, "warmup": 2,
                    "validate_every": 1, "checkpoint_every": 1, "watch_every": 0},
    "mazes": {"width": 16, "count": 10_000, "warmup": 2, "validate_every": 1,
              "checkpoint_every": 1, "watch_every": 0},
    "chess": {"width": 16, "warmup": 2, "watch_every": 0},
}  # fmt: skip
"""What is made smaller, and fit for that, where there is no GPU: fields of the recipe, by task."""

SMALLER_TESTS = 0.05
"""The share of every test set that is thought about then."""

RUNS = "runs/campaign"
"""Where run folders lie; those of small machines beside it."""

PROCESSES = 2
"""Units that share a GPU."""

_SMALL = 4
"""A recipe whose network is so many times narrower than the paper's is small already."""

_TESTING = 0.2
"""The share of the time that is kept for tests then."""

_WORTH = 0.25
"""The share of the time that is worth going on in, when all had theirs: more than tests are kept"""


def smaller(model: Model) -> dict[str, Any]:
    """A model's fields for a small machine; what a grid varies shrinks in proportion.

    A rate of its own grows in proportion to the one that is usual.
    """
    made = dict(SMALLER[model.task])
    own = registry.recipe(model.word, model.task, model.net or None)
    if own.width is not None and _SMALL * own.width <= paper_net(model.task).width:
        return {"watch_every": 0}
    usual = {"width": paper_net(model.task).width, "iterations": own.iterations}
    for name in made.keys() & model.changes.keys() & usual.keys():
        made[name] = max(2, round(made[name] * model.changes[name] / usual[name]))
    if "rate" in made:
        made["rate"] *= model.recipe().rate / registry.recipe("paper", model.task).rate
    return made


def told(experiment: Experiment) -> str:
    """What is made smaller, in words: ``width 32 instead of 400``."""
    parts = []
    for task in dict.fromkeys(model.task for model in experiment.models):
        mine = [model for model in experiment.models if model.task == task]
        parts.append(f"{task}: {', '.join(_instead(task, mine))}")
        if any(smaller(model).keys() < SMALLER[task].keys() for model in mine):
            parts[-1] += ", but for our own recipe, which is small already"
    return "; ".join(parts)


def _instead(task: str, models: Sequence[Model]) -> Iterator[str]:
    """Every field with what the recipes of these models have there."""
    spec = registry.task(task).spec
    unsaid = {"width": paper_net(task).width, "size": spec.train_size, "count": spec.train_count}
    for name in SMALLER[task]:
        changed = [model for model in models if smaller(model).keys() >= SMALLER[task].keys()]
        now = [smaller(model)[name] for model in changed]
        usual = [getattr(model.recipe(), name) or unsaid.get(name, 0) for model in changed]
        if changed:
            yield f"{name} {_each(now)} instead of {_each(usual)}"


def _each(values: Sequence[Any]) -> str:
    """All of them once, in their order."""
    told = [f"{value:g}" if isinstance(value, float) else str(value) for value in values]
    *most, last = dict.fromkeys(told)
    return f"{', '.join(most)} and {last}" if most else last


def narrowed(experiment: Experiment) -> dict[str, Model]:
    """Its models with those tests and studies only that it shows."""
    shown = [(row.model, row.measure) for row in experiment.rows]
    shown += [(key, panel.measure) for panel in experiment.panels for key in panel.models]
    needs: dict[str, set[str]] = {}
    for key, measure in shown:
        needs.setdefault(key, set()).add(measure.needs)
    return {
        model.key: replace(
            model,
            tests=tuple(test for test in model.tests if test.name in needs[model.key]),
            looks=tuple(look for look in model.looks if look.name in needs[model.key]),
        )
        for model in experiment.models
    }


def tested_enough(experiment: Experiment, records: Records) -> Records:
    """The records that have every test and study which the experiment shows."""
    models = narrowed(experiment)
    return Records(
        tuple(
            one
            for one in records.all
            if one.model in models
            and all(test.name in one.tests for test in models[one.model].tests)
            and all(
                look.name in one.studies or not look.covers(one.seed)
                for look in models[one.model].looks
            )
        )
    )


def check_places(out: PathLike, small: bool) -> None:
    """Raise where nothing could be kept: not after the training."""
    for folder in (out, _runs(small)):
        check_writable_folder(folder)


def _runs(small: bool) -> str:
    return "runs/reduced" if small else RUNS


def check_tests(experiment: Experiment, data: str | None) -> None:
    """Raise where something could be trained that cannot be tested: not after hours of it."""
    for model in narrowed(experiment).values():
        task = registry.task(model.task, **({"data": data} if data else {}))
        for test in model.tests:
            task.check_size(test.size)


def missing(experiment: Experiment, records: Records, seeds: int | None = None) -> list[Unit]:
    """Units that are not recorded yet: a seed of every model, then the next."""
    models, done = experiment.models, records.names
    most = max((seeds or model.seeds for model in models), default=0)
    return [
        Unit(model.key, seed)
        for seed in range(most)
        for model in models
        if seed < (seeds or model.seeds) and f"{model.key}-s{seed}" not in done
    ]


def estimate(units: Sequence[Unit]) -> float:
    """Seconds on an H200, one after the other, from measured costs of an update."""
    return sum(usual_seconds(MODELS[unit.model]) for unit in units)


def produce(
    experiment: Experiment,
    units: Sequence[Unit],
    *,
    out: PathLike,
    device: str,
    budget: str | float | None,
    small: bool,
    say: Say,
    data: str | None = None,
) -> list[Unit]:
    """Train and test these units, records into ``out``; returns those there was no time for.

    ``small``: on a machine without a GPU, everything smaller and nothing tested that the
    experiment does not show; every unit then gets its share of the budget, and one that is cut off
    is tested as it is, but goes on in what others leave of the budget.
    """
    if not small:
        return in_processes(
            units, processes=PROCESSES, out=out, runs=_runs(small), device=device,
            time_limit=budget, precision="fp16", say=say, data=data,
            enough_time=lambda unit, left: left > 0.6 * usual_seconds(MODELS[unit.model]),
        )  # fmt: skip

    def once(some: Sequence[Unit], limit: str | float | None) -> list[Unit]:
        return campaign(
            some, out=out, runs=_runs(small), device=device, time_limit=limit,
            reserve=0.0 if limit is None else _TESTING * seconds(limit),
            reduced=smaller, share=SMALLER_TESTS, fair=True, unfinished=True, say=say, data=data,
            models=narrowed(experiment),
        )  # fmt: skip

    clock, left = Clock(None), once(units, budget)
    if budget is None or left:
        return left
    spare, done = seconds(budget) - clock.elapsed, read_records(out).names
    again = [unit for unit in units if unit.name not in done]
    if again and spare > _WORTH * seconds(budget):
        say(f"{spare:.0f} s of the budget are left: what was cut off goes on")
        once(again, spare)
    return left


AGAIN = "recorded-already.jsonl"
"""Where records go of networks that are trained again because their weights are gone."""

Train = Callable[[Sequence[Unit], Path], object]
"""Trains units, and leaves their records there."""


@dataclass(frozen=True)
class Wanted:
    """A test of one network."""

    row: Counted
    unit: Unit


def uncounted(experiment: Experiment, counts: Counts, seeds: int | None = None) -> list[Wanted]:
    """What there is no result of: a seed of every row, then the next."""
    rows = [row for row in experiment.counted if row.seeds]
    there = {row: {one.seed for one in counts.of(row.model, row.size)} for row in rows}
    most = max((seeds or row.seeds for row in rows), default=0)
    return [
        Wanted(row, Unit(row.model, seed))
        for seed in range(most)
        for row in rows
        if seed < (seeds or row.seeds) and seed not in there[row]
    ]


def estimate_counts(wanted: Sequence[Wanted], runs: PathLike) -> float:
    """Seconds on an H200, one after the other."""
    training = {one.unit for one in wanted if run_of(one.unit, runs) is None}
    return sum(usual_seconds(MODELS[unit.model]) for unit in training) + sum(
        one.row.takes for one in wanted
    )


def run_of(unit: Unit, runs: PathLike) -> RunFolder | None:
    """Its run folder, if more training could not change what is tested."""
    for name in (f"{unit.name}-{EXACT}", unit.name):
        if (Path(runs) / name / "config.json").exists():
            run = RunFolder.open(Path(runs) / name)
            if is_over(run):
                return run
    return None


def count(
    wanted: Sequence[Wanted],
    records: Records,
    *,
    results: PathLike,
    runs: PathLike,
    device: str,
    train: Train,
    limit: float | None = None,
    say: Say = print,
) -> list[Wanted]:
    """Train what has no run, test, write a result each; returns those that were left over."""
    clock = Clock(limit)
    untrained = dict.fromkeys(one.unit for one in wanted if run_of(one.unit, runs) is None)
    for known, out in ((False, Path(results) / "runs"), (True, Path(runs) / AGAIN)):
        units = [unit for unit in untrained if (unit.name in records.names) == known]
        if units:
            train(units, out)
    left = []
    for one in wanted:
        run = run_of(one.unit, runs)
        if run is None or clock.over:
            left.append(one)
            continue
        say(f"{one.unit.name}: {one.row.problems} problems of size {one.row.size}, after "
            f"{one.row.iterations:,} iterations and twice as many")  # fmt: skip
        say(f"{one.unit.name}: written to {_tested(one, run, results, device)}")
    return left


def _tested(one: Wanted, run: RunFolder, results: PathLike, device: str) -> Path:
    """Test one network and write what it solves."""
    row, word = one.row, MODELS[one.unit.model].task
    task, (net, precision) = registry.task(word), _laid_out(load(run.path), device)
    batch = task.sample(row.problems, size=int(row.size), seed=SEED)
    far = evaluate_long(net, task, batch, row.iterations)
    figures = {
        "network": one.unit.name, "model": row.model, "parameters": parameter_count(net),
        "precision": precision, "filter": "none",
        "halting": "a fixed number of iterations, then twice as many",
        f"size {row.size}": {**far.figures(), "test seed": SEED},
    }  # fmt: skip
    name = f"measure-{word}-{one.unit.name}-{row.size}"
    return write_result(name, figures, seed=one.unit.seed, folder=results)


def _laid_out(net: Net, device: str) -> tuple[Net, str]:
    """The network where it thinks fastest, and its precision."""
    whole: Any = net
    if has_sparse_form(net):
        return net, EXACT
    if not device.startswith("cuda"):
        return whole.to(device), EXACT
    return whole.to(device, torch.float16), "fp16"
