"""The paper's interventions, and how many iterations recovery takes.

    >>> recovery = recover(net, task, cases("zeros", task, batch, after=1), after=1, steps=300)
    >>> recovery.peak, recovery.recovered, recovery.mean_to_solution

An intervention changes features or inputs between two iterations; see `iterant.engine.After`.
Iterations count from the intervention. A sample has recovered if its answer is correct at the
end; its time is the first iteration from which it stayed correct. Batches are split into parts
that fit in memory, and all random numbers depend on a seed only.

Shapes: B batch, N samples, T iterations after the intervention, *S space. For flipped bits, L is
the length of a string, and sample n * L + i is string n with bit i flipped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from iterant.draw.plots import Plot, Trace
from iterant.engine import After, Intervention, Thought, think
from iterant.errors import UsageError
from iterant.evaluation import is_finite, like
from iterant.evaluation.evaluator import POSITIONS_AT_ONCE
from iterant.nets.fast import fused
from iterant.nets.protocol import Net
from iterant.rng import Stream
from iterant.tasks.protocol import Batch, Task

Tick = Callable[[int, int], None]
"""Progress: called with the work done and the work in all."""


def no_tick(done: int, total: int) -> None:
    """Ignore progress."""


@dataclass(frozen=True)
class Case:
    """Problems, the interventions on them, and the problems to be solved from then on."""

    batch: Batch
    target: Batch
    """The problems after the intervention, one for each row that there is then"""
    intervene: tuple[Intervention, ...] = ()


def cases(what: str, task: Any, batch: Batch, *, after: int = 0, seed: int = 0) -> list[Case]:
    """The batch in parts, with the intervention of this name after ``after`` iterations."""
    swaps, times = what in ("swap", "swap-input"), 1
    if swaps:
        check_two(batch)
    elif what == "bit-flip":
        times = batch.inputs.shape[-1]
    elif what == "move-end":
        batch = batch[task.shorten(batch)[1]]  # others are too short
    result = []
    for place, part in enumerate(parts(batch, least=2 if swaps else 1, times=times)):
        target, change = part, None
        if what == "noise":
            change = After(after, features=_add_noise(seed, f"noise {place}"))
        elif what == "zeros":
            change = After(after, features=torch.zeros_like)
        elif swaps:
            other = swapped(len(part), seed, f"swap {place}")
            change = After(after, features=_take(other))
            if what == "swap-input":
                target, change = part[other], After(after, inputs=_take(other))
        elif what == "bit-flip":
            # Up to here each string is computed once, from here on with all its flips.
            rows = torch.arange(len(part)).repeat_interleave(times)
            target = task.flip(part[rows], torch.arange(times).repeat(len(part)))
            change = After(after, features=_take(rows), inputs=_replace(target.inputs))
        elif what == "move-end":
            target, _ = task.shorten(part)
            change = After(after, inputs=_replace(target.inputs))
        result.append(Case(part, target, () if change is None else (change,)))
    return result


def parts(batch: Batch, *, least: int = 1, times: int = 1) -> Iterator[Batch]:
    """Split a batch into parts of about equal length, at least ``least`` where it has as many.

    ``times`` is the number of rows that each problem becomes later.
    """
    positions = batch.targets[0].numel() * times if len(batch) else 1
    most = max(least, POSITIONS_AT_ONCE // positions)
    number = min(-(-len(batch) // most), max(1, len(batch) // least))
    edges = [len(batch) * place // number for place in range(number + 1)] if number else []
    for first, stop in pairwise(edges):
        yield batch[first:stop]


def check_two(batch: Batch) -> None:
    """Refuse a single problem where features of another one are needed."""
    if len(batch) < 2:
        raise UsageError(
            f"there is no other problem to take features from in a batch of {len(batch)}; "
            "take at least 2 (--count 2)"
        )


def gaussian(like: Tensor, seed: int, name: str) -> Tensor:
    """Standard normal numbers of the shape of ``like``, drawn on the CPU: equal on all devices."""
    first = int(Stream(seed, name).bits(0, 0)) >> 1
    return torch.randn(like.shape, generator=torch.Generator().manual_seed(first)).to(like)


def swapped(count: int, seed: int, name: str) -> Tensor:
    """(count,) a permutation without fixed points: one random cycle of all problems."""
    order = torch.from_numpy(Stream(seed, name).order(count))
    other = torch.empty_like(order)
    other[order] = order.roll(-1)
    return other


def _add_noise(seed: int, name: str) -> Callable[[Tensor], Tensor]:
    return lambda features: features + gaussian(features, seed, name)


def _take(rows: Tensor) -> Callable[[Tensor], Tensor]:
    return lambda tensor: tensor[rows.to(tensor.device)]


def _replace(other: Tensor) -> Callable[[Tensor], Tensor]:
    # Moved to the device only when the intervention happens.
    return lambda tensor: other.to(tensor)


def run_cases(
    net: Net, cases: Sequence[Case], steps: int, tick: Tick = no_tick
) -> Iterator[tuple[Case, Iterator[Thought]]]:
    """Each case on the network's device with its iterations, to be consumed before the next."""
    fast = fused(net)

    def iterations(place: int, case: Case, inputs: Tensor) -> Iterator[Thought]:
        for thought in think(fast, inputs, steps=steps, intervene=case.intervene):
            yield thought
            tick(place * steps + thought.step, len(cases) * steps)

    for place, case in enumerate(cases):
        inputs = like(net, case.batch.inputs)
        there = replace(
            case, batch=case.batch.to(inputs.device), target=case.target.to(inputs.device)
        )
        yield there, iterations(place, case, inputs)


