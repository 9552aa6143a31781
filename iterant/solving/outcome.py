"""What came out for one problem: the answer, how it was reached, and what is to be said of it.

>>> solution
Solution(problem: 1101110; settled after 37 iterations; right)
>>> solution.described()["iterations"]
37
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Any

from torch import Tensor

from iterant import names
from iterant.halting import SETTLED
from iterant.solving.film import Film, Frame
from iterant.tasks.answers import NOTHING_SAID, Verdict
from iterant.tasks.protocol import Batch
from iterant.tasks.reading import Problem


@dataclass(frozen=True)
class Solution:
    """What came out for one problem.

    >>> [found] = solutions(net, task, gather(task, "maze.txt").problems)
    >>> found.answer, found.right, found.steps, found.settled
    """

    problem: Problem
    film: Film
    prediction: Tensor | None = None
    """(1, *S) int64; None where there was nothing to find"""
    steps: int = 0
    """Iterations taken"""
    stopped_by: str = ""
    """Why it stopped, as in `Answer.stopped_by`: "settled", "stable answer", "budget" …"""
    answered_at: int = 0
    """The iteration whose answer it is"""
    seconds: float = 0.0
    """Of thinking, without reading, drawing or judging; of problems thought about together, each
    has an equal part"""
    right: bool | None = None
    """Whether it equals the true answer, or is one of several; None where that is not known"""
    sure: float = 0.0
    """The probability of its least sure position"""
    answer: str = ""
    """In words, where the task has some"""
    wanted: str = ""
    """What the maker of the problem calls right, in words, where it came with them"""
    verdict: Verdict = NOTHING_SAID
    """Whether it keeps the rules of the task"""
    allowed: Tensor | None = None
    """(1, *S): the best answer among those that the rules allow, where it was asked for"""
    allowed_answer: str = ""
    allowed_right: bool | None = None
    """Whether that one equals the true answer: never counted as the network's own"""
    history: tuple[tuple[Frame, str], ...] = ()
    """Every change of the answer that the film holds, in words where they are few and small"""

    @property
    def settled(self) -> bool:
        """Whether the state is at rest, or in a cycle that keeps its answer."""
        return self.stopped_by == SETTLED

    def __repr__(self) -> str:
        """What came out, in one line."""
        return f"Solution({self.problem.name or 'problem'}: {self._outcome()})"

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return f"<b>{escape(self.problem.name or 'problem')}</b>: {escape(self._outcome())}"

    def _outcome(self) -> str:
        if self.prediction is None:
            return f"{self.problem.unsolvable}; not tried"
        ended = "settled" if self.settled else f"not settled, stopped by {self.stopped_by}"
        judged_as = {True: "right", False: "wrong", None: "not judged"}[self.right]
        said = self.answer or "no answer"
        return f"{said}; {ended} after {names.counted(self.steps, 'iteration')}; {judged_as}"

    def described(self) -> dict[str, Any]:
        """Everything that JSON can hold; positions of an answer are rows of digits.

        Where there are classes above 9, spaces stand between them.
        """
        batch = self.problem.batch
        told_of = {
            "problem": self.problem.name,
            "about": _about(batch),
            "notes": list(self.problem.notes),
            "unsolvable": self.problem.unsolvable or None,
            "answer": self.answer or None,
            "prediction": _digits(self.prediction),
            "truth": _digits(batch.targets) if batch.labelled else None,
            "right": self.right,
            "settled": self.settled,
            "stopped_by": self.stopped_by or None,
            "iterations": self.steps,
            "answered_at": self.answered_at,
            "seconds": round(self.seconds, 4),
            "sure": round(self.sure, 6),
            "keeps_rules": self.verdict.keeps,
            "verdict": self.verdict.words or None,
            "changes": [
                {"iteration": frame.step, "sure": round(frame.sure, 6), "answer": words or None}
                for frame, words in self.history
            ],
        }
        if self.allowed is not None:
            told_of["allowed"] = _digits(self.allowed)
            told_of["allowed_answer"] = self.allowed_answer
            told_of["allowed_right"] = self.allowed_right
        return told_of


def _about(batch: Batch) -> dict[str, Any]:
    """What the task says of the problem besides what is asked: a FEN, a rating, a length."""
    held = {name: column[0].item() for name, column in batch.extras.items() if column.ndim == 1}
    return {name: value for name, value in held.items() if isinstance(value, str | int | float)}


def _digits(grid: Tensor | None) -> list[str] | None:
    """Rows of a (1, *S) grid of classes as text."""
    if grid is None:
        return None
    rows, between = grid[0] if grid.dim() == 3 else grid, " " if int(grid.max()) > 9 else ""
    return [between.join(map(str, row)) for row in rows.tolist()]
