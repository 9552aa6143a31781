"""Convergence: where iterating ends, and whether every start leads there.

    >>> result = converge(Trial("convergence", net, task, batch, steps=300))
    >>> result.figures["features"]        # {"settled": 98, "cycling": 2, …}
    >>> compare_starts(Trial("convergence", net, task, batch, steps=300)).figures["starts"]

A sample is at a fixed point ("settled" in results) if nothing changes at each of the last
iterations, cycling with period p if it returns each time to its state p iterations before, and
moving otherwise. `solve` also calls short cycles settled if their answers agree: see
`iterant.halting`. Features are compared up to a tolerance relative to their norm, decoded answers
exactly: correct answers can stay while features cycle. Only the last few states are kept, so memory
does not grow with iterations.

Path independence: each problem starts from the network's own features, from zeros, from Gaussian
noise and from the initial features of another problem. The final features are compared with those
from the network's own start by their cosine.

Shapes: N samples, B samples of one part of the batch, T iterations, P the longest period.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from iterant.analysis.interventions import (
    Case,
    Trial,
    cases,
    derangement,
    gaussian,
    parts,
    run_cases,
    take,
)
from iterant.analysis.report import Result
from iterant.draw.plots import Plot, Trace
from iterant.engine import After, last
from iterant.evaluation import is_finite
from iterant.nets.protocol import like
from iterant.tasks.protocol import Batch

LONGEST = 8
"""The longest period that is searched for."""
BROKEN, MOVING, FIXED_POINT = -1, 0, 1
"""Special periods: features became NaN or infinite; no period; the same at every iteration."""
LEAST = 3
"""The fewest iterations in which a period can be found."""
STARTS = ("own", "zeros", "noise", "another problem")


class _PeriodFinder:
    """Finds samples that returned, at every check so far, to their state p iterations before."""

    def __init__(self, longest: int, same: Callable[[Tensor, Tensor], Tensor]) -> None:
        self.recent: deque[Tensor] = deque(maxlen=longest)
        self.same = same
        self.returned = torch.tensor(True)  # (P, B) from the first check on

    def add(self, state: Tensor, *, check: bool) -> None:
        if check:
            same = torch.stack([self.same(before, state) for before in reversed(self.recent)])
            self.returned = self.returned & same  # (P, B)
        self.recent.append(state)

    def periods(self, broken: Tensor) -> Tensor:
        """(B,) the shortest period, or `MOVING`, or `BROKEN`."""
        shortest = (self.returned.int().argmax(dim=0) + 1) * self.returned.any(dim=0)
        return shortest.masked_fill(broken, BROKEN).cpu()


@torch.no_grad()
def converge(trial: Trial, inputs: str = "problems") -> Result:
    """Measure every change of the features, and find the periods at the end.

    Of the last 24 iterations, or of all if fewer, the last two thirds are checked for periods up
    to a third. ``inputs`` names the batch: problems or random inputs.
    """
    steps, tolerance = trial.steps, trial.tolerance
    longest = min(LONGEST, steps // 3)
    total, count = (torch.zeros(steps, dtype=torch.float64) for _ in range(2))
    periods, answer_periods, solved = [], [], []
    for case, thoughts in run_cases(trial, cases(trial)):
        features = _PeriodFinder(longest, lambda a, b: _norm(b - a) <= tolerance * _norm(b))
        answers = _PeriodFinder(longest, lambda a, b: (a == b).flatten(1).all(dim=1))
        before = trial.net.start(like(trial.net, case.batch.inputs))
        changes = []  # on the device until the end: copying would wait for the GPU
        for thought in thoughts:
            changes.append(_norm(thought.features - before))
            before = thought.features
            if thought.step > steps - 3 * longest:
                check = thought.step > steps - 2 * longest
                features.add(thought.features, check=check)
                answers.add(thought.prediction, check=check)
        change = torch.stack(changes).cpu()  # (T, B)
        total += change.nan_to_num(0, 0, 0).sum(dim=1)
        count += change.isfinite().sum(dim=1)
        broken = ~is_finite(thought.features)
        periods.append(features.periods(broken))
        answer_periods.append(answers.periods(broken))
        if case.batch.labelled:
            solved.append((trial.task.solved(thought.prediction, case.batch) & ~broken).cpu())
    mean = (total / count.masked_fill(count == 0, float("nan"))).tolist()
    ends = {"features": torch.cat(periods), "answers": torch.cat(answer_periods)}
    right = torch.cat(solved) if solved else None
    figures = {
        "inputs": inputs,
        "samples": len(trial.batch),
        "mean change": mean,
        "broken": (len(trial.batch) - count).long().tolist(),
        **{name: {**_classes(end), "periods": _cycles(end)} for name, end in ends.items()},
        # Correct networks can cycle: solved samples by what their features do.
        "solved": None if right is None else _classes(ends["features"][right]),
    }
    plot = Plot(f"change on {inputs}", "iterations", "mean change of the features", log=True)
    return Result(figures, [(plot, Trace(list(range(1, steps + 1)), mean))])


def converge_on_noise(trial: Trial) -> Result:
    """`converge` with Gaussian noise in place of the problems."""
    noise = gaussian(trial.batch.inputs, trial.seed, "random inputs")
    batch = Batch(noise, torch.full_like(trial.batch.targets, -1))
    return converge(replace(trial, batch=batch), "random inputs")


def _classes(periods: Tensor) -> dict[str, int]:
    """The number of samples in each class."""
    return {
        "settled": int((periods == FIXED_POINT).sum()),
        "cycling": int((periods > FIXED_POINT).sum()),
        "moving": int((periods == MOVING).sum()),
        "broken": int((periods == BROKEN).sum()),
    }


def _cycles(periods: Tensor) -> dict[str, int]:
    """The number of samples with each period of 2 or more."""
    counts = Counter(periods[periods > FIXED_POINT].tolist())
    return {str(period): counts[period] for period in sorted(counts)}


def _norm(features: Tensor) -> Tensor:
    """(B,) norms in float64, so that exploding features do not overflow."""
    norm: Tensor = torch.linalg.vector_norm(features.flatten(1), dim=1, dtype=torch.float64)
    return norm


@torch.no_grad()
def compare_starts(trial: Trial) -> Result:
    """Path independence: compare the final features from every start with those from the own one.

    Problems with NaN or infinite features have a cosine of NaN and are left out of means.
    """
    from_starts = []
    for index, part in enumerate(parts(trial.batch, least=2)):
        other = derangement(len(part), trial.seed, f"start {index}")
        noise = partial(gaussian, seed=trial.seed, name=f"start {index}")
        starts = (None, torch.zeros_like, noise, take(other))
        from_starts += [Case(part, part, After(0, features=start)) for start in starts]
    columns: dict[str, list[Tensor]] = {start: [] for start in STARTS}
    for index, (case, thoughts) in enumerate(run_cases(trial, from_starts)):
        end, start = last(thoughts), STARTS[index % len(STARTS)]
        if start == "own":
            own = end
        cosine = cosines(own.features, end.features)
        same = (end.prediction == own.prediction).flatten(1).all(dim=1) & ~cosine.isnan()
        right = trial.task.solved(end.prediction, case.target) & is_finite(end.features)
        columns[start].append(torch.stack([cosine, same.double(), right.double()]).cpu())  # (3, B)
    _, _, right = torch.cat(columns.pop("own"), dim=1)
    ends = {start: torch.cat(tensors, dim=1) for start, tensors in columns.items()}  # (3, N)
    # The worst over all starts; NaN where any cosine is NaN.
    worst = torch.stack([end[0] for end in ends.values()]).amin(dim=0)
    broken, relation = int(worst.isnan().sum()), _relation(worst, right > 0)
    figures = {
        "problems": len(worst),
        "broken": broken,
        "accuracy from own start": _mean(right),
        "starts": {
            start: {
                "mean cosine": _mean(end[0]),
                "same answer": _mean(end[1]),
                "accuracy": _mean(end[2]),
                "cosine": end[0].tolist(),
            }
            for start, end in ends.items()
        },
        "relation to accuracy": relation,
    }
    ordered = worst[~worst.isnan()].sort().values.tolist()
    shares = [100 * rank / len(ordered) for rank in range(1, len(ordered) + 1)]
    plot = Plot(
        "path independence",
        "problems, worst first (%)",
        "similarity of the final features (worst start)",
        shade=False,
    )
    return Result(figures, [(plot, Trace(shares, ordered))])


def _relation(worst: Tensor, right: Tensor) -> dict[str, float]:
    """The worst cosine of solved and unsolved problems, and its correlation with solving.

    NaN if there is nothing to compare: all solved, none solved, or no variance.
    """
    finite = ~worst.isnan()
    worst, right = worst[finite], right[finite]
    both = torch.stack([worst, right.double()])
    varies = len(worst) > 1 and bool((both.std(dim=1) > 1e-9).all())
    return {
        "cosine of solved": _mean(worst[right]),
        "cosine of unsolved": _mean(worst[~right]),
        "correlation": float(torch.corrcoef(both)[0, 1]) if varies else float("nan"),
    }


def cosines(one: Tensor, other: Tensor) -> Tensor:
    """(N,) float64: cosine per sample; 1 for two zero vectors, NaN for non-finite features."""
    a, b = one.flatten(1).double(), other.flatten(1).double()
    both_zero = ~(a.any(dim=1) | b.any(dim=1))
    cosine = torch.cosine_similarity(a, b, dim=1, eps=1e-300).clamp(-1, 1)
    return cosine.masked_fill(both_zero, 1.0)


def _mean(values: Tensor) -> float:
    """The mean without NaN; NaN if nothing is left."""
    return float(values.double().nanmean())
