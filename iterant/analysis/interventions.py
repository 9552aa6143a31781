"""The paper's interventions, and how many iterations recovery takes.

    >>> result = recover(Trial("zeros", net, task, batch, steps=300, after=1))
    >>> result.figures["recovered"], result.figures["mean iterations to solution"]

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
from typing import Any

import torch
from torch import Tensor

from iterant.analysis.report import Result
from iterant.draw.plots import Plot, Trace
from iterant.engine import After, Thought, think
from iterant.errors import UsageError, argument
from iterant.evaluation import POSITIONS_AT_ONCE, Progress, is_finite
from iterant.nets.fast import fused
from iterant.nets.protocol import Net, like
from iterant.rng import Stream
from iterant.tasks.protocol import Batch, slices


@dataclass(frozen=True)
class Trial:
    """One study on one network: everything that a measurement needs."""

    what: str
    """The name of the study"""
    net: Net
    task: Any
    """A `Task`, with the methods that the study needs"""
    batch: Batch
    steps: int
    """Iterations in all"""
    after: int = 0
    """Iterations before the intervention; 0: none, or before the first iteration"""
    seed: int = 0
    """The seed of noise and swaps"""
    tolerance: float = 1e-3
    """Relative change of the features below which they count as equal"""
    progress: Progress | None = None


@dataclass(frozen=True)
class Case:
    """Problems, the intervention on them, and the problems to be solved from then on."""

    batch: Batch
    target: Batch
    """The problems after the intervention, one for each row that there is then"""
    intervene: After


def cases(trial: Trial) -> list[Case]:
    """The batch in parts, each with the intervention of this study."""
    what, task, batch, after = trial.what, trial.task, trial.batch, trial.after
    swaps = what in ("swap", "swap-input")
    length = batch.inputs.shape[-1] if what == "bit-flip" else 1
    if what == "move-end":
        batch = batch[task.shorten(batch)[1]]  # other paths are too short
    result = []
    for index, part in enumerate(parts(batch, least=2 if swaps else 1, times=length)):
        target, features, inputs = part, None, None
        if what == "noise":
            features = _add_noise(trial.seed, f"noise {index}")
        elif what == "zeros":
            features = torch.zeros_like
        elif swaps:
            other = derangement(len(part), trial.seed, f"swap {index}")
            if what == "swap":
                features = take(other)
            else:
                target, inputs = part[other], take(other)
        elif what == "bit-flip":
            # Before the intervention each string is one row, afterwards one row per flipped bit.
            rows = torch.arange(len(part)).repeat_interleave(length)
            target = task.flip(part[rows], torch.arange(length).repeat(len(part)))
            features, inputs = take(rows), _replace(target.inputs)
        elif what == "move-end":
            target, _ = task.shorten(part)
            inputs = _replace(target.inputs)
        result.append(Case(part, target, After(after, features, inputs)))
    return result


def parts(batch: Batch, *, least: int = 1, times: int = 1) -> Iterator[Batch]:
    """Split a batch into parts of about equal length that fit in memory.

    A part has at least ``least`` problems, unless the batch has fewer. ``times`` is the number of
    rows that each problem becomes later.
    """
    most = max(least, POSITIONS_AT_ONCE // (batch.targets[0].numel() * times)) if len(batch) else 1
    yield from (batch[part] for part in slices(len(batch), most, least))


def gaussian(like: Tensor, seed: int, name: str) -> Tensor:
    """Standard normal numbers of the shape of ``like``, drawn on the CPU: equal on all devices."""
    torch_seed = int(Stream(seed, name).bits(0, 0)) >> 1
    return torch.randn(like.shape, generator=torch.Generator().manual_seed(torch_seed)).to(like)


def derangement(count: int, seed: int, name: str) -> Tensor:
    """(count,) a permutation without fixed points: one random cycle of all problems."""
    if count < 2:
        raise UsageError(
            f"there is no other problem to take features from in a batch of {count}; "
            f"take at least 2: {argument('count', 2)}"
        )
    order = torch.from_numpy(Stream(seed, name).order(count))
    other = torch.empty_like(order)
    other[order] = order.roll(-1)
    return other


def take(rows: Tensor) -> Callable[[Tensor], Tensor]:
    """A function that selects these rows of features or inputs."""
    return lambda tensor: tensor[rows.to(tensor.device)]


def _add_noise(seed: int, name: str) -> Callable[[Tensor], Tensor]:
    return lambda features: features + gaussian(features, seed, name)


def _replace(other: Tensor) -> Callable[[Tensor], Tensor]:
    # Copied to the device only when the intervention happens.
    return lambda tensor: other.to(tensor)


def run_cases(trial: Trial, cases: Sequence[Case]) -> Iterator[tuple[Case, Iterator[Thought]]]:
    """Each case on the network's device, with its iterations; consume them before the next case."""
    fast, steps = fused(trial.net), trial.steps

    def iterations(index: int, case: Case, inputs: Tensor) -> Iterator[Thought]:
        for thought in think(fast, inputs, steps=steps, intervene=case.intervene):
            yield thought
            if trial.progress is not None:
                trial.progress(index * steps + thought.step, len(cases) * steps)

    for index, case in enumerate(cases):
        inputs = like(trial.net, case.batch.inputs)
        batch, target = case.batch.to(inputs.device), case.target.to(inputs.device)
        yield replace(case, batch=batch, target=target), iterations(index, case, inputs)


