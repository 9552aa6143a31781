"""Counter-based random numbers: a draw is a pure function of seed, stream, problem and counter.

    >>> stream = Stream(7, "mazes", 13)
    >>> stream.below(6, index=np.arange(3), counter=0)      # a die for problems 0, 1 and 2
    array([1, 1, 2])

Draws do not depend on how many problems are drawn, in which order or in what chunks, nor on the
machine or the version of numpy: the first hundred of a thousand problems are the hundred alone, and
problem 90 can be generated without the 89 before it. There is no generator state to save: a resumed
training run draws the same numbers as an uninterrupted one. The names of streams are hashed, so
renaming one changes every run.

Only wrapping arithmetic on unsigned 64-bit integers is used, with the finaliser of splitmix64
(Steele, Lea and Flood, 2014) for mixing. Not for cryptography.
"""

from __future__ import annotations

import hashlib
import operator
from dataclasses import dataclass
from typing import SupportsIndex

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from iterant.errors import TaskError

Words = NDArray[np.uint64]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)


def is_whole(value: object) -> bool:
    """Whether a value is an integer of Python or numpy; bools are not."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def check_seed(seed: SupportsIndex) -> int:
    """The seed if it is an integer from 0 to 2**64 - 1, else TaskError."""
    if not is_whole(seed) or not 0 <= operator.index(seed) < 2**64:
        raise TaskError(f"the seed must be a whole number from 0 to 2**64 - 1, got {seed!r}; try 0")
    return operator.index(seed)


def mix(words: Words) -> Words:
    """A bijective hash of each word."""
    words = words ^ (words >> np.uint64(30))
    words = words * _FIRST
    words = words ^ (words >> np.uint64(27))
    words = words * _SECOND
    return words ^ (words >> np.uint64(31))


class Stream:
    """An endless table of draws with one row per problem and one column per counter.

    >>> Stream(0, "prefix-sums", 32).bits(index=5, counter=[0, 1])     # 64 random bits each
    """

    def __init__(self, seed: SupportsIndex, *names: str | int) -> None:
        text = "\x1f".join([str(check_seed(seed)), *map(str, names)])
        digest = hashlib.sha256(text.encode()).digest()
        self._key = np.frombuffer(digest[:8], dtype="<u8").astype(np.uint64)

    def bits(self, index: ArrayLike, counter: ArrayLike) -> Words:
        """64 random bits for each pair of problem and counter, which broadcast."""
        rows, columns = (np.asarray(each).astype(np.uint64) for each in (index, counter))
        shape = np.broadcast_shapes(rows.shape, columns.shape)
        # At least one-dimensional: numpy warns of overflow for scalars, not for arrays.
        row_keys = mix(self._key + mix(np.atleast_1d(rows) * _GOLDEN + _GOLDEN))
        return mix(row_keys + (np.atleast_1d(columns) * _GOLDEN + _GOLDEN)).reshape(shape)

    def below(self, bound: ArrayLike, index: ArrayLike, counter: ArrayLike) -> NDArray[np.int64]:
        """Integers from 0 to bound - 1, for bounds up to 2**32.

        The upper 32 random bits times the bound, divided by 2**32: the relative bias of a value is
        at most bound / 2**32.
        """
        bounds = np.asarray(bound)
        high = np.atleast_1d(self.bits(index, counter) >> np.uint64(32))
        values = (high * bounds.astype(np.uint64)) >> np.uint64(32)
        shape = np.broadcast_shapes(bounds.shape, np.shape(index), np.shape(counter))
        return values.astype(np.int64).reshape(shape)

    def order(self, count: int) -> NDArray[np.int64]:
        """A permutation of 0 … count - 1."""
        keys = self.bits(index=0, counter=np.arange(count))
        return np.argsort(keys, kind="stable").astype(np.int64)


@dataclass(frozen=True)
class StepRng:
    """The random numbers of one optimizer step of one run.

    >>> rng = StepRng(seed=0, step=41)
    >>> rng.integer(0, 29, "prefix")          # n of step 41, now and after every resume

    ``what`` names the random stream.
    """

    seed: int
    step: int

    def integer(self, low: int, high: int, what: str) -> int:
        """An integer from ``low`` to ``high``, both included."""
        offset = Stream(self.seed, "training", what).below(high - low + 1, self.step, 0)
        return low + int(offset)

    def integers(self, count: int, bound: int, what: str) -> NDArray[np.int64]:
        """``count`` integers below ``bound``."""
        return Stream(self.seed, "training", what).below(bound, self.step, np.arange(count))

    def choose(self, count: int, of: int, what: str) -> NDArray[np.int64]:
        """``count`` different integers below ``of``."""
        return Stream(self.seed, "training", what, self.step).order(of)[:count]

    def generator(self, what: str) -> torch.Generator:
        """A CPU generator, for many numbers such as noise."""
        bits = Stream(self.seed, "training", what).bits(self.step, 0)
        return torch.Generator().manual_seed(int(bits) >> 1)


class Shuffle:
    """Which problems each step sees: epoch after epoch, each a fresh shuffle of all of them.

    >>> shuffle = Shuffle(problems=40_000, seed=0)
    >>> shuffle.take(first=0, count=50)         # the problems of the first step
    """

    def __init__(self, problems: int, seed: int) -> None:
        self._problems, self._seed = problems, seed
        self._epoch, self._order = -1, torch.empty(0, dtype=torch.int64)

    def take(self, first: int, count: int) -> Tensor:
        """Numbers ``first … first + count - 1`` of the sequence, across epochs if need be."""
        parts = []
        while count > 0:
            epoch, start = divmod(first, self._problems)
            part = self._permutation(epoch)[start : start + count]
            parts.append(part)
            first, count = first + len(part), count - len(part)
        return torch.cat(parts)

    def _permutation(self, epoch: int) -> Tensor:
        if epoch != self._epoch:
            order = Stream(self._seed, "training", "order", epoch).order(self._problems)
            self._epoch, self._order = epoch, torch.from_numpy(order)
        return self._order
