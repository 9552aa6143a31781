"""The training set: problems of the recipe's size, on the device, split by the data seed.

>>> problems = TrainingSet.of(task, recipe, device)
>>> inputs, targets = problems.rows(shuffle.take(0, 50), StepRng(seed=0, step=0))
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from iterant.errors import RecipeError, TaskError
from iterant.rng import StepRng, Stream
from iterant.tasks.protocol import Batch, PackedProblems, Task, offers
from iterant.training.recipe import Recipe


def to_device(values: Tensor, device: torch.device) -> Tensor:
    """Copy a CPU tensor to a device without waiting for the work queued there.

    Only copies from pinned memory are asynchronous.
    """
    if device.type != "cuda":
        return values.to(device)
    return values.pin_memory().to(device, non_blocking=True)


@dataclass(frozen=True)
class TrainingSet:
    """Training and validation problems."""

    problems: PackedProblems
    """All of them, packed, on the device"""
    train: Tensor
    """(N,) indices of the training problems"""
    held_out: Batch
    """The validation set"""
    mirrored: Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor]] | None = None
    """The task's function, if the recipe mirrors half of each batch"""

    @classmethod
    def of(cls, task: Task, recipe: Recipe, device: torch.device) -> TrainingSet:
        """The set that a recipe asks for."""
        name, size = task.spec.name, task.check_size(recipe.size)
        validation, training = split_sizes(task, recipe)
        mirrored = None
        if recipe.mirror:
            if not offers(task, "mirrored"):
                raise RecipeError(
                    f"mirror = true needs a task with mirror images, {name} has none "
                    "(no method `mirrored`); leave it out"
                )
            mirrored = task.mirrored
        if recipe.position_loss and task.spec.classes != 2:
            raise RecipeError(
                f"position_loss asks where class 1 is, and {name} has {task.spec.classes} classes; "
                "leave it out"
            )
        count = validation + training
        order = torch.from_numpy(Stream(recipe.data_seed, "training", "split").order(count))
        held_out, train = order[:validation].sort().values, order[validation:].sort().values
        problems: PackedProblems | None = None
        if offers(task, "packed"):
            problems = task.packed(count, size=size, seed=recipe.data_seed)
        if problems is None:  # or the data in use cannot be packed
            batch = task.sample(count, size=size, seed=recipe.data_seed)
            _check_classes(task, batch.targets)
            small = batch.inputs.to(torch.int8)  # a quarter of the memory, where that is exact
            exact = torch.equal(small.float(), batch.inputs)
            problems = TensorRows(small if exact else batch.inputs, batch.targets)
        validation_set = Batch(*problems[held_out])
        return cls(problems.to(device), train.to(device), validation_set, mirrored)

    def __len__(self) -> int:
        return len(self.train)

    def __getitem__(self, which: Tensor) -> tuple[Tensor, Tensor]:
        """Inputs (B, C, *S) and targets (B, *S) of some training problems."""
        return self.problems[self.train[to_device(which, self.train.device)]]

    def rows(self, which: Tensor, rng: StepRng) -> tuple[Tensor, Tensor]:
        """The batch of an optimizer step: as `__getitem__`, half mirrored if the recipe says so."""
        inputs, targets = self[which]
        if self.mirrored is None:
            return inputs, targets
        mask = torch.from_numpy(rng.integers(len(which), 2, "mirror") == 1)  # (B,)
        return self.mirrored(inputs, targets, to_device(mask, inputs.device))


@dataclass(frozen=True)
class TensorRows:
    """Problems as tensors, in int8 where that is exact."""

    inputs: Tensor  # (N, C, *S)
    targets: Tensor  # (N, *S)

    def __len__(self) -> int:
        return len(self.inputs)

    def to(self, device: torch.device) -> TensorRows:
        return TensorRows(self.inputs.to(device), self.targets.to(device))

    def __getitem__(self, which: Tensor) -> tuple[Tensor, Tensor]:
        return self.inputs[which].float(), self.targets[which]


def _check_classes(task: Task, targets: Tensor) -> None:
    """Check target classes up front: on a GPU an out-of-range index fails without a location."""
    least, most, classes = int(targets.min()), int(targets.max()), task.spec.classes
    if least < 0 or most >= classes:
        raise TaskError(
            f"{task.spec.name} has targets of class {least} to {most}, and its spec says classes 0 "
            f"to {classes - 1}; correct the number of classes in the spec"
        )


def split_sizes(task: Task, recipe: Recipe) -> tuple[int, int]:
    """Numbers of validation and training problems, at least one batch of the latter."""
    size, count = task.check_size(recipe.size), recipe.count or task.spec.train_count
    if recipe.count is None and isinstance(size, tuple):  # a range of stored problems
        count = min(count, size[1] - size[0])
    validation = round(count * recipe.validation)
    if count - validation < recipe.batch_size:
        raise RecipeError(
            f"a batch of {recipe.batch_size} does not fit the {count - validation} training "
            f"problems of {task.spec.name}; choose a smaller batch_size or a larger count"
        )
    return validation, count - validation
