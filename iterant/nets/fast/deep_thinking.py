"""The paper's networks in fewer and larger GPU kernels, with the same weights.

    >>> fast = Fused(net)
    >>> loss(last(think(fast, x, steps=30)).logits, y).backward()
    >>> fast.flush()                       # adds the gradients of the weights

Convolution, addition and ReLU are one cuDNN kernel where there is one. Weight gradients are not
needed by the backward pass itself, so they are computed on a second CUDA stream and summed in
float32. Strings are computed as images one pixel high.

Shapes: B batch, W width, *S space.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import Function

from iterant.nets.deep_thinking import PaperNet, ResidualBlock


class Layer:
    """One convolution: the input channels ``first`` to ``last`` of a weight.

    ``kernel`` is laid out for the GPU; call `refresh` after changing the weight.
    """

    def __init__(self, weight: Tensor, first: int = 0, last: int | None = None) -> None:
        self.weight, self.channels = weight, slice(first, last)
        self.kernel = self.laid_out()

    def gradient(self) -> Tensor:
        """The part of the weight's gradient for these channels; zeros if there is none yet."""
        if self.weight.grad is None:
            self.weight.grad = torch.zeros_like(self.weight)
        return self.weight.grad[:, self.channels]

    def laid_out(self) -> Tensor:
        """The weight of these channels as a 2D kernel in channels-last layout."""
        return _images(self.weight.detach()[:, self.channels])

    def refresh(self) -> None:
        """Update the kernel from the weight, in place."""
        kernel = self.laid_out()
        if self.kernel.data_ptr() != kernel.data_ptr():  # else it is a view of the weight
            self.kernel.copy_(kernel)


class Tape:
    """Computes weight gradients from pairs (input, gradient of the output) of each iteration.

    On CUDA that runs on a second stream, in parallel with the backward pass. Sums are float32:
    in bfloat16 the small gradients of thirty iterations would be rounded away.
    """

    def __init__(self) -> None:
        self._sums: dict[Layer, Tensor] = {}
        self._stream: torch.cuda.Stream | None = None
        self._kept: list[Tensor] = []

    def record(self, layer: Layer, x: Tensor, gradient: Tensor) -> None:
        """Add the weight gradient of one pair."""
        if not x.is_cuda:
            self._add(layer, x, gradient)
            return
        if self._stream is None:
            make: Any = torch.cuda.Stream
            self._stream = make(x.device)
        self._stream.wait_stream(torch.cuda.current_stream())
        self._kept += [x, gradient]
        with torch.cuda.stream(self._stream):
            self._add(layer, x, gradient)

    @torch.no_grad()
    def _add(self, layer: Layer, x: Tensor, gradient: Tensor) -> None:
        part = _backward(gradient, x, layer.kernel, [False, True, False])[1]
        part = part.squeeze(2) if layer.weight.dim() == 3 else part
        if layer in self._sums:
            wide = torch.promote_types(part.dtype, torch.float32)
            self._sums[layer] = self._sums[layer].to(wide).add_(part)
        else:
            self._sums[layer] = part

    @torch.no_grad()
    def flush(self) -> None:
        """Wait for the second stream, and add the sums to the weights' gradients."""
        if self._stream is not None:
            torch.cuda.current_stream().wait_stream(self._stream)
        if self._sums:  # feed-forward networks have hundreds: add all in a few kernels
            gradients = [layer.gradient() for layer in self._sums]
            torch._foreach_add_(gradients, list(self._sums.values()))
        self._sums.clear()
        self._kept.clear()  # not earlier: the second stream was reading them


