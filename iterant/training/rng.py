"""Random numbers of training: a pure function of the seed and the number of the optimizer step.

    >>> rng = StepRng(seed=0, update=41)
    >>> rng.integer(0, 29, "prefix")          # n of step 41, now and after every resume

There is no generator state to save: a resumed run draws the same numbers as an uninterrupted one.
The names of streams are hashed, so renaming one changes every run.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from iterant.tasks.rng import Stream


@dataclass(frozen=True)
class StepRng:
    """The random numbers of one optimizer step of one run."""

    seed: int
    update: int

    def integer(self, low: int, high: int, what: str) -> int:
        """An integer from ``low`` to ``high``, both included."""
        drawn = Stream(self.seed, "training", what).below(high - low + 1, self.update, 0)
        return low + int(drawn)

    def integers(self, count: int, bound: int, what: str) -> NDArray[np.int64]:
        """``count`` integers below ``bound``."""
        return Stream(self.seed, "training", what).below(bound, self.update, np.arange(count))

    def choose(self, count: int, of: int, what: str) -> NDArray[np.int64]:
        """``count`` different integers below ``of``."""
        return Stream(self.seed, "training", what, self.update).order(of)[:count]

    def generator(self, what: str) -> torch.Generator:
        """A CPU generator, for many numbers such as noise."""
        bits = Stream(self.seed, "training", what).bits(self.update, 0)
        return torch.Generator().manual_seed(int(bits) >> 1)


def to_device(drawn: Tensor, device: torch.device) -> Tensor:
    """Copy numbers drawn on the CPU to a device without waiting for its queue.

    Only copies from pinned memory are asynchronous.
    """
    if device.type != "cuda":
        return drawn.to(device)
    return drawn.pin_memory().to(device, non_blocking=True)


class Shuffle:
    """Which problems each step sees: epoch after epoch, each a fresh shuffle of all of them.

    >>> shuffle = Shuffle(problems=40_000, seed=0)
    >>> shuffle.take(first=0, count=50)         # the problems of the first step
    """

    def __init__(self, problems: int, seed: int) -> None:
        """An endless sequence of shuffles of ``problems`` numbers."""
        self._problems, self._seed = problems, seed
        self._epoch, self._shuffle = -1, torch.empty(0, dtype=torch.int64)

    def take(self, first: int, count: int) -> Tensor:
        """Numbers ``first … first + count - 1`` of the sequence, across epochs if need be."""
        parts = []
        while count > 0:
            epoch, start = divmod(first, self._problems)
            part = self._of(epoch)[start : start + count]
            parts.append(part)
            first, count = first + len(part), count - len(part)
        return torch.cat(parts)

    def _of(self, epoch: int) -> Tensor:
        if epoch != self._epoch:
            shuffled = Stream(self._seed, "training", "order", epoch).order(self._problems)
            self._epoch, self._shuffle = epoch, torch.from_numpy(shuffled)
        return self._shuffle
