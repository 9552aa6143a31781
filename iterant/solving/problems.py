"""Problems as people have them, thought about and judged.

    >>> found = gather(task, "1011001").problems
    >>> [solution] = solutions(net, task, found)
    >>> solution.answer, solution.settled, solution.steps, solution.right
    ('1101110', True, 37, True)

Nothing here asks which task it is: what a task can say of its answers is found by type.

What came out for one problem: the answer, how it was reached, and what is to be said of it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import Any

import torch
from torch import Tensor

from iterant.errors import UsageError
from iterant.formatting import counted
from iterant.halting import SETTLED, Rule
from iterant.nets.fast import has_sparse_form
from iterant.nets.protocol import Net
from iterant.solving.film import Film, Frame, frames_of
from iterant.solving.solver import Answer, Iteration, check_fits, solve
from iterant.tasks.inputs import Problem
from iterant.tasks.protocol import (
    NO_VERDICT,
    Batch,
    Restricts,
    Task,
    Verdict,
    answer_text,
    expected_answer,
    is_accepted,
    verdict_of,
)


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
    verdict: Verdict = NO_VERDICT
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
        return f"{said}; {ended} after {counted(self.steps, 'iteration')}; {judged_as}"

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


LEAST = 1000
"""Iterations that any problem may take, besides one for each of its squares."""
_TOGETHER = 64
_POSITIONS, _POSITIONS_SPARSE = 1 << 16, 1 << 18
"""Of problems in one batch: a dense network on a CPU gains nothing from more, a sparse one does"""

_WORTH_WORDS = 1 << 17
"""Positions of all answers on the way: up to so many, each is put in words"""

Viewer = Callable[[Problem, Frame, Film], None]
"""Somebody who is shown the frames of the problem that is being thought about."""


def solutions(
    net: Net,
    task: Task,
    problems: Sequence[Problem],
    *,
    max_steps: int | None = None,
    rule: Rule | None = None,
    restrict: bool = False,
    viewer: Viewer | None = None,
) -> Iterator[Solution]:
    """Think about every problem and give the solutions in their order.

        >>> found = gather(task, "maze.txt").problems
        >>> [solution.answer for solution in solutions(net, task, found)]

    Small problems of one shape are thought about together, unless somebody watches.
    ``max_steps=None`` allows 1,000 iterations and one for each square of the problem; the default
    rule stops when the state is at rest (`Resting`). ``restrict`` also chooses the best answer that
    the rules of the task allow.
    """
    check_fits(net, task)
    if restrict and not isinstance(task, Restricts):
        raise UsageError(
            f"the rules of {task.spec.title} do not restrict answers; leave that option out"
        )
    positions = _POSITIONS_SPARSE if has_sparse_form(net) else _POSITIONS
    for group in _groups(problems, 0 if viewer is not None else positions):
        if group[0].unsolvable:
            yield Solution(group[0], Film(1))
            continue
        budget = budget_for(task, group[0]) if max_steps is None else max_steps
        yield from _Group(net, task, group, restrict, viewer).solved(budget, rule)


def budget_for(task: Task, problem: Problem) -> int:
    """Iterations that a problem may take: information moves one square an iteration or faster."""
    positions = problem.batch.targets[0].numel()
    squares: int = positions // task.spec.square**task.spec.dims
    return LEAST + squares


def _groups(problems: Sequence[Problem], most: int) -> Iterator[list[Problem]]:
    """Neighbours of one shape with up to ``most`` positions; what has no answer stands alone."""
    group: list[Problem] = []
    for problem in problems:
        positions = problem.batch.targets[0].numel()
        fits = (
            group
            and not problem.unsolvable
            and not group[0].unsolvable
            and problem.batch.inputs.shape == group[0].batch.inputs.shape
            and len(group) < _TOGETHER
            and (len(group) + 1) * positions <= most
        )
        if group and not fits:
            yield group
            group = []
        group.append(problem)
    if group:
        yield group


class _Group:
    """Problems of one shape that are thought about together; an onlooker of their thinking."""

    def __init__(
        self,
        net: Net,
        task: Task,
        problems: list[Problem],
        restrict: bool,
        viewer: Viewer | None,
    ) -> None:
        self.net, self.task, self.problems = net, task, problems
        self.restrict, self.viewer = restrict, viewer
        self.films = [Film(problem.batch.targets[0].numel()) for problem in problems]
        self.logits: dict[int, Tensor] = {}
        self.aside = 0.0
        """Seconds spent on looking, which are not thinking"""

    def solved(self, max_steps: int, rule: Rule | None) -> Iterator[Solution]:
        inputs = torch.cat([problem.batch.inputs for problem in self.problems])
        parameters: Any = getattr(self.net, "parameters", None)
        if callable(parameters) and (first := next(iter(parameters()), None)) is not None:
            inputs = inputs.to(first)
        began = time.perf_counter()
        answer = solve(self.net, inputs, max_steps=max_steps, rule=rule, callback=self)
        seconds = (time.perf_counter() - began - self.aside) / len(self.problems)
        for row, problem in enumerate(self.problems):
            yield self._solution(row, problem, answer, seconds)

    def __call__(self, iteration: Iteration) -> None:
        """Keep what is due of every film, and all of those that leave now."""
        began = time.perf_counter()
        step, rows = iteration.thought.step, iteration.rows.tolist()
        leaving = iteration.leaving.tolist()
        if any(leaving) or any(self.films[row].due(step) for row in rows):
            frames = frames_of(iteration.thought)
            for place, row in enumerate(rows):
                if leaving[place] or self.films[row].due(step):
                    self.films[row].put(frames[place], last=leaving[place])
                if leaving[place] and self.restrict:
                    self.logits[row] = iteration.thought.logits[place]
        if self.viewer is not None:
            film = self.films[rows[0]]
            self.viewer(self.problems[rows[0]], film.at(step), film)
        self.aside += time.perf_counter() - began

    def _solution(self, row: int, problem: Problem, answer: Answer, seconds: float) -> Solution:
        """Judge one answer."""
        task, batch, film = self.task, problem.batch, self.films[row]
        prediction = answer.prediction[row : row + 1].cpu()
        answered_at = int(answer.answered_at[row])
        found = Solution(
            problem=problem,
            film=film,
            prediction=prediction,
            steps=int(answer.steps[row]),
            stopped_by=answer.stopped_by[row],
            answered_at=answered_at,
            seconds=seconds,
            right=is_accepted(task, batch, prediction),
            sure=film.at(answered_at).sure,
            answer=answer_text(task, batch, 0, prediction),
            wanted=expected_answer(task, batch),
            verdict=verdict_of(task, batch, 0, prediction),
            history=self._history(problem, film),
        )
        if not (self.restrict and isinstance(task, Restricts)):
            return found
        grid, assumed = task.restrict(batch, 0, self.logits[row])
        noted = problem.notes if assumed in ("", *problem.notes) else (*problem.notes, assumed)
        return replace(
            found,
            problem=replace(problem, notes=noted),
            allowed=grid[None],
            allowed_answer=answer_text(task, batch, 0, grid[None]),
            allowed_right=is_accepted(task, batch, grid[None]),
        )

    def _history(self, problem: Problem, film: Film) -> tuple[tuple[Frame, str], ...]:
        """The changes of the answer; words for each where nobody has to wait for them."""
        changes = film.changes()
        brief = len(changes) * problem.batch.targets[0].numel() <= _WORTH_WORDS
        return tuple(
            (
                frame,
                answer_text(
                    self.task, problem.batch, 0, torch.from_numpy(frame.prediction)[None].long()
                )
                if brief
                else "",
            )
            for frame in changes
        )
