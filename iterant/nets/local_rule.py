"""Weights of a local rule whose squares tell each neighbour something without echo.

    >>> layers = messages(LocalRuleConfig(dims=2, channels=3, width=24, hidden=80, messages=True))

A square holds a message for every side and some numbers of its own. What it tells one neighbour is
made of the problem and of what the *other* neighbours told it; what it holds of its own is made
of what all told it, and nobody but the answer reads it. So no message ever returns to where it
came from: on a problem without loops, every state, noise included, leads to the same rest after as
many iterations as the longest way has squares, whatever the weights are.

All of that is a pattern of equal and of zero weights in the layers of an ordinary local rule, which
is how it is computed: a few hundred free numbers are written out to those layers.

A local rule: each square sees itself and its neighbours, and thinks in few numbers.

The step of the paper's networks sees five squares in every direction at each iteration; in a small
training problem everything is then always in sight, and what far-off squares should do is never
learned. Here a step sees one square: more and far cheaper iterations, and a rule that is the same
at every size. The state is bounded by tanh, so it cannot grow for ever. With messages, it cannot
even be led astray (`iterant.nets.local_rule`).

Shapes: W width, H hidden, C channels, D sides of a square (2 a dimension), F free numbers, B batch,
*S space in pixels, *Q space in squares.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from iterant.errors import NetError
from iterant.nets.protocol import Needs, check_kind, check_shape
from iterant.nets.readout import readout

GAIN = 1.8
"""How much larger than usual weights begin: what is told must survive many tellings."""


@dataclass(frozen=True)
class MessageLayout:
    """How the numbers of a square are shared out: its own first, then those of every side."""

    own: int
    each: int
    sides: int

    @classmethod
    def of(cls, total: int, sides: int, own: int) -> MessageLayout:
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
    state = MessageLayout.of(config.width, sides, OWN_WIDTH)
    hidden = MessageLayout.of(config.hidden, sides, OWN_HIDDEN)
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


class SharedWeights(nn.Module):
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


def share_message_weights(net: nn.Module, config: LocalRuleConfig) -> None:
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
        spread = SharedWeights(pattern, weights.shape)
        nn.utils.parametrize.register_parametrization(module, kind, spread)
        with torch.no_grad():
            module.parametrizations[kind].original.copy_(free)  # type: ignore[union-attr, index]


@dataclass(frozen=True)
class Layers:
    """The weights of a rule whose sides are alike, each once and without the zeros.

    All sides are alike, so those of side 0 speak for all. H hidden numbers and E numbers of a
    side's message, O numbers of a square's own; gradients flow back to the rule.
    """

    state: MessageLayout
    hidden: MessageLayout
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
        state = MessageLayout.of(config.width, sides, OWN_WIDTH)
        hidden = MessageLayout.of(config.hidden, sides, OWN_HIDDEN)
        sight, mix, bias = net.sight.weight.flatten(1), net.mix.weight.flatten(1), net.mix.bias
        if bias is None:
            raise TypeError("the mixing layer of a local rule has a bias")
        # What the neighbour on side 1 tells stands where its messages for side 0 do.
        at = 2 * config.width + state.own
        heard, one = slice(at, at + state.each), slice(hidden.own, hidden.own + hidden.each)
        mine, own = slice(state.own, state.own + state.each), slice(hidden.own)
        return cls(state, hidden, sight[one, heard], mix[mine, one], bias[mine],
                   sight[own, heard], mix[: state.own, own], bias[: state.own])  # fmt: skip


def sum_over_other_sides(heard: Sequence[Tensor]) -> list[Tensor]:
    """For every side what all other sides told; added up, so that nothing echoes."""
    found = []
    for side in range(len(heard)):
        rest = [told for at, told in enumerate(heard) if at != side]
        found.append(sum(rest[1:], rest[0]))
    return found


_CONV: dict[int, type[nn.Conv1d] | type[nn.Conv2d]] = {1: nn.Conv1d, 2: nn.Conv2d}
_MAX_POOL = {1: functional.max_pool1d, 2: functional.max_pool2d}


@dataclass(frozen=True)
class LocalRuleConfig:
    """What a local rule is described by; saved as JSON beside the weights."""

    kind: ClassVar[str] = "local-rule"

    dims: int
    channels: int
    width: int = 16
    """Numbers that a square holds"""
    hidden: int = 64
    """Numbers it computes with"""
    stem: int = 1
    """Pixels a side of a square: an image of doubled squares has 2, with half a square around"""
    isotropic: bool = True
    """All sides are alike: turning or mirroring a problem turns or mirrors the answer"""
    messages: bool = False
    """A square tells every neighbour something of its own, without echo,
    instead of showing all of them what it holds"""
    masked: bool = False
    """Squares whose input is all zero (walls) hold nothing"""
    classes: int = 2
    readout: str = "argmax"

    def __post_init__(self) -> None:
        """Refuse what no network can be built from."""
        if self.dims not in (1, 2):
            raise NetError(f"a network has 1 or 2 dimensions of space, got {self.dims}")
        if self.stem not in (1, 2):
            raise NetError(f"the stem takes squares of 1 or 2 pixels, got {self.stem}")
        for name in ("channels", "width", "hidden", "classes"):
            if getattr(self, name) < 1:
                raise NetError(f"{name} must be at least 1, got {getattr(self, name)}")
        if self.messages:
            for name, own in (("width", OWN_WIDTH), ("hidden", OWN_HIDDEN)):
                shares = 2 * self.dims + own
                if getattr(self, name) % shares:
                    raise NetError(
                        f"with messages {name} is shared out in {shares} parts alike, "
                        f"so it is a multiple of {shares}, got {getattr(self, name)}"
                    )

    @property
    def summed(self) -> bool:
        """Whether a square sees the sum of its neighbours, not each of them."""
        return self.isotropic and not self.messages

    def described(self) -> dict[str, Any]:
        """All fields, as JSON holds them."""
        return asdict(self)


class LocalRule(nn.Module):
    """tanh(mix(relu(sight of the state + sight of the problem))), repeated."""

    Config = LocalRuleConfig
    depth: int | None = None

    def __init__(self, config: LocalRuleConfig) -> None:
        """Build the network that the configuration describes."""
        super().__init__()
        self.config, self.readout = config, readout(config.readout)
        conv = _CONV[config.dims]
        sights = 2 if config.summed else 1 + 2 * config.dims
        self.sight = conv(sights * config.width, config.hidden, 1, bias=False)
        self.recall = conv(sights * config.channels, config.hidden, 1)
        self.mix = conv(config.hidden, config.width, 1)
        self.head = conv(config.width, config.classes, 1)
        if config.messages:
            share_message_weights(self, config)

    def dense_weights(self) -> LocalRule:
        """The same rule with every weight written down: nothing is shared, nothing known zero."""
        if not self.config.messages:
            return self
        with torch.device("meta"):  # nothing is drawn
            plain = LocalRule(replace(self.config, messages=False, isotropic=False))
        weight = self.sight.weight
        plain = plain.to(weight.dtype).to_empty(device=weight.device)
        with torch.no_grad():
            for name, weights in plain.named_parameters():
                layer, kind = name.split(".")
                weights.copy_(getattr(self.get_submodule(layer), kind))
        return plain.requires_grad_(False)

    def check(self, inputs: Tensor) -> None:
        """Raise NetError where the inputs cannot be read by this network."""
        config = self.config
        check_shape(inputs, Needs(config.dims, config.channels))
        if any(side % config.stem for side in inputs.shape[2:]):
            raise NetError(
                f"this network reads squares of {config.stem} pixels a side, so sides must be "
                f"multiples of {config.stem}, got {tuple(inputs.shape)}"
            )
        check_kind(inputs, self.sight.weight)

    def read(self, inputs: Tensor) -> Tensor:
        """What each square makes of the problem, (B, H, *Q), and whether it is open, (B, 1, *Q)."""
        seen, is_open = self.view(inputs)
        return torch.cat([self.recall(seen), is_open], dim=1)

    def view(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        """What each square sees of the problem, (B, sights * C, *Q), and whether it is open."""
        squares = self._squares(inputs)
        seen = self._sights(squares)
        is_open = (squares > 0).any(dim=1, keepdim=True).to(seen.dtype)
        return seen, is_open if self.config.masked else torch.ones_like(is_open)

    def start(self, inputs: Tensor) -> Tensor:
        """Nothing: every square begins at zero, (B, W, *Q)."""
        squares = self._squares(inputs)
        return squares.new_zeros(len(squares), self.config.width, *squares.shape[2:])

    def step(self, features: Tensor, memory: Tensor | None, index: int) -> Tensor:
        """One iteration; the same at every index."""
        if memory is None:
            raise NetError("a local rule recalls the problem at every iteration")
        is_open = memory[:, -1:]
        # Walls hold nothing, whatever was done to the features: noise there would be heard beside.
        held = features * is_open if self.config.masked else features
        seen = torch.relu(self.sight(self._sights(held)) + memory[:, :-1])
        return torch.tanh(self.mix(seen)) * is_open

    def answer(self, features: Tensor) -> Tensor:
        """Logits (B, classes, *S)."""
        return self.in_pixels(self.head(features))

    def in_pixels(self, logits: Tensor) -> Tensor:
        """(B, classes, *S): the logits of cells, (B, classes, *Q), for every pixel of theirs."""
        if self.config.stem == 1:
            return logits
        inner = (slice(None), slice(None), *[slice(1, -1)] * self.config.dims)
        for axis in range(2, logits.dim()):
            logits = logits.repeat_interleave(2, dim=axis)
        return logits[inner]

    def _squares(self, inputs: Tensor) -> Tensor:
        """One value a square: with doubled squares, half a square of wall is added around."""
        if self.config.stem == 1:
            return inputs
        pooled: Tensor = _MAX_POOL[self.config.dims](inputs, 2, stride=2, padding=1)
        return pooled

    def _sights(self, values: Tensor) -> Tensor:
        """What a square sees: itself and its neighbours, summed or one by one."""
        padded = functional.pad(values, [1, 1] * self.config.dims)
        middle = [slice(None), slice(None), *[slice(1, -1)] * self.config.dims]
        around = [
            padded[(*middle[:axis], side, *middle[axis + 1 :])]
            for axis in range(2, values.dim())
            for side in (slice(None, -2), slice(2, None))
        ]
        if not self.config.summed:
            return torch.cat([values, *around], dim=1)
        total = around[0]
        for other in around[1:]:
            total = total + other
        return torch.cat([values, total], dim=1)
