"""Accuracy by iteration, its cost, and the trade-off between both under halting rules.

    >>> curve = evaluate(net, task, size=9, count=20, max_steps=60)
    >>> curve.accuracy[29], curve.peak, curve.lost  # after 30 iterations; at best; overthinking

Every evaluation is one loop, `run_batches`, with a function that records the iterations of a batch
as they go: memory does not grow with their number. Batches are halved when memory runs out.

Shapes: B problems of a batch, b problems still in it, *S space.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from iterant import registry
from iterant.engine import Thought, check_count, think
from iterant.errors import UsageError
from iterant.formatting import counted
from iterant.halting import Fixed, MostConfident, Resting, Rule, StableAnswer, Watch
from iterant.nets.fast import accelerate, threads
from iterant.nets.protocol import Net, depth_of, like, moved_of, on_device, readout_of
from iterant.notebook import NotebookLine, in_notebook
from iterant.solving import AnswerBuffer, Iteration, check_fits, iterate
from iterant.tasks.protocol import Batch, Size, Task, offers

POSITIONS_AT_ONCE = 1 << 20
"""Most positions of one batch, to bound memory."""
MAX_STEPS = 1000
"""Default iterations of networks that are not feed-forward."""

RULES: tuple[Rule, ...] = (
    Fixed(),
    MostConfident(),
    *(StableAnswer(patience) for patience in (1, 2, 5, 10, 20, 30, 50)),
    *(Resting(tolerance) for tolerance in (1e-1, 1e-2, 1e-3, 1e-4)),
)
"""The rules of `tradeoff`: two that spend the full budget, then rising patience and precision."""

T = TypeVar("T")
Progress = Callable[[int, int], None]
"""Called with the work done and the total."""


class Operations(NamedTuple):
    """Floating-point operations for one problem.

    Multiplications and additions of convolutions and matrix products count, one each; elementwise
    operations (ReLU, sums) do not.
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
        rule.watch().see(thought)
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
    solved: Tensor
    """(steps,) int64: problems solved after each of them"""
    count: int
    """Number of problems"""
    change: float = math.nan
    """Mean over problems of ‖Δφ‖ / ‖φ‖ at their last iteration"""
    broken: int = 0
    """Problems whose features became NaN or infinite; these count as not solved"""
    right: Tensor | None = None
    """(problems,) bool: solved at the end"""
    any_right: Tensor | None = None
    """(problems,) bool: the same, where any right answer counts; None: each problem has one"""
    taken: Tensor | None = None
    """(problems,) int64: iterations of each problem"""
    stopped: Tensor | None = None
    """(problems,) bool: whether the rule was met within the budget"""
    seconds: Tensor | None = None
    """(steps,) float64: time for all problems up to each iteration"""
    operations: Operations | None = None
    """Floating-point operations of one problem"""
    shrunk: int | None = None
    """Problems in a batch, where memory was short for the usual number"""
    changing: int | None = None
    """Problems whose answer changed at the last iteration; None: not asked, or feed-forward"""

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
        changing = f"; {self.changing} answers were still changing" if self.changing else ""
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
        if self.taken is None:
            return torch.tensor(self.steps).double()
        taken = self.taken.double()
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
            "not finite": self.broken,
            "solved": self.solved.tolist(),
        }
        if self.steps != tuple(range(1, len(self.steps) + 1)):
            figures["steps"] = list(self.steps)
        if self.changing is not None:
            figures["still changing at the end"] = self.changing
        if self.any_right is not None:
            figures["any right answer at the end"] = int(self.any_right.sum())
        if self.stopped is not None:
            figures["stopped by the rule"] = int(self.stopped.sum())
        if self.taken is not None and int(self.taken.min()) < self.steps[-1]:
            figures["iterations of each"] = self.taken.tolist()
            means = [round(mean, 4) for mean in self.iterations.tolist()]
            figures["mean iterations by budget"] = means
        if self.work is not None:
            figures["operations a problem"] = self.work.tolist()
        if self.shrunk is not None:
            figures["problems at a time, for want of memory"] = self.shrunk
        if self.seconds is not None:
            figures["seconds"] = [round(second, 4) for second in self.seconds.tolist()]
        return figures


