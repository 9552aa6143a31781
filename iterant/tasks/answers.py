"""What some tasks say of an answer: in words, by rules or wishes, and the best that rules allow.

    >>> if isinstance(task, Tells):
    ...     task.tell(batch, 0, prediction)
    'd1d8'

Whoever shows answers asks whether the task has one of these, never which task it is; a user's own
task takes part by offering the method. Predictions are those of the whole batch, (N, *S).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from torch import Tensor

from iterant.tasks.protocol import Batch, Task


@dataclass(frozen=True)
class Verdict:
    """Whether an answer keeps the rules of its task, whatever the right one is."""

    keeps: bool | None
    """None: nobody here can tell"""
    words: str
    lacking: str = ""
    """What is missing to tell, where nobody can: said once of many answers"""


NOTHING_SAID = Verdict(None, "")


@runtime_checkable
class Tells(Protocol):
    """Answers that can be said in a few words: bits, a path, a move."""

    def tell(self, batch: Batch, index: int, prediction: Tensor) -> str:
        """The answer to one problem in words."""


@runtime_checkable
class Judges(Protocol):
    """Answers that can be good or bad without a known right one."""

    def verdict(self, batch: Batch, index: int, prediction: Tensor) -> Verdict:
        """Whether the answer keeps the rules: a path that joins the ends, a legal move."""


@runtime_checkable
class Restricts(Protocol):
    """Problems whose rules allow some answers only: the best of those can be chosen."""

    def restrict(self, batch: Batch, index: int, logits: Tensor) -> tuple[Tensor, str]:
        """The best allowed answer, (*S) int64, by logits (K, *S); and what was assumed, or ""."""


@runtime_checkable
class Accepts(Protocol):
    """Problems whose makers call several answers right, or some wrong."""

    def accepts(self, batch: Batch, index: int, prediction: Tensor) -> bool:
        """Whether it is right by what the maker said; asked only where something is wanted."""

    def wanted(self, batch: Batch, index: int) -> str:
        """What the maker said, in words; "" where that was nothing."""


def told(task: object, batch: Batch, index: int, prediction: Tensor) -> str:
    """The answer in words if the task has words for it, else nothing."""
    return task.tell(batch, index, prediction) if isinstance(task, Tells) else ""


def judged(task: object, batch: Batch, index: int, prediction: Tensor) -> Verdict:
    """The task's verdict; one that says nothing where the task has none."""
    if isinstance(task, Judges):
        return task.verdict(batch, index, prediction)
    return NOTHING_SAID


def accepted(task: Task, batch: Batch, prediction: Tensor) -> bool | None:
    """Whether the answer to a lone problem is right; None where nobody knows."""
    if isinstance(task, Accepts) and task.wanted(batch, 0):
        return task.accepts(batch, 0, prediction)
    return bool(task.solved(prediction, batch)[0]) if batch.labelled else None


def wanted(task: object, batch: Batch) -> str:
    """What is wanted of a lone problem, in the words of its maker, else nothing."""
    return task.wanted(batch, 0) if isinstance(task, Accepts) else ""
