"""What an objective does with a network: advance without gradients, learn with them.

    >>> state = hands.advance(inputs, None, steps=n)
    >>> learned = hands.learn(inputs, targets, steps=k, state=state, weight=alpha)

An objective says what is done in these two verbs; how it is done fast is the hands' own affair:
`EagerUnroll` here, captured CUDA graphs in `iterant.training.cuda_graphs`. Gradients add up on the
network's parameters until the update is made.

Thinking as training does it: a stretch of iterations at a time where a network can.

Shapes: B batch, C channels, W width, K classes, *S space.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor
from torch.nn import functional

from iterant.engine import State, Thought, think
from iterant.engine import last as last_of
from iterant.nets.fast.deep_thinking import Fused
from iterant.nets.fast.strings import FusedStrings
from iterant.nets.protocol import Net, readout_of


def iterate(
    net: Net, inputs: Tensor, *, steps: int, state: State | None = None
) -> Iterable[Thought]:
    """As `iterant.engine.think`; without gradients some networks give the last thought only."""
    if not isinstance(net, FusedStrings) or steps < 1:
        return think(net, inputs, steps=steps, state=state)
    net.check(inputs)
    first = state or State(net.start(inputs))
    made = net.segment(first.features, net.read(inputs), steps, first.step)
    before = first.step + (steps if not torch.is_grad_enabled() else 1)
    return [Thought(net, State(phi, before + i), inputs) for i, phi in enumerate(made)]


@dataclass(frozen=True)
class StepResult:
    """What a stretch of learning leaves behind; nothing here carries gradients."""

    loss: Tensor
    """The loss without its weight, a number"""
    end: State
    """Where thinking ended"""
    kept: State | None = None
    """Where it stood after ``keep`` iterations, if asked"""


@dataclass(frozen=True)
class Segment:
    """How to learn over a number of iterations."""

    steps: int
    weight: float = 1.0
    """What the loss is multiplied by before its gradients are taken"""
    each: tuple[float, ...] = ()
    """A loss after every iteration with these weights; empty: one loss after the last"""
    settle: float = 0.0
    """What the mean absolute change of the features an iteration adds to the loss, times this"""


class Unroll(Protocol):
    """The two verbs, and the network they are about."""

    net: Net

    def forward_no_grad(self, inputs: Tensor, state: State | None, steps: int) -> State:
        """Iterate without gradients; None starts from the projection."""

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
        """Iterate with gradients, add those of the loss to the parameters.

        Rows of the state that ``restart`` (B,) marks begin at the projection instead, which then
        learns too. ``keep`` asks for the features after so many iterations. ``noise``, (B, W, *S),
        is added to the features before every iteration.
        """


@dataclass(frozen=True)
class Criterion:
    """What a loss asks of logits."""

    smoothing: float = 0.0
    """Of labels"""
    places: float = 0.0
    """Share of the question at which positions class 1 is; the rest: which class each position has

    Where few of many positions are of class 1, as the two squares of a move, the second question
    is nearly answered by "nowhere", and the first has to be learned from what is left.
    """

    def __call__(self, net: Net, logits: Tensor, inputs: Tensor, targets: Tensor) -> Tensor:
        """Cross-entropy: the mean over a problem's counted positions, then over problems."""
        exact = logits if logits.dtype == torch.float64 else logits.float()
        counted = readout_of(net).counted(inputs)
        loss: Tensor | float = 0.0
        if self.places < 1:
            loss = (1 - self.places) * self._classes(exact, targets, counted)
        if self.places > 0:
            loss = loss + self.places * self._places(exact, targets, counted)
        return torch.as_tensor(loss)

    def _classes(self, logits: Tensor, targets: Tensor, counted: Tensor | None) -> Tensor:
        losses = functional.cross_entropy(
            logits, targets, reduction="none", label_smoothing=self.smoothing
        ).flatten(1)
        if counted is None:
            return losses.mean()
        weights = counted.flatten(1).to(losses.dtype)
        return ((losses * weights).sum(dim=1) / weights.sum(dim=1).clamp_min(1)).mean()

    def _places(self, logits: Tensor, targets: Tensor, counted: Tensor | None) -> Tensor:
        """Cross-entropy over positions: class 1 is at each of its positions with equal chance."""
        scores, there = logits[:, 1].flatten(1), (targets == 1).flatten(1).to(logits.dtype)
        if counted is not None:
            scores = scores.masked_fill(~counted.flatten(1), _NOWHERE)
        share = there / there.sum(dim=1, keepdim=True).clamp_min(1)
        share = (1 - self.smoothing) * share + self.smoothing / share.shape[1]
        return -(scores.log_softmax(dim=1) * share).sum(dim=1).mean()


