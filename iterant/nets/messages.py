"""Weights of a local rule whose squares tell each neighbour something without echo.

    >>> layers = messages(LocalRuleConfig(dims=2, channels=3, width=24, hidden=80, messages=True))

A square holds a message for every side and some numbers of its own. What it tells one neighbour is
made of the problem and of what the *other* neighbours told it; what it holds of its own is made
of what all told it, and nobody but the answer reads it. So no message ever returns to where it
came from: on a problem without loops, every state, noise included, leads to the same rest after as
many iterations as the longest way has squares, whatever the weights are.

All of that is a pattern of equal and of zero weights in the layers of an ordinary local rule, which
is how it is computed: a few hundred free numbers are written out to those layers.

Shapes: W width, H hidden, C channels, D sides of a square (2 a dimension), F free numbers.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

if TYPE_CHECKING:
    from iterant.nets.local_rule import LocalRule, LocalRuleConfig

GAIN = 1.8
"""How much larger than usual weights begin: what is told must survive many tellings."""


@dataclass(frozen=True)
class Shares:
    """How the numbers of a square are shared out: its own first, then those of every side."""

    own: int
    each: int
    sides: int

    @classmethod
    def of(cls, total: int, sides: int, own: int) -> Shares:
        """``own`` shares for the square itself and one for every side."""
        each = total // (sides + own)
        return cls(own * each, each, sides)

    def of_side(self, side: int) -> range:
        """The numbers of a side."""
        return range(self.own + side * self.each, self.own + (side + 1) * self.each)

    def parts(self) -> Iterator[tuple[int | None, range]]:
        """The square's own numbers (None), then every side's."""
        yield None, range(self.own)
        for side in range(self.sides):
            yield side, self.of_side(side)


OWN_WIDTH, OWN_HIDDEN = 2, 1
"""Shares of a square's own numbers, of the state and of the hidden layer."""


class Names:
    """Numbers for names, in the order in which they are first heard."""

    def __init__(self) -> None:
        """None yet."""
        self._known: dict[Hashable, int] = {}

    def __call__(self, *name: Hashable) -> int:
        """The number of this name."""
        return self._known.setdefault(name, len(self._known))

    def __len__(self) -> int:
        """How many there are."""
        return len(self._known)


def patterns(config: LocalRuleConfig) -> dict[str, Tensor]:
    """For every weight of every layer, which free number of the layer it is; -1: it is zero."""
    sides = 2 * config.dims
    state = Shares.of(config.width, sides, OWN_WIDTH)
    hidden = Shares.of(config.hidden, sides, OWN_HIDDEN)
    sight = torch.full((config.hidden, (1 + sides) * config.width), -1)
    recall = torch.full((config.hidden, (1 + sides) * config.channels), -1)
    recalled = torch.full((config.hidden,), -1)
    mix, mixed = torch.full((config.width, config.hidden), -1), torch.full((config.width,), -1)
    seen, told, based, made, begun = (Names() for _ in range(5))
    for to, rows in hidden.parts():
        # Sides that are alike share everything; else each has numbers of its own.
        who = (to is None) if config.isotropic else to
        for place, row in enumerate(rows):
            recalled[row] = based(who, place)
            for channel in range(config.channels):
                recall[row, channel] = told(who, place, "here", channel)
            for side in range(sides):
                where = side == to if config.isotropic else side
                for channel in range(config.channels):
                    at = (1 + side) * config.channels + channel
                    recall[row, at] = told(who, place, where, channel)
                if side == to:
                    continue  # no echo
                # The neighbour on a side speaks to me on its opposite side.
                for number, column in enumerate(state.of_side(side ^ 1)):
                    at = (1 + side) * config.width + column
                    sight[row, at] = seen(who, place, where, number)
    for (to, columns), (_, rows) in zip(state.parts(), hidden.parts(), strict=True):
        who = (to is None) if config.isotropic else to
        for number, column in enumerate(columns):
            mixed[column] = begun(who, number)
            for place, row in enumerate(rows):
                mix[column, row] = made(who, number, place)
    head = torch.full((config.classes, config.width), -1)
    head[:, : state.own] = torch.arange(config.classes * state.own).view(config.classes, -1)
    return {
        "sight.weight": sight, "recall.weight": recall, "recall.bias": recalled,
        "mix.weight": mix, "mix.bias": mixed, "head.weight": head,
    }  # fmt: skip


