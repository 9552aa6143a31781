"""Accuracy by iteration and its cost.

evaluator.py  accuracy and operations by iteration; many halting rules in one run
long_run.py   very many iterations: are right answers kept?
"""

from iterant.evaluation.evaluator import (
    RULES,
    Curve,
    Operations,
    budget_of,
    evaluate,
    evaluate_batch,
    is_finite,
    operations,
    tradeoff,
    wilson,
)
from iterant.evaluation.long_run import evaluate_long

__all__ = [
    "RULES", "Curve", "Operations", "budget_of", "evaluate", "evaluate_batch",
    "evaluate_long", "is_finite", "operations", "tradeoff", "wilson",
]  # fmt: skip
