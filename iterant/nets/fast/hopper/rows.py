"""Strings as rows of a matrix: the layout in which their convolutions are matrix products.

    >>> rows = Rows(strings=100, length=32)
    >>> y = rows.unpack(rows.convolve(rows.pack(x, 400), kernel, out))

A position is a row of channels; a row of zeros stands before the first string and after every
string, so that a position's neighbours are the rows beside it. The rest up to a whole number of
tiles is zero too. Convolutions keep all of these zero.

On a Hopper GPU with Triton the products are kernels of `kernels.py`; elsewhere they are plain
PyTorch, which is the reference for the kernels.

Shapes: B batch, L length, C and N channels of input and output, R rows.
"""

from __future__ import annotations

import functools
import importlib
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

_TILE = 128
_ALIGNED = 8
"""Channels come in multiples of this: the GPU's copy engine reads 16 bytes at a time."""


@functools.cache
def _kernels() -> Any:
    """The Triton kernels, or None where there is no Triton."""
    try:
        return importlib.import_module("iterant.nets.fast.hopper.kernels")
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

    @classmethod
    def of(cls, strings: Tensor) -> Rows:
        """The layout of a batch (B, C, L)."""
        return cls(strings.shape[0], strings.shape[2])

    @property
    def period(self) -> int:
        """Rows from the first of one string to the first of the next."""
        return self.length + 1

    @property
    def count(self) -> int:
        """The number of rows, a multiple of the tile."""
        return -(-(self.strings * self.period + 1) // _TILE) * _TILE

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
