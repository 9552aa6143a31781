"""`Fused` for the paper's networks on strings, on Hopper GPUs: convolutions as matrix products.

    >>> fast = FusedStrings(net)
    >>> states = fast.segment(fast.start(x), fast.read(x), 30)
    >>> loss(fast.answer(states[-1]), y).backward()
    >>> fast.flush()

Strings are rows of a matrix (`Rows`): a position is a row of channels, and a row of zeros stands
before the first string and after every string, so that a position's neighbours are the rows beside
it. The rest up to a whole number of tiles is zero too. Convolutions keep all of these zero.

Additions, ReLUs and their masks belong to the convolutions, forwards and backwards, so that an
iteration is as many kernels as it has convolutions. The iterations of a segment lie one after the
other in memory, so that the gradients of all weights are one product after the last of them.

On a Hopper GPU with Triton the products are kernels (`iterant.nets.fast.string_kernels`); elsewhere
they are plain PyTorch, which is the reference for the kernels.

Shapes: B batch, W width, L length, R rows, C and N channels of input and output, D convolutions of
an iteration, T iterations.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from iterant.nets.deep_thinking import FeedForward, PaperNet
from iterant.nets.fast.deep_thinking import Fused, Layer, Tape, relu_backward

TILE = 128
"""Rows of a matrix come in multiples of this; tiles of a convolution are as high and as wide."""
_ALIGNED = 8
"""Channels come in multiples of this: the GPU's copy engine reads 16 bytes at a time."""
_LEAST_WIDTH = 128
"""Networks from this width on fill the tiles of the matrix products."""


@functools.cache
def _kernels() -> Any:
    """The Triton kernels, or None where there is no Triton."""
    try:
        return importlib.import_module("iterant.nets.fast.string_kernels")
    except ImportError:
        return None


def has_kernels(tensor: Tensor) -> bool:
    """Whether there are kernels for such tensors: Hopper, half precision, Triton."""
    return (
        tensor.is_cuda
        and tensor.dtype in (torch.float16, torch.bfloat16)
        and torch.cuda.get_device_capability(tensor.device)[0] == 9
        and _kernels() is not None
    )


