"""Problems in portions that fit in memory, and in smaller ones where they do not.

>>> for first, part in portions(batch, 100): ...
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

import torch

from iterant.errors import UsageError
from iterant.tasks.protocol import Batch

POSITIONS_AT_ONCE = 1 << 20
"""Positions of a batch that are thought about together; bounds the memory, not the answer."""

Kept = TypeVar("Kept")


def within_memory(
    batch: Batch,
    size: int | None,
    think: Callable[[int, Batch], None],
    keep: Callable[[], Kept],
    restore: Callable[[Kept], None],
) -> int | None:
    """Think about every portion, halving them where memory is short; the size that did, if so.

    ``keep`` and ``restore`` undo what a portion did before it was broken off.
    """
    shrunk, first = None, 0
    while first < len(batch):
        (_, part), before = next(portions(batch[first:], shrunk or size)), keep()
        try:
            think(first, part)
        except (MemoryError, RuntimeError) as error:
            if len(part) == 1 or not out_of_memory(error):
                raise
            error.__traceback__ = None  # its frames hold what has to go
            restore(before)
            shrunk = len(part) // 2
            if torch.cuda.is_available():
                torch.cuda.empty_cache()
        else:
            first += len(part)
    return shrunk


def out_of_memory(error: BaseException) -> bool:
    """Whether that is what an error says; on a CPU only its words do."""
    words = ("can't allocate memory", "not enough memory", "out of memory", "bad allocation")
    known = isinstance(error, MemoryError | torch.OutOfMemoryError)
    return known or any(word in str(error).lower() for word in words)


def portions(batch: Batch, size: int | None = None) -> Iterator[tuple[int, Batch]]:
    """The batch in parts that fit in memory, each with the number of problems before it."""
    if size is None:
        size = max(1, POSITIONS_AT_ONCE // batch.targets[0].numel())
    if size < 1:
        raise UsageError(f"a portion holds at least 1 problem, got {size}")
    for first in range(0, len(batch), size):
        yield first, batch[first : first + size]
