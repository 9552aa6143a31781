"""A local rule: in one iteration a cell sees itself and its direct neighbours.

    >>> config = LocalRuleConfig(dims=2, channels=3, width=24, hidden=80, messages=True)
    >>> net = LocalRule(config)

An iteration is ``tanh(mix(relu(sight(state) + recall(problem))))`` with 1×1 convolutions over the
stacked states of a cell and its neighbours. An iteration of the paper's networks sees five cells in
every direction, which in a small training problem is nearly everything, so that the interplay of
distant cells is never learned. Here the same rule holds at every size, and iterations are far
cheaper. tanh bounds the state.

**Message passing** (``messages=True``). The state of a cell is one message for each side, and
its own channels. The message to one neighbour is computed from the problem and from the messages
of the *other* neighbours; the cell's own channels are computed from all messages, and only the head
reads them. No message returns to its sender. So on a problem without loops every initial state
leads to the same fixed point, after at most as many iterations as the longest path has cells,
whatever the weights are. This is a pattern of equal and of zero weights in the convolutions above:
a few hundred free parameters are expanded to them (`SharedWeights`).

Shapes: B batch, C channels, W width, H hidden, K classes, D sides of a cell (2 per dimension),
F free parameters of a layer, *S space in pixels, *Q space in cells.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar, TypeGuard

import torch
from torch import Tensor, nn
from torch.nn import functional

from iterant.errors import NetError
from iterant.nets.protocol import Net, readout

GAIN = 1.8
"""Initial weights of message passing are larger than usual: messages must survive many cells."""
OWN_WIDTH, OWN_HIDDEN = 2, 1
"""A cell's own channels in units of those of one side: of the state, of the hidden layer."""
_CONV: dict[int, type[nn.Conv1d] | type[nn.Conv2d]] = {1: nn.Conv1d, 2: nn.Conv2d}
_MAX_POOL = {1: functional.max_pool1d, 2: functional.max_pool2d}


@dataclass(frozen=True)
class LocalRuleConfig:
    """The configuration of a local rule; saved as JSON beside the weights."""

    kind: ClassVar[str] = "local-rule"

    dims: int
    channels: int
    width: int = 16
    """Channels of a cell's state"""
    hidden: int = 64
    """Channels of the hidden layer"""
    stem: int = 1
    """Pixels per side of a cell; 2 for images whose cells are 2×2 with half a cell of border"""
    isotropic: bool = True
    """The same weights on all sides: rotating or mirroring a problem does so to the answer"""
    messages: bool = False
    """Message passing, instead of showing the whole state to all neighbours"""
    masked: bool = False
    """The state is zero in cells whose input is all zero (walls)"""
    classes: int = 2
    readout: str = "argmax"

    def __post_init__(self) -> None:
        """Check the numbers."""
        if self.dims not in (1, 2):
            raise NetError(f"a network has 1 or 2 dimensions of space, got {self.dims}")
        if self.stem not in (1, 2):
            raise NetError(f"the stem takes squares of 1 or 2 pixels, got {self.stem}")
        for name in ("channels", "width", "hidden", "classes"):
            if getattr(self, name) < 1:
                raise NetError(f"{name} must be at least 1, got {getattr(self, name)}")
        for name, own in (("width", OWN_WIDTH), ("hidden", OWN_HIDDEN)):
            shares = 2 * self.dims + own
            if self.messages and getattr(self, name) % shares:
                raise NetError(
                    f"with messages {name} must be a multiple of {shares} ({2 * self.dims} sides "
                    f"and {own} for the cell itself), got {getattr(self, name)}"
                )

    @property
    def summed(self) -> bool:
        """Whether a cell sees the sum of its neighbours, not each of them."""
        return self.isotropic and not self.messages

    def described(self) -> dict[str, Any]:
        """All fields, as JSON holds them."""
        return asdict(self)


