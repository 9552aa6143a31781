"""The loop over iterations.

    >>> for thought in think(net, batch.inputs, steps=30):
    ...     thought.step, thought.prediction

`think` yields one `Thought` per iteration; to stop early, leave the loop. The caller decides about
devices, precision and what to keep; logits are computed only when they are read. Gradients are kept
in training mode or when asked for (``grad=True``); networks from `load` are in evaluation mode.
Training has its own loop (`iterant.training.objectives`): it runs inside CUDA graphs, which leave
no room for checks.

Shapes: B batch, C channels, W width, K classes, *S space.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from typing import SupportsIndex

import torch
from torch import Tensor

from iterant.errors import NetError
from iterant.formatting import counted
from iterant.nets.protocol import Net, check_inputs, depth_of, readout_of


@dataclass(frozen=True)
class State:
    """Features and the number of iterations done, from which a network can go on.

    >>> half = last(think(net, x, steps=20)).state
    >>> last(think(net, x, steps=20, state=half)).step
    40
    """

    features: Tensor
    """(B, W, *S)"""
    step: int = 0
    """Iterations done."""

    def rows(self, which: Tensor) -> State:
        """The state of some samples: indices or a mask."""
        return State(self.features[which], self.step)

    def detached(self) -> State:
        """The same state, detached from the autograd graph."""
        return State(self.features.detach(), self.step)


Intervention = Callable[[State, Tensor], tuple[State, Tensor]]
"""A change of the state or the inputs between two iterations, such as `After`.

It is called before every iteration with the state and the inputs, and returns those of the
iteration: the same objects where nothing changes.
"""


@dataclass(frozen=True)
class Thought:
    """The state after one iteration, and its answer."""

    net: Net
    state: State
    inputs: Tensor
    """(B, C, *S): the problem at this iteration"""
    grad: bool = True
    """Whether gradients flow through the logits too, outside `torch.no_grad`"""

    def __repr__(self) -> str:
        """The network, the iteration and the shape of the features, in one line."""
        shape = tuple(self.features.shape)
        return f"Thought({type(self.net).__name__}, iteration {self.step}: features {shape})"

    @property
    def step(self) -> int:
        """Iterations done; the first thought has step 1."""
        return self.state.step

    @property
    def features(self) -> Tensor:
        """(B, W, *S)"""
        return self.state.features

    @cached_property
    def logits(self) -> Tensor:
        """(B, K, *S), computed when first read."""
        with _grad_mode(self.grad):
            return self.net.answer(self.state.features)

    @cached_property
    def prediction(self) -> Tensor:
        """(B, *S) int64: the answer by the network's readout."""
        return readout_of(self.net).predict(self.logits, self.inputs)


def _grad_mode(keep: bool) -> AbstractContextManager[object]:
    """Keep PyTorch's current mode, or no gradients."""
    return nullcontext() if keep else torch.no_grad()


def check_count(name: str, value: SupportsIndex, least: int) -> int:
    """A number of iterations that a caller gave; numpy integers are allowed."""
    if isinstance(value, bool) or not isinstance(value, SupportsIndex) or int(value) < least:
        raise NetError(f"{name} must be a whole number of {least} or more, got {value!r}")
    return int(value)


def think(
    net: Net,
    inputs: Tensor,
    *,
    steps: int,
    state: State | None = None,
    intervene: Intervention | Sequence[Intervention] = (),
    grad: bool | None = None,
) -> Iterator[Thought]:
    """Iterate ``steps`` times from ``state`` (None: from the start), yielding a thought each.

        >>> four = last(think(net, x, steps=4))
        >>> ten = last(think(net, x, steps=6, state=four.state))    # the same as steps=10 at once
        >>> ten.step
        10

    Args:
        net: a network of `iterant.load`, or any object with its four methods.
        inputs: (N, C, *space) problems, ``batch.inputs``.
        steps: how many iterations.
        state: where to continue, the ``state`` of a thought; None: from the start.
        intervene: called before every iteration; may change the state or the problem.
        grad: whether to record the iterations for gradients, which takes memory for each of them.
            None: if the network is in training mode (``net.train()``), or the inputs or the state
            require gradients; networks from `load` are in evaluation mode. `torch.no_grad` always
            applies.
    """
    check_inputs(net, inputs)
    steps, depth = check_count("steps", steps, least=0), depth_of(net)
    if not isinstance(state, State | None):
        raise NetError(f"state is the state of a thought, thought.state, got {state!r:.80}")
    if state is not None and len(state.features) != len(inputs):
        raise NetError(
            f"the state holds {counted(len(state.features), 'sample')}, the inputs "
            f"{len(inputs)}; give as many inputs as the state has samples"
        )
    done = state.step if state else 0
    if depth is not None and done + steps > depth:
        raise NetError(
            f"this network has {counted(depth, 'iteration')}, asked for iteration "
            f"{done + steps}; ask for at most {depth - done} more"
        )
    interventions = intervene if isinstance(intervene, Sequence) else (intervene,)
    if grad is None:  # as a caller expects: in training mode, or of tensors that require them
        grad = getattr(net, "training", True) or inputs.requires_grad
        grad = grad or (state is not None and state.features.requires_grad)
    with _grad_mode(grad):
        state = state or State(net.start(inputs))
    return iterate_from(net, inputs, state, steps, interventions, grad)


def iterate_from(
    net: Net,
    inputs: Tensor,
    state: State,
    steps: int,
    interventions: Sequence[Intervention] = (),
    grad: bool = False,
) -> Iterator[Thought]:
    """`think` from a state, without its checks: for callers that have made them."""
    memory: Tensor | None = None
    read_inputs: Tensor | None = None
    for _ in range(steps):
        with _grad_mode(grad):  # not around the yield: the mode would be the caller's, too
            for intervention in interventions:
                state, inputs = intervention(state, inputs)
            # By identity: an intervention that changes the problem returns another tensor.
            if inputs is not read_inputs:
                memory, read_inputs = net.read(inputs), inputs
            features = net.step(state.features, memory, state.step)
        state = State(features, state.step + 1)
        yield Thought(net, state, inputs, grad)


def last(thoughts: Iterable[Thought]) -> Thought:
    """The last thought.

    >>> last(think(net, x, steps=30)).step
    30
    """
    final = deque(thoughts, maxlen=1)
    if not final:
        raise NetError("there is no last thought: the iterator was empty; ask for 1 step or more")
    return final[0]


@dataclass(frozen=True)
class After:
    """An intervention that happens once, after ``step`` iterations (0: before the first).

    >>> think(net, x, steps=60, intervene=[After(50, features=torch.zeros_like)])
    """

    step: int
    features: Callable[[Tensor], Tensor] | None = None
    """A function of the features (B, W, *S) that returns new ones, or None."""
    inputs: Callable[[Tensor], Tensor] | None = None
    """A function of the inputs (B, C, *S) that returns new ones, or None."""

    def __post_init__(self) -> None:
        check_count("the step of an intervention", self.step, least=0)

    def __call__(self, state: State, inputs: Tensor) -> tuple[State, Tensor]:
        if state.step != self.step:
            return state, inputs
        if self.features is not None:
            state = State(self.features(state.features), state.step)
        if self.inputs is not None:
            inputs = self.inputs(inputs)
        return state, inputs
