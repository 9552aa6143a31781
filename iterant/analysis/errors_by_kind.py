"""Accuracy by kind of problem, and how wrong the wrong answers are.

    >>> by_kind(Trial("kinds", net, task, batch, steps=300)).cells["rating 1000 to 1099"]
    >>> misses = near_misses(Trial("near-misses", net, task, batch, steps=300))
    >>> misses.figures["failures"], misses.failures[0].title

Kinds (ratings and themes of puzzles, lengths of paths) need a task with `HasKinds`; whether a wrong
answer is still a connected or valid path needs one with `HasNearMisses` (mazes).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from iterant.analysis.interventions import Case, Trial, parts, run_cases, track
from iterant.analysis.report import Result, text
from iterant.draw.plots import Plot, Trace
from iterant.engine import last
from iterant.evaluation import is_finite, wilson
from iterant.tasks.protocol import Description, HasNearMisses

MAX_PICTURES = 64
"""The most failures that are kept for drawing; all are counted."""


def by_kind(trial: Trial) -> Result:
    """Count the correct problems of each kind after each iteration."""
    correct, _, _ = track(trial, [Case(part, part) for part in parts(trial.batch)])  # (N, T)
    figures: dict[str, Any] = {}
    points: dict[str, list[tuple[float, float]]] = {}  # by scale: (x of a kind, accuracy)
    for kind in trial.task.kinds(trial.batch):
        count = int(kind.among.sum())
        if count == 0:
            continue
        solved = correct[kind.among].sum(dim=0)  # (T,)
        figures[kind.name] = {
            "problems": count,
            "at the end": int(solved[-1]) / count,
            "95 %": wilson(solved[-1], count).tolist(),
            "solved by iteration": solved.tolist(),
        }
        if kind.scale:
            end = 100 * int(solved[-1]) / count
            points.setdefault(kind.scale, []).append((kind.at, end))
    cells = {name: f"{100 * kind['at the end']:.1f} %" for name, kind in figures.items()}
    plots = []
    for scale, ends in points.items():
        name, y_label = f"accuracy by {scale}", "solved at the end (%)"
        plot = Plot(name, scale, y_label, share=True, shade=False)
        plots.append((plot, Trace([x for x, _ in ends], [y for _, y in ends])))
    return Result(figures, cells, plots)


@torch.no_grad()
def near_misses(trial: Trial) -> Result:
    """Examine the answers that are wrong at the end."""
    task, first, broken = trial.task, 0, 0
    counts: list[int] = []  # wrong positions of each problem; 0 is solved
    paths = {"connected": 0, "valid": 0}
    failures: list[Description] = []
    cases = [Case(part, part) for part in parts(trial.batch)]
    for case, thoughts in run_cases(trial, cases):
        thought = last(thoughts)
        prediction, part = thought.prediction.cpu(), case.batch.to(torch.device("cpu"))
        if isinstance(task, HasNearMisses):
            misses = task.near_misses(prediction, part)
            wrong = misses.wrong
            paths["connected"] += int(((wrong > 0) & misses.connected).sum())
            paths["valid"] += int(((wrong > 0) & misses.valid).sum())
        else:
            positions: Tensor = (prediction != part.targets).flatten(1).sum(dim=1)
            wrong = positions * ~task.solved(prediction, part)
        broken += int((~is_finite(thought.features)).sum())
        for row in wrong.nonzero().flatten().tolist()[: MAX_PICTURES - len(failures)]:
            failure = task.describe(part, row, prediction)
            failures.append(replace(failure, title=f"{failure.title}, problem {first + row}"))
        counts += wrong.tolist()
        first += len(part)

    distribution = sorted(Counter(counts).items())
    missed = [count for count in counts if count]
    figures: dict[str, Any] = {"problems": len(counts), "failures": len(missed)}
    cells = {"problems": str(len(counts)), "failures": str(len(missed))}
    if isinstance(task, HasNearMisses):
        figures |= {f"failures that are {kind}": count for kind, count in paths.items()}
        cells |= {f"of them {kind}": str(count) for kind, count in paths.items()}
    figures["broken"] = broken
    figures["problems by wrong positions"] = {str(wrong): count for wrong, count in distribution}
    median = float(torch.tensor(missed, dtype=torch.float64).nanmedian())
    cells |= {"wrong positions a failure (median)": text(median, ".0f"), "NaN": str(broken)}

    x, y = [0], [0.0]  # a step function
    for wrong_positions, count in distribution:
        x += [wrong_positions, wrong_positions]
        y += [y[-1], y[-1] + 100 * count / len(counts)]
    if x[-1] == 0:  # avoid an axis from 0 to 0
        x, y = [*x, 1], [*y, y[-1]]
    y_label = "problems with at most this many (%)"
    plot = Plot("near misses", "wrong positions", y_label, share=True, shade=False)
    return Result(figures, cells, [(plot, Trace(x, y))], failures)
