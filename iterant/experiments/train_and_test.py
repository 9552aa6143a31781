"""Train the runs of the paper's tables within a time, test each, and record it.

    >>> train_and_test(runs_of(["sums-recall-a1", "sums-dt-a1"], range(5)), out="runs.jsonl",
    ...                time_limit="9m")

One run after the other in this process, or a process for each, several side by side
(`train_side_by_side`): what a GPU library keeps in a process, or a crash, then ends with the run.

A run ends with its recipe, or when validation is perfect: the first of equally good checkpoints is
tested, so no later epoch could replace it. Recorded are curves, counts and a history, about ten
thousand bytes a run.
"""

from __future__ import annotations

import json
import math
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from iterant import registry
from iterant.analysis import STUDIES, Convergence, NearMisses, Recovery, Subject, analyze
from iterant.errors import IterantError, TrainingStopped
from iterant.evaluation import budget_of, evaluate_batch
from iterant.experiments.models import MODELS, Model, RunSpec, StudySpec, TestSpec
from iterant.experiments.records import keep, keep_record
from iterant.halting import MostConfident
from iterant.io import RunFolder, read_lines
from iterant.io.files import PathLike, make_folder, to_json
from iterant.nets.protocol import Net, depth_of
from iterant.runner.local import run_pool
from iterant.runner.worker import KILL, Launch, run_process
from iterant.tasks.protocol import Batch, Task
from iterant.training.data import TrainingSet
from iterant.training.interrupts import Clock, Signals, seconds
from iterant.training.logging import Progress, Reporter
from iterant.training.loop import RunContext
from iterant.training.recipe import Recipe
from iterant.training.run import resume_run, start_run, use_device
from iterant.zoo.loading import load

SEED = 7
"""Of every test set; training has another."""

TRAIN_PROBLEMS = 10_000
"""Training problems that the training accuracy is measured on, at most."""

STUDY_COUNT, STUDY_STEPS = 100, 300
"""Problems and iterations of a study."""

FOLDER = "runs/campaign"
"""Where run folders are."""

EXACT = "fp32"
"""The precision that a run which diverges in half precision is trained in again."""

PERFECT = "a perfect validation"
"""Why a run is stopped whose tested weights cannot change any more."""

INTERRUPTED = 130
"""Exit code of a process that was interrupted."""

GRACE = 30.0
"""Seconds after its time limit when a process counts as hanging, and is killed."""

Say = Callable[[str], None]


# Measuring a trained network


@torch.no_grad()
def measure(
    model: Model,
    run: RunFolder,
    net: Net,
    task: Task,
    *,
    seed: int,
    problems: TrainingSet | None = None,
    share: float = 1.0,
    say: Say = lambda text: None,
) -> dict[str, Any]:
    """All figures of one run; ``share`` of the problems of every test, for small machines."""
    figures: dict[str, Any] = {
        "training": measure_training(run, net, task, problems, share), "tests": {}, "studies": {},
    }  # fmt: skip
    for test in model.tests:
        start = time.monotonic()
        figures["tests"][test.name] = measure_test(
            net, task, test.reduced(share), confident=model.confident
        )
        say(f"{model.key} {test.name}: {time.monotonic() - start:.1f} s")
    subject = Subject(net, task, label=model.key, model=model.net, alpha=model.alpha)
    for study in model.studies:
        if not study.covers(seed):
            continue
        start = time.monotonic()
        try:
            figures["studies"][study.name] = measure_study(subject, study, model, share)
        except (IterantError, RuntimeError) as failure:  # keep what was trained and tested
            figures["studies"][study.name] = {"skipped": f"it failed: {failure}"}
            say(f"{model.key} {study.name} failed: {failure}")
        say(f"{model.key} {study.name}: {time.monotonic() - start:.1f} s")
    return figures


def measure_training(
    run: RunFolder, net: Net, task: Task, problems: TrainingSet | None, share: float = 1.0
) -> dict[str, Any]:
    """How training went, and the accuracy of the tested weights at the training size."""
    recipe, status = Recipe().changed(**run.config["recipe"]), run.status
    figures: dict[str, Any] = {
        "ended": run.state if status.reason is None else status.reason,
        "updates": status.step,
        "of": status.steps,
        "best": dict(status.best),
        "recipe": {name: value for name, value in recipe.described().items() if name != "notes"},
        "history": history(run.metrics()),
    }
    if problems is not None:
        count = min(len(problems), _part(TRAIN_PROBLEMS, share))
        inputs, targets = problems[torch.arange(count)]
        held_out = problems.held_out
        held_out = held_out[: _part(len(held_out), share)] if share < 1 else held_out
        for name, batch in (
            ("train", Batch(inputs.cpu(), targets.cpu())), ("validation", held_out),
        ):  # fmt: skip
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
    """Problems solved after each iteration; ``confident``: also by the most confident one."""
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
        figures["solved by the most confident"] = by_confidence.solved.tolist()
    return figures


