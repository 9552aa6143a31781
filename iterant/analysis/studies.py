"""The studies there are, by the words that name them.

    >>> STUDIES["swap"].after
    50
    >>> STUDIES["swap"].run(subject, batch, Moment(steps=300, after=50, seed=1))

When an intervention happens is as in the paper: noise and zeros after iteration 1, everything
else after iteration 50.

Whom a study is made on: a network, its task, and what is known of its training.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from iterant import registry
from iterant.analysis import interventions as made
from iterant.analysis.convergence import LEAST, converge
from iterant.analysis.errors_by_kind import by_kind, near_misses
from iterant.analysis.path_independence import independence
from iterant.analysis.recovery import Case, Recovery, Tick, by_index, no_tick, recover
from iterant.draw.plots import Plot, Trace
from iterant.errors import UsageError
from iterant.io import RunFolder, read_weights
from iterant.io.run_folder import CHECKPOINTS
from iterant.nets.protocol import Net
from iterant.solving.solver import check_fits
from iterant.tasks.protocol import Batch, Flips, HasKinds, Shortens, Task
from iterant.training.build import build_objective
from iterant.training.objectives import Progressive
from iterant.training.recipe import Recipe


@dataclass(frozen=True)
class Subject:
    """A network with its task, and how it is shown."""

    net: Net
    task: Task
    label: str
    """What tables call it: the run's name"""
    model: str = ""
    """The architecture, which has a colour; "": the label"""
    alpha: float | None = None
    """The share of the progressive loss in training, which has a stroke"""
    regime: int | None = None
    """Iterations in training, which are shaded"""

    def __post_init__(self) -> None:
        """Refuse a network for problems of another kind before anything is thought about."""
        check_fits(self.net, self.task)

    @property
    def legend(self) -> str:
        """What pictures call it: architecture and alpha, which several runs may share."""
        shown = self.model or self.label
        return shown if self.alpha is None else f"{shown}, α = {self.alpha:g}"


Given = Subject | str | os.PathLike[str]
"""A subject, or whatever `iterant.load` takes: a name, a path, a run."""


def subject_of(
    given: Given,
    *,
    task: Task | str | None = None,
    device: str = "cpu",
    data: str | os.PathLike[str] | None = None,
) -> Subject:
    """The subject that a run folder, a folder of weights or a shipped name stands for.

    ``task`` is for weights that do not say what they were trained on.
    """
    if isinstance(given, Subject):
        return given
    if not isinstance(given, str | os.PathLike):
        raise UsageError(
            "wanted a run folder, a folder of weights or a shipped name, got "
            f'{type(given).__name__}; a network at hand is Subject(net, task, label="mine")'
        )
    net, folder = registry.trained(given, device)
    config = _config(folder)
    recipe = config.get("recipe") or {}
    label = _label(Path(os.fspath(given)).resolve())
    model, alpha = _trained(recipe)
    return Subject(
        net=net,
        task=_task(task, config, label, data),
        label=label,
        model=model,
        alpha=alpha,
        regime=recipe.get("iterations"),
    )


def shared_regime(subjects: Iterable[Subject]) -> int | None:
    """The training regime of all whose regime is known; None where they differ or none is."""
    known = {subject.regime for subject in subjects} - {None}
    return known.pop() if len(known) == 1 else None


def _trained(recipe: dict[str, Any]) -> tuple[str, float | None]:
    """What was trained and how: only the progressive loss has an alpha, others have a name."""
    if not recipe:
        return "", None
    objective = build_objective(Recipe().changed(**recipe))
    if isinstance(objective, Progressive):
        return str(recipe["net"]), objective.alpha
    return f"{recipe['net']}, {recipe['objective']}", None


def _label(path: Path) -> str:
    """The run's name, and the checkpoint's where one was named."""
    if path.parent.name == CHECKPOINTS and not path.is_dir():
        return f"{path.parent.parent.name} {path.name}"
    return path.name


def _config(folder: Path) -> dict[str, Any]:
    """What is written beside the weights."""
    if folder.parent.name == CHECKPOINTS and not folder.is_dir():
        folder = folder.parent.parent
    if (folder / CHECKPOINTS).is_dir():
        return RunFolder.open(folder).config
    return read_weights(folder)[0]


def _task(
    task: Task | str | None,
    config: dict[str, Any],
    label: str,
    data: str | os.PathLike[str] | None,
) -> Task:
    word = config.get("task") if task is None else task
    if word is None:
        raise UsageError(
            f"{label} does not say which task it was trained on; "
            f"name it: --task {' or '.join(registry.known('task'))}"
        )
    if not isinstance(word, str):
        return word
    place = data or config.get("data")
    return registry.task(word, **({"data": place} if place else {}))


class Finding(Protocol):
    """What a study found: numbers for files, cells for tables, lines for pictures."""

    def figures(self) -> dict[str, Any]:
        """Everything, as JSON holds it."""

    def headline(self) -> dict[str, str]:
        """The same in a few words, a cell each."""

    def plots(self) -> list[tuple[Plot, Trace]]:
        """A line for each picture."""


