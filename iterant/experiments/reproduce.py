"""Fill a table or figure: what is missing, train and test it, and write a record of each run.

    >>> runs = missing(EXPERIMENTS["table-prefix-peaks"], records, seeds=1)
    >>> estimate(runs)                                   # seconds on an H200
    >>> train_missing(runs, out="results/runs", budget="10m")

The runs are a plan of `iterant.runner`, whose folder is ``runs/campaign``: a process for each, as
many side by side as fit, resumed where they were stopped. The job of each is `train_and_measure`.
A run ends with its recipe, or when validation is perfect: the first of equally good checkpoints is
tested, so no later epoch could replace it. A record has curves, counts and a history, about ten
thousand bytes per run.

Rows without curves are filled by `fill_counts`: networks without a run folder are trained, then all
are tested; the paper's networks in half precision on a GPU, local rules on the CPU.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import torch

from iterant import registry
from iterant.analysis import Result, Subject, analyze
from iterant.errors import IterantError, TrainingStopped
from iterant.evaluation import budget_of, evaluate_batch, evaluate_long
from iterant.experiments.catalogue import CountRow, Experiment
from iterant.experiments.models import MODELS, OURS, Model, StudySpec, TestSpec
from iterant.experiments.records import CONFIDENT, Record, Records, keep_record
from iterant.formatting import seconds
from iterant.halting import MostConfident
from iterant.io import RunFolder
from iterant.io.files import PathLike, check_writable_folder
from iterant.nets import paper_net, parameter_count
from iterant.nets.fast import fastest_device
from iterant.nets.protocol import Net, depth_of
from iterant.runner.folder import SweepFolder
from iterant.runner.plan import Plan, PlannedRun
from iterant.runner.worker import Job, Launch, capacity, run_local
from iterant.tasks.protocol import Batch, Task
from iterant.training.data import TrainingSet
from iterant.training.loop import PERFECT, Clock
from iterant.training.recipe import Recipe
from iterant.training.recipe import recipe as named_recipe
from iterant.zoo.loading import load

_T = TypeVar("_T")
Say = Callable[[str], None]

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

EXACT = "fp32"
"""The precision in which a run is repeated if it diverges in half precision."""

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

_SEED = 7
"""The seed of every test set; training problems have another."""

_TRAIN_PROBLEMS = 10_000
"""The most training problems that the training accuracy is measured on."""

_STUDY_COUNT, _STUDY_STEPS = 100, 300
"""Problems and iterations of a study."""


# What is missing


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
    """Seconds to run them one after the other on an H200."""
    return sum(MODELS[run.point].seconds for run in runs)


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
    plan = _plan(runs, folder, device, precision, experiment, data)
    by_name = {run.name: run for run in plan.runs}
    for place in (out, folder):
        check_writable_folder(place if Path(place).suffix != ".jsonl" else Path(place).parent)
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
        outcome = sweep.outcome(name, partial=True)
        if how == "done" and outcome is not None:
            done.add(name)
            if name not in recorded:
                keep_record(out, name, outcome["record"], by_name[name].seed)
            how = "recorded" if outcome.get("finished", True) else "recorded as it was cut off"
        say(f"{name}: {how} after {clock.elapsed:.0f} s")

    with SweepFolder.locked(folder, plan) as sweep:
        say(f"logs are in {sweep.work_path('NAME') / 'log'}")
        reason = run_local(
            sweep, list(by_name), launch, at_once=at_once, time_for=time_for, on_end=ended,
            limit=None if limit is None else limit + _GRACE,
        )  # fmt: skip
    if reason not in (None, "the time limit"):
        raise KeyboardInterrupt
    return [name for name in by_name if name not in done]


def _plan(
    runs: Sequence[PlannedRun],
    folder: PathLike,
    device: str,
    precision: str | None,
    experiment: Experiment | None,
    data: str | None,
) -> Plan:
    """The plan of `train_missing`; raises where a test is not possible with these data."""
    models = {run.point: MODELS[run.point] for run in runs}
    options: dict[str, Any] = {}
    if experiment is not None:
        changes = {key: smaller(model) for key, model in models.items()}
        needs = {key: sorted(names) for key, names in experiment.needs.items()}
        options = {"reduced": changes, "needs": needs}
    else:
        on_gpu = registry.device(device).type == "cuda"
        precision = precision or ("fp16" if on_gpu else None)
        papers = [key for key, model in models.items() if model.recipe_name != OURS]
        changes = {key: {"precision": precision} for key in papers if precision}
    for key, model in models.items():
        task = registry.task(model.task, **({"data": data} if data else {}))
        for test in model.tests:  # raise now rather than after hours of training
            if not options or test.name in options["needs"][key]:
                task.check_size(test.size)
    changed = [replace(run, changes={**run.changes, **changes.get(run.point, {})}) for run in runs]
    return Plan(
        Path(folder).name, tuple(changed), data=data, job="train-and-measure", options=options
    )


# One run: train it, test it, return its record


def train_and_measure(job: Job) -> dict[str, Any] | None:
    """Train a run until its recipe ends or validation is perfect, measure it, return its record.

    Options of the plan, on a machine without a GPU: ``reduced``: by model, the recipe fields that
    were made smaller; ``needs``: by model, the tests and studies to make, with `SMALLER_TESTS` of
    their problems. Runs that reached their time limit are then measured, too.
    """
    start, options = time.monotonic(), job.folder.plan.options
    key, share, reduced = job.planned.point, 1.0, {}
    model = MODELS[key]
    if options:
        needs, share = options["needs"][key], SMALLER_TESTS
        reduced = {**options["reduced"][key], "share of the tests": share}
        tests = tuple(test for test in model.tests if test.name in needs)
        studies = tuple(study for study in model.studies if study.name in needs)
        model = replace(model, tests=tests, studies=studies)
    record = {"model": key, "seed": job.planned.seed, "reduced": reduced, "finished": True}
    try:
        run = _train(job)
    except TrainingStopped as failure:
        record |= {"precision": EXACT, "training": {"ended": str(failure)},
                   "tests": {}, "studies": {}}  # fmt: skip
        return {"seconds": time.monotonic() - start, "tests": {}, "record": record}
    record["finished"] = is_over(run)
    if not record["finished"] and not (options and "time limit" in str(run.status.reason)):
        return None
    record["precision"] = run.config["recipe"]["precision"]
    device = registry.device(job.device)
    record |= measure(model, run, job.task, device, seed=job.planned.seed, share=share)
    return {"finished": record["finished"], "seconds": time.monotonic() - start,
            "steps": run.status.step, "tests": {}, "record": record}  # fmt: skip


def _train(job: Job) -> RunFolder:
    """Train in the plan's precision; if that is half precision and the run diverges, in float32.

    The paper trains in float32, and an overflow of float16 is no failure of its recipe.
    """
    if not job.folder.is_started(f"{job.planned.name}-{EXACT}"):
        try:
            return job.train(until_perfect=True)
        except TrainingStopped as failure:
            if job.planned.changes.get("precision", EXACT) == EXACT:
                raise
            job.reporter.note(f"{failure}; again in {EXACT}")
    return job.train(f"-{EXACT}", {"precision": EXACT}, until_perfect=True)


def is_over(run: RunFolder) -> bool:
    """Whether training is complete: the recipe has ended, or validation is perfect."""
    return run.state == "finished" or run.status.reason == PERFECT


@torch.no_grad()
def measure(
    model: Model,
    run: RunFolder,
    task: Task,
    device: torch.device,
    *,
    seed: int,
    share: float = 1.0,
) -> dict[str, Any]:
    """All figures of one run; ``share``: of the problems of every test, less on small machines."""
    net, tests, studies = load(run.path, device), {}, {}
    for test in model.tests:
        some = replace(test, count=_part(test.count, share))
        tests[test.name] = measure_test(net, task, some, confident=model.confident)
    subject = Subject(net, task, label=model.key, model=model.net, alpha=model.alpha)
    for study in model.studies:
        if not study.covers(seed):
            continue
        try:
            studies[study.name] = measure_study(subject, study, model, share)
        except (IterantError, RuntimeError) as failure:  # keep what was trained and tested
            studies[study.name] = {"skipped": f"it failed: {failure}"}
    training = measure_training(run, net, task, device, share)
    return {"training": training, "tests": tests, "studies": studies}


def measure_training(
    run: RunFolder, net: Net, task: Task, device: torch.device, share: float = 1.0
) -> dict[str, Any]:
    """Recipe, history and end of training, and the tested weights' accuracy at that size."""
    recipe, status = Recipe().changed(**run.config["recipe"]), run.status
    figures: dict[str, Any] = {
        "ended": run.state if status.reason is None else status.reason,
        "updates": status.step,
        "of": status.steps,
        "best": dict(status.best),
        "recipe": {name: value for name, value in recipe.described().items() if name != "notes"},
        "history": history(run.metrics()),
    }
    problems = TrainingSet.of(task, recipe, device)
    inputs, targets = problems[torch.arange(min(len(problems), _part(_TRAIN_PROBLEMS, share)))]
    held_out = problems.held_out[: _part(len(problems.held_out), share)]
    for name, batch in (("train", Batch(inputs.cpu(), targets.cpu())), ("validation", held_out)):
        m = recipe.iterations
        curve = evaluate_batch(net, task, batch, steps=m, at=[m], cut=True)
        figures[name] = {"solved": int(curve.solved[-1]), "of": curve.count}
    return figures


