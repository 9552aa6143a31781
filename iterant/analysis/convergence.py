"""Convergence: where iterating ends, and whether every start leads there.

    >>> convergence = converge(net, task, batch, steps=300)
    >>> convergence.change[-1], convergence.features   # mean ‖Δφ‖; {"settled": 98, "cycling": 2, …}
    >>> paths = independence(net, task, batch, steps=300, seed=0)
    >>> paths.cosine["zeros"].mean(), paths.relation

A sample is settled if nothing changes at each of the last iterations, cycling with period p if it
returns each time to its state p iterations before, and moving otherwise. Features are compared up
to a tolerance relative to their norm, decoded answers exactly: correct answers can be settled
while features cycle. Only the last few states are kept, so memory does not grow with iterations.

Path independence: each problem starts from the network's own features, from zeros, from Gaussian
noise and from the initial features of another problem. The final features are compared with those
from the network's own start by their cosine.

Shapes: N samples, B those of one part, T iterations, P the longest period.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from iterant.analysis.interventions import (
    Case,
    Tick,
    check_two,
    gaussian,
    no_tick,
    parts,
    run_cases,
    swapped,
    text,
)
from iterant.draw.plots import Plot, Trace
from iterant.engine import State, begin, last, think
from iterant.errors import UsageError
from iterant.evaluation import is_finite, like
from iterant.nets.fast import fused
from iterant.nets.protocol import Net
from iterant.tasks.protocol import Batch, Task

LONGEST = 8
"""The longest period that is searched for."""
BROKEN, MOVING, SETTLED = -1, 0, 1
"""Special periods: features became NaN or infinite; no period; fixed point."""
LEAST = 3
"""The fewest iterations in which a period can be found."""
STARTS = ("zeros", "noise", "another problem")
"""The starts besides the network's own."""


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


@dataclass(frozen=True)
class Independence:
    """How well the final features agree, by start."""

    cosine: Mapping[str, Tensor]
    """(N,) float64: cosine to the features from the own start; NaN for non-finite features"""
    agreed: Mapping[str, Tensor]
    """(N,) bool: the same decoded answer as from the own start, and finite features"""
    right: Mapping[str, Tensor]
    """(N,) bool: the correct answer; "own" is the network's own start"""

    @property
    def worst(self) -> Tensor:
        """(N,) float64: the smallest cosine over all starts; NaN if any is."""
        return torch.stack(list(self.cosine.values())).amin(dim=0)

    @property
    def broken(self) -> int:
        """The number of problems with NaN or infinite features, which are left out of means."""
        return int(self.worst.isnan().sum())

    @property
    def relation(self) -> dict[str, float]:
        """The worst cosine of solved and unsolved problems, and its correlation with solving.

        NaN if there is nothing to compare: all solved, none solved, or no variance.
        """
        finite = ~self.worst.isnan()
        worst, right = self.worst[finite], self.right["own"][finite]
        both = torch.stack([worst, right.double()])
        varies = len(worst) > 1 and bool((both.std(dim=1) > 1e-9).all())
        return {
            "cosine of solved": _mean(worst[right]),
            "cosine of unsolved": _mean(worst[~right]),
            "correlation": float(torch.corrcoef(both)[0, 1]) if varies else float("nan"),
        }

    def figures(self) -> dict[str, Any]:
        """All numbers, as JSON."""
        return {
            "problems": len(self.worst),
            "broken": self.broken,
            "accuracy from own start": _mean(self.right["own"]),
            "starts": {
                start: {
                    "mean cosine": _mean(cosine),
                    "same answer": _mean(self.agreed[start]),
                    "accuracy": _mean(self.right[start]),
                    "cosine": cosine.tolist(),
                }
                for start, cosine in self.cosine.items()
            },
            "relation to accuracy": self.relation,
        }

    def headline(self) -> dict[str, str]:
        """The main numbers as cells of a table."""
        same = torch.stack(list(self.agreed.values())).all(dim=0)
        return {
            **{f"cosine from {s}": text(_mean(c), ".3f") for s, c in self.cosine.items()},
            "same answer from all": f"{100 * _mean(same):.1f} %",
            "solved": f"{100 * _mean(self.right['own']):.1f} %",
            **{name: text(value, ".3f") for name, value in self.relation.items()},
            "NaN": str(self.broken),
        }

    def plots(self) -> list[tuple[Plot, Trace]]:
        """The worst cosine of every problem, sorted."""
        ordered = self.worst[~self.worst.isnan()].sort().values.tolist()
        shares = [100 * place / len(ordered) for place in range(1, len(ordered) + 1)]
        plot = Plot("path independence", "problems, worst first (%)",
                    "cosine of the ends, from the worst start", shade=False)  # fmt: skip
        return [(plot, Trace(shares, ordered))]


@torch.no_grad()
def independence(
    net: Net, task: Task, batch: Batch, *, steps: int, seed: int = 0, tick: Tick = no_tick
) -> Independence:
    """Iterate ``steps`` times from every start and compare the final features."""
    check_two(batch)
    columns: dict[str, dict[str, list[Tensor]]] = {"cosine": {}, "agreed": {}, "right": {}}
    fast, batches = fused(net), list(parts(batch, least=2))
    done, total = 0, len(batches) * (1 + len(STARTS))
    for place, part in enumerate(batches):
        x = like(net, part.inputs)
        start = begin(fast, x).features
        other = swapped(len(part), seed, f"start {place}").to(start.device)
        starts = {
            "own": start,
            "zeros": torch.zeros_like(start),
            "noise": gaussian(start, seed, f"start {place}"),
            "another problem": start[other],
        }
        own = None
        for name, features in starts.items():
            end = last(think(fast, x, steps=steps, state=State(features, 0)))
            solved = task.solved(end.prediction.cpu(), part) & is_finite(end.features).cpu()
            columns["right"].setdefault(name, []).append(solved)
            if own is None:
                own = end
            else:
                cosine = cosines(own.features, end.features)
                same = (end.prediction == own.prediction).flatten(1).all(dim=1) & ~cosine.isnan()
                columns["cosine"].setdefault(name, []).append(cosine.cpu())
                columns["agreed"].setdefault(name, []).append(same.cpu())
            done += 1
            tick(done, total)
    return Independence(**{
        field: {name: torch.cat(column) for name, column in by_start.items()}
        for field, by_start in columns.items()
    })  # fmt: skip


def cosines(one: Tensor, other: Tensor) -> Tensor:
    """(N,) float64: cosine per sample; 1 for two zero vectors, NaN for non-finite features."""
    a, b = one.flatten(1).double(), other.flatten(1).double()
    norm_a, norm_b = (torch.linalg.vector_norm(side, dim=1, keepdim=True) for side in (a, b))
    # Normalised first, so that large features do not overflow in the product.
    unit_a, unit_b = a / norm_a.clamp_min(1e-300), b / norm_b.clamp_min(1e-300)
    cosine: Tensor = (unit_a * unit_b).sum(dim=1).clamp(-1, 1)
    cosine[((norm_a == 0) & (norm_b == 0)).squeeze(1)] = 1.0
    return cosine.masked_fill(~(is_finite(one) & is_finite(other)), float("nan"))


def _mean(values: Tensor) -> float:
    """The mean without NaN; NaN if nothing is left."""
    return float(values.double().nanmean())
