"""Thinking with a local rule only where something still changes.

    >>> thinking = Active(net, batch.inputs)
    >>> thinking.go_on(5000)
    >>> net.answer(thinking.features)                # as after 5,000 plain iterations

What a square holds next depends on itself and its neighbours alone. Where none of them changed in
the last iteration, it needs not be computed again; walls never need to be. In a large maze a few
dozen computations a square take the place of thousands of iterations of all squares.

With ``tolerance=0`` this is the plain iteration up to the order of sums within a matrix product; a
square that changes by no more than the tolerance wakes nobody.

Shapes: B batch, W width, H hidden, *Q space in squares, N open squares of all problems together.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from iterant.nets.local_rule import LocalRule

TOLERANCE = 1e-5
"""Changes that wake nobody, where nobody says otherwise; features lie between -1 and 1."""


class Active:
    """Problems being thought about; nothing is differentiable here."""

    @torch.no_grad()
    def __init__(self, net: LocalRule, inputs: Tensor, tolerance: float = TOLERANCE) -> None:
        """Begin to think about these problems.

        ``steps`` counts iterations, ``worked`` squares computed, ``last`` is the last iteration in
        which anything changed, ``moved`` the largest change of a number in the latest one.
        """
        self.net, self.tolerance = net.written_out(), tolerance
        self.steps = self.worked = self.last = 0
        self.moved = 0.0
        memory = net.read(inputs)
        self._shape = (len(memory), *memory.shape[2:])
        is_open = memory[:, -1].bool()
        self._places = is_open.flatten().nonzero().flatten()
        self._term = memory[:, :-1].movedim(1, -1).flatten(0, -2)[self._places]
        count = len(self._places)
        self._beside = beside_of(is_open, count)
        # One row more: the wall, which is always zero.
        self._held = self._term.new_zeros(count + 1, net.config.width)
        self._awake = torch.arange(count, device=inputs.device)

    @property
    def resting(self) -> bool:
        """Whether no square has anything left to compute."""
        return len(self._awake) == 0

    @property
    def squares(self) -> int:
        """Open squares of all problems."""
        return len(self._places)

    @property
    def features(self) -> Tensor:
        """(B, W, *Q): what all squares hold."""
        return self.spread(self._held[:-1])

    @property
    def held(self) -> Tensor:
        """(N, W): what the open squares hold; the next iteration writes over it."""
        return self._held[:-1]

    def spread(self, held: Tensor) -> Tensor:
        """(B, W, *Q): what open squares hold, (N, W), among walls that hold nothing."""
        flat = held.new_zeros(math.prod(self._shape), held.shape[1])
        flat[self._places] = held
        return flat.view(*self._shape, -1).movedim(-1, 1)

    @torch.no_grad()
    def go_on(self, steps: int) -> None:
        """Think so many iterations more; they cost nothing once all squares rest."""
        for done in range(steps):
            if self.resting:
                self.steps += steps - done
                self.moved = 0.0
                return
            self._step()

    def _step(self) -> None:
        net, awake, held = self.net, self._awake, self._held
        beside = self._beside[awake]
        around = held[beside.flatten()].view(*beside.shape, -1)
        mine = held[awake]
        seen = around.sum(dim=1) if net.config.summed else around.flatten(1)
        hidden = torch.addmm(
            self._term[awake], torch.cat([mine, seen], dim=1), _matrix(net.sight.weight).T
        ).relu_()
        new = torch.addmm(_bias(net.mix.bias), hidden, _matrix(net.mix.weight).T).tanh_()
        apart = (new - mine).abs_().amax(dim=1)
        changed = ~(apart <= self.tolerance)  # what is no number never rests
        self.moved = float(apart.max())
        held[awake] = new
        self.steps += 1
        self.worked += len(awake)
        wake = torch.zeros(len(held), dtype=torch.bool, device=held.device)
        wake[awake[changed]] = True
        wake[beside[changed].flatten()] = True
        self._awake = wake[:-1].nonzero().flatten()
        if len(self._awake):
            self.last = self.steps


def beside_of(is_open: Tensor, count: int) -> Tensor:
    """(N, 2 dims): the numbers of each open square's neighbours; ``count`` where there is none."""
    numbers = torch.full(is_open.shape, count, device=is_open.device)
    numbers[is_open] = torch.arange(count, device=is_open.device)
    found = []
    for axis in range(1, is_open.dim()):
        for shift in (1, -1):
            # What rolls in at the edge comes from the other side: there is a wall instead.
            rolled = numbers.roll(shift, axis)
            rolled.select(axis, 0 if shift == 1 else -1).fill_(count)
            found.append(rolled[is_open])
    return torch.stack(found, dim=1)


def _matrix(weight: Tensor) -> Tensor:
    """The kernel of a 1×1 convolution as a matrix."""
    return weight.flatten(1)


def _bias(bias: Tensor | None) -> Tensor:
    if bias is None:
        raise TypeError("the mixing layer of a local rule has a bias")
    return bias