def aligned(channels: int) -> int:
    """The number of channels, rounded up to a multiple of 8."""
    return -(-channels // _ALIGNED) * _ALIGNED


@dataclass(frozen=True)
class Rows:
    """The layout of a batch of strings of one length."""

    strings: int
    length: int

    @property
    def period(self) -> int:
        """Rows from the first of one string to the first of the next."""
        return self.length + 1

    @property
    def count(self) -> int:
        """The number of rows, a multiple of the tile."""
        return -(-(self.strings * self.period + 1) // TILE) * TILE

    def pack(self, strings: Tensor, channels: int) -> Tensor:
        """(B, C, L) to (R, channels); no copy where the strings are a view of such rows."""
        base = strings._base
        if (
            base is not None
            and base.shape == (self.count, channels)
            and strings.storage_offset() == base.storage_offset() + channels
            and strings.stride() == (self.period * channels, 1, channels)
            and strings.shape[1] == channels
        ):
            return base
        rows = strings.new_zeros(self.count, channels)
        self.unpack(rows, strings.shape[1]).copy_(strings)
        return rows

    def unpack(self, rows: Tensor, channels: int | None = None) -> Tensor:
        """Rows as strings (B, C, L): a view."""
        width = rows.shape[1]
        return rows.as_strided(
            (self.strings, width if channels is None else channels, self.length),
            (self.period * width, 1, width),
            rows.storage_offset() + width,
        )

    def convolve(
        self,
        x: Tensor,
        kernel: Tensor,
        out: Tensor,
        *,
        added: Tensor | None = None,
        sign: Tensor | None = None,
        relu: bool = False,
    ) -> Tensor:
        """Write relu?(conv(x) + added?) into ``out``, zero where ``sign`` is not positive.

        x (R, C), kernel (N', 3 C) with N' <= N, all others (R, N).
        """
        if has_kernels(x):
            _kernels().convolve(
                x, kernel, out, strings=self.strings, period=self.period,
                added=added, sign=sign, relu=relu,
            )  # fmt: skip
            return out
        y = out.new_zeros(out.shape)
        y[1:-1, : len(kernel)] = _neighbours(x) @ kernel.T
        y = y if added is None else y + added
        y = y.relu() if relu else y
        y = y if sign is None else torch.where(sign > 0, y, 0)
        out.zero_()
        self.unpack(out).copy_(self.unpack(y))
        return out


def kernel_gradients(x: Tensor, gradient: Tensor) -> Tensor:
    """The gradients (layers, N, 3 C) of the kernels of some layers, in float32 at least.

    x (layers, R, C) are the layers' inputs, gradient (layers, R, N) those of their outputs; many
    batches may follow each other in the rows.
    """
    if has_kernels(x):
        shape = (len(x), gradient.shape[2], 3 * x.shape[2])
        out = torch.empty(shape, dtype=torch.float32, device=x.device)
        _kernels().kernel_gradients(x, gradient, out)
        return out
    pairs = zip(x, gradient, strict=True)
    return torch.stack([after[1:-1].T @ _neighbours(before) for before, after in pairs])


def _neighbours(rows: Tensor) -> Tensor:
    """(R - 2, 3 C): every row between its neighbours, a view."""
    count, channels = rows.shape
    return rows.as_strided((count - 2, 3 * channels), (channels, 1), rows.storage_offset())


class RowLayer(Layer):
    """A convolution of rows: its kernel (N, 3 C), and that of the gradients (C, 3 N)."""

    def __init__(self, weight: Tensor, first: int = 0, last: int | None = None) -> None:
        super().__init__(weight, first, last)
        self.backward_kernel = _as_rows(self._transposed(), self.outputs)

    @property
    def inputs(self) -> int:
        """Channels of the input's rows."""
        return aligned(self.last - self.first)

    @property
    def outputs(self) -> int:
        """Channels of the output's rows."""
        return aligned(len(self.weight))

    def laid_out(self) -> Tensor:
        """(N, 3 C): the channels of one neighbour after those of the other."""
        return _as_rows(self.part(), self.inputs)

    def refresh(self) -> None:
        """Update both kernels from the weight, in place."""
        parts = ((self.kernel, self.part()), (self.backward_kernel, self._transposed()))
        for kernel, part in parts:
            if kernel.data_ptr() != part.data_ptr():
                whole = kernel.view(len(part), 3, -1)
                whole[:, :, : part.shape[1]].copy_(part.transpose(1, 2))

    def _transposed(self) -> Tensor:
        """(C, N, 3): a convolution's input gradient is the convolution with this kernel."""
        return self.part().transpose(0, 1).flip(2)


def _as_rows(part: Tensor, channels: int) -> Tensor:
    """(N, C, 3) to (N, 3 channels); a view where the weights lie in this order already."""
    if part.shape[1] == channels:
        return part.transpose(1, 2).reshape(len(part), -1)
    wide = part.new_zeros(len(part), 3, channels)
    wide[:, :, : part.shape[1]] = part.transpose(1, 2)
    return wide.view(len(part), -1)


class FusedStrings(Fused):
    """`Fused` in one dimension: recurrent networks, and feed-forward ones without recall."""

    layer_type = RowLayer
    _projection: RowLayer
    _recall: tuple[RowLayer, RowLayer] | None
    _blocks: Sequence[tuple[RowLayer, RowLayer]]
    _head: Sequence[RowLayer]

    def read(self, inputs: Tensor) -> Tensor | None:
        return None if self._recall is None else self._chain(inputs, self._recall[1:], relu=False)

    def start(self, inputs: Tensor) -> Tensor:
        return self._chain(inputs, [self._projection], relu=True)

    def answer(self, features: Tensor) -> Tensor:
        return self._chain(features, self._head, relu=False)

    def step(self, features: Tensor, memory: Tensor | None, index: int) -> Tensor:
        return self.segment(features, memory, 1, index)[-1]

    def segment(
        self, features: Tensor, memory: Tensor | None, count: int, done: int = 0
    ) -> tuple[Tensor, ...]:
        """The features after each of ``count`` iterations; without gradients, after the last."""
        if self.depth is None:
            steps = [self._layers_of(done)] * count
        else:
            steps = [self._layers_of(index) for index in range(done, done + count)]
        relu = self.net.config.recall_relu
        if not torch.is_grad_enabled():
            return (_forward(steps, features, memory, relu),)
        run: Any = _Segment.apply  # torch leaves it untyped
        path: tuple[Tensor, ...] = run(features, self._token, memory, self.tape, steps, relu)
        return path

    def _layers_of(self, index: int) -> list[RowLayer]:
        """The layers of one iteration."""
        blocks: Any = [layer for pair in self._blocks_of(index) for layer in pair]
        return [*(self._recall or ())[:1], *blocks]

    def _chain(self, x: Tensor, layers: Sequence[RowLayer], *, relu: bool) -> Tensor:
        run: Any = _Chain.apply
        y: Tensor = run(x, self._token, self.tape, layers, relu)
        return y


def _iteration(
    rows: Rows, layers: Sequence[RowLayer], buffers: list[Tensor], term: Tensor | None, relu: bool
) -> None:
    """One iteration: buffers[0] is its input, buffers[i] is written by layer i - 1.

    ``relu``: whether there is one after the recall layer.
    """
    # All buffers are (R, W). ``term`` is the recall term, the same at every iteration.
    kernels, at = [layer.kernel for layer in layers], 0
    if term is not None:
        rows.convolve(buffers[0], kernels[0], buffers[1], added=term, relu=relu)
        at = 1
    while at < len(kernels):  # residual blocks of two convolutions each
        x, inner, y = buffers[at : at + 3]
        rows.convolve(x, kernels[at], inner, relu=True)
        rows.convolve(inner, kernels[at + 1], y, added=x, relu=True)
        at += 2


def _iteration_backward(
    rows: Rows,
    layers: Sequence[RowLayer],
    inputs: Sequence[Tensor],
    gradients: list[Tensor],
    sign: Tensor | None,
    relu: bool,
) -> None:
    """From the gradient of the last layer's output, before its ReLU, to those of all others.

    ``gradients`` are those of every layer's output, and at the end that of the iteration's input,
    which passes the ReLU that made ``sign`` if there was one. ``inputs`` are the inputs of every
    layer; all tensors are (R, W).
    """
    kernels = [layer.backward_kernel for layer in layers]
    # Blocks have two layers, so an odd number of layers means recall.
    at, recalls = len(kernels) - 2, len(kernels) % 2
    while at >= 0:  # a block: layers at and at + 1
        # A ReLU's output is positive where its gradient passes, so a layer's input is its mask.
        rows.convolve(gradients[at + 1], kernels[at + 1], gradients[at], sign=inputs[at + 1])
        passes = inputs[at] if at else sign
        if at == 1 and recalls and not relu:
            passes = None
        # ``added``: the gradient that goes around the block, through the skip. At layer 0 the
        # result goes into gradients[-1], that of the iteration's input.
        rows.convolve(
            gradients[at], kernels[at], gradients[at - 1], added=gradients[at + 1], sign=passes
        )
        at -= 2
    if recalls:
        rows.convolve(gradients[0], kernels[0], gradients[-1], sign=sign)


def _forward(
    steps: list[list[RowLayer]], features: Tensor, memory: Tensor | None, relu: bool
) -> Tensor:
    """The features after all iterations, in a few buffers that are used again and again."""
    rows, width = Rows(len(features), features.shape[2]), features.shape[1]
    term = None if memory is None else rows.pack(memory, width)
    x = rows.pack(features, width)
    inner = [torch.empty_like(x) for _ in steps[0][1:]]
    ends = [torch.empty_like(x), torch.empty_like(x)]
    for i, layers in enumerate(steps):
        _iteration(rows, layers, [x, *inner, ends[i % 2]], term, relu)
        x = ends[i % 2]
    return rows.unpack(x)


class _Segment(Function):
    """Iterations; the tape takes the weight gradients."""

    @staticmethod
    def forward(
        ctx: Any,
        features: Tensor,
        token: Tensor,
        memory: Tensor | None,
        tape: Tape,
        steps: list[list[RowLayer]],
        relu: bool,
    ) -> tuple[Tensor, ...]:
        rows, width = Rows(len(features), features.shape[2]), features.shape[1]
        term = None if memory is None else rows.pack(memory, width)
        inputs = features.new_empty(len(steps[0]), len(steps), rows.count, width)  # (D, T, R, W)
        inputs[0, 0].zero_()
        rows.unpack(inputs[0, 0]).copy_(features)
        ends = [*inputs[0, 1:].unbind(), features.new_empty(rows.count, width)]
        for i, (layers, end) in enumerate(zip(steps, ends, strict=True)):
            _iteration(rows, layers, [*inputs[:, i].unbind(), end], term, relu)
        ctx.tape, ctx.steps, ctx.relu, ctx.rows = tape, steps, relu, rows
        ctx.inputs, ctx.ends, ctx.recalls = inputs, ends, memory is not None
        ctx.set_materialize_grads(False)
        return tuple(rows.unpack(end) for end in ends)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> Any:
        rows, inputs, steps = ctx.rows, ctx.inputs, ctx.steps
        depth, count, size, width = inputs.shape
        # (D, T, R, W): gradients of every layer's output, before its ReLU
        outputs = torch.empty_like(inputs)
        into = inputs.new_empty(size, width)  # (R, W): the gradient of the segment's start
        targets = [into, *outputs[-1].unbind()]  # those of every iteration's input, and the end
        targets[-1].zero_()
        for i in reversed(range(count)):
            gradient, end = gradients[i], ctx.ends[i]
            if gradient is not None:
                part = relu_backward(gradient, rows.unpack(end))
                rows.unpack(targets[i + 1]).add_(part)
            sign = inputs[0, i] if i else None  # the first input was made elsewhere
            buffers = [*outputs[:, i].unbind(), targets[i]]
            _iteration_backward(rows, steps[i], inputs[:, i].unbind(), buffers, sign, ctx.relu)
        if steps[0] is steps[-1]:  # the same weights at every iteration: one sum over all rows
            layers, shape = steps[0], (depth, count * size, width)
        else:  # feed-forward: as many layers as there are pairs of depth and iteration
            layers = [step[at] for at in range(depth) for step in steps]
            shape = (depth * count, size, width)
        _record(ctx.tape, layers, inputs.view(shape), outputs.view(shape))
        # The recall term is added at every iteration, so its gradient is a sum over them.
        memory = rows.unpack(outputs[0].sum(dim=0)) if ctx.recalls else None
        return rows.unpack(into), None, memory, None, None, None


class _Chain(Function):
    """Convolutions with ReLUs between them; the tape takes the weight gradients."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, token: Tensor, tape: Tape, layers: Sequence[RowLayer], relu: bool
    ) -> Tensor:
        rows = Rows(len(x), x.shape[2])
        path = [rows.pack(x, layers[0].inputs)]
        for layer in layers:
            out = x.new_empty(rows.count, layer.outputs)
            rectified = relu or layer is not layers[-1]
            path.append(rows.convolve(path[-1], layer.kernel, out, relu=rectified))
        ctx.tape, ctx.layers, ctx.relu, ctx.rows, ctx.path = tape, layers, relu, rows, path
        ctx.channels = x.shape[1]
        return rows.unpack(path[-1], len(layers[-1].weight))

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        rows, path, gradient = ctx.rows, ctx.path, gradients[0]
        if ctx.relu:
            gradient = relu_backward(gradient, rows.unpack(path[-1], gradient.shape[1]))
        back = rows.pack(gradient, ctx.layers[-1].outputs)
        for at in reversed(range(len(ctx.layers))):
            layer, x = ctx.layers[at], path[at]
            _record(ctx.tape, [layer], x[None], back[None])
            if at == 0 and not ctx.needs_input_grad[0]:
                return None, None, None, None, None
            into = gradient.new_empty(rows.count, layer.inputs)
            back = rows.convolve(back, layer.backward_kernel, into, sign=x if at else None)
        return rows.unpack(back, ctx.channels), None, None, None, None


def _record(tape: Tape, layers: Sequence[RowLayer], x: Tensor, gradient: Tensor) -> None:
    """Give the tape inputs (layers, R, C) and gradients of outputs (layers, R, N)."""

    @torch.no_grad()
    def add() -> None:
        for layer, part in zip(layers, kernel_gradients(x, gradient), strict=True):
            whole = part.view(gradient.shape[2], 3, x.shape[2]).transpose(1, 2)
            tape.accumulate(layer, whole[: len(layer.weight), : layer.last - layer.first])

    tape.on_second_stream(add, [x, gradient])


def fuse_strings(net: PaperNet) -> FusedStrings | None:
    """This form of a network that can be fused; None where it is not faster, or does not exist."""
    config = net.config
    faster = (
        config.dims == 1 and config.width >= _LEAST_WIDTH and has_kernels(net.projection.weight)
    )
    # Layers of a feed-forward network differ, but for one recall layer, whose gradient is a sum.
    mixed = isinstance(net, FeedForward) and net.recall is not None
    if not faster or mixed or config.bounded or aligned(config.width) != config.width:
        return None
    return FusedStrings(net)
