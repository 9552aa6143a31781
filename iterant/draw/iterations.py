"""How a network thought about a problem, as frames to look at.

    >>> [solution] = solutions(net, task, problems)
    >>> save_animation(thinking(task, [solution]), "maze.gif")
    >>> save_png(outcome(task, solution), "maze.png")

On the way the true answer is not shown, lest it look like a guess of the network's; the last frame
is judged. Several problems think side by side, each from its own first iteration.
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
"""Of an animation: at eight a second, six seconds."""
_QUICKEST, _SLOWEST, _WHOLE = 120, 700, 5000
"""Milliseconds of a frame, at least and at most, and of all together"""
SIDE_BY_SIDE = 16
"""More would be too small to see."""


def outcome(task: Task, solution: Solution) -> Description:
    """The answer, judged where the true one is known; the problem alone where there is none."""
    problem = solution.problem
    if solution.prediction is None:
        return problem_alone(task, problem)
    # An answer that the rules allow was asked for, so it is the one that is shown.
    shown = solution.prediction if solution.allowed is None else solution.allowed
    described = _named(problem, task.describe(problem.batch, 0, prediction=shown))
    verdict = solution.verdict.words if solution.right is None else ""
    if solution.allowed is not None:
        verdict = "the best that the rules allow"
    words = [described.caption, verdict, ended(solution)]
    return replace(described, caption="; ".join(word for word in words if word))


def problem_alone(task: Task, problem: Problem) -> Description:
    """The problem without any answer, and why there is none where that is known."""
    described = _named(problem, task.describe(hidden(problem.batch), 0))
    return replace(described, caption=f"{described.caption}; {problem.unsolvable}".strip("; "))


def at_work(task: Task, problem: Problem, frame: Frame) -> Description:
    """The answer as it stood after one iteration, not judged."""
    prediction = torch.from_numpy(frame.prediction)[None].long()
    described = task.describe(hidden(problem.batch), 0, prediction=prediction)
    described = _named(problem, described)
    return replace(described, caption=f"iteration {frame.step}")


def _named(problem: Problem, described: Description) -> Description:
    """With the name of the file that the problem came from: on a sheet of many, which is which?"""
    if problem.made or not problem.name:
        return described
    return replace(described, title=f"{described.title}: {problem.name}")


def ended(solution: Solution) -> str:
    """When thinking stopped, in a few words."""
    if solution.settled:
        return f"settled after {counted(solution.steps, 'iteration')}"
    return f"not settled after {counted(solution.steps, 'iteration')}"


def hidden(batch: Batch) -> Batch:
    """The problems with no answer to be seen."""
    return Batch(batch.inputs, torch.full_like(batch.targets, -1), batch.extras)


def thinking(
    task: Task, solved: Sequence[Solution], *, most: int = FRAMES, scale: int | None = None
) -> list[NDArray[np.uint8]]:
    """At most so many frames: every change of an answer, or looks spread evenly over them."""
    if not solved:
        raise UsageError("there is nothing to animate: no problem was solved")
    if len(solved) > SIDE_BY_SIDE:
        raise UsageError(
            f"at most {SIDE_BY_SIDE} problems are animated side by side, got {len(solved)}; "
            "save a .png or a .json, or solve fewer"
        )
    films = [solution.film for solution in solved if solution.prediction is not None]
    changes = sorted({frame.step for film in films for frame in film.changes()})
    steps = changes if len(changes) < most else steps_shown(changes[-1], most - 1)
    sheets = [
        [
            problem_alone(task, each.problem)
            if each.prediction is None
            else at_work(task, each.problem, each.film.at(step))
            for each in solved
        ]
        for step in steps
    ]
    sheets.append([outcome(task, each) for each in solved])
    return [pixels(sheet, scale=scale) for sheet in sheets]


def lasting(frames: int) -> int:
    """Milliseconds that each of so many frames stays: a few stay longer."""
    return min(_SLOWEST, max(_QUICKEST, _WHOLE // max(1, frames)))


def steps_shown(last: int, most: int) -> list[int]:
    """Iterations from 1 to the last change, evenly spread, none twice."""
    return sorted({round(step) for step in np.linspace(1, max(1, last), max(1, most)).tolist()})
