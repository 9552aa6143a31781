"""Convergence: ‖Δφ‖ by iteration, and whether each sample ends settled, cycling or moving.

    >>> convergence = converge(net, task, batch, steps=300)
    >>> convergence.change[-1], convergence.features   # mean ‖Δφ‖; {"settled": 98, "cycling": 2, …}

A sample is settled if nothing changes at each of the last iterations, cycling with period p if it
returns each time to its state p iterations before, and moving otherwise. Features are compared up
to a tolerance relative to their norm, decoded answers exactly: correct answers can be settled
while features cycle. Only the last few states are kept, so memory does not grow with iterations.

Shapes: N samples, B those of one part, T iterations, P the longest period.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from iterant.analysis.interventions import Case, Tick, no_tick, parts, run_cases, text
from iterant.draw.plots import Plot, Trace
from iterant.engine import begin
from iterant.errors import UsageError
from iterant.evaluation import is_finite, like
from iterant.nets.protocol import Net
from iterant.tasks.protocol import Batch, Task

LONGEST = 8
"""The longest period that is searched for."""
BROKEN, MOVING, SETTLED = -1, 0, 1
"""Special periods: features became NaN or infinite; no period; fixed point."""
LEAST = 3
"""The fewest iterations in which a period can be found."""


@dataclass(frozen=True)
class Convergence:
    """The size of each change, and the period of each sample at the end."""

    inputs: str
    """"problems" or "random inputs" """
    change: Tensor
    """(T,) float64: mean ‖Δφ‖ of the samples with finite features; NaN if there are none"""
    periods: Tensor
    """(N,) int64 of the features: `SETTLED`, a period of 2 or more, `MOVING` or `BROKEN`"""
    answer_periods: Tensor
    """(N,) int64 of the decoded answers, likewise"""
    broken: Tensor
    """(T,) int64: samples left out of each mean because of NaN or infinite features"""
    solved: Tensor | None
    """(N,) bool: correct at the end; None for random inputs"""

    @property
    def features(self) -> dict[str, int]:
        """The numbers of samples whose features are settled, cycling, moving, broken."""
        return _classes(self.periods)

    @property
    def answers(self) -> dict[str, int]:
        """The numbers of samples whose answers are settled, cycling, moving, broken."""
        return _classes(self.answer_periods)

    def figures(self) -> dict[str, Any]:
        """All numbers, as JSON."""
        return {
            "inputs": self.inputs,
            "samples": len(self.periods),
            "mean change": self.change.tolist(),
            "broken": self.broken.tolist(),
            "features": {**self.features, "periods": _cycles(self.periods)},
            "answers": {**self.answers, "periods": _cycles(self.answer_periods)},
            # Correct networks can cycle: solved samples by what their features do.
            "solved": None if self.solved is None else _classes(self.periods[self.solved]),
        }

    def headline(self) -> dict[str, str]:
        """The main numbers as cells of a table."""
        cells = {"inputs": self.inputs, "last ‖Δφ‖": text(float(self.change[-1]), ".2g")}
        for name, periods in (("features", self.periods), ("answers", self.answer_periods)):
            counts = [f"{count} {word}" for word, count in _classes(periods).items() if count]
            cycles = [f"{count} × {period}" for period, count in _cycles(periods).items()]
            cells[name] = ", ".join(counts) + (f" (periods: {', '.join(cycles)})" if cycles else "")
        if self.solved is not None:
            cells["solved"] = f"{100 * float(self.solved.double().mean()):.1f} %"
        return cells

    def plots(self) -> list[tuple[Plot, Trace]]:
        """‖Δφ‖ by iteration."""
        plot = Plot(f"change on {self.inputs}", "iterations", "mean ‖Δφ‖", log=True)
        return [(plot, Trace(list(range(1, len(self.change) + 1)), self.change.tolist()))]


class _PeriodFinder:
    """Which samples returned to their state p iterations before, at every check so far."""

    def __init__(self, longest: int, same: Callable[[Tensor, Tensor], Tensor]) -> None:
        self.recent: deque[Tensor] = deque(maxlen=longest)
        self.same = same
        self.returned = torch.tensor(True)  # (P, B) from the first check on

    def add(self, state: Tensor, *, check: bool) -> None:
        if check:
            now = torch.stack([self.same(before, state) for before in reversed(self.recent)])
            self.returned = self.returned & now
        self.recent.append(state)

    def periods(self, broken: Tensor) -> Tensor:
        """(B,) the shortest period, or `MOVING`, or `BROKEN`."""
        shortest = (self.returned.int().argmax(dim=0) + 1) * self.returned.any(dim=0)
        return shortest.masked_fill(broken, BROKEN).cpu()


@torch.no_grad()
def converge(
    net: Net,
    task: Task,
    batch: Batch,
    *,
    steps: int,
    tolerance: float = 1e-3,
    inputs: str = "problems",
    tick: Tick = no_tick,
) -> Convergence:
    """Iterate ``steps`` times and find the periods at the end; ``inputs`` names the batch.

    Of the last 24 iterations, or of ``steps`` if fewer, the last two thirds are checked for
    periods up to a third.
    """
    if steps < LEAST:
        raise UsageError(f"convergence needs at least {LEAST} iterations, got {steps}")
    longest = min(LONGEST, steps // 3)
    total, count = (torch.zeros(steps, dtype=torch.float64) for _ in range(2))
    periods, answers, solved = [], [], []
    cases = [Case(part, part) for part in parts(batch)]
    for case, thoughts in run_cases(net, cases, steps, tick):
        features = _PeriodFinder(longest, lambda a, b: _norm(b - a) <= tolerance * _norm(b))
        decoded = _PeriodFinder(longest, lambda a, b: (a == b).flatten(1).all(dim=1))
        before = begin(net, like(net, case.batch.inputs)).features
        changes = []  # on the device until the end: copying would wait for the GPU
        for thought in thoughts:
            changes.append(_norm(thought.features - before))
            before = thought.features
            if thought.step > steps - 3 * longest:
                check = thought.step > steps - 2 * longest
                features.add(thought.features, check=check)
                decoded.add(thought.prediction, check=check)
        change = torch.stack(changes).cpu()  # (T, B)
        total += change.nan_to_num(0, 0, 0).sum(dim=1)
        count += change.isfinite().sum(dim=1)
        broken = ~is_finite(thought.features)
        periods.append(features.periods(broken))
        answers.append(decoded.periods(broken))
        if case.batch.labelled:
            solved.append((task.solved(thought.prediction, case.batch) & ~broken).cpu())
    return Convergence(
        inputs=inputs,
        change=total / count.masked_fill(count == 0, float("nan")),
        periods=torch.cat(periods),
        answer_periods=torch.cat(answers),
        broken=(len(batch) - count).long(),
        solved=torch.cat(solved) if solved else None,
    )


def _classes(periods: Tensor) -> dict[str, int]:
    """The number of samples in each class."""
    return {
        "settled": int((periods == SETTLED).sum()),
        "cycling": int((periods > SETTLED).sum()),
        "moving": int((periods == MOVING).sum()),
        "broken": int((periods == BROKEN).sum()),
    }


def _cycles(periods: Tensor) -> dict[str, int]:
    """The number of samples with each period of 2 or more."""
    counts = Counter(periods[periods > SETTLED].tolist())
    return {str(period): counts[period] for period in sorted(counts)}


def _norm(features: Tensor) -> Tensor:
    """(B,) float64, so that features that explode do not overflow."""
    length: Tensor = torch.linalg.vector_norm(features.flatten(1), dim=1, dtype=torch.float64)
    return length
