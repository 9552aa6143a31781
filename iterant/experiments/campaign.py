"""Working through units within a time: train, test, write a line, next.

    >>> campaign(units(["sums-recall-a1", "sums-dt-a1"], range(5)), out="runs.jsonl",
    ...          device="cuda", time_limit="9m")

Several units share a GPU, each on a stream of its own, an update in turn. A unit ends when its
recipe does, or earlier, when validation is perfect: the first of equals is tested, so that no
later epoch could replace it. Whatever was recorded before is not done again.

What is measured on a trained network: every test and study of its model, as plain numbers.

Nothing of the size of a network is kept: curves, counts and a history, some ten thousand bytes.

What ends the training of a unit before its recipe does: nothing left to gain, or a signal.

A campaign in which every unit has a process of its own, so that none can harm another.

What a GPU library keeps in a process, a NaN or a crash ends with the unit, and one that hangs is
ended when its time is long over. Starting costs seconds a unit; a few processes side by side hide
them. Only this process writes the records.
"""

from __future__ import annotations

import math
import multiprocessing
import threading
import time
from collections import deque
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
from iterant.experiments.models import MODELS, Look, Model, Trial, Unit
from iterant.experiments.records import keep, keep_record
from iterant.halting import MostConfident
from iterant.io import RunFolder, read_lines
from iterant.io.files import PathLike, make_folder
from iterant.nets.protocol import Net, depth_of
from iterant.tasks.protocol import Batch, Task
from iterant.training.data import TrainingSet
from iterant.training.distributed import ProcessGroup
from iterant.training.interrupts import Clock, Signals, seconds
from iterant.training.logging import Report, SilentReporter
from iterant.training.loop import CheckpointOptions
from iterant.training.multi_seed import on_stream, own_stream
from iterant.training.recipe import Recipe
from iterant.training.run import RunContext, resume_run, start_run, use_device
from iterant.zoo.loading import load

SEED = 7
"""Of every test set; training draws from another."""

SEEN = 10_000
"""Training problems that the training accuracy is measured on, at most."""

LOOK_COUNT, LOOK_STEPS = 100, 300
"""Problems and iterations of a study."""

Say = Callable[[str], None]


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
    """Every figure of one unit, from its run and its tested weights.

    ``share``: of the problems of every test, study and accuracy, for small machines.
    """
    recipe = Recipe().changed(**run.config["recipe"])
    figures: dict[str, Any] = {
        "training": training(run, net, task, recipe, problems, share),
        "tests": {},
        "studies": {},
    }
    for test in model.tests:
        start_run = time.monotonic()
        figures["tests"][test.name] = by_iteration(
            net, task, test.thinned(share), confident=model.confident
        )
        say(f"{model.key} {test.name}: {time.monotonic() - start_run:.1f} s")
    subject = Subject(net, task, label=model.key, model=model.net, alpha=model.alpha)
    for look in model.looks:
        if not look.covers(seed):
            continue
        start_run = time.monotonic()
        try:
            figures["studies"][look.name] = looked(subject, look, model, share)
        except (IterantError, RuntimeError) as failure:  # what was trained and tested is kept
            figures["studies"][look.name] = {"skipped": f"it failed: {failure}"}
            say(f"{model.key} {look.name} failed: {failure}")
        say(f"{model.key} {look.name}: {time.monotonic() - start_run:.1f} s")
    return figures


def training(
    run: RunFolder,
    net: Net,
    task: Task,
    recipe: Recipe,
    problems: TrainingSet | None,
    share: float = 1.0,
) -> dict[str, Any]:
    """How training went, and how well the tested weights do what they were trained on."""
    status, m = run.status, recipe.iterations
    made: dict[str, Any] = {
        "ended": run.state if status.reason is None else status.reason,
        "updates": status.step,
        "of": status.steps,
        "best": dict(status.best),
        "recipe": {name: value for name, value in recipe.described().items() if name != "notes"},
        "history": history(run.metrics()),
    }
    if problems is not None:
        inputs, targets = problems.train[torch.arange(min(len(problems), _part(SEEN, share)))]
        seen, held_out = Batch(inputs.cpu(), targets.cpu()), problems.held_out
        held_out = held_out[: _part(len(held_out), share)] if share < 1 else held_out
        for name, batch in (("train", seen), ("validation", held_out)):
            curve = evaluate_batch(net, task, batch, steps=m, at=[m], cut=True)
            made[name] = {"solved": int(curve.solved[-1]), "of": curve.count}
    return made


