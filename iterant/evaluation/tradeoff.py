"""Accuracy against iterations for many halting rules, from one run.

>>> for rule, curve in tradeoff(net, task, batch, steps=1000):
...     rule, curve.end, curve.iterations[-1]

All rules see the same iterations, and no problem leaves the batch. `compaction` compares that with
a run in which finished problems leave the batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from iterant.errors import UsageError
from iterant.evaluation.evaluator import (
    Curve,
    Progress,
    budget_of,
    is_finite,
    operations,
    run_batches,
)
from iterant.halting import Fixed, MostConfident, Resting, Rule, StableAnswer
from iterant.nets.protocol import Net, like
from iterant.solving import AnswerBuffer, Iteration, check_fits, solve
from iterant.tasks.protocol import Batch, Task

RULES: tuple[Rule, ...] = (
    Fixed(),
    MostConfident(),
    *(StableAnswer(patience) for patience in (1, 2, 5, 10, 20, 30, 50)),
    *(Resting(tolerance) for tolerance in (1e-1, 1e-2, 1e-3, 1e-4)),
)
"""Two rules that spend the full budget, then rules of rising patience or falling tolerance."""


def _answers(
    rules: Sequence[Rule], steps: int, part: Batch, iterations: Iterator[Iteration]
) -> list[tuple[AnswerBuffer, Tensor]]:
    """The answers of each rule to a batch that keeps its size, and whether they are finite (B,)."""
    device = part.inputs.device
    watches = [rule.watch() for rule in rules]
    answers = [AnswerBuffer(len(part), device) for _ in rules]
    waiting = torch.ones(len(rules), len(part), dtype=torch.bool, device=device)
    finite = waiting.clone()
    for iteration in iterations:
        thought = iteration.thought
        for index, watch in enumerate(watches):
            done = watch.see(thought).to(device) & waiting[index]
            leaving = waiting[index] if thought.step == steps else done
            if bool(leaving.any()):
                answers[index].put(replace(iteration, done=done, leaving=leaving, watch=watch))
                finite[index] &= is_finite(thought.features) | ~leaving
                waiting[index] &= ~leaving
        if not bool(waiting.any()):
            break
    return list(zip(answers, finite, strict=True))


def tradeoff(
    net: Net,
    task: Task,
    batch: Batch,
    *,
    steps: int,
    rules: Sequence[Rule] = RULES,
    portion: int | None = None,
    progress: Progress | None = None,
) -> list[tuple[Rule, Curve]]:
    """Accuracy and cost under each rule, with a budget of ``steps``: curves of one point."""
    if not rules:
        raise UsageError("there is no rule to compare; give at least one")
    check_fits(net, task)
    budget_of(net, steps)

    def outcomes(part: Batch, iterations: Iterator[Iteration]) -> Tensor:
        """(4, rules, B) int64: solved, iterations, stopped by the rule, not finite."""
        columns = []
        for answers, finite in _answers(rules, steps, part, iterations):
            right = task.solved(answers.prediction, part).to(finite.device) & finite
            columns.append(torch.stack([right, answers.steps, answers.met, ~finite]))
        return torch.stack(columns, dim=1).cpu()

    parts, shrunk = run_batches(
        net, batch, outcomes, steps=steps, portion=portion, progress=progress
    )
    example, curves = like(net, batch[:1].inputs), []
    for rule, (right, taken, met, broken) in zip(
        rules, torch.cat(parts, dim=2).unbind(dim=1), strict=True
    ):
        curve = Curve(
            steps=(steps,),
            solved=right.sum(dim=0, keepdim=True),
            count=len(batch),
            broken=int(broken.sum()),
            right=right.bool(),
            taken=taken,
            stopped=met.bool(),
            operations=operations(net, example, rule),
            shrunk=shrunk,
        )
        curves.append((rule, curve))
    return curves


def compaction(
    net: Net, batch: Batch, rule: Rule, *, steps: int, portion: int | None = None
) -> tuple[int, int]:
    """How many answers, and how many stopping iterations, differ if no problem leaves the batch.

        >>> compaction(net, batch, StableAnswer(5), steps=60)
        (0, 0)

    In float64 nothing differs, in fp32 and bf16 it may: kernels round differently for batches of
    different sizes, and iterating can amplify that.
    """

    def differences(part: Batch, iterations: Iterator[Iteration]) -> tuple[int, int]:
        [(full, _)] = _answers([rule], steps, part, iterations)
        reduced = solve(net, like(net, part.inputs), max_steps=steps, rule=rule)
        answers = (full.prediction != reduced.prediction).flatten(1).any(dim=1)
        return int(answers.sum()), int((full.steps != reduced.steps).sum())

    parts, _ = run_batches(net, batch, differences, steps=steps, portion=portion)
    return sum(answers for answers, _ in parts), sum(stops for _, stops in parts)
