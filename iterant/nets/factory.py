"""The configurations of the paper's networks, and `build` for any network.

>>> paper_net("mazes", "dt-recall").width
128
"""

from __future__ import annotations

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
    """One of the paper's architectures for any problem; None: the paper's choice.

        >>> config = variant_config("dt-recall", "mine", dims=2, channels=4, classes=3)
        >>> build(config.kind, config).answer(torch.zeros(1, config.width, 5, 5)).shape
        torch.Size([1, 3, 5, 5])

    The paper's head is (width, width / 2) in 1D and (32, 8) in 2D; problems that are not in
    the paper get 64 features.
    """
    if variant not in VARIANTS:
        raise UnknownName(registry.unknown_name("network", variant, VARIANTS))
    config, recall = _VARIANTS[variant]
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
    # The authors have a ReLU after the recall convolution of recurrent networks, in 1D only.
    own = {"depth": depth} if config is FeedForwardConfig else {"recall_relu": recall and dims == 1}
    return config(**shared, **own)


def build(kind: str, config: dict[str, Any] | PaperConfig, seed: int | None = None) -> Net:
    """A network from its kind and configuration, as JSON or checkpoints hold them.

        >>> config = paper_net("mazes", "dt")
        >>> net = build(config.kind, config, seed=0)

    Weights are drawn from ``seed`` without touching the global generator; None: from seed 0, for
    weights that are loaded afterwards.
    """
    net_class = registry.find("net", kind)
    # A configuration may come from an untrusted file: it can name nothing but a network.
    is_module = isinstance(net_class, type) and issubclass(net_class, nn.Module)
    if not is_module or not all(callable(getattr(net_class, name, None)) for name in METHODS):
        raise NetError(
            f"{kind!r} is no network: wanted an nn.Module with the methods {', '.join(METHODS)}"
        )
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed or 0)
        if not hasattr(net_class, "Config"):
            return _user_net(net_class, kind, config if isinstance(config, dict) else {})
        try:
            described = net_class.Config(**config) if isinstance(config, dict) else config
        except TypeError as error:
            raise DataError(
                f"the configuration of a {kind!r} network does not fit ({error}); "
                "it was written by another version or edited by hand"
            ) from error
        net: Net = net_class(described)
    return net


def _user_net(net_class: Any, kind: str, arguments: dict[str, Any]) -> Net:
    """A user-defined network, built from keyword arguments."""
    try:
        net = net_class(**arguments)
    except TypeError as error:
        raise NetError(
            f"{kind!r} cannot be built with {', '.join(f'{name}=' for name in arguments)} "
            f"({error}); wanted __init__(self, {', '.join(arguments)}), and defaults for what "
            "else it takes"
        ) from error
    if not hasattr(net, "config"):  # what inputs it reads, see `needs_of`
        net.config = dict(arguments)
    built: Net = net
    return built


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
    """The number of parameters; 0 for a network that is no ``nn.Module``.

    >>> parameter_count(iterant.load("mazes"))
    622
    """
    if not isinstance(net, nn.Module):
        return 0
    return sum(weight.numel() for weight in net.parameters())
