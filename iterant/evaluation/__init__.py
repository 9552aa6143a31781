"""Accuracy by iteration and its cost: all in evaluator.py."""

from iterant.evaluation.evaluator import (
    RULES,
    Curve,
    Operations,
    evaluate,
    evaluate_batch,
    evaluate_long,
    is_finite,
    operations,
    resolve_steps,
    tradeoff,
    wilson,
)

budget_of = resolve_steps  # its name before 0.2

__all__ = [
    "RULES", "Curve", "Operations", "budget_of", "evaluate", "evaluate_batch",
    "evaluate_long", "is_finite", "operations", "resolve_steps", "tradeoff", "wilson",
]  # fmt: skip
