"""One iteration of a local rule as one Triton kernel.

Importing this needs Triton; nothing but `iterant.nets.fast.cuda` imports it.

Shapes: B batch, N rows of a sample, W width, H hidden, R parts of rows that a cell reads, E numbers
of a part.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import triton
import triton.language as tl
from torch import Tensor

_ROWS = 64
"""Cells of a program."""
_HIDDEN = 16
"""Hidden channels of a step of its loop: the hidden layer is never stored as a whole."""


def _step_kernel(
    features: tl.tensor,
    following: tl.tensor,
    changes: tl.tensor,
    reads: tl.tensor,
    term: tl.tensor,
    is_cell: tl.tensor,
    sight: tl.tensor,
    mix: tl.tensor,
    bias: tl.tensor,
    rows: tl.tensor,
    parts: tl.constexpr,
    each: tl.constexpr,
    width: tl.constexpr,
    hidden: tl.constexpr,
    seen_pad: tl.constexpr,
    hidden_pad: tl.constexpr,
    width_pad: tl.constexpr,
    high: tl.constexpr,
    deep: tl.constexpr,
) -> None:
    """following = tanh(relu(features[reads] @ sight + term) @ mix + bias), 0 outside of cells."""
    # One program computes ``high`` cells of one sample. Sizes with _pad are powers of 2.
    sample = tl.program_id(1).to(tl.int64)
    cell = tl.program_id(0) * high + tl.arange(0, high)
    inside = cell < rows
    row = (sample * rows + cell)[:, None]
    origin = features + sample * rows * width
    number, w = tl.arange(0, seen_pad), tl.arange(0, width_pad)
    there = inside[:, None] & (number < parts * each)[None, :]
    # (high, seen_pad): the numbers that every cell reads, gathered part by part
    part = tl.load(reads + row * parts + (number // each)[None, :], mask=there, other=0)
    seen = tl.load(origin + part * each + (number % each)[None, :], mask=there, other=0.0)
    # (high, width_pad): the second layer, summed over blocks of hidden channels
    total = tl.zeros((high, width_pad), dtype=tl.float32) + tl.load(bias + w)[None, :]
    for first in tl.static_range(0, hidden, deep):
        h = first + tl.arange(0, deep)
        known = inside[:, None] & (h < hidden)[None, :]
        inner = tl.load(term + row * hidden + h[None, :], mask=known, other=0.0)
        weights = tl.load(sight + number[:, None] * hidden_pad + h[None, :])
        inner = tl.dot(seen, weights, inner, input_precision="ieee")
        inner = tl.where(inner < 0, 0.0, inner)  # NaN stays
        weights = tl.load(mix + h[:, None] * width_pad + w[None, :])
        total = tl.dot(inner, weights, total, input_precision="ieee")
    new = 1.0 - 2.0 / (tl.exp(2.0 * total) + 1.0)  # tanh
    real = tl.load(is_cell + row, mask=inside[:, None], other=0.0)
    new = tl.where(real > 0, new, 0.0)
    stored = inside[:, None] & (w < width)[None, :]
    before = tl.load(features + row * width + w[None, :], mask=stored, other=0.0)
    tl.store(following + row * width + w[None, :], new, mask=stored)
    change = tl.abs(new - before)
    change = tl.where(change == change, change, float("inf"))  # a maximum would pass NaN over
    change = tl.where(stored, change, 0.0)
    tl.atomic_max(changes + sample, tl.max(tl.max(change, axis=1), axis=0))


_kernel: Any = triton.jit(do_not_specialize=["rows"])(_step_kernel)
_compiled: dict[tuple[object, ...], Any] = {}


def launch_iterations(
    features: Tensor,
    following: Sequence[Tensor],
    changes: Sequence[Tensor],
    reads: Tensor,
    term: Tensor,
    is_cell: Tensor,
    sight: Tensor,
    mix: Tensor,
    bias: Tensor,
    each: int,
) -> None:
    """Iterate from ``features`` (B, N, W) and write the features of every ``following`` iteration.

    ``changes`` are zeros before, and the largest changes of every sample after. ``reads`` (B, N, R)
    int32 counts parts of ``each`` numbers within a sample; ``term`` is (B, N, H), ``is_cell``
    (B, N, 1). Weights are padded with zeros to powers of 2.
    """
    count, rows, width = features.shape
    parts, hidden = reads.shape[2], term.shape[2]
    grid = (triton.cdiv(rows, _ROWS), count, 1)
    sizes = (rows, parts, each, width, hidden, *sight.shape, mix.shape[1], _ROWS, _HIDDEN)
    # The compiled kernel launches in less time. It takes all pointers to be aligned to 16 bytes, as
    # those of the first call are; later ones are too if a row of features is.
    key = (features.device, *sizes[1:])
    for after, change in zip(following, changes, strict=True):
        launch = _compiled.get(key, _kernel)[grid]
        kernel = launch(features, after, change, reads, term, is_cell, sight, mix, bias, *sizes)
        if kernel is not None and width % 4 == 0:
            _compiled[key] = kernel
        features = after