@dataclass(frozen=True)
class Moment:
    """How long to think, when to intervene, and what decides the draws."""

    steps: int
    after: int = 0
    seed: int = 1
    tolerance: float = 1e-3
    tick: Tick = no_tick


@dataclass(frozen=True)
class Study:
    """One study: when it intervenes, what it needs of a task, how it is made."""

    about: str
    run: Callable[[Subject, Batch, Moment], list[Finding]]
    after: int | None = None
    """Iterations before the intervention; None: there is none"""
    needs: Callable[[Task], bool] = lambda task: True
    lacks: str = ""
    """What a task without that lacks, in words"""
    least: int = 1
    """The fewest iterations it can be made with"""


def _recovery(
    what: str, cases: Callable[[Batch, Moment], list[Case]]
) -> Callable[[Subject, Batch, Moment], list[Finding]]:
    """A study that intervenes and counts who recovers."""

    def run(subject: Subject, batch: Batch, moment: Moment) -> list[Finding]:
        return [_recovered(what, subject, cases(batch, moment), moment)]

    return run


def _recovered(
    what: str, subject: Subject, cases: list[Case], moment: Moment, left_out: int = 0
) -> Recovery:
    return recover(
        subject.net,
        subject.task,
        cases,
        what=what,
        after=moment.after,
        steps=moment.steps,
        left_out=left_out,
        tick=moment.tick,
    )


def _bit_flip(subject: Subject, batch: Batch, moment: Moment) -> list[Finding]:
    task: Any = subject.task
    cases = made.bit_flips(task, batch, after=moment.after)
    found = _recovered("bit-flip", subject, cases, moment)
    return [by_index(found, length=batch.inputs.shape[-1])]


def _move_end(subject: Subject, batch: Batch, moment: Moment) -> list[Finding]:
    task: Any = subject.task
    cases, left_out = made.moved_ends(task, batch, after=moment.after)
    return [_recovered("move-end", subject, cases, moment, left_out)]


def _convergence(subject: Subject, batch: Batch, moment: Moment) -> list[Finding]:
    net, task, steps = subject.net, subject.task, moment.steps

    def tick(turn: int) -> Tick:
        return lambda done, total: moment.tick(turn * total + done, 3 * total)

    how: dict[str, Any] = {"steps": steps, "tolerance": moment.tolerance}
    noise = made.random_inputs(batch, seed=moment.seed)
    return [
        converge(net, task, batch, tick=tick(0), **how),
        converge(net, task, noise, inputs="random inputs", tick=tick(1), **how),
        independence(net, task, batch, steps=steps, seed=moment.seed, tick=tick(2)),
    ]


def _near_misses(subject: Subject, batch: Batch, moment: Moment) -> list[Finding]:
    return [near_misses(subject.net, subject.task, batch, steps=moment.steps, tick=moment.tick)]


def _kinds(subject: Subject, batch: Batch, moment: Moment) -> list[Finding]:
    return [by_kind(subject.net, subject.task, batch, steps=moment.steps, tick=moment.tick)]


STUDIES: dict[str, Study] = {
    "clean": Study(
        "Nothing is done: what the interventions are compared with.",
        _recovery("clean", lambda batch, moment: made.clean(batch)),
        after=0,
    ),
    "noise": Study(
        "Gaussian noise with standard deviation 1 is added to the features.",
        _recovery(
            "noise", lambda batch, moment: made.noise(batch, after=moment.after, seed=moment.seed)
        ),
        after=1,
    ),
    "zeros": Study(
        "The features are replaced with zeros.",
        _recovery("zeros", lambda batch, moment: made.zeros(batch, after=moment.after)),
        after=1,
    ),
    "swap": Study(
        "Every problem goes on with the features of another problem.",
        _recovery(
            "swap", lambda batch, moment: made.swap(batch, after=moment.after, seed=moment.seed)
        ),
        after=50,
    ),
    "swap-input": Study(
        "The features stay, and the problem becomes another one, which is to be solved.",
        _recovery(
            "swap-input",
            lambda batch, moment: made.swap_input(batch, after=moment.after, seed=moment.seed),
        ),
        after=50,
    ),
    "bit-flip": Study(
        "One bit of the input is flipped, at every index of every string.",
        _bit_flip,
        after=50,
        needs=lambda task: isinstance(task, Flips),
        lacks="flip()",
    ),
    "move-end": Study(
        "The end moves two squares nearer the start; ways too short for that are left out.",
        _move_end,
        after=50,
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
        _near_misses,
    ),
    "kinds": Study(
        "Accuracy by kind of problem: how long, how hard, of which theme.",
        _kinds,
        needs=lambda task: isinstance(task, HasKinds),
        lacks="kinds()",
    ),
}
"""Every study, in the order of a report."""
