"""Iterate until each sample is done, and decode the answers.

    >>> answer = solve(net, batch.inputs, max_steps=1000)
    >>> task.solved(answer.prediction, batch)

`iterate` is the loop underneath, for evaluation: samples that are done leave the batch.

Shapes: B batch, b samples still in the batch, W width, *S space.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import SupportsIndex

import torch
from torch import Tensor

from iterant.engine import Thought, begin, check_inputs, think
from iterant.errors import NetError, UsageError
from iterant.formatting import counted
from iterant.halting import SETTLED, Fixed, Resting, Rule, Watch
from iterant.nets.fast import accelerate, threads
from iterant.nets.protocol import Needs, Net, check_net, depth_of, keep_samples, needs_of
from iterant.tasks.protocol import Task

BUDGET, LAST_LAYER = "budget", "last layer"
"""Reasons to stop other than a rule's: no iterations left, no layers left."""


@dataclass(frozen=True)
class Answer:
    """The answers of a batch, one row per sample.

    >>> answer = iterant.solve(net, x)
    >>> answer.settled, answer.prediction.shape == batch.targets.shape
    (tensor([True, True]), True)
    """

    prediction: Tensor
    """(B, *S) int64, by the network's readout"""
    steps: Tensor
    """(B,) int64: iterations each sample took before it stopped"""
    answered_at: Tensor
    """(B,) int64: the iteration the answer is from (before ``steps`` for `MostConfident`)"""
    stopped_by: tuple[str, ...]
    """Why each sample stopped: "settled", "stable answer", "fixed iterations" or another rule's
    reason where the rule was met; else "budget", or "last layer" for networks of fixed depth"""

    @property
    def settled(self) -> Tensor:
        """(B,) bool: whether the state is at rest or in a cycle that keeps its answer.

        More iterations then give the same answer; see `iterant.halting.Resting`.
        """
        settled = [reason == SETTLED for reason in self.stopped_by]
        return torch.tensor(settled, dtype=torch.bool, device=self.steps.device)

    def __repr__(self) -> str:
        """The number settled and their iterations, in one line."""
        least, most = int(self.steps.min()), int(self.steps.max())
        took = f"{'' if least == most else f'{least} to '}{counted(most, 'iteration')}"
        shape = " × ".join(map(str, self.prediction.shape[1:]))
        answers, settled = counted(len(self.steps), "answer"), int(self.settled.sum())
        return f"Answer({answers} of {shape}: {settled} settled, after {took})"


class AnswerBuffer:
    """The answers of a whole batch, filled in as samples stop."""

    def __init__(self, count: int, device: torch.device) -> None:
        """Room for ``count`` samples."""
        self.prediction = torch.empty(0, dtype=torch.int64, device=device)
        self.steps = torch.zeros(count, dtype=torch.int64, device=device)
        self.answered_at = torch.zeros_like(self.steps)
        self.met = torch.zeros(count, dtype=torch.bool, device=device)

    def put(
        self, watch: Watch, thought: Thought, rows: Tensor, leaving: Tensor, done: Tensor
    ) -> None:
        """Take the answers of the samples that are leaving; ``done``: because the rule is met.

        ``rows`` (b,) are the samples' indices in the whole batch.
        """
        prediction, answered_at = watch.answer(thought)
        if not len(self.prediction):
            self.prediction = prediction.new_zeros(len(self.steps), *prediction.shape[1:])
        here = leaving.nonzero().flatten()
        there = rows[here]
        self.prediction[there], self.answered_at[there] = prediction[here], answered_at[here]
        self.steps[there], self.met[there] = thought.step, done[here]

    def answer(self, net: Net, rule: Rule) -> Answer:
        """All answers, with the reason why each sample stopped."""
        if not len(self.prediction):
            raise NetError("nothing was answered: the network took no iteration")
        depth, reason = depth_of(net), str(getattr(rule, "reason", type(rule).__name__))
        stopped_by = tuple(
            reason if met else LAST_LAYER if step == depth else BUDGET
            for met, step in zip(self.met.tolist(), self.steps.tolist(), strict=True)
        )
        return Answer(self.prediction, self.steps, self.answered_at, stopped_by)