class _Spread(torch.autograd.Function):
    """(F,) to the shape of ``place``: every weight from its free number, zero where there is none.

    The gradient of a free number is the sum over the weights that are written from it, in a fixed
    order: scattering would add them in any.
    """

    @staticmethod
    def forward(ctx: Any, free: Tensor, place: Tensor, written: Tensor) -> Tensor:
        ctx.save_for_backward(written)
        return _with_zero(free)[place]

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        (written,) = ctx.saved_tensors
        return _with_zero(gradients[0].flatten())[written].sum(dim=1), None, None


def _with_zero(values: Tensor) -> Tensor:
    return torch.cat([values, values.new_zeros(1)])


class Spread(nn.Module):
    """A layer's weights as they are written from free numbers."""

    place: Tensor
    written: Tensor

    def __init__(self, pattern: Tensor, shape: torch.Size) -> None:
        """The pattern of a layer, and the shape its weights have."""
        super().__init__()
        count = int(pattern.max()) + 1
        self.register_buffer("place", pattern.where(pattern >= 0, count).view(shape), False)
        self.register_buffer("written", _inverse(pattern.flatten(), count), False)

    def forward(self, free: Tensor) -> Tensor:
        """The weights."""
        if not torch.is_grad_enabled():
            return _with_zero(free)[self.place]
        spread: Any = _Spread
        made: Tensor = spread.apply(free, self.place, self.written)
        return made

    def right_inverse(self, weights: Tensor) -> Tensor:
        """Free numbers of weights that follow the pattern: the first that each is written to."""
        return weights.flatten()[self.written[:, 0]]


def _inverse(pattern: Tensor, count: int) -> Tensor:
    """(F, most): the weights that each free number is written to, then the one behind the last."""
    places: list[list[int]] = [[] for _ in range(count)]
    for at, number in enumerate(pattern.tolist()):
        if number >= 0:
            places[number].append(at)
    most = max(map(len, places))
    return torch.tensor([row + [len(pattern)] * (most - len(row)) for row in places])


def without_echo(net: nn.Module, config: LocalRuleConfig) -> None:
    """Let the layers of a local rule be written from free numbers, drawn anew."""
    for name, pattern in patterns(config).items():
        layer, kind = name.split(".")
        module = net.get_submodule(layer)
        weights = getattr(module, kind)
        count = int(pattern.max()) + 1
        free = torch.empty(count, dtype=weights.dtype, device=weights.device)
        sees = int((pattern >= 0).sum(dim=1).max()) if pattern.dim() == 2 else None
        gain = 1.0 if layer == "head" else GAIN
        bound = 0.1 if sees is None else gain / sees**0.5
        nn.init.uniform_(free, -bound, bound)
        spread = Spread(pattern, weights.shape)
        nn.utils.parametrize.register_parametrization(module, kind, spread)
        with torch.no_grad():
            module.parametrizations[kind].original.copy_(free)  # type: ignore[union-attr, index]


@dataclass(frozen=True)
class Layers:
    """The weights of a rule whose sides are alike, each once and without the zeros.

    All sides are alike, so those of side 0 speak for all. H hidden numbers and E numbers of a
    side's message, O numbers of a square's own; gradients flow back to the rule.
    """

    state: Shares
    hidden: Shares
    tells: Tensor
    """(H, E): what a side hears of the other sides' messages"""
    told: Tensor
    """(E, H): what it makes of that"""
    bias: Tensor
    keeps: Tensor
    """(H, E): what a square hears for itself"""
    kept: Tensor
    """(O, H): what it makes of that"""
    own_bias: Tensor

    @classmethod
    def of(cls, net: LocalRule) -> Layers:
        """Those of this rule."""
        config, sides = net.config, 2 * net.config.dims
        state = Shares.of(config.width, sides, OWN_WIDTH)
        hidden = Shares.of(config.hidden, sides, OWN_HIDDEN)
        sight, mix, bias = net.sight.weight.flatten(1), net.mix.weight.flatten(1), net.mix.bias
        if bias is None:
            raise TypeError("the mixing layer of a local rule has a bias")
        # What the neighbour on side 1 tells stands where its messages for side 0 do.
        at = 2 * config.width + state.own
        heard, one = slice(at, at + state.each), slice(hidden.own, hidden.own + hidden.each)
        mine, own = slice(state.own, state.own + state.each), slice(hidden.own)
        return cls(state, hidden, sight[one, heard], mix[mine, one], bias[mine],
                   sight[own, heard], mix[: state.own, own], bias[: state.own])  # fmt: skip


def sums_of_others(heard: Sequence[Tensor]) -> list[Tensor]:
    """For every side what all other sides told; added up, so that nothing echoes."""
    found = []
    for side in range(len(heard)):
        rest = [told for at, told in enumerate(heard) if at != side]
        found.append(sum(rest[1:], rest[0]))
    return found
