"""Fill a table or figure: what is missing, train and test it, and write a record of each run.

    >>> runs = missing(EXPERIMENTS["table-prefix-peaks"], records, seeds=1)
    >>> estimate(runs)                                   # seconds on an H200
    >>> train_missing(runs, out="results/runs", budget="10m")

The runs are a sweep in the folder ``runs/campaign`` whose job is `train_and_measure`.
A run ends with its recipe, or when validation is perfect: the first of equally good checkpoints is
tested, so no later epoch could replace it. A record has curves, counts and a history, about ten
thousand bytes per run.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from iterant import registry
from iterant.analysis import Result, Subject, analyze
from iterant.errors import TrainingStopped
from iterant.evaluation import evaluate_batch, resolve_steps
from iterant.experiments.catalogue import Experiment
from iterant.experiments.models import MODELS, OURS, Model, SizeTest, StudySpec
from iterant.experiments.records import CONFIDENT, Records, keep_record, read_records
from iterant.experiments.shifts import MazeExperiment
from iterant.halting import MostConfident
from iterant.io import RunFolder
from iterant.io.files import PathLike, check_writable_folder
from iterant.nets.protocol import Net
from iterant.runner.folder import SweepFolder
from iterant.runner.plan import Plan, PlannedRun
from iterant.runner.sweeps import sweep
from iterant.runner.worker import Job, Launch, Say
from iterant.tasks.protocol import Batch, Task
from iterant.training.data import TrainingSet
from iterant.training.loop import PERFECT
from iterant.training.recipe import recipe_from_json
from iterant.zoo.loading import load

FOLDER = "runs/campaign"
"""The folder of the runs."""

EXACT = "fp32"
"""The precision in which a run is repeated if it diverges in half precision."""

PROCESSES = 2
"""Runs that share a GPU at the same time."""

_SEED = 7
"""The seed of every test set; training problems have another."""

_TRAIN_PROBLEMS = 10_000
"""The most training problems that the training accuracy is measured on."""

_STUDY_COUNT, _STUDY_STEPS = 100, 300
"""Problems and iterations of a study."""


# What is missing


def planned_run(key: str, seed: int) -> PlannedRun:
    """A model with a seed, as a run of a plan."""
    model = MODELS[key]
    return PlannedRun(f"{key}-s{seed}", model.task, model.recipe_name, seed, model.fields)


def missing(
    experiment: Experiment | MazeExperiment, records: Records, seeds: int | None = None
) -> list[PlannedRun]:
    """Runs without a record; ``seeds``: replaces the planned number of seeds."""
    planned = [
        planned_run(model.key, seed)
        for model in experiment.models
        for seed in range(seeds or model.seeds)
    ]
    # Seed 0 of every model first, then seed 1, and so on.
    planned.sort(key=lambda run: run.seed)
    return [run for run in planned if run.name not in records.names]


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
    processes: int = PROCESSES,
    data: str | None = None,
    say: Say = print,
) -> list[str]:
    """Train and measure these runs, write records to ``out``; return the names without one.

    This is a sweep in ``folder``: runs that reach the end of the budget save and are resumed by
    the next call, and records are written when it ends. Runs that have a record are skipped.
    ``precision``: of the paper's models (default: fp16 on a GPU).
    """
    recorded = read_records(out).names
    precision = precision or ("fp16" if registry.device(device).type == "cuda" else None)
    planned = []
    for run in (run for run in runs if run.name not in recorded):
        model, task = MODELS[run.point], registry.task(run.task, data=data)
        for test in model.tests:  # raise now rather than after hours of training
            task.check_size(test.size)
        if precision is not None and model.recipe_name != OURS:
            run = replace(run, changes={**run.changes, "precision": precision})
        planned.append(run)
    check_writable_folder(out if Path(out).suffix != ".jsonl" else Path(out).parent)
    check_writable_folder(folder)
    plan = Plan(Path(folder).name, tuple(planned), data=data, job="train-and-measure")
    launch = Launch(device=device)
    sweep(plan, out=folder, launch=launch, at_once=processes, time_limit=budget, results=None,
          say=say)  # fmt: skip
    trained, left = SweepFolder.open(folder), []
    for run in planned:
        outcome = trained.outcome(run.name)
        if outcome is None:
            left.append(run.name)
        else:
            keep_record(out, run.name, outcome["record"], run.seed)
    return left


# One run: train it, test it, return its record


def train_and_measure(job: Job) -> dict[str, Any] | None:
    """Train a run until its recipe ends or validation is perfect, measure it, return its record."""
    start, model, seed = time.monotonic(), MODELS[job.planned.point], job.planned.seed
    record = {"model": model.key, "seed": seed, "reduced": {}, "finished": True}
    try:
        run = _train(job)
    except TrainingStopped as failure:
        record |= {"precision": EXACT, "training": {"ended": str(failure)},
                   "tests": {}, "studies": {}}  # fmt: skip
        return {"seconds": time.monotonic() - start, "tests": {}, "record": record}
    if run.state != "finished" and run.status.reason != PERFECT:
        return None
    record["precision"] = run.config["recipe"]["precision"]
    record |= measure(model, run, job.task, registry.device(job.device), seed=seed)
    return {"seconds": time.monotonic() - start, "steps": run.status.step, "tests": {},
            "record": record}  # fmt: skip


def _train(job: Job) -> RunFolder:
    """Train in the plan's precision; if that is half precision and the run diverges, in float32.

    The paper trains in float32, and an overflow of float16 is not a failure of its recipe.
    """
    if not job.folder.is_started(f"{job.planned.name}-{EXACT}"):
        try:
            return job.train(until_perfect=True)
        except TrainingStopped as failure:
            if job.planned.changes.get("precision", EXACT) == EXACT:
                raise
            job.reporter.note(f"{failure}; again in {EXACT}")
    return job.train(f"-{EXACT}", {"precision": EXACT}, until_perfect=True)


@torch.no_grad()
def measure(
    model: Model, run: RunFolder, task: Task, device: torch.device, *, seed: int
) -> dict[str, Any]:
    """All figures of one run."""
    net = load(run.path, device)
    subject = Subject(net, task, label=model.key, model=model.net, alpha=model.alpha)
    return {
        "training": measure_training(run, net, task, device),
        "tests": {test.name: measure_test(net, task, test, model) for test in model.tests},
        "studies": {
            study.name: measure_study(subject, study, model)
            for study in model.studies
            if seed < study.seeds
        },
    }


def measure_training(run: RunFolder, net: Net, task: Task, device: torch.device) -> dict[str, Any]:
    """Recipe, history and end of training, and the tested weights' accuracy at that size."""
    recipe, status = recipe_from_json(run.config["recipe"]), run.status
    figures: dict[str, Any] = {
        "ended": run.state if status.reason is None else status.reason,
        "updates": status.step,
        "of": status.steps,
        "best": dict(status.best),
        "recipe": {name: value for name, value in recipe.described().items() if name != "notes"},
        "history": history(run.metrics()),
    }
    problems, m = (
        TrainingSet.of(task, recipe, device),
        resolve_steps(net, recipe.iterations, cut=True),
    )
    inputs, targets = problems[torch.arange(min(len(problems), _TRAIN_PROBLEMS))]
    train = Batch(inputs.cpu(), targets.cpu())
    for name, batch in (("train", train), ("validation", problems.held_out)):
        curve = evaluate_batch(net, task, batch, steps=m, at=[m])
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


