"""The rule of messages on open squares only: the same states several times sooner.

    net = OpenSquares(iterant.load("mazes"))

A square reads four messages and nothing else of a state, so most of an image need not be touched.
States equal the network's own up to rounding, which `difference` measures.

Shapes: B batch, W width, H hidden, *Q space in squares, N open squares of all problems together.
"""

from __future__ import annotations

import torch

import iterant
from iterant.nets.local_rule import OWN_WIDTH, Shares


class OpenSquares:
    """A network for the engine that steps as the given one does."""

    depth = None

    def __init__(self, net):
        """Write the weights down that a message passes through."""
        self.net, self.config, self.readout = net, net.config, net.readout
        self.check, self.start, self.answer = net.check, net.start, net.answer
        plain, width = net.written_out(), net.config.width
        sides = 2 * net.config.dims
        shares = Shares.of(width, sides, OWN_WIDTH)
        # The neighbour on a side speaks to me on its opposite side.
        self.heard = [slice(part.start, part.stop) for part in map(shares.of_side, (1, 0, 3, 2))]
        sight = plain.sight.weight.flatten(1).unflatten(1, (1 + sides, width))
        self.sight = torch.cat([sight[:, 1 + s, self.heard[s]] for s in range(sides)], dim=1).T
        self.mix, self.bias = plain.mix.weight.flatten(1).T, plain.mix.bias

    @torch.no_grad()
    def read(self, inputs):
        """(B, H + 1, *Q), as the network does; the open squares are noted on the way."""
        memory = self.net.read(inputs)
        self.places = memory[:, -1].flatten().nonzero().flatten()
        self.term = memory[:, :-1].movedim(1, -1).flatten(0, -2)[self.places]
        across = memory.shape[-1]
        # All around lies a wall, so every neighbour of an open square is in the image.
        self.beside = [self.places + offset for offset in (-across, across, -1, 1)]
        return memory

    @torch.no_grad()
    def step(self, features, memory, index):
        """One iteration."""
        rows = features.movedim(1, -1).flatten(0, -2)
        pairs = zip(self.beside, self.heard, strict=True)
        told = torch.cat([rows[:, part][beside] for beside, part in pairs], dim=1)
        hidden = torch.addmm(self.term, told, self.sight).relu_()
        made = torch.zeros_like(rows)
        made[self.places] = torch.addmm(self.bias, hidden, self.mix).tanh_()
        return made.view(features.movedim(1, -1).shape).movedim(-1, 1)


@torch.no_grad()
def difference(net, inputs, steps=30):
    """How far the states of the two are apart after some iterations, at most."""
    mine, own = (
        iterant.last(iterant.think(one, inputs, steps=steps)).features
        for one in (OpenSquares(net), net)
    )
    return float((mine - own).abs().max())
