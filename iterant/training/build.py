"""From a recipe's words to the parts of a run: network, objective, optimiser, rate.

>>> objective = objective_of(recipe)
>>> factor = rate_factor(recipe, update=0, per_epoch=80)

What a recipe comes to for a task, before anything is trained.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from iterant import registry
from iterant.errors import UnknownName
from iterant.nets import LocalRuleConfig, Net, PaperConfig, build, parameter_count, variant_config
from iterant.nets.factory import VARIANTS
from iterant.nets.protocol import check_own
from iterant.tasks.protocol import Size, Task, TaskSpec
from iterant.training.data import set_size, shares
from iterant.training.objectives import Objective, Progressive, RunTimeWeighted
from iterant.training.optim import Muon
from iterant.training.recipe import Recipe
from iterant.training.replay_pool import ReplayPool


def progressive(recipe: Recipe) -> Objective:
    """The paper's progressive loss."""
    return Progressive(recipe.iterations, recipe.alpha)


def progressive_n0(recipe: Recipe) -> Objective:
    """The progressive loss whose stretch always begins at the beginning."""
    return Progressive(recipe.iterations, recipe.alpha, prefix=False)


def run_time_weighted(recipe: Recipe) -> Objective:
    """A loss after every iteration, late ones counting more."""
    return RunTimeWeighted(recipe.iterations)


def pool(recipe: Recipe) -> Objective:
    """The replay pool."""
    return ReplayPool(
        batch=recipe.batch,
        slots=recipe.pool_slots,
        fresh=recipe.pool_fresh,
        stay=recipe.pool_stay,
        swap=recipe.pool_swap,
        damage=recipe.pool_damage,
        kinds=recipe.pool_damage_kinds,
        shake=recipe.pool_shake,
        varied=recipe.pool_shake_varied,
        shortest=recipe.pool_shortest,
        longest=recipe.pool_longest or recipe.iterations,
        every=recipe.pool_every,
        settle=recipe.pool_settle,
        hard=recipe.pool_hard,
    )


def build_objective(recipe: Recipe) -> Objective:
    """The objective that the recipe names."""
    made: Objective = registry.find("objective", recipe.objective)(recipe)
    return made


def _paper_net(recipe: Recipe, spec: TaskSpec) -> PaperConfig:
    return variant_config(
        recipe.net,
        spec.name,
        dims=spec.dims,
        channels=spec.channels,
        classes=spec.classes,
        readout=spec.readout,
        width=recipe.width,
        head=recipe.head,
        group_norm=recipe.group_norm,
        bounded=recipe.bounded,
        depth=recipe.iterations,
    )


def _local_rule(recipe: Recipe, spec: TaskSpec) -> LocalRuleConfig:
    return LocalRuleConfig(
        dims=spec.dims,
        channels=spec.channels,
        width=recipe.width or 16,
        hidden=recipe.hidden,
        stem=spec.square,
        isotropic=recipe.isotropic,
        messages=recipe.messages,
        masked=recipe.masked,
        classes=spec.classes,
        readout=spec.readout,
    )


_MAKERS: dict[str, Callable[[Recipe, TaskSpec], PaperConfig | LocalRuleConfig]] = {
    "local-rule": _local_rule
}
"""What builds a network that is not one of the paper's, by the recipe's word for it."""


def build_network(recipe: Recipe, spec: TaskSpec, seed: int) -> tuple[Net, dict[str, Any]]:
    """A new network for a task, and what `iterant.nets.build` needs to build it again."""
    described: dict[str, Any]
    if ":" in recipe.net:
        asked = {"dims": spec.dims, "channels": spec.channels}
        if spec.classes != 2:  # a class that takes no number of classes has two
            asked["classes"] = spec.classes
        described = {"kind": recipe.net, "config": asked}
        net = build(recipe.net, asked, seed=seed)
        check_own(net, recipe.net, **asked)
        return net, described
    if recipe.net not in (words := (*VARIANTS, *_MAKERS)):
        raise UnknownName(f"{registry.unknown_name('network', recipe.net, words)}; or module:Class")
    config = _MAKERS.get(recipe.net, _paper_net)(recipe, spec)
    described = {"kind": config.kind, "config": config.described()}
    return build(described["kind"], described["config"], seed=seed), described


def adam(groups: Iterable[dict[str, Any]], recipe: Recipe) -> torch.optim.Optimizer:
    """Adam with the weight decay added to the gradient."""
    return torch.optim.Adam(groups, **_adams(recipe))


