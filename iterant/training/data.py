"""The training set: problems of the recipe's size, on the device, split by the data seed.

>>> problems = TrainingSet.of(task, recipe, device)
>>> inputs, targets = problems.rows(shuffle.take(0, 50), StepRng(seed=0, update=0))
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from iterant.errors import RecipeError, TaskError
from iterant.tasks.protocol import Batch, Mirrors, PackedProblems, Packs, Size, Task
from iterant.tasks.rng import Stream
from iterant.training.recipe import Recipe
from iterant.training.rng import StepRng, to_device


@dataclass(frozen=True)
class TrainingSet:
    """Training and validation problems."""

    train: PackedProblems
    """On the device, a few bytes per problem"""
    held_out: Batch
    """The validation set"""
    mirrored: Mirrors | None = None
    """The task, where half of the problems are mirrored"""

    @classmethod
    def of(cls, task: Task, recipe: Recipe, device: torch.device) -> TrainingSet:
        """The set that a recipe asks for."""
        size = task.check_size(recipe.size)
        count = set_size(task, recipe, size)
        validation, _ = split_sizes(task, recipe, count)
        order = torch.from_numpy(Stream(recipe.data_seed, "training", "split").order(count))
        held_out, train = order[:validation].sort().values, order[validation:].sort().values
        mirrored = None
        if recipe.mirror:
            if not isinstance(task, Mirrors):
                raise RecipeError(
                    f"mirror = true needs a task with mirror images, {task.spec.name} has none "
                    "(no method `mirrored`); leave it out"
                )
            mirrored = task
        if recipe.places and task.spec.classes != 2:
            raise RecipeError(
                f"places asks where class 1 is, and {task.spec.name} has {task.spec.classes} "
                "classes; leave it out"
            )
        if isinstance(task, Packs) and task.packs:
            rows = task.packed(count, size=size, seed=recipe.data_seed)
            return cls(SubsetRows(rows, train).to(device), Batch(*rows[held_out]), mirrored)
        batch = task.sample(count, size=size, seed=recipe.data_seed)
        _check_classes(task, batch.targets)
        inputs = batch.inputs[train]
        small = inputs.to(torch.int8)  # a quarter of the memory, where that is exact
        inputs = small if torch.equal(small.float(), inputs) else inputs
        tensors = TensorRows(inputs, batch.targets[train])
        return cls(tensors.to(device), batch[held_out], mirrored)

    def __len__(self) -> int:
        """Number of training problems."""
        return len(self.train)

    def rows(self, which: Tensor, rng: StepRng) -> tuple[Tensor, Tensor]:
        """Inputs (B, C, *S) and targets (B, *S) of some problems, for one optimizer step."""
        inputs, targets = self.train[which]
        if self.mirrored is None:
            return inputs, targets
        choose = torch.from_numpy(rng.integers(len(which), 2, "mirror") == 1)
        return self.mirrored.mirrored(inputs, targets, to_device(choose, inputs.device))


@dataclass(frozen=True)
class TensorRows:
    """Problems as tensors, in int8 where that is exact."""

    inputs: Tensor
    targets: Tensor

    def __len__(self) -> int:
        """Number of problems."""
        return len(self.inputs)

    def to(self, device: torch.device) -> TensorRows:
        """The same problems on another device."""
        return TensorRows(self.inputs.to(device), self.targets.to(device))

    def __getitem__(self, which: Tensor) -> tuple[Tensor, Tensor]:
        """Inputs (B, C, *S) and targets (B, *S) of some problems."""
        index = to_device(which, self.inputs.device)
        return self.inputs[index].float(), self.targets[index]


@dataclass(frozen=True)
class SubsetRows:
    """A subset of packed problems."""

    rows: PackedProblems
    which: Tensor

    def __len__(self) -> int:
        """Number of problems."""
        return len(self.which)

    def to(self, device: torch.device) -> SubsetRows:
        """The same problems on another device."""
        return SubsetRows(self.rows.to(device), self.which.to(device))

    def __getitem__(self, which: Tensor) -> tuple[Tensor, Tensor]:
        """Inputs (B, C, *S) and targets (B, *S) of some problems."""
        return self.rows[self.which[to_device(which, self.which.device)]]


def _check_classes(task: Task, targets: Tensor) -> None:
    """Check target classes up front: on a GPU an out-of-range index fails without a location."""
    least, most, classes = int(targets.min()), int(targets.max()), task.spec.classes
    if least < 0 or most >= classes:
        raise TaskError(
            f"{task.spec.name} has answers of class {least} to {most}, and its spec says classes 0 "
            f"to {classes - 1}; give the spec as many as there are"
        )


def set_size(task: Task, recipe: Recipe, size: Size) -> int:
    """Number of problems: the recipe's, else the task's, at most the length of an index range."""
    if recipe.count is not None:
        return recipe.count
    count = task.spec.train_count
    return min(count, size[1] - size[0]) if isinstance(size, tuple) else count


def split_sizes(task: Task, recipe: Recipe, count: int) -> tuple[int, int]:
    """Numbers of validation and training problems, at least one batch of the latter."""
    validation = round(count * recipe.validation)
    if count - validation < recipe.batch:
        raise RecipeError(
            f"a batch of {recipe.batch} does not fit the {count - validation} training problems of "
            f"{task.spec.name}; choose a smaller batch or a larger count"
        )
    return validation, count - validation