def history(metrics: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Mean training loss of every epoch, and validation accuracies: what the authors log."""
    losses: dict[int, list[float]] = {}
    validations: dict[int, float] = {}
    for line in metrics:
        epoch = math.ceil(line.get("epoch", 0) - 1e-9)
        if line.get("kind") == "train" and line.get("loss") is not None:
            losses.setdefault(epoch, []).append(line["loss"])
        elif line.get("kind") == "validation":
            validations[epoch] = line["figures"].get("validation")
    return [
        {"epoch": epoch, "loss": _rounded(math.fsum(values) / len(values)),
         **({"validation": validations[epoch]} if epoch in validations else {})}
        for epoch, values in sorted(losses.items())
    ]  # fmt: skip


def measure_test(net: Net, task: Task, test: TestSpec, *, confident: bool) -> dict[str, Any]:
    """Problems solved after each iteration; ``confident``: also with `MostConfident` halting."""
    batch = task.sample(test.count, size=test.size, seed=_SEED)
    steps = budget_of(net, test.steps, cut=True)
    curve = evaluate_batch(net, task, batch, steps=steps)
    figures = {
        "problems": curve.count,
        "solved": curve.solved.tolist(),
        "change": _rounded(curve.change),
        "broken": curve.broken,
    }
    if confident and depth_of(net) is None:
        by_confidence = evaluate_batch(net, task, batch, steps=steps, rule=MostConfident())
        figures[CONFIDENT] = by_confidence.solved.tolist()
    return figures


def measure_study(
    subject: Subject, study: StudySpec, model: Model, share: float = 1.0
) -> dict[str, Any]:
    """The figures of one study, or the reason why it was skipped."""
    after = study.iteration
    steps = min(_STUDY_STEPS, depth_of(subject.net) or _STUDY_STEPS)
    if (after or 0) >= steps:
        return {"skipped": f"there are {steps} iterations"}
    count = max(2, _part(_STUDY_COUNT, share))
    report = analyze(
        [subject], [study.study], size=model.study_size, count=count, max_steps=steps,
        after=study.after, seed=_SEED,
    )  # fmt: skip
    figures: dict[str, Any] = {"after": after, "problems": count}
    for result in report.outcomes[0].results:
        figures |= _study_figures(result)
    return figures


def _study_figures(result: Result) -> dict[str, Any]:
    """The part of a study's result that tables and figures need."""
    full = result.figures
    if "recovered" in full:  # from an intervention
        figures = {
            "samples": full["problems"],
            "right": [round(share * full["problems"]) for share in full["accuracy"]],
            "recovered": full["recovered"],
            "mean iterations": _rounded(full["mean iterations to solution"]),
            "mean iterations to first": _rounded(full["mean iterations to first right answer"]),
            "left out": full["left out"],
            "broken": full["broken"],
        }
        if "by index" in full:
            by_index = full["by index"]["mean iterations to solution"]
            figures["mean iterations by index"] = [_rounded(value) for value in by_index]
        return figures
    if "mean change" in full:
        about: dict[str, Any] = {"change": [_rounded(value) for value in full["mean change"]]}
        for name in ("features", "answers"):
            about[name] = {kind: n for kind, n in full[name].items() if kind != "periods"}
        return {full["inputs"]: about}
    return {"starts": result.cells} if "starts" in full else full


def _part(count: int, share: float) -> int:
    return max(1, round(share * count))


def _rounded(value: float | None) -> float | None:
    """To four digits; None for NaN and infinity."""
    return None if value is None or not math.isfinite(value) else float(f"{value:.4g}")


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
            net, registry.task(task), int(row.size), row.problems, row.iterations, seed=_SEED
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


def measure_counts(
    net: Net, task: Task, size: int, count: int, steps: int, *, seed: int = _SEED
) -> tuple[str, dict[str, Any], Any]:
    """Problems solved after ``steps`` and after twice as many iterations.

    Returns the name of the test in a record, its figures, and the `LongRun`.
    """
    batch = task.sample(count, size=size, seed=seed)
    run = evaluate_long(net, task, batch, steps)
    figures = run.figures | {"test seed": seed}
    solved = {str(figures.pop("iterations")): figures.pop("solved")}
    solved[str(2 * steps)] = figures.pop("solved at twice")
    return f"{size}:{count}:{steps}", {**figures, "solved": solved}, run
