"""Solve problems from text, files or a generator, and keep a film of the answers.

    >>> [solution] = solutions(net, task, gather(task, "1011001").problems)
    >>> solution.answer, solution.settled, solution.steps, solution.right
    ('1101110', True, 37, True)

Nothing here depends on the task: what else a task can do is recognised by its methods.

Shapes: B batch, K classes, *S space.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from iterant.engine import Thought
from iterant.errors import UsageError
from iterant.formatting import counted
from iterant.halting import SETTLED, Rule
from iterant.nets.protocol import Net, like, readout_of
from iterant.solving.solver import Answer, Iteration, check_fits, solve
from iterant.tasks.inputs import Problem
from iterant.tasks.protocol import (
    NO_VERDICT,
    Restricts,
    Task,
    Verdict,
    answer_text,
    expected_answer,
    is_accepted,
    verdict_of,
)

LEAST = 1000
"""Default iterations of any problem; one more is allowed for each of its cells."""
_TOGETHER, _POSITIONS = 64, 1 << 18
"""Problems and positions of a batch, at most"""
_POSITIONS_IN_WORDS = 1 << 17
"""Positions of all answers of a film: up to this many, each answer is put in words"""
_FILM_BYTES, _FEWEST_FRAMES, _MOST_FRAMES = 16 << 20, 16, 4096


@dataclass(frozen=True)
class Frame:
    """The answer after one iteration."""

    step: int
    prediction: NDArray[np.uint8]
    """(*S)"""
    sure: float
    """The probability of the predicted class at the least confident position"""


class Film:
    """The answers to one problem by iteration, in bounded memory.

        >>> film = Film(positions=2)
        >>> film.put(Frame(step=1, prediction=np.array([0, 1], dtype=np.uint8), sure=0.4))
        >>> [frame.step for frame in film.changes()]
        [1]

    The frames are spread evenly over the iterations: when the film is full, every other frame is
    dropped and frames are taken half as often from then on. Films of small problems hold every
    iteration.
    """

    def __init__(self, positions: int) -> None:
        """Keep as many frames of a problem with this many positions as fit in 16 MiB."""
        room = _FILM_BYTES // max(1, positions)
        self.most = min(max(room, _FEWEST_FRAMES), _MOST_FRAMES)
        self.every = 1
        self.frames: list[Frame] = []
        """In the order of iterations"""

    def due(self, step: int) -> bool:
        """Whether this iteration gets a frame; the first always does."""
        return (step - 1) % self.every == 0

    def put(self, frame: Frame, *, last: bool = False) -> None:
        """Add a frame if it is due; ``last``: in any case."""
        if self.frames and frame.step <= self.frames[-1].step:
            return
        if len(self.frames) >= self.most:
            self.every *= 2
            self.frames = [old for old in self.frames if self.due(old.step)]
        if last or self.due(frame.step):
            self.frames.append(frame)

    def at(self, step: int) -> Frame:
        """The frame of that iteration, or the last one before it."""
        if not self.frames:
            raise UsageError("the film is empty: no iteration was done")
        before = [frame for frame in self.frames if frame.step <= step]
        return before[-1] if before else self.frames[0]

    def changes(self) -> tuple[Frame, ...]:
        """The first frame, and every one whose answer differs from the one before."""
        return tuple(
            frame
            for index, frame in enumerate(self.frames)
            if index == 0 or not np.array_equal(frame.prediction, self.frames[index - 1].prediction)
        )


def _frames(thought: Thought) -> list[Frame]:
    """The frame of every sample of the batch."""
    classes = thought.prediction.unsqueeze(1)
    probability = thought.logits.float().softmax(dim=1).gather(1, classes).squeeze(1)
    counts = readout_of(thought.net).counted(thought.inputs)
    if counts is not None:
        probability = torch.where(counts, probability, 1.0)
    least = probability.flatten(1).amin(dim=1).tolist()
    predictions = thought.prediction.to(torch.uint8).cpu().numpy()
    return [Frame(thought.step, *each) for each in zip(predictions, least, strict=True)]


Viewer = Callable[[Problem, Frame, Film], None]
"""Called with every iteration of the problem being solved."""


@dataclass(frozen=True)
class Solution:
    """The answer to one problem, and how it was found."""

    problem: Problem
    film: Film
    prediction: Tensor | None = None
    """(1, *S) int64; None where the problem has no solution"""
    steps: int = 0
    """Iterations taken"""
    stopped_by: str = ""
    """Why it stopped, as in `Answer.stopped_by`: "settled", "stable answer", "budget" …"""
    answered_at: int = 0
    """The iteration that the answer is from"""
    seconds: float = 0.0
    """Time of the iterations; that of a batch is divided equally among its problems"""
    right: bool | None = None
    """Whether it equals the true answer, or is one of several; None where that is not known"""
    sure: float = 0.0
    """The probability of its least confident position"""
    answer: str = ""
    """In words, where the task has some"""
    wanted: str = ""
    """The expected answer in words, where the problem came with one"""
    verdict: Verdict = NO_VERDICT
    """Whether it keeps the rules of the task"""
    allowed: Tensor | None = None
    """(1, *S): the best answer that the rules allow, with ``restrict``"""
    allowed_answer: str = ""
    allowed_right: bool | None = None
    """Whether that one equals the true answer; does not count as the network's answer"""
    history: tuple[tuple[Frame, str], ...] = ()
    """Every change of the answer in the film, with its text (empty for large problems)"""

    @property
    def settled(self) -> bool:
        """Whether the state is at rest, or in a cycle that keeps its answer."""
        return self.stopped_by == SETTLED

    def __repr__(self) -> str:
        """The outcome in one line."""
        name = self.problem.name or "problem"
        if self.prediction is None:
            return f"Solution({name}: {self.problem.unsolvable}; not tried)"
        ended = "settled" if self.settled else f"not settled, stopped by {self.stopped_by}"
        right = {True: "right", False: "wrong", None: "not judged"}[self.right]
        after = counted(self.steps, "iteration")
        return f"Solution({name}: {self.answer or 'no answer'}; {ended} after {after}; {right})"

    def described(self) -> dict[str, Any]:
        """As JSON can hold it; a grid is rows of digits, with spaces where classes exceed 9."""
        batch = self.problem.batch
        extras = {
            name: values[0].item() for name, values in batch.extras.items() if values.ndim == 1
        }
        result = {
            "problem": self.problem.name,
            "about": {k: v for k, v in extras.items() if isinstance(v, str | int | float)},
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
            result["allowed"] = _digits(self.allowed)
            result["allowed_answer"] = self.allowed_answer
            result["allowed_right"] = self.allowed_right
        return result


def _digits(grid: Tensor | None) -> list[str] | None:
    """Rows of a (1, *S) grid of classes as text."""
    if grid is None:
        return None
    rows, between = grid[0] if grid.dim() == 3 else grid, " " if int(grid.max()) > 9 else ""
    return [between.join(map(str, row)) for row in rows.tolist()]


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
    """Solve every problem; yields the solutions in order.

        >>> [solution] = solutions(net, task, gather(task, "maze.txt").problems)

    Small problems of one shape are solved in one batch, unless there is a viewer.
    ``max_steps=None`` allows 1,000 iterations and one for each cell of the problem; the default
    rule stops when the state is at rest (`Resting`). ``restrict`` also finds the best answer that
    the rules of the task allow.
    """
    check_fits(net, task)
    if restrict and not isinstance(task, Restricts):
        raise UsageError(
            f"the rules of {task.spec.title} do not restrict answers; leave that option out"
        )
    for group in _groups(problems, 0 if viewer is not None else _POSITIONS):
        if group[0].unsolvable:
            yield Solution(group[0], Film(1))
            continue
        budget = budget_for(task, group[0]) if max_steps is None else max_steps
        inputs = like(net, torch.cat([problem.batch.inputs for problem in group]))
        films, start = _Films(group, restrict, viewer), time.perf_counter()
        answer = solve(net, inputs, max_steps=budget, rule=rule, callback=films)
        seconds = (time.perf_counter() - start - films.seconds) / len(group)
        for row, problem in enumerate(group):
            solution = _solution(task, problem, answer, row, films.films[row], seconds)
            yield _restricted(task, solution, films.logits[row]) if restrict else solution


def budget_for(task: Task, problem: Problem) -> int:
    """Default iterations: information moves at least one cell per iteration."""
    positions = problem.batch.targets[0].numel()
    cells: int = positions // task.spec.square**task.spec.dims
    return LEAST + cells


def _groups(problems: Sequence[Problem], most: int) -> Iterator[list[Problem]]:
    """Consecutive problems of one shape, up to ``most`` positions; unsolvable ones alone."""
    group: list[Problem] = []
    for problem in problems:
        positions = problem.batch.targets[0].numel()
        fits = (
            group
            and not (problem.unsolvable or group[0].unsolvable)
            and problem.batch.inputs.shape == group[0].batch.inputs.shape
            and len(group) < min(_TOGETHER, most // positions)
        )
        if group and not fits:
            yield group
            group = []
        group.append(problem)
    if group:
        yield group


class _Films:
    """A callback of `solve` that films every problem of a batch."""

    def __init__(self, problems: list[Problem], restrict: bool, viewer: Viewer | None) -> None:
        self.problems, self.restrict, self.viewer = problems, restrict, viewer
        self.films = [Film(problem.batch.targets[0].numel()) for problem in problems]
        self.logits: dict[int, Tensor] = {}
        """(K, *S): the last logits of each problem, with ``restrict``"""
        self.seconds = 0.0
        """Time spent in this callback, which is not counted as iterating"""

    def __call__(self, iteration: Iteration) -> None:
        start = time.perf_counter()
        step, rows = iteration.thought.step, iteration.rows.tolist()
        leaving = iteration.leaving.tolist()
        if any(leaving) or any(self.films[row].due(step) for row in rows):
            frames = _frames(iteration.thought)
            for index, row in enumerate(rows):
                if leaving[index] or self.films[row].due(step):
                    self.films[row].put(frames[index], last=leaving[index])
                if leaving[index] and self.restrict:
                    self.logits[row] = iteration.thought.logits[index]
        if self.viewer is not None:
            film = self.films[rows[0]]
            self.viewer(self.problems[rows[0]], film.at(step), film)
        self.seconds += time.perf_counter() - start


def _solution(
    task: Task, problem: Problem, answer: Answer, row: int, film: Film, seconds: float
) -> Solution:
    batch, prediction = problem.batch, answer.prediction[row : row + 1].cpu()
    answered_at, changes = int(answer.answered_at[row]), film.changes()
    in_words = len(changes) * batch.targets[0].numel() <= _POSITIONS_IN_WORDS

    def words(frame: Frame) -> str:
        grid = torch.from_numpy(frame.prediction)[None].long()
        return answer_text(task, batch, 0, grid) if in_words else ""

    return Solution(
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
        history=tuple((frame, words(frame)) for frame in changes),
    )


def _restricted(task: Task, solution: Solution, logits: Tensor) -> Solution:
    """The solution with the best answer that the rules allow, and what that assumes."""
    problem, rules = solution.problem, cast("Restricts", task)
    grid, assumed = rules.restrict(problem.batch, 0, logits)
    notes = problem.notes if assumed in ("", *problem.notes) else (*problem.notes, assumed)
    return replace(
        solution,
        problem=replace(problem, notes=notes),
        allowed=grid[None],
        allowed_answer=answer_text(task, problem.batch, 0, grid[None]),
        allowed_right=is_accepted(task, problem.batch, grid[None]),
    )
