"""Iterate on tensors until each problem is done, and decode the answers.

    >>> answer = solve(net, batch.inputs, max_steps=1000)
    >>> task.solved(answer.prediction, batch)

`iterate_until_done` is the loop underneath, for evaluation too.

Shapes: B batch, b samples still in the batch, W width, *S space.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from iterant import registry
from iterant.engine import State, Thought, check_count, iterate_from
from iterant.errors import NetError, UsageError
from iterant.formatting import counted
from iterant.halting import SETTLED, Fixed, Resting, Rule, RuleState
from iterant.nets.fast import accelerate, threads
from iterant.nets.protocol import (
    Needs,
    Net,
    check_inputs,
    check_net,
    depth_of,
    needs_of,
    on_device,
    previous_features,
    select_samples,
)
from iterant.tasks.protocol import Task

MAX_STEPS = 1000
"""Default limit on the iterations of networks that are not feed-forward."""
BUDGET, LAST_LAYER = "budget", "last layer"
"""Reasons to stop other than a rule's: no iterations left, no layers left."""


@dataclass(frozen=True)
class Answer:
    """The answers of a batch, one row per sample."""

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

    def to(self, device: torch.device | str) -> Answer:
        """The same answers on another device."""
        steps, answered_at = self.steps.to(device), self.answered_at.to(device)
        return Answer(self.prediction.to(device), steps, answered_at, self.stopped_by)

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
        self.prediction = torch.empty(0, dtype=torch.int64, device=device)
        self.steps = torch.zeros(count, dtype=torch.int64, device=device)
        self.answered_at = torch.zeros_like(self.steps)
        self.met = torch.zeros(count, dtype=torch.bool, device=device)
        """Whether the rule was met, not only the budget spent"""

    def put(self, iteration: Iteration) -> None:
        """Take the answers of the samples that are leaving."""
        prediction, answered_at = iteration.answer()
        if not len(self.prediction):
            self.prediction = prediction.new_zeros(len(self.steps), *prediction.shape[1:])
        source = iteration.leaving.nonzero().flatten()
        target = iteration.rows[source]
        self.prediction[target], self.answered_at[target] = prediction[source], answered_at[source]
        self.steps[target], self.met[target] = iteration.thought.step, iteration.done[source]

    def answer(self, net: Net, rule: Rule) -> Answer:
        """All answers, with the reason why each sample stopped."""
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
    max_steps: int = MAX_STEPS,
    rule: Rule | None = None,
    device: str | torch.device | None = None,
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

    Args:
        net: a network of `iterant.load`, or any object with its four methods.
        inputs: (N, C, *space) problems, ``batch.inputs``.
        max_steps: limit on the iterations of each problem.
        rule: when to stop, one of `iterant.halting`; None: `Resting`.
        callback: called with every `Iteration`. One with a true attribute ``copies`` copies the
            features that it keeps; for others every iteration has its own, which takes longer.
        device: where to compute, on a copy of the network if that is elsewhere; None: where the
            network is. The answer is on the device of the inputs.
    """
    if device is not None and isinstance(inputs, Tensor):
        net, moved = on_device(net, device), inputs.to(registry.device(device))
        answer = solve(net, moved, max_steps=max_steps, rule=rule, callback=callback)
        return answer.to(inputs.device)
    check_inputs(net, inputs)
    budget, depth = check_count("max_steps", max_steps, least=1), depth_of(net)
    budget = budget if depth is None else min(budget, depth)
    reuse = callback is None or getattr(callback, "copies", False)
    fast = accelerate(net, inputs, reuse=reuse)
    if rule is None:
        rule = Resting() if depth is None else Fixed()
    answers = AnswerBuffer(len(inputs), inputs.device)
    with threads(fast):
        for iteration in iterate_until_done(fast, inputs, rule, budget):
            if callback is not None:
                callback(iteration)
            if iteration.any_leaving:
                answers.put(iteration)
    return answers.answer(net, rule)


@dataclass(frozen=True)
class Iteration:
    """One iteration of the samples still in the batch."""

    thought: Thought
    _before: Tensor
    rows: Tensor
    """(b,) int64: the samples' indices in the whole batch"""
    done: Tensor
    """(b,) bool: whether the rule is met"""
    leaving: Tensor
    """(b,) bool: ``done``, or all when the budget is spent"""
    any_leaving: bool
    """Whether any is leaving; computed once, because reading it waits for the GPU"""
    rule_state: RuleState

    @property
    def before(self) -> Tensor:
        """(b, W, *S): the features before the iteration."""
        return previous_features(self.thought.net, self._before)

    def answer(self) -> tuple[Tensor, Tensor]:
        """Prediction (b, *S) and the step (b,) it is from, if all stopped now."""
        return self.rule_state.answer(self.thought)


def iterate_until_done(net: Net, inputs: Tensor, rule: Rule, budget: int) -> Iterator[Iteration]:
    """Yield every iteration up to the budget; samples for which the rule is met leave the batch.

        >>> iterations = iterate_until_done(net, x, StableAnswer(), budget=1000)
        >>> cost = sum(len(iteration.rows) for iteration in iterations)

    No gradients are kept. `check_inputs` is up to the caller.
    """
    if not callable(getattr(rule, "start", None)):
        raise UsageError(f"a rule is an object such as halting.StableAnswer(30), got {rule!r}")
    with torch.no_grad():
        rule_state, state = rule.start(), State(net.start(inputs))
    rows = torch.arange(len(inputs), device=inputs.device)
    while len(rows):
        before, nobody = state.features, torch.zeros_like(rows, dtype=torch.bool)
        for thought in iterate_from(net, inputs, state, budget - state.step):
            met, over = rule_state.update(thought), thought.step >= budget
            any_leaving = over or (met is not None and bool(met.any()))
            # A rule may decide on the CPU.
            done = met.to(rows.device) if any_leaving and met is not None else nobody
            leaving = ~nobody if over else done
            yield Iteration(thought, before, rows, done, leaving, any_leaving, rule_state)
            if over:
                return
            if any_leaving:
                break
            before = thought.features
        staying = (~done).nonzero().flatten()
        rule_state.select(staying)
        rows, inputs, state = rows[staying], inputs[staying], thought.state.rows(staying)
        select_samples(net, staying, inputs, state.features)


def check_fits(net: Net, task: Task) -> None:
    """Raise NetError if the inputs or classes of a network are not those of the task."""
    check_net(net)
    if isinstance(task, str | type):
        raise UsageError(f'wanted a task, got {task!r}; give iterant.task("mazes") or Mine()')
    spec, needs = task.spec, needs_of(net)
    offered = Needs(spec.dims, spec.channels, spec.classes)
    if needs is not None and needs != offered:
        raise NetError(
            f"this network is for {needs}, and {spec.name} has {offered}; "
            f"take a network that was trained on {spec.name}"
        )
