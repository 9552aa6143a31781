"""What a recipe comes to for a task, before anything is trained.

>>> plan(task, recipe("paper", "mazes")).parameters
783504
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from iterant.nets import parameter_count
from iterant.tasks.protocol import Size, Task
from iterant.training.parts import network_of
from iterant.training.problems import set_size, shares
from iterant.training.recipe import Recipe


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
    net, described = network_of(recipe, task.spec, seed=0)
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