def measure_study(
    subject: Subject, study: StudySpec, model: Model, share: float = 1.0
) -> dict[str, Any]:
    """One study in a few numbers and curves; the reason, where it cannot be made."""
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


def _study_figures(result: Any) -> dict[str, Any]:
    """What tables and figures need of the result of a study."""
    if isinstance(result, Recovery):
        figures = {
            "samples": result.count,
            "right": result.right.tolist(),
            "recovered": result.recovered,
            "mean iterations": _rounded(result.mean_to_solution),
            "mean iterations to first": _rounded(result.mean_to_first),
            "left out": result.left_out,
            "broken": int(result.broken.sum()),
        }
        if result.length is not None:
            by_index = result.mean_by_index.tolist()
            figures["mean iterations by index"] = [_rounded(value) for value in by_index]
        return figures
    if isinstance(result, Convergence):
        change = [_rounded(value) for value in result.change.tolist()]
        about = {"change": change, "features": result.features, "answers": result.answers}
        return {result.inputs: about}
    if isinstance(result, NearMisses):
        return {key: value for key, value in result.figures().items()
                if not isinstance(value, list)}  # fmt: skip
    return {"starts": result.headline()}


def _part(count: int, share: float) -> int:
    return max(1, round(share * count))


def _rounded(value: float | None) -> float | None:
    """To four digits; None for NaN and infinity."""
    return None if value is None or not math.isfinite(value) else float(f"{value:.4g}")


# Training


class RunSignals(Signals):
    """Requests to stop one run: its own, or those to the whole process, which it does not catch."""

    def __init__(self, process: Signals) -> None:
        """No request of its own yet."""
        self.process = process
        self.own: str | None = None

    @property
    def raised(self) -> str | None:
        """Why to stop; None: go on."""
        return self.own or self.process.raised

    @raised.setter
    def raised(self, reason: str | None) -> None:
        self.own = reason


class StopWhenPerfect(Reporter):
    """Stops a run as soon as its tested weights cannot change, and reports validations."""

    def __init__(self, run: RunSpec, recipe: Recipe, signals: Signals, say: Say) -> None:
        """``signals`` are raised to stop the run."""
        self.run, self.signals, self.say = run, signals, say
        # Averaged weights are tested as they are at the end, whatever validation said before.
        self.stops = recipe.average is None

    def show(self, report: Progress) -> None:
        """Report a validation, and stop if it is perfect."""
        if "validation" not in report.fresh:
            return
        accuracy = report.figures["validation"]
        self.say(f"{self.run.name}: epoch {report.epoch}, validation {100 * accuracy:.2f} %, "
                 f"{report.updates_per_second:.0f} updates/s")  # fmt: skip
        if accuracy == 1.0 and self.stops:
            self.signals.raised = PERFECT

    def end(self, text: str) -> None:
        """Report how the run ended."""
        self.say(f"{self.run.name}: {text}")


def is_over(run: RunFolder) -> bool:
    """Whether more training could not change what is tested."""
    return run.state == "finished" or PERFECT in str(run.status.reason)


