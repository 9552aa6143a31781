"""A local rule: each square sees itself and its neighbours, and thinks in few numbers.

    >>> net = LocalRule(LocalRuleConfig(dims=2, channels=3, stem=2, masked=True))

The step of the paper's networks sees five squares in every direction at each iteration; in a small
training problem everything is then always in sight, and what far-off squares should do is never
learned. Here a step sees one square: more and far cheaper iterations, and a rule that is the same
at every size. The state is bounded by tanh, so it cannot grow for ever. With messages, it cannot
even be led astray (`iterant.nets.messages`).

Shapes: B batch, C channels, W width, H hidden, *S space in pixels, *Q space in squares.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from iterant.errors import NetError
from iterant.nets.fitting import Needs, check_kind, check_shape
from iterant.nets.messages import OWN_HIDDEN, OWN_WIDTH, without_echo
from iterant.nets.readout import readout

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
    """A square tells every neighbour something of its own, without echo (`iterant.nets.messages`),
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
            without_echo(self, config)

    def written_out(self) -> LocalRule:
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
