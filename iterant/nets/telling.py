"""Thinking with messages only where one still changes, and without the rule's zeros.

    >>> thinking = attentive(net, batch.inputs)      # Telling for a rule with messages, else Active
    >>> thinking.go_on(5000)

In a rule with messages a square sees nothing of itself, so it needs to be computed again only if
a neighbour tells *it* something new. And most of the rule's weights are zero: what is left is a
small layer for every side, the same for all, over the sum of what the other sides told.

Shapes: W width, D sides of a square, E numbers of a message, N open squares, n those awake.
"""

from __future__ import annotations

import torch
from torch import Tensor

from iterant.nets.active import TOLERANCE, Active
from iterant.nets.grouped import fits
from iterant.nets.local_rule import OWN_WIDTH, Layers, LocalRule, sums_of_others


class Telling(Active):
    """Problems being thought about by a rule with messages whose sides are alike."""

    @torch.no_grad()
    def __init__(self, net: LocalRule, inputs: Tensor, tolerance: float = TOLERANCE) -> None:
        """Begin to think about these problems."""
        super().__init__(net, inputs, tolerance)
        layers = Layers.of(net)
        self._sides, self._own, own = layers.state.sides, layers.state.own, layers.hidden.own
        self._tells, self._told = layers.tells.T.contiguous(), layers.told.T.contiguous()
        self._keeps, self._kept = layers.keeps.T.contiguous(), layers.kept.T.contiguous()
        self._bias, self._own_bias = layers.bias, layers.own_bias
        self._own_term = self._term[:, :own].contiguous()
        self._side_term = self._term[:, own:].contiguous()
        # What squares hold is a table of messages, a square's own numbers counting as OWN_WIDTH of
        # them. The neighbour on a side speaks to me on its opposite side.
        self._rows = OWN_WIDTH + self._sides
        said = OWN_WIDTH + (torch.arange(self._sides, device=inputs.device) ^ 1)
        self._from = self._beside * self._rows + said

    def _step(self) -> None:
        awake, held = self._awake, self._held
        count, everybody = len(awake), len(awake) == self.squares

        def of(table: Tensor) -> Tensor:
            return table[: self.squares] if everybody else table.index_select(0, awake)

        asked = of(self._from)
        messages = held.view(len(held) * self._rows, -1)
        heard = messages.index_select(0, asked.flatten()).view(count, self._sides, -1)
        others = torch.stack(sums_of_others(heard.unbind(1)), dim=1)
        inner = (others.flatten(0, 1) @ self._tells).view(count, -1).add_(of(self._side_term))
        told = torch.addmm(self._bias, inner.relu_().view(-1, len(self._told)), self._told)
        mine = torch.addmm(of(self._own_term), others[:, 0] + heard[:, 0], self._keeps).relu_()
        mine = torch.addmm(self._own_bias, mine, self._kept)
        new = torch.cat([mine, told.view(count, -1)], dim=1).tanh_()
        apart = (new - of(held)).abs_()
        # What is no number never rests.
        news = ~(apart[:, self._own :].view(heard.shape).amax(dim=2) <= self.tolerance)
        self.moved = float(apart.max())
        if everybody:
            held[:-1] = new
        else:
            held.index_copy_(0, awake, new)
        self.steps += 1
        self.worked += count
        if not self.moved <= self.tolerance:
            self.last = self.steps
        wake = torch.zeros(len(held), dtype=torch.bool, device=held.device)
        wake[asked[news].div_(self._rows, rounding_mode="floor")] = True
        self._awake = wake[:-1].nonzero().flatten()


def attentive(net: LocalRule, inputs: Tensor, tolerance: float = TOLERANCE) -> Active:
    """The way to think only where something changes that suits this rule."""
    return (Telling if fits(net) else Active)(net, inputs, tolerance)
