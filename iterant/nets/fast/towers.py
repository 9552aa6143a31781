"""Feed-forward networks on strings, computed as fast as the recurrent ones.

    >>> fast = FusedTower(net)
    >>> states = fast.stretch(fast.start(x), None, 30)
    >>> loss(fast.answer(states[-1]), y).backward()
    >>> fast.flush()

As `strings.py`, but every iteration has kernels of its own, so that no program can run
many of them; the gradients of all kernels are still one product. There is no form with recall.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeGuard

import torch
from torch import Tensor
from torch.autograd import Function

from iterant.errors import NetError
from iterant.formatting import counted
from iterant.nets.deep_thinking import FeedForward
from iterant.nets.fast.deep_thinking import Fused
from iterant.nets.fast.hopper.layers import RowLayer
from iterant.nets.fast.hopper.rows import Rows
from iterant.nets.fast.strings import FusedStrings, arrive, can_string, fused


class FusedTower(FusedStrings):
    """`FusedStrings` for feed-forward networks without recall."""

    repeats = False

    def __init__(self, net: FeedForward) -> None:
        """Wrap a network; it goes on holding the weights."""
        super().__init__(net)
        self.height = len(net.blocks)

    def step(self, features: Tensor, memory: Tensor | None, index: int) -> Tensor:
        """Iteration ``index``."""
        return self.segment(features, memory, 1, index)[-1]

    def segment(
        self, features: Tensor, memory: Tensor | None, count: int, done: int = 0
    ) -> tuple[Tensor, ...]:
        """The features after each of ``count`` iterations; without gradients, after the last."""
        if done + count > self.height:
            raise NetError(
                f"this network has {counted(self.height, 'iteration')}, asked for iteration "
                f"{done + count}; ask for at most {self.height - done} more"
            )
        each = len(self.looping) // self.height
        layers = self.looping[done * each : (done + count) * each]
        run: Any = _Climb.apply  # torch leaves it untyped
        made: tuple[Tensor, ...] = run(features, self._token, self.tape, layers, each)
        return made if torch.is_grad_enabled() else made[-1:]


def fastest(net: object) -> Fused | None:
    """The fastest form in which a network can be trained; None where there is none."""
    return FusedTower(net) if _can_climb(net) else fused(net)


def _can_climb(net: object) -> TypeGuard[FeedForward]:
    """Whether `FusedTower` computes the same, and faster."""
    if type(net) is not FeedForward or net.recall is not None or net.config.group_norm:
        return False
    return can_string(net)


class _Climb(Function):
    """Residual blocks one after the other, the kernels' gradients left on the tape."""

    @staticmethod
    def forward(
        ctx: Any, features: Tensor, token: Tensor, tape: Any, layers: Sequence[RowLayer], each: int
    ) -> tuple[Tensor, ...]:
        rows, width = Rows.of(features), features.shape[1]
        inputs = features.new_empty(len(layers) + 1, rows.count, width)
        inputs[0].zero_()
        rows.unpack(inputs[0]).copy_(features)
        for at in range(0, len(layers), 2):
            x, inner, y = inputs[at : at + 3].unbind()
            rows.convolve(x, layers[at].kernel, inner, relu=True)
            rows.convolve(inner, layers[at + 1].kernel, y, added=x, relu=True)
        ctx.tape, ctx.layers, ctx.rows, ctx.inputs, ctx.each = tape, layers, rows, inputs, each
        ctx.set_materialize_grads(False)
        return tuple(rows.unpack(inputs[at]) for at in range(each, len(layers) + 1, each))

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> Any:
        rows, inputs, layers, each = ctx.rows, ctx.inputs, ctx.layers, ctx.each
        # made[at] is the gradient of what enters layer at, before the ReLU that made it.
        made = torch.empty_like(inputs)
        made[-1].zero_()
        for at in range(len(layers), 0, -2):
            arriving = gradients[at // each - 1] if at % each == 0 else None
            if arriving is not None:
                part = torch.empty_like(arriving)
                arrive(arriving, rows.unpack(inputs[at]), part)
                rows.unpack(made[at]).add_(part)
            back, inner = layers[at - 1].backward_kernel, made[at - 1]
            rows.convolve(made[at], back, inner, sign=inputs[at - 1])
            # The features that came in were made elsewhere: no ReLU of ours.
            sign = inputs[at - 2] if at > 2 else None
            back = layers[at - 2].backward_kernel
            rows.convolve(inner, back, made[at - 2], added=made[at], sign=sign)
        ctx.tape.put_stack(layers, inputs[:-1], made[1:])
        return rows.unpack(made[0]), None, None, None, None
