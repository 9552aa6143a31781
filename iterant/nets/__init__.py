"""Networks: DT, DT-Recall, feed-forward, local rules. Networks do not depend on tasks."""

from iterant.nets.deep_thinking import (
    DeepThinking,
    FeedForward,
    FeedForwardConfig,
    PaperConfig,
    PaperNet,
)
from iterant.nets.factory import (
    VARIANTS,
    build,
    catalogue,
    paper_net,
    parameter_count,
    variant_config,
)
from iterant.nets.local_rule import LocalRule, LocalRuleConfig
from iterant.nets.protocol import Net, depth_of, readout_of
from iterant.nets.readout import Argmax, ArgmaxOpen, Readout, TwoBest, readout

__all__ = [
    "VARIANTS",
    "Argmax",
    "ArgmaxOpen",
    "DeepThinking",
    "FeedForward",
    "FeedForwardConfig",
    "LocalRule",
    "LocalRuleConfig",
    "Net",
    "PaperConfig",
    "PaperNet",
    "Readout",
    "TwoBest",
    "build",
    "catalogue",
    "depth_of",
    "paper_net",
    "parameter_count",
    "readout",
    "readout_of",
    "variant_config",
]
