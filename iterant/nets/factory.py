"""The paper's networks by the set they were trained on, and building any network from words.

>>> paper_net("mazes", "dt-recall").width
128
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from iterant import registry
from iterant.errors import DataError, NetError, UnknownName
from iterant.nets.deep_thinking import FeedForwardConfig, PaperConfig
from iterant.nets.protocol import METHODS, Net

_SHARED: dict[str, dict[str, Any]] = {
    "prefix-sums": {"dims": 1, "channels": 1, "width": 400},
    "mazes": {"dims": 2, "channels": 3, "width": 128, "readout": "argmax-open"},
    "chess": {"dims": 2, "channels": 12, "width": 512, "readout": "two-best"},
}
_VARIANTS: dict[str, tuple[type[PaperConfig], bool]] = {
    "dt": (PaperConfig, False),
    "dt-recall": (PaperConfig, True),
    "ff": (FeedForwardConfig, False),
    "ff-recall": (FeedForwardConfig, True),
}
VARIANTS = tuple(_VARIANTS)
"""The paper's four architectures."""


def paper_net(problem: str, variant: str = "dt-recall") -> PaperConfig:
    """The configuration of one of the paper's networks.

    >>> paper_net("chess").width
    512
    """
    if problem not in _SHARED:
        raise UnknownName(registry.unknown_name("task", problem, tuple(_SHARED)))
    return variant_config(variant, problem, **_SHARED[problem])


def variant_config(
    variant: str,
    problem: str,
    *,
    dims: int,
    channels: int,
    classes: int = 2,
    readout: str = "argmax",
    width: int | None = None,
    head: tuple[int, ...] | None = None,
    group_norm: bool = False,
    bounded: bool = False,
    depth: int = 30,
) -> PaperConfig:
    """One of the paper's architectures for any problem; what is None is the paper's choice.

        >>> config = variant_config("dt-recall", "mine", dims=2, channels=4, classes=3)
        >>> build(config.kind, config).answer(torch.zeros(1, config.width, 5, 5)).shape
        torch.Size([1, 3, 5, 5])

    The paper's head is (width, width / 2) in 1D and (32, 8) in 2D; a problem that the paper has
    not gets 64 features.
    """
    if variant not in VARIANTS:
        raise UnknownName(registry.unknown_name("network", variant, VARIANTS))
    made, recall = _VARIANTS[variant]
    features = width or _SHARED.get(problem, {}).get("width", 64)
    shared: dict[str, Any] = {
        "dims": dims,
        "channels": channels,
        "classes": classes,
        "width": features,
        "head": head or ((features, max(1, features // 2)) if dims == 1 else (32, 8)),
        "readout": readout,
        "recall": recall,
        "group_norm": group_norm,
        "bounded": bounded,
    }
    # The authors put a ReLU after the recall convolution of recurrent networks in 1D alone.
    own = {"depth": depth} if made is FeedForwardConfig else {"recall_relu": recall and dims == 1}
    return made(**shared, **own)


def build(kind: str, config: dict[str, Any] | PaperConfig, seed: int | None = None) -> Net:
    """A network from its kind and configuration, as JSON or checkpoints hold them.

        >>> config = paper_net("mazes", "dt")
        >>> net = build(config.kind, config, seed=0)

    Weights are drawn from ``seed`` without touching the global generator; None leaves them to be
    loaded, still drawn, from seed 0.
    """
    made = registry.find("net", kind)
    # A configuration may come from a stranger: it can name a network and nothing else.
    is_module = isinstance(made, type) and issubclass(made, nn.Module)
    if not is_module or not all(callable(getattr(made, name, None)) for name in METHODS):
        raise NetError(
            f"{kind!r} is no network: wanted an nn.Module with the methods {', '.join(METHODS)}"
        )
    try:
        if not hasattr(made, "Config"):  # a user's own class, built from keywords
            given = config if isinstance(config, dict) else {}
            own: Any = _drawn(seed, lambda: made(**given))
            if not hasattr(own, "config"):  # what it is for, where it does not say so itself
                own.config = dict(given)
            mine: Net = own
            return mine
        ready = made.Config(**config) if isinstance(config, dict) else config
    except TypeError as error:
        if not hasattr(made, "Config"):
            wanted = tuple(config) if isinstance(config, dict) else ()
            raise NetError(
                f"{kind!r} cannot be built with {', '.join(f'{word}=' for word in wanted)} "
                f"({error}); wanted __init__(self, {', '.join(wanted)}), and defaults for what "
                "else it takes"
            ) from error
        raise DataError(
            f"the configuration of a {kind!r} network does not fit ({error}); "
            "it was written by another version or edited by hand"
        ) from error
    net: Net = _drawn(seed, lambda: made(ready))
    return net


def _drawn(seed: int | None, make: Callable[[], Any]) -> Any:
    """Build with weights drawn from the seed, leaving the global generator as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed or 0)
        return make()


def catalogue() -> list[tuple[str, int]]:
    """The paper's networks and their parameter counts, without allocating them.

    >>> dict(catalogue())["mazes dt-recall"]
    783504
    """
    rows = []
    for problem in _SHARED:
        for variant in VARIANTS:
            config = paper_net(problem, variant)
            with torch.device("meta"):
                net = build(config.kind, config)
            rows.append((f"{problem} {variant}", parameter_count(net)))
    return rows


def parameter_count(net: Net) -> int:
    """How many numbers a network has learned; 0 for one that is no ``nn.Module``.

    >>> parameter_count(iterant.load("mazes"))
    622
    """
    if not isinstance(net, nn.Module):
        return 0
    return sum(weight.numel() for weight in net.parameters())
