"""Problems as PyTorch's own data sets, for training loops that are not ours.

    >>> from torch.utils.data import DataLoader
    >>> loader = DataLoader(dataset(iterant.task("mazes"), 100, size=9), batch_size=50)
    >>> [inputs.shape for inputs, targets in loader]
    [torch.Size([50, 3, 24, 24]), torch.Size([50, 3, 24, 24])]

Problems are made when they are asked for, so a set may have millions; problem 7 of a seed is the
same whoever asks, in which order and with how many workers.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.utils.data import Dataset

from iterant import names
from iterant.errors import TaskError
from iterant.tasks.chance import check_seed
from iterant.tasks.protocol import Batch, Size, Task, check_count


class Problems(Dataset[tuple[Tensor, Tensor]]):
    """So many problems of a task, each an input (C, *S) and its targets (*S)."""

    def __init__(self, task: Task, count: int, *, size: Size, seed: int, first: int) -> None:
        """Nothing is made yet."""
        self.task, self.count, self.size = task, count, size
        self.seed, self.first = seed, first

    def __len__(self) -> int:
        """How many problems."""
        return self.count

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        """One problem; negative indices count from the end."""
        place = int(index) + (self.count if index < 0 else 0)
        if not 0 <= place < self.count:  # iterating over the set ends by this
            raise IndexError(
                f"this set holds {names.counted(self.count, 'problem')}, got index {index}"
            )
        batch = self.batch(place, 1)
        return batch.inputs[0], batch.targets[0]

    def __getitems__(self, indices: Sequence[int]) -> list[tuple[Tensor, Tensor]]:
        """Several at once, as a `DataLoader` asks: neighbours are made together."""
        wanted = torch.as_tensor(indices)
        if len(wanted) and int(wanted[-1] - wanted[0]) == len(wanted) - 1 and _rises(wanted):
            batch = self.batch(int(wanted[0]), len(wanted))
            return list(zip(batch.inputs, batch.targets, strict=True))
        return [self[int(index)] for index in wanted]

    def batch(self, start: int, count: int) -> Batch:
        """Problems ``start … start + count - 1`` of this set, as our own functions take them."""
        if start < 0 or start + count > self.count:
            raise TaskError(
                f"this set holds {names.counted(self.count, 'problem')}, {start} to "
                f"{start + count - 1} were asked for; ask for fewer"
            )
        return self.task.sample(count, size=self.size, seed=self.seed, first=self.first + start)


def _rises(wanted: Tensor) -> bool:
    return bool((wanted[1:] - wanted[:-1] == 1).all())


def dataset(
    task: Task, count: int, *, size: Size | None = None, seed: int = 0, first: int = 0
) -> Problems:
    """Problems ``first … first + count - 1`` that size and seed name, as a PyTorch data set.

    >>> from torch.utils.data import DataLoader
    >>> loader = DataLoader(dataset(iterant.task("mazes"), 100, size=9), batch_size=50)
    >>> inputs, targets = next(iter(loader))
    >>> inputs.shape, targets.shape
    (torch.Size([50, 3, 24, 24]), torch.Size([50, 24, 24]))
    """
    return Problems(
        task,
        check_count(count),
        size=task.check_size(size),
        seed=check_seed(seed),
        first=first,
    )
