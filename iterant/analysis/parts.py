"""A batch in parts that fit in memory, on the network's device; draws that a seed decides.

    >>> for part in parts(batch, least=2):
    ...     inputs = fitted(net, part.inputs)

Shapes: B batch, C channels, W width, *S space.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise

import torch
from torch import Tensor

from iterant.nets.protocol import Net
from iterant.tasks.chance import Stream
from iterant.tasks.protocol import Batch

POSITIONS_AT_ONCE = 1 << 20
"""Positions that are thought about together; bounds the memory, not the answer."""

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


def fitted(net: Net, inputs: Tensor) -> Tensor:
    """The inputs on the network's device and in its precision."""
    if isinstance(net, torch.nn.Module):
        weight = next(iter(net.parameters()), None)
        if weight is not None:
            return inputs.to(weight.device, weight.dtype)
    return inputs


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


def finite(features: Tensor) -> Tensor:
    """(B,) bool: whether every feature of a sample is a number."""
    flat = features.flatten(1)
    return torch.isfinite(flat.amax(dim=1)) & torch.isfinite(flat.amin(dim=1))


def moved(before: Tensor, after: Tensor) -> Tensor:
    """(B,) float64: ‖after - before‖, which does not overflow where features explode."""
    length: Tensor = torch.linalg.vector_norm(
        (after - before).flatten(1), dim=1, dtype=torch.float64
    )
    return length
