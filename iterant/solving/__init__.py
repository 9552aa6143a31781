"""Iterate until each problem is done, and decode the answers.

    >>> answer = solve(net, batch.inputs, max_steps=1000)
    >>> for solution in solutions(net, task, gather(task, "mazes/").problems):
    ...     solution.answer, solution.steps, solution.right

`solve` takes tensors; `solutions` takes problems as users have them, keeps a film of the answers
and checks the last one.
"""

from iterant.solving.film import Film, Frame
from iterant.solving.problems import Solution, solutions
from iterant.solving.solver import (
    Answer,
    AnswerBuffer,
    Callback,
    Iteration,
    check_fits,
    iterate,
    solve,
)

__all__ = [
    "Answer",
    "AnswerBuffer",
    "Callback",
    "Film",
    "Frame",
    "Iteration",
    "Solution",
    "check_fits",
    "iterate",
    "solutions",
    "solve",
]
