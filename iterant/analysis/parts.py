"""A batch in parts that fit in memory, and draws that a seed decides.

    >>> for part in parts(batch, least=2):
    ...     other = others(len(part), seed=1, name="swap")

Shapes: B batch, C channels, W width, *S space.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise

import torch
from torch import Tensor

from iterant.evaluation.portions import POSITIONS_AT_ONCE
from iterant.tasks.chance import Stream
from iterant.tasks.protocol import Batch

Tick = Callable[[int, int], None]
"""Called with what is done and what there is to do."""


def no_tick(done: int, total: int) -> None:
    """Tell nobody."""


def parts(batch: Batch, *, least: int = 1, times: int = 1) -> Iterator[Batch]:
    """The batch in parts of about one length, none shorter than ``least`` if it is not itself.

    ``times`` says how many rows each problem will become.
    """
    positions = batch.targets[0].numel() * times
    most = max(least, POSITIONS_AT_ONCE // positions)
    number = min(-(-len(batch) // most), max(1, len(batch) // least))
    edges = [len(batch) * place // number for place in range(number + 1)]
    for first, stop in pairwise(edges):
        yield batch[first:stop]


def gaussian(like: Tensor, seed: int, name: str) -> Tensor:
    """Standard normal numbers in the shape of ``like``: drawn on the CPU, the same everywhere."""
    first = int(Stream(seed, name).bits(0, 0)) >> 1
    return torch.randn(like.shape, generator=torch.Generator().manual_seed(first)).to(like)


def others(count: int, seed: int, name: str) -> Tensor:
    """(count,) for each problem another one, none its own: a random ring of all of them."""
    order = torch.from_numpy(Stream(seed, name).order(count))
    other = torch.empty_like(order)
    other[order] = order.roll(-1)
    return other


def moved(before: Tensor, after: Tensor) -> Tensor:
    """(B,) float64: ‖after - before‖, which does not overflow where features explode."""
    length: Tensor = torch.linalg.vector_norm(
        (after - before).flatten(1), dim=1, dtype=torch.float64
    )
    return length
