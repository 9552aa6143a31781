"""The paper's interventions, each as a list of cases for `recover`.

    >>> cases = noise(batch, after=1, seed=0)
    >>> recover(net, task, cases, what="noise", after=1, steps=300)

An intervention changes features or inputs between two iterations; see `iterant.engine.After`.
Batches are split into parts that fit in memory, and all random numbers depend on a seed only.

Shapes: B batch, L positions, *S space.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor

from iterant.engine import After, Intervention, Thought
from iterant.errors import UsageError
from iterant.evaluation.evaluator import POSITIONS_AT_ONCE, is_finite
from iterant.tasks.protocol import Batch, Flips, Shortens, Task
from iterant.tasks.rng import Stream

Tick = Callable[[int, int], None]
"""Progress: called with the work done and the work in all."""


def no_tick(done: int, total: int) -> None:
    """Ignore progress."""


def parts(batch: Batch, *, least: int = 1, times: int = 1) -> Iterator[Batch]:
    """Split a batch into parts of about equal length, at least ``least`` where it has as many.

    ``times`` is the number of rows that each problem becomes later.
    """
    positions = batch.targets[0].numel() * times
    most = max(least, POSITIONS_AT_ONCE // positions)
    number = min(-(-len(batch) // most), max(1, len(batch) // least))
    edges = [len(batch) * place // number for place in range(number + 1)]
    for first, stop in pairwise(edges):
        yield batch[first:stop]


def gaussian(like: Tensor, seed: int, name: str) -> Tensor:
    """Standard normal numbers of the shape of ``like``, drawn on the CPU: equal on all devices."""
    first = int(Stream(seed, name).bits(0, 0)) >> 1
    return torch.randn(like.shape, generator=torch.Generator().manual_seed(first)).to(like)


def swapped(count: int, seed: int, name: str) -> Tensor:
    """(count,) a permutation without fixed points: one random cycle of all problems."""
    order = torch.from_numpy(Stream(seed, name).order(count))
    other = torch.empty_like(order)
    other[order] = order.roll(-1)
    return other


def is_correct(task: Task, thought: Thought, batch: Batch) -> Tensor:
    """(B,) bool on the CPU: correct answer and finite features."""
    return task.solved(thought.prediction.cpu(), batch) & is_finite(thought.features).cpu()


@dataclass(frozen=True)
class Case:
    """Problems, the interventions on them, and the problems to be solved from then on."""

    batch: Batch
    target: Batch
    """The problems after the intervention, one for each row that there is then"""
    intervene: tuple[Intervention, ...] = ()


def clean(batch: Batch) -> list[Case]:
    """No intervention: the baseline."""
    return [Case(part, part) for part in parts(batch)]


def noise(batch: Batch, *, after: int, seed: int = 0, scale: float = 1.0) -> list[Case]:
    """Add Gaussian noise with standard deviation ``scale`` to the features."""
    if not scale > 0:
        raise UsageError(f"the noise must have a standard deviation above 0, got {scale}")

    def add(name: str) -> Callable[[Tensor], Tensor]:
        return lambda features: features + scale * gaussian(features, seed, name)

    return [
        Case(part, part, (After(after, features=add(f"noise {place}")),))
        for place, part in enumerate(parts(batch))
    ]


def zeros(batch: Batch, *, after: int) -> list[Case]:
    """Replace the features with zeros."""
    return [Case(part, part, (After(after, features=torch.zeros_like),)) for part in parts(batch)]


def swap(batch: Batch, *, after: int, seed: int = 0) -> list[Case]:
    """Give every problem the features of another one."""
    return [
        Case(part, part, (After(after, features=_take(other)),))
        for part, other in _with_others(batch, seed)
    ]


def swap_input(batch: Batch, *, after: int, seed: int = 0) -> list[Case]:
    """Keep the features and replace each problem by another one, which is then to be solved."""
    return [
        Case(part, part[other], (After(after, inputs=_take(other)),))
        for part, other in _with_others(batch, seed)
    ]


def bit_flips(task: Flips, batch: Batch, *, after: int) -> list[Case]:
    """Flip each position of each string, in a row of its own: row n * L + i flips bit i.

    Up to the intervention each string is computed once, from there on with all its flips.
    """
    length = batch.inputs.shape[-1]
    cases = []
    for part in parts(batch, times=length):
        rows = torch.arange(len(part)).repeat_interleave(length)
        flipped = task.flip(part[rows], torch.arange(length).repeat(len(part)))
        change = After(after, features=_take(rows), inputs=_replace(flipped.inputs))
        cases.append(Case(part, flipped, (change,)))
    return cases


def moved_ends(task: Shortens, batch: Batch, *, after: int) -> tuple[list[Case], int]:
    """Move the end nearer to the start; also return how many problems are too short for that."""
    _, rows = task.shorten(batch)
    cases = []
    for part in parts(batch[rows]):
        shorter, _ = task.shorten(part)
        cases.append(Case(part, shorter, (After(after, inputs=_replace(shorter.inputs)),)))
    return cases, len(batch) - len(rows)


def random_inputs(batch: Batch, *, seed: int = 0) -> Batch:
    """Gaussian noise in place of every problem, without labels."""
    inputs = gaussian(batch.inputs, seed, "random inputs")
    return Batch(inputs, torch.full_like(batch.targets, -1))


def _with_others(batch: Batch, seed: int) -> list[tuple[Batch, Tensor]]:
    """Each part of the batch, and for each of its rows another row."""
    if len(batch) < 2:
        raise UsageError(
            f"a swap needs another problem to swap with, got a batch of {len(batch)}; "
            "take at least 2 (--count 2)"
        )
    return [
        (part, swapped(len(part), seed, f"swap {place}"))
        for place, part in enumerate(parts(batch, least=2))
    ]


def _take(rows: Tensor) -> Callable[[Tensor], Tensor]:
    return lambda tensor: tensor[rows.to(tensor.device)]


def _replace(other: Tensor) -> Callable[[Tensor], Tensor]:
    # Moved to the device only when the intervention happens.
    return lambda tensor: other.to(tensor)
