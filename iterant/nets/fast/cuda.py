"""The fused form of a local rule for a GPU: one kernel an iteration, several iterations at a time.

    >>> fast = FusedRule(net)
    >>> last(think(fast, inputs, steps=1000)).prediction     # as by the rule itself

A rule of some hundred parameters takes a GPU less time than a kernel takes to launch. So gathering,
both layers, tanh and the largest change of every sample are one Triton kernel, and it is launched
for 16 iterations ahead before their changes are copied to the CPU, where halting rules look at
them: a GPU is waited for once in 16 iterations. Iterations that nobody asks for any more are lost.

Shapes: B batch, W width, N rows of a sample, A iterations computed ahead.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from typing import TypeGuard

import torch
from torch import Tensor, nn

from iterant.nets.fast.packed import PackedRule
from iterant.nets.local_rule import LocalRule

_AHEAD = 16
_BYTES = 1 << 28
"""Of the features computed ahead, at most"""


class FusedRule(PackedRule):
    """A local rule in float32 on a GPU."""

    _block: Tensor
    """(A, B, N, W): features computed ahead"""
    _moves: Tensor
    """(A, B): the largest change of each sample in each of those iterations, on the CPU"""
    _place: int
    """How many of them have been returned"""
    _table: Tensor
    """(B, N, R) int32: what every cell reads"""

    @torch.no_grad()
    def step(self, features: Tensor, memory: Tensor | None, index: int) -> Tensor:
        """One iteration; ``memory`` is what `read` returned last."""
        self._check_memory(memory)
        if features is not self._features:
            # Somebody else's features: rows without a cell must be zero, as walls are.
            self._compute_ahead((features * self._is_cell).contiguous())
        elif self._place == len(self._block):
            self._compute_ahead(features)
        self._features, self.moved = self._block[self._place], self._moves[self._place]
        self._place += 1
        return self._features

    def read(self, inputs: Tensor) -> Tensor:
        """What every cell makes of the problem, (B, N, H)."""
        if inputs is not self._inputs:
            super().read(inputs)
            self._memory = self._memory.contiguous()
            self._table = self._reads().to(torch.int32)
        return self._memory

    def keep(self, which: Tensor, inputs: Tensor, features: Tensor) -> None:
        """Go on with some samples: these rows of the inputs read last and of the last features."""
        if self._features is not None:
            self._table = self._table[which]
            super().keep(which, inputs, features)
            self._block = self._block[self._place :, which]
            self._moves = self._moves[self._place :, which.cpu()]
            self._place = 0

    def _compute_ahead(self, features: Tensor) -> None:
        """The next iterations from these features, and how far each moves every sample."""
        count = max(1, min(_AHEAD, _BYTES // (features.numel() * features.element_size() or 1)))
        self._block = features.new_empty(count, *features.shape)
        # Rows of a multiple of 16 bytes: the kernel is compiled once, for aligned pointers.
        changes = features.new_zeros(count, -(-len(features) // 4) * 4)
        self._launch(features, self._block.unbind(), changes.unbind())
        self._moves = changes[:, : len(features)].cpu()
        self._place = 0

    def _launch(
        self, features: Tensor, following: Sequence[Tensor], moved: Sequence[Tensor]
    ) -> None:
        """Write the features of the next iterations, and the largest changes of every sample."""
        # Imported here: it needs Triton, which only GPU builds of PyTorch bring along.
        from iterant.nets.fast.rule_kernel import iterate

        iterate(features, following, moved, self._table, self._memory, self._is_cell,
                *self._padded, self._each)  # fmt: skip

    def _load_weights(self, net: LocalRule) -> None:
        super()._load_weights(net)
        self._padded = (_padded(self._sight), _padded(self._mix), _padded(self._bias[None])[0])


def _padded(matrix: Tensor) -> Tensor:
    """With zeros to sides that a block of the kernel can have: powers of 2, at least 16."""
    sides = [max(16, 1 << (side - 1).bit_length()) for side in matrix.shape]
    down, right = (wanted - side for wanted, side in zip(sides, matrix.shape, strict=True))
    return nn.functional.pad(matrix, (0, right, 0, down)).contiguous()


def can_fuse_rule(net: object, inputs: Tensor) -> TypeGuard[LocalRule]:
    """Whether the fused form computes the same: a local rule in float32, and Triton is there."""
    return (
        type(net) is LocalRule
        and inputs.is_cuda
        and net.head.weight.dtype == torch.float32
        and importlib.util.find_spec("triton") is not None
    )
