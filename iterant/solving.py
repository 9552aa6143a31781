"""Think until each sample is done, and read out the answers.

>>> answer = solve(net, batch.inputs, max_steps=1000)
>>> task.solved(answer.prediction, batch)
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from iterant.engine import State, Thought, begin, think
from iterant.errors import NetError
from iterant.halting import Rule, StableAnswer, Watch
from iterant.nets.protocol import Net, depth_of


@dataclass(frozen=True)
class Answer:
    """What a network answered, a row a sample."""

    prediction: Tensor
    """(B, *S) int64, by the network's readout"""
    steps: Tensor
    """(B,) int64: iterations each sample took before it stopped"""
    settled: Tensor
    """(B,) bool: whether the rule was met within the budget"""
    answered_at: Tensor
    """(B,) int64: the iteration whose answer it is (before ``steps`` for the most confident)"""


class _Gathered:
    """Answers as they come in, one row a sample of the whole batch."""

    def __init__(self, count: int, device: torch.device) -> None:
        self.prediction: Tensor | None = None
        self.steps = torch.zeros(count, dtype=torch.int64, device=device)
        self.answered_at = torch.zeros_like(self.steps)
        self.settled = torch.zeros(count, dtype=torch.bool, device=device)

    def put(
        self, rows: Tensor, answer: tuple[Tensor, Tensor], step: int, settled: Tensor | bool
    ) -> None:
        prediction, answered_at = answer
        if self.prediction is None:
            shape = (len(self.steps), *prediction.shape[1:])
            self.prediction = prediction.new_zeros(shape)
        self.prediction[rows] = prediction
        self.answered_at[rows] = answered_at
        self.steps[rows] = step
        self.settled[rows] = settled

    def answer(self) -> Answer:
        if self.prediction is None:
            raise NetError("nothing was answered: the network took no iteration")
        return Answer(self.prediction, self.steps, self.settled, self.answered_at)


@torch.no_grad()
def solve(net: Net, inputs: Tensor, *, max_steps: int = 1000, rule: Rule | None = None) -> Answer:
    """Think about every problem until the rule is met or ``max_steps`` iterations are done.

    Samples that are done leave the batch, so the cost is the sum of the samples' iterations. The
    default rule stops a sample when its answer has not changed for 30 iterations. Networks of
    fixed depth take at most that depth.
    """
    if max_steps < 1:
        raise NetError(f"max_steps must be 1 or more, got {max_steps}")
    depth = depth_of(net)
    budget = max_steps if depth is None else min(max_steps, depth)
    watch = (StableAnswer() if rule is None else rule).watch()
    state, here = begin(net, inputs), inputs
    rows = torch.arange(len(inputs), device=inputs.device)
    gathered = _Gathered(len(inputs), inputs.device)
    while len(rows):
        thought, done = _until_some_are_done(net, here, state, budget, watch)
        out_of_budget = thought.step >= budget
        leaving = torch.ones_like(done) if out_of_budget else done
        prediction, answered_at = watch.answer(thought)
        gathered.put(
            rows[leaving], (prediction[leaving], answered_at[leaving]), thought.step, done[leaving]
        )
        staying = ~leaving
        watch.keep(staying)
        rows, here, state = rows[staying], here[staying], thought.state.rows(staying)
    return gathered.answer()


def _until_some_are_done(
    net: Net, inputs: Tensor, state: State, budget: int, watch: Watch
) -> tuple[Thought, Tensor]:
    """Think on until a sample is done or the budget is spent."""
    for thought in think(net, inputs, steps=budget - state.step, state=state):
        done = watch.see(thought)
        if bool(done.any()) or thought.step >= budget:
            return thought, done
    raise NetError("the network took no iteration")
