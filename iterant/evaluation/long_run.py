"""Evaluation after very many iterations, and regressions: right answers that are lost again.

    >>> long = evaluate_long(net, task, task.sample(100, size=201, seed=7), steps=10_000)
    >>> long.figures["solved"], long.figures["solved at twice"], long.figures["lost"]
    (100, 100, 0)

Answers are checked after ``steps`` iterations and after twice as many. Local rules stop once
nothing changes any more. With ``every`` the answer is checked after every iteration: only this
finds an answer that becomes wrong and right again between the two.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor

from iterant.evaluation.evaluator import (
    budget_of,
    evaluate_batch,
    is_finite,
    run_batches,
    wilson,
)
from iterant.nets.fast import accelerate
from iterant.nets.protocol import Net, like
from iterant.solving import Iteration, check_fits
from iterant.tasks.protocol import Batch, Task

_CELLS_AT_ONCE = 1 << 22
"""Most cells of one batch of a long run; the recall terms of all cells take most of the memory."""
_MAX_LISTED = 20
"""How many unsolved problems are listed."""


@dataclass(frozen=True)
class LongRun:
    """Problems solved after some iterations and after twice as many."""

    figures: dict[str, Any]
    """The figures of a result file; "lost" only if it is known which problems were solved"""
    prediction: Tensor | None = None
    """(problems, *S): the last answers; with ``every``, for those that were right and later wrong,
    the one with the most wrong positions; None: not kept"""


def evaluate_long(
    net: Net,
    task: Task,
    batch: Batch,
    steps: int,
    *,
    every: bool = False,
    portion: int | None = None,
) -> LongRun:
    """Check answers after ``steps`` iterations and after twice as many.

    ``every``: check after every iteration, in batches of ``portion`` problems, and list the
    regressions, under "lapses".
    """
    check_fits(net, task)
    if every:
        return _every_iteration(net, task, batch, steps, portion)
    if hasattr(accelerate(net, like(net, batch[:1].inputs)), "moved"):
        return _until_rest(net, task, batch, steps)
    marks = sorted({max(1, 2 * steps * part // 40) for part in range(1, 41)} | {steps})
    curve = evaluate_batch(net, task, batch, steps=2 * steps, at=marks)
    peak, height = curve.peak
    more = {
        "peak": {"iterations": peak, "accuracy": height},
        "solved by iteration": dict(zip(map(str, curve.steps), curve.solved.tolist(), strict=True)),
        "change at the end": curve.change,
        "thinking": "everywhere",
    }
    solved = int(curve.solved[curve.steps.index(steps)])
    return LongRun(_figures(steps, solved, cast("Tensor", curve.right), more))


def _every_iteration(
    net: Net, task: Task, batch: Batch, steps: int, portion: int | None
) -> LongRun:
    """Check the answer after every iteration, and find regressions."""
    budget = budget_of(net, 2 * steps)

    def record(part: Batch, iterations: Iterator[Iteration]) -> tuple[Tensor, Tensor]:
        """(iterations, B) int64: wrong positions, 0: solved; (B, *S): `LongRun.prediction`."""
        counts = part.targets.new_zeros(budget, len(part))
        most = part.targets.new_zeros(len(part))  # wrong positions of the answer in `worst`
        was_right, worst = most != 0, torch.zeros_like(part.targets)
        for iteration in iterations:
            prediction = iteration.answer()[0]
            finite = is_finite(iteration.thought.features).to(prediction.device)
            right = task.solved(prediction, part).to(prediction.device) & finite
            # At least 1 where not solved: a task may ask for more than equal positions.
            count = (prediction != part.targets).flatten(1).sum(dim=1).clamp_min(1)
            counts[iteration.thought.step - 1] = torch.where(right, 0, count)
            worse = was_right & ~right & (count > most)
            most = torch.where(worse, count, most)
            was_right |= right
            replace = worse | (most == 0)
            worst[replace] = prediction[replace]
        return counts.cpu(), worst.cpu()

    parts, _ = run_batches(net, batch, record, steps=budget, portion=portion)
    wrong, worst = torch.cat([counts for counts, _ in parts], 1), torch.cat([w for _, w in parts])
    right = wrong == 0  # (iterations, problems)
    first = right.int().argmax(dim=0)[right.any(dim=0)]
    regressions = [
        regression
        for problem, counts in enumerate(wrong.unbind(dim=1))
        if (regression := _regression(problem, counts))
    ]
    more = {
        "thinking": "everywhere, answers judged after every iteration",
        "ever solved": len(first),
        "iterations until all those were solved once": int(first.max()) + 1 if len(first) else None,
        "lost on the way": len(regressions),
        "lapses": regressions,
    }
    return LongRun(_figures(steps, right[steps - 1], right[-1], more), worst)


def _regression(problem: int, wrong: Tensor) -> dict[str, int]:
    """When a right answer was lost, from the wrong positions (iterations,); empty if never."""
    right = (wrong == 0).nonzero().flatten().tolist()
    lost = wrong[right[0] :].nonzero().flatten().tolist() if right else []
    if not lost:
        return {}
    since = right[0] + 1
    worst = int(wrong[right[0] :].argmax())
    return {
        "problem": problem,
        "since": since,  # the first iteration with the right answer
        "first": since + lost[0],  # the first after that with a wrong one
        "until": since + lost[-1],  # the last with a wrong one
        "iterations": len(lost),  # with a wrong answer, from first to until
        "worst": since + worst,  # the iteration with the most wrong positions
        "positions": int(wrong[since - 1 + worst]),  # wrong ones at that iteration
    }


def _until_rest(net: Net, task: Task, batch: Batch, steps: int) -> LongRun:
    """The same for networks that report their changes: once nothing changes, the state is final."""
    latest = computed = cells = resting = 0

    def record(part: Batch, iterations: Iterator[Iteration]) -> tuple[Tensor, Tensor, Tensor]:
        nonlocal latest, computed, cells, resting
        right: Tensor | None = None
        for iteration in iterations:
            thought = iteration.thought
            fast: Any = thought.net
            changing = bool((fast.moved != 0).any())  # NaN counts as changed
            if thought.step == steps or (not changing and thought.step < steps):
                right = task.solved(thought.prediction, part).cpu()
            if not changing:
                break
            latest = max(latest, thought.step)
        computed += getattr(fast, "computed", 0)
        cells += getattr(fast, "cells", 0)
        resting += 0 if changing else len(part)
        twice = task.solved(thought.prediction, part).cpu()
        return twice if right is None else right, twice, thought.prediction.cpu()

    cells_of_one = batch.targets[0].numel() // task.spec.square**task.spec.dims
    portion = max(1, _CELLS_AT_ONCE // cells_of_one)
    parts, _ = run_batches(net, batch, record, steps=2 * steps, portion=portion, reuse=True)
    right, twice, predictions = (torch.cat(tensors) for tensors in zip(*parts, strict=True))
    more: dict[str, Any] = {"thinking": "everywhere, until rest"}
    if cells > 0:
        more = {
            "thinking": "only where something changed",
            "computations a square": computed / cells,
        }
    more["problems in portions that rest"] = resting
    more["last iteration in which anything changed"] = latest
    return LongRun(_figures(steps, right, twice, more), predictions)


def _figures(
    steps: int, right: Tensor | int, twice: Tensor, more: dict[str, Any]
) -> dict[str, Any]:
    """``right``: which problems, or how many, were right after ``steps``; ``twice``: at the end."""
    solved = right if isinstance(right, int) else int(right.sum())
    lost = {} if isinstance(right, int) else {"lost": int((right & ~twice).sum())}
    return {
        "solved": solved,
        "solved at twice": int(twice.sum()),
        **lost,
        **more,
        "wrong": (~twice).nonzero().flatten().tolist()[:_MAX_LISTED],
        "problems": len(twice),
        "iterations": steps,
        "interval": wilson(torch.tensor(solved), len(twice)).tolist(),
    }