@torch.no_grad()
def track(trial: Trial, cases: Sequence[Case]) -> tuple[Tensor, Tensor, float]:
    """Which samples are correct after which iteration past ``trial.after``.

    Returns (N, T) bool: correct; (N,) bool: features became NaN or infinite, and the answer counts
    as wrong from then on; the accuracy at the intervention, NaN before the first iteration.
    """
    solved_before, correct_parts, broken_parts = 0, [], []
    for case, thoughts in run_cases(trial, cases):
        columns = []  # (B,) each; on the device until the end: copying would wait for the GPU
        broken = torch.zeros(len(case.target), dtype=torch.bool, device=case.target.inputs.device)
        for thought in thoughts:
            if thought.step > trial.after:
                broken |= ~is_finite(thought.features)
                columns.append(trial.task.solved(thought.prediction, case.target) & ~broken)
            elif thought.step == trial.after:
                solved = trial.task.solved(thought.prediction, case.batch)
                solved_before += int((solved & is_finite(thought.features)).sum())
        correct_parts.append(torch.stack(columns, dim=1).cpu())  # (B, T)
        broken_parts.append(broken.cpu())
    count = sum(len(case.batch) for case in cases)
    before = solved_before / count if trial.after else float("nan")
    return torch.cat(correct_parts), torch.cat(broken_parts), before


def recover(trial: Trial) -> Result:
    """Intervene, and count iterations until answers are correct again."""
    all_cases = cases(trial)
    if not all_cases:
        raise UsageError(f"{trial.what} is possible on none of these problems; take larger or more")
    correct, broken, before = track(trial, all_cases)
    accuracy = correct.double().mean(dim=0)  # (T,)
    best = int(correct.sum(dim=0).argmax())
    first, since = times_to_solution(correct)
    figures: dict[str, Any] = {
        "after": trial.after,
        "problems": len(correct),
        "left out": len(trial.batch) - sum(len(case.batch) for case in all_cases),
        "broken": int(broken.sum()),
        "accuracy before": before,
        "accuracy": accuracy.tolist(),
        "peak": {"iteration": best + 1, "accuracy": float(accuracy[best])},
        "recovered": float(accuracy[-1]),
        "mean iterations to solution": float(since[since > 0].double().mean()),
        "mean iterations to first right answer": float(first[first > 0].double().mean()),
        "iterations to solution": since.tolist(),
        "iterations to first right answer": first.tolist(),
    }
    axis = f"iterations since iteration {trial.after}" if trial.after else "iterations"
    plot = Plot(trial.what, axis, "problems solved (%)", share=True, offset=trial.after)
    plots = [(plot, Trace(list(range(1, len(accuracy) + 1)), (100 * accuracy).tolist()))]
    if trial.what == "bit-flip":
        length = trial.batch.inputs.shape[-1]
        by_index = since.view(-1, length).double()  # (strings, L)
        means = torch.where(by_index > 0, by_index, torch.nan).nanmean(dim=0).tolist()
        figures["by index"] = {
            "mean iterations to solution": means,
            "recovered": correct[:, -1].view(-1, length).double().mean(dim=0).tolist(),
        }
        plot = Plot(
            f"{trial.what} recovery time",
            "index of the flipped bit",
            "mean iterations to solution",
            shade=False,
        )
        plots.insert(0, (plot, Trace(list(range(length)), means)))
    return Result(figures, plots)


def times_to_solution(correct: Tensor) -> tuple[Tensor, Tensor]:
    """The first correct iteration, and the first from which on all are correct; 0: none.

    (N, T) bool -> (N,) int64 each.
    """
    first = (correct.int().argmax(dim=1) + 1) * correct.any(dim=1)
    correct_at_end = correct.flip(1).int().cumprod(dim=1).sum(dim=1)  # length of the last run
    return first, (correct.shape[1] - correct_at_end + 1) * correct[:, -1]