def measure_test(net: Net, task: Task, test: SizeTest, model: Model) -> dict[str, Any]:
    """Problems solved after each iteration; of some models also with `MostConfident` halting."""
    batch = task.sample(test.count, size=test.size, seed=_SEED)
    steps = resolve_steps(net, test.steps, cut=True)
    curve = evaluate_batch(net, task, batch, steps=steps)
    figures = {
        "problems": curve.count,
        "solved": curve.solved.tolist(),
        "change": _rounded(curve.change),
        "broken": curve.nonfinite,
    }
    if model.confident:
        by_confidence = evaluate_batch(net, task, batch, steps=steps, rule=MostConfident())
        figures[CONFIDENT] = by_confidence.solved.tolist()
    return figures


def measure_study(subject: Subject, study: StudySpec, model: Model) -> dict[str, Any]:
    """The figures of one study."""
    report = analyze(
        [subject], [study.study], size=model.study_size, count=_STUDY_COUNT,
        max_steps=_STUDY_STEPS, after=study.after, seed=_SEED,
    )  # fmt: skip
    figures: dict[str, Any] = {"after": study.iteration, "problems": _STUDY_COUNT}
    for result in report.results[study.study][subject.label]:
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
    if "starts" in full:
        ends = full["starts"].items()
        starts = {
            **{f"cosine from {start}": end["mean cosine"] for start, end in ends},
            **{f"same answer from {start}": end["same answer"] for start, end in ends},
            "solved": full["accuracy from own start"],
            **full["relation to accuracy"],
            "NaN": full["broken"],
        }
        return {"starts": {name: _rounded(value) for name, value in starts.items()}}
    return full


def _rounded(value: float | None) -> float | None:
    """To four digits; None for NaN and infinity."""
    return None if value is None or not math.isfinite(value) else float(f"{value:.4g}")
