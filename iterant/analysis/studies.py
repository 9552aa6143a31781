"""`analyze`, the studies that it runs, and the two that only count errors.

    >>> report = analyze(["runs/m0", "runs/m1"], what=["noise", "zeros", "swap"], size=13)

Interventions happen when they do in the paper: noise and zeros after iteration 1, all others after
iteration 50. The studies of errors are here: accuracy by kind of problem (ratings and themes of
puzzles, lengths of paths; for tasks with `kinds`), and how wrong the wrong answers are (whether
they are still connected or valid paths, for tasks with `near_misses`).
"""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from iterant import registry
from iterant.analysis.convergence import LEAST, compare_starts, converge, converge_on_noise
from iterant.analysis.interventions import Trial, cases, recover, run_cases, track
from iterant.analysis.report import Report, Result, Skipped, Subject
from iterant.draw.plots import Plot, Trace
from iterant.engine import last
from iterant.errors import TaskError, UnknownName, UsageError, argument
from iterant.evaluation import is_finite, resolve_steps, wilson
from iterant.io import read_weights
from iterant.io.checkpoint import CHECKPOINTS
from iterant.progress import progress_estimates
from iterant.tasks.protocol import Description, Size, Task, offers, with_problems
from iterant.training.recipe import recipe_from_json
from iterant.zoo.loading import folder_of, load

STEPS = 300
"""The default number of iterations; networks of fixed depth have their own."""
MAX_PICTURES = 64
"""The most failures that are kept for drawing; all are counted."""

SubjectLike = Subject | str | os.PathLike[str]
"""A subject, or an argument of `iterant.load`: the name of shipped weights or a path."""


def subject_of(
    source: SubjectLike,
    *,
    task: Task | str | None = None,
    device: str | torch.device = "cpu",
    data: str | os.PathLike[str] | None = None,
    problems: str = "",
    trust: bool = False,
) -> Subject:
    """The subject for a run folder, a weights folder or the name of shipped weights.

    ``task`` is for weights that do not name the task they were trained on; ``problems``: another
    kind than the task's own. ``trust``: import the user-defined code that the folder names.
    """
    if isinstance(source, Subject):
        return source
    if not isinstance(source, str | os.PathLike):
        raise UsageError(
            "wanted a run folder, a folder of weights or a shipped name, got "
            f'{type(source).__name__}; a network at hand is Subject(net, task, label="mine")'
        )
    folder = folder_of(source)
    config, _ = read_weights(folder)
    path = Path(source).resolve()
    label = path.name
    if path.parent.name == CHECKPOINTS and not path.is_dir():
        label = f"{path.parent.parent.name} {path.name}"
    registry.allow(task)  # a name that the caller gave
    name: Any = config.get("task") if task is None else task
    if name is None:
        raise UsageError(
            f"{label} does not say which task it was trained on; "
            f"name it: {' or '.join(argument('task', each) for each in registry.known('task'))}"
        )
    if task is None or isinstance(task, str):
        with registry.names_of_file(folder, config, trust=trust):
            task = registry.task(name, data=data or config.get("data"))
    net = load(source, device, trust=trust)
    task = with_problems(task, problems)
    if not config.get("recipe"):
        return Subject(net, task, label)
    recipe = recipe_from_json(config["recipe"])
    if recipe.objective.startswith("progressive"):
        return Subject(net, task, label, recipe.net, recipe.alpha, recipe.iterations)
    model = f"{recipe.net}, {recipe.objective}"
    return Subject(net, task, label, model, regime=recipe.iterations)


def by_kind(trial: Trial) -> Result:
    """Count the correct problems of each kind after each iteration."""
    correct, _, _ = track(trial, cases(trial))  # (N, T)
    figures: dict[str, Any] = {}
    points: dict[str, dict[float, float]] = {}  # by scale: accuracy by x of a kind
    for kind in trial.task.kinds(trial.batch):
        count = int(kind.among.sum())
        if count == 0:
            continue
        solved = correct[kind.among].sum(dim=0)  # (T,)
        figures[kind.name] = {
            "problems": count,
            "at the end": int(solved[-1]) / count,
            "95 %": wilson(solved[-1], count).tolist(),
            "solved by iteration": solved.tolist(),
        }
        if kind.scale:
            points.setdefault(kind.scale, {})[kind.at] = 100 * int(solved[-1]) / count
    plots, y_label = [], "solved at the end (%)"
    for scale, ends in points.items():
        plot = Plot(f"accuracy by {scale}", scale, y_label, share=True, shade=False)
        plots.append((plot, Trace(list(ends), list(ends.values()))))
    return Result(figures, plots)


