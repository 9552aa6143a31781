"""A maze network built by hand: it fills dead ends, and what is left is the way.

Every iteration takes away each open square that has fewer than two neighbours left, but for the
ends. In a maze without loops the way is all that remains; with loops, loops remain too.

Shapes: B mazes, *Q space in squares, *S in pixels.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from iterant.nets import ArgmaxOpen


class DeadEnds(nn.Module):
    """Right on every maze without loops, after as many iterations as its longest dead end."""

    readout = ArgmaxOpen()

    def read(self, inputs: Tensor) -> Tensor:
        squares = functional.max_pool2d(inputs, 2, stride=2, padding=1)
        is_open = (squares > 0).any(dim=1, keepdim=True)
        is_free = (squares > 0).all(dim=1, keepdim=True)
        return torch.cat([is_open, is_open & ~is_free], dim=1).to(inputs.dtype)

    def start(self, inputs: Tensor) -> Tensor:
        return self.read(inputs)[:, :1]

    def step(self, features: Tensor, memory: Tensor | None, index: int) -> Tensor:
        assert memory is not None
        padded = functional.pad(features, (1, 1, 1, 1))
        around = (
            padded[..., :-2, 1:-1]
            + padded[..., 2:, 1:-1]
            + padded[..., 1:-1, :-2]
            + padded[..., 1:-1, 2:]
        )
        return features * ((around >= 2) | (memory[:, 1:] > 0))

    def answer(self, features: Tensor) -> Tensor:
        pixels = features.repeat_interleave(2, dim=2).repeat_interleave(2, dim=3)
        on_way = 8 * pixels[..., 1:-1, 1:-1] - 4
        return torch.cat([-on_way, on_way], dim=1)
