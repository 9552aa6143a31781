"""Accuracy by iteration and its cost.

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
from iterant.evaluation.long_run import LongRun, evaluate_long
from iterant.evaluation.tradeoff import RULES, compaction, tradeoff

__all__ = [
    "RULES", "Curve", "LongRun", "Operations", "budget_of", "compaction", "evaluate",
    "evaluate_batch", "evaluate_long", "is_finite", "operations", "tradeoff", "wilson",
]  # fmt: skip