@torch.no_grad()
def near_misses(trial: Trial) -> Result:
    """Examine the answers that are wrong at the end."""
    task, broken = trial.task, 0
    counts: list[int] = []  # wrong positions of each problem; 0 is solved
    paths = {"connected": 0, "valid": 0} if offers(task, "near_misses") else {}
    failures: list[Description] = []
    for case, thoughts in run_cases(trial, cases(trial)):
        thought = last(thoughts)
        prediction, part = thought.prediction.cpu(), case.batch.to(torch.device("cpu"))
        if paths:
            misses = task.near_misses(prediction, part)
            wrong = misses.wrong
            paths["connected"] += int(((wrong > 0) & misses.connected).sum())
            paths["valid"] += int(((wrong > 0) & misses.valid).sum())
        else:
            positions: Tensor = (prediction != part.targets).flatten(1).sum(dim=1)
            wrong = positions * ~task.solved(prediction, part)
        broken += int((~is_finite(thought.features)).sum())
        for row in wrong.nonzero().flatten().tolist()[: MAX_PICTURES - len(failures)]:
            failure = task.describe(part, row, prediction)
            failures.append(replace(failure, title=f"{failure.title}, problem {len(counts) + row}"))
        counts += wrong.tolist()

    ordered = sorted(counts)
    figures: dict[str, Any] = {
        "problems": len(counts),
        "failures": sum(count > 0 for count in counts),
        **{f"failures that are {kind}": count for kind, count in paths.items()},
        "broken": broken,
        "problems by wrong positions": {str(n): k for n, k in Counter(ordered).items()},
    }
    shares = [100 * rank / len(ordered) for rank in range(1, len(ordered) + 1)]
    y_label = "problems with at most this many (%)"
    plot = Plot("near misses", "wrong positions", y_label, share=True, shade=False)
    return Result(figures, [(plot, Trace(ordered, shares))], failures)