@dataclass
class Session:
    """How runs are trained and tested in this process; tasks and training sets are made once."""

    out: Path
    """A ``.jsonl`` file of records, or a folder for a file each"""
    folder: Path
    """Of run folders"""
    device: torch.device
    limit: float | None = None
    """Seconds in all"""
    reserve: float = 30.0
    """Seconds of them that are kept for tests"""
    reduced: Mapping[str, Any] | Callable[[Model], Mapping[str, Any]] = field(default_factory=dict)
    """Fields of every recipe, or of each model's, that are made smaller"""
    share: float = 1.0
    """Of the problems of every test"""
    precision: str | None = None
    data: str | None = None
    unfinished: bool = False
    """Whether runs that were cut off are tested and recorded too"""
    fair: bool = False
    """Whether every run gets the same share of the time"""
    models: Mapping[str, Model] = field(default_factory=lambda: MODELS)
    say: Say = print

    def __post_init__(self) -> None:
        """Start the clock."""
        self.clock = Clock(None)
        self.signals = Signals()
        self._tasks: dict[str, Task] = {}
        self._sets: dict[tuple[Any, ...], TrainingSet] = {}

    @contextmanager
    def uncaught_signals(self) -> Iterator[None]:
        """During tests nothing can be saved: an interrupt ends them at once."""
        self.signals.__exit__()
        try:
            yield
        finally:
            self.signals.__enter__()

    @property
    def left(self) -> float:
        """Seconds until training must end."""
        if self.limit is None:
            return float("inf")
        return self.limit - self.reserve - self.clock.elapsed

    def reduced_fields(self, model: Model) -> Mapping[str, Any]:
        """The fields of its recipe that are made smaller."""
        return self.reduced(model) if callable(self.reduced) else self.reduced

    def task(self, name: str) -> Task:
        """The task of that name."""
        if name not in self._tasks:
            self._tasks[name] = registry.task(name, **({"data": self.data} if self.data else {}))
        return self._tasks[name]

    def training_set(self, name: str, recipe: Recipe) -> TrainingSet:
        """The training set of a task, shared by the runs that have the same."""
        key = (name, recipe.size, recipe.count, recipe.validation, recipe.data_seed)
        if key not in self._sets:
            self._sets[key] = TrainingSet.of(self.task(name), recipe, self.device)
        return self._sets[key]

    def recipe(self, model: Model, precision: str | None = None) -> Recipe:
        """A model's recipe as it is used here, or in another precision."""
        chosen = precision or (self.precision if model.half else None)
        changes = {"precision": chosen} if chosen else {}
        return model.recipe(**changes, **self.reduced_fields(model))

    def train_and_test(
        self, run: RunSpec, share: float | None = None, precision: str | None = None
    ) -> None:
        """Train, test and record one run, in at most ``share`` seconds.

        A run that diverges in half precision is trained again in float32, as the paper's are:
        features beyond the range of float16 say nothing about the recipe.
        """
        model, exact = self.models[run.model], self.folder / f"{run.name}-{EXACT}"
        if precision is None and exact.exists():
            precision = EXACT
        recipe = self.recipe(model, precision)
        problems = self.training_set(model.task, recipe)
        limit = self.left if share is None else min(share, self.left)
        path = self.folder / run.name if precision is None else exact
        try:
            trained = _finish(self._train(run, model, recipe, problems, path, limit))
        except TrainingStopped as failure:
            self.say(f"{run.name}: {failure}")
            if recipe.precision != EXACT:
                self.train_and_test(run, share, EXACT)
                return
            figures: dict[str, Any] = {
                "training": {"ended": str(failure)}, "tests": {}, "studies": {},
            }  # fmt: skip
            self._record(run, figures, True, recipe.precision)
            return
        if self.signals.raised is None and (is_over(trained) or self.unfinished):
            net = load(trained.path, self.device)
            with self.uncaught_signals():
                figures = measure(model, trained, net, self.task(model.task), seed=run.seed,
                                  problems=problems, share=self.share, say=self.say)  # fmt: skip
            figures["training"]["seconds since the campaign began"] = round(self.clock.elapsed, 1)
            self._record(run, figures, is_over(trained), recipe.precision)

    def _train(
        self,
        run: RunSpec,
        model: Model,
        recipe: Recipe,
        problems: TrainingSet,
        path: Path,
        limit: float,
    ) -> Generator[None, None, RunFolder]:
        signals = RunSignals(self.signals)
        clock = Clock(None if limit == float("inf") else max(limit, 1e-3))
        reporter = StopWhenPerfect(run, recipe, signals, self.say)
        context = RunContext(self.device, clock, reporter, signals=signals)
        at_most = "" if limit == float("inf") else f", for at most {max(limit, 0):.0f} s"
        if not (path / "config.json").exists():
            self.say(f"{run.name}: begins{at_most}")
            task = self.task(model.task)
            return (
                yield from start_run(model.task, task, recipe, run.seed, path, context, problems)
            )
        folder = RunFolder.open(path)
        if is_over(folder):
            return folder
        self.say(f"{run.name}: goes on where {path} was left{at_most}")
        return (yield from resume_run(model.task, path, context, self.data, problems))

    def _record(
        self, run: RunSpec, figures: dict[str, Any], finished: bool, precision: str
    ) -> None:
        reduced = dict(self.reduced_fields(self.models[run.model]))
        reduced |= {} if self.share == 1 else {"share of the tests": self.share}
        about = {"model": run.model, "seed": run.seed, "reduced": reduced, "finished": finished,
                 "precision": precision}  # fmt: skip
        keep_record(self.out, run.name, {**about, **figures}, run.seed)
        self.say(f"{run.name}: recorded after {self.clock.elapsed:.0f} s")


