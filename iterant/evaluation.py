"""Accuracy by iteration and its cost under halting rules.

    >>> curve = evaluate(net, task, size=9, count=20, max_steps=120)
    >>> curve.accuracy[29], curve.peak, curve.lost  # after 30 iterations; at best; overthinking

Every evaluation is `evaluate_batch`, which calls `iterant.solve` with a callback. Of an iteration
it keeps which problems are solved: memory does not grow with the features of all iterations.
Batches have a bounded size.

Shapes: B problems of a batch, b problems still in it, *S space.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from iterant import registry
from iterant.engine import check_count, think
from iterant.errors import UsageError
from iterant.formatting import counted
from iterant.halting import ExactRest, Fixed, MostConfident, Resting, Rule, StableAnswer
from iterant.nets.protocol import Net, depth_of, like, on_device, readout_of
from iterant.progress import progress_estimates
from iterant.solving import BUDGET, LAST_LAYER, MAX_STEPS, Answer, Iteration, check_fits, solve
from iterant.tasks.protocol import Batch, Size, Task, offers, slices
from iterant.tasks.protocol import task as named_task

POSITIONS_AT_ONCE = 1 << 20
"""Most positions of one batch, to bound memory."""
_FEATURES_AT_ONCE = 1 << 27
"""Most features of one batch: half a gigabyte in float32, and an iteration takes five of these."""

RULES: tuple[Rule, ...] = (
    Fixed(),
    MostConfident(),
    *(StableAnswer(patience) for patience in (1, 2, 5, 10, 20, 30, 50)),
    *(Resting(tolerance) for tolerance in (1e-1, 1e-2, 1e-3, 1e-4)),
)
"""Those of ``iterant evaluate --trade``: two that spend the full budget, then rising patience and
precision."""

Progress = Callable[[int, int], None]
"""Called with the work done and the total."""


class Operations(NamedTuple):
    """Floating-point operations for one problem.

    Multiplications and additions of convolutions and matrix products count, one each; elementwise
    operations (ReLU, sums, maxima) do not. Every cell counts at every iteration, also where a
    sparse form of the network computes fewer.
    """

    once: int
    """Reading the problem, computing the first features, decoding the answer at the end"""
    step: int
    """One iteration, with decoding if the halting rule reads the answer of every one"""


@torch.no_grad()
def operations(net: Net, inputs: Tensor, rule: Rule | None = None) -> Operations:
    """Count the operations of a network on one problem (1, C, *S) under a halting rule.

    Only the first iteration is counted: those of feed-forward networks cost the same.
    """
    with FlopCounterMode(display=False) as counter:
        memory, features = net.read(inputs), net.start(inputs)
        begin = counter.get_total_flops()
        features = net.step(features, memory, 0)
        step = counter.get_total_flops() - begin
        net.answer(features)
        answer = counter.get_total_flops() - begin - step
    thought = next(think(net, inputs, steps=1))
    if rule is not None:
        rule.start().update(thought)
    decodes_all = "logits" in vars(thought)
    return Operations(begin, step + answer) if decodes_all else Operations(begin + answer, step)


def wilson(solved: Tensor, count: int) -> Tensor:
    """(…, 2) float64: the 95 % Wilson score interval of a share of ``count``.

    >>> wilson(torch.tensor(1000), 1000)
    tensor([0.9962, 1.0000], dtype=torch.float64)
    """
    share, z = solved.double() / count, 1.959963984540054
    centre = share + z * z / (2 * count)
    half = z * (share * (1 - share) / count + z * z / (4 * count * count)).sqrt()
    low, high = ((centre + side * half) / (1 + z * z / count) for side in (-1, 1))
    # At shares of 0 and 1 the share is an end; rounding must not leave it outside.
    ends = [torch.minimum(low, share), torch.maximum(high, share)]
    return torch.stack(ends, dim=-1).clamp(0.0, 1.0)


@dataclass(frozen=True)
class Curve:
    """How many problems were solved after each evaluated iteration.

    Under a halting rule, "after k iterations" means with a budget of k: problems that stopped
    earlier keep their answer, the others give that of iteration k.
    """

    steps: tuple[int, ...]
    """The evaluated iterations, counted from 1"""
    right_at: Tensor
    """(steps, problems) bool: solved after each of them"""
    steps_taken: Tensor
    """(problems,) int64: iterations of each problem"""
    seconds: float = 0.0
    """Time for all problems and iterations"""
    change: float = math.nan
    """Mean over problems of ‖Δφ‖ / ‖φ‖ at their last iteration"""
    nonfinite: int = 0
    """Problems whose features became NaN or infinite; these count as not solved"""
    any_right: Tensor | None = None
    """(problems,) bool: at the end, where any right answer counts; None: each problem has one"""
    stopped: Tensor | None = None
    """(problems,) bool: whether the rule was met within the budget"""
    operations: Operations | None = None
    """Floating-point operations of one problem"""
    answers_changing: int | None = None
    """Problems whose answer changed at the last iteration; None: feed-forward"""
    updates_per_cell: float | None = None
    """How often a cell was computed on average; None: at every iteration"""

    @property
    def right(self) -> Tensor:
        """(problems,) bool: solved after the last evaluated iteration."""
        return self.right_at[-1]

    @property
    def count(self) -> int:
        """Number of problems."""
        return self.right_at.shape[1]

    @cached_property
    def solved(self) -> Tensor:
        """(steps,) int64: problems solved after each evaluated iteration."""
        return self.right_at.sum(dim=1)

    @property
    def accuracy(self) -> Tensor:
        """(steps,) float64: the share solved after each iteration."""
        return self.solved.double() / self.count

    @property
    def interval(self) -> Tensor:
        """(steps, 2) float64: the 95 % interval of each accuracy (Wilson's)."""
        return wilson(self.solved, self.count)

    @property
    def peak(self) -> tuple[int, float]:
        """The iteration with the highest accuracy, the first of equals, and that accuracy."""
        best = int(self.solved.argmax())
        return self.steps[best], float(self.accuracy[best])

    def __repr__(self) -> str:
        best, height = self.peak
        moving = self.answers_changing
        changing = f"; {moving} answers were still changing" if moving else ""
        return (
            f"Curve({counted(self.count, 'problem')}: {height:.1%} solved after "
            f"{counted(best, 'iteration')}, {self.end:.1%} after {self.steps[-1]}{changing})"
        )

    @property
    def end(self) -> float:
        """The accuracy after the last iteration."""
        return float(self.accuracy[-1])

    @property
    def lost(self) -> float:
        """Accuracy lost after the peak: overthinking."""
        return self.peak[1] - self.end

    @property
    def iterations(self) -> Tensor:
        """(steps,) float64: mean iterations of a problem, with a budget of each."""
        taken = self.steps_taken.double()
        return torch.stack([taken.clamp(max=budget).mean() for budget in self.steps]).cpu()

    @property
    def work(self) -> Tensor | None:
        """(steps,) float64: mean floating-point operations of a problem, with a budget of each."""
        ops = self.operations
        return None if ops is None else ops.once + ops.step * self.iterations

    def _repr_png_(self) -> bytes:
        """The plot that a notebook shows."""
        image: bytes = registry.find("picture", "curve")(self)
        return image

    def described(self) -> dict[str, Any]:
        """A dict for `iterant.io.write_result`; ``steps`` only if they are not 1, 2, 3 …"""

        def at(index: int) -> dict[str, Any]:
            return {
                "step": self.steps[index],
                "accuracy": float(self.accuracy[index]),
                "interval": self.interval[index].tolist(),
            }

        figures: dict[str, Any] = {
            "problems": self.count,
            "peak": at(int(self.solved.argmax())),
            "end": at(-1),
            "lost": self.lost,
            "mean iterations": float(self.iterations[-1]),
            "change at the end": self.change,
            "not finite": self.nonfinite,
            "solved": self.solved.tolist(),
            "seconds": round(self.seconds, 4),
        }
        if self.steps != tuple(range(1, len(self.steps) + 1)):
            figures["steps"] = list(self.steps)
        if self.answers_changing is not None:
            figures["still changing at the end"] = self.answers_changing
        if self.any_right is not None:
            figures["any right answer at the end"] = int(self.any_right.sum())
        if self.stopped is not None:
            figures["stopped by the rule"] = int(self.stopped.sum())
        if int(self.steps_taken.min()) < self.steps[-1]:
            figures["iterations of each"] = self.steps_taken.tolist()
            means = [round(mean, 4) for mean in self.iterations.tolist()]
            figures["mean iterations by budget"] = means
        if self.work is not None:
            figures["operations a problem"] = self.work.tolist()
        return figures


def evaluate(
    net: Net,
    task: Task | str,
    *,
    size: Size | None = None,
    count: int = 1000,
    seed: int = 1,
    max_steps: int | None = None,
    rule: Rule | str | None = None,
    batch_size: int | None = None,
    device: str | torch.device | None = None,
    progress: Progress | Literal[False] | None = None,
) -> Curve:
    """Accuracy after each of ``max_steps`` iterations on fresh problems of one size.

        >>> curve = evaluate(net, task, size=13, count=20, seed=1, max_steps=200)
        >>> curve.peak[1], curve.lost
        (1.0, 0.0)

    Args:
        net: a network of `iterant.load`, or any object with its four methods.
        task: a task of `iterant.task`, or its name.
        size: of the problems; None: the task's default, at whatever size the network was trained.
        count: number of problems.
        seed: the same seed gives the same problems.
        max_steps: iterations; None: 1,000, or the depth of a feed-forward network.
        rule: a rule of `iterant.halting`, or its name; problems that are done leave the batch.
        batch_size: problems in a batch; None: as many as should fit in memory.
        device: where to compute, on a copy of the network if that is elsewhere.
        progress: called with how many iterations of problems are done, and of how many; None: lines
            on the error stream; False: none.
    """
    task = named_task(task) if isinstance(task, str) else task
    if isinstance(rule, str):
        registry.allow(rule)
        rule = registry.rule(rule)
    check_fits(net, task)
    net = on_device(net, device)
    steps = resolve_steps(net, max_steps)
    batch = task.sample(count, size=size, seed=seed)
    if progress is None:
        progress = progress_estimates(f"evaluating {counted(len(batch), 'problem')}")
    return evaluate_batch(
        net, task, batch, steps=steps, rule=rule, cost=True, batch_size=batch_size,
        progress=progress or None,
    )  # fmt: skip


@torch.no_grad()
def evaluate_batch(
    net: Net,
    task: Task,
    batch: Batch,
    *,
    steps: int,
    at: Collection[int] | None = None,
    rule: Rule | None = None,
    batch_size: int | None = None,
    cost: bool = False,
    progress: Progress | None = None,
) -> Curve:
    """Accuracy on these problems after the iterations ``at`` (None: all) of ``steps``.

    Answers are decoded at these iterations only. Inputs are moved to the network's device and
    precision. ``cost``: count floating-point operations too. Without a rule, problems of local
    rules and max-plus networks whose features no longer change leave the batch early (`ExactRest`),
    which changes no figure but the time.
    """
    check_fits(net, task)
    steps = resolve_steps(net, steps)
    marks = tuple(range(1, steps + 1)) if at is None else tuple(sorted(set(at)))
    if not marks or marks[0] < 1 or marks[-1] > steps:
        asked = ", ".join(map(str, marks)) or "none"
        raise UsageError(f"answers can be judged at iterations 1 to {steps}, asked for {asked}")
    if batch_size is None:
        features = net.start(like(net, batch[:1].inputs)).numel()
        positions = batch.targets[0].numel()
        batch_size = max(1, min(POSITIONS_AT_ONCE // positions, _FEATURES_AT_ONCE // features))
    batch_size = check_count("batch_size", batch_size, least=1)
    parts, total, start = [], len(batch) * steps, time.perf_counter()
    for rows in slices(len(batch), batch_size):
        part = batch[rows]
        inputs = like(net, part.inputs)

        def report(step: int, before: int = rows.start * steps, problems: int = len(part)) -> None:
            if progress is not None:
                progress(before + step * problems, total)

        # Answers are compared on the device: moving those of every iteration takes longer.
        checks = _Checks(task, part.to(inputs.device), marks, report)
        answer = solve(net, inputs, max_steps=steps, rule=rule or ExactRest(), callback=checks)
        parts.append(checks.outcome(answer))
        report(steps)
    whole = {name: torch.cat([part[name] for part in parts], dim=-1) for name in parts[0]}
    updates = float(whole["updates"].mean())
    return Curve(
        steps=marks,
        right_at=whole["right_at"],
        steps_taken=torch.full_like(whole["steps"], steps) if rule is None else whole["steps"],
        seconds=time.perf_counter() - start,
        change=float(whole["change"].mean()),
        nonfinite=int(whole["nonfinite"].sum()),
        any_right=whole.get("any_right"),
        stopped=None if rule is None else whole["stopped"],
        answers_changing=None if depth_of(net) else int(whole["changing"].sum()),
        operations=operations(net, like(net, batch[:1].inputs), rule) if cost else None,
        updates_per_cell=None if math.isnan(updates) else updates,
    )


class _Checks:
    """A callback of `solve` that checks the answers to a batch after the iterations ``marks``.

    All stays on the device until the end, so that the CPU waits for a GPU only when problems leave
    the batch.
    """

    copies = True

    def __init__(
        self, task: Task, batch: Batch, marks: tuple[int, ...], report: Callable[[int], None]
    ) -> None:
        device, count = batch.inputs.device, len(batch)
        self.task, self.batch, self.report = task, batch, report
        self.mark_index = {step: index for index, step in enumerate(marks)}
        self.active = batch
        """The problems that have not left"""
        self.right_at = torch.zeros(len(marks), count, dtype=torch.bool, device=device)
        self.finite = torch.ones(count, dtype=torch.bool, device=device)
        self.change = torch.full((count,), torch.nan, device=device)
        self.changing = torch.zeros(count, dtype=torch.bool, device=device)
        self.updates = math.nan

    def __call__(self, iteration: Iteration) -> None:
        thought, rows = iteration.thought, iteration.rows
        self.report(thought.step)
        if thought.step not in self.mark_index and not iteration.any_leaving:
            return
        if len(rows) != len(self.active):
            self.active = self.batch[rows.cpu()]
        self.finite[rows] &= is_finite(thought.features)
        if thought.step in self.mark_index:
            solved = self.task.solved(iteration.answer()[0], self.active).to(rows.device)
            self.right_at[self.mark_index[thought.step], rows] = solved & self.finite[rows]
        if iteration.any_leaving:
            relative = _relative_change(iteration.before, thought.features)
            self.change[rows] = torch.where(iteration.leaving, relative, self.change[rows])
            at_end = iteration.leaving & ~iteration.done  # the budget is spent
            if bool(at_end.any()):
                logits = thought.net.answer(iteration.before)
                before = readout_of(thought.net).predict(logits, thought.inputs)
                differs = (before != thought.prediction).flatten(1).any(dim=1)
                self.changing[rows] = differs & at_end
            self.updates = getattr(thought.net, "updates_per_cell", math.nan)

    def outcome(self, answer: Answer) -> dict[str, Tensor]:
        """Fields of a `Curve` on the CPU: (marks, B) right_at, (B,) the others."""
        task, batch, device = self.task, self.batch, self.finite.device
        right = task.solved(answer.prediction, batch).to(device) & self.finite
        # Problems that left before a mark keep the answer they left with.
        left_before = answer.steps < torch.tensor([*self.mark_index], device=device)[:, None]
        outcome = {
            "right_at": torch.where(left_before, right, self.right_at),
            "steps": answer.steps,
            "stopped": torch.tensor([by not in (BUDGET, LAST_LAYER) for by in answer.stopped_by]),
            "nonfinite": ~self.finite,
            "change": self.change,
            "changing": self.changing,
            "updates": torch.full((len(batch),), self.updates),
        }
        if offers(task, "any_right"):
            any_right = task.any_right(answer.prediction, batch).to(device)
            outcome["any_right"] = any_right & self.finite
        return {name: values.cpu() for name, values in outcome.items()}


def resolve_steps(net: Net, steps: int | None = None, *, cut: bool = False) -> int:
    """Check a number of iterations; None: 1,000, or the depth of a feed-forward network.

    ``cut``: beyond the depth of a feed-forward network take its depth, instead of raising an error.
    """
    depth = depth_of(net)
    if steps is None:
        return depth or MAX_STEPS
    steps = check_count("the number of iterations", steps, least=1)
    if depth is not None and steps > depth and not cut:
        raise UsageError(
            f"this network is feed-forward and has {counted(depth, 'iteration')}, asked for "
            f"{steps}; ask for at most {depth}"
        )
    return steps if depth is None else min(steps, depth)


def is_finite(features: Tensor) -> Tensor:
    """(B,) bool: samples whose features are all finite."""
    flat = features.flatten(1)
    if flat.is_cuda:  # one pass without synchronising
        largest: Tensor = torch.linalg.vector_norm(flat, ord=torch.inf, dim=1)
        return largest.isfinite()
    wide = torch.float64 if flat.dtype == torch.float64 else torch.float32
    # A finite sum proves it in one pass. A sum may overflow, so only then check each element.
    finite: Tensor = flat.sum(dim=1, dtype=wide).isfinite()
    return finite if bool(finite.all()) else flat.isfinite().all(dim=1)


def _relative_change(before: Tensor, after: Tensor) -> Tensor:
    """(B,) ‖after - before‖ / ‖after‖, in float32."""
    old, new = before.flatten(1).float(), after.flatten(1).float()
    distance: Tensor = torch.linalg.vector_norm(new - old, dim=1)
    length: Tensor = torch.linalg.vector_norm(new, dim=1)
    return distance / length.clamp_min(1e-30)