@dataclass(frozen=True)
class Study:
    """A study: what it does, when it intervenes, what it needs of a task."""

    about: str
    measures: tuple[Callable[[Trial], Result], ...] = (recover,)
    after: int | None = None
    """Iterations before the intervention; None: there is no intervention"""
    requires: str = ""
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
        "One bit of the input is flipped, at each index of each string.", after=50, requires="flip"
    ),
    "move-end": Study(
        "The end moves two cells nearer the start; paths too short for that are left out.",
        after=50,
        requires="shorten",
    ),
    "convergence": Study(
        "The change of the features per iteration, on problems and on Gaussian noise in their "
        "place; whether features (up to the tolerance) and answers are settled, cycling or still "
        "changing at the end; whether all starts lead to the same end. Similarity is the cosine of "
        "the final features with those from the network's own start, 1 where they are the same.",
        (converge, converge_on_noise, compare_starts),
        least=LEAST,
    ),
    "near-misses": Study(
        "How wrong the wrong answers are, and whether they are paths at all.", (near_misses,)
    ),
    "kinds": Study(
        "Accuracy by kind of problem: length, difficulty, theme.", (by_kind,), requires="kinds"
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
    device: str | torch.device = "cpu",
    data: str | os.PathLike[str] | None = None,
    problems: str = "",
    tolerance: float = 1e-3,
    trust: bool = False,
    progress: Callable[[str, float], None] | Literal[False] | None = None,
) -> Report:
    """Run these studies (None: all that the task supports) on networks of one task.

        >>> report = analyze("mazes", what="zeros", size=9, count=10, max_steps=150)
        >>> report.of("zeros").figures["peak"]["accuracy"]
        1.0

    Studies that are not possible for a network or task are skipped, with the reason.

    Args:
        runs: one or more runs, shipped names, folders of weights or `Subject`.
        what: names of studies; None: all that the task supports.
        size: of the problems; None: the first validation size beyond training, 48 bits or mazes of
            13, and the training size for data without it (the chess sample that ships).
        count: number of problems.
        max_steps: iterations in all.
        after: the iteration of every intervention; None: as in the paper.
        seed: decides the problems and the noise.
        task: the task, if the runs do not say it.
        device: ``cpu``, ``cuda`` or ``cuda:N``.
        data: path of the task's problems.
        problems: another kind of problems than the task's own, ``start=any``.
        tolerance: change per iteration, relative to the features, up to which they are settled.
        trust: import the user-defined code that the folders name.
        progress: called with the current study and the share of all work that is done; None: lines
            on the error stream; False: none.
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
    subjects = _subjects(
        [
            subject_of(run, task=task, device=device, data=data, problems=problems, trust=trust)
            for run in runs
        ]
    )
    shared = subjects[0].task
    size = _size(shared, size)

    steps_wanted = STEPS if max_steps is None else max_steps
    jobs, skipped = [], []
    for name in (name for name in STUDIES if name in names):
        study = STUDIES[name]
        at = study.after or 0
        if at and after is not None:  # not of the baseline, nor of studies without an intervention
            at = after
        least = max(study.least, at + 1)
        for subject in subjects:
            steps = resolve_steps(subject.net, steps_wanted, cut=max_steps is None)
            if study.requires and not hasattr(shared, study.requires):
                reason = f"the task {shared.spec.name} has no method {study.requires}"
                skipped.append(Skipped(subject.label, name, reason))
            elif steps < least:
                reason = f"it takes {least} iterations or more, got {steps}"
                skipped.append(Skipped(subject.label, name, reason))
            else:
                jobs.append((name, subject, steps, at))

    show = progress_estimates()
    batch = shared.sample(count, size=size, seed=seed)
    results: dict[str, dict[str, tuple[Result, ...]]] = {}
    done, total = 0, sum(len(STUDIES[name].measures) for name, *_ in jobs)

    def report_progress(part: int, of: int) -> None:
        label, share = f"{subject.label}: {name}", (done + part / of) / total
        if progress is None:
            show(share, 1, label)
        elif progress:
            progress(label, share)

    for name, subject, steps, at in jobs:
        trial = Trial(
            name, subject.net, subject.task, batch, steps, at, seed, tolerance, report_progress
        )
        measured: list[Result] = []
        try:
            for measure in STUDIES[name].measures:
                measured.append(measure(trial))
                done += 1
            results.setdefault(name, {})[subject.label] = tuple(measured)
        except (TaskError, UsageError) as error:
            skipped.append(Skipped(subject.label, name, str(error)))
    if not results:
        raise UsageError(f"none of these studies can be made: {skipped[0].why}")
    return Report(
        subjects=tuple(subjects),
        results=results,
        about={name: STUDIES[name].about for name in results},
        skipped=tuple(skipped),
        task=shared.spec.name,
        size=size,
        count=count,
        seed=seed,
    )


def _subjects(subjects: list[Subject]) -> list[Subject]:
    """The same networks with unique labels; raises unless they have one task."""
    if not subjects:
        raise UsageError("which runs? give one or more folders, as in: iterant analyze runs/m0")
    if len(tasks := {subject.task.spec.name for subject in subjects}) > 1:
        raise UsageError(
            f"these networks were trained on different tasks ({', '.join(sorted(tasks))}); "
            "analyze those of one task at a time"
        )
    unique, labels = [], Counter[str]()
    for subject in subjects:
        labels[subject.label] += 1
        number = labels[subject.label]
        label = f"{subject.label} ({number})" if number > 1 else subject.label
        unique.append(replace(subject, label=label))
    return unique


def _size(task: Task, size: Size | str | None) -> Size:
    if isinstance(size, str):
        return task.parse_size(size)
    if size is None and getattr(task, "data", None) is None and task.spec.watch_sizes:
        with contextlib.suppress(TaskError):  # a small set may not have this size
            return task.check_size(task.spec.watch_sizes[0])
    return task.check_size(size)