def evaluate(
    net: Net,
    task: Task,
    *,
    size: Size | None = None,
    count: int = 1000,
    seed: int = 1,
    max_steps: int | None = None,
    rule: Rule | None = None,
    portion: int | None = None,
    device: str | torch.device | None = None,
    progress: Progress | None = None,
) -> Curve:
    """Accuracy after each of ``max_steps`` iterations on fresh problems of one size.

        >>> curve = evaluate(net, task, size=13, count=20, seed=1, max_steps=120)
        >>> curve.peak[1], curve.lost
        (1.0, 0.0)

    Args:
        net: a network of `iterant.load`, or any object with its four methods.
        task: a task of `iterant.task`.
        size: of the problems; None: as in training.
        count: number of problems.
        seed: the same seed gives the same problems.
        max_steps: iterations; None: 1,000, or the depth of a feed-forward network.
        rule: a rule of `iterant.halting`; problems that are done leave the batch.
        portion: problems in a batch, if memory is short.
        device: where to compute, on a copy of the network if that is elsewhere.
        progress: called with how many iterations of problems are done, and of how many; None:
            shown in a notebook only.
    """
    check_fits(net, task)
    net = on_device(net, device)
    steps = budget_of(net, max_steps)
    batch = task.sample(count, size=size, seed=seed)
    line = NotebookLine() if progress is None and in_notebook() else None
    if line is not None:
        title = f"evaluating {counted(len(batch), 'problem')}"

        def progress(done: int, total: int) -> None:
            line.estimate(title, done / total)

    curve = evaluate_batch(
        net, task, batch, steps=steps, rule=rule, portion=portion, cost=True, progress=progress
    )
    if line is not None:
        line.clear()
    return curve


def evaluate_batch(
    net: Net,
    task: Task,
    batch: Batch,
    *,
    steps: int,
    at: Collection[int] | None = None,
    rule: Rule | None = None,
    portion: int | None = None,
    cost: bool = False,
    progress: Progress | None = None,
) -> Curve:
    """Accuracy on these problems after the iterations ``at`` (None: all) of ``steps``.

    Answers are decoded at these iterations only. Inputs are moved to the network's device and
    precision. ``cost``: count floating-point operations too. Problems of a local rule that are
    exactly at rest leave the batch early, which changes no figure but the time.
    """
    check_fits(net, task)
    steps = budget_of(net, steps)
    marks = tuple(range(1, steps + 1)) if at is None else tuple(sorted(set(at)))
    if not marks or marks[0] < 1 or marks[-1] > steps:
        asked = ", ".join(map(str, marks)) or "none"
        raise UsageError(f"answers can be judged at iterations 1 to {steps}, asked for {asked}")
    until_rest = rule is None and hasattr(accelerate(net, like(net, batch[:1].inputs)), "moved")
    parts, shrunk = run_batches(
        net, batch, lambda part, iterations: _batch_outcome(task, marks, part, iterations),
        steps=steps, rule=_ExactRest() if until_rest else rule, portion=portion, progress=progress,
    )  # fmt: skip
    whole = {name: torch.cat([part[name] for part in parts], dim=-1) for name in parts[0]}
    return Curve(
        steps=marks,
        solved=whole["solved"].sum(dim=1),
        count=len(batch),
        change=float(whole["change"].mean()),
        broken=int(whole["broken"].sum()),
        right=whole["right"],
        any_right=whole.get("any_right"),
        taken=torch.full_like(whole["taken"], steps) if rule is None else whole["taken"],
        stopped=None if rule is None else whole["stopped"],
        changing=None if depth_of(net) else int(whole["changing"].sum()),
        seconds=whole["seconds"].sum(dim=1),
        operations=operations(net, like(net, batch[:1].inputs), rule) if cost else None,
        shrunk=shrunk,
    )


class _ExactRest(Watch):
    """Stop problems whose state is exactly at rest: all later answers are the same.

    Only for networks that report their changes (`moved_of`): these compute every cell by itself,
    so that the problems that stay are computed to the same bit.
    """

    def watch(self) -> Watch:
        return self  # stateless

    def see(self, thought: Thought) -> Tensor:
        moved = moved_of(thought.net)
        assert moved is not None  # noqa: S101
        return moved == 0  # NaN counts as changed


