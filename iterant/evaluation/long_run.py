"""Evaluation after very many iterations: are right answers kept?

    >>> figures = evaluate_long(net, task, task.sample(100, size=201, seed=7), steps=10_000)
    >>> figures["solved"], figures["solved at twice"], figures["lost"]
    (100, 100, 0)

Answers are checked after ``steps`` iterations and after twice as many. Local rules stop once
nothing changes any more.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import torch
from torch import Tensor

from iterant.evaluation.evaluator import evaluate_batch, run_batches, wilson
from iterant.nets.fast import accelerate
from iterant.nets.protocol import Net, like
from iterant.solving import Iteration, check_fits
from iterant.tasks.protocol import Batch, Task

_CELLS_AT_ONCE = 1 << 22
"""Most cells of one batch of a long run; the recall terms of all cells take most of the memory."""
_MAX_LISTED = 20
"""How many unsolved problems are listed."""


def evaluate_long(net: Net, task: Task, batch: Batch, steps: int) -> dict[str, Any]:
    """Check answers after ``steps`` iterations and after twice as many.

    Returns the figures of a result file; "lost" only for local rules.
    """
    check_fits(net, task)
    figures: dict[str, Any]
    if hasattr(accelerate(net, like(net, batch[:1].inputs)), "moved"):
        figures, twice = _until_rest(net, task, batch, steps)
    else:
        marks = sorted({max(1, 2 * steps * part // 40) for part in range(1, 41)} | {steps})
        curve = evaluate_batch(net, task, batch, steps=2 * steps, at=marks)
        twice = cast("Tensor", curve.right)
        counts = dict(zip(map(str, curve.steps), curve.solved.tolist(), strict=True))
        figures = {
            "solved": counts[str(steps)],
            "peak": dict(zip(("iterations", "accuracy"), curve.peak, strict=True)),
            "solved by iteration": counts,
            "change at the end": curve.change,
            "thinking": "everywhere",
        }
    return figures | {
        "solved at twice": int(twice.sum()),
        "wrong": (~twice).nonzero().flatten().tolist()[:_MAX_LISTED],
        "problems": len(twice),
        "iterations": steps,
        "interval": wilson(torch.tensor(figures["solved"]), len(twice)).tolist(),
    }


def _until_rest(net: Net, task: Task, batch: Batch, steps: int) -> tuple[dict[str, Any], Tensor]:
    """For networks that report their changes: once nothing changes, the state is final.

    Returns figures, and which problems are right at the end.
    """
    latest = computed = cells = resting = 0

    def record(part: Batch, iterations: Iterator[Iteration]) -> tuple[Tensor, Tensor]:
        nonlocal latest, computed, cells, resting
        for iteration in iterations:
            thought = iteration.thought
            fast: Any = thought.net
            changing = bool((fast.moved != 0).any())  # NaN counts as changed
            if thought.step == steps or (thought.step < steps and not changing):
                right = task.solved(thought.prediction, part).cpu()
            if not changing:
                break
            latest = max(latest, thought.step)
        computed += getattr(fast, "computed", 0)
        cells += getattr(fast, "cells", 0)
        resting += 0 if changing else len(part)
        return right, task.solved(thought.prediction, part).cpu()

    cells_of_one = batch.targets[0].numel() // task.spec.square**task.spec.dims
    portion = max(1, _CELLS_AT_ONCE // cells_of_one)
    parts, _ = run_batches(net, batch, record, steps=2 * steps, portion=portion, reuse=True)
    right, twice = (torch.cat(tensors) for tensors in zip(*parts, strict=True))
    figures = {
        "solved": int(right.sum()),
        "lost": int((right & ~twice).sum()),
        "thinking": "everywhere, until rest",
        "problems in portions that rest": resting,
        "last iteration in which anything changed": latest,
    }
    if cells > 0:
        figures["thinking"] = "only where something changed"
        figures["computations a square"] = computed / cells
    return figures, twice
