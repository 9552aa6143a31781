"""Unrolling a network in training: iterate, take the loss, back-propagate.

    >>> state = unroll.forward_no_grad(inputs, None, steps=n)
    >>> result = unroll.forward_backward(inputs, targets, Segment(k), state=state)

`Unroll` serves every network. `SparseUnroll` trains a local rule on its open cells alone, several
times faster on a CPU, since most of a maze is wall; CUDA graphs are in
`iterant.training.cuda_graphs`.

Shapes: B batch, W width, K classes, *S space, N open cells.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from iterant.engine import State, Thought, begin, last, think
from iterant.nets.fast.gradients import CellPath, unroll_cells
from iterant.nets.protocol import Net
from iterant.training.objectives import Criterion, Segment, segment_loss


@dataclass(frozen=True)
class StepResult:
    """The result of a segment, detached."""

    loss: Tensor
    """The loss without the segment's weight, a scalar"""
    states: list[State]
    """The state after the last iteration, or all states; see `Segment.path`"""


class Unroll:
    """Runs a network's iterations for an objective; gradients add up on its parameters."""

    def __init__(
        self, net: Net, criterion: Criterion | None = None, scale: Tensor | None = None
    ) -> None:
        """``scale``: the loss scale of fp16."""
        self.net, self.criterion, self.scale = net, criterion or Criterion(), scale

    def forward_no_grad(self, inputs: Tensor, state: State | None, steps: int) -> State:
        """Iterate without gradients; None starts from the projection."""
        with torch.no_grad():
            return last(run_segment(self.net, inputs, steps=steps, state=state)).state

    def forward_backward(
        self,
        inputs: Tensor,
        targets: Tensor,
        segment: Segment,
        *,
        state: State | None = None,
        restart: Tensor | None = None,
        noise: Tensor | None = None,
    ) -> StepResult:
        """Iterate with gradients and back-propagate the segment's loss.

        Samples that ``restart`` (B,) marks begin at the projection instead of ``state``, and train
        it. ``noise`` (B, W, *S) is added to the features before every iteration.
        """
        start = state or State(self.net.start(inputs))
        if state is not None and restart is not None:
            rows = restart.view(-1, *[1] * (state.features.dim() - 1))
            start = State(torch.where(rows, self.net.start(inputs), state.features), state.step)
        loss, states = self._loss(inputs, targets, segment, start, noise)
        weighted = loss * segment.weight
        torch.autograd.backward(weighted if self.scale is None else weighted * self.scale)
        if callable(
            flush := getattr(self.net, "flush", None)
        ):  # a fast form adds its gradients here
            flush()
        return StepResult(loss.detach(), [state.detached() for state in states])

    def _loss(
        self,
        inputs: Tensor,
        targets: Tensor,
        segment: Segment,
        start: State,
        noise: Tensor | None,
    ) -> tuple[Tensor, list[State]]:
        """The loss of a segment, with its graph, and the states to return."""
        thoughts = run_segment(self.net, inputs, steps=segment.steps, state=start, noise=noise)
        states = [start, *(thought.state for thought in thoughts)]
        loss = segment_loss(self.net, states, inputs, targets, segment, self.criterion)
        return loss, states if segment.path else states[-1:]


def run_segment(
    net: Net,
    inputs: Tensor,
    *,
    steps: int,
    state: State | None = None,
    noise: Tensor | None = None,
) -> Iterable[Thought]:
    """As `iterant.think`; a fast form may compute the whole segment in one call.

    Without gradients such a form returns the last thought only.
    """
    if noise is not None:
        return think(net, inputs, steps=steps, state=state, intervene=_AddNoise(noise))
    segment: Any = getattr(net, "segment", None)
    if segment is None or steps < 1:
        return think(net, inputs, steps=steps, state=state)
    start = state or begin(net, inputs)
    path = segment(start.features, net.read(inputs), steps, start.step)
    first = start.step + (steps if not torch.is_grad_enabled() else 1)
    return [Thought(net, State(phi, first + i), inputs) for i, phi in enumerate(path)]


@dataclass(frozen=True)
class _AddNoise:
    """An intervention: the same noise before every iteration."""

    noise: Tensor  # (B, W, *S)

    def __call__(self, state: State, inputs: Tensor) -> tuple[State, Tensor]:
        return State(state.features + self.noise, state.step), inputs


class SparseUnroll(Unroll):
    """Trains a local rule on its open cells only.

    Losses, gradients and states are those of `Unroll` up to rounding: walls stay zero, whatever
    noise or corruption a pool adds. Only the penalty on change (``settle``) differs where walls
    were corrupted, since that corruption vanishes in one iteration.
    """

    def _loss(
        self,
        inputs: Tensor,
        targets: Tensor,
        segment: Segment,
        start: State,
        noise: Tensor | None,
    ) -> tuple[Tensor, list[State]]:
        net: Any = self.net
        # The penalty on change counts messages to walls, which only the path of cells computes.
        unroll = CellPath if segment.settle else unroll_cells
        path = unroll(net, inputs, start.features, segment.steps, noise)
        # Without weights per iteration, only the last has a loss.
        by_step = segment.weights or (*[0.0] * (segment.steps - 1), 1.0)
        weights = {iteration: weight for iteration, weight in enumerate(by_step, 1) if weight}
        logits = path.logits(list(weights))  # (iterations, N, K)
        cell_targets = self.criterion.cell_targets(net, inputs, targets)[path.cells]  # (N, K)
        losses = self.criterion.by_cell(logits, cell_targets)  # (iterations,)
        loss = (losses * losses.new_tensor(list(weights.values()))).sum()
        if isinstance(path, CellPath) and segment.settle:
            scale = segment.steps * start.features.numel()
            loss = loss + segment.settle * path.total_change() / scale
        iterations = range(1, segment.steps + 1) if segment.path else [segment.steps]
        states = [State(path.features(i), start.step + i) for i in iterations]
        return loss, [start, *states] if segment.path else states