class LocalRule(nn.Module):
    """tanh(mix(relu(sight(state) + recall(problem)))), repeated."""

    Config = LocalRuleConfig
    depth: int | None = None

    def __init__(self, config: LocalRuleConfig) -> None:
        """Build the network from its configuration."""
        super().__init__()
        self.config, self.readout = config, readout(config.readout)
        conv = _CONV[config.dims]
        seen = 2 if config.summed else 1 + 2 * config.dims
        self.sight = conv(seen * config.width, config.hidden, 1, bias=False)
        self.recall = conv(seen * config.channels, config.hidden, 1)
        self.mix = conv(config.hidden, config.width, 1)
        self.head = conv(config.width, config.classes, 1)
        if config.messages:
            share_message_weights(self, config)

    def dense_weights(self) -> LocalRule:
        """The same rule with plain convolution weights, without sharing or gradients."""
        if not self.config.messages:
            return self
        with torch.device("meta"):  # no weights are drawn
            plain = LocalRule(replace(self.config, messages=False, isotropic=False))
        weight = self.sight.weight
        plain = plain.to(weight.dtype).to_empty(device=weight.device)
        with torch.no_grad():
            for name, weights in plain.named_parameters():
                layer, kind = name.split(".")
                weights.copy_(getattr(self.get_submodule(layer), kind))
        return plain.requires_grad_(False)

    def read(self, inputs: Tensor) -> Tensor:
        """(B, H + 1, *Q): the recall term, and 1 where a cell is open."""
        seen, is_open = self.view(inputs)
        return torch.cat([self.recall(seen), is_open], dim=1)

    def view(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        """The problem at a cell and its neighbours (B, seen * C, *Q); 1 where open (B, 1, *Q)."""
        cells = self._cells(inputs)
        seen = self.with_neighbours(cells)
        is_open = (cells > 0).any(dim=1, keepdim=True).to(seen.dtype)
        return seen, is_open if self.config.masked else torch.ones_like(is_open)

    def start(self, inputs: Tensor) -> Tensor:
        """Zeros, (B, W, *Q)."""
        cells = self._cells(inputs)
        return cells.new_zeros(len(cells), self.config.width, *cells.shape[2:])

    def step(self, features: Tensor, memory: Tensor | None, index: int) -> Tensor:
        """One iteration, (B, W, *Q) to the same shape; the same at every index."""
        if memory is None:
            raise NetError("a local rule recalls the problem at every iteration")
        is_open = memory[:, -1:]
        # Interventions may write into walls; their neighbours must not see it.
        state = features * is_open if self.config.masked else features
        hidden = torch.relu(self.sight(self.with_neighbours(state)) + memory[:, :-1])
        return torch.tanh(self.mix(hidden)) * is_open

    def answer(self, features: Tensor) -> Tensor:
        """Logits (B, K, *S)."""
        return self.in_pixels(self.head(features))

    def in_pixels(self, logits: Tensor) -> Tensor:
        """(B, K, *S): the logits of cells, (B, K, *Q), repeated for every pixel."""
        if self.config.stem == 1:
            return logits
        inner = (slice(None), slice(None), *[slice(1, -1)] * self.config.dims)
        for axis in range(2, logits.dim()):
            logits = logits.repeat_interleave(2, dim=axis)
        return logits[inner]

    def _cells(self, inputs: Tensor) -> Tensor:
        """(B, C, *S) to (B, C, *Q); cells of 2×2 pixels begin one pixel outside the image."""
        if self.config.stem == 1:
            return inputs
        pooled: Tensor = _MAX_POOL[self.config.dims](inputs, 2, stride=2, padding=1)
        return pooled

    def with_neighbours(self, values: Tensor) -> Tensor:
        """(B, X, *Q) to (B, seen * X, *Q): a cell and its neighbours, summed or one by one."""
        padded = functional.pad(values, [1, 1] * self.config.dims)
        middle = [slice(None), slice(None), *[slice(1, -1)] * self.config.dims]
        around = [
            padded[(*middle[:axis], side, *middle[axis + 1 :])]
            for axis in range(2, values.dim())
            for side in (slice(None, -2), slice(2, None))
        ]
        if self.config.summed:
            around = [sum(around[1:], around[0])]
        return torch.cat([values, *around], dim=1)


@dataclass(frozen=True)
class MessageLayout:
    """The channels of a cell: its own first, then those of every side's message."""

    own: int
    each: int
    """Channels of one side"""

    def side(self, side: int) -> slice:
        """The channels of a side."""
        return slice(self.own + side * self.each, self.own + (side + 1) * self.each)

    def sides(self, total: int) -> tuple[Tensor, Tensor]:
        """(X,), (X,): the side of every channel, -1 for the cell's own; its index within it."""
        channel = torch.arange(total)
        side = (channel - self.own).div(self.each, rounding_mode="floor").clamp_min(-1)
        return side, torch.where(side < 0, channel, (channel - self.own) % self.each)


def message_layouts(config: LocalRuleConfig) -> tuple[MessageLayout, MessageLayout]:
    """The layouts of the state and of the hidden layer."""
    state = config.width // (2 * config.dims + OWN_WIDTH)
    hidden = config.hidden // (2 * config.dims + OWN_HIDDEN)
    return MessageLayout(OWN_WIDTH * state, state), MessageLayout(OWN_HIDDEN * hidden, hidden)


def patterns(config: LocalRuleConfig) -> dict[str, Tensor]:
    """For every weight of every layer, the index of its free parameter; -1: the weight is zero."""
    state, hidden = message_layouts(config)
    sides = torch.arange(2 * config.dims)
    hidden_side, hidden_index = hidden.sides(config.hidden)  # (H,), (H,)
    state_side, state_index = state.sides(config.width)  # (W,), (W,)
    cell = torch.full((config.hidden, 1), -1)
    if config.isotropic:  # all sides share their weights: only own or message matters
        hidden_group, state_group = hidden_side.clamp_max(0), state_side.clamp_max(0)
        # (H, D): whether a neighbour is the one that the message goes to
        neighbour = (hidden_side[:, None] == sides).long()
    else:
        hidden_group, state_group = hidden_side, state_side
        neighbour = sides.expand(config.hidden, -1)
    # The neighbour on a side sends its message through its opposite side, and the message to a
    # neighbour does not depend on the message from it. (H, D, W)
    is_read = (state_side == sides[:, None] ^ 1) & (hidden_side[:, None, None] != sides[:, None])
    view = torch.cat([cell, neighbour], dim=1)[..., None]  # (H, 1 + D, 1)
    rows = (hidden_group[:, None, None], hidden_index[:, None, None])
    sight = _number(*rows, neighbour[..., None], state_index, exists=is_read).flatten(1)
    classes, channels = torch.arange(config.classes), torch.arange(config.channels)
    same_side = state_side[:, None] == hidden_side  # (W, H)
    return {
        "sight.weight": torch.cat([cell.expand(-1, config.width), sight], dim=1),
        "recall.weight": _number(*rows, view, channels).flatten(1),
        "recall.bias": _number(hidden_group, hidden_index),
        "mix.weight": _number(
            state_group[:, None], state_index[:, None], hidden_index, exists=same_side
        ),
        "mix.bias": _number(state_group, state_index),
        "head.weight": _number(classes[:, None], state_index, exists=state_side < 0),
    }


def _number(*keys: Tensor, exists: Tensor | None = None) -> Tensor:
    """Number the distinct keys in order of first occurrence; -1 where ``exists`` is False."""
    broadcast: Any = torch.broadcast_tensors  # torch leaves it untyped
    *columns, mask = broadcast(*keys, torch.tensor(True) if exists is None else exists)
    numbers: dict[tuple[int, ...], int] = {}
    result = torch.full(mask.shape, -1)
    rows = torch.stack([column[mask] for column in columns], dim=1).tolist()
    result[mask] = torch.tensor([numbers.setdefault(tuple(k), len(numbers)) for k in rows])
    return result


class _Expand(torch.autograd.Function):
    """(F,) free parameters to the weights of a layer.

    The gradient of a parameter is the sum over its weights in a fixed order; a scatter would add
    them in any order, and runs would not be reproducible.
    """

    @staticmethod
    def forward(ctx: Any, free: Tensor, source: Tensor, targets: Tensor) -> Tensor:
        ctx.save_for_backward(targets)
        return _append_zero(free)[source]

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        (targets,) = ctx.saved_tensors
        return _append_zero(gradients[0].flatten())[targets].sum(dim=1), None, None


def _append_zero(values: Tensor) -> Tensor:
    return torch.cat([values, values.new_zeros(1)])


class SharedWeights(nn.Module):
    """The parametrization of a layer's weights by free parameters (F,)."""

    source: Tensor
    """In the shape of the weights: the index of the parameter of each; F where a weight is zero"""
    targets: Tensor
    """(F, most): the flat indices of each parameter's weights, padded with the number of weights"""

    def __init__(self, pattern: Tensor, shape: torch.Size) -> None:
        """Share weights of that shape by a pattern of `patterns`."""
        super().__init__()
        count, flat = int(pattern.max()) + 1, pattern.flatten()
        weights: list[list[int]] = [[] for _ in range(count)]
        for index, parameter in enumerate(flat.tolist()):
            if parameter >= 0:
                weights[parameter].append(index)
        most = max(map(len, weights))
        targets = torch.tensor([row + [len(flat)] * (most - len(row)) for row in weights])
        self.register_buffer("source", pattern.where(pattern >= 0, count).view(shape), False)
        self.register_buffer("targets", targets, False)

    def forward(self, free: Tensor) -> Tensor:
        """The weights."""
        if not torch.is_grad_enabled():
            return _append_zero(free)[self.source]
        expand: Any = _Expand
        weights: Tensor = expand.apply(free, self.source, self.targets)
        return weights

    def right_inverse(self, weights: Tensor) -> Tensor:
        """The free parameters of weights that follow the pattern."""
        return weights.flatten()[self.targets[:, 0]]


def share_message_weights(net: nn.Module, config: LocalRuleConfig) -> None:
    """Parametrize the layers of a local rule for message passing; draw the free parameters."""
    for name, pattern in patterns(config).items():
        layer, kind = name.split(".")
        module: Any = net.get_submodule(layer)
        shared = SharedWeights(pattern, getattr(module, kind).shape)
        nn.utils.parametrize.register_parametrization(module, kind, shared)
        fan_in = int((pattern >= 0).sum(dim=-1).max())
        bound = (1.0 if layer == "head" else GAIN) / fan_in**0.5 if pattern.dim() > 1 else 0.1
        nn.init.uniform_(module.parametrizations[kind].original, -bound, bound)


@dataclass(frozen=True)
class MessageWeights:
    """The weights of an isotropic rule with messages, each once and without the zeros.

    All sides share their weights, so only those of side 0 are kept. Shapes: H hidden channels and E
    message channels of a side, O own channels of a cell. Gradients flow back to the rule.
    """

    state: MessageLayout
    hidden: MessageLayout
    message_in: Tensor
    """(H, E): applied to the sum of the other sides' messages"""
    message_out: Tensor
    """(E, H)"""
    message_bias: Tensor
    """(E,)"""
    own_in: Tensor
    """(H, E): applied to the sum of all messages"""
    own_out: Tensor
    """(O, H)"""
    own_bias: Tensor
    """(O,)"""

    @classmethod
    def of(cls, net: LocalRule) -> MessageWeights:
        """The weights of this rule."""
        state, hidden = message_layouts(net.config)
        sight, mix, bias = net.sight.weight.flatten(1), net.mix.weight.flatten(1), bias_of(net.mix)
        # In the columns of ``sight``, the neighbour on side 1 comes third, after the cell and the
        # neighbour on side 0; it sends to this cell through its side 0.
        received = sight[:, 2 * net.config.width :][:, state.side(0)]
        message, inner = state.side(0), hidden.side(0)
        return cls(
            state=state,
            hidden=hidden,
            message_in=received[inner],
            message_out=mix[message, inner],
            message_bias=bias[message],
            own_in=received[: hidden.own],
            own_out=mix[: state.own, : hidden.own],
            own_bias=bias[: state.own],
        )


def bias_of(layer: nn.Module) -> Tensor:
    """The bias of a layer; of a local rule, all but ``sight`` have one."""
    if not isinstance(layer.bias, Tensor):
        raise TypeError("this layer has no bias")
    return layer.bias


def sum_over_other_sides(messages: Sequence[Tensor]) -> list[Tensor]:
    """For every side, the sum of the messages of all other sides."""
    sums = []
    for side in range(len(messages)):
        others = [*messages[:side], *messages[side + 1 :]]
        sums.append(sum(others[1:], others[0]))
    return sums


def has_equal_messages(net: object) -> TypeGuard[LocalRule]:
    """Whether this is a local rule with messages and equal sides, as `MessageWeights` requires."""
    return type(net) is LocalRule and net.config.messages and net.config.isotropic


class GroupedRule(nn.Module):
    """A rule with messages and equal sides without its zero weights: grouped convolutions.

    For exported graphs: the same features for a tenth of the multiplications.
    """

    depth: int | None = None

    def __init__(self, net: LocalRule) -> None:
        """Copy the weights of that rule."""
        super().__init__()
        self.config, self.readout, self.dense = net.config, net.readout, net.dense_weights()
        self.read, self.start, self.answer = self.dense.read, self.dense.start, self.dense.answer
        weights, sides = MessageWeights.of(net), 2 * net.config.dims
        self.state, self.hidden, self.sides = weights.state, weights.hidden, sides

        def layer(weight: Tensor, bias: Tensor | None = None, groups: int = 1) -> nn.Module:
            shape = (groups * weight.shape[1], groups * len(weight), 1)
            skip_init: Any = nn.utils.skip_init  # draws no random numbers
            conv = skip_init(_CONV[net.config.dims], *shape, groups=groups, bias=bias is not None)
            conv.weight.data = weight.detach().repeat(groups, 1).view_as(conv.weight)
            if bias is not None:
                conv.bias.data = bias.detach().repeat(groups)
            layer: nn.Module = conv.requires_grad_(False)
            return layer

        self.message_in = layer(weights.message_in, groups=sides)
        self.message_out = layer(weights.message_out, weights.message_bias, sides)
        self.own_in, self.own_out = layer(weights.own_in), layer(weights.own_out, weights.own_bias)

    def step(self, features: Tensor, memory: Tensor | None, index: int) -> Tensor:
        """One iteration, (B, W, *Q) to the same shape."""
        if memory is None:
            raise NetError("a local rule recalls the problem at every iteration")
        is_open, term = memory[:, -1:], memory[:, :-1]
        width, state = self.config.width, self.state
        seen = self.dense.with_neighbours(features * is_open if self.config.masked else features)
        # Of the neighbour on a side, the message on its opposite side.
        messages = [
            seen[:, (1 + side) * width :][:, state.side(side ^ 1)] for side in range(self.sides)
        ]
        others, own = sum_over_other_sides(messages), self.hidden.own
        message_hidden = self.message_in(torch.cat(others, dim=1)) + term[:, own:]
        own_hidden = self.own_in(others[0] + messages[0]) + term[:, :own]
        outputs = [self.own_out(own_hidden.relu()), self.message_out(message_hidden.relu())]
        return torch.tanh(torch.cat(outputs, dim=1)) * is_open


def for_graphs(net: Net) -> Net:
    """The form of a network for exported graphs: a local rule without shared or zero weights."""
    if has_equal_messages(net):
        return GroupedRule(net)
    return net.dense_weights() if type(net) is LocalRule else net
