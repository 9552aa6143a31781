"""Iterate until each problem is done, and decode the answers.

    >>> answer = solve(net, batch.inputs, max_steps=1000)
    >>> for solution in solutions(net, task, gather(task, "mazes/").problems):
    ...     solution.answer, solution.steps, solution.right

`solve` takes tensors; `solutions` takes problems from text, files or a generator, keeps a film of
the answers and checks the last one.
"""

from iterant.solving.problems import Film, Frame, Solution, Viewer, budget_for, solutions
from iterant.solving.solver import (
    BUDGET,
    LAST_LAYER,
    Answer,
    AnswerBuffer,
    Iteration,
    check_fits,
    iterate,
    solve,
)

__all__ = [
    "BUDGET",
    "LAST_LAYER",
    "Answer",
    "AnswerBuffer",
    "Film",
    "Frame",
    "Iteration",
    "Solution",
    "Viewer",
    "budget_for",
    "check_fits",
    "iterate",
    "solutions",
    "solve",
]
