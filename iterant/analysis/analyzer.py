"""Studies on networks in one call.

>>> report = analyze(["runs/m0", "runs/m1"], what=["noise", "zeros", "swap"], size=13)
>>> report.table()                    # the paper's table of interventions
>>> report.save("analysis")           # JSON, plots and a page
"""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import SupportsIndex

import torch

from iterant import registry
from iterant.analysis.report import Outcome, Report, Skipped
from iterant.analysis.studies import (
    STUDIES,
    Given,
    Study,
    StudySettings,
    Subject,
    subject_of,
)
from iterant.errors import NetError, TaskError, UnknownName, UsageError
from iterant.formatting import counted
from iterant.nets.protocol import depth_of
from iterant.tasks.protocol import Size, Task
from iterant.tasks.rng import check_count

STEPS = 300
"""The default number of iterations; networks of fixed depth have their own."""

Progress = Callable[[str, float], None]
"""Called with the current study and the share of all work that is done."""


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
    """Make these studies (None: all that the task offers) on networks of one task.

        >>> report = analyze("mazes", what="zeros", size=9, count=10, max_steps=60)
        >>> report.of("zeros").peak[1]
        1.0

    ``size`` is by default the first validation size beyond training: 48 bits, mazes of 13; for
    data without it (the chess sample that ships), the training size. ``max_steps`` is the number
    of iterations in all; ``after`` moves every intervention from its time in the paper. Studies
    that are not possible for a network or task are skipped, with the reason.
    """
    names = _study_names(what)
    check_count(count)
    if not tolerance > 0:
        raise UsageError(f"the tolerance must be above 0, got {tolerance}")
    if after is not None and after < 0:
        raise UsageError(f"an intervention happens after 0 or more iterations, got {after}")
    if isinstance(runs, str | os.PathLike | Subject) or not isinstance(runs, Iterable):
        runs = [runs]
    subjects = _with_unique_labels(
        [subject_of(run, task=task, device=device, data=data) for run in runs]
    )
    tasks = {subject.task.spec.name: subject.task for subject in subjects}
    if len(tasks) > 1:
        raise UsageError(
            f"these networks were trained on different tasks ({', '.join(tasks)}); "
            "analyze those of one task at a time"
        )
    shared = subjects[0].task
    size = _size(shared, size)

    jobs, skipped = [], []
    for name in names:
        study = STUDIES[name]
        # The baseline and studies without an intervention have no time to move.
        at = after if after is not None and study.after else study.after or 0
        for subject in subjects:
            steps = _steps(subject, max_steps)
            strict = what is not None or after is not None
            if reason := _not_possible(subject, study, at, steps, strict=strict):
                skipped.append(Skipped(subject.label, name, reason))
            else:
                jobs.append((name, subject, StudySettings(steps, at, seed, tolerance)))
    if not jobs:
        raise UsageError(f"none of these studies can be made: {skipped[0].why}")

    batch = shared.sample(count, size=size, seed=seed)
    outcomes = []
    for place, (name, subject, settings) in enumerate(jobs):

        def tick(done: int, total: int, label: str = f"{subject.label}: {name}",
                 place: int = place) -> None:  # fmt: skip
            if progress is not None:
                progress(label, (place + done / total) / len(jobs))

        results = STUDIES[name].run(subject, batch, replace(settings, tick=tick))
        outcomes.append(Outcome(subject, name, tuple(results)))
    return Report(
        subjects=tuple(subjects),
        outcomes=tuple(outcomes),
        skipped=tuple(skipped),
        task=shared.spec.name,
        size=size,
        count=count,
        seed=seed,
    )


def _study_names(what: str | Sequence[str] | None) -> list[str]:
    """The requested studies, each once, in the order of a report."""
    if what is None:
        return list(STUDIES)
    names = [what] if isinstance(what, str) else list(what)
    if not names:
        raise UsageError(f"which studies? give one or more of: {', '.join(STUDIES)}")
    for name in names:
        if name not in STUDIES:
            raise UnknownName(registry.unknown_name("study", name, tuple(STUDIES)))
    return [name for name in STUDIES if name in names]


def _with_unique_labels(subjects: list[Subject]) -> list[Subject]:
    if not subjects:
        raise UsageError("there is nothing to analyze; give one or more run folders")
    counts: Counter[str] = Counter()
    unique = []
    for subject in subjects:
        counts[subject.label] += 1
        number = counts[subject.label]
        label = subject.label if number == 1 else f"{subject.label} ({number})"
        unique.append(replace(subject, label=label))
    return unique


def _size(task: Task, size: Size | str | None) -> Size:
    if isinstance(size, str):
        return task.parse_size(size)
    if size is None and getattr(task, "data", None) is None and task.spec.watch_sizes:
        with contextlib.suppress(TaskError):  # a small set may not have this size
            return task.check_size(task.spec.watch_sizes[0])
    return task.check_size(size)


def _steps(subject: Subject, max_steps: int | None) -> int:
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


def _not_possible(subject: Subject, study: Study, after: int, steps: int, *, strict: bool) -> str:
    """Why a study is not possible on a network; "" if it is.

    With ``strict``, too few iterations for the intervention are an error, unless the depth of the
    network is the reason.
    """
    if not study.needs(subject.task):
        return f"{subject.task.spec.name} offers no {study.lacks}"
    if steps < study.least:
        return f"it takes at least {study.least} iterations, and there are {steps}"
    if after < steps:
        return ""
    reason = (
        f"an intervention after iteration {after} leaves nothing to see of "
        f"{counted(steps, 'iteration')}; "
        f"intervene earlier, or think for at least {after + 1}"
    )
    if strict and depth_of(subject.net) is None:
        raise UsageError(reason)
    return reason
