"""The studies by name, their subjects, and `analyze`, which runs several in one call.

    >>> report = analyze(["runs/m0", "runs/m1"], what=["noise", "zeros", "swap"], size=13)
    >>> report.table()                    # the paper's table of interventions
    >>> report.save("analysis")           # JSON, plots and a page

Interventions happen when they do in the paper: noise and zeros after iteration 1, all others after
iteration 50.
"""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from iterant import registry
from iterant.analysis.convergence import LEAST, compare_starts, converge, converge_on_noise
from iterant.analysis.errors_by_kind import by_kind, near_misses
from iterant.analysis.interventions import Trial, recover
from iterant.analysis.report import Outcome, Report, Result, Skipped
from iterant.errors import TaskError, UnknownName, UsageError
from iterant.evaluation.evaluator import budget_of
from iterant.io import RunFolder, read_weights
from iterant.io.checkpoint import CHECKPOINTS
from iterant.nets.protocol import Net, depth_of
from iterant.solving import check_fits
from iterant.tasks.protocol import Size, Task
from iterant.training.recipe import Recipe
from iterant.zoo.loading import folder_of, load

STEPS = 300
"""The default number of iterations; networks of fixed depth have their own."""


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
        """Check that the network fits the task."""
        check_fits(self.net, self.task)

    @property
    def legend(self) -> str:
        """Its name in pictures: architecture and alpha, which several runs may share."""
        name = self.model or self.label
        return name if self.alpha is None else f"{name}, α = {self.alpha:g}"


SubjectLike = Subject | str | os.PathLike[str]
"""A subject, or an argument of `iterant.load`: the name of shipped weights or a path."""


def subject_of(
    source: SubjectLike,
    *,
    task: Task | str | None = None,
    device: str = "cpu",
    data: str | os.PathLike[str] | None = None,
) -> Subject:
    """The subject for a run folder, a weights folder or the name of shipped weights.

    ``task`` is for weights that do not name the task they were trained on.
    """
    if isinstance(source, Subject):
        return source
    if not isinstance(source, str | os.PathLike):
        raise UsageError(
            "wanted a run folder, a folder of weights or a shipped name, got "
            f'{type(source).__name__}; a network at hand is Subject(net, task, label="mine")'
        )
    net, folder = load(source, device), folder_of(source)
    path = Path(os.fspath(source)).resolve()
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
        full_recipe = Recipe().changed(**recipe)  # with defaults
        model = str(recipe["net"])
        if full_recipe.objective.startswith("progressive"):
            alpha = full_recipe.alpha
        else:
            model += f", {recipe['objective']}"
    return Subject(net, task, label, model, alpha, recipe.get("iterations"))


@dataclass(frozen=True)
class Study:
    """A study: what it does, when it intervenes, what it needs of a task."""

    about: str
    measures: tuple[Callable[[Trial], Result], ...] = (recover,)
    after: int | None = None
    """Iterations before the intervention; None: there is no intervention"""
    needs: str = ""
    """The method of the task that it calls, if not every task has it"""
    least: int = 1
    """The fewest iterations"""


STUDIES = {
    "clean": Study("Nothing is done: what the interventions are compared with.", after=0),
    "noise": Study("Gaussian noise with standard deviation 1 is added to the features.", after=1),
    "zeros": Study("The features are replaced with zeros.", after=1),
    "swap": Study("Every problem goes on with the features of another problem.", after=50),
    "swap-input": Study(
        "The features stay, and the problem becomes another, to be solved.", after=50
    ),
    "bit-flip": Study(
        "One bit of the input is flipped, at each index of each string.", after=50, needs="flip"
    ),
    "move-end": Study(
        "The end moves two cells nearer the start; paths too short for that are left out.",
        after=50,
        needs="shorten",
    ),
    "convergence": Study(
        "The change of the features per iteration, on problems and on Gaussian noise in their "
        "place; whether features (up to the tolerance) and answers are settled, cycling or moving "
        "at the end; whether all starts lead to the same end.",
        (converge, converge_on_noise, compare_starts),
        least=LEAST,
    ),
    "near-misses": Study(
        "How wrong the wrong answers are, and whether they are paths at all.", (near_misses,)
    ),
    "kinds": Study(
        "Accuracy by kind of problem: length, difficulty, theme.", (by_kind,), needs="kinds"
    ),
}
"""Every study, in the order of a report."""