def _part(count: int, share: float) -> int:
    """A share of a count, at least one."""
    return max(1, round(share * count))


def history(records: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Mean training loss of every epoch, and the validations: what the authors' logs have."""
    losses: dict[int, list[float]] = {}
    validated: dict[int, float] = {}
    for record in records:
        epoch = math.ceil(record.get("epoch", 0) - 1e-9)
        if record.get("kind") == "train" and record.get("loss") is not None:
            losses.setdefault(epoch, []).append(record["loss"])
        elif record.get("kind") == "validation":
            validated[epoch] = record["figures"].get("validation")
    return [
        {"epoch": epoch, "loss": _short(math.fsum(values) / len(values)),
         **({"validation": validated[epoch]} if epoch in validated else {})}
        for epoch, values in sorted(losses.items())
    ]  # fmt: skip


def by_iteration(net: Net, task: Task, test: Trial, *, confident: bool) -> dict[str, Any]:
    """Problems solved after each iteration; ``confident``: also by the most confident one."""
    batch = task.sample(test.count, size=test.size, seed=SEED)
    steps = budget_of(net, test.steps, cut=True)
    curve = evaluate_batch(net, task, batch, steps=steps)
    made = {
        "problems": curve.count,
        "solved": curve.solved.tolist(),
        "change": _short(curve.change),
        "broken": curve.broken,
    }
    if confident and depth_of(net) is None:
        sure = evaluate_batch(net, task, batch, steps=steps, rule=MostConfident())
        made["solved by the most confident"] = sure.solved.tolist()
    return made


def looked(subject: Subject, look: Look, model: Model, share: float = 1.0) -> dict[str, Any]:
    """One study in a few numbers and curves; why not, where it cannot be made."""
    after = STUDIES[look.study].after if look.after is None else look.after
    steps = min(LOOK_STEPS, depth_of(subject.net) or LOOK_STEPS)
    if (after or 0) >= steps:
        return {"skipped": f"there are {steps} iterations"}
    count = max(2, _part(LOOK_COUNT, share))
    report = analyze(
        [subject], [look.study], size=model.look_size, count=count, max_steps=steps,
        after=look.after, seed=SEED,
    )  # fmt: skip
    made: dict[str, Any] = {"after": after, "problems": count}
    for finding in report.outcomes[0].results:
        made |= _few(finding)
    return made


def _few(finding: Any) -> dict[str, Any]:
    """What tables and figures need of a finding."""
    if isinstance(finding, Recovery):
        made = {
            "samples": finding.count,
            "right": finding.right.tolist(),
            "recovered": finding.recovered,
            "mean iterations": _short(finding.mean_to_solution),
            "mean iterations to first": _short(finding.mean_to_first),
            "left out": finding.left_out,
            "broken": int(finding.broken.sum()),
        }
        if finding.length is not None:
            made["mean iterations by index"] = _shorts(finding.mean_by_index.tolist())
        return made
    if isinstance(finding, Convergence):
        about = {"change": _shorts(finding.change.tolist()), "features": finding.features}
        return {finding.inputs: {**about, "answers": finding.answers}}
    if isinstance(finding, NearMisses):
        made = finding.figures()
        return {key: value for key, value in made.items() if not isinstance(value, list)}
    return {"starts": finding.headline()}


def _short(value: float | None) -> float | None:
    """Four digits; no number where it is none."""
    return None if value is None or not math.isfinite(value) else float(f"{value:.4g}")


def _shorts(values: Iterable[float]) -> list[float | None]:
    return [_short(value) for value in values]


DECIDED = "a perfect validation"
"""What ends a run whose tested weights cannot change any more."""


class Joined(Signals):
    """What the reporter of one unit raises, or what all of them hear; it does not listen itself."""

    def __init__(self, heard: Signals) -> None:
        """Nothing of its own yet."""
        self.heard = heard
        self.own: str | None = None

    @property
    def raised(self) -> str | None:
        """Why to stop; None: go on."""
        return self.own or self.heard.raised

    @raised.setter
    def raised(self, reason: str | None) -> None:
        self.own = reason


class Deciding(SilentReporter):
    """Ends a run as soon as what is tested cannot change, and says how it goes."""

    def __init__(self, unit: Unit, recipe: Recipe, signals: Signals, say: Say) -> None:
        """For a unit trained by that recipe; it raises ``signals``."""
        self.unit, self.signals, self.say = unit, signals, say
        # Averaged weights are tested as they are in the end, whatever validation said before.
        self.decides = recipe.average is None

    def show(self, report: Report) -> None:
        """Say how validation went, and whether that is the end."""
        if "validation" not in report.fresh:
            return
        accuracy = report.figures["validation"]
        self.say(f"{self.unit.name}: epoch {report.epoch}, validation {100 * accuracy:.2f} %, "
                 f"{report.updates_per_second:.0f} updates/s")  # fmt: skip
        if accuracy == 1.0 and self.decides:
            self.signals.raised = DECIDED

    def end(self, text: str) -> None:
        """Say how it ended."""
        self.say(f"{self.unit.name}: {text}")


EXACT = "fp32"
"""The precision in which nothing is begun anew."""

AT_ONCE = 4
"""Units that share a GPU."""


@dataclass
class Setup:
    """How units are carried out."""

    out: Path
    """The file of records, a line each, or the folder of such, a file each"""
    runs: Path
    """Where run folders lie meanwhile"""
    device: torch.device
    limit: float | None = None
    """Seconds in all"""
    reserve: float = 30.0
    """Seconds of them that are kept for the tests"""
    reduced: Mapping[str, Any] | Callable[[Model], Mapping[str, Any]] = field(default_factory=dict)
    """Fields of every recipe, or of each, that are made smaller"""
    share: float = 1.0
    """Of the problems of every test"""
    precision: str | None = None
    data: str | None = None
    unfinished: bool = False
    """Whether runs that the time did not suffice for are tested and recorded too"""
    fair: bool = False
    """Whether every unit gets the same share of the time"""
    models: Mapping[str, Model] = field(default_factory=lambda: MODELS)
    """What is tested on which model"""
    say: Say = print

    def __post_init__(self) -> None:
        """Start the clock."""
        self.clock = Clock(None)
        self.listening = Signals()
        self.tasks: dict[str, Task] = {}
        self.problems: dict[tuple[Any, ...], TrainingSet] = {}

    @contextmanager
    def in_a_hurry(self) -> Iterator[None]:
        """Where nothing can be saved, whoever interrupts need not wait."""
        self.listening.__exit__()
        try:
            yield
        finally:
            self.listening.__enter__()

    @property
    def left(self) -> float:
        """Seconds until training must end."""
        return float("inf") if self.limit is None else (
            self.limit - self.reserve - self.clock.elapsed
        )  # fmt: skip

    def smaller(self, model: Model) -> Mapping[str, Any]:
        """The fields of its recipe that are made smaller."""
        return self.reduced(model) if callable(self.reduced) else self.reduced

    def made_smaller(self, model: Model) -> dict[str, Any]:
        """What differs from the paper's set-up for want of time; {}: nothing."""
        share = {} if self.share == 1 else {"share of the tests": self.share}
        return {**self.smaller(model), **share}

    def task(self, word: str) -> Task:
        """The task of that name, made once."""
        if word not in self.tasks:
            self.tasks[word] = registry.task(word, **({"data": self.data} if self.data else {}))
        return self.tasks[word]

    def set_of(self, word: str, recipe: Recipe) -> TrainingSet:
        """The training set, made once for all units that share it."""
        key = (word, recipe.size, recipe.count, recipe.validation, recipe.data_seed)
        if key not in self.problems:
            self.problems[key] = TrainingSet.of(self.task(word), recipe, self.device)
            if self.device.type == "cuda":  # units on other streams will read it
                torch.cuda.synchronize(self.device)
        return self.problems[key]

    def recipe(self, model: Model, precision: str | None = None) -> Recipe:
        """A model's recipe as it is carried out here, or in another precision."""
        chosen = precision or (self.precision if model.half else None)
        return model.recipe(**({"precision": chosen} if chosen else {}), **self.smaller(model))


def carried_out(
    unit: Unit, setup: Setup, share: float | None, precision: str | None = None
) -> Generator[None, None, None]:
    """One unit: yields after every update, then tests and records.

    What breaks down in half precision begins anew in float32, which the paper's runs are in:
    features beyond float16 say nothing about the recipe.
    """
    model, again = setup.models[unit.model], setup.runs / f"{unit.name}-{EXACT}"
    if precision is None and again.exists():
        precision = EXACT
    task, recipe = setup.task(model.task), setup.recipe(model, precision)
    problems = setup.set_of(model.task, recipe)
    signals = Joined(setup.listening)
    limit = setup.left if share is None else min(share, setup.left)
    clock = Clock(None if limit == float("inf") else max(limit, 1e-3))
    reporter = Deciding(unit, recipe, signals, setup.say)
    setting = RunContext(
        setup.device, ProcessGroup(), CheckpointOptions(), reporter, clock, signals
    )
    folder = setup.runs / unit.name if precision is None else again
    at_most = "" if limit == float("inf") else f", for at most {max(limit, 0):.0f} s"
    try:
        if not (folder / "config.json").exists():
            setup.say(f"{unit.name}: begins{at_most}")
            run = yield from start_run(
                model.task, task, recipe, unit.seed, folder, setting, problems
            )
        else:
            run = RunFolder.open(folder)
            if not is_over(run):
                setup.say(f"{unit.name}: goes on where {folder} was left{at_most}")
                run = yield from resume_run(model.task, folder, setting, setup.data, problems)
    except TrainingStopped as failure:
        setup.say(f"{unit.name}: {failure}")
        if recipe.precision != EXACT:
            yield from carried_out(unit, setup, share, EXACT)
            return
        figures = {"training": {"ended": str(failure)}, "tests": {}, "studies": {}}
        _write(unit, setup, figures, True, recipe.precision)
        return
    if setup.listening.raised is None and (is_over(run) or setup.unfinished):
        _test(unit, setup, run, task, problems, is_over(run), recipe.precision)


def is_over(run: RunFolder) -> bool:
    """Whether more training could not change what is tested."""
    return run.state == "finished" or DECIDED in str(run.status.reason)


def _test(
    unit: Unit,
    setup: Setup,
    run: RunFolder,
    task: Task,
    problems: TrainingSet,
    finished: bool,
    precision: str,
) -> None:
    net = load(run.path, setup.device)
    with setup.in_a_hurry():
        figures = measure(
            setup.models[unit.model], run, net, task, seed=unit.seed, problems=problems,
            share=setup.share, say=setup.say,
        )  # fmt: skip
    figures["training"]["seconds since the campaign began"] = round(setup.clock.elapsed, 1)
    _write(unit, setup, figures, finished, precision)


def _write(
    unit: Unit, setup: Setup, figures: dict[str, Any], finished: bool, precision: str
) -> None:
    about = {
        "model": unit.model,
        "seed": unit.seed,
        "reduced": setup.made_smaller(setup.models[unit.model]),
        "finished": finished,
        "precision": precision,
    }
    keep_record(setup.out, unit.name, {**about, **figures}, unit.seed)
    setup.say(f"{unit.name}: recorded after {setup.clock.elapsed:.0f} s")


def campaign(
    wanted: Sequence[Unit],
    *,
    out: PathLike,
    runs: PathLike = "runs/campaign",
    device: str = "auto",
    time_limit: str | float | None = None,
    reserve: float = 30.0,
    at_once: int | None = None,
    done: set[str] | frozenset[str] = frozenset(),
    enough_time: Callable[[Unit, float], bool] = lambda unit, left: left > 0,
    **how: Any,
) -> list[Unit]:
    """Carry out units in order, at most ``at_once`` side by side; returns those left over.

    ``done``: names of units that are recorded already. ``enough_time`` is asked with a unit and
    the seconds left before it begins. A unit that fails does not stop the others. Interrupted, it
    saves what is being trained, and raises KeyboardInterrupt; given again, it goes on from there.
    """
    where = use_device(device)
    limit = None if time_limit is None else seconds(time_limit)
    setup = Setup(Path(out), Path(runs), where, limit, reserve, **how)
    together = at_once or (AT_ONCE if where.type == "cuda" else 1)
    waiting = deque(unit for unit in wanted if unit.name not in done)
    left_over: list[Unit] = []
    turns: deque[tuple[Unit, Generator[None, None, None], Any]] = deque()
    with setup.listening as heard:
        while turns or (waiting and heard.raised is None):
            while waiting and len(turns) < together and heard.raised is None:
                unit = waiting.popleft()
                if not enough_time(unit, setup.left):
                    left_over.append(unit)
                    continue
                share = setup.left / (len(waiting) + 1) if setup.fair else None
                turns.append((unit, carried_out(unit, setup, share), own_stream(where)))
            if not turns:
                break
            unit, going, stream = turns.popleft()
            try:
                with on_stream(stream):
                    next(going)
            except StopIteration:
                continue
            except (IterantError, torch.OutOfMemoryError) as failure:
                setup.say(f"{unit.name}: not carried out: {failure}")
                left_over.append(unit)
                continue
            turns.append((unit, going, stream))
    if heard.raised is not None:
        raise KeyboardInterrupt
    return left_over


INTERRUPTED = 130
"""The exit code of a process that was interrupted."""

PATIENCE = 30.0
"""Seconds after the limit when a process that is still there hangs, and is ended."""


def in_processes(
    wanted: Sequence[Unit],
    *,
    processes: int,
    out: PathLike,
    runs: PathLike = "runs/campaign",
    time_limit: str | float | None = None,
    done: set[str] | frozenset[str] = frozenset(),
    enough_time: Callable[[Unit, float], bool] = lambda unit, left: left > 0,
    say: Say = print,
    **how: Any,
) -> list[Unit]:
    """Like `campaign`, at most so many processes at once; returns the units left over."""
    limit, clock = None if time_limit is None else seconds(time_limit), Clock(None)
    waiting = deque(unit for unit in wanted if unit.name not in done)
    left_over: list[Unit] = []
    writing = threading.Lock()

    def work() -> None:
        while True:
            try:
                unit = waiting.popleft()
            except IndexError:
                return
            left = float("inf") if limit is None else limit - clock.elapsed
            if not enough_time(unit, left):
                left_over.append(unit)
                continue
            found, code = _apart(unit, runs, None if limit is None else left, how)
            with writing:
                for record in found:
                    keep(out, record)
            if not found:
                left_over.append(unit)
            say(f"{unit.name}: {'kept' if found else f'no record, exit code {code}'}")

    threads = [threading.Thread(target=work) for _ in range(processes)]
    for thread in threads:
        thread.start()
    try:
        for thread in threads:
            thread.join()
    except KeyboardInterrupt:  # the processes heard it too: they save, and none begins after them
        waiting.clear()
        for thread in threads:
            thread.join()
        raise
    return left_over


def _apart(
    unit: Unit, runs: PathLike, left: float | None, how: dict[str, Any]
) -> tuple[list[dict[str, Any]], int | None]:
    """The records of one unit made in a process of its own, and its exit code.

    It is told how many seconds are left, and killed if it is still there long after them.
    """
    part = make_folder(runs) / f"{unit.name}.jsonl"
    part.unlink(missing_ok=True)
    given = {**how, "out": str(part), "runs": str(runs), "at_once": 1,
             "time_limit": None if left is None else max(left, 1.0)}  # fmt: skip
    process = multiprocessing.get_context("spawn").Process(target=alone, args=(unit, given))
    process.start()
    process.join(None if left is None else max(left, 0.0) + PATIENCE)
    if process.is_alive():
        process.kill()
        process.join()
    return read_lines(part) if part.exists() else [], process.exitcode


def alone(unit: Unit, given: dict[str, Any]) -> None:
    """One unit, in a process that does nothing else."""
    try:
        campaign([unit], say=_aloud, **given)
    except KeyboardInterrupt:  # no lines about a thing that somebody wished
        raise SystemExit(INTERRUPTED) from None


def _aloud(text: str) -> None:
    import sys

    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
