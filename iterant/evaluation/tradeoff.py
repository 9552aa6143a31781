"""Accuracy against iterations for many halting rules, from one run.

>>> for one in tradeoff(net, task, batch, steps=1000):
...     one.rule, one.accuracy, one.iterations

All rules see the same iterations, and no problem leaves the batch. `compaction` compares that with
the run in which problems do leave.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from iterant.engine import Thought
from iterant.errors import UsageError
from iterant.evaluation.cost import operations, reads_every_answer
from iterant.evaluation.curve import wilson
from iterant.evaluation.evaluator import Progress, budget_of, is_finite, run_batches
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
"""From impatient to patient, and the two that spend the whole budget."""


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
    """Problems whose features were not finite when they stopped; never solved"""
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
        self.finite = torch.ones_like(self.waiting)

    def record(self, thought: Thought, last: bool) -> None:
        done = self.watch.see(thought).to(self.waiting.device) & self.waiting
        leaving = self.waiting if last else done
        if bool(leaving.any()):
            rows = leaving.nonzero().flatten()
            prediction, answered_at = self.watch.answer(thought)
            answer = (prediction[rows], answered_at[rows])
            self.answers.put(rows, answer, thought.step, done[rows])
            self.finite[rows] = is_finite(thought.features)[rows]
            self.waiting = self.waiting & ~leaving


class _RulesRecorder:
    """All rules at once; ``finished`` gets each batch with the answers of the rules."""

    def __init__(
        self,
        rules: Sequence[Rule],
        steps: int,
        finished: Callable[[Batch, list[_RuleAnswers]], None],
    ) -> None:
        self.rules, self.steps, self.finished = rules, steps, finished

    def start(self, first: int, part: Batch, began: float) -> None:
        self.part, device = part, part.inputs.device
        self.each = [_RuleAnswers(rule, len(part), device) for rule in self.rules]

    def record(self, iteration: Iteration) -> bool:
        for one in self.each:
            one.record(iteration.thought, last=iteration.thought.step == self.steps)
        return not any(bool(one.waiting.any()) for one in self.each)

    def finish(self) -> None:
        self.finished(self.part, self.each)


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
    sums = torch.zeros(len(rules), 4, dtype=torch.int64)

    def add(part: Batch, each: list[_RuleAnswers]) -> None:
        for row, one in zip(sums, each, strict=True):
            answer, finite = one.answers, one.finite
            right = task.solved(answer.prediction, part).to(finite.device) & finite
            row += torch.stack(
                [right.sum(), answer.steps.sum(), answer.met.sum(), (~finite).sum()]
            ).cpu()

    recorder = _RulesRecorder(rules, steps, add)
    run_batches(net, batch, recorder, steps=steps, portion=portion, progress=progress)
    count, one = len(batch), like(net, batch[:1].inputs)
    parts, rows = operations(net, one), []
    for rule, (solved, taken, stopped, broken) in zip(rules, sums.tolist(), strict=True):
        mean = torch.tensor(taken / count, dtype=torch.float64)
        work = float(parts.of(mean, reads_every_answer(rule, net, one)))
        rows.append(TradeOff(rule, solved, count, taken / count, stopped, broken, work))
    return rows


@dataclass(frozen=True)
class Compaction:
    """How far the run in which problems leave the batch differs from the one where all stay."""

    count: int
    answers: int
    """Problems with another answer"""
    stops: int
    """Problems that stop at another iteration"""


def compaction(
    net: Net, batch: Batch, rule: Rule, *, steps: int, portion: int | None = None
) -> Compaction:
    """Run both ways and compare: in float64 nothing differs, in fp32 and bf16 it may.

        >>> compaction(net, batch, StableAnswer(5), steps=60)

    Kernels round differently for batches of different sizes, and iterating can amplify that.
    """
    answers = stops = 0

    def compare(part: Batch, each: list[_RuleAnswers]) -> None:
        nonlocal answers, stops
        whole = each[0].answers
        shrunk = solve(net, like(net, part.inputs), max_steps=steps, rule=rule)
        answers += int((whole.prediction != shrunk.prediction).flatten(1).any(dim=1).sum())
        stops += int((whole.steps != shrunk.steps).sum())

    run_batches(net, batch, _RulesRecorder([rule], steps, compare), steps=steps, portion=portion)
    return Compaction(len(batch), answers, stops)
