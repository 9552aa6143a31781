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
from iterant.nets.grouped import Grouped, fits
from iterant.nets.local_rule import LocalRule


class Telling(Active):
    """Problems being thought about by a rule with messages whose sides are alike."""

    @torch.no_grad()
    def __init__(self, net: LocalRule, inputs: Tensor, tolerance: float = TOLERANCE) -> None:
        """Begin to think about these problems."""
        super().__init__(net, inputs, tolerance)
        rule = Grouped(net)
        self._shares, hidden = rule.state, rule.hidden
        sides, own = rule.sides, hidden.own
        self._tells = rule.tells[: hidden.each].flatten(1).T.contiguous()
        self._keeps = rule.keeps.flatten(1).T.contiguous()
        self._spoken = rule.told[: self._shares.each].flatten(1).T.contiguous()
        self._kept = rule.kept.flatten(1).T.contiguous()
        self._own_bias = rule.bias[: self._shares.own]
        self._bias = rule.bias[self._shares.own : self._shares.own + self._shares.each]
        self._own_term = self._term[:, :own].contiguous()
        self._side_term = self._term[:, own:].contiguous()
        count = self.squares + 1  # the last is the wall, which tells zeros
        self._mine = self._term.new_zeros(count, self._shares.own)
        self._told = self._term.new_zeros(count * sides, self._shares.each)
        # The neighbour on a side speaks to me on its opposite side.
        self._from = self._beside * sides + (torch.arange(sides, device=inputs.device) ^ 1)

    @property
    def features(self) -> Tensor:
        """(B, W, *Q): what all squares hold."""
        return self.spread(self.held)

    @property
    def held(self) -> Tensor:
        """(N, W): what the open squares hold now, as a copy."""
        told = self._told.view(len(self._mine), -1)
        return torch.cat([self._mine[:-1], told[:-1]], dim=1)

    def _step(self) -> None:
        awake = self._awake
        whole = len(awake) == self.squares

        def of(table: Tensor) -> Tensor:
            return table[: self.squares] if whole else table.index_select(0, awake)

        asked = of(self._from)
        heard = self._told.index_select(0, asked.flatten()).view(*asked.shape, -1)
        others = _sums_of_others(heard)
        inner = (others.flatten(0, 1) @ self._tells).view(len(awake), -1).add_(of(self._side_term))
        told = torch.addmm(self._bias, inner.relu_().view(-1, len(self._spoken)), self._spoken)
        told = told.tanh_().view(len(awake), -1)
        mine = torch.addmm(of(self._own_term), others[:, 0] + heard[:, 0], self._keeps).relu_()
        mine = torch.addmm(self._own_bias, mine, self._kept).tanh_()
        all_told = self._told.view(len(self._mine), -1)
        apart = (told - of(all_told)).abs_().view(heard.shape)
        news = apart.amax(dim=2) > self.tolerance
        changed = bool(news.any()) or bool(((mine - of(self._mine)).abs_() > self.tolerance).any())
        for table, new in ((all_told, told), (self._mine, mine)):
            if whole:
                table[:-1] = new
            else:
                table.index_copy_(0, awake, new)
        self.steps += 1
        self.worked += len(awake)
        wake = torch.zeros(len(self._mine), dtype=torch.bool, device=told.device)
        wake[asked[news].div_(asked.shape[1], rounding_mode="floor")] = True
        self._awake = wake[:-1].nonzero().flatten()
        if changed:
            self.last = self.steps


def _sums_of_others(heard: Tensor) -> Tensor:
    """(n, D, E): for every side what all other sides told; added up, so that nothing echoes."""
    sides = range(heard.shape[1])
    found = []
    for side in sides:
        rest = [heard[:, other] for other in sides if other != side]
        found.append(sum(rest[1:], rest[0]))
    return torch.stack(found, dim=1)


def attentive(net: LocalRule, inputs: Tensor, tolerance: float = TOLERANCE) -> Active:
    """The way to think only where something changes that suits this rule."""
    return (Telling if fits(net) else Active)(net, inputs, tolerance)
