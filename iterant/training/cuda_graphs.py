"""The verbs as captured CUDA graphs: one launch instead of hundreds.

A graph is captured for every number of iterations when it is first needed, the very first after a
run outside the capture in which cuDNN chooses its kernels. All graphs read and write the same few
buffers, so an update is: copy the batch in, replay, read the loss when somebody wants it.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from iterant.engine import State
from iterant.engine import last as last_of
from iterant.nets.deep_thinking import DeepThinking
from iterant.nets.fast.deep_thinking import Fused
from iterant.nets.protocol import Net, depth_of
from iterant.training.objectives import Criterion, Segment, StepResult
from iterant.training.unroll import backward, initial_state, iterate, noisy_segment_loss

# torch leaves its CUDA module untyped.
_CUDA: Any = torch.cuda


@dataclass(frozen=True)
class _Buffers:
    """What every graph reads and writes."""

    inputs: Tensor
    targets: Tensor
    features: Tensor
    restart: Tensor
    noise: Tensor


@dataclass(frozen=True)
class _Captured:
    graph: Any
    loss: Tensor
    trail: list[Tensor]


_Work = Callable[[_Buffers], tuple[Tensor, list[Tensor]]]


class GraphUnroll:
    """The two verbs of `iterant.training.unroll.Unroll`, replayed."""

    def __init__(
        self,
        net: Net,
        module: nn.Module,
        smoothing: float = 0.0,
        scale: Tensor | None = None,
        places: float = 0.0,
    ) -> None:
        """Work on ``net``, whose parameters are those of ``module``."""
        self.net, self.scale = net, scale
        self.criterion = Criterion(smoothing, places)
        self.preparing = 0.0
        """Seconds that went into capturing so far"""
        # Steps of the paper's recurrent networks are all alike; others may ask for their number,
        # and then every number is a graph of its own.
        self._counts = depth_of(net) is not None or not isinstance(net, Fused | DeepThinking)
        self._weights = [weight for weight in module.parameters() if weight.requires_grad]
        for weight in self._weights:
            weight.grad = torch.zeros_like(weight)
        self._graphs: dict[object, _Captured] = {}
        self._pool: Any = None
        self._made: _Buffers | None = None
        self._stream = _CUDA.Stream()
        self._tried: set[object] = set()

    def forward_no_grad(self, inputs: Tensor, state: State | None, steps: int) -> State:
        """Iterate without gradients."""
        buffers = self._buffers(inputs)
        buffers.inputs.copy_(inputs)
        if state is not None and state.features is not buffers.features:
            buffers.features.copy_(state.features)
        start = self._number(state)
        key = ("advance", steps, state is None, start)
        work = partial(self._advance, steps, state is None, start)
        self._replay(key, ("advance", steps > 1), work)
        return State(buffers.features, (0 if state is None else state.step) + steps)

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
        buffers = self._buffers(inputs)
        if noise is not None:
            buffers.noise.copy_(noise)
        buffers.inputs.copy_(inputs)
        buffers.targets.copy_(targets)
        # One graph serves every kind of start: the rows that restart are told by a buffer.
        if state is None:
            buffers.restart.fill_(True)
        else:
            if state.features is not buffers.features:
                buffers.features.copy_(state.features)
            if restart is None:
                buffers.restart.fill_(False)
            else:
                buffers.restart.copy_(restart)
        start = self._number(state)
        key = (segment, keep is None, noise is None, start)
        work = partial(self._learn, segment, keep is not None, noise is not None, start)
        captured = self._replay(key, ("learn", segment.steps > 1), work)
        step = 0 if state is None else state.step
        kept = None if keep is None else State(captured.trail[keep], step + keep)
        return StepResult(captured.loss, State(captured.trail[-1], step + segment.steps), kept)

    def _buffers(self, inputs: Tensor) -> _Buffers:
        """The buffers, made at the first call in the shape of its batch."""
        if self._made is None:
            with torch.no_grad():
                features = self.net.start(inputs)
            shape = (len(inputs), *inputs.shape[2:])
            self._made = _Buffers(
                inputs.clone(),
                torch.zeros(shape, dtype=torch.int64, device=inputs.device),
                features.clone(),
                torch.zeros(len(inputs), dtype=torch.bool, device=inputs.device),
                torch.zeros_like(features),
            )
        return self._made

    def _number(self, state: State | None) -> int:
        """The number of iterations done that the network gets to see."""
        return state.step if state is not None and self._counts else 0

    def _advance(
        self, steps: int, anew: bool, start: int, buffers: _Buffers
    ) -> tuple[Tensor, list[Tensor]]:
        with torch.no_grad():
            state = None if anew else State(buffers.features, start)
            end = last_of(iterate(self.net, buffers.inputs, steps=steps, state=state))
            buffers.features.copy_(end.features)
        return buffers.features.new_zeros(()), []

    def _learn(
        self, segment: Segment, keep: bool, shaken: bool, start: int, buffers: _Buffers
    ) -> tuple[Tensor, list[Tensor]]:
        inputs, targets = buffers.inputs, buffers.targets
        state = initial_state(self.net, inputs, State(buffers.features, start), buffers.restart)
        noise = buffers.noise if shaken else None
        loss, states = noisy_segment_loss(
            self.net, inputs, targets, segment, state, self.criterion, noise
        )
        backward(self.net, loss * segment.weight, self.scale)
        trail = [state.features.detach() for state in states]
        return loss.detach(), trail if keep else trail[-1:]

    def _replay(self, key: object, kind: object, work: _Work) -> _Captured:
        if key not in self._graphs:
            _CUDA.synchronize()
            begun = time.monotonic()
            self._graphs[key] = self._capture(kind, work)
            _CUDA.synchronize()
            self.preparing += time.monotonic() - begun
        captured = self._graphs[key]
        captured.graph.replay()
        return captured

    def _capture(self, kind: object, work: _Work) -> _Captured:
        """Run the first of a kind so that kernels are chosen, then capture; nothing else changes.

        One iteration is a kind of its own: it meets fewer sorts of kernels than several do.
        """
        if self._made is None:
            raise TypeError("nothing was copied in")
        buffers, cuda, side = self._made, _CUDA, self._stream
        gradients = [weight.grad for weight in self._weights if weight.grad is not None]
        before = [gradient.clone() for gradient in gradients]
        at = buffers.features.clone()
        if kind not in self._tried:
            self._tried.add(kind)
            side.wait_stream(cuda.current_stream())
            with cuda.stream(side):
                work(buffers)
            cuda.current_stream().wait_stream(side)
            buffers.features.copy_(at)
        graph = cuda.CUDAGraph()
        with _uncollected(), cuda.graph(graph, pool=self._pool, stream=side):
            loss, trail = work(buffers)
        self._pool = self._pool or graph.pool()
        for gradient, old in zip(gradients, before, strict=True):
            gradient.copy_(old)
        return _Captured(graph, loss, trail)


@contextmanager
def _uncollected() -> Iterator[None]:
    """Collect no garbage meanwhile: freeing another run's graph would spoil a capture."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


class CapturedCall:
    """Work that does the same every time: run a few times as it is, then captured and replayed."""

    def __init__(self, work: Callable[[], None], tries: int = 3) -> None:
        """Capture ``work`` after so many tries, in which it allocates what it keeps."""
        self._work, self._tries = work, tries
        self._graph: Any = None

    def __call__(self) -> None:
        """Do it once more."""
        if self._tries > 0:
            self._tries -= 1
            self._work()
            return
        if self._graph is None:
            graph = _CUDA.CUDAGraph()
            with _uncollected(), _CUDA.graph(graph):
                self._work()
            self._graph = graph
        self._graph.replay()
