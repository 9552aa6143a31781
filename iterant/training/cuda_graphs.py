"""Unrolling by CUDA graphs: one launch for a segment instead of hundreds.

A graph is captured the first time a number of iterations is needed. All graphs share a few input
and output buffers, so a step is: copy the batch in, replay, read the loss when it is needed.
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
    """Tensors that every graph reads and writes."""

    inputs: Tensor  # (B, C, *S)
    targets: Tensor  # (B, *S)
    features: Tensor  # (B, W, *S)
    restart: Tensor  # (B,) bool
    noise: Tensor  # (B, W, *S)


@dataclass(frozen=True)
class _Captured:
    graph: Any
    loss: Tensor
    path: list[Tensor]
    """Features after every iteration of the segment, or after the last only"""


_Work = Callable[[_Buffers], tuple[Tensor, list[Tensor]]]


class GraphUnroll:
    """The two methods of `iterant.training.objectives.Unroll`, as CUDA graphs."""

    def __init__(
        self,
        net: Net,
        module: nn.Module,
        smoothing: float = 0.0,
        scale: Tensor | None = None,
        places: float = 0.0,
    ) -> None:
        """``net`` computes with the parameters of ``module``."""
        self.net, self.scale = net, scale
        self.criterion = Criterion(smoothing, places)
        self.preparing = 0.0
        """Seconds spent on capturing so far"""
        # The paper's recurrent networks ignore the number of the iteration. For others it is part
        # of the graph, so every first iteration needs its own.
        self._uses_index = depth_of(net) is not None or not isinstance(net, Fused | DeepThinking)
        self._weights = [weight for weight in module.parameters() if weight.requires_grad]
        for weight in self._weights:
            weight.grad = torch.zeros_like(weight)
        self._graphs: dict[object, _Captured] = {}
        self._pool: Any = None
        self._shared: _Buffers | None = None
        self._stream = _CUDA.Stream()
        self._warmed_up: set[object] = set()

    def forward_no_grad(self, inputs: Tensor, state: State | None, steps: int) -> State:
        """Iterate without gradients."""
        buffers = self._buffers(inputs)
        buffers.inputs.copy_(inputs)
        if state is not None and state.features is not buffers.features:
            buffers.features.copy_(state.features)
        start = self._first_index(state)
        key = ("forward", steps, state is None, start)
        work = partial(self._forward, steps, state is None, start)
        self._replay(key, ("forward", steps > 1), work)
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
        """Iterate with gradients and back-propagate the segment's loss."""
        buffers = self._buffers(inputs)
        if noise is not None:
            buffers.noise.copy_(noise)
        buffers.inputs.copy_(inputs)
        buffers.targets.copy_(targets)
        # One graph serves every kind of start: a buffer marks the samples that restart.
        if state is None:
            buffers.restart.fill_(True)
        else:
            if state.features is not buffers.features:
                buffers.features.copy_(state.features)
            if restart is None:
                buffers.restart.fill_(False)
            else:
                buffers.restart.copy_(restart)
        start = self._first_index(state)
        key = (segment, keep is None, noise is None, start)
        work = partial(self._forward_backward, segment, keep is not None, noise is not None, start)
        captured = self._replay(key, ("backward", segment.steps > 1), work)
        step = 0 if state is None else state.step
        kept = None if keep is None else State(captured.path[keep], step + keep)
        return StepResult(captured.loss, State(captured.path[-1], step + segment.steps), kept)

    def _buffers(self, inputs: Tensor) -> _Buffers:
        """The buffers, allocated at the first call for the shape of its batch."""
        if self._shared is None:
            with torch.no_grad():
                features = self.net.start(inputs)
            shape = (len(inputs), *inputs.shape[2:])
            self._shared = _Buffers(
                inputs.clone(),
                torch.zeros(shape, dtype=torch.int64, device=inputs.device),
                features.clone(),
                torch.zeros(len(inputs), dtype=torch.bool, device=inputs.device),
                torch.zeros_like(features),
            )
        return self._shared

    def _first_index(self, state: State | None) -> int:
        """The index of the next iteration, where the network depends on it."""
        return state.step if state is not None and self._uses_index else 0

    def _forward(
        self, steps: int, restart: bool, start: int, buffers: _Buffers
    ) -> tuple[Tensor, list[Tensor]]:
        with torch.no_grad():
            state = None if restart else State(buffers.features, start)
            end = last_of(iterate(self.net, buffers.inputs, steps=steps, state=state))
            buffers.features.copy_(end.features)
        return buffers.features.new_zeros(()), []

    def _forward_backward(
        self, segment: Segment, keep: bool, noisy: bool, start: int, buffers: _Buffers
    ) -> tuple[Tensor, list[Tensor]]:
        inputs, targets = buffers.inputs, buffers.targets
        state = initial_state(self.net, inputs, State(buffers.features, start), buffers.restart)
        noise = buffers.noise if noisy else None
        loss, states = noisy_segment_loss(
            self.net, inputs, targets, segment, state, self.criterion, noise
        )
        backward(self.net, loss * segment.weight, self.scale)
        path = [state.features.detach() for state in states]
        return loss.detach(), path if keep else path[-1:]

    def _replay(self, key: object, kind: object, work: _Work) -> _Captured:
        if key not in self._graphs:
            _CUDA.synchronize()
            started = time.monotonic()
            self._graphs[key] = self._capture(kind, work)
            _CUDA.synchronize()
            self.preparing += time.monotonic() - started
        captured = self._graphs[key]
        captured.graph.replay()
        return captured

    def _capture(self, kind: object, work: _Work) -> _Captured:
        """Capture ``work``; gradients and features are left as they were.

        The first time for a kind of work it is run outside the capture, so that cuDNN can choose
        its kernels. A single iteration is a kind by itself, because it uses fewer kernels.
        """
        if self._shared is None:
            raise TypeError("capture needs the buffers")
        buffers, cuda, side = self._shared, _CUDA, self._stream
        gradients = [weight.grad for weight in self._weights if weight.grad is not None]
        before = [gradient.clone() for gradient in gradients]
        features = buffers.features.clone()
        if kind not in self._warmed_up:
            self._warmed_up.add(kind)
            side.wait_stream(cuda.current_stream())
            with cuda.stream(side):
                work(buffers)
            cuda.current_stream().wait_stream(side)
            buffers.features.copy_(features)
        graph = cuda.CUDAGraph()
        with _no_gc(), cuda.graph(graph, pool=self._pool, stream=side):
            loss, path = work(buffers)
        self._pool = self._pool or graph.pool()
        for gradient, old in zip(gradients, before, strict=True):
            gradient.copy_(old)
        return _Captured(graph, loss, path)


@contextmanager
def _no_gc() -> Iterator[None]:
    """Disable garbage collection: freeing another run's graph would invalidate a capture."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


class CapturedCall:
    """A call that always does the same: run eagerly a few times, then captured and replayed."""

    def __init__(self, work: Callable[[], None], warmup: int = 3) -> None:
        """``warmup`` eager calls come first, in which ``work`` allocates its tensors."""
        self._work, self._warmup = work, warmup
        self._graph: Any = None

    def __call__(self) -> None:
        """Do the work once."""
        if self._warmup > 0:
            self._warmup -= 1
            self._work()
            return
        if self._graph is None:
            graph = _CUDA.CUDAGraph()
            with _no_gc(), _CUDA.graph(graph):
                self._work()
            self._graph = graph
        self._graph.replay()
