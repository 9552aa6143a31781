"""Accuracy by iteration and what it costs, streamed: memory does not grow with iterations.

>>> curve = evaluate(net, task, size=59, count=1000, seed=1, max_steps=1000)
>>> curve.accuracy[29], curve.peak, curve.lost      # after 30 iterations; where; overthinking

curve.py     the outcome: accuracy, peak, loss after it, intervals, cost
cost.py      floating-point operations of a network's parts
far.py       two looks after very many iterations
judging.py   thinking about problems and keeping accounts
lapses.py    right answers that are lost again
portions.py  as many at a time as memory holds
trade.py     many halting rules in one run; what compaction changes
"""

from iterant.evaluation.cost import Operations, operations
from iterant.evaluation.curve import Curve, wilson
from iterant.evaluation.evaluator import (
    budget_of,
    evaluate,
    evaluate_batch,
    is_finite,
    like,
    relative_change,
    split_batch,
)
from iterant.evaluation.long_run import Kept, LongRun, Regression, evaluate_long, track_answers
from iterant.evaluation.tradeoff import RULES, Compaction, TradeOff, answers, compaction, tradeoff

__all__ = [
    "RULES",
    "Compaction",
    "Curve",
    "Kept",
    "LongRun",
    "Operations",
    "Regression",
    "TradeOff",
    "answers",
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
