"""The convolutions of a network on strings: their kernels as rows want them, and their gradients.

>>> layer = RowLayer(Layer(net.projection.weight))
>>> rows.convolve(x, layer.kernel, out)
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from iterant.nets.fast.deep_thinking import Layer, Tape
from iterant.nets.fast.hopper.program import tiled
from iterant.nets.fast.hopper.rows import aligned, kernel_gradients


class RowLayer(Layer):
    """One convolution of rows: its kernel (N, 3 C), and that of the gradients (C, 3 N)."""

    def __init__(self, part: Layer) -> None:
        """The same part of the same weight."""
        super().__init__(part.weight, part.first, part.last)
        self.back: Tensor | None = None
        self.tiles: tuple[Tensor, Tensor] | None = None

    @property
    def inputs(self) -> int:
        """Channels of the input's rows."""
        return aligned(self.last - self.first)

    @property
    def outputs(self) -> int:
        """Channels of the output's rows."""
        return aligned(self.weight.shape[0])

    def laid_out(self) -> Tensor:
        """(N, 3 C), the channels of one neighbour after the other's."""
        return _laid_out(self._part(), self.inputs)

    @property
    def backward_kernel(self) -> Tensor:
        """(C, 3 N): what carries the gradients of the outputs to the inputs."""
        return _laid_out(self._reverse(), self.outputs) if self.back is None else self.back

    def pin(self) -> None:
        """Lay both kernels out and keep them."""
        self.pinned, self.back = self.laid_out(), self.backward_kernel

    def tile(self) -> None:
        """Lay both kernels out as programs read them, and keep them instead."""
        self.tiles = (
            tiled(self._part(), self.inputs).contiguous(),
            tiled(self._part().transpose(0, 1), self.inputs).contiguous(),
        )

    def refresh(self) -> None:
        """Bring what is pinned up to date, in place."""
        if self.pinned is not None:
            _renew(self.pinned, self._part())
        if self.back is not None:
            _renew(self.back, self._reverse())
        if self.tiles is not None:
            self.tiles[0].copy_(tiled(self._part(), self.inputs))
            self.tiles[1].copy_(tiled(self._part().transpose(0, 1), self.inputs))

    def _part(self) -> Tensor:
        return self.weight.detach()[:, self.first : self.last]

    def _reverse(self) -> Tensor:
        return self._part().transpose(0, 1).flip(2)


class RowTape(Tape):
    """As `Tape`, for stacks of layers whose kernels are equally large."""

    def put_stack(self, layers: Sequence[RowLayer], x: Tensor, gradient: Tensor) -> None:
        """Leave the inputs (layers, R, C) and the gradients of the outputs (layers, R, N)."""
        self.beside(lambda: self._add_stack(layers, x, gradient), [x, gradient])

    @torch.no_grad()
    def _add_stack(self, layers: Sequence[RowLayer], x: Tensor, gradient: Tensor) -> None:
        for layer, made in zip(layers, kernel_gradients(x, gradient), strict=True):
            whole = made.view(gradient.shape[2], 3, x.shape[2]).transpose(1, 2)
            self.add(layer, whole[: layer.weight.shape[0], : layer.last - layer.first])


def _laid_out(part: Tensor, channels: int) -> Tensor:
    """(N, C, 3) as (N, 3 channels); the same memory where it lies so already."""
    if part.shape[1] == channels:
        return part.transpose(1, 2).reshape(len(part), -1)
    wide = part.new_zeros(len(part), 3, channels)
    wide[:, :, : part.shape[1]] = part.transpose(1, 2)
    return wide.view(len(part), -1)


def _renew(kernel: Tensor, part: Tensor) -> None:
    """Lay (N, C, 3) out in a kernel, unless it is the same memory."""
    outputs, channels, _ = part.shape
    if kernel.data_ptr() != part.data_ptr():
        kernel.view(outputs, 3, -1)[:, :, :channels].copy_(part.transpose(1, 2))
