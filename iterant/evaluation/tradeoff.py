"""Accuracy against iterations for many halting rules, from one run.

>>> for rule, curve in tradeoff(net, task, batch, steps=1000):
...     rule, curve.end, curve.iterations[-1]
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from iterant.evaluation.evaluator import (
    Curve,
    Progress,
    budget_of,
    is_finite,
    operations,
    run_batches,
)
from iterant.halting import Fixed, MostConfident, Resting, Rule, StableAnswer
from iterant.nets.protocol import Net, like
from iterant.solving import AnswerBuffer, Iteration, check_fits
from iterant.tasks.protocol import Batch, Task

RULES: tuple[Rule, ...] = (
    Fixed(),
    MostConfident(),
    *(StableAnswer(patience) for patience in (1, 2, 5, 10, 20, 30, 50)),
    *(Resting(tolerance) for tolerance in (1e-1, 1e-2, 1e-3, 1e-4)),
)
"""Two rules that spend the full budget, then rules of rising patience or falling tolerance."""


def tradeoff(
    net: Net,
    task: Task,
    batch: Batch,
    *,
    steps: int,
    rules: Sequence[Rule] = RULES,
    portion: int | None = None,
    progress: Progress | None = None,
) -> list[tuple[Rule, Curve]]:
    """Accuracy and cost under each rule, with a budget of ``steps``: curves of one point.

    All rules see the same iterations, so no problem leaves the batch.
    """
    check_fits(net, task)
    budget_of(net, steps)

    def record(part: Batch, iterations: Iterator[Iteration]) -> dict[str, Tensor]:
        """(rules, B) each, on the CPU."""
        device = part.inputs.device
        watches = [rule.watch() for rule in rules]
        answers = [AnswerBuffer(len(part), device) for _ in rules]
        waiting = torch.ones(len(rules), len(part), dtype=torch.bool, device=device)
        finite = waiting.clone()
        for iteration in iterations:
            thought = iteration.thought
            for index, watch in enumerate(watches):
                done = watch.see(thought).to(device) & waiting[index]
                leaving = waiting[index] if thought.step == steps else done
                if bool(leaving.any()):
                    answers[index].put(replace(iteration, done=done, leaving=leaving, watch=watch))
                    finite[index] &= is_finite(thought.features) | ~leaving
                    waiting[index] &= ~leaving
        solved = [task.solved(buffer.prediction, part).to(device) for buffer in answers]
        return {
            "right": (torch.stack(solved) & finite).cpu(),
            "taken": torch.stack([buffer.steps for buffer in answers]).cpu(),
            "stopped": torch.stack([buffer.met for buffer in answers]).cpu(),
            "finite": finite.cpu(),
        }

    parts, shrunk = run_batches(net, batch, record, steps=steps, portion=portion, progress=progress)
    whole = {name: torch.cat([part[name] for part in parts], dim=1) for name in parts[0]}
    curves = []
    for index, rule in enumerate(rules):
        right = whole["right"][index]
        curve = Curve(
            steps=(steps,),
            solved=right.sum(dim=0, keepdim=True),
            count=len(batch),
            broken=int((~whole["finite"][index]).sum()),
            right=right,
            taken=whole["taken"][index],
            stopped=whole["stopped"][index],
            operations=operations(net, like(net, batch[:1].inputs), rule),
            shrunk=shrunk,
        )
        curves.append((rule, curve))
    return curves
