"""Accuracy against iterations for many halting rules, from one run.

>>> for result in tradeoff(net, task, batch, steps=1000):
...     result.rule, result.accuracy, result.iterations

All rules see the same iterations, and no problem leaves the batch. `compaction` compares that with
a run in which finished problems leave the batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from iterant.engine import Thought
from iterant.errors import UsageError
from iterant.evaluation.evaluator import (
    Progress,
    budget_of,
    is_finite,
    operations,
    run_batches,
    wilson,
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


@dataclass(frozen=True)
class TradeOff:
    """Accuracy and cost of one rule."""

    rule: Rule
    solved: int
    count: int
    iterations: float
    """Mean iterations of a problem"""
    stopped: int
    """Problems for which the rule was met within the budget"""
    broken: int
    """Problems whose features were not finite when they stopped; these count as not solved"""
    work: float
    """Mean floating-point operations of a problem"""

    @property
    def accuracy(self) -> float:
        """The share solved."""
        return self.solved / self.count

    def described(self) -> dict[str, Any]:
        """As JSON can hold it."""
        return {
            "rule": str(self.rule),
            "accuracy": self.accuracy,
            "interval": wilson(torch.tensor(self.solved), self.count).tolist(),
            "mean iterations": self.iterations,
            "stopped by the rule": self.stopped,
            "not finite": self.broken,
            "operations a problem": self.work,
        }


class _RuleAnswers:
    """The answers of one rule on a batch that keeps its size."""

    def __init__(self, rule: Rule, count: int, device: torch.device) -> None:
        self.watch, self.answers = rule.watch(), AnswerBuffer(count, device)
        self.waiting = torch.ones(count, dtype=torch.bool, device=device)
        self.finite, self.rows = self.waiting.clone(), torch.arange(count, device=device)

    def record(self, thought: Thought, last: bool) -> None:
        done = self.watch.see(thought).to(self.waiting.device) & self.waiting
        leaving = self.waiting if last else done
        if bool(leaving.any()):
            self.answers.put(self.watch, thought, self.rows, leaving, done)
            self.finite[leaving] = is_finite(thought.features)[leaving]
            self.waiting = self.waiting & ~leaving


def _rule_answers(
    rules: Sequence[Rule], steps: int, part: Batch, iterations: Iterator[Iteration]
) -> list[_RuleAnswers]:
    """The answers of all rules to one batch."""
    all_answers = [_RuleAnswers(rule, len(part), part.inputs.device) for rule in rules]
    for iteration in iterations:
        for answers in all_answers:
            answers.record(iteration.thought, last=iteration.thought.step == steps)
        if not any(bool(answers.waiting.any()) for answers in all_answers):
            break
    return all_answers


def tradeoff(
    net: Net,
    task: Task,
    batch: Batch,
    *,
    steps: int,
    rules: Sequence[Rule] = RULES,
    portion: int | None = None,
    progress: Progress | None = None,
) -> list[TradeOff]:
    """Accuracy and mean iterations under each rule, with a budget of ``steps``."""
    if not rules:
        raise UsageError("there is no rule to compare; give at least one")
    check_fits(net, task)
    budget_of(net, steps)

    def sums(part: Batch, iterations: Iterator[Iteration]) -> Tensor:
        """(rules, 4): solved, iterations, stopped by the rule, not finite."""
        rows = []
        for rule_answers in _rule_answers(rules, steps, part, iterations):
            answers, finite = rule_answers.answers, rule_answers.finite
            right = task.solved(answers.prediction, part).to(finite.device) & finite
            row = [right.sum(), answers.steps.sum(), answers.met.sum(), (~finite).sum()]
            rows.append(torch.stack(row))
        return torch.stack(rows).cpu()

    parts, _ = run_batches(net, batch, sums, steps=steps, portion=portion, progress=progress)
    count, example, results = len(batch), like(net, batch[:1].inputs), []
    totals = torch.stack(parts).sum(dim=0).tolist()
    for rule, (solved, taken, stopped, broken) in zip(rules, totals, strict=True):
        mean = torch.tensor(taken / count, dtype=torch.float64)
        work = float(operations(net, example, rule).of(mean))
        results.append(TradeOff(rule, solved, count, taken / count, stopped, broken, work))
    return results


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
        full = _rule_answers([rule], steps, part, iterations)[0].answers
        reduced = solve(net, like(net, part.inputs), max_steps=steps, rule=rule)
        answers = (full.prediction != reduced.prediction).flatten(1).any(dim=1)
        return int(answers.sum()), int((full.steps != reduced.steps).sum())

    parts, _ = run_batches(net, batch, differences, steps=steps, portion=portion)
    return sum(answers for answers, _ in parts), sum(stops for _, stops in parts)
