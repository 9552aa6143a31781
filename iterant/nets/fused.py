"""A Deep Thinking network with the same weights, computed faster: fewer and larger kernels.

    >>> fast = Fused(net)
    >>> loss(last(think(fast, x, steps=30)).logits, y).backward()
    >>> fast.flush()                       # the kernels' gradients of the block arrive here

Two things make training fast where the plain way is slow. Convolution, addition and ReLU are one
kernel (cuDNN's, where there is one). And the gradients of the kernels, which the backward chain
does not wait for, are computed on a second CUDA stream beside it and summed in float32.

The mathematics is that of the plain network; a test compares the two in float64.
"""

from __future__ import annotations

from typing import Any, TypeGuard

import torch
from torch import Tensor
from torch.autograd import Function

from iterant.nets.deep_thinking import DeepThinking
from iterant.nets.layers import ResidualBlock


class Tape:
    """The gradients of the kernels, computed as iterations leave (input, gradient of the output).

    On CUDA that happens on a second stream beside the backward chain, which does not wait for it.
    Sums are float32, so that in bfloat16 nothing is lost by adding up thirty iterations.
    """

    def __init__(self) -> None:
        """Nothing on it."""
        self._sums: dict[Tensor, Tensor] = {}
        self._stream: torch.cuda.Stream | None = None
        self._kept: list[Tensor] = []

    def put(self, weight: Tensor, kernel: Tensor, x: Tensor, gradient: Tensor) -> None:
        """Leave a pair: its part of the weight's gradient is computed and added."""
        if not weight.is_cuda:
            self._add(weight, kernel, x, gradient)
            return
        if self._stream is None:
            make: Any = torch.cuda.Stream
            self._stream = make(weight.device)
        self._stream.wait_stream(torch.cuda.current_stream())
        self._kept += [x, gradient]
        with torch.cuda.stream(self._stream):
            self._add(weight, kernel, x, gradient)

    @torch.no_grad()
    def flush(self) -> None:
        """Wait for the second stream, and add the sums to the gradients."""
        if self._stream is not None:
            torch.cuda.current_stream().wait_stream(self._stream)
        # Only now: autograd adds to the same gradients on its own stream until backward ends,
        # and the second stream reads the pairs' memory until it is done.
        for weight, total in self._sums.items():
            if weight.grad is None:
                weight.grad = torch.zeros_like(weight)
            weight.grad[:, : total.shape[1]] += total
        self._sums.clear()
        self._kept.clear()

    @torch.no_grad()
    def _add(self, weight: Tensor, kernel: Tensor, x: Tensor, gradient: Tensor) -> None:
        made = _kernel_gradient(gradient, x, kernel)
        part = made.squeeze(2) if weight.dim() == 3 else made
        if weight in self._sums:
            self._sums[weight] += part
        else:
            self._sums[weight] = part if part.dtype == torch.float64 else part.float()


class Fused:
    """The network's four methods over its own weights, for training on a GPU."""

    def __init__(self, net: DeepThinking) -> None:
        """Wrap a network; it goes on holding the weights."""
        if net.config.group_norm:
            raise TypeError("group norm has no fused form")
        self.net, self.readout = net, net.readout
        self.tape = Tape()
        self._flat = net.config.dims == 1
        blocks = [block for block in net.block if isinstance(block, ResidualBlock)]
        self._pairs = [(block.conv1.weight, block.conv2.weight) for block in blocks]
        self._kernels: dict[Tensor, Tensor] = {}
        self._pinned = False

    def check(self, inputs: Tensor) -> None:
        """As the network itself."""
        self.net.check(inputs)

    def read(self, inputs: Tensor) -> Tensor | None:
        """The recall term, and the kernels as iterations need them: once a problem."""
        if not self._pinned:
            self._kernels = self._laid_out()
        memory = self.net.read(inputs)
        return None if memory is None else self._images(memory)

    def start(self, inputs: Tensor) -> Tensor:
        """The projection, as the network itself has it."""
        return self.net.start(inputs)

    def answer(self, features: Tensor) -> Tensor:
        """Logits, as the network itself has them."""
        return self.net.answer(features)

    def step(self, features: Tensor, memory: Tensor | None, index: int) -> Tensor:
        """One iteration in as few kernels as there are."""
        # torch leaves `apply` untyped.
        convolve: Any = _Conv.apply
        residual: Any = _Block.apply
        images = self._images(features)
        recall = self.net.recall
        if recall is not None and memory is not None:
            relu = self.net.config.recall_relu
            images = convolve(
                images, recall.weight, self._kernels[recall.weight], self.tape, memory, relu
            )
        for first, second in self._pairs:
            kernels = self._kernels[first], self._kernels[second]
            images = residual(images, first, second, *kernels, self.tape)
        return images.squeeze(2) if self._flat else images

    def flush(self) -> None:
        """Bring the gradients of the block's kernels up to date: once after each backward."""
        self.tape.flush()

    def pin(self) -> None:
        """Lay the kernels out now and keep them: whoever changes the weights calls `refresh`."""
        self._kernels, self._pinned = self._laid_out(), True

    @torch.no_grad()
    def refresh(self) -> None:
        """Bring pinned kernels up to date with the weights, in place."""
        for kernel, new in zip(self._kernels.values(), self._laid_out().values(), strict=True):
            if kernel.data_ptr() != new.data_ptr():
                kernel.copy_(new)

    def _laid_out(self) -> dict[Tensor, Tensor]:
        """The kernels in the layout of the images."""
        kernels = {weight: _kernel(weight) for pair in self._pairs for weight in pair}
        recall = self.net.recall
        return (
            kernels
            if recall is None
            else {**kernels, recall.weight: _kernel(recall.weight, recall.width)}
        )

    def _images(self, tensor: Tensor) -> Tensor:
        """Strings as images one pixel high, so that one set of kernels serves both."""
        images = tensor.unsqueeze(2) if tensor.dim() == 3 else tensor
        return images.contiguous(memory_format=torch.channels_last)


