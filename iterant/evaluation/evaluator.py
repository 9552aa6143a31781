"""Accuracy by iteration, streamed: memory does not grow with the number of iterations.

    >>> curve = evaluate_batch(net, task, batch, steps=1000, rule=StableAnswer(30))

Every evaluation is one loop, `run_batches`, and a `Recorder` that sees each iteration. Problems are
taken in batches that fit in memory, and in smaller ones where they do not.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator
from typing import Any, Protocol, SupportsIndex

import torch
from torch import Tensor

from iterant.errors import UsageError
from iterant.evaluation.cost import operations, reads_every_answer
from iterant.evaluation.curve import Curve
from iterant.formatting import counted
from iterant.halting import Fixed, Rule
from iterant.nets.fast import accelerate, threads
from iterant.nets.protocol import Net, depth_of, like
from iterant.solving import Iteration, check_fits, iterate
from iterant.tasks.protocol import Batch, Size, Task

POSITIONS_AT_ONCE = 1 << 20
"""Positions of one batch; bounds the memory, does not change the answers."""
MAX_STEPS = 1000
"""Default iterations of networks that are not feed-forward."""
LONGEST = 10_000_000
"""The most iterations whose accuracies are all recorded."""

Progress = Callable[[int, int], None]
"""Called with the work done and the work in all."""


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
    progress: Progress | None = None,
) -> Curve:
    """Accuracy after each of ``max_steps`` iterations on fresh problems of one size.

        >>> curve = evaluate(net, task, size=13, count=20, seed=1, max_steps=120)
        >>> curve.peak[1], curve.lost
        (1.0, 0.0)

    ``max_steps=None``: 1,000 iterations, or the depth of a feed-forward network. With a rule,
    problems that are done leave the batch. ``portion``: problems in a batch, where memory is short.
    """
    check_fits(net, task)
    steps = budget_of(net, max_steps)
    batch = task.sample(count, size=size, seed=seed)
    return evaluate_batch(
        net, task, batch, steps=steps, rule=rule, portion=portion, cost=True, progress=progress
    )


def evaluate_batch(
    net: Net,
    task: Task,
    batch: Batch,
    *,
    steps: int,
    at: Collection[int] | None = None,
    rule: Rule | None = None,
    cut: bool = False,
    portion: int | None = None,
    cost: bool = False,
    progress: Progress | None = None,
) -> Curve:
    """Accuracy on these problems after the iterations ``at`` (None: all) of ``steps``.

    Answers are decoded at these iterations only. Inputs are moved to the network's device and
    precision. ``cut``: take the depth of a feed-forward network for every iteration beyond it,
    instead of raising an error. ``cost``: count floating-point operations too.
    """
    check_fits(net, task)
    budget = budget_of(net, steps, cut=cut)
    record = _CurveRecorder(task, _marks(at, budget, cut), len(batch))
    shrunk = run_batches(
        net, batch, record, steps=budget, rule=rule, portion=portion, progress=progress
    )
    one = like(net, batch[:1].inputs)
    return Curve(
        steps=record.marks,
        solved=record.solved,
        count=len(batch),
        change=float(record.change.mean()),
        broken=int(record.broken.sum()),
        right=record.right,
        taken=record.taken,
        stopped=None if rule is None else record.stopped,
        seconds=record.seconds,
        operations=operations(net, one) if cost else None,
        looks=rule is not None and cost and reads_every_answer(rule, net, one),
        shrunk=shrunk,
    )


class Recorder(Protocol):
    """What an evaluation keeps of the iterations of every batch."""

    def start(self, first: int, part: Batch, began: float) -> None:
        """Begin with problems ``first``, ``first + 1`` … on the network's device.

        ``began``: a reading of ``time.perf_counter`` before they were moved there. A batch may be
        started and given up; only `finish` makes it count.
        """

    def record(self, iteration: Iteration) -> bool:
        """Take one iteration; True ends the batch."""

    def finish(self) -> None:
        """Add the batch to the result."""


@torch.no_grad()
def run_batches(
    net: Net,
    batch: Batch,
    recorder: Recorder,
    *,
    steps: int,
    rule: Rule | None = None,
    portion: int | None = None,
    reuse: bool = False,
    progress: Progress | None = None,
) -> int | None:
    """Iterate on all problems, batch by batch, and show each iteration to the recorder.

    Returns the reduced batch size where memory was short, else None. ``reuse``: iterations may
    overwrite the features of the one before.
    """

    def run(first: int, part: Batch) -> None:
        began, inputs = time.perf_counter(), like(net, part.inputs)
        # Answers are compared on the device: moving those of every iteration would take longer.
        recorder.start(first, part.to(inputs.device), began)
        fast = accelerate(net, inputs, reuse=reuse)
        with threads(fast):
            for iteration in iterate(fast, inputs, rule or Fixed(), steps):
                ended = recorder.record(iteration)
                if progress is not None:
                    progress(first * steps + iteration.thought.step * len(part), len(batch) * steps)
                if ended:
                    break
        recorder.finish()

    shrunk = within_memory(batch, portion, run)
    if progress is not None:
        progress(len(batch) * steps, len(batch) * steps)
    return shrunk


def within_memory(batch: Batch, size: int | None, run: Callable[[int, Batch], None]) -> int | None:
    """Call ``run(first, part)`` for all parts, halving them where memory is short.

    Returns the size that fitted, or None where the first one did.
    """
    shrunk, first = None, 0
    while first < len(batch):
        _, part = next(split_batch(batch[first:], shrunk or size))
        try:
            run(first, part)
        except (MemoryError, RuntimeError) as error:
            if len(part) == 1 or not out_of_memory(error):
                raise
            error.__traceback__ = None  # its frames hold the tensors that must be freed
            shrunk = len(part) // 2
            if torch.cuda.is_available():
                torch.cuda.empty_cache()
        else:
            first += len(part)
    return shrunk


def out_of_memory(error: BaseException) -> bool:
    """Whether an error says that memory ran out; on a CPU only its message does."""
    words = ("can't allocate memory", "not enough memory", "out of memory", "bad allocation")
    known = isinstance(error, MemoryError | torch.OutOfMemoryError)
    return known or any(word in str(error).lower() for word in words)


def split_batch(batch: Batch, size: int | None = None) -> Iterator[tuple[int, Batch]]:
    """Parts of at most ``size`` problems, each with the index of its first; None: by memory."""
    if size is None:
        size = max(1, POSITIONS_AT_ONCE // batch.targets[0].numel())
    if size < 1:
        raise UsageError(f"a portion holds at least 1 problem, got {size}")
    for first in range(0, len(batch), size):
        yield first, batch[first : first + size]


class _CurveRecorder:
    """Counts solved problems at the marks; problems that left keep the answer they left with.

    The figures of an iteration stay on the device, so that a GPU is waited for only when problems
    leave and at the end.
    """

    def __init__(self, task: Task, marks: tuple[int, ...], count: int) -> None:
        self.task, self.marks = task, marks
        self.places = {step: place for place, step in enumerate(marks)}
        self.solved = torch.zeros(len(marks), dtype=torch.int64)
        self.seconds = torch.zeros(len(marks), dtype=torch.float64)
        self.right, self.stopped, self.broken = torch.zeros(3, count, dtype=torch.bool)
        self.taken = torch.zeros(count, dtype=torch.int64)
        self.change = torch.full((count,), float("nan"))

    def start(self, first: int, part: Batch, began: float) -> None:
        self.first, self.part, device = first, part, part.inputs.device
        self.rows, self.active = torch.arange(len(part)), part  # still in the batch
        self.counts = torch.zeros(len(self.marks), dtype=torch.int64, device=device)
        self.not_finite = torch.zeros(len(part), dtype=torch.bool, device=device)
        self.timer = Timer(device, began)
        self.solved_before = 0  # of the problems that left
        self.next_place = 0

    def record(self, iteration: Iteration) -> bool:
        step = iteration.thought.step
        if step not in self.places and not iteration.any_leaving:
            return False
        if len(iteration.rows) != len(self.rows):
            self.rows = iteration.rows.cpu()
            self.active = self.part[self.rows]
        finite = is_finite(iteration.thought.features)
        right = self.task.solved(iteration.answer()[0], self.active).to(finite.device) & finite
        self.not_finite[iteration.rows] |= ~finite
        if step in self.places:
            place = self.places[step]
            self.counts[place] = right.sum() + self.solved_before
            self.timer.mark()
            self.next_place = place + 1
        if iteration.any_leaving:
            change = relative_change(iteration.before, iteration.thought.features)
            leaving, done, right = torch.stack([iteration.leaving, iteration.done, right]).cpu()
            gone = self.rows[leaving] + self.first
            self.right[gone] = right[leaving]
            self.stopped[gone] = done[leaving]
            self.taken[gone] = step
            self.change[gone] = change.cpu()[leaving]
            self.solved_before += int(right[leaving].sum())
        return False

    def finish(self) -> None:
        self.broken[self.first : self.first + len(self.part)] = self.not_finite.cpu()
        # All have left: later iterations have the counts and the time of the last.
        self.counts[self.next_place :] = self.solved_before
        self.solved += self.counts.cpu()
        self.timer.mark()
        *seconds, last = self.timer.seconds()
        seconds += [last] * (len(self.marks) - len(seconds))
        self.seconds += torch.tensor(seconds, dtype=torch.float64)


class Timer:
    """When work was done, in seconds since ``began`` (``time.perf_counter``).

    The program runs ahead of a GPU: there CUDA events are recorded, and read at the end.
    """

    def __init__(self, device: torch.device, began: float) -> None:
        """Start the clock of a device."""
        self.began, self.marks = began, list[Any]()
        self.stream = torch.cuda.current_stream(device) if device.type == "cuda" else None
        if self.stream is not None:
            self.before = time.perf_counter() - began
            self.mark()

    def mark(self) -> None:
        """Note when everything submitted so far is done."""
        if self.stream is None:
            self.marks.append(time.perf_counter())
            return
        event_type: Any = torch.cuda.Event
        event = event_type(enable_timing=True)
        event.record(self.stream)
        self.marks.append(event)

    def seconds(self) -> list[float]:
        """The time of every mark; waits for the last."""
        if self.stream is None:
            return [mark - self.began for mark in self.marks]
        start, *events = self.marks
        if events:
            events[-1].synchronize()
        return [self.before + start.elapsed_time(event) / 1000 for event in events]


def budget_of(net: Net, steps: int | None = None, *, cut: bool = False) -> int:
    """Check a number of iterations; None: 1,000, or the depth of a feed-forward network.

    >>> budget_of(net)
    1000
    """
    depth = depth_of(net)
    if steps is None:
        return depth or MAX_STEPS
    if isinstance(steps, bool) or not isinstance(steps, SupportsIndex) or int(steps) < 1:
        raise UsageError(f"accuracy needs at least 1 iteration, got {steps}")
    if depth is not None and steps > depth and not cut:
        raise UsageError(
            f"this network is feed-forward and has {counted(depth, 'iteration')}, asked for "
            f"{steps}; ask for at most {depth}"
        )
    return int(steps) if depth is None else min(int(steps), depth)


def _marks(at: Collection[int] | None, budget: int, cut: bool) -> tuple[int, ...]:
    """The iterations to decode, in order."""
    if at is None:
        if budget > LONGEST:
            raise UsageError(
                f"accuracy after each of {budget:,} iterations cannot be kept; ask for at "
                f"most {LONGEST:,}"
            )
        return tuple(range(1, budget + 1))
    marks = tuple(sorted({min(step, budget) if cut else step for step in at}))
    if not marks or marks[0] < 1 or marks[-1] > budget:
        raise UsageError(
            f"answers can be judged at iterations 1 to {budget}, asked for "
            f"{', '.join(map(str, sorted(at))) or 'none'}"
        )
    return marks


def is_finite(features: Tensor) -> Tensor:
    """(B,) bool: samples whose features are all finite.

    >>> is_finite(torch.tensor([[1.0, 2.0], [0.0, torch.nan]]))
    tensor([ True, False])
    """
    flat = features.flatten(1)
    if flat.is_cuda:  # one pass without synchronising
        largest: Tensor = torch.linalg.vector_norm(flat, ord=torch.inf, dim=1)
        return largest.isfinite()
    wide = torch.float64 if flat.dtype == torch.float64 else torch.float32
    # A finite sum proves it in one pass; a large one may overflow, and only then we look closer.
    fine: Tensor = flat.sum(dim=1, dtype=wide).isfinite()
    return fine if bool(fine.all()) else flat.isfinite().all(dim=1)


def relative_change(before: Tensor, after: Tensor) -> Tensor:
    """(B,) ‖after - before‖ / ‖after‖, in float32.

    >>> relative_change(torch.zeros(1, 2, 3), torch.ones(1, 2, 3))
    tensor([1.])
    """
    old, new = before.flatten(1).float(), after.flatten(1).float()
    distance: Tensor = torch.linalg.vector_norm(new - old, dim=1)
    length: Tensor = torch.linalg.vector_norm(new, dim=1)
    return distance / length.clamp_min(1e-30)
