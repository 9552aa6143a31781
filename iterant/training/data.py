"""The training set: problems of the recipe's size, on the device, split once and for all.

>>> problems = Problems.of(task, recipe, device)
>>> inputs, targets = problems.rows(order.take(0, 50), moment)
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
    """What is trained on, and what is held out."""

    train: PackedProblems
    """Few bytes a problem, on the device"""
    held_out: Batch
    """The validation set"""
    mirrored: Mirrors | None = None
    """The task, where half of the problems are to be shown mirrored"""

    @classmethod
    def of(cls, task: Task, recipe: Recipe, device: torch.device) -> TrainingSet:
        """Make the set that a recipe asks for."""
        size = task.check_size(recipe.size)
        count = set_size(task, recipe, size)
        held, _ = split_sizes(task, recipe, count)
        order = torch.from_numpy(Stream(recipe.data_seed, "training", "split").order(count))
        held_out, train = order[:held].sort().values, order[held:].sort().values
        mirrored = _mirroring(task) if recipe.mirror else None
        if recipe.places and task.spec.classes != 2:
            raise RecipeError(
                f"places asks where class 1 is, and {task.spec.name} has {task.spec.classes} "
                "classes; leave it out"
            )
        if isinstance(task, Packs) and task.packs:
            rows = task.packed(count, size=size, seed=recipe.data_seed)
            return cls(Chosen(rows, train).to(device), Batch(*rows[held_out]), mirrored)
        integer = task.sample(count, size=size, seed=recipe.data_seed)
        _check_classes(task, integer.targets)
        made = Plain(_compact(integer.inputs[train]), integer.targets[train])
        return cls(made.to(device), integer[held_out], mirrored)

    def __len__(self) -> int:
        """How many problems are trained on."""
        return len(self.train)

    def rows(self, which: Tensor, rng: StepRng) -> tuple[Tensor, Tensor]:
        """Some problems as a network reads them, at this moment of a run."""
        inputs, targets = self.train[which]
        if self.mirrored is None:
            return inputs, targets
        choose = torch.from_numpy(rng.integers(len(which), 2, "mirror") == 1)
        return self.mirrored.mirrored(inputs, targets, to_device(choose, inputs.device))


@dataclass(frozen=True)
class Plain:
    """Problems as they are, in a byte a number where that loses nothing."""

    inputs: Tensor
    targets: Tensor

    def __len__(self) -> int:
        """How many problems."""
        return len(self.inputs)

    def to(self, device: torch.device) -> Plain:
        """The same problems on another device."""
        return Plain(self.inputs.to(device), self.targets.to(device))

    def __getitem__(self, which: Tensor) -> tuple[Tensor, Tensor]:
        """Some problems as a network reads them."""
        index = to_device(which, self.inputs.device)
        return self.inputs[index].float(), self.targets[index]


@dataclass(frozen=True)
class Chosen:
    """Some of many problems."""

    rows: PackedProblems
    which: Tensor

    def __len__(self) -> int:
        """How many problems."""
        return len(self.which)

    def to(self, device: torch.device) -> Chosen:
        """The same problems on another device."""
        return Chosen(self.rows.to(device), self.which.to(device))

    def __getitem__(self, which: Tensor) -> tuple[Tensor, Tensor]:
        """Some problems as a network reads them."""
        return self.rows[self.which[to_device(which, self.which.device)]]


def _check_classes(task: Task, targets: Tensor) -> None:
    """Refuse answers that no score stands for: a GPU would say so without a word of where."""
    least, most, classes = int(targets.min()), int(targets.max()), task.spec.classes
    if least < 0 or most >= classes:
        raise TaskError(
            f"{task.spec.name} has answers of class {least} to {most}, and its spec says classes 0 "
            f"to {classes - 1}; give the spec as many as there are"
        )


def _mirroring(task: Task) -> Mirrors:
    if not isinstance(task, Mirrors):
        raise RecipeError(
            f"mirror = true needs a task with mirror images, {task.spec.name} has none "
            "(no method `mirrored`); leave it out"
        )
    return task


def set_size(task: Task, recipe: Recipe, size: Size) -> int:
    """The recipe's count, the task's own, or all that an index range holds."""
    if recipe.count is not None:
        return recipe.count
    count = task.spec.train_count
    return min(count, size[1] - size[0]) if isinstance(size, tuple) else count


def split_sizes(task: Task, recipe: Recipe, count: int) -> tuple[int, int]:
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
