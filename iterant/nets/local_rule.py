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
whatever the weights are. It is implemented by weight tying: the convolutions stay dense, and each
of their weights is 0 or one of a few hundred shared parameters (`SharedWeights`).

Shapes: B batch, C channels, W width, H hidden, K classes, D sides of a cell (2 per dimension),
V views of a cell (itself and its neighbours, or their sum), X any number of channels, F free
parameters of a layer, *S space in pixels, *Q space in cells.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from iterant.errors import NetError
from iterant.nets.protocol import NetConfig, NetModule

GAIN = 1.8
"""Initial weights of message passing are larger than usual: messages must survive many cells."""
OWN_WIDTH, OWN_HIDDEN = 2, 1
"""A cell has this many times as many own channels as message channels per side: in the state, in
the hidden layer."""
MOST_SHARED_WEIGHTS = 1 << 20
"""With message passing, weights are matched to free parameters one by one when a network is built:
about 4 seconds for this many."""
CONV: dict[int, type[nn.Conv1d] | type[nn.Conv2d]] = {1: nn.Conv1d, 2: nn.Conv2d}
_MAX_POOL = {1: functional.max_pool1d, 2: functional.max_pool2d}


@dataclass(frozen=True)
class LocalRuleConfig(NetConfig):
    """The configuration of a local rule."""

    kind: ClassVar[str] = "local-rule"

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
        self.check_sizes("channels", "width", "hidden", "classes")
        for name, own in (("width", OWN_WIDTH), ("hidden", OWN_HIDDEN)):
            shares = 2 * self.dims + own
            if self.messages and getattr(self, name) % shares:
                raise NetError(
                    f"with messages {name} must be a multiple of {shares} ({2 * self.dims} sides "
                    f"and {own} for the cell itself), got {getattr(self, name)}"
                )
        views = (1 + 2 * self.dims) * self.channels
        weights = self.hidden * (self.width + views) + self.classes * self.width
        if self.messages and weights > MOST_SHARED_WEIGHTS:
            raise NetError(
                f"with messages a network has at most {MOST_SHARED_WEIGHTS:,} weights, "
                f"got {weights:,}; make width or hidden smaller"
            )

    @property
    def summed(self) -> bool:
        """Whether a cell sees the sum of its neighbours, not each of them."""
        return self.isotropic and not self.messages