_NOWHERE = -1e4
"""The score of positions that do not count."""


@torch.no_grad()
def empty_features(net: Net, inputs: Tensor, count: int) -> Tensor:
    """(count, W, *S) zeros: the features of so many problems before anything was thought."""
    features = net.start(inputs[:1])
    return features.new_zeros(count, *features.shape[1:])


def initial_state(net: Net, inputs: Tensor, state: State | None, restart: Tensor | None) -> State:
    """The state to learn from: the projection for all, for the marked rows, or for none."""
    if state is None:
        return State(net.start(inputs))
    if restart is None:
        return state
    rows = restart.view(-1, *[1] * (state.features.dim() - 1))
    return State(torch.where(rows, net.start(inputs), state.features), state.step)


class NoisyNet:
    """A network whose features are shaken before every iteration."""

    def __init__(self, net: Net, noise: Tensor) -> None:
        """Add this to the features of that network."""
        self.net, self.noise = net, noise
        self.read, self.start, self.answer = net.read, net.start, net.answer
        self.readout = readout_of(net)

    def step(self, features: Tensor, memory: Tensor | None, index: int) -> Tensor:
        """One iteration."""
        return self.net.step(features + self.noise, memory, index)


def segment_loss(
    net: Net,
    inputs: Tensor,
    targets: Tensor,
    segment: Segment,
    state: State,
    criterion: Criterion,
    noise: Tensor | None = None,
) -> tuple[Tensor, list[State]]:
    """The loss of a stretch, with its graph, and every state on the way, the start first."""
    states, losses, alike = [state], [], len(set(segment.each)) == 1
    walker = net if noise is None else NoisyNet(net, noise)
    for thought in iterate(walker, inputs, steps=segment.steps, state=state):
        states.append(thought.state)
        if segment.each and not alike:
            share = segment.each[len(states) - 2]
            losses.append(share * criterion(net, thought.logits, inputs, targets))
    if losses:
        loss = torch.stack(losses).sum()
    elif alike:
        # Decoding all iterations at once takes a few large kernels instead of many small ones.
        count = len(states) - 1
        logits = net.answer(torch.cat([thought.features for thought in states[1:]]))
        again = [part.repeat(count, *[1] * (part.dim() - 1)) for part in (inputs, targets)]
        loss = sum(segment.each) * criterion(net, logits, again[0], again[1])
    else:
        final = last_of(think(net, inputs, steps=0, state=states[-1]))
        loss = criterion(net, final.logits, inputs, targets)
    if segment.settle:
        loss = loss + segment.settle * mean_change(states)
    return loss, states


def mean_change(states: Sequence[State]) -> Tensor:
    """The mean absolute change of the features from one of these states to the next."""
    path = torch.stack([state.features for state in states])
    return (path[1:] - path[:-1]).abs().mean()


def backward(net: Net, loss: Tensor, scale: Tensor | None) -> None:
    """Add the gradients of a loss to the parameters, times a scale if there is one."""
    torch.autograd.backward(loss if scale is None else loss * scale)
    if isinstance(net, Fused):
        net.flush()


class EagerUnroll:
    """The verbs, step by step: the CPU, networks of users, and the measure of the fast ones."""

    def __init__(
        self, net: Net, smoothing: float = 0.0, scale: Tensor | None = None, places: float = 0.0
    ) -> None:
        """Work on this network; ``smoothing`` of labels, ``scale`` of the loss's gradients."""
        self.net, self.smoothing, self.scale = net, smoothing, scale
        self.criterion = Criterion(smoothing, places)

    def forward_no_grad(self, inputs: Tensor, state: State | None, steps: int) -> State:
        """Iterate without gradients."""
        with torch.no_grad():
            return last_of(iterate(self.net, inputs, steps=steps, state=state)).state

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
        """Iterate with gradients, add those of the loss to the parameters."""
        first = initial_state(self.net, inputs, state, restart)
        loss, states = segment_loss(
            self.net, inputs, targets, segment, first, self.criterion, noise
        )
        backward(self.net, loss * segment.weight, self.scale)
        kept = None if keep is None else states[keep].detached()
        return StepResult(loss.detach(), states[-1].detached(), kept)
