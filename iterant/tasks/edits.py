"""What some tasks offer beyond `Task`: small changes to a problem, and a closer look at errors.

    >>> if isinstance(task, Flips):
    ...     changed = task.flip(batch, index=0)

A study that needs one of these asks whether the task has it, never which task it is; a user's own
task takes part by offering the method.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from iterant.tasks.protocol import Batch


@dataclass(frozen=True)
class Misses:
    """How an answer is wrong, a row a problem."""

    wrong: Tensor
    """(N,) int64: positions that are wrong; 0 is solved"""
    connected: Tensor
    """(N,) bool: whether the answer joins start and end"""
    valid: Tensor
    """(N,) bool: whether it is one whole way from start to end, labelled or not"""


@runtime_checkable
class Flips(Protocol):
    """Problems that are strings: one position can be turned over."""

    def flip(self, batch: Batch, index: int | Tensor) -> Batch:
        """The problems with position ``index`` (one for all, or one each) changed, solved anew."""


@runtime_checkable
class Shortens(Protocol):
    """Problems whose answer is a way: its end can be moved nearer."""

    def shorten(self, batch: Batch) -> tuple[Batch, Tensor]:
        """The changed problems, and which of ``batch`` (rows, int64) they were made from."""


@runtime_checkable
class Traces(Protocol):
    """Problems whose answer is a way: a wrong one can still be connected, or even valid."""

    def misses(self, prediction: Tensor, batch: Batch) -> Misses:
        """How each prediction (N, *S) is wrong."""


@runtime_checkable
class Collected(Protocol):
    """Problems that are taken from a set and not made: a result is of that set alone."""

    def came_from(self) -> str:
        """The set in words, and what was kept of it."""


@dataclass(frozen=True)
class Kind:
    """Some of a batch's problems, by what they are."""

    name: str
    """For a table: ``rating 1400 to 1499``, ``mateIn2``"""
    among: Tensor
    """(N,) bool: which problems are of this kind"""
    scale: str = ""
    """What a kind is a range of, such as ``rating``; "": it is no range"""
    at: float = 0.0
    """Where on that scale its middle is"""


@runtime_checkable
class Sorts(Protocol):
    """Problems of several kinds, which a study may tell apart; kinds may overlap."""

    def kinds(self, batch: Batch) -> list[Kind]:
        """The kinds of problem there are in a batch."""


def ranges(values: NDArray[Any], width: int, scale: str) -> list[Kind]:
    """Kinds by a whole number: ``ranges(ratings, 100, "rating")``, those only that occur."""
    held = torch.from_numpy(np.asarray(values).astype(np.int64)) // width
    return [
        Kind(
            f"{scale} {width * place} to {width * place + width - 1}",
            held == place,
            scale,
            width * place + width / 2,
        )
        for place in sorted(set(held.tolist()))
    ]