@torch.no_grad()
def run_batches(
    net: Net,
    batch: Batch,
    record: Callable[[Batch, Iterator[Iteration]], T],
    *,
    steps: int,
    rule: Rule | None = None,
    portion: int | None = None,
    reuse: bool = False,
    progress: Progress | None = None,
) -> tuple[list[T], int | None]:
    """Iterate on all problems, batch by batch; return the results of ``record`` on each batch.

    ``record`` gets a batch on the network's device and an iterator over its iterations, which it
    may leave early. ``reuse``: an iteration may overwrite the previous features. Batches are halved
    when memory runs out; the second value is the reduced size, or None if that was not needed.
    """
    size = max(1, POSITIONS_AT_ONCE // batch.targets[0].numel()) if portion is None else portion
    if size < 1:
        raise UsageError(f"a batch holds at least 1 problem, got {size}")
    total = len(batch) * steps

    def run(first: int, part: Batch) -> T:
        inputs = like(net, part.inputs)
        fast = accelerate(net, inputs, reuse=reuse)

        def iterations() -> Iterator[Iteration]:
            for iteration in iterate(fast, inputs, rule or Fixed(), steps):
                yield iteration
                if progress is not None:
                    progress(first * steps + iteration.thought.step * len(part), total)

        with threads(fast):
            # Answers are compared on the device: moving those of every iteration takes longer.
            return record(part.to(inputs.device), iterations())

    results: list[T] = []
    shrunk, first = None, 0
    while first < len(batch):
        part = batch[first : first + (shrunk or size)]
        try:
            results.append(run(first, part))
        except (MemoryError, RuntimeError) as error:
            if len(part) == 1 or not out_of_memory(error):
                raise
            error.__traceback__ = None  # its frames hold the tensors that must be freed
            shrunk = len(part) // 2
            if torch.cuda.is_available():
                torch.cuda.empty_cache()
        else:
            first += len(part)
    if progress is not None:
        progress(total, total)
    return results, shrunk


def out_of_memory(error: BaseException) -> bool:
    """Whether an error means that memory ran out; on a CPU only its message tells."""
    phrases = ("can't allocate memory", "not enough memory", "out of memory", "bad allocation")
    by_type = isinstance(error, MemoryError | torch.OutOfMemoryError)
    return by_type or any(phrase in str(error).lower() for phrase in phrases)


def _batch_outcome(
    task: Task, marks: tuple[int, ...], part: Batch, iterations: Iterator[Iteration]
) -> dict[str, Tensor]:
    """Check the answers to a batch after the iterations ``marks``, and when problems leave it.

    Returns the fields of a `Curve` by name, on the CPU: (marks, 1) solved and seconds, (B,) the
    others. Counts stay on the device until the end, so that the CPU waits for a GPU only when
    problems leave the batch.
    """
    device, timer = part.inputs.device, Timer(part.inputs.device)
    mark_index = {step: index for index, step in enumerate(marks)}
    counts = torch.zeros(len(marks), dtype=torch.int64, device=device)  # of those in the batch
    finite = torch.ones(len(part), dtype=torch.bool, device=device)
    change = torch.full((len(part),), torch.nan, device=device)
    changing = torch.zeros(len(part), dtype=torch.bool, device=device)
    answers, active = AnswerBuffer(len(part), device), part
    for iteration in iterations:
        thought, rows = iteration.thought, iteration.rows
        if thought.step not in mark_index and not iteration.any_leaving:
            continue
        if len(rows) != len(active):
            active = part[rows.cpu()]
        finite[rows] &= is_finite(thought.features)
        if thought.step in mark_index:
            solved = task.solved(iteration.answer()[0], active).to(device) & finite[rows]
            counts[mark_index[thought.step]] = solved.sum()
            timer.mark()
        if iteration.any_leaving:
            answers.put(iteration)
            relative = _relative_change(iteration.before, thought.features)
            change[rows] = torch.where(iteration.leaving, relative, change[rows])
            at_end = iteration.leaving & ~iteration.done  # the budget is spent
            if bool(at_end.any()):
                logits = thought.net.answer(iteration.before)
                before = readout_of(thought.net).predict(logits, thought.inputs)
                differs = (before != thought.prediction).flatten(1).any(dim=1)
                changing[rows] = differs & at_end
    right = (task.solved(answers.prediction, part).to(device) & finite).cpu()
    taken = answers.steps.cpu()
    # Problems that left before a mark keep the answer they left with.
    solved_and_left = torch.bincount(taken[right], minlength=marks[-1] + 1).cumsum(0)
    timer.mark()
    *seconds, last = timer.seconds()
    seconds += [last] * (len(marks) - len(seconds))  # marks after all have left
    outcome = {
        "solved": (counts.cpu() + solved_and_left[torch.tensor(marks) - 1])[:, None],
        "seconds": torch.tensor(seconds, dtype=torch.float64)[:, None],
        "right": right,
        "taken": taken,
        "stopped": answers.met.cpu(),
        "broken": ~finite.cpu(),
        "change": change.cpu(),
        "changing": changing.cpu(),
    }
    if offers(task, "any_right"):
        any_right = task.any_right(answers.prediction, part).cpu()
        outcome["any_right"] = any_right & ~outcome["broken"]
    return outcome


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

    >>> for rule, curve in tradeoff(net, task, batch, steps=60):
    ...     rule, curve.end, curve.iterations[-1]

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


class Timer:
    """Seconds from the creation of the timer to each mark.

    CUDA kernels run asynchronously: on a GPU, events are recorded and read at the end.
    """

    def __init__(self, device: torch.device) -> None:
        self.stream = torch.cuda.current_stream(device) if device.type == "cuda" else None
        self.marks = list[Any]()
        self.mark()

    def mark(self) -> None:
        """Record when everything submitted so far is done."""
        if self.stream is None:
            self.marks.append(time.perf_counter())
            return
        event_type: Any = torch.cuda.Event
        self.marks.append(event_type(enable_timing=True))
        self.marks[-1].record(self.stream)

    def seconds(self) -> list[float]:
        """The time of every mark; waits for the last."""
        start, *marks = self.marks
        if self.stream is None:
            return [mark - start for mark in marks]
        self.marks[-1].synchronize()
        return [start.elapsed_time(mark) / 1000 for mark in marks]


def budget_of(net: Net, steps: int | None = None, *, cut: bool = False) -> int:
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
