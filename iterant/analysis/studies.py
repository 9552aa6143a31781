"""The studies there are, by the words that name them.

    >>> STUDIES["swap"].after
    50
    >>> STUDIES["swap"].run(subject, batch, Moment(steps=300, after=50, seed=1))

When an intervention happens is as in the paper: noise and zeros after iteration 1, everything
else after iteration 50.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from iterant.analysis import interventions as made
from iterant.analysis.convergence import LEAST, converge
from iterant.analysis.flips import by_index
from iterant.analysis.kinds import by_kind
from iterant.analysis.misses import near_misses
from iterant.analysis.parts import Tick, no_tick
from iterant.analysis.paths import independence
from iterant.analysis.recovery import Case, Recovery, recover
from iterant.analysis.subjects import Subject
from iterant.draw.lines import Plot, Trace
from iterant.tasks.edits import Flips, Shortens, Sorts
from iterant.tasks.protocol import Batch, Task


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
        needs=lambda task: isinstance(task, Sorts),
        lacks="kinds()",
    ),
}
"""Every study, in the order of a report."""
