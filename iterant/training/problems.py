"""The training set: problems of the recipe's size, on the device, split once and for all.

>>> problems = Problems.of(task, recipe, device)
>>> inputs, targets = problems.rows(order.take(0, 50))
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from iterant.errors import RecipeError
from iterant.tasks.chance import Stream
from iterant.tasks.protocol import Batch, Size, Task
from iterant.training.recipe import Recipe


@dataclass(frozen=True)
class Problems:
    """What is trained on, and what is held out."""

    inputs: Tensor
    """(N, C, *S), as whole numbers where that loses nothing"""
    targets: Tensor
    held_out: Batch
    """The validation set"""

    @classmethod
    def of(cls, task: Task, recipe: Recipe, device: torch.device) -> Problems:
        """Make the set that a recipe asks for."""
        size = task.check_size(recipe.size)
        count = set_size(task, recipe, size)
        held, _ = shares(task, recipe, count)
        whole = task.sample(count, size=size, seed=recipe.data_seed)
        order = torch.from_numpy(Stream(recipe.data_seed, "training", "split").order(count))
        train = order[held:].sort().values
        return cls(
            _compact(whole.inputs[train]).to(device),
            whole.targets[train].to(device),
            whole[order[:held].sort().values],
        )

    def __len__(self) -> int:
        """How many problems are trained on."""
        return len(self.inputs)

    def rows(self, which: Tensor) -> tuple[Tensor, Tensor]:
        """Some problems as a network reads them."""
        index = which.to(self.inputs.device, non_blocking=True)
        return self.inputs[index].float(), self.targets[index]


def set_size(task: Task, recipe: Recipe, size: Size) -> int:
    """The recipe's count, the task's own, or all that an index range holds."""
    if recipe.count is not None:
        return recipe.count
    count = task.spec.train_count
    return min(count, size[1] - size[0]) if isinstance(size, tuple) else count


def shares(task: Task, recipe: Recipe, count: int) -> tuple[int, int]:
    """How many problems are held out and how many trained on, which must be a batch at least."""
    held = round(count * recipe.validation)
    if count - held < recipe.batch:
        raise RecipeError(
            f"a batch of {recipe.batch} does not fit the {count - held} training problems of "
            f"{task.spec.name}; choose a smaller batch or a larger count"
        )
    return held, count - held


def _compact(inputs: Tensor) -> Tensor:
    """The same numbers in a byte each where they are whole and small."""
    small = inputs.to(torch.int8)
    return small if torch.equal(small.float(), inputs) else inputs
