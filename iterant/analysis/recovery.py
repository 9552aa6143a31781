"""How thinking goes on after somebody has meddled with it.

    >>> found = recover(net, task, [Case(batch, batch, (After(1, features=torch.zeros_like),))],
    ...                 what="zeros", after=1, steps=300)
    >>> found.peak, found.recovered, found.mean_to_solution

Iterations count from the intervention. A sample is recovered where its answer is right at the
end; it took as many iterations as there were up to the first from which it stayed right.

A batch in parts that fit in memory, and draws that a seed decides.

Recovery time against the index of the flipped bit: the paper's picture for prefix sums.

Shapes: B batch, C channels, W width, *S space, N problems judged, T iterations after the
intervention, N strings, L bits; sample n * L + i is string n with bit i flipped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from iterant.draw.plots import Plot, Trace
from iterant.engine import Intervention, Thought, think
from iterant.errors import UsageError
from iterant.evaluation.evaluator import POSITIONS_AT_ONCE, is_finite, like
from iterant.formatting import counted
from iterant.nets.fast import fused
from iterant.nets.protocol import Net
from iterant.tasks.protocol import Batch, Task
from iterant.tasks.rng import Stream

Tick = Callable[[int, int], None]
"""Called with what is done and what there is to do."""


def no_tick(done: int, total: int) -> None:
    """Tell nobody."""


def parts(batch: Batch, *, least: int = 1, times: int = 1) -> Iterator[Batch]:
    """The batch in parts of about one length, none shorter than ``least`` if it is not itself.

    ``times`` says how many rows each problem will become.
    """
    positions = batch.targets[0].numel() * times
    most = max(least, POSITIONS_AT_ONCE // positions)
    number = min(-(-len(batch) // most), max(1, len(batch) // least))
    edges = [len(batch) * place // number for place in range(number + 1)]
    for first, stop in pairwise(edges):
        yield batch[first:stop]


def gaussian(like: Tensor, seed: int, name: str) -> Tensor:
    """Standard normal numbers in the shape of ``like``: drawn on the CPU, the same everywhere."""
    first = int(Stream(seed, name).bits(0, 0)) >> 1
    return torch.randn(like.shape, generator=torch.Generator().manual_seed(first)).to(like)


def others(count: int, seed: int, name: str) -> Tensor:
    """(count,) for each problem another one, none its own: a random ring of all of them."""
    order = torch.from_numpy(Stream(seed, name).order(count))
    other = torch.empty_like(order)
    other[order] = order.roll(-1)
    return other


def moved(before: Tensor, after: Tensor) -> Tensor:
    """(B,) float64: ‖after - before‖, which does not overflow where features explode."""
    length: Tensor = torch.linalg.vector_norm(
        (after - before).flatten(1), dim=1, dtype=torch.float64
    )
    return length


@dataclass(frozen=True)
class Case:
    """Some problems, what is done to them, and the problems that are then to be solved."""

    begun: Batch
    judged: Batch
    """What is right after the intervention, a row a sample that there is then"""
    intervene: tuple[Intervention, ...] = ()


@dataclass(frozen=True)
class Recovery:
    """What became of every sample."""

    what: str
    after: int
    """Iterations before the intervention; 0: nothing was done, or before the first"""
    right: Tensor
    """(T,) int64: how many were right after each iteration"""
    first: Tensor
    """(N,) int64: the first iteration with the right answer; 0: none"""
    since: Tensor
    """(N,) int64: the first iteration from which the answer stayed right; 0: wrong at the end"""
    broken: Tensor
    """(N,) bool: features became NaN or infinite; the answer then counts as wrong"""
    before: float
    """The share that was right when the intervention came; NaN where it came first"""
    left_out: int = 0
    """Problems that the intervention cannot be made on"""

    @property
    def count(self) -> int:
        """Samples in all."""
        return len(self.since)

    @property
    def accuracy(self) -> Tensor:
        """(T,) float64: the share that was right after each iteration."""
        return self.right.double() / self.count

    @property
    def peak(self) -> tuple[int, float]:
        """The iteration with the highest accuracy, the earliest of equals, and that accuracy."""
        best = int(self.right.argmax())
        return best + 1, float(self.accuracy[best])

    @property
    def recovered(self) -> float:
        """The share that is right at the end."""
        return float((self.since > 0).double().mean())

    @property
    def mean_to_solution(self) -> float:
        """Mean iterations until the answer stayed right, of those recovered; NaN where none is."""
        return _mean(self.since)

    @property
    def mean_to_first(self) -> float:
        """Mean iterations until the answer was right for the first time, of those it ever was."""
        return _mean(self.first)

    def figures(self) -> dict[str, Any]:
        """Everything, as JSON holds it."""
        return {
            "after": self.after,
            "problems": self.count,
            "left out": self.left_out,
            "broken": int(self.broken.sum()),
            "accuracy before": self.before,
            "accuracy": self.accuracy.tolist(),
            "peak": {"iteration": self.peak[0], "accuracy": self.peak[1]},
            "recovered": self.recovered,
            "mean iterations to solution": self.mean_to_solution,
            "mean iterations to first right answer": self.mean_to_first,
            "iterations to solution": self.since.tolist(),
            "iterations to first right answer": self.first.tolist(),
        }

    def headline(self) -> dict[str, str]:
        """The same in a few words, a cell each."""
        return {
            "recovered": _share(self.recovered),
            "peak": f"{_share(self.peak[1])} at {self.peak[0]}",
            "iterations to solution": _figure(self.mean_to_solution),
            "to first right answer": _figure(self.mean_to_first),
            "right before": _share(self.before),
            "NaN": str(int(self.broken.sum())),
            "left out": str(self.left_out),
        }

    def plots(self) -> list[tuple[Plot, Trace]]:
        """Accuracy by iteration since the intervention."""
        since = f"iterations since iteration {self.after}" if self.after else "iterations"
        plot = Plot(
            self.what,
            x_label=since,
            y_label="problems solved (%)",
            share=True,
            begun=self.after,
        )
        steps = list(range(1, len(self.right) + 1))
        return [(plot, Trace(steps, (100 * self.accuracy).tolist()))]


class _Tally:
    """Who is right and since when; nothing else is kept of an iteration."""

    def __init__(self, count: int, steps: int, device: torch.device) -> None:
        self.right = torch.zeros(steps, dtype=torch.int64, device=device)
        self.first = torch.zeros(count, dtype=torch.int64, device=device)
        self.since = torch.zeros_like(self.first)
        self.broken = torch.zeros(count, dtype=torch.bool, device=device)

    def see(self, thought: Thought, iteration: int, task: Task, judged: Batch) -> None:
        self.broken |= ~is_finite(thought.features)
        right = task.solved(thought.prediction, judged) & ~self.broken
        self.right[iteration - 1] = right.sum()
        self.first[right & (self.first == 0)] = iteration
        self.since[right & (self.since == 0)] = iteration
        self.since[~right] = 0


@torch.no_grad()
def recover(
    net: Net,
    task: Task,
    cases: Sequence[Case],
    *,
    what: str,
    after: int,
    steps: int,
    left_out: int = 0,
    tick: Tick = no_tick,
) -> Recovery:
    """Think ``steps`` iterations about every case and tally those after the first ``after``."""
    if not 0 <= after < steps:
        raise UsageError(
            f"{what} after iteration {after} leaves nothing to see of "
            f"{counted(steps, 'iteration')}; "
            f"intervene earlier, or think for at least {after + 1}"
        )
    tallies, before, fast = [], 0, fused(net)
    for place, case in enumerate(cases):
        inputs = like(net, case.begun.inputs)
        judged, begun = case.judged.to(inputs.device), case.begun.to(inputs.device)
        tally = _Tally(len(judged), steps - after, inputs.device)
        for thought in think(fast, inputs, steps=steps, intervene=case.intervene):
            if thought.step > after:
                tally.see(thought, thought.step - after, task, judged)
            elif thought.step == after:
                solved = task.solved(thought.prediction, begun) & is_finite(thought.features)
                before += int(solved.sum())
            tick(place * steps + thought.step, len(cases) * steps)
        tallies.append(tally)
    begun_count = sum(len(case.begun) for case in cases)
    return Recovery(
        what=what,
        after=after,
        right=torch.stack([tally.right.cpu() for tally in tallies]).sum(dim=0),
        first=torch.cat([tally.first.cpu() for tally in tallies]),
        since=torch.cat([tally.since.cpu() for tally in tallies]),
        broken=torch.cat([tally.broken.cpu() for tally in tallies]),
        before=before / begun_count if after else float("nan"),
        left_out=left_out,
    )


def _mean(steps: Tensor) -> float:
    met = steps[steps > 0].double()
    return float(met.mean()) if len(met) else float("nan")


def _share(value: float) -> str:
    return "–" if value != value else f"{100 * value:.1f} %"


def _figure(value: float) -> str:
    return "–" if value != value else f"{value:.1f}"


@dataclass(frozen=True)
class Flips(Recovery):
    """What became of every flipped string, and how that depends on where it was flipped."""

    length: int = 1
    """L"""

    @property
    def mean_by_index(self) -> Tensor:
        """(L,) float64: mean iterations to solution of those recovered; NaN where none is."""
        since = self.since.view(-1, self.length).double()
        return torch.where(since > 0, since, torch.nan).nanmean(dim=0)

    @property
    def recovered_by_index(self) -> Tensor:
        """(L,) float64: the share recovered."""
        return (self.since.view(-1, self.length) > 0).double().mean(dim=0)

    def figures(self) -> dict[str, Any]:
        """Everything, as JSON holds it."""
        return {
            **super().figures(),
            "by index": {
                "mean iterations to solution": self.mean_by_index.tolist(),
                "recovered": self.recovered_by_index.tolist(),
            },
        }

    def plots(self) -> list[tuple[Plot, Trace]]:
        """Recovery time against index, then accuracy by iteration."""
        plot = Plot(
            f"{self.what} recovery time",
            x_label="index of the flipped bit",
            y_label="mean iterations to solution",
            regime_axis="",
        )
        trace = Trace(list(range(self.length)), self.mean_by_index.tolist())
        return [(plot, trace), *super().plots()]


def by_index(recovery: Recovery, *, length: int) -> Flips:
    """The same recovery, looked at by index."""
    known = {field.name: getattr(recovery, field.name) for field in fields(Recovery)}
    return Flips(**known, length=length)
