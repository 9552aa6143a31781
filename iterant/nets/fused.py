"""A Deep Thinking network with the same weights, computed faster: fewer and larger kernels.

    >>> fast = Fused(net)
    >>> loss(last(think(fast, x, steps=30)).logits, y).backward()
    >>> fast.flush()                       # the kernels' gradients of the block arrive here

Two things make training fast where the plain way is slow. Convolution, addition and ReLU are one
kernel (cuDNN's, where there is one). And the gradient of a kernel is not computed at every
iteration: the pairs (input, gradient of the output) of all iterations are kept, and one large
convolution over them gives the sum at the end, which is both faster and, in bfloat16, rounded
once instead of thirty times.

The mathematics is that of the plain network; a test compares the two in float64.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import Function

from iterant.nets.deep_thinking import DeepThinking
from iterant.nets.layers import ResidualBlock

Pairs = list[tuple[Tensor, Tensor]]


class Fused:
    """The network's four methods over its own weights, for training on a GPU."""

    def __init__(self, net: DeepThinking) -> None:
        """Wrap a network; it goes on holding the weights."""
        if net.config.group_norm:
            raise TypeError("group norm has no fused form")
        self.net, self.readout = net, net.readout
        self.tape: dict[Tensor, Pairs] = {}
        self._flat = net.config.dims == 1

    def check(self, inputs: Tensor) -> None:
        """As the network itself."""
        self.net.check(inputs)

    def read(self, inputs: Tensor) -> Tensor | None:
        """The recall term, once a problem."""
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
            width = recall.width
            images = convolve(
                images, recall.weight, self.tape, width, memory, self.net.config.recall_relu
            )
        for block in self.net.block:
            if isinstance(block, ResidualBlock):
                images = residual(images, block.conv1.weight, block.conv2.weight, self.tape)
        return images.squeeze(2) if self._flat else images

    def flush(self) -> None:
        """Compute the gradients of the kernels that iterations left on the tape, and add them."""
        for weight, pairs in self.tape.items():
            gradient = _weight_gradient(weight, pairs)
            weight.grad = gradient if weight.grad is None else weight.grad + gradient
        self.tape.clear()

    def parameters(self) -> Any:
        """The network's weights."""
        return self.net.parameters()

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


def _weight_gradient(weight: Tensor, pairs: Pairs) -> Tensor:
    """One convolution over all iterations; zero for the recall kernel's part of the problem."""
    inputs = torch.cat([x for x, _ in pairs]) if len(pairs) > 1 else pairs[0][0]
    outputs = torch.cat([g for _, g in pairs]) if len(pairs) > 1 else pairs[0][1]
    kernel = _kernel(weight, inputs.shape[1])
    made: Tensor = torch.ops.aten.convolution_backward(
        outputs, inputs, kernel, None, [1, 1], _padding(kernel), [1, 1], False, [0, 0], 1,
        [False, True, False],
    )[1]  # fmt: skip
    flat = made.squeeze(2) if weight.dim() == 3 else made
    if flat.shape == weight.shape:
        return flat
    whole = torch.zeros_like(weight)
    whole[:, : flat.shape[1]] = flat
    return whole


class _Conv(Function):
    """relu?(conv(x) + memory), the kernel's gradient left on the tape."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, tape: dict[Tensor, Pairs], width: int,
        memory: Tensor, relu: bool,
    ) -> Tensor:  # fmt: skip
        kernel = _kernel(weight, width)
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
        ctx.tape.setdefault(ctx.weight, []).append((x, g))
        back = _input_gradient(g, x, kernel) if ctx.needs_input_grad[0] else None
        return back, None, None, None, g, None


class _Block(Function):
    """relu(x + conv2(relu(conv1(x)))), the kernels' gradients left on the tape."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, first: Tensor, second: Tensor, tape: dict[Tensor, Pairs]
    ) -> Tensor:
        kernel1, kernel2 = _kernel(first), _kernel(second)
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
        ctx.tape.setdefault(ctx.weights[1], []).append((inner, outer))
        ctx.tape.setdefault(ctx.weights[0], []).append((x, middle))
        back = _input_gradient(middle, x, kernel1).add_(outer)
        return back, None, None, None


def can_fuse(net: object) -> bool:
    """Whether `Fused` computes the same as this network."""
    return (
        isinstance(net, DeepThinking) and not net.config.group_norm and isinstance(net, nn.Module)
    )
