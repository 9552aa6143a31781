"""The studies by name, and their subjects: networks with a task.

    >>> STUDIES["swap"].after
    50
    >>> STUDIES["swap"].run(subject, batch, StudySettings(steps=300, after=50, seed=1))

Interventions happen when they do in the paper: noise and zeros after iteration 1, all others after
iteration 50.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from iterant import registry
from iterant.analysis import interventions
from iterant.analysis.convergence import LEAST, converge
from iterant.analysis.errors_by_kind import by_kind, near_misses
from iterant.analysis.interventions import Case, Tick, no_tick
from iterant.analysis.path_independence import independence
from iterant.analysis.recovery import recover
from iterant.draw.plots import Plot, Trace
from iterant.errors import UsageError
from iterant.io import RunFolder, read_weights
from iterant.io.checkpoint import CHECKPOINTS
from iterant.nets.protocol import Net
from iterant.solving.solver import check_fits
from iterant.tasks.protocol import Batch, Flips, HasKinds, Shortens, Task
from iterant.training.build import build_objective
from iterant.training.objectives import Progressive
from iterant.training.recipe import Recipe


@dataclass(frozen=True)
class Subject:
    """A network with its task and its name in tables and pictures."""

    net: Net
    task: Task
    label: str
    """Its name in tables: that of the run"""
    model: str = ""
    """The architecture, which decides the colour; "": the label"""
    alpha: float | None = None
    """The weight of the progressive loss in training, which decides the line style"""
    regime: int | None = None
    """Iterations in training, which are shaded"""

    def __post_init__(self) -> None:
        """Refuse a network that does not fit the task."""
        check_fits(self.net, self.task)

    @property
    def legend(self) -> str:
        """Its name in pictures: architecture and alpha, which several runs may share."""
        name = self.model or self.label
        return name if self.alpha is None else f"{name}, α = {self.alpha:g}"


Given = Subject | str | os.PathLike[str]
"""A subject, or an argument of `iterant.load`: a name, a path, a run."""


def subject_of(
    given: Given,
    *,
    task: Task | str | None = None,
    device: str = "cpu",
    data: str | os.PathLike[str] | None = None,
) -> Subject:
    """The subject for a run folder, a weights folder or the name of shipped weights.

    ``task`` is for weights that do not name the task they were trained on.
    """
    if isinstance(given, Subject):
        return given
    if not isinstance(given, str | os.PathLike):
        raise UsageError(
            "wanted a run folder, a folder of weights or a shipped name, got "
            f'{type(given).__name__}; a network at hand is Subject(net, task, label="mine")'
        )
    net, folder = registry.trained(given, device)
    path = Path(os.fspath(given)).resolve()
    label = path.name
    if path.parent.name == CHECKPOINTS and not path.is_dir():
        label = f"{path.parent.parent.name} {path.name}"
    if folder.parent.name == CHECKPOINTS and not folder.is_dir():
        folder = folder.parent.parent
    is_run = (folder / CHECKPOINTS).is_dir()
    config = RunFolder.open(folder).config if is_run else read_weights(folder)[0]

    task = config.get("task") if task is None else task
    if task is None:
        raise UsageError(
            f"{label} does not say which task it was trained on; "
            f"name it: --task {' or '.join(registry.known('task'))}"
        )
    if isinstance(task, str):
        data = data or config.get("data")
        task = registry.task(task, **({"data": data} if data else {}))

    recipe = config.get("recipe") or {}
    model, alpha = "", None
    if recipe:
        objective = build_objective(Recipe().changed(**recipe))
        model = str(recipe["net"])
        if isinstance(objective, Progressive):
            alpha = objective.alpha
        else:
            model += f", {recipe['objective']}"
    return Subject(net, task, label, model, alpha, recipe.get("iterations"))


def shared_regime(subjects: Iterable[Subject]) -> int | None:
    """The training regime of all subjects whose regime is known; None if they differ."""
    known = {subject.regime for subject in subjects} - {None}
    return known.pop() if len(known) == 1 else None


class Result(Protocol):
    """The result of a study on a network: numbers for files, cells for tables, lines to plot."""

    def figures(self) -> dict[str, Any]:
        """All numbers, as JSON."""

    def headline(self) -> dict[str, str]:
        """The main numbers as cells of a table."""

    def plots(self) -> list[tuple[Plot, Trace]]:
        """One line for each plot."""


@dataclass(frozen=True)
class StudySettings:
    """The iterations, the time of the intervention, the seed."""

    steps: int
    after: int = 0
    seed: int = 1
    tolerance: float = 1e-3
    tick: Tick = no_tick


@dataclass(frozen=True)
class Study:
    """A study: what it does, when it intervenes, what it needs of a task."""

    about: str
    run: Callable[[Subject, Batch, StudySettings], list[Result]]
    after: int | None = None
    """Iterations before the intervention; None: there is no intervention"""
    needs: Callable[[Task], bool] = lambda task: True
    lacks: str = ""
    """The method that is missing in a task that does not meet ``needs``"""
    least: int = 1
    """The fewest iterations"""


def _intervene(
    what: str,
    about: str,
    after: int,
    make_cases: Callable[[Any, Batch, StudySettings], tuple[list[Case], int]],
    **needs: Any,
) -> Study:
    """A study of recovery; ``make_cases`` returns also how many problems are left out."""

    def run(subject: Subject, batch: Batch, settings: StudySettings) -> list[Result]:
        cases, left_out = make_cases(subject.task, batch, settings)
        return [
            recover(
                subject.net,
                subject.task,
                cases,
                what=what,
                after=settings.after,
                steps=settings.steps,
                left_out=left_out,
                length=batch.inputs.shape[-1] if what == "bit-flip" else None,
                tick=settings.tick,
            )
        ]

    return Study(about, run, after, **needs)


def _convergence(subject: Subject, batch: Batch, settings: StudySettings) -> list[Result]:
    net, task, steps = subject.net, subject.task, settings.steps

    def tick(turn: int) -> Tick:
        return lambda done, total: settings.tick(turn * total + done, 3 * total)

    how: dict[str, Any] = {"steps": steps, "tolerance": settings.tolerance}
    noise = interventions.random_inputs(batch, seed=settings.seed)
    return [
        converge(net, task, batch, tick=tick(0), **how),
        converge(net, task, noise, inputs="random inputs", tick=tick(1), **how),
        independence(net, task, batch, steps=steps, seed=settings.seed, tick=tick(2)),
    ]


STUDIES: dict[str, Study] = {
    "clean": _intervene(
        "clean",
        "Nothing is done: what the interventions are compared with.",
        0,
        lambda task, batch, s: (interventions.clean(batch), 0),
    ),
    "noise": _intervene(
        "noise",
        "Gaussian noise with standard deviation 1 is added to the features.",
        1,
        lambda task, batch, s: (interventions.noise(batch, after=s.after, seed=s.seed), 0),
    ),
    "zeros": _intervene(
        "zeros",
        "The features are replaced with zeros.",
        1,
        lambda task, batch, s: (interventions.zeros(batch, after=s.after), 0),
    ),
    "swap": _intervene(
        "swap",
        "Every problem goes on with the features of another problem.",
        50,
        lambda task, batch, s: (interventions.swap(batch, after=s.after, seed=s.seed), 0),
    ),
    "swap-input": _intervene(
        "swap-input",
        "The features stay, and the problem becomes another one, which is to be solved.",
        50,
        lambda task, batch, s: (interventions.swap_input(batch, after=s.after, seed=s.seed), 0),
    ),
    "bit-flip": _intervene(
        "bit-flip",
        "One bit of the input is flipped, at every index of every string.",
        50,
        lambda task, batch, s: (interventions.bit_flips(task, batch, after=s.after), 0),
        needs=lambda task: isinstance(task, Flips),
        lacks="flip()",
    ),
    "move-end": _intervene(
        "move-end",
        "The end moves two squares nearer the start; ways too short for that are left out.",
        50,
        lambda task, batch, s: interventions.moved_ends(task, batch, after=s.after),
        needs=lambda task: isinstance(task, Shortens),
        lacks="shorten()",
    ),
    "convergence": Study(
        "How much an iteration changes the features, on problems and on Gaussian noise in their "
        "place; whether features (up to a thousandth of their norm, unless told otherwise) and "
        "answers are settled, cycling or moving in the end; whether all starts lead there.",
        _convergence,
        least=LEAST,
    ),
    "near-misses": Study(
        "How wrong the wrong answers are; where an answer is a way, whether they are ways all the "
        "same.",
        lambda subject, batch, s: [
            near_misses(subject.net, subject.task, batch, steps=s.steps, tick=s.tick)
        ],
    ),
    "kinds": Study(
        "Accuracy by kind of problem: how long, how hard, of which theme.",
        lambda subject, batch, s: [
            by_kind(subject.net, subject.task, batch, steps=s.steps, tick=s.tick)
        ],
        needs=lambda task: isinstance(task, HasKinds),
        lacks="kinds()",
    ),
}
"""Every study, in the order of a report."""
