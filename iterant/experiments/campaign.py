"""Working through units within a time: train, test, write a line, next.

    >>> campaign(units(["sums-recall-a1", "sums-dt-a1"], range(5)), out="runs.jsonl",
    ...          device="cuda", time_limit="9m")

Several units share a GPU, each on a stream of its own, an update in turn. A unit ends when its
recipe does, or earlier, when validation is perfect: the first of equals is tested, so that no
later epoch could replace it. Whatever was recorded before is not done again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from iterant import names
from iterant.errors import IterantError, TrainingStopped
from iterant.experiments.ending import DECIDED, Deciding, Joined
from iterant.experiments.measuring import Say, measure
from iterant.experiments.models import MODELS, Model, Unit
from iterant.experiments.records import keep_record
from iterant.runs import RunFolder
from iterant.runs.files import PathLike
from iterant.tasks.protocol import Task
from iterant.training.crew import Crew
from iterant.training.keeping import Keeping
from iterant.training.problems import Problems
from iterant.training.recipe import Recipe
from iterant.training.seeds import on_stream, own_stream
from iterant.training.start import Setting, begun, resumed, use_device
from iterant.training.stopping import Clock, Signals, seconds
from iterant.zoo.loading import load

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
        self.problems: dict[tuple[Any, ...], Problems] = {}

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
            self.tasks[word] = names.task(word, **({"data": self.data} if self.data else {}))
        return self.tasks[word]

    def set_of(self, word: str, recipe: Recipe) -> Problems:
        """The training set, made once for all units that share it."""
        key = (word, recipe.size, recipe.count, recipe.validation, recipe.data_seed)
        if key not in self.problems:
            self.problems[key] = Problems.of(self.task(word), recipe, self.device)
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
    setting = Setting(setup.device, Crew(), Keeping(), reporter, clock, signals)
    folder = setup.runs / unit.name if precision is None else again
    at_most = "" if limit == float("inf") else f", for at most {max(limit, 0):.0f} s"
    try:
        if not (folder / "config.json").exists():
            setup.say(f"{unit.name}: begins{at_most}")
            run = yield from begun(model.task, task, recipe, unit.seed, folder, setting, problems)
        else:
            run = RunFolder.open(folder)
            if not is_over(run):
                setup.say(f"{unit.name}: goes on where {folder} was left{at_most}")
                run = yield from resumed(model.task, folder, setting, setup.data, problems)
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
    problems: Problems,
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
