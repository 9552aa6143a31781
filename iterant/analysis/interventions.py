"""The interventions of the paper, made for a batch of problems.

    >>> cases = noise(batch, after=1, seed=0)
    >>> recover(net, task, cases, what="noise", after=1, steps=300)

Every one is a list of cases for `recover`: the engine does what they say, between two iterations.

Shapes: B batch, L positions.
"""

from __future__ import annotations

import torch
from torch import Tensor

from iterant.analysis.recovery import Case, gaussian, others, parts
from iterant.engine import After
from iterant.errors import UsageError
from iterant.tasks.protocol import Batch, Flips, Shortens


def clean(batch: Batch) -> list[Case]:
    """Nothing is done: what the others are compared with."""
    return [Case(part, part) for part in parts(batch)]


def noise(batch: Batch, *, after: int, seed: int = 0, scale: float = 1.0) -> list[Case]:
    """Gaussian noise of that standard deviation is added to the features."""
    if not scale > 0:
        raise UsageError(f"the noise must have a standard deviation above 0, got {scale}")
    return [
        Case(part, part, (After(after, features=_Shaken(scale, seed, f"noise {place}")),))
        for place, part in enumerate(parts(batch))
    ]


def zeros(batch: Batch, *, after: int) -> list[Case]:
    """The features are forgotten."""
    return [Case(part, part, (After(after, features=torch.zeros_like),)) for part in parts(batch)]


def swap(batch: Batch, *, after: int, seed: int = 0) -> list[Case]:
    """Every problem goes on with the features of another."""
    return [
        Case(part, part, (After(after, features=_Rows(other)),))
        for part, other in _with_others(batch, seed)
    ]


def swap_input(batch: Batch, *, after: int, seed: int = 0) -> list[Case]:
    """The features stay, the problem becomes another, which is then to be solved."""
    return [
        Case(part, part[other], (After(after, inputs=_Rows(other)),))
        for part, other in _with_others(batch, seed)
    ]


def bit_flips(task: Flips, batch: Batch, *, after: int) -> list[Case]:
    """Each position of each string is flipped, in a sample of its own: row n * L + i flips i.

    The strings are thought about once up to the intervention, and all their changes together
    from there on.
    """
    length = batch.inputs.shape[-1]
    cases = []
    for part in parts(batch, times=length):
        rows = torch.arange(len(part)).repeat_interleave(length)
        flipped = task.flip(part[rows], torch.arange(length).repeat(len(part)))
        moment = After(after, features=_Rows(rows), inputs=_Instead(flipped.inputs))
        cases.append(Case(part, flipped, (moment,)))
    return cases


def moved_ends(task: Shortens, batch: Batch, *, after: int) -> tuple[list[Case], int]:
    """The end moves nearer the start; and how many problems were too short for it."""
    _, rows = task.shorten(batch)
    cases = []
    for part in parts(batch[rows]):
        shorter, _ = task.shorten(part)
        moment = After(after, inputs=_Instead(shorter.inputs))
        cases.append(Case(part, shorter, (moment,)))
    return cases, len(batch) - len(rows)


def random_inputs(batch: Batch, *, seed: int = 0) -> Batch:
    """Gaussian noise in place of every problem; there is no answer to it."""
    noise_of = gaussian(batch.inputs, seed, "random inputs")
    return Batch(noise_of, torch.full_like(batch.targets, -1))


def _with_others(batch: Batch, seed: int) -> list[tuple[Batch, Tensor]]:
    """Each part of the batch with, for each of its problems, the row of another."""
    if len(batch) < 2:
        raise UsageError(
            f"a swap needs another problem to swap with, got a batch of {len(batch)}; "
            "take at least 2 (--count 2)"
        )
    return [
        (part, others(len(part), seed, f"swap {place}"))
        for place, part in enumerate(parts(batch, least=2))
    ]


class _Shaken:
    """Add Gaussian noise, the same whenever it is asked for."""

    def __init__(self, scale: float, seed: int, name: str) -> None:
        self.scale, self.seed, self.name = scale, seed, name

    def __call__(self, features: Tensor) -> Tensor:
        return features + self.scale * gaussian(features, self.seed, self.name)


class _Rows:
    """Take these rows, on whatever device the tensor is."""

    def __init__(self, rows: Tensor) -> None:
        self.rows = rows

    def __call__(self, tensor: Tensor) -> Tensor:
        return tensor[self.rows.to(tensor.device)]


class _Instead:
    """Something else, whatever there was; on the device only when its time has come."""

    def __init__(self, other: Tensor) -> None:
        self.other = other

    def __call__(self, tensor: Tensor) -> Tensor:
        return self.other.to(tensor)
