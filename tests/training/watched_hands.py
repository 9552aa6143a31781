"""Hands that remember what a pool asked of them."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from iterant.engine import State
from iterant.training.objectives import Segment, StepResult
from iterant.training.unroll import EagerUnroll


@dataclass
class Asked:
    """What the hands were asked to learn from, and what came of it."""

    inputs: Tensor
    targets: Tensor
    steps: int
    state: State
    restart: Tensor
    noise: Tensor | None = None
    learned: StepResult | None = None


class Watched(EagerUnroll):
    """Hands that remember what they were asked; idle ones make up where it leads."""

    idle = False
    turn = 0
    asked: Asked | None = None

    def forward_no_grad(self, inputs: Tensor, state: State | None, steps: int) -> State:
        raise AssertionError("the pool needs no prefix")

    def forward_backward(
        self,
        inputs: Tensor,
        targets: Tensor,
        segment: Segment,
        *,
        state: State | None = None,
        restart: Tensor | None = None,
        keep: int | None = None,
        noise: Tensor | None = None,
    ) -> StepResult:
        assert state is not None
        assert restart is not None
        assert segment.weight == 1
        assert segment.each == ()
        self.asked = Asked(
            inputs.clone(), targets, segment.steps, State(state.features.clone()), restart.clone(),
            noise,
        )  # fmt: skip
        if self.idle:
            self.turn += 1  # so that no two states are ever equal
            thought = torch.rand(
                state.features.shape, generator=torch.Generator().manual_seed(self.turn)
            )
            learned = StepResult(torch.zeros(()), State(thought.double()))
        else:
            learned = super().forward_backward(
                inputs, targets, segment, state=state, restart=restart, noise=noise
            )
        self.asked.learned = learned
        return learned
