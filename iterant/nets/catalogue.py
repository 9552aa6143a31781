"""The paper's networks by the set they were trained on, and building any network from words.

>>> paper_net("mazes", "dt-recall").width
128
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from iterant import names
from iterant.errors import DataError, NetError, UnknownName
from iterant.nets.base import PaperConfig
from iterant.nets.feed_forward import FeedForwardConfig
from iterant.nets.protocol import Net

_SHARED: dict[str, dict[str, Any]] = {
    "prefix-sums": {"dims": 1, "channels": 1, "width": 400, "head": (400, 200)},
    "mazes": {"dims": 2, "channels": 3, "width": 128, "readout": "argmax-open"},
    "chess": {"dims": 2, "channels": 12, "width": 512, "readout": "two-best"},
}
VARIANTS = ("dt", "dt-recall", "ff", "ff-recall")
"""The paper's four architectures."""


def paper_net(problem: str, variant: str = "dt-recall") -> PaperConfig:
    """The configuration of one of the paper's networks."""
    for kind, word, words in (("task", problem, tuple(_SHARED)), ("network", variant, VARIANTS)):
        if word not in words:
            raise UnknownName(names.unknown(kind, word, words))
    shared, recall = _SHARED[problem], variant.endswith("-recall")
    if variant.startswith("ff"):
        # The authors put no ReLU after the recall convolution of feed-forward networks, 1D or 2D.
        return FeedForwardConfig(**shared, recall=recall)
    return PaperConfig(**shared, recall=recall, recall_relu=recall and shared["dims"] == 1)


def build(kind: str, config: dict[str, Any] | PaperConfig, seed: int | None = None) -> Net:
    """A network from its kind and configuration, as JSON or checkpoints hold them.

    Weights are drawn from ``seed`` without touching the global generator; None leaves them to be
    loaded, still drawn, from seed 0.
    """
    made = names.find("net", kind)
    try:
        ready = made.Config(**config) if isinstance(config, dict) else config
    except TypeError as error:
        raise DataError(
            f"the configuration of a {kind!r} network does not fit ({error}); "
            "it was written by another version or edited by hand"
        ) from error
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed or 0)
        net = made(ready)
    if not isinstance(net, Net):
        raise NetError(f"network {kind!r} lacks one of the methods read, start, step, answer")
    return net


def catalogue() -> list[tuple[str, int]]:
    """The paper's networks and their parameter counts, without allocating them."""
    rows = []
    for problem in _SHARED:
        for variant in VARIANTS:
            config = paper_net(problem, variant)
            with torch.device("meta"):
                net = build(config.kind, config)
            rows.append((f"{problem} {variant}", parameter_count(net)))
    return rows


def parameter_count(net: Net) -> int:
    """How many numbers a network has learned; 0 for one that is no ``nn.Module``."""
    if not isinstance(net, nn.Module):
        return 0
    return sum(weight.numel() for weight in net.parameters())
