"""Accuracy by iteration and its cost.

evaluator.py  the loop over batches and iterations; accuracy and operations by iteration
long_run.py   very many iterations: are right answers kept?
tradeoff.py   many halting rules in one run
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
from iterant.evaluation.long_run import LongRun, evaluate_long
from iterant.evaluation.tradeoff import RULES, tradeoff

__all__ = [
    "RULES", "Curve", "LongRun", "Operations", "budget_of", "evaluate", "evaluate_batch",
    "evaluate_long", "is_finite", "operations", "tradeoff", "wilson",
]  # fmt: skip
