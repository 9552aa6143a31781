"""Networks. They do not depend on tasks.

protocol.py       the four methods of a network, readouts, checks, build()
from_recipe.py    the network that a recipe names, for a task
deep_thinking.py  the paper's networks: DT, DT-Recall, feed-forward
local_rule.py     local rules, with message passing as an option
max_plus.py       distances by a maximum over neighbours, marks that follow pointers
fast/             faster forms of these, behind accelerate()
"""

from iterant.nets.deep_thinking import (
    PAPER_KINDS,
    VARIANTS,
    DeepThinking,
    FeedForward,
    FeedForwardConfig,
    PaperConfig,
    PaperNet,
    catalogue,
    paper_net,
    variant_config,
)
from iterant.nets.local_rule import LocalRule, LocalRuleConfig
from iterant.nets.max_plus import MaxPlus, MaxPlusConfig
from iterant.nets.protocol import (
    Argmax,
    ArgmaxOpen,
    Net,
    TwoBest,
    build,
    depth_of,
    parameter_count,
)

__all__ = [
    "PAPER_KINDS", "VARIANTS", "Argmax", "ArgmaxOpen", "DeepThinking", "FeedForward",
    "FeedForwardConfig", "LocalRule", "LocalRuleConfig", "MaxPlus", "MaxPlusConfig", "Net",
    "PaperConfig", "PaperNet", "TwoBest", "build", "catalogue", "depth_of", "paper_net",
    "parameter_count", "variant_config",
]  # fmt: skip
