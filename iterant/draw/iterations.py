"""The iterations of a network on a problem as frames of an animation.

    >>> [solution] = solutions(net, task, problems)
    >>> save_animation(animation_frames(task, [solution]), "maze.gif")
    >>> save_png(describe_solution(task, solution), "maze.png")

Before the last frame the true answer is hidden, so that it is not taken for one of the network.
Several problems are shown side by side, each from its own first iteration.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray

from iterant.draw.figure import pixels
from iterant.errors import UsageError
from iterant.formatting import counted
from iterant.solving import Frame, Solution
from iterant.tasks.inputs import Problem
from iterant.tasks.protocol import Batch, Description, Task

FRAMES = 48
"""The most frames of an animation: 6 seconds at 8 a second."""
_SHORTEST, _LONGEST, _TOTAL = 120, 700, 5000
"""Milliseconds of a frame, at least and at most, and of all frames"""
SIDE_BY_SIDE = 16
"""The most problems in an animation."""


def describe_solution(task: Task, solution: Solution) -> Description:
    """The final answer, compared with the true one where it is known."""
    problem = solution.problem
    if solution.prediction is None:
        return describe_problem(task, problem)
    # Where an answer allowed by the rules was asked for, show that one.
    answer = solution.prediction if solution.allowed is None else solution.allowed
    description = _titled(problem, task.describe(problem.batch, 0, prediction=answer))
    verdict = solution.verdict.words if solution.right is None else ""
    if solution.allowed is not None:
        verdict = "the best that the rules allow"
    settled = "settled" if solution.settled else "not settled"
    words = [
        description.caption,
        verdict,
        f"{settled} after {counted(solution.steps, 'iteration')}",
    ]
    return replace(description, caption="; ".join(word for word in words if word))


def describe_problem(task: Task, problem: Problem) -> Description:
    """The problem without an answer, and the reason if it has none."""
    description = _titled(problem, task.describe(hide_targets(problem.batch), 0))
    return replace(description, caption=f"{description.caption}; {problem.unsolvable}".strip("; "))


def describe_iteration(task: Task, problem: Problem, frame: Frame) -> Description:
    """The answer after one iteration."""
    prediction = torch.from_numpy(frame.prediction)[None].long()
    description = task.describe(hide_targets(problem.batch), 0, prediction=prediction)
    return replace(_titled(problem, description), caption=f"iteration {frame.step}")


def _titled(problem: Problem, description: Description) -> Description:
    """Add the name of the problem's file to the title, to tell many problems apart."""
    if problem.made or not problem.name:
        return description
    return replace(description, title=f"{description.title}: {problem.name}")


def hide_targets(batch: Batch) -> Batch:
    """The batch without labels."""
    return Batch(batch.inputs, torch.full_like(batch.targets, -1), batch.extras)


def animation_frames(
    task: Task, solved: Sequence[Solution], *, most: int = FRAMES, scale: int | None = None
) -> list[NDArray[np.uint8]]:
    """A frame for every change of an answer, or ``most`` evenly spread ones if there are more."""
    if not solved:
        raise UsageError("there is nothing to animate: no problem was solved")
    if len(solved) > SIDE_BY_SIDE:
        raise UsageError(
            f"at most {SIDE_BY_SIDE} problems are animated side by side, got {len(solved)}; "
            "save a .png or a .json, or solve fewer"
        )
    films = [solution.film for solution in solved if solution.prediction is not None]
    steps = sorted({frame.step for film in films for frame in film.changes()})
    if len(steps) >= most:
        steps = evenly_spread(steps[-1], most - 1)
    sheets = [
        [
            describe_problem(task, each.problem)
            if each.prediction is None
            else describe_iteration(task, each.problem, each.film.at(step))
            for each in solved
        ]
        for step in steps
    ]
    sheets.append([describe_solution(task, each) for each in solved])
    return [pixels(sheet, scale=scale) for sheet in sheets]


def frame_milliseconds(frames: int) -> int:
    """The duration of a frame: the fewer there are, the longer each."""
    return min(_LONGEST, max(_SHORTEST, _TOTAL // max(1, frames)))


def evenly_spread(last: int, most: int) -> list[int]:
    """At most ``most`` different iterations from 1 to ``last``."""
    return sorted({round(step) for step in np.linspace(1, max(1, last), max(1, most)).tolist()})