def _finish(training: Generator[None, None, RunFolder]) -> RunFolder:
    """Run a training to its end."""
    while True:
        try:
            next(training)
        except StopIteration as end:
            folder: RunFolder = end.value
            return folder


def train_and_test(
    runs: Sequence[RunSpec],
    *,
    out: PathLike,
    folder: PathLike = FOLDER,
    device: str = "auto",
    time_limit: str | float | None = None,
    done: set[str] | frozenset[str] = frozenset(),
    enough_time: Callable[[RunSpec, float], bool] = lambda run, left: left > 0,
    **options: Any,
) -> list[RunSpec]:
    """Train, test and record runs one after the other; returns those that were not done.

    ``done``: names of runs to leave out. ``enough_time`` is asked with a run and the seconds left
    before it starts. ``options``: fields of `Session`. A run that fails does not stop the others.
    Interrupted, it saves the run in training and raises KeyboardInterrupt; called again, it goes
    on from there.
    """
    limit = None if time_limit is None else seconds(time_limit)
    session = Session(Path(out), Path(folder), use_device(device), limit, **options)
    waiting = [run for run in runs if run.name not in done]
    left: list[RunSpec] = []
    with session.signals as signals:
        for number, run in enumerate(waiting):
            if not enough_time(run, session.left):
                left.append(run)
                continue
            share = session.left / (len(waiting) - number) if session.fair else None
            try:
                session.train_and_test(run, share)
            except (IterantError, torch.OutOfMemoryError) as failure:
                session.say(f"{run.name}: not carried out: {failure}")
                left.append(run)
            if signals.raised is not None:
                raise KeyboardInterrupt
    return left


def train_side_by_side(
    runs: Sequence[RunSpec],
    *,
    processes: int,
    out: PathLike,
    folder: PathLike = FOLDER,
    device: str = "auto",
    time_limit: str | float | None = None,
    done: set[str] | frozenset[str] = frozenset(),
    enough_time: Callable[[RunSpec, float], bool] = lambda run, left: left > 0,
    say: Say = print,
    **options: Any,
) -> list[RunSpec]:
    """Like `train_and_test`, with a process for each run, at most ``processes`` at once.

    Each is told how many seconds are left, and killed if it is still there long after them. Only
    this process writes to ``out``.
    """
    limit, clock = None if time_limit is None else seconds(time_limit), Clock(None)
    by_name = {run.name: run for run in runs if run.name not in done}
    left: list[RunSpec] = []
    writing = threading.Lock()

    def work(name: str, environment: Mapping[str, str], stop: Callable[[], str | None]) -> str:
        run, remaining = by_name[name], float("inf") if limit is None else limit - clock.elapsed
        if stop() is not None or not enough_time(run, remaining):
            left.append(run)
            return "not started"
        part = make_folder(folder) / f"{name}.jsonl"
        part.unlink(missing_ok=True)
        settings = {**options, "out": str(part), "folder": str(folder), "device": device,
                    "time_limit": None if limit is None else max(remaining, 1.0)}  # fmt: skip
        deadline = time.monotonic() + max(remaining, 0.0) + GRACE

        def hanging() -> str | None:
            return KILL if time.monotonic() > deadline else stop()

        code = run_process(command_for(run, settings), environment, hanging)
        records = read_lines(part) if part.exists() else []
        with writing:
            for record in records:
                keep(out, record)
        if not records:
            left.append(run)
        return "kept" if records else f"no record, exit code {code}"

    reason = run_pool(
        list(by_name), work, Launch(device=device), at_once=processes,
        ended=lambda name, how: say(f"{name}: {how}"),
    )  # fmt: skip
    if reason is not None:
        raise KeyboardInterrupt
    return left


def command_for(run: RunSpec, settings: Mapping[str, Any]) -> list[str]:
    """The command line of the process of one run: its settings as JSON."""
    words = {"model": run.model, "seed": run.seed, **settings}
    return [sys.executable, "-m", "iterant.experiments.train_and_test", json.dumps(to_json(words))]


def main(words: Sequence[str]) -> int:
    """One run, in a process of its own."""
    settings = json.loads(words[0])
    run = RunSpec(settings.pop("model"), settings.pop("seed"))
    try:
        train_and_test([run], say=_print, **settings)
    except KeyboardInterrupt:
        return INTERRUPTED
    return 0


def _print(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
