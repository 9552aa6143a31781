"""Evaluation after very many iterations, and right answers that are lost again.

    >>> long = evaluate_long(net, task, task.sample(100, size=201, seed=7), steps=10_000)
    >>> long.solved, long.solved_at_twice, long.lost
    (100, 100, 0)

Answers are compared after ``steps`` iterations and after twice as many. Local rules stop once
nothing changes any more. `track_answers` compares the answer after every iteration instead: an
answer that is lost and found again between the two is seen only there.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

import torch
from torch import Tensor

from iterant.evaluation.curve import wilson
from iterant.evaluation.evaluator import (
    Progress,
    budget_of,
    evaluate_batch,
    is_finite,
    run_batches,
)
from iterant.nets.fast import accelerate
from iterant.nets.protocol import Net, like
from iterant.solving import Iteration, check_fits
from iterant.tasks.protocol import Batch, Task

SQUARES_AT_ONCE = 1 << 22
"""Cells of one batch of a long run: the recall of all cells decides the memory."""
_NAMED = 20
"""How many unsolved problems are listed."""


@dataclass(frozen=True)
class Regression:
    """A problem whose answer was right once, and later wrong."""

    problem: int
    since: int
    """First iteration with the right answer"""
    first: int
    """First iteration after that with a wrong answer"""
    until: int
    """Last iteration with a wrong answer"""
    iterations: int
    """Iterations with a wrong answer from ``first`` to ``until``"""
    worst: int
    """The iteration with the most wrong positions, the first of equals"""
    positions: int
    """Wrong positions at that iteration"""


@dataclass(frozen=True)
class AnswerHistory:
    """Which answers were right after every iteration."""

    right: Tensor
    """(iterations, problems) bool"""
    worst: Tensor
    """(problems, *S) int64: where a right answer was lost, the answer with the most wrong
    positions after it; else the last one"""
    regressions: list[Regression]

    def solved(self, step: int) -> int:
        """Problems solved after ``step`` iterations."""
        return int(self.right[step - 1].sum())


def track_answers(
    net: Net,
    task: Task,
    batch: Batch,
    steps: int,
    *,
    portion: int | None = None,
    progress: Progress | None = None,
) -> AnswerHistory:
    """Compare the answer after every iteration, and find the right ones that were lost again.

    ``portion``: problems in a batch; the progress is reported after each.
    """
    check_fits(net, task)
    recorder = _AnswerRecorder(task, budget_of(net, steps), len(batch), progress)
    run_batches(net, batch, recorder, steps=recorder.steps, portion=portion)
    wrong = torch.cat(recorder.wrong, dim=1)
    found = (_regression(index, counts) for index, counts in enumerate(wrong.unbind(dim=1)))
    return AnswerHistory(wrong == 0, torch.cat(recorder.worst), [one for one in found if one])


class _AnswerRecorder:
    """Wrong positions of every problem after every iteration."""

    def __init__(self, task: Task, steps: int, count: int, progress: Progress | None) -> None:
        self.task, self.steps, self.count, self.progress = task, steps, count, progress
        self.wrong: list[Tensor] = []
        """(iterations, b) int64 of each batch: wrong positions, 0 where the problem is solved"""
        self.worst: list[Tensor] = []
        """(b, *S) int64 of each batch, see `AnswerHistory.worst`"""

    def start(self, first: int, part: Batch, began: float) -> None:
        self.end, self.part = first + len(part), part
        self.counts = part.targets.new_zeros(self.steps, len(part))
        self.most = part.targets.new_zeros(len(part))  # wrong positions of the answer shown
        self.was_right = torch.zeros_like(self.most, dtype=torch.bool)
        self.shown = torch.zeros_like(part.targets)

    def record(self, iteration: Iteration) -> bool:
        prediction = iteration.answer()[0]
        finite = is_finite(iteration.thought.features).to(prediction.device)
        right = self.task.solved(prediction, self.part).to(prediction.device) & finite
        # At least 1 where not solved: a task may ask for more than equal positions.
        count = (prediction != self.part.targets).flatten(1).sum(dim=1).clamp_min(1)
        self.counts[iteration.thought.step - 1] = torch.where(right, 0, count)
        worse = self.was_right & ~right & (count > self.most)
        self.most = torch.where(worse, count, self.most)
        self.was_right |= right
        show = worse | (self.most == 0)
        self.shown[show] = prediction[show]
        return False

    def finish(self) -> None:
        self.wrong.append(self.counts.cpu())
        self.worst.append(self.shown.cpu())
        if self.progress is not None:
            self.progress(self.end, self.count)


def _regression(problem: int, wrong: Tensor) -> Regression | None:
    """From the wrong positions (iterations,) of one problem; None where no right answer is lost."""
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


@dataclass(frozen=True)
class LongRun:
    """Problems solved after ``steps`` iterations and after twice as many."""

    problems: int
    steps: int
    solved: int
    """After ``steps`` iterations"""
    solved_at_twice: int
    """After twice as many"""
    wrong: list[int]
    """The first problems that were not solved after twice as many"""
    lost: int | None = None
    """Problems solved after ``steps`` and not after twice as many; None: only counts are known"""
    more: dict[str, Any] = field(default_factory=dict)
    """Further figures, by how the network was run"""
    prediction: Tensor | None = None
    """The last answers, where they were kept; of `track_answers`, `AnswerHistory.worst`"""

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
    """Compare answers after ``steps`` iterations and after twice as many.

    ``every``: after every iteration, with `track_answers`; ``portion`` and ``progress`` are its.
    """
    check_fits(net, task)
    if every:
        history = track_answers(net, task, batch, 2 * steps, portion=portion, progress=progress)
        right, twice = history.right[steps - 1], history.right[-1]
        first = history.right.int().argmax(dim=0)[history.right.any(dim=0)]
        until = int(first.max()) + 1 if len(first) else None
        more = {
            "thinking": "everywhere, answers judged after every iteration",
            "ever solved": len(first),
            "iterations until all those were solved once": until,
            "lost on the way": len(history.regressions),
            "lapses": [asdict(regression) for regression in history.regressions],
        }
        return _long_run(steps, right, twice, more, history.worst)
    if hasattr(accelerate(net, like(net, batch[:1].inputs)), "moved"):
        recorder = _RestRecorder(task, steps)
        cells = batch.targets[0].numel() // task.spec.square**task.spec.dims
        run_batches(
            net, batch, recorder, steps=2 * steps, portion=max(1, SQUARES_AT_ONCE // cells),
            reuse=True,
        )  # fmt: skip
        right, twice = torch.cat(recorder.right), torch.cat(recorder.twice)
        return _long_run(steps, right, twice, recorder.more(), torch.cat(recorder.predictions))
    marks = sorted({max(1, 2 * steps * part // 40) for part in range(1, 41)} | {steps})
    curve = evaluate_batch(net, task, batch, steps=2 * steps, at=marks)
    peak, height = curve.peak
    more = {
        "peak": {"iterations": peak, "accuracy": height},
        "solved by iteration": dict(zip(map(str, curve.steps), curve.solved.tolist(), strict=True)),
        "change at the end": curve.change, "thinking": "everywhere",
    }  # fmt: skip
    return LongRun(
        len(batch), steps, int(curve.solved[curve.steps.index(steps)]), int(curve.solved[-1]),
        [] if curve.right is None else _first_wrong(curve.right), more=more,
    )  # fmt: skip


class _RestRecorder:
    """Both answers of a network that knows what changed: once nothing does, nothing ever will."""

    def __init__(self, task: Task, steps: int) -> None:
        self.task, self.steps = task, steps
        self.right: list[Tensor] = []
        self.twice: list[Tensor] = []
        self.predictions: list[Tensor] = []
        self.latest = self.computed = self.cells = self.resting = 0

    def start(self, first: int, part: Batch, began: float) -> None:
        self.part = part
        self.first_right: Tensor | None = None

    def record(self, iteration: Iteration) -> bool:
        self.thought = iteration.thought
        net: Any = self.thought.net
        self.changing = bool((net.moved != 0).any())  # NaN counts as changed
        step = self.thought.step
        if step == self.steps or (not self.changing and step < self.steps):
            self.first_right = self.task.solved(self.thought.prediction, self.part).cpu()
        if self.changing:
            self.latest = max(self.latest, step)
        return not self.changing

    def finish(self) -> None:
        self.predictions.append(self.thought.prediction.cpu())
        self.twice.append(self.task.solved(self.thought.prediction, self.part).cpu())
        self.right.append(self.twice[-1] if self.first_right is None else self.first_right)
        self.computed += getattr(self.thought.net, "computed", 0)
        self.cells += getattr(self.thought.net, "cells", 0)
        self.resting += 0 if self.changing else len(self.part)

    def more(self) -> dict[str, Any]:
        sparse = self.cells > 0
        return {
            "thinking": "only where something changed" if sparse else "everywhere, until rest",
            **({"computations a square": self.computed / self.cells} if sparse else {}),
            "problems in portions that rest": self.resting,
            "last iteration in which anything changed": self.latest,
        }


def _long_run(
    steps: int, right: Tensor, twice: Tensor, more: dict[str, Any], prediction: Tensor
) -> LongRun:
    return LongRun(
        len(right), steps, int(right.sum()), int(twice.sum()), _first_wrong(twice),
        int((right & ~twice).sum()), more, prediction,
    )  # fmt: skip


def _first_wrong(right: Tensor) -> list[int]:
    return (~right).nonzero().flatten().tolist()[:_NAMED]