def _kernel(weight: Tensor, width: int | None = None) -> Tensor:
    """The kernel as the images need it, only the features' part of a recall kernel."""
    part = weight if width is None else weight[:, :width]
    images = part.unsqueeze(2) if part.dim() == 3 else part
    return images.detach().contiguous(memory_format=torch.channels_last)


def _padding(kernel: Tensor) -> list[int]:
    return [side // 2 for side in kernel.shape[2:]]


def _conv_relu(x: Tensor, kernel: Tensor) -> Tensor:
    padding = _padding(kernel)
    if x.is_cuda:
        return torch.cudnn_convolution_relu(x, kernel, None, [1, 1], padding, [1, 1], 1)
    return torch.relu_(torch.conv2d(x, kernel, padding=padding))


def _conv_add_relu(x: Tensor, kernel: Tensor, added: Tensor) -> Tensor:
    padding = _padding(kernel)
    if x.is_cuda:
        return torch.cudnn_convolution_add_relu(
            x, kernel, added, 1.0, None, [1, 1], padding, [1, 1], 1
        )
    return torch.relu_(torch.conv2d(x, kernel, padding=padding).add_(added))


def _input_gradient(gradient: Tensor, x: Tensor, kernel: Tensor) -> Tensor:
    made: Tensor = torch.ops.aten.convolution_backward(
        gradient, x, kernel, None, [1, 1], _padding(kernel), [1, 1], False, [0, 0], 1,
        [True, False, False],
    )[0]  # fmt: skip
    return made


def _kernel_gradient(gradient: Tensor, x: Tensor, kernel: Tensor) -> Tensor:
    made: Tensor = torch.ops.aten.convolution_backward(
        gradient, x, kernel, None, [1, 1], _padding(kernel), [1, 1], False, [0, 0], 1,
        [False, True, False],
    )[1]  # fmt: skip
    return made


class _Conv(Function):
    """relu?(conv(x) + memory), the kernel's gradient left on the tape."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, kernel: Tensor, tape: Tape, memory: Tensor, relu: bool
    ) -> Tensor:
        if relu:
            y = _conv_add_relu(x, kernel, memory)
        else:
            y = torch.conv2d(x, kernel, padding=_padding(kernel)).add_(memory)
        ctx.save_for_backward(x, kernel, y if relu else None)
        ctx.tape, ctx.weight = tape, weight
        return y

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        x, kernel, y = ctx.saved_tensors
        g = gradients[0]
        if y is not None:
            g = torch.ops.aten.threshold_backward(g, y, 0)
        ctx.tape.put(ctx.weight, kernel, x, g)
        back = _input_gradient(g, x, kernel) if ctx.needs_input_grad[0] else None
        return back, None, None, None, g, None


class _Block(Function):
    """relu(x + conv2(relu(conv1(x)))), the kernels' gradients left on the tape."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        first: Tensor,
        second: Tensor,
        kernel1: Tensor,
        kernel2: Tensor,
        tape: Tape,
    ) -> Tensor:
        inner = _conv_relu(x, kernel1)
        y = _conv_add_relu(inner, kernel2, x)
        ctx.save_for_backward(x, kernel1, kernel2, inner, y)
        ctx.tape, ctx.weights = tape, (first, second)
        return y

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        x, kernel1, kernel2, inner, y = ctx.saved_tensors
        outer = torch.ops.aten.threshold_backward(gradients[0], y, 0)
        middle = _input_gradient(outer, inner, kernel2)
        middle = torch.ops.aten.threshold_backward(middle, inner, 0)
        ctx.tape.put(ctx.weights[1], kernel2, inner, outer)
        ctx.tape.put(ctx.weights[0], kernel1, x, middle)
        back = _input_gradient(middle, x, kernel1).add_(outer)
        return back, None, None, None, None, None


def can_fuse(net: object) -> TypeGuard[DeepThinking]:
    """Whether `Fused` computes the same as this network."""
    return isinstance(net, DeepThinking) and not net.config.group_norm
