"""Every study on every network, in one call.

>>> report = analyze(["runs/m0", "runs/m1"], what=["noise", "zeros", "swap"], size=13)
>>> report.table()                    # the paper's table of interventions
>>> report.save("analysis")           # JSON, pictures and a page
"""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, SupportsIndex

import torch

from iterant import registry
from iterant.analysis.recovery import Tick
from iterant.analysis.report import Found, Report, Skipped
from iterant.analysis.studies import STUDIES, Given, Moment, Study, Subject, subject_of
from iterant.errors import NetError, TaskError, UnknownName, UsageError
from iterant.formatting import counted
from iterant.nets.protocol import depth_of
from iterant.tasks.protocol import Size, Task, check_count

STEPS = 300
"""Iterations where none are asked for; networks of fixed depth take their own."""

Progress = Callable[[str, float], None]
"""Called with what is being done and the share of all work that is."""


@torch.no_grad()
def analyze(
    runs: Given | Sequence[Given],
    what: str | Sequence[str] | None = None,
    *,
    size: Size | str | None = None,
    count: int = 100,
    max_steps: int | None = None,
    after: int | None = None,
    seed: int = 1,
    task: Task | str | None = None,
    device: str = "cpu",
    data: str | os.PathLike[str] | None = None,
    tolerance: float = 1e-3,
    progress: Progress | None = None,
) -> Report:
    """Make these studies (None: all that the task offers) on these networks of one task.

        >>> report = analyze("mazes", what="zeros", size=9, count=10, max_steps=60)
        >>> report.of("zeros").peak[1]
        1.0

    ``size`` is by default the first that training watches beyond its own: 48 bits, mazes of 13;
    where a set does not go so far (the chess sample that ships), that of training.
    ``max_steps`` iterations are thought in all; ``after`` moves every intervention from where
    the paper has it. What a network or task cannot take part in is skipped, and said so.
    """
    words = _words(what)
    check_count(count)
    if not tolerance > 0:
        raise UsageError(f"the tolerance must be above 0, got {tolerance}")
    given: list[Any] = [runs]
    if isinstance(runs, Iterable) and not isinstance(runs, str | os.PathLike | Subject):
        given = list(runs)
    subjects = _named([subject_of(one, task=task, device=device, data=data) for one in given])
    shared = _one_task(subjects)
    wanted = _size(shared, size)
    strict = what is not None or after is not None
    jobs, skipped = _jobs(words, subjects, after, max_steps, strict)
    batch = shared.sample(count, size=wanted, seed=seed)
    found = []
    for place, (word, subject) in enumerate(jobs):
        moment = Moment(
            steps=_steps(subject, max_steps),
            after=_after(STUDIES[word], after),
            seed=seed,
            tolerance=tolerance,
            tick=_ticking(progress, f"{subject.label}: {word}", place, len(jobs)),
        )
        found.append(Found(subject, word, tuple(STUDIES[word].run(subject, batch, moment))))
    return Report(
        subjects=tuple(subjects),
        found=tuple(found),
        skipped=tuple(skipped),
        task=shared.spec.name,
        size=wanted,
        count=count,
        seed=seed,
    )


def _words(what: str | Sequence[str] | None) -> list[str]:
    """The studies that were asked for, each once and in the order of a report."""
    if what is None:
        return list(STUDIES)
    asked = [what] if isinstance(what, str) else list(what)
    if not asked:
        raise UsageError(f"which studies? give one or more of: {', '.join(STUDIES)}")
    for word in asked:
        if word not in STUDIES:
            raise UnknownName(registry.unknown_name("study", word, tuple(STUDIES)))
    return [word for word in STUDIES if word in asked]


def _jobs(
    words: list[str],
    subjects: list[Subject],
    after: int | None,
    max_steps: int | None,
    strict: bool,
) -> tuple[list[tuple[str, Subject]], list[Skipped]]:
    """Which study is made on which network, and what is skipped; one at least is made."""
    jobs, skipped = [], []
    for word in words:
        for subject in subjects:
            why = _unfit(subject, STUDIES[word], after, _steps(subject, max_steps), strict)
            if why:
                skipped.append(Skipped(subject.label, word, why))
            else:
                jobs.append((word, subject))
    if not jobs:
        raise UsageError(f"none of these studies can be made: {skipped[0].why}")
    return jobs, skipped


def _named(subjects: list[Subject]) -> list[Subject]:
    """The subjects with labels that tell them apart."""
    if not subjects:
        raise UsageError("there is nothing to analyze; give one or more run folders")
    seen: Counter[str] = Counter()
    named = []
    for subject in subjects:
        seen[subject.label] += 1
        number = seen[subject.label]
        label = subject.label if number == 1 else f"{subject.label} ({number})"
        named.append(replace(subject, label=label))
    return named


def _one_task(subjects: list[Subject]) -> Task:
    tasks = {subject.task.spec.name: subject.task for subject in subjects}
    if len(tasks) > 1:
        raise UsageError(
            f"these networks were trained on different tasks ({', '.join(tasks)}); "
            "analyze those of one task at a time"
        )
    return subjects[0].task


def _size(task: Task, size: Size | str | None) -> Size:
    if isinstance(size, str):
        return task.parse_size(size)
    if size is None and getattr(task, "data", None) is None and task.spec.watch_sizes:
        with contextlib.suppress(TaskError):  # a small set may not go so far
            return task.check_size(task.spec.watch_sizes[0])
    return task.check_size(size)


def _steps(subject: Subject, max_steps: int | None) -> int:
    """How many iterations a network takes; more than it has are refused."""
    depth = depth_of(subject.net)
    if max_steps is None:
        return STEPS if depth is None else depth
    if not isinstance(max_steps, SupportsIndex) or int(max_steps) < 1:
        raise UsageError(f"max_steps must be a whole number of 1 or more, got {max_steps!r}")
    if depth is not None and max_steps > depth:
        raise NetError(
            f"{subject.label} has {counted(depth, 'iteration')}, asked for {max_steps}; give "
            f"at most {depth}, or leave it out"
        )
    return int(max_steps)


def _after(study: Study, after: int | None) -> int:
    """When the study intervenes; the undisturbed one and those without a moment do not move."""
    return study.after or 0 if after is None or not study.after else after


def _unfit(subject: Subject, study: Study, after: int | None, steps: int, strict: bool) -> str:
    """Why the study cannot be made on this network; "" where it can.

    A moment that was asked for and never comes is refused, unless the network's depth is why.
    """
    if after is not None and after < 0:
        raise UsageError(f"an intervention happens after 0 or more iterations, got {after}")
    if not study.needs(subject.task):
        return f"{subject.task.spec.name} offers no {study.lacks}"
    if steps < study.least:
        return f"it takes at least {study.least} iterations, and there are {steps}"
    moment = _after(study, after)
    if moment < steps:
        return ""
    why = (
        f"an intervention after iteration {moment} leaves nothing to see of "
        f"{counted(steps, 'iteration')}; "
        f"intervene earlier, or think for at least {moment + 1}"
    )
    if strict and depth_of(subject.net) is None:
        raise UsageError(why)
    return why


def _ticking(progress: Progress | None, label: str, place: int, jobs: int) -> Tick:
    def tick(done: int, total: int) -> None:
        if progress is not None:
            progress(label, (place + done / total) / jobs)

    return tick