class LocalRule(NetModule):
    """tanh(mix(relu(sight(state) + recall(problem)))), repeated."""

    Config = LocalRuleConfig
    config: LocalRuleConfig
    uses_index = False

    def __init__(self, config: LocalRuleConfig) -> None:
        super().__init__(config)
        conv = CONV[config.dims]
        views = 2 if config.summed else 1 + 2 * config.dims
        self.sight = conv(views * config.width, config.hidden, 1, bias=False)
        self.recall = conv(views * config.channels, config.hidden, 1)
        self.mix = conv(config.hidden, config.width, 1)
        self.head = conv(config.width, config.classes, 1)
        if config.messages:
            share_message_weights(self)

    def read(self, inputs: Tensor) -> Tensor:
        """(B, H + 1, *Q): the recall term, and 1 where a cell is open."""
        problem, is_open = self.neighbourhood(inputs)
        return torch.cat([self.recall(problem), is_open], dim=1)

    def neighbourhood(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        """The problem at a cell and its neighbours (B, V * C, *Q); 1 where open (B, 1, *Q)."""
        cells = in_cells(inputs, self.config.stem)
        is_open = (cells > 0).any(dim=1, keepdim=True).to(cells.dtype)
        problem = self._with_neighbours(cells, neighbours_of_cells(cells))
        return problem, is_open if self.config.masked else torch.ones_like(is_open)

    def start(self, inputs: Tensor) -> Tensor:
        """Zeros, (B, W, *Q)."""
        cells = in_cells(inputs, self.config.stem)
        return cells.new_zeros(cells.shape[0], self.config.width, *cells.shape[2:])

    def step(self, features: Tensor, memory: Tensor | None, index: int) -> Tensor:
        """One iteration, (B, W, *Q) to the same shape; the same at every index."""
        if memory is None:
            raise NetError("a local rule recalls the problem at every iteration")
        is_open = memory[:, -1:]
        # Interventions may write into walls; their neighbours must not see it.
        state = features * is_open if self.config.masked else features
        visible = self._visible(state, neighbours_of_cells(state))
        hidden = torch.relu(self.sight(visible) + memory[:, :-1])
        return torch.tanh(self.mix(hidden)) * is_open

    def answer(self, features: Tensor) -> Tensor:
        """Logits (B, K, *S)."""
        return in_pixels(self.head(features), self.config.stem)

    def _visible(self, state: Tensor, neighbours: Sequence[Tensor]) -> Tensor:
        """(B, X, …): what ``sight`` reads, given the states (B, W, …) of a cell and its sides.

        With messages, only the message that each neighbour sends to this cell.
        """
        if not self.config.messages:
            return self._with_neighbours(state, neighbours)
        layout, _ = message_layouts(self.config)
        # The neighbour on a side sends through its opposite side.
        messages = [sent[:, layout.channels_of(side ^ 1)] for side, sent in enumerate(neighbours)]
        return torch.cat(messages, dim=1)

    def _with_neighbours(self, values: Tensor, neighbours: Sequence[Tensor]) -> Tensor:
        """(B, V * X, …): the values of a cell and of its neighbours, or of their sum."""
        around = [sum(neighbours[1:], neighbours[0])] if self.config.summed else neighbours
        return torch.cat([values, *around], dim=1)


def in_cells(inputs: Tensor, stem: int) -> Tensor:
    """(B, C, *S) to (B, C, *Q); cells of 2×2 pixels begin one pixel outside the image."""
    if stem == 1:
        return inputs
    pooled: Tensor = _MAX_POOL[inputs.dim() - 2](inputs, 2, stride=2, padding=1)
    return pooled


def in_pixels(logits: Tensor, stem: int) -> Tensor:
    """(B, K, *Q) to (B, K, *S): the logits of cells, repeated for every pixel."""
    if stem == 1:
        return logits
    for axis in range(2, logits.dim()):
        logits = logits.repeat_interleave(2, dim=axis)
    return logits[(slice(None), slice(None), *[slice(1, -1)] * (logits.dim() - 2))]


def neighbours_of_cells(values: Tensor, outside: float = 0.0) -> list[Tensor]:
    """D times (B, X, *Q): the values of the neighbour on each side, ``outside`` beyond the edge.

    Opposite sides follow each other: the side opposite to ``side`` is ``side ^ 1``.
    """
    dims = values.dim() - 2
    padded = functional.pad(values, [1, 1] * dims, value=outside)
    middle = [slice(None), slice(None), *[slice(1, -1)] * dims]
    return [
        padded[(*middle[:axis], side, *middle[axis + 1 :])]
        for axis in range(2, values.dim())
        for side in (slice(None, -2), slice(2, None))
    ]


@dataclass(frozen=True)
class MessageLayout:
    """The channels of a cell: its own first, then those of every side's message."""

    own: int
    """Number of the cell's own channels"""
    each: int
    """Number of channels of one side"""

    def channels_of(self, side: int) -> slice:
        """The channels of the message of a side."""
        return slice(self.own + side * self.each, self.own + (side + 1) * self.each)

    def sides_of_channels(self, total: int) -> tuple[Tensor, Tensor]:
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
    hidden_side, hidden_index = hidden.sides_of_channels(config.hidden)  # (H,), (H,)
    state_side, state_index = state.sides_of_channels(config.width)  # (W,), (W,)
    if config.isotropic:  # all sides share their weights: only own or message matters
        hidden_group, state_group = hidden_side.clamp_max(0), state_side.clamp_max(0)
        # (H, D): whether a neighbour is another than the one that the message goes to
        neighbour = (hidden_side[:, None] != sides).long()
    else:
        hidden_group, state_group = hidden_side, state_side
        neighbour = sides.expand(config.hidden, -1)
    view = functional.pad(neighbour, (1, 0), value=-1)  # (H, 1 + D), the cell itself first
    rows = (hidden_group[:, None, None], hidden_index[:, None, None])
    message, channels = torch.arange(state.each), torch.arange(config.channels)
    # The message to a neighbour does not depend on the message from it.
    is_read = (hidden_side[:, None] != sides)[..., None]  # (H, D, 1)
    same_side = state_side[:, None] == hidden_side  # (W, H)
    classes = torch.arange(config.classes)
    # Weights with the same keys share a parameter; the keys broadcast to the shape of the weights.
    return {
        "sight.weight": _parameter_index(
            *rows, neighbour[..., None], message, exists=is_read
        ).flatten(1),
        "recall.weight": _parameter_index(*rows, view[..., None], channels).flatten(1),
        "recall.bias": _parameter_index(hidden_group, hidden_index),
        "mix.weight": _parameter_index(
            state_group[:, None], state_index[:, None], hidden_index, exists=same_side
        ),
        "mix.bias": _parameter_index(state_group, state_index),
        "head.weight": _parameter_index(classes[:, None], state_index, exists=state_side < 0),
    }


def _parameter_index(*keys: Tensor, exists: Tensor | None = None) -> Tensor:
    """Number the distinct keys in ascending order; -1 where ``exists`` is False."""
    broadcast: Any = torch.broadcast_tensors  # torch leaves it untyped
    *columns, mask = broadcast(*keys, torch.tensor(True) if exists is None else exists)
    result = torch.full(mask.shape, -1)
    rows = torch.stack([column[mask] for column in columns], dim=1)
    result[mask] = torch.unique(rows, dim=0, return_inverse=True)[1]
    return result


class _Expand(torch.autograd.Function):
    """(F,) free parameters to the weights of a layer.

    The gradient of a parameter is the sum over its weights in a fixed order; a scatter would add
    them in any order, and runs would not be reproducible.
    """

    @staticmethod
    def forward(ctx: Any, free: Tensor, source: Tensor, targets: Tensor) -> Tensor:
        ctx.save_for_backward(targets)
        return functional.pad(free, (0, 1))[source]

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        (targets,) = ctx.saved_tensors
        return functional.pad(gradients[0].flatten(), (0, 1))[targets].sum(dim=1), None, None


class SharedWeights(nn.Module):
    """The parametrization of a layer's weights by free parameters (F,)."""

    source: Tensor
    """In the shape of the weights: the index of the parameter of each; F where a weight is zero"""
    targets: Tensor
    """(F, most): the flat indices of each parameter's weights, padded with the number of weights"""

    def __init__(self, pattern: Tensor, shape: Sequence[int]) -> None:
        """Share weights of that shape by a pattern of `patterns`."""
        super().__init__()
        count, flat = int(pattern.max()) + 1, pattern.flatten()
        used = flat >= 0
        weights = flat.argsort(stable=True)[len(flat) - int(used.sum()) :]  # by their parameter
        rows = list(torch.split(weights, flat[used].bincount().tolist()))
        targets = nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=len(flat))
        self.register_buffer("source", pattern.where(pattern >= 0, count).view(shape), False)
        self.register_buffer("targets", targets, False)

    def forward(self, free: Tensor) -> Tensor:
        if not torch.is_grad_enabled():
            return functional.pad(free, (0, 1))[self.source]
        expand: Any = _Expand
        weights: Tensor = expand.apply(free, self.source, self.targets)
        return weights

    def right_inverse(self, weights: Tensor) -> Tensor:
        """The free parameters of weights that follow the pattern."""
        return weights.flatten()[self.targets[:, 0]]


def share_message_weights(net: LocalRule) -> None:
    """Parametrize the layers of a local rule for message passing; draw the free parameters."""
    for name, pattern in patterns(net.config).items():
        layer, kind = name.split(".")
        module: Any = net.get_submodule(layer)
        shape = [*pattern.shape, *[1] * net.config.dims] if pattern.dim() > 1 else pattern.shape
        # Unsafe: the weights of ``sight`` change their shape, since it reads messages only. They
        # were drawn for whole states, and still are: seeds keep giving the same initial weights.
        shared = SharedWeights(pattern, shape)
        nn.utils.parametrize.register_parametrization(module, kind, shared, unsafe=True)
        fan_in = int((pattern >= 0).sum(dim=-1).max())
        bound = (1.0 if layer == "head" else GAIN) / fan_in**0.5 if pattern.dim() > 1 else 0.1
        nn.init.uniform_(module.parametrizations[kind].original, -bound, bound)
    net.sight.in_channels = net.sight.weight.shape[1]


def bias_of(layer: nn.Module) -> Tensor:
    """The bias of a layer; of a local rule, all but ``sight`` have one."""
    if not isinstance(layer.bias, Tensor):
        raise TypeError("this layer has no bias")
    return layer.bias
