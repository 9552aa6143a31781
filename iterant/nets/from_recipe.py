"""The network that a recipe names, for a task.

>>> net, description = build_network({"net": "dt-recall", "width": 32}, task.spec, seed=0)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from iterant import registry
from iterant.errors import UnknownName
from iterant.nets.deep_thinking import PAPER_KINDS, VARIANTS, variant_config
from iterant.nets.protocol import Net, build, check_user_net
from iterant.tasks.protocol import TaskSpec


def build_network(
    settings: Mapping[str, Any], spec: TaskSpec, seed: int
) -> tuple[Net, dict[str, Any]]:
    """A new network for a task, and the kind and configuration that build it again.

    ``settings`` are the fields of a recipe: ``net``, and what configures that network.
    """
    name = settings["net"]
    shape: dict[str, Any] = {"dims": spec.dims, "channels": spec.channels}
    if ":" in name:
        if spec.classes != 2:  # user-defined networks without the argument have two classes
            shape["classes"] = spec.classes
        net = build(name, shape, seed=seed)
        check_user_net(net, name, **shape)
        return net, {"kind": name, "config": shape}
    shape |= {"classes": spec.classes, "readout": spec.readout}
    others = [kind for kind in registry.known("net") if kind not in PAPER_KINDS]
    if name in VARIANTS:
        names = ("width", "head", "group_norm", "bounded")
        values = {key: settings[key] for key in names if key in settings}
        depth = settings.get("iterations", 30)
        config: Any = variant_config(name, spec.name, **shape, **values, depth=depth)
    elif name in others:
        # Every field of its configuration that a recipe has too; None leaves the default.
        config_class = registry.find("net", name).Config
        values = {**settings, **shape, "stem": spec.square}
        known = {field.name for field in fields(config_class)}
        config = config_class(
            **{key: value for key, value in values.items() if key in known and value is not None}
        )
    else:
        known_nets = (*VARIANTS, *others)
        message = registry.unknown_name("network", name, known_nets, or_give="module:Class")
        raise UnknownName(message)
    description = {"kind": config.kind, "config": config.described()}
    return build(**description, seed=seed), description
