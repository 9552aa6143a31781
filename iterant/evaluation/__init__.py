"""Accuracy by iteration and its cost; memory does not grow with the number of iterations.

>>> curve = evaluate(net, task, size=59, count=1000, seed=1, max_steps=1000)
>>> curve.accuracy[29], curve.peak, curve.lost  # after 30 iterations; at best; overthinking

evaluator.py  the loop over batches and iterations; accuracy and operations by iteration
long_run.py   very many iterations, and right answers that are lost again
tradeoff.py   many halting rules in one run; effects of removing finished problems from a batch
"""

from iterant.evaluation.evaluator import (
    Curve,
    Operations,
    budget_of,
    evaluate,
    evaluate_batch,
    is_finite,
    operations,
    wilson,
)
from iterant.evaluation.long_run import LongRun, Regression, evaluate_long, track_answers
from iterant.evaluation.tradeoff import RULES, TradeOff, compaction, tradeoff

__all__ = [
    "RULES", "Curve", "LongRun", "Operations", "Regression", "TradeOff", "budget_of", "compaction",
    "evaluate", "evaluate_batch", "evaluate_long", "is_finite", "operations", "track_answers",
    "tradeoff", "wilson",
]  # fmt: skip