def adamw(groups: Iterable[dict[str, Any]], recipe: Recipe) -> torch.optim.Optimizer:
    """Adam with decoupled weight decay."""
    return torch.optim.AdamW(groups, **_adams(recipe))


def _adams(recipe: Recipe) -> dict[str, Any]:
    betas, decay = (0.9, recipe.beta2), recipe.weight_decay
    return {"lr": recipe.rate, "betas": betas, "weight_decay": decay, "fused": True}


def sgd(groups: Iterable[dict[str, Any]], recipe: Recipe) -> torch.optim.Optimizer:
    """Stochastic gradient descent with momentum."""
    return torch.optim.SGD(
        groups,
        lr=recipe.rate,
        momentum=recipe.momentum,
        weight_decay=recipe.weight_decay,
        fused=True,
    )


def muon(groups: Iterable[dict[str, Any]], recipe: Recipe) -> torch.optim.Optimizer:
    """Orthogonalised momentum for the recurrent kernels, AdamW for the others."""
    return Muon(
        groups,
        recipe.rate,
        momentum=recipe.momentum,
        betas=(0.9, recipe.beta2),
        weight_decay=recipe.weight_decay,
    )


def build_optimizer(recipe: Recipe, net: nn.Module) -> torch.optim.Optimizer:
    """The optimiser that the recipe names; recurrent parameters are a group of their own."""
    shared: Any = getattr(net, "recurrent", [])
    matrices = frozenset(id(weight) for weight in getattr(net, "between", shared))
    recurrent = {id(weight) for weight in shared} if recipe.throttle else set()
    weights = list(net.parameters())
    groups = [
        {"params": [w for w in weights if id(w) not in recurrent], "share": 1.0},
        {"params": [w for w in weights if id(w) in recurrent], "share": 1 / recipe.iterations},
    ]
    groups = [{**group, "matrices": matrices} for group in groups]
    made: torch.optim.Optimizer = registry.find("optimizer", recipe.optimizer)(
        [group for group in groups if group["params"]], recipe
    )
    return made


def steps(recipe: Recipe, epoch: int, progress: float) -> float:
    """Multiply by the decay at each milestone."""
    return recipe.decay ** sum(epoch >= milestone for milestone in recipe.milestones)


def cosine(recipe: Recipe, epoch: int, progress: float) -> float:
    """Half a cosine from 1 to 0 over the whole run."""
    return 0.5 * (1 + math.cos(math.pi * progress))


def constant(recipe: Recipe, epoch: int, progress: float) -> float:
    """No decay."""
    return 1.0


def hold(recipe: Recipe, epoch: int, progress: float) -> float:
    """No decay for a share of the run, then a straight fall towards nothing at its end."""
    return min(1.0, (1 - progress) / (1 - recipe.hold))


def lr_factor(recipe: Recipe, update: int, per_epoch: int) -> float:
    """What the learning rate is multiplied by at an update: warm-up times schedule.

    The last epoch of the warm-up has the full rate already, as in the authors' code.
    """
    epoch, total = update // per_epoch, per_epoch * recipe.epochs
    warm = 1 - math.exp(-(epoch + 1) / recipe.warmup) if epoch + 1 < recipe.warmup else 1.0
    if update < recipe.warmup_updates:
        warm *= (update + 1) / recipe.warmup_updates
    factor: float = registry.find("schedule", recipe.schedule)(recipe, epoch, update / total)
    return warm * factor


@dataclass(frozen=True)
class Plan:
    """A recipe with every open question answered."""

    network: dict[str, Any]
    """Its kind and configuration, as checkpoints hold them"""
    parameters: int
    size: Size
    """Of the training problems"""
    problems: int
    """Trained on"""
    held_out: int
    """Kept for validation"""
    updates_per_epoch: int
    updates: int


def plan(task: Task, recipe: Recipe) -> Plan:
    """What a run with this recipe would be; refuses what the run would refuse."""
    net, described = build_network(recipe, task.spec, seed=0)
    size = task.check_size(recipe.size)
    held_out, problems = shares(task, recipe, set_size(task, recipe, size))
    per_epoch = problems // recipe.batch
    return Plan(
        network=described,
        parameters=parameter_count(net),
        size=size,
        problems=problems,
        held_out=held_out,
        updates_per_epoch=per_epoch,
        updates=per_epoch * recipe.epochs,
    )
