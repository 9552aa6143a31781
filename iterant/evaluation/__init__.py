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
    is_finite,
    judge,
    like,
    portions,
    relative_change,
)
from iterant.evaluation.long_run import Far, Kept, Lapse, judge_far, watch_answers
from iterant.evaluation.tradeoff import RULES, Bargain, Compaction, answers, compaction, trade

__all__ = [
    "RULES",
    "Bargain",
    "Compaction",
    "Curve",
    "Far",
    "Kept",
    "Lapse",
    "Operations",
    "answers",
    "budget_of",
    "compaction",
    "evaluate",
    "is_finite",
    "judge",
    "judge_far",
    "like",
    "operations",
    "portions",
    "relative_change",
    "trade",
    "watch_answers",
    "wilson",
]