class Fused:
    """A network of the paper with the same weights, in fused kernels."""

    def __init__(self, net: PaperNet) -> None:
        self.net, self.config, self.readout = net, net.config, net.readout
        self.tape = Tape()
        # Weights are not autograd inputs: the tape takes their gradients. This input requires grad.
        self._token = torch.zeros((), device=net.projection.weight.device, requires_grad=True)
        self._projection = Layer(net.projection.weight)
        self._recall: tuple[Layer, Layer] | None = None  # of features, of the problem
        if net.recall is not None:
            weight, width = net.recall.weight, net.config.width
            self._recall = Layer(weight, 0, width), Layer(weight, width)
        self.depth = net.depth
        self.uses_index = net.depth is not None
        self._blocks: dict[nn.Module, tuple[Layer, Layer]] = {
            block: (Layer(block.conv1.weight), Layer(block.conv2.weight))
            for block in net.modules()
            if isinstance(block, ResidualBlock)
        }
        convs = [conv for conv in net.head if isinstance(conv, nn.Conv1d | nn.Conv2d)]
        self._head = [Layer(conv.weight) for conv in convs]

    def read(self, inputs: Tensor) -> Tensor | None:
        return None if self._recall is None else self._conv(inputs, self._recall[1], relu=False)

    def start(self, inputs: Tensor) -> Tensor:
        return self._strings(self._conv(inputs, self._projection, relu=True))

    def answer(self, features: Tensor) -> Tensor:
        images = features
        for layer in self._head:
            images = self._conv(images, layer, relu=layer is not self._head[-1])
        return self._strings(images)

    def step(self, features: Tensor, memory: Tensor | None, index: int) -> Tensor:
        images = _images(features)  # (B, W, H, L), one pixel high for strings
        if self._recall is not None and memory is not None:
            relu = self.config.recall_relu
            images = self._conv(images, self._recall[0], relu=relu, added=memory)
        for block in self.net.blocks_of(index).children():
            first, second = self._blocks[block]
            inner = self._conv(images, first, relu=True)
            images = self._conv(inner, second, relu=True, added=images)
        return self.net.bound(self._strings(images))

    def flush(self) -> None:
        """Add the weight gradients; call once after each backward."""
        self.tape.flush()

    @torch.no_grad()
    def refresh(self) -> None:
        """Update the kernels; call after changing the weights."""
        blocks = [layer for pair in self._blocks.values() for layer in pair]
        for layer in (self._projection, *(self._recall or ()), *blocks, *self._head):
            layer.refresh()

    def _conv(
        self, tensor: Tensor, layer: Layer, *, relu: bool, added: Tensor | None = None
    ) -> Tensor:
        run: Any = _Conv.apply  # torch leaves it untyped
        images: Tensor = run(_images(tensor), self._token, layer, self.tape, added, relu)
        return images

    def _strings(self, images: Tensor) -> Tensor:
        """Back from images to strings in one dimension: (B, W, 1, L) to (B, W, L)."""
        return images.squeeze(2) if self.config.dims == 1 else images


def _images(tensor: Tensor) -> Tensor:
    """In channels-last layout, strings (B, W, L) as images (B, W, 1, L)."""
    images = tensor.unsqueeze(2) if tensor.dim() == 3 else tensor
    return images.contiguous(memory_format=torch.channels_last)


def _convolve(x: Tensor, kernel: Tensor, added: Tensor | None, relu: bool) -> Tensor:
    """relu?(conv(x) + added?), in one kernel where cuDNN has it."""
    padding = [side // 2 for side in kernel.shape[2:]]
    if x.is_cuda and relu and added is None:
        return torch.cudnn_convolution_relu(x, kernel, None, [1, 1], padding, [1, 1], 1)
    if x.is_cuda and relu and added is not None:
        return torch.cudnn_convolution_add_relu(
            x, kernel, added, 1.0, None, [1, 1], padding, [1, 1], 1
        )
    y = torch.conv2d(x, kernel, padding=padding)
    y = y if added is None else y.add_(added)
    return y.relu_() if relu else y


def _backward(gradient: Tensor, x: Tensor, kernel: Tensor, which: list[bool]) -> list[Tensor]:
    """The gradients of input, kernel and bias of a convolution, those that ``which`` asks for."""
    padding = [side // 2 for side in kernel.shape[2:]]
    gradients: list[Tensor] = torch.ops.aten.convolution_backward(
        gradient, x, kernel, None, [1, 1], padding, [1, 1], False, [0, 0], 1, which
    )
    return gradients


class _Conv(Function):
    """relu?(conv(x) + added?); the tape takes the weight gradient."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        token: Tensor,
        layer: Layer,
        tape: Tape,
        added: Tensor | None,
        relu: bool,
    ) -> Tensor:
        kernel = layer.kernel
        y = _convolve(x, kernel, added, relu)
        ctx.save_for_backward(x, kernel, y if relu else None)
        ctx.tape, ctx.layer, ctx.adds = tape, layer, added is not None
        return y

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        x, kernel, y = ctx.saved_tensors
        # The gradient of conv(x) + added, before the ReLU: also that of ``added``.
        g = gradients[0] if y is None else torch.ops.aten.threshold_backward(gradients[0], y, 0)
        g = g.contiguous(memory_format=torch.channels_last)
        ctx.tape.record(ctx.layer, x, g)
        wanted = ctx.needs_input_grad[0]
        back = _backward(g, x, kernel, [True, False, False])[0] if wanted else None
        return back, None, None, None, g if ctx.adds else None, None
