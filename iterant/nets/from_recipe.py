"""The network that a recipe names, for a task.

>>> net, description = build_network(recipe.described(), task.spec, seed=0)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from iterant import registry
from iterant.errors import UnknownName
from iterant.nets.deep_thinking import (
    PAPER_KINDS,
    VARIANTS,
    FeedForwardConfig,
    PaperConfig,
    variant_config,
)
from iterant.nets.protocol import Net, build, check_user_net
from iterant.tasks.protocol import TaskSpec


def build_network(
    settings: Mapping[str, Any], spec: TaskSpec, seed: int
) -> tuple[Net, dict[str, Any]]:
    """A new network for a task, and the kind and configuration that build it again.

    ``settings`` are the fields of a recipe: ``net``, and what configures that network. ``net`` is
    one of `VARIANTS`, a registered name other than `PAPER_KINDS`, or ``module:Class``; a subclass
    of a network of ours is configured like that network.
    """
    name = settings["net"]
    shape: dict[str, Any] = {"dims": spec.dims, "channels": spec.channels}
    base = base_of(name) if ":" in name else name
    if base is None:
        if spec.classes != 2:  # user-defined networks without the argument have two classes
            shape["classes"] = spec.classes
        net = build(name, shape, seed=seed)
        check_user_net(net, name, **shape)
        return net, {"kind": name, "config": shape}
    shape |= {"classes": spec.classes, "readout": spec.readout}
    others = [kind for kind in registry.known("net") if kind not in PAPER_KINDS]
    if base in VARIANTS:
        values = {name: settings[name] for name in ("width", "head", "group_norm", "bounded")}
        depth = settings["iterations"]
        config: Any = variant_config(base, spec.name, **shape, **values, depth=depth)
    elif base in others:
        # Every field of its configuration that a recipe has too; None leaves the default.
        config_class = registry.find("net", base).Config
        values = {**settings, **shape, "stem": spec.square}
        known = {field.name for field in fields(config_class)}
        config = config_class(
            **{key: value for key, value in values.items() if key in known and value is not None}
        )
    else:
        words = (*VARIANTS, *others)
        raise UnknownName(registry.unknown_name("network", name, words, or_give="module:Class"))
    description = {"kind": name if ":" in name else config.kind, "config": config.described()}
    return build(**description, seed=seed), description


def base_of(name: str) -> str | None:
    """The network of ours that ``module:Class`` is a subclass of, as recipes name it, or None."""
    net_class = registry.find("net", name)
    variants = {PaperConfig.kind: "dt-recall", FeedForwardConfig.kind: "ff-recall"}
    for kind in registry.known("net"):
        if issubclass(net_class, registry.find("net", kind)):
            return variants.get(kind, kind)
    return None
