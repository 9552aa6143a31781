"""Convolutions of strings as matrix products, written in Triton for Hopper GPUs.

    >>> convolve(x, kernel, out, strings=100, period=33, relu=True)     # out is written

A batch of strings is a matrix with one row per position, and a row of zeros between two strings
(`iterant.nets.fast.strings.Rows`). Three consecutive rows are then 3 C contiguous numbers, so that
the unfolded input of a convolution is the same memory read with overlapping strides: the GPU's copy
engine does the unfolding, and a convolution is one matrix product with its additions and masks.

Importing this needs Triton; nothing but `iterant.nets.fast.strings` imports it.
"""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl
from torch import Tensor
from triton.tools.tensor_descriptor import TensorDescriptor

from iterant.nets.fast.strings import TILE

_DEPTH = 64
"""Terms of the matrix product that a step of its loop adds."""
_WIDER = 256
"""Output channels of a tile of a kernel's gradient."""


def _convolution(
    x: tl.tensor,
    kernel: tl.tensor,
    added: tl.tensor,
    sign: tl.tensor,
    out: tl.tensor,
    base: tl.tensor,
    depth: tl.tensor,
    width: tl.tensor,
    end: tl.tensor,
    period: tl.tensor,
    relu: tl.tensor,
    adds: tl.tensor,
    signs: tl.tensor,
    high: tl.constexpr,
    wide: tl.constexpr,
    deep: tl.constexpr,
) -> None:
    """out[r] = (x[r-1], x[r], x[r+1]) @ kernel' + added[r], by ReLU or where sign[r] > 0."""
    # One program computes a tile (high, wide) of ``out``. Row ``first`` of the descriptors is row
    # first + 1 of the matrices: row 0 stands before the first string and has no left neighbour.
    first = tl.program_id(0) * high
    column = tl.program_id(1) * wide
    total = tl.zeros((high, wide), dtype=tl.float32)
    if adds:
        total = added.load([first, column]).to(tl.float32)
    for k in range(0, depth, deep):
        total = tl.dot(x.load([first, k]), kernel.load([column, k]).T, total)
    if relu:
        total = tl.where(total < 0, 0.0, total)  # NaN stays
    if signs:
        total = tl.where(sign.load([first, column]) > 0, total, 0.0)
    # Rows between strings, and those after the last, must stay zero.
    row = first + 1 + tl.arange(0, high)
    real = (row % period != 0) & (row < end)
    out.store([first, column], tl.where(real[:, None], total, 0.0).to(out.dtype))
    if first == 0:  # row 0, which no tile covers
        col = column + tl.arange(0, wide)
        zeros = tl.zeros((wide,), dtype=tl.float32)
        tl.store(base + col, zeros.to(out.dtype), mask=col < width)


def _kernel_gradient(
    x: tl.tensor,
    gradient: tl.tensor,
    out: tl.tensor,
    rows: tl.tensor,
    depth: tl.tensor,
    width: tl.tensor,
    high: tl.constexpr,
    wide: tl.constexpr,
    deep: tl.constexpr,
) -> None:
    """out[layer, n, j] = the sum over the layer's rows r of gradient[r, n] (x[r-1 … r+1])[j]."""
    # One program computes a tile (high, wide) of one layer's gradient, transposed: (3 C, N).
    first = tl.program_id(0) * high
    column = tl.program_id(1) * wide
    layer = tl.program_id(2)
    total = tl.zeros((high, wide), dtype=tl.float32)
    for row in range(layer * rows, (layer + 1) * rows, deep):
        total = tl.dot(x.load([row, first]).T, gradient.load([row, column]), total)
    j = first + tl.arange(0, high)
    n = column + tl.arange(0, wide)
    place = (layer * width + n).to(tl.int64)[None, :] * depth + j[:, None]
    tl.store(out + place, total, mask=(j < depth)[:, None] & (n < width)[None, :])


_CONVOLUTION: Any = triton.jit(
    _convolution,
    do_not_specialize=["depth", "width", "end", "period", "relu", "adds", "signs"],
)
_KERNEL_GRADIENT: Any = triton.jit(_kernel_gradient, do_not_specialize=["rows", "depth", "width"])


def convolve(
    x: Tensor,
    kernel: Tensor,
    out: Tensor,
    *,
    strings: int,
    period: int,
    added: Tensor | None = None,
    sign: Tensor | None = None,
    relu: bool = False,
) -> None:
    """Write conv(x) + added into ``out``, by ReLU or zero where ``sign`` is not positive.

    x (R, C), kernel (N, 3 C), all others (R, N). Rows that are not positions become zero.
    """
    high, wide, deep = TILE, TILE, _DEPTH
    rows, channels = x.shape
    width, depth = out.shape[1], 3 * channels

    def tiles(of: Tensor | None) -> TensorDescriptor:
        # A kernel needs a descriptor even where there is no tensor: it is then not read.
        block = (out if of is None else of)[1:]
        return TensorDescriptor(block, [rows - 1, width], [width, 1], [high, wide])

    _CONVOLUTION[(triton.cdiv(rows, high), triton.cdiv(width, wide))](
        # Rows overlap: three neighbours are 3 C contiguous numbers, and the next row is C further.
        TensorDescriptor(x, [rows - 2, depth], [channels, 1], [high, deep]),
        TensorDescriptor(kernel, list(kernel.shape), [depth, 1], [wide, deep]),
        tiles(added),
        tiles(sign),
        tiles(out),
        out,
        depth,
        width,
        strings * period,
        period,
        int(relu),
        int(added is not None),
        int(sign is not None),
        high,
        wide,
        deep,
        num_warps=8,
        num_stages=4,
    )


def kernel_gradients(
    x: Tensor,
    gradient: Tensor,
    out: Tensor,
) -> None:
    """Write the gradients of some layers' kernels into ``out`` (layers, N, 3 C), in float32.

    x (layers, R, C) are the layers' inputs, gradient (layers, R, N) those of their outputs; both
    are zero in rows that are not positions, and R is a multiple of `TILE`.
    """
    high, wide, deep = TILE, _WIDER, _DEPTH
    layers, rows, channels = x.shape
    width, depth = gradient.shape[2], 3 * channels
    after = gradient.view(layers * rows, width)[1:]
    _KERNEL_GRADIENT[(triton.cdiv(depth, high), triton.cdiv(width, wide), layers)](
        TensorDescriptor(x, [layers * rows - 2, depth], [channels, 1], [deep, high]),
        TensorDescriptor(after, [layers * rows - 1, width], [width, 1], [deep, wide]),
        out,
        rows,
        depth,
        width,
        high,
        wide,
        deep,
        num_warps=8,
        num_stages=4,
    )
