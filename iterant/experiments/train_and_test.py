"""Train one run of the paper's tables and measure it: the job of the plan of ``reproduce``.

A run ends with its recipe, or when validation is perfect: the first of equally good checkpoints is
tested, so no later epoch could replace it. A record has curves, counts and a history, about ten
thousand bytes per run.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import torch

from iterant import registry
from iterant.analysis import STUDIES, Result, Subject, analyze
from iterant.errors import IterantError, TrainingStopped
from iterant.evaluation import budget_of, evaluate_batch, evaluate_long
from iterant.experiments.models import MODELS, Model, StudySpec, TestSpec
from iterant.experiments.records import CONFIDENT
from iterant.halting import MostConfident
from iterant.io import RunFolder
from iterant.nets.protocol import Net, depth_of
from iterant.runner.worker import Job
from iterant.tasks.protocol import Batch, Task
from iterant.training.data import TrainingSet
from iterant.training.loop import PERFECT
from iterant.training.recipe import Recipe
from iterant.zoo.loading import load

SEED = 7
"""The seed of every test set; training problems have another."""

TRAIN_PROBLEMS = 10_000
"""The most training problems that the training accuracy is measured on."""

STUDY_COUNT, STUDY_STEPS = 100, 300
"""Problems and iterations of a study."""

EXACT = "fp32"
"""The precision in which a run is repeated if it diverges in half precision."""

Say = Callable[[str], None]


def train_and_measure(job: Job) -> dict[str, Any] | None:
    """Train a run until its recipe ends or validation is perfect, measure it, return its record.

    Options of the plan: ``reduced``: by model, the recipe fields that were made smaller;
    ``needs``: by model, the tests and studies to make (default: all); ``share``: of the problems of
    every test; ``unfinished``: also measure runs that reached their time limit.
    """
    start, options = time.monotonic(), job.folder.plan.options
    key, share = job.planned.point, options.get("share", 1.0)
    model = MODELS[key]
    if "needs" in options:
        needs = options["needs"][key]
        tests = tuple(test for test in model.tests if test.name in needs)
        studies = tuple(study for study in model.studies if study.name in needs)
        model = replace(model, tests=tests, studies=studies)
    reduced = options.get("reduced", {}).get(key, {})
    reduced = reduced | ({} if share == 1 else {"share of the tests": share})
    record = {"model": key, "seed": job.planned.seed, "reduced": reduced, "finished": True}
    try:
        run = _train(job)
    except TrainingStopped as failure:
        record |= {"precision": EXACT, "training": {"ended": str(failure)},
                   "tests": {}, "studies": {}}  # fmt: skip
        return {"seconds": time.monotonic() - start, "tests": {}, "record": record}
    record["finished"] = is_over(run)
    timed_out = options.get("unfinished") and "time limit" in str(run.status.reason)
    if not record["finished"] and not timed_out:
        return None
    record["precision"] = run.config["recipe"]["precision"]
    device = registry.device(job.device)
    record |= measure(
        model, run, job.task, device, seed=job.planned.seed, share=share, say=job.reporter.note
    )
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
    say: Say = lambda text: None,
) -> dict[str, Any]:
    """All figures of one run; ``share``: of the problems of every test, less on small machines."""
    net, tests, studies = load(run.path, device), {}, {}
    for test in model.tests:
        start = time.monotonic()
        count = _part(test.count, share)
        tests[test.name] = measure_test(
            net, task, replace(test, count=count), confident=model.confident
        )
        say(f"{test.name}: {time.monotonic() - start:.1f} s")
    subject = Subject(net, task, label=model.key, model=model.net, alpha=model.alpha)
    for study in model.studies:
        if not study.covers(seed):
            continue
        start = time.monotonic()
        try:
            studies[study.name] = measure_study(subject, study, model, share)
        except (IterantError, RuntimeError) as failure:  # keep what was trained and tested
            studies[study.name] = {"skipped": f"it failed: {failure}"}
        say(f"{study.name}: {time.monotonic() - start:.1f} s")
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
    inputs, targets = problems[torch.arange(min(len(problems), _part(TRAIN_PROBLEMS, share)))]
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
    batch = task.sample(test.count, size=test.size, seed=SEED)
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
    after = STUDIES[study.study].after if study.after is None else study.after
    steps = min(STUDY_STEPS, depth_of(subject.net) or STUDY_STEPS)
    if (after or 0) >= steps:
        return {"skipped": f"there are {steps} iterations"}
    count = max(2, _part(STUDY_COUNT, share))
    report = analyze(
        [subject], [study.study], size=model.study_size, count=count, max_steps=steps,
        after=study.after, seed=SEED,
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
    if "starts" in full:
        return {"starts": result.cells}
    return full


def measure_counts(
    net: Net, task: Task, size: int, count: int, steps: int, *, seed: int = SEED, **options: Any
) -> tuple[str, dict[str, Any], Any]:
    """Problems solved after ``steps`` and after twice as many iterations.

    Returns the name of the test in a record, its figures, and the `LongRun`.
    """
    batch = task.sample(count, size=size, seed=seed)
    run = evaluate_long(net, task, batch, steps, **options)
    figures = run.figures | {"test seed": seed}
    solved = {str(figures.pop("iterations")): figures.pop("solved")}
    solved[str(2 * steps)] = figures.pop("solved at twice")
    return f"{size}:{count}:{steps}", {**figures, "solved": solved}, run


def _part(count: int, share: float) -> int:
    return max(1, round(share * count))


def _rounded(value: float | None) -> float | None:
    """To four digits; None for NaN and infinity."""
    return None if value is None or not math.isfinite(value) else float(f"{value:.4g}")
