"""Chance in training: a pure function of the seed and the number of the update.

    >>> moment = Moment(seed=0, update=41)
    >>> moment.whole(0, 29, "prefix")          # n for update 41, now and after every resume

Nothing random is carried from one update to the next, so a resumed run draws what the unbroken
run would have drawn, and there is no generator state to save or to lose.
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
    """One update of one run."""

    seed: int
    update: int

    def whole(self, low: int, high: int, what: str) -> int:
        """A whole number from ``low`` to ``high``, both included."""
        drawn = Stream(self.seed, "training", what).below(high - low + 1, self.update, 0)
        return low + int(drawn)

    def integers(self, count: int, bound: int, what: str) -> NDArray[np.int64]:
        """``count`` whole numbers below ``bound``."""
        return Stream(self.seed, "training", what).below(bound, self.update, np.arange(count))

    def chosen(self, count: int, of: int, what: str) -> NDArray[np.int64]:
        """``count`` different numbers below ``of``."""
        return Stream(self.seed, "training", what, self.update).order(of)[:count]

    def generator(self, what: str) -> torch.Generator:
        """A generator on the CPU for what needs many numbers, such as noise."""
        bits = Stream(self.seed, "training", what).bits(self.update, 0)
        return torch.Generator().manual_seed(int(bits) >> 1)


def to_device(drawn: Tensor, device: torch.device) -> Tensor:
    """Numbers drawn on the CPU, on their way to a device: nobody waits for its work in the queue.

    A copy from memory that may be swapped out waits; one from pinned memory does not.
    """
    if device.type != "cuda":
        return drawn.to(device)
    return drawn.pin_memory().to(device, non_blocking=True)


class Shuffle:
    """Which problems each update sees: epoch after epoch, each a fresh shuffle of all of them.

    >>> order = Order(problems=40_000, seed=0)
    >>> order.take(first=0, count=50)           # the first update's problems
    """

    def __init__(self, problems: int, seed: int) -> None:
        """An endless sequence of shuffles of ``problems`` numbers."""
        self._problems, self._seed = problems, seed
        self._epoch, self._shuffle = -1, torch.empty(0, dtype=torch.int64)

    def take(self, first: int, count: int) -> Tensor:
        """Numbers ``first … first + count - 1`` of the sequence, across epochs if need be."""
        parts = []
        while count > 0:
            epoch, place = divmod(first, self._problems)
            part = self._of(epoch)[place : place + count]
            parts.append(part)
            first, count = first + len(part), count - len(part)
        return torch.cat(parts)

    def _of(self, epoch: int) -> Tensor:
        if epoch != self._epoch:
            shuffled = Stream(self._seed, "training", "order", epoch).order(self._problems)
            self._epoch, self._shuffle = epoch, torch.from_numpy(shuffled)
        return self._shuffle