@torch.no_grad()
def solve(
    net: Net,
    inputs: Tensor,
    *,
    max_steps: int = 1000,
    rule: Rule | None = None,
    callback: Callable[[Iteration], None] | None = None,
) -> Answer:
    """Iterate on every problem until the rule is met or ``max_steps`` iterations are done.

        >>> answer = solve(net, batch.inputs)
        >>> task.solved(answer.prediction, batch)
        tensor([True, True])
        >>> answer.steps.shape, answer.settled
        (torch.Size([2]), tensor([True, True]))

    Samples that are done leave the batch, so the cost is the sum of the samples' iterations. The
    default rule is `Resting`: a sample stops when it is settled, that is when its state is at rest
    or in a cycle that keeps its answer. Where ``max_steps`` ends before that, ``settled`` is False.
    Networks of fixed depth run all their layers, or ``max_steps`` of them, and are never settled.
    ``callback`` is called with every `Iteration`.
    """
    check_inputs(net, inputs)
    if not isinstance(max_steps, SupportsIndex) or int(max_steps) < 1:
        raise NetError(f"max_steps must be a whole number of 1 or more, got {max_steps!r}")
    depth = depth_of(net)
    budget = int(max_steps) if depth is None else min(int(max_steps), depth)
    # The default rule copies the features that it keeps; another rule might not.
    fast = accelerate(net, inputs, reuse=rule is None)
    if rule is None:
        rule = Resting() if depth is None else Fixed()
    answers = AnswerBuffer(len(inputs), inputs.device)
    with threads(fast):
        for iteration in iterate(fast, inputs, rule, budget):
            if callback is not None:
                callback(iteration)
            if iteration.any_leaving:
                answers.put(
                    iteration.watch, iteration.thought, iteration.rows, iteration.leaving,
                    iteration.done,
                )  # fmt: skip
    return answers.answer(net, rule)


@dataclass(frozen=True)
class Iteration:
    """One iteration of the samples still in the batch."""

    thought: Thought
    before: Tensor
    """(b, W, *S): the features before the iteration"""
    rows: Tensor
    """(b,) int64: the samples' indices in the whole batch"""
    done: Tensor
    """(b,) bool: whether the rule is met"""
    leaving: Tensor
    """(b,) bool: ``done``, or all when the budget is spent"""
    any_leaving: bool
    """Whether any is leaving; computed once, because reading it waits for the GPU"""
    watch: Watch

    def answer(self) -> tuple[Tensor, Tensor]:
        """Prediction (b, *S) and the step (b,) it is from, if all stopped now."""
        return self.watch.answer(self.thought)


def iterate(net: Net, inputs: Tensor, rule: Rule, budget: int) -> Iterator[Iteration]:
    """Yield every iteration up to the budget; samples for which the rule is met leave the batch.

    >>> cost = sum(len(iteration.rows) for iteration in iterate(net, x, StableAnswer(), 1000))
    """
    if not callable(getattr(rule, "watch", None)):
        raise UsageError(f"a rule is an object such as halting.StableAnswer(30), got {rule!r}")
    watch, state = rule.watch(), begin(net, inputs)
    rows = torch.arange(len(inputs), device=inputs.device)
    while len(rows):
        before = state.features
        for thought in think(net, inputs, steps=budget - state.step, state=state):
            done = watch.see(thought)
            over = thought.step >= budget
            leaving = torch.ones_like(done) if over else done
            any_leaving = over or (not watch.none_done(thought.step) and bool(done.any()))
            if any_leaving:  # a rule may decide on the CPU
                done, leaving = done.to(rows.device), leaving.to(rows.device)
            yield Iteration(thought, before, rows, done, leaving, any_leaving, watch)
            if over:
                return
            if any_leaving:
                break
            before = thought.features
        else:
            raise NetError("the network took no iteration")
        staying = (~done).nonzero().flatten()
        watch.keep(staying)
        rows, inputs, state = rows[staying], inputs[staying], thought.state.rows(staying)
        keep_samples(net, staying, inputs, state.features)


def check_fits(net: Net, task: Task) -> None:
    """Raise NetError where the inputs or classes of a network are not those of the task."""
    check_net(net)
    if isinstance(task, str | type):
        name = task if isinstance(task, str) else task.__name__
        remedy = f"iterant.task({name!r})" if isinstance(task, str) else f"{name}()"
        raise UsageError(f"wanted a task, got {name!r} in its place; give {remedy}")
    spec, needs = task.spec, needs_of(net)
    offered = Needs(spec.dims, spec.channels, spec.classes)
    if needs is not None and needs != offered:
        raise NetError(
            f"this network is for {needs.beside(offered)}, and {spec.name} has "
            f"{offered.beside(needs)}; take a network that was trained on {spec.name}"
        )
