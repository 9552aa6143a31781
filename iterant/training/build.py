"""From a recipe to its network and objective.

>>> objective = build_objective(recipe)
>>> net, description = build_network(recipe, task.spec, seed=0)
>>> plan(task, recipe).updates
40000
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from iterant import registry
from iterant.errors import UnknownName
from iterant.nets import LocalRuleConfig, Net, PaperConfig, build, parameter_count, variant_config
from iterant.nets.factory import VARIANTS
from iterant.nets.protocol import check_user_net
from iterant.tasks.protocol import Size, Task, TaskSpec
from iterant.training.data import set_size, split_sizes
from iterant.training.objectives import Objective
from iterant.training.recipe import Recipe


def build_objective(recipe: Recipe) -> Objective:
    """The objective that the recipe names."""
    objective: Objective = registry.find("objective", recipe.objective)(recipe)
    return objective


def build_network(recipe: Recipe, spec: TaskSpec, seed: int) -> tuple[Net, dict[str, Any]]:
    """A new network for a task, and the kind and configuration that build it again."""
    config: dict[str, Any]
    if ":" in recipe.net:
        config = {"dims": spec.dims, "channels": spec.channels}
        if spec.classes != 2:  # user-defined networks without the argument have two classes
            config["classes"] = spec.classes
        net = build(recipe.net, config, seed=seed)
        check_user_net(net, recipe.net, **config)
        return net, {"kind": recipe.net, "config": config}
    described = _config(recipe, spec)
    kind, config = described.kind, described.described()
    return build(kind, config, seed=seed), {"kind": kind, "config": config}


def _config(recipe: Recipe, spec: TaskSpec) -> PaperConfig | LocalRuleConfig:
    if recipe.net == "local-rule":
        return LocalRuleConfig(
            dims=spec.dims, channels=spec.channels, width=recipe.width or 16,
            hidden=recipe.hidden, stem=spec.square, isotropic=recipe.isotropic,
            messages=recipe.messages, masked=recipe.masked, classes=spec.classes,
            readout=spec.readout,
        )  # fmt: skip
    if recipe.net not in VARIANTS:
        names = (*VARIANTS, "local-rule")
        raise UnknownName(f"{registry.unknown_name('network', recipe.net, names)}; or module:Class")
    return variant_config(
        recipe.net, spec.name, dims=spec.dims, channels=spec.channels, classes=spec.classes,
        readout=spec.readout, width=recipe.width, head=recipe.head, group_norm=recipe.group_norm,
        bounded=recipe.bounded, depth=recipe.iterations,
    )  # fmt: skip


@dataclass(frozen=True)
class Plan:
    """A recipe applied to a task: sizes and counts, before anything is trained."""

    network: dict[str, Any]
    """Kind and configuration, as in checkpoints"""
    parameters: int
    size: Size
    """Of the training problems"""
    problems: int
    """Training problems"""
    held_out: int
    """Validation problems"""
    updates_per_epoch: int
    updates: int


def plan(task: Task, recipe: Recipe) -> Plan:
    """What a run with this recipe would be; raises what the run would raise."""
    net, description = build_network(recipe, task.spec, seed=0)
    size = task.check_size(recipe.size)
    held_out, problems = split_sizes(task, recipe, set_size(task, recipe, size))
    per_epoch = problems // recipe.batch
    return Plan(
        network=description,
        parameters=parameter_count(net),
        size=size,
        problems=problems,
        held_out=held_out,
        updates_per_epoch=per_epoch,
        updates=per_epoch * recipe.epochs,
    )
