"""Unrolling a network in training, iteration by iteration.

    >>> state = unroll.forward_no_grad(inputs, None, steps=n)
    >>> result = unroll.forward_backward(inputs, targets, Segment(k), state=state)

`EagerUnroll` serves the CPU and user-defined networks, and is the reference for the faster ones:
CUDA graphs in `iterant.training.cuda_graphs`, active cells of a local rule in
`iterant.training.sparse`.

Shapes: B batch, W width, *S space.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

from iterant.engine import State, Thought, last, think
from iterant.nets.fast.deep_thinking import Fused
from iterant.nets.fast.hopper import FusedStrings
from iterant.nets.protocol import Net, readout_of
from iterant.training.objectives import Criterion, Segment, StepResult, segment_loss


class EagerUnroll:
    """The operations of `Unroll`, one iteration after the other."""

    def __init__(
        self, net: Net, smoothing: float = 0.0, scale: Tensor | None = None, places: float = 0.0
    ) -> None:
        """``smoothing`` and ``places``: see `Criterion`; ``scale``: the loss scale of fp16."""
        self.net, self.smoothing, self.scale = net, smoothing, scale
        self.criterion = Criterion(smoothing, places)

    def forward_no_grad(self, inputs: Tensor, state: State | None, steps: int) -> State:
        """Iterate without gradients."""
        with torch.no_grad():
            return last(iterate(self.net, inputs, steps=steps, state=state)).state

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
        """Iterate with gradients and back-propagate the segment's loss."""
        start = initial_state(self.net, inputs, state, restart)
        loss, states = noisy_segment_loss(
            self.net, inputs, targets, segment, start, self.criterion, noise
        )
        backward(self.net, loss * segment.weight, self.scale)
        kept = None if keep is None else states[keep].detached()
        return StepResult(loss.detach(), states[-1].detached(), kept)


def iterate(
    net: Net, inputs: Tensor, *, steps: int, state: State | None = None
) -> Iterable[Thought]:
    """As `iterant.think`; a fused 1-D network computes the whole segment in one call.

    Without gradients such a network returns the last thought only.
    """
    if not isinstance(net, FusedStrings) or steps < 1:
        return think(net, inputs, steps=steps, state=state)
    net.check(inputs)
    start = state or State(net.start(inputs))
    path = net.segment(start.features, net.read(inputs), steps, start.step)
    first = start.step + (steps if not torch.is_grad_enabled() else 1)
    return [Thought(net, State(phi, first + i), inputs) for i, phi in enumerate(path)]


def initial_state(net: Net, inputs: Tensor, state: State | None, restart: Tensor | None) -> State:
    """The state a segment begins with: the projection for all samples, the marked ones, or none."""
    if state is None:
        return State(net.start(inputs))
    if restart is None:
        return state
    rows = restart.view(-1, *[1] * (state.features.dim() - 1))
    return State(torch.where(rows, net.start(inputs), state.features), state.step)


class NoisyNet:
    """A network with fixed noise added to its features before every iteration."""

    def __init__(self, net: Net, noise: Tensor) -> None:
        """``noise``: (B, W, *S)."""
        self.net, self.noise = net, noise
        self.read, self.start, self.answer = net.read, net.start, net.answer
        self.readout = readout_of(net)

    def step(self, features: Tensor, memory: Tensor | None, index: int) -> Tensor:
        """One iteration."""
        return self.net.step(features + self.noise, memory, index)


def noisy_segment_loss(
    net: Net,
    inputs: Tensor,
    targets: Tensor,
    segment: Segment,
    start: State,
    criterion: Criterion,
    noise: Tensor | None,
) -> tuple[Tensor, list[State]]:
    """Iterate a segment, with noise if given; its loss and states."""
    noisy = net if noise is None else NoisyNet(net, noise)
    thoughts = iterate(noisy, inputs, steps=segment.steps, state=start)
    return segment_loss(net, thoughts, inputs, targets, segment, start, criterion)


def backward(net: Net, loss: Tensor, scale: Tensor | None) -> None:
    """Add the gradients of a loss, times the loss scale, to the parameters."""
    torch.autograd.backward(loss if scale is None else loss * scale)
    if isinstance(net, Fused):
        net.flush()