@dataclass(frozen=True)
class Recovery:
    """Which samples are correct after which iteration."""

    what: str
    after: int
    """Iterations before the intervention; 0: none, or before the first iteration"""
    correct: Tensor
    """(N, T) bool"""
    broken: Tensor
    """(N,) bool: features became NaN or infinite; the answer then counts as wrong"""
    before: float
    """Accuracy at the intervention; NaN if it came before the first iteration"""
    left_out: int = 0
    """Problems on which the intervention is not possible"""
    length: int | None = None
    """L, for flipped bits"""

    @property
    def count(self) -> int:
        """The number of samples."""
        return len(self.correct)

    @property
    def right(self) -> Tensor:
        """(T,) int64: correct samples after each iteration."""
        return self.correct.sum(dim=0)

    @property
    def accuracy(self) -> Tensor:
        """(T,) float64: accuracy after each iteration."""
        return self.right.double() / self.count

    @property
    def peak(self) -> tuple[int, float]:
        """The first iteration with the highest accuracy, and that accuracy."""
        best = int(self.right.argmax())
        return best + 1, float(self.accuracy[best])

    @property
    def first(self) -> Tensor:
        """(N,) int64: the first iteration with the correct answer; 0: none."""
        return (self.correct.int().argmax(dim=1) + 1) * self.correct.any(dim=1)

    @property
    def since(self) -> Tensor:
        """(N,) int64: the first iteration from which the answer stayed correct; 0: none."""
        stayed = self.correct.flip(1).int().cumprod(dim=1).sum(dim=1)
        return (self.correct.shape[1] - stayed + 1) * self.correct[:, -1]

    @property
    def recovered(self) -> float:
        """The share that is correct at the end."""
        return float(self.correct[:, -1].double().mean())

    @property
    def mean_to_solution(self) -> float:
        """Mean recovery time of the recovered samples; NaN if there are none."""
        return float(self.since[self.since > 0].double().mean())

    @property
    def mean_to_first(self) -> float:
        """Mean of the first correct iteration, of samples that have one; NaN if there are none."""
        return float(self.first[self.first > 0].double().mean())

    @property
    def mean_by_index(self) -> Tensor:
        """(L,) float64: mean recovery time by index of the flipped bit; NaN if none recovered."""
        since = self.since.view(-1, self.length or 1).double()
        return torch.where(since > 0, since, torch.nan).nanmean(dim=0)

    def figures(self) -> dict[str, Any]:
        """All numbers, as JSON."""
        figures: dict[str, Any] = {
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
        if self.length is not None:
            figures["by index"] = {
                "mean iterations to solution": self.mean_by_index.tolist(),
                "recovered": self.correct[:, -1].view(-1, self.length).double().mean(0).tolist(),
            }
        return figures

    def headline(self) -> dict[str, str]:
        """The main numbers as cells of a table."""
        return {
            "recovered": text(100 * self.recovered, ".1f", " %"),
            "peak": f"{100 * self.peak[1]:.1f} % at {self.peak[0]}",
            "iterations to solution": text(self.mean_to_solution, ".1f"),
            "to first right answer": text(self.mean_to_first, ".1f"),
            "right before": text(100 * self.before, ".1f", " %"),
            "NaN": str(int(self.broken.sum())),
            "left out": str(self.left_out),
        }

    def plots(self) -> list[tuple[Plot, Trace]]:
        """Accuracy by iteration since the intervention; for flipped bits, time by index first."""
        axis = f"iterations since iteration {self.after}" if self.after else "iterations"
        plot = Plot(self.what, axis, "problems solved (%)", share=True, begun=self.after)
        steps = list(range(1, len(self.right) + 1))
        plots = [(plot, Trace(steps, (100 * self.accuracy).tolist()))]
        if self.length is not None:
            plot = Plot(f"{self.what} recovery time", "index of the flipped bit",
                        "mean iterations to solution", shade=False)  # fmt: skip
            plots.insert(0, (plot, Trace(list(range(self.length)), self.mean_by_index.tolist())))
        return plots


@torch.no_grad()
def recover(
    net: Net,
    task: Task,
    cases: Sequence[Case],
    *,
    steps: int,
    after: int = 0,
    what: str = "",
    left_out: int = 0,
    length: int | None = None,
    tick: Tick = no_tick,
) -> Recovery:
    """Iterate ``steps`` times on every case and evaluate all iterations past ``after``."""
    if not 0 <= after < steps:
        raise UsageError(
            f"an intervention after iteration {after} leaves nothing to see of {steps}; "
            f"intervene earlier, or take at least {after + 1} iterations"
        )
    if not cases:
        raise UsageError(f"{what} is possible on none of these problems; take larger or more")
    solved_before, corrects, brokens = 0, [], []
    for case, thoughts in run_cases(net, cases, steps, tick):
        columns = []  # on the device until the end: copying would wait for the GPU
        broken = torch.zeros(len(case.target), dtype=torch.bool, device=case.target.inputs.device)
        for thought in thoughts:
            if thought.step > after:
                broken |= ~is_finite(thought.features)
                columns.append(task.solved(thought.prediction, case.target) & ~broken)
            elif thought.step == after:
                solved = task.solved(thought.prediction, case.batch) & is_finite(thought.features)
                solved_before += int(solved.sum())
        corrects.append(torch.stack(columns, dim=1).cpu())
        brokens.append(broken.cpu())
    return Recovery(
        what=what,
        after=after,
        correct=torch.cat(corrects),
        broken=torch.cat(brokens),
        before=solved_before / sum(len(case.batch) for case in cases) if after else float("nan"),
        left_out=left_out,
        length=length,
    )


def text(value: float, form: str, unit: str = "") -> str:
    """A number for a table; a dash for NaN."""
    return "–" if value != value else f"{value:{form}}{unit}"
