"""Judging after very many iterations: far larger problems than a network was trained on.

    >>> far = evaluate_long(net, task, task.sample(100, size=201, seed=7), steps=10_000)
    >>> far.solved, far.solved_at_twice, far.lost
    (100, 100, 0)

Two looks are taken, after so many iterations and after twice as many. Local rules stop once nothing
changes any more; other networks iterate on, and can be judged at every iteration.

Answers that were right and then were not: when, for how long, and how many positions.

Two looks see a right answer that is lost only if it is lost at the second. Here every iteration is
judged, so that a network which never comes to rest cannot look as if it did.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

import torch
from torch import Tensor

from iterant.engine import think
from iterant.evaluation.curve import wilson
from iterant.evaluation.evaluator import (
    Progress,
    budget_of,
    evaluate_batch,
    is_finite,
    like,
    split_batch,
)
from iterant.halting import Fixed
from iterant.nets.fast import accelerate, fused, threads
from iterant.nets.protocol import Net
from iterant.solving import iterate
from iterant.solving.solver import check_fits
from iterant.tasks.protocol import Batch, Task


@dataclass(frozen=True)
class Regression:
    """A problem whose answer was wholly right once, and later wrong."""

    problem: int
    since: int
    """The iteration after which the answer was right for the first time"""
    first: int
    """The first iteration after that one at which it was wrong"""
    until: int
    """The last one at which it was wrong"""
    iterations: int
    """At how many it was wrong between the two, both included"""
    worst: int
    """The iteration with the most wrong positions, the first of equals"""
    positions: int
    """How many were wrong then"""


@dataclass(frozen=True)
class Kept:
    """Who was right after every iteration, and the worst answer of everybody who had been right."""

    right: Tensor
    """(iterations, problems) bool"""
    worst: Tensor
    """(problems, *S) int64: where a right answer was lost, the answer with the most wrong
    positions after it; else the last one"""
    regressions: list[Regression]

    def solved(self, step: int) -> int:
        """How many were right after so many iterations."""
        return int(self.right[step - 1].sum())


@torch.no_grad()
def track_answers(
    net: Net,
    task: Task,
    batch: Batch,
    steps: int,
    *,
    portion: int | None = None,
    progress: Progress | None = None,
) -> Kept:
    """Judge the answer after every iteration and keep what became of right ones.

    ``portion``: problems at a time; the progress is told after each.
    """
    check_fits(net, task)
    budget, fast = budget_of(net, steps), fused(net)
    wrong, worst = [], []
    for first, part in split_batch(batch, portion):
        found, answers = _watched(fast, task, part, like(net, part.inputs), budget)
        wrong.append(found)
        worst.append(answers)
        if progress is not None:
            progress(first + len(part), len(batch))
    counts = torch.cat(wrong, dim=1)
    regressions = [
        regression
        for index in range(len(batch))
        if (regression := _regression(index, counts[:, index]))
    ]
    return Kept(counts == 0, torch.cat(worst), regressions)


def _watched(
    net: Net, task: Task, part: Batch, inputs: Tensor, budget: int
) -> tuple[Tensor, Tensor]:
    """(iterations, b) wrong positions, 0 where all is right; (b, *S) the answers to show."""
    wrong = torch.zeros(budget, len(part), dtype=torch.int64)
    shown = torch.zeros_like(part.targets)
    most, been = torch.zeros(len(part), dtype=torch.int64), torch.zeros(len(part), dtype=torch.bool)
    for iteration in iterate(net, inputs, Fixed(), budget):
        prediction = iteration.answer()[0].cpu()
        right = task.solved(prediction, part) & is_finite(iteration.thought.features).cpu()
        # A wrong answer counts at least once, also where a task forgives or asks for more.
        count = (prediction != part.targets).flatten(1).sum(dim=1).clamp_min(1)
        wrong[iteration.thought.step - 1] = torch.where(right, 0, count)
        worse = been & ~right & (count > most)
        most[worse] = count[worse]
        been |= right
        show = worse | (most == 0)
        shown[show] = prediction[show]
    return wrong, shown


def _regression(problem: int, wrong: Tensor) -> Regression | None:
    """What the wrong positions of one problem after every iteration tell."""
    right = (wrong == 0).nonzero().flatten()
    if not len(right):
        return None
    since = int(right[0])
    later = wrong[since:]
    lost = later.nonzero().flatten()
    if not len(lost):
        return None
    worst = int(later.argmax())
    return Regression(
        problem=problem, since=since + 1, first=since + int(lost[0]) + 1,
        until=since + int(lost[-1]) + 1, iterations=len(lost),
        worst=since + worst + 1, positions=int(later[worst]),
    )  # fmt: skip


SQUARES_AT_ONCE = 1 << 22
"""Of a portion: what the recall of all its squares takes decides the memory."""

_NAMED = 20
"""How many wrong problems are named."""


@dataclass(frozen=True)
class LongRun:
    """What two looks found."""

    problems: int
    steps: int
    """Iterations until the first look"""
    solved: int
    """Problems solved at the first look"""
    solved_at_twice: int
    """Problems solved at the second"""
    wrong: list[int]
    """The first problems that were not solved at the second look"""
    lost: int | None = None
    """Problems solved at the first look and not at the second; None: only counts were kept"""
    more: dict[str, Any] = field(default_factory=dict)
    """How it was thought about"""
    prediction: Tensor | None = None
    """Answers of the second look, where they were kept; where a right answer was seen to be lost
    on the way, the worst after it"""

    def figures(self) -> dict[str, Any]:
        """All of it for a result file."""
        lost = {} if self.lost is None else {"lost": self.lost}
        return {
            "solved": self.solved, "solved at twice": self.solved_at_twice, **lost, **self.more,
            "wrong": self.wrong, "problems": self.problems, "iterations": self.steps,
            "interval": wilson(torch.tensor(self.solved), self.problems).tolist(),
        }  # fmt: skip


def evaluate_long(
    net: Net,
    task: Task,
    batch: Batch,
    steps: int,
    *,
    every: bool = False,
    portion: int | None = None,
    progress: Progress | None = None,
) -> LongRun:
    """Look after so many iterations and after twice as many.

    ``every``: look after every iteration between, so that right answers which are lost on the way
    are seen. ``portion``, ``progress``: with ``every``, problems at a time, and who is told after
    each.
    """
    check_fits(net, task)
    if every:
        return _at_every_iteration(net, task, batch, steps, portion, progress)
    if hasattr(accelerate(net, like(net, batch[:1].inputs)), "moved"):
        return _until_rest(net, task, batch, steps)
    return _everywhere(net, task, batch, steps)


def _until_rest(net: Net, task: Task, batch: Batch, steps: int) -> LongRun:
    """Both looks by a network that says what changed: once nothing does, nothing ever will."""
    right, twice, predictions = [], [], []
    latest = computed = cells = resting = 0
    of_problem = batch.targets[0].numel() // task.spec.square**task.spec.dims
    portion = max(1, SQUARES_AT_ONCE // of_problem)
    for first in range(0, len(batch), portion):
        part = batch[first : first + portion]
        inputs = like(net, part.inputs)
        fast: Any = accelerate(net, inputs, reuse=True)
        solved, changing = None, True
        with torch.no_grad(), threads(fast):
            for thought in think(fast, inputs, steps=2 * steps):
                changing = bool((fast.moved != 0).any())  # NaN counts as changed
                if thought.step == steps or (not changing and thought.step < steps):
                    solved = task.solved(thought.prediction.cpu(), part)
                if not changing:
                    break
                latest = max(latest, thought.step)
            predictions.append(thought.prediction.cpu())
        twice.append(task.solved(predictions[-1], part))
        right.append(twice[-1] if solved is None else solved)
        computed += getattr(fast, "computed", 0)
        cells += getattr(fast, "cells", 0)
        resting += 0 if changing else len(part)
    how = {
        "thinking": "only where something changed" if cells else "everywhere, until rest",
        **({"computations a square": computed / cells} if cells else {}),
        "problems in portions that rest": resting,
        "last iteration in which anything changed": latest,
    }
    first_look, second_look = torch.cat(right), torch.cat(twice)
    return LongRun(
        len(batch), steps, int(first_look.sum()), int(second_look.sum()),
        _first_wrong(second_look), int((first_look & ~second_look).sum()), how,
        torch.cat(predictions),
    )  # fmt: skip


def _everywhere(net: Net, task: Task, batch: Batch, steps: int) -> LongRun:
    marks = sorted({max(1, 2 * steps * part // 40) for part in range(1, 41)} | {steps})
    curve = evaluate_batch(net, task, batch, steps=2 * steps, at=marks)
    peak, height = curve.peak
    how = {
        "peak": {"iterations": peak, "accuracy": height},
        "solved by iteration": dict(zip(map(str, curve.steps), curve.solved.tolist(), strict=True)),
        "change at the end": curve.change, "thinking": "everywhere",
    }  # fmt: skip
    return LongRun(
        len(batch), steps, int(curve.solved[curve.steps.index(steps)]), int(curve.solved[-1]),
        [] if curve.right is None else _first_wrong(curve.right), more=how,
    )  # fmt: skip


def _at_every_iteration(
    net: Net, task: Task, batch: Batch, steps: int, portion: int | None, progress: Progress | None
) -> LongRun:
    kept = track_answers(net, task, batch, 2 * steps, portion=portion, progress=progress)
    right, twice = kept.right[steps - 1], kept.right[-1]
    first = kept.right.int().argmax(dim=0)[kept.right.any(dim=0)]
    how = {
        "thinking": "everywhere, answers judged after every iteration",
        "ever solved": len(first),
        "iterations until all those were solved once": int(first.max()) + 1 if len(first) else None,
        "lost on the way": len(kept.regressions),
        "lapses": [asdict(regression) for regression in kept.regressions],
    }
    return LongRun(
        len(batch), steps, int(right.sum()), int(twice.sum()), _first_wrong(twice),
        int((right & ~twice).sum()), how, kept.worst,
    )  # fmt: skip


def _first_wrong(right: Tensor) -> list[int]:
    return (~right).nonzero().flatten().tolist()[:_NAMED]
