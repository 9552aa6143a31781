"""The fused form of a local rule for a GPU: one kernel per iteration, in blocks of iterations.

    >>> fast = FusedRule(net)
    >>> last(think(fast, inputs, steps=1000)).prediction     # as by the rule itself

A rule of some hundred parameters takes a GPU less time than a kernel takes to launch. So gathering,
both layers, tanh and the largest change of every sample are one Triton kernel, launched for a block
of iterations before anything is read. While halting rules look at the changes of one block on the
CPU, the GPU computes the next. Iterations that are no longer needed are discarded.

Shapes: B batch, W width, N rows of a sample, A iterations of a block.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn

from iterant.nets.fast.sparse import Cells, PackedRule
from iterant.nets.local_rule import LocalRule

_AHEAD = 32
"""Most iterations of a block"""
_BYTES = 1 << 27
"""Largest size of a block's features"""


class _Block:
    """Consecutive iterations, computed ahead of the caller."""

    def __init__(self, features: Tensor, changes: Tensor) -> None:
        """``features`` (A, B, N, W); ``changes`` (A, B): the largest change of each sample."""
        self.features, self.changes, self.each = features, changes, features.unbind()
        self._on_cpu = changes.to("cpu", non_blocking=True)
        event: Any = torch.cuda.Event  # torch leaves it untyped
        self._copied = event() if changes.is_cuda else None
        if self._copied is not None:
            self._copied.record()

    @cached_property
    def on_cpu(self) -> tuple[Tensor, ...]:
        """(B,) on the CPU: the changes of each iteration; waits until they are computed."""
        if self._copied is not None:
            self._copied.synchronize()
        return self._on_cpu.unbind()

    def select(self, first: int, which: Tensor) -> _Block:
        """Some samples, from an iteration on."""
        return _Block(self.features[first:, which], self.changes[first:, which])


class FusedRule(PackedRule):
    """A local rule in float32 on a GPU."""

    _block: _Block
    _next: _Block | None
    """The block after that, once the caller has gone on from features of this one"""
    _returned: int
    """How many iterations of the block have been returned"""
    _table: Tensor
    """(B, N, R) int32: what every cell reads"""

    def __init__(self, net: LocalRule) -> None:
        super().__init__(net)
        self._padded = (_padded(self._sight), _padded(self._mix), _padded(self._bias[None])[0])

    def step(self, features: Tensor, memory: Tensor | None, index: int) -> Tensor:
        self._check_memory(memory)
        if features is not self._features:
            self._block = self._launch(self._with_walls(features).contiguous())
            self._next, self._returned = None, 0
        else:
            if self._returned == len(self._block.each):
                self._block = self._next or self._launch(features)
                self._next, self._returned = None, 0
            self._next = self._next or self._launch(self._block.each[-1])
        self._features = self._block.each[self._returned]
        self.last_change = self._block.on_cpu[self._returned]
        self._returned += 1
        return self._features

    def select_samples(self, which: Tensor, inputs: Tensor, features: Tensor) -> None:
        if self._features is not None:
            super().select_samples(which, inputs, features)
            self._block = self._block.select(self._returned, which)
            self._next = None if self._next is None else self._next.select(0, which)
            self._returned = 0

    def _set_tables(self, inputs: Tensor, cells: Cells, memory: Tensor) -> None:
        super()._set_tables(inputs, cells, memory)
        self._table = self._read_index().to(torch.int32)
        self._recall_term = memory[..., :-1].contiguous()
        self._cell_mask = self._is_cell.to(memory.dtype)

    def _launch(self, features: Tensor) -> _Block:
        """The next iterations from these features."""
        count = max(1, min(_AHEAD, _BYTES // (features.numel() * features.element_size() or 1)))
        block = features.new_empty(count, *features.shape)
        # Rows of a multiple of 16 bytes: the kernel is compiled once, for aligned pointers.
        changes = features.new_zeros(count, -(-len(features) // 4) * 4)
        self._run_iterations(features, block.unbind(), changes.unbind())
        return _Block(block, changes[:, : len(features)])

    def _run_iterations(
        self, features: Tensor, following: Sequence[Tensor], changes: Sequence[Tensor]
    ) -> None:
        """Write the features of the next iterations, and the largest changes of every sample."""
        # Imported here: it needs Triton, which only GPU builds of PyTorch bring along.
        from iterant.nets.fast.rule_kernel import launch_iterations

        tables = (self._table, self._recall_term, self._cell_mask, *self._padded)
        launch_iterations(features, following, changes, *tables, self._part_channels)


def _padded(matrix: Tensor) -> Tensor:
    """With zeros to sides that a block of the kernel can have: powers of 2, at least 16."""
    sides = [max(16, 1 << (side - 1).bit_length()) for side in matrix.shape]
    down, right = (padded - side for padded, side in zip(sides, matrix.shape, strict=True))
    return nn.functional.pad(matrix, (0, right, 0, down)).contiguous()
