"""What halting rules buy: accuracy against iterations, for many rules in one run.

>>> for bargain in trade(net, task, batch, steps=1000):
...     bargain.rule, bargain.accuracy, bargain.iterations

All rules watch the same thoughts, and the batch is not compacted, so that this is also the second
way by which `compaction` finds how many answers change when problems leave the batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from iterant.engine import think
from iterant.errors import UsageError
from iterant.evaluation.cost import looks, operations
from iterant.evaluation.curve import wilson
from iterant.evaluation.evaluator import Progress, budget_of, is_finite, like, split_batch
from iterant.halting import Fixed, MostConfident, Resting, Rule, StableAnswer, Watch, reason_of
from iterant.nets.fast import fused
from iterant.nets.protocol import Net
from iterant.solving import Answer, AnswerBuffer, solve
from iterant.solving.solver import check_fits
from iterant.tasks.protocol import Batch, Task

RULES: tuple[Rule, ...] = (
    Fixed(),
    MostConfident(),
    *(StableAnswer(patience) for patience in (1, 2, 5, 10, 20, 30, 50)),
    *(Resting(tolerance) for tolerance in (1e-1, 1e-2, 1e-3, 1e-4)),
)
"""Rules from hasty to patient, and the two that spend the whole budget."""


@dataclass(frozen=True)
class TradeOff:
    """What one rule gives and what it costs."""

    rule: Rule
    solved: int
    count: int
    iterations: float
    """Mean over problems of the iterations taken"""
    stopped: int
    """Problems for which the rule was met within the budget"""
    broken: int
    """Problems whose features were not finite when they stopped; never solved"""
    work: float
    """Mean floating-point operations a problem"""

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


class _Listening:
    """One rule on a batch that keeps its size."""

    def __init__(self, rule: Rule, inputs: Tensor) -> None:
        self.watch: Watch = rule.watch()
        self.gathering = AnswerBuffer(len(inputs), inputs.device)
        self.waiting = torch.ones(len(inputs), dtype=torch.bool, device=inputs.device)
        self.finite = torch.ones_like(self.waiting)


@torch.no_grad()
def answers(
    net: Net,
    inputs: Tensor,
    rules: Sequence[Rule],
    *,
    steps: int,
    progress: Progress | None = None,
) -> list[tuple[Answer, Tensor]]:
    """Every rule's answers from one run, and (B,) whether features were finite at each stop.

        >>> [(answer, finite)] = answers(net, x, [StableAnswer(5)], steps=60)

    They are those of `iterant.solving.solve` with that rule, without compaction.
    """
    listening = [_Listening(rule, inputs) for rule in rules]
    for thought in think(net, inputs, steps=steps):
        for one in listening:
            done = one.watch.see(thought) & one.waiting
            leaving = one.waiting if thought.step == steps else done
            if bool(leaving.any()):
                prediction, answered_at = one.watch.answer(thought)
                rows = leaving.nonzero()[:, 0]
                answer = (prediction[rows], answered_at[rows])
                one.gathering.put(rows, answer, thought.step, done[rows])
                one.finite[rows] = is_finite(thought.features)[rows]
                one.waiting = one.waiting & ~leaving
        if progress is not None:
            progress(thought.step, steps)
        if not any(bool(one.waiting.any()) for one in listening):
            break
    return [
        (one.gathering.answer(net, rule), one.finite)
        for rule, one in zip(rules, listening, strict=True)
    ]


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
    sums, fast = torch.zeros(len(rules), 4, dtype=torch.int64), fused(net)
    for first, part in split_batch(batch, portion):

        def moved(step: int, of: int, first: int = first, size: int = len(part)) -> None:
            if progress is not None:
                progress(first * of + step * size, len(batch) * of)

        found = answers(fast, like(net, part.inputs), rules, steps=steps, progress=moved)
        for place, (answer, finite) in enumerate(found):
            fine = finite.cpu()
            right = task.solved(answer.prediction.cpu(), part).cpu() & fine
            stopped = sum(reason == reason_of(rules[place]) for reason in answer.stopped_by)
            taken = answer.steps.sum().cpu()
            sums[place] += torch.stack([right.sum(), taken, torch.tensor(stopped), (~fine).sum()])
    count, one = len(batch), like(net, batch[:1].inputs)
    parts, made = operations(net, one), []
    for rule, (solved, taken, stopped, broken) in zip(rules, sums.tolist(), strict=True):
        work = parts.of(torch.tensor(taken / count, dtype=torch.float64), looks(rule, net, one))
        made.append(TradeOff(rule, solved, count, taken / count, stopped, broken, float(work)))
    return made


@dataclass(frozen=True)
class Compaction:
    """How far the run in which problems leave the batch differs from the one where all stay."""

    count: int
    answers: int
    """Problems that are answered differently"""
    stops: int
    """Problems that stop at another iteration"""


def compaction(
    net: Net, batch: Batch, rule: Rule, *, steps: int, portion: int | None = None
) -> Compaction:
    """Think both ways and compare: in float64 nothing differs, in fp32 and bf16 it may.

        >>> compaction(net, batch, StableAnswer(5), steps=60)

    Kernels round differently for batches of different sizes, and thinking can amplify that.
    """
    differing, moved, fast = 0, 0, fused(net)
    for _, part in split_batch(batch, portion):
        inputs = like(net, part.inputs)
        ((whole, _),) = answers(fast, inputs, [rule], steps=steps)
        shrunk = solve(fast, inputs, max_steps=steps, rule=rule)
        differing += int((whole.prediction != shrunk.prediction).flatten(1).any(dim=1).sum())
        moved += int((whole.steps != shrunk.steps).sum())
    return Compaction(len(batch), differing, moved)
