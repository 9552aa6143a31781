"""Iterate until each problem is done.

    >>> answer = solve(net, batch.inputs, max_steps=1000)
    >>> task.solved(answer.prediction, batch)

solver.py    solve() for tensors, and the loop underneath
problems.py  solutions() for problems, from files or sampled: answers in words, checked, filmed
"""

from iterant.solving.problems import (
    Film,
    Frame,
    Solution,
    Viewer,
    default_max_steps,
    solutions,
)
from iterant.solving.solver import (
    BUDGET,
    LAST_LAYER,
    MAX_STEPS,
    Answer,
    AnswerBuffer,
    Iteration,
    check_fits,
    iterate_until_done,
    solve,
)

__all__ = [
    "BUDGET", "LAST_LAYER", "MAX_STEPS", "Answer", "AnswerBuffer", "Film", "Frame", "Iteration",
    "Solution", "Viewer", "check_fits", "default_max_steps",
    "iterate_until_done", "solutions", "solve",
]  # fmt: skip
