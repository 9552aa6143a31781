"""Deep Thinking networks: one block, repeated; with recall, the problem is read at every turn.

>>> parameter_count(DeepThinking(PaperConfig(dims=2, channels=3, width=128)))
783504
"""

from __future__ import annotations

from torch import Tensor, nn

from iterant.nets.base import PaperConfig, PaperNet
from iterant.nets.layers import residual_blocks


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