@torch.no_grad()
def analyze(
    runs: SubjectLike | Sequence[SubjectLike],
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
    progress: Callable[[str, float], None] | None = None,
) -> Report:
    """Run these studies (None: all that the task supports) on networks of one task.

        >>> report = analyze("mazes", what="zeros", size=9, count=10, max_steps=60)
        >>> report.of("zeros").figures["peak"]["accuracy"]
        1.0

    ``size`` is by default the first validation size beyond training: 48 bits, mazes of 13; for
    data without it (the chess sample that ships), the training size. ``max_steps`` is the number
    of iterations in all; ``after`` is the iteration of every intervention (None: as in the paper).
    Studies that are not possible for a network or task are skipped, with the reason. ``progress``
    is called with the current study and the share of all work that is done.
    """
    names = list(STUDIES) if what is None else [what] if isinstance(what, str) else list(what)
    if not names:
        raise UsageError(f"which studies? give one or more of: {', '.join(STUDIES)}")
    for name in names:
        if name not in STUDIES:
            raise UnknownName(registry.unknown_name("study", name, tuple(STUDIES)))
    if not tolerance > 0:
        raise UsageError(f"the tolerance must be above 0, got {tolerance}")
    if after is not None and after < 0:
        raise UsageError(f"an intervention happens after 0 or more iterations, got {after}")
    if isinstance(runs, str | os.PathLike | Subject) or not isinstance(runs, Iterable):
        runs = [runs]
    subjects: list[Subject] = []
    labels: Counter[str] = Counter()
    for run in runs:
        subject = subject_of(run, task=task, device=device, data=data)
        labels[subject.label] += 1
        if (number := labels[subject.label]) > 1:
            subject = replace(subject, label=f"{subject.label} ({number})")
        subjects.append(subject)
    if not subjects:
        raise UsageError("there is nothing to analyze; give one or more run folders")
    shared = subjects[0].task
    if len(tasks := {subject.task.spec.name for subject in subjects}) > 1:
        raise UsageError(
            f"these networks were trained on different tasks ({', '.join(sorted(tasks))}); "
            "analyze those of one task at a time"
        )
    size = _size(shared, size)

    jobs, skipped = [], []
    for name in (name for name in STUDIES if name in names):
        study = STUDIES[name]
        # ``after`` does not apply to the baseline and to studies without an intervention.
        at = after if after is not None and study.after else study.after or 0
        for subject in subjects:
            steps = budget_of(
                subject.net, STEPS if max_steps is None else max_steps, cut=max_steps is None
            )
            reason = ""
            if study.needs and not hasattr(shared, study.needs):
                reason = f"{shared.spec.name} offers no {study.needs}()"
            elif steps < study.least:
                reason = f"it takes at least {study.least} iterations, and there are {steps}"
            elif at >= steps:
                reason = (
                    f"an intervention after iteration {at} leaves nothing to see of {steps}; "
                    f"intervene earlier, or take at least {at + 1} iterations"
                )
                explicit = what is not None or after is not None
                if explicit and depth_of(subject.net) is None:
                    raise UsageError(reason)
            if reason:
                skipped.append(Skipped(subject.label, name, reason))
            else:
                jobs.append((name, subject, steps, at))
    if not jobs:
        raise UsageError(f"none of these studies can be made: {skipped[0].why}")

    batch = shared.sample(count, size=size, seed=seed)
    outcomes, total = [], sum(len(STUDIES[name].measures) for name, *_ in jobs)
    done = 0
    for name, subject, steps, at in jobs:
        results = []
        for measure in STUDIES[name].measures:

            def report_progress(part: int, of: int, label: str = f"{subject.label}: {name}",
                                done: int = done) -> None:  # fmt: skip
                if progress is not None:
                    progress(label, (done + part / of) / total)

            trial = Trial(
                name, subject.net, subject.task, batch, steps, at, seed, tolerance, report_progress
            )
            results.append(measure(trial))
            done += 1
        outcomes.append(Outcome(subject, name, STUDIES[name].about, tuple(results)))
    return Report(
        subjects=tuple(subjects),
        outcomes=tuple(outcomes),
        skipped=tuple(skipped),
        task=shared.spec.name,
        size=size,
        count=count,
        seed=seed,
    )


def _size(task: Task, size: Size | str | None) -> Size:
    if isinstance(size, str):
        return task.parse_size(size)
    if size is None and getattr(task, "data", None) is None and task.spec.watch_sizes:
        with contextlib.suppress(TaskError):  # a small set may not have this size
            return task.check_size(task.spec.watch_sizes[0])
    return task.check_size(size)
