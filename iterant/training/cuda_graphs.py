"""Unrolling by CUDA graphs: one launch for a segment instead of hundreds.

A graph is captured the first time a number of iterations is needed. All graphs share a few input
and output buffers, so a step is: copy the batch in, replay, read the loss when it is needed.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from iterant.engine import State
from iterant.nets.protocol import Net
from iterant.training.objectives import Criterion, Segment, StepResult, Unroll

# torch leaves its CUDA module untyped.
_CUDA: Any = torch.cuda


class GraphUnroll(Unroll):
    """The two methods of `Unroll` as CUDA graphs."""

    def __init__(
        self,
        net: Net,
        module: nn.Module,
        criterion: Criterion | None = None,
        scale: Tensor | None = None,
    ) -> None:
        """``net`` computes with the parameters of ``module``, which have gradients already."""
        super().__init__(net, criterion, scale)
        # The index of an iteration is part of a graph: where the network uses it, every first
        # iteration needs its own.
        self._uses_index: bool = getattr(net, "uses_index", True)
        self._weights = [weight for weight in module.parameters() if weight.requires_grad]
        self._graphs: dict[object, tuple[Any, Any]] = {}
        self._pool: Any = None
        self._buffers: dict[str, Tensor] = {}
        """Tensors that every graph reads and writes"""
        self._stream = _CUDA.Stream()
        self._warmed_up: set[object] = set()

    def forward_no_grad(self, inputs: Tensor, steps: int) -> State:
        buffers = self._fill(inputs, None)

        def work() -> None:
            end = Unroll.forward_no_grad(self, buffers["inputs"], steps)
            buffers["features"].copy_(end.features)

        self._replay(("forward", steps), ("forward", steps > 1), work)
        return State(buffers["features"], steps)

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
        buffers = self._fill(inputs, state)
        buffers["targets"].copy_(targets)
        # One graph serves every kind of start: a buffer marks the samples that restart.
        if state is None or restart is None:
            buffers["restart"].fill_(state is None)
        else:
            buffers["restart"].copy_(restart)
        if noise is not None:
            buffers["noise"].copy_(noise)
        # The index of the first iteration, where the network depends on it.
        first = state.step if state is not None and self._uses_index else 0
        noisy = noise is not None

        def work() -> StepResult:
            return Unroll.forward_backward(
                self, buffers["inputs"], buffers["targets"], segment,
                state=State(buffers["features"], first), restart=buffers["restart"],
                noise=buffers["noise"] if noisy else None,
            )  # fmt: skip

        key = (segment, noisy, first)
        result: StepResult = self._replay(key, ("backward", segment.steps > 1), work)
        offset = (0 if state is None else state.step) - first
        states = [State(each.features, each.step + offset) for each in result.states]
        return StepResult(result.loss, states)

    def _fill(self, inputs: Tensor, state: State | None) -> dict[str, Tensor]:
        """The buffers with this problem and state; allocated at the first call."""
        if not self._buffers:
            with torch.no_grad():
                features = self.net.start(inputs)
            self._buffers = {
                "inputs": inputs.clone(),  # (B, C, *S)
                "targets": torch.zeros_like(inputs[:, 0], dtype=torch.int64),  # (B, *S)
                "features": features.clone(),  # (B, W, *S)
                "restart": torch.zeros(len(inputs), dtype=torch.bool, device=inputs.device),
                "noise": torch.zeros_like(features),  # (B, W, *S)
            }
        buffers = self._buffers
        buffers["inputs"].copy_(inputs)
        if state is not None and state.features is not buffers["features"]:
            buffers["features"].copy_(state.features)
        return buffers

    def _replay(self, key: object, kind: object, work: Callable[[], Any]) -> Any:
        """Run the graph of ``work``; its results, in the graph's own tensors."""
        if key not in self._graphs:
            self._graphs[key] = self._capture(kind, work)
        graph, results = self._graphs[key]
        graph.replay()
        return results

    def _capture(self, kind: object, work: Callable[[], Any]) -> tuple[Any, Any]:
        """Capture ``work``; gradients and features are left as they were.

        The first time for a kind of work it is run outside the capture, so that cuDNN can choose
        its kernels. A single iteration is a kind by itself, because it uses fewer kernels.
        """
        gradients = [weight.grad for weight in self._weights if weight.grad is not None]
        changed = [self._buffers["features"], *gradients]
        before = [tensor.clone() for tensor in changed]
        if kind not in self._warmed_up:
            self._warmed_up.add(kind)
            self._stream.wait_stream(_CUDA.current_stream())
            with _CUDA.stream(self._stream):
                work()
            _CUDA.current_stream().wait_stream(self._stream)
        graph = _CUDA.CUDAGraph()
        with _no_gc(), _CUDA.graph(graph, pool=self._pool, stream=self._stream):
            results = work()
        self._pool = self._pool or graph.pool()
        torch._foreach_copy_(changed, before)
        return graph, results


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
