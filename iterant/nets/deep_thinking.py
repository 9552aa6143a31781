"""What the paper's networks share: the projection, the recall term, the head, their checks.

Deep Thinking networks: one block, repeated; with recall, the problem is read at every turn.

Feed-forward networks as deep as an unrolled recurrent one: the same parts, nothing shared.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from iterant.errors import NetError
from iterant.nets.layers import RecallConv, conv, head, residual_blocks
from iterant.nets.protocol import Needs, check_kind, check_shape
from iterant.nets.readout import readout

_LEAST = 1e-6
"""Added to a mean square, so that features that are all zero stay zero."""


@dataclass(frozen=True)
class PaperConfig:
    """What the paper's networks are described by; saved as JSON beside the weights."""

    kind: ClassVar[str] = "deep-thinking"
    """The word of `iterant.registry` for the network that this describes."""

    dims: int
    channels: int
    width: int
    recall: bool = True
    recall_relu: bool = False
    """A ReLU after the recall convolution: the authors have it in 1D, not in 2D."""
    head: tuple[int, ...] = (32, 8)
    """Widths between the features and the classes."""
    classes: int = 2
    blocks: int = 2
    """Residual blocks an iteration, two convolutions each."""
    group_norm: bool = False
    bounded: bool = False
    """After every iteration each position's features are divided by their root mean square."""
    readout: str = "argmax"

    def __post_init__(self) -> None:
        """Refuse what no network can be built from."""
        object.__setattr__(self, "head", tuple(self.head))  # JSON holds a list
        if self.dims not in (1, 2):
            raise NetError(f"a network has 1 or 2 dimensions of space, got {self.dims}")
        for name in ("channels", "width", "classes", "blocks"):
            if getattr(self, name) < 1:
                raise NetError(f"{name} must be at least 1, got {getattr(self, name)}")

    def described(self) -> dict[str, Any]:
        """All fields, as JSON holds them."""
        return asdict(self)


class PaperNet(nn.Module):
    """The parts that recurrent and feed-forward networks share."""

    depth: int | None = None
    """How many iterations there are; None: no end."""

    def __init__(self, config: PaperConfig) -> None:
        """Build projection, recall and head; the blocks between them are the subclass's."""
        super().__init__()
        self.config = config
        self.readout = readout(config.readout)
        self.projection = conv(config.dims, config.channels, config.width)
        self.recall = (
            RecallConv(config.dims, config.width, config.channels) if config.recall else None
        )
        self.head = head(config.dims, config.width, config.head, config.classes)

    def check(self, inputs: Tensor) -> None:
        """Raise NetError where the inputs cannot be read by this network."""
        check_shape(inputs, Needs(self.config.dims, self.config.channels))
        check_kind(inputs, self.projection.weight)

    def read(self, inputs: Tensor) -> Tensor | None:
        """The recall term, computed once a problem; None without recall."""
        return None if self.recall is None else self.recall.recalled(inputs)

    def start(self, inputs: Tensor) -> Tensor:
        """The projection of the problem into features."""
        return torch.relu(self.projection(inputs))

    def recalling(self, features: Tensor, memory: Tensor | None) -> Tensor:
        """The features with the problem recalled into them, before the blocks."""
        if self.recall is None or memory is None:
            return features
        mixed: Tensor = self.recall(features, memory)
        return torch.relu(mixed) if self.config.recall_relu else mixed

    def bounding(self, features: Tensor) -> Tensor:
        """The features after an iteration: as they are, or of unit mean square everywhere.

        What cannot grow cannot explode, however many iterations follow; the direction is kept.
        """
        if not self.config.bounded:
            return features
        exact = torch.promote_types(features.dtype, torch.float32)
        square = features.to(exact).square().mean(dim=1, keepdim=True)
        return features * (square + _LEAST).rsqrt().to(features.dtype)

    def answer(self, features: Tensor) -> Tensor:
        """Logits (B, classes, *S)."""
        logits: Tensor = self.head(features)
        return logits

    @property
    def recurrent(self) -> list[nn.Parameter]:
        """The parameters that every iteration shares, whose rate some recipes throttle."""
        return [] if self.recall is None else list(self.recall.parameters())

    def described(self) -> dict[str, Any]:
        """Kind and configuration, as `iterant.nets.build` reads them back."""
        return {"kind": self.config.kind, "config": self.config.described()}


class DeepThinking(PaperNet):
    """DT (``recall=False``) and DT-Recall (``recall=True``) of the paper, in 1D and 2D."""

    Config = PaperConfig

    def __init__(self, config: PaperConfig) -> None:
        """Build the network that the configuration describes."""
        super().__init__(config)
        self.block = residual_blocks(
            config.dims, config.width, config.blocks, group_norm=config.group_norm
        )

    def step(self, features: Tensor, memory: Tensor | None, index: int) -> Tensor:
        """One iteration; the same at every index."""
        after: Tensor = self.block(self.recalling(features, memory))
        return self.bounding(after)

    @property
    def recurrent(self) -> list[nn.Parameter]:
        """The parameters of an iteration: the recall convolution and the block."""
        return super().recurrent + list(self.block.parameters())


@dataclass(frozen=True)
class FeedForwardConfig(PaperConfig):
    """A feed-forward network's description: that of the paper's networks, and its depth."""

    kind: ClassVar[str] = "feed-forward"

    depth: int = 30
    """Iterations, each with blocks of its own; one recall convolution serves them all."""

    def __post_init__(self) -> None:
        """Refuse what no network can be built from."""
        super().__post_init__()
        if self.depth < 1:
            raise NetError(f"depth must be at least 1, got {self.depth}")


class FeedForward(PaperNet):
    """Feed-forward, and feed-forward with recall; iteration i has its own weights."""

    Config = FeedForwardConfig

    def __init__(self, config: FeedForwardConfig) -> None:
        """Build the network that the configuration describes."""
        super().__init__(config)
        self.depth = config.depth
        self.blocks = nn.ModuleList(
            residual_blocks(config.dims, config.width, config.blocks, group_norm=config.group_norm)
            for _ in range(config.depth)
        )

    def step(self, features: Tensor, memory: Tensor | None, index: int) -> Tensor:
        """Iteration ``index``, with the weights of that iteration."""
        after: Tensor = self.blocks[index](self.recalling(features, memory))
        return self.bounding(after)

    @property
    def recurrent(self) -> list[nn.Parameter]:
        """Nothing is repeated, so nothing is throttled."""
        return []

    @property
    def between(self) -> list[nn.Parameter]:
        """The kernels from features to features, which Muon moves as matrices."""
        return super().recurrent + list(self.blocks.parameters())
