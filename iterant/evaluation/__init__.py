"""Accuracy by iteration and its cost, streamed: memory does not grow with iterations.

>>> curve = evaluate(net, task, size=59, count=1000, seed=1, max_steps=1000)
>>> curve.accuracy[29], curve.peak, curve.lost      # after 30 iterations; where; overthinking

evaluator.py  the loop over batches and iterations; accuracy by iteration
curve.py      the result: accuracy, peak, overthinking, intervals, cost
cost.py       floating-point operations
long_run.py   very many iterations, and right answers that are lost again
tradeoff.py   many halting rules in one run; what leaving the batch changes
"""

from iterant.evaluation.cost import Operations, operations
from iterant.evaluation.curve import Curve, wilson
from iterant.evaluation.evaluator import (
    budget_of,
    evaluate,
    evaluate_batch,
    is_finite,
    relative_change,
    split_batch,
)
from iterant.evaluation.long_run import (
    AnswerHistory,
    LongRun,
    Regression,
    evaluate_long,
    track_answers,
)
from iterant.evaluation.tradeoff import RULES, Compaction, TradeOff, compaction, tradeoff
from iterant.nets.protocol import like

__all__ = [
    "RULES",
    "AnswerHistory",
    "Compaction",
    "Curve",
    "LongRun",
    "Operations",
    "Regression",
    "TradeOff",
    "budget_of",
    "compaction",
    "evaluate",
    "evaluate_batch",
    "evaluate_long",
    "is_finite",
    "like",
    "operations",
    "relative_change",
    "split_batch",
    "track_answers",
    "tradeoff",
    "wilson",
]
