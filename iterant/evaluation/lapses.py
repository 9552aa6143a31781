"""Answers that were right and then were not: when, for how long, and how many positions.

    >>> kept = watch_answers(net, task, task.sample(12, size=33, seed=11), steps=600)
    >>> kept.lapses
    [Lapse(problem=4, since=131, first=402, until=404, iterations=3, worst=403, positions=4)]
    >>> task.describe(batch, 4, prediction=kept.worst)       # what it said after 403 iterations

Two looks see a right answer that is lost only if it is lost at the second. Here every iteration is
judged, so that a network which never comes to rest cannot look as if it did.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from iterant.evaluation.judging import Progress, budget_of, is_finite, like
from iterant.evaluation.portions import portions
from iterant.halting import Fixed
from iterant.nets.fast import fused
from iterant.nets.protocol import Net
from iterant.solving import shrinking
from iterant.solving.fitting import check_fits
from iterant.tasks.protocol import Batch, Task


@dataclass(frozen=True)
class Lapse:
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
    lapses: list[Lapse]

    def solved(self, step: int) -> int:
        """How many were right after so many iterations."""
        return int(self.right[step - 1].sum())


@torch.no_grad()
def watch_answers(
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
    for first, part in portions(batch, portion):
        found, answers = _watched(fast, task, part, like(net, part.inputs), budget)
        wrong.append(found)
        worst.append(answers)
        if progress is not None:
            progress(first + len(part), len(batch))
    counts = torch.cat(wrong, dim=1)
    lapses = [lapse for index in range(len(batch)) if (lapse := _lapse(index, counts[:, index]))]
    return Kept(counts == 0, torch.cat(worst), lapses)


def _watched(
    net: Net, task: Task, part: Batch, inputs: Tensor, budget: int
) -> tuple[Tensor, Tensor]:
    """(iterations, b) wrong positions, 0 where all is right; (b, *S) the answers to show."""
    wrong = torch.zeros(budget, len(part), dtype=torch.int64)
    shown = torch.zeros_like(part.targets)
    most, been = torch.zeros(len(part), dtype=torch.int64), torch.zeros(len(part), dtype=torch.bool)
    for glance in shrinking(net, inputs, Fixed(), budget):
        prediction = glance.answer()[0].cpu()
        right = task.solved(prediction, part) & is_finite(glance.thought.features).cpu()
        # A wrong answer counts at least once, also where a task forgives or asks for more.
        count = (prediction != part.targets).flatten(1).sum(dim=1).clamp_min(1)
        wrong[glance.thought.step - 1] = torch.where(right, 0, count)
        worse = been & ~right & (count > most)
        most[worse] = count[worse]
        been |= right
        show = worse | (most == 0)
        shown[show] = prediction[show]
    return wrong, shown


def _lapse(problem: int, wrong: Tensor) -> Lapse | None:
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
    return Lapse(
        problem=problem, since=since + 1, first=since + int(lost[0]) + 1,
        until=since + int(lost[-1]) + 1, iterations=len(lost),
        worst=since + worst + 1, positions=int(later[worst]),
    )  # fmt: skip
