"""Ways to damage a state, so that a network learns to come back from any.

    >>> features = disc(Blow(features, held, noise, other, generator))

A pool damages some of the states it learns from, each in one of the ways that its recipe names.
Far from the ends of a large problem, states arise that no small problem leads to by itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

JITTER = 0.3
"""How strong the noise is that is added to a state; unit noise replaces one."""

_WIDEST = 0.4
"""The largest disc's radius, as a share of the side."""


@dataclass(frozen=True)
class Blow:
    """What a kind of damage may use; it says what becomes of every state, hit or not."""

    features: Tensor
    """(B, W, *S): the states"""
    held: Tensor
    """(slots, W, *S): the states of all slots"""
    noise: Tensor
    """(B, W, *S): unit Gaussian noise"""
    other: Tensor
    """(B,): a slot for each state"""
    generator: torch.Generator


def zeros(blow: Blow) -> Tensor:
    """Nothing is left."""
    return torch.zeros_like(blow.features)


def noise(blow: Blow) -> Tensor:
    """Noise instead of the state."""
    return blow.noise


def another(blow: Blow) -> Tensor:
    """The state of another slot, thought about another problem."""
    return blow.held[blow.other]


def jitter(blow: Blow) -> Tensor:
    """The state with weak noise added."""
    return blow.features + JITTER * blow.noise


def disc(blow: Blow) -> Tensor:
    """Nothing is left within a disc, of any place and of a radius from 1 to 0.4 of the side."""
    count, _, *sides = blow.features.shape
    drawn = torch.rand(count, len(sides) + 1, generator=blow.generator).to(blow.features.device)
    distance: Tensor | float = 0.0
    for axis, side in enumerate(sides):
        places = torch.arange(side, device=drawn.device)
        off = (places - drawn[:, axis : axis + 1] * side) ** 2
        distance = distance + off.view(count, *[1] * axis, side, *[1] * (len(sides) - axis - 1))
    radius = 1 + drawn[:, -1] * max(0.0, _WIDEST * min(sides) - 1)
    inside = distance < radius.view(-1, *[1] * len(sides)) ** 2
    return blow.features.masked_fill(inside[:, None], 0)
