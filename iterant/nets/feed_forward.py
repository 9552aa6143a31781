"""Feed-forward networks as deep as an unrolled recurrent one: the same parts, nothing shared.

>>> FeedForward(FeedForwardConfig(dims=1, channels=1, width=8, depth=3, recall=False)).depth
3
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor, nn

from iterant.errors import NetError
from iterant.nets.base import PaperConfig, PaperNet
from iterant.nets.layers import residual_blocks


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
