"""Accuracy by iteration, streamed: nothing is kept of an iteration but who was right.

>>> curve = evaluate_batch(net, task, batch, steps=1000, rule=StableAnswer(30))

When things were done on a device, without waiting for it in between.

A GPU works through what it was given while the program is far ahead: the program's clock would tell
when work was handed over. The GPU notes its own, and is asked at the end.

Problems in portions that fit in memory, and in smaller ones where they do not.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol, SupportsIndex, TypeVar

import torch
from torch import Tensor

from iterant.errors import UsageError
from iterant.evaluation.cost import looks, operations
from iterant.evaluation.curve import Curve
from iterant.formatting import counted
from iterant.halting import Fixed, Rule
from iterant.nets.fast import accelerate, threads
from iterant.nets.protocol import Net, depth_of
from iterant.solving import Iteration, iterate
from iterant.solving.solver import check_fits
from iterant.tasks.protocol import Batch, Size, Task


class Timer(Protocol):
    """A clock that notes."""

    def note(self) -> None:
        """Note the moment when all that was asked for until now is done."""

    def seconds(self) -> list[float]:
        """Since the beginning, a number for every note."""


class HostTimer:
    """By the program's clock: what computes while the program waits."""

    def __init__(self, begun: float) -> None:
        """Begun then, by ``time.perf_counter``."""
        self.begun = begun
        self.noted: list[float] = []

    def note(self) -> None:
        """Now."""
        self.noted.append(time.perf_counter())

    def seconds(self) -> list[float]:
        """Since the beginning."""
        return [moment - self.begun for moment in self.noted]


class CudaTimer:
    """By a GPU's own clock, read once."""

    def __init__(self, device: torch.device, begun: float) -> None:
        """Begun then; what the program did since counts too."""
        self.stream = torch.cuda.current_stream(device)
        self.before = time.perf_counter() - begun
        self.first = self._event()
        self.noted: list[torch.cuda.Event] = []

    def _event(self) -> torch.cuda.Event:
        made: Any = torch.cuda.Event
        event: torch.cuda.Event = made(enable_timing=True)
        event.record(self.stream)
        return event

    def note(self) -> None:
        """When the GPU comes to it."""
        self.noted.append(self._event())

    def seconds(self) -> list[float]:
        """Since the beginning; waits for the last."""
        if self.noted:
            self.noted[-1].synchronize()
        return [self.before + self.first.elapsed_time(event) / 1000 for event in self.noted]


def timer_for(device: torch.device, begun: float) -> Timer:
    """The clock that fits a device; ``begun`` by ``time.perf_counter``."""
    return CudaTimer(device, begun) if device.type == "cuda" else HostTimer(begun)


POSITIONS_AT_ONCE = 1 << 20
"""Positions of a batch that are thought about together; bounds the memory, not the answer."""

Kept = TypeVar("Kept")


def within_memory(
    batch: Batch,
    size: int | None,
    think: Callable[[int, Batch], None],
    keep: Callable[[], Kept],
    restore: Callable[[Kept], None],
) -> int | None:
    """Think about every portion, halving them where memory is short; the size that did, if so.

    ``keep`` and ``restore`` undo what a portion did before it was broken off.
    """
    shrunk, first = None, 0
    while first < len(batch):
        (_, part), before = next(split_batch(batch[first:], shrunk or size)), keep()
        try:
            think(first, part)
        except (MemoryError, RuntimeError) as error:
            if len(part) == 1 or not out_of_memory(error):
                raise
            error.__traceback__ = None  # its frames hold what has to go
            restore(before)
            shrunk = len(part) // 2
            if torch.cuda.is_available():
                torch.cuda.empty_cache()
        else:
            first += len(part)
    return shrunk


def out_of_memory(error: BaseException) -> bool:
    """Whether that is what an error says; on a CPU only its words do."""
    words = ("can't allocate memory", "not enough memory", "out of memory", "bad allocation")
    known = isinstance(error, MemoryError | torch.OutOfMemoryError)
    return known or any(word in str(error).lower() for word in words)


def split_batch(batch: Batch, size: int | None = None) -> Iterator[tuple[int, Batch]]:
    """The batch in parts that fit in memory, each with the number of problems before it."""
    if size is None:
        size = max(1, POSITIONS_AT_ONCE // batch.targets[0].numel())
    if size < 1:
        raise UsageError(f"a portion holds at least 1 problem, got {size}")
    for first in range(0, len(batch), size):
        yield first, batch[first : first + size]


MAX_STEPS = 1000
LONGEST = 10_000_000
"""Iterations, for networks that can go on for ever, where nobody says how many."""

Progress = Callable[[int, int], None]
"""Told how much is done, and of how much."""


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

    None: 1,000 iterations, or as many as a feed-forward network has. With a rule, problems that
    are done leave the batch. ``portion``: problems at a time, where memory is short.
    """
    check_fits(net, task)
    steps = budget_of(net, max_steps)
    batch = task.sample(count, size=size, seed=seed)
    return evaluate_batch(
        net, task, batch, steps=steps, rule=rule, portion=portion, cost=True, progress=progress
    )


@torch.no_grad()
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
    """Think ``steps`` iterations about every problem; answers are decoded ``at`` these only.

    None decodes all of them. Inputs are moved to the network's device and precision in portions.
    A network of fixed depth that is asked for more is refused, unless ``cut`` takes its depth
    instead, for everything asked beyond. ``cost`` counts floating-point operations too.
    """
    check_fits(net, task)
    budget = budget_of(net, steps, cut=cut)
    book = _Book(_marks(at, budget, cut), len(batch))

    def think(first: int, part: Batch) -> None:
        begun, inputs = time.perf_counter(), like(net, part.inputs)
        # Judged where it was thought: answers of every iteration would be much to move.
        page = _Page(book, task, part.to(inputs.device), first, begun)
        fast = accelerate(net, inputs)
        with threads(fast):
            for iteration in iterate(fast, inputs, rule or Fixed(), budget):
                page.enter(iteration)
                if progress is not None:
                    done = first * budget + iteration.thought.step * len(part)
                    progress(done, len(batch) * budget)
        page.close()

    shrunk = within_memory(batch, portion, think, book.copied, book.restore)
    if progress is not None:
        progress(len(batch) * budget, len(batch) * budget)
    one = like(net, batch[:1].inputs)
    return Curve(
        steps=book.marks,
        solved=book.solved,
        count=len(batch),
        change=float(book.change.mean()),
        broken=int(book.broken.sum()),
        right=book.right,
        taken=book.taken,
        stopped=None if rule is None else book.stopped,
        seconds=book.seconds,
        operations=operations(net, one) if cost else None,
        looks=rule is not None and cost and looks(rule, net, one),
        shrunk=shrunk,
    )


@dataclass
class _Book:
    """The accounts of all problems: what grows with iterations is one number each."""

    marks: tuple[int, ...]
    count: int
    solved: Tensor = field(init=False)
    seconds: Tensor = field(init=False)

    def __post_init__(self) -> None:
        self.solved = torch.zeros(len(self.marks), dtype=torch.int64)
        self.seconds = torch.zeros(len(self.marks), dtype=torch.float64)
        self.places = {step: place for place, step in enumerate(self.marks)}
        self.right = torch.zeros(self.count, dtype=torch.bool)
        self.stopped = torch.zeros(self.count, dtype=torch.bool)
        self.broken = torch.zeros(self.count, dtype=torch.bool)
        self.taken = torch.zeros(self.count, dtype=torch.int64)
        self.change = torch.full((self.count,), float("nan"))

    def copied(self) -> tuple[Tensor, Tensor]:
        """What is summed over portions, to go back to."""
        return self.solved.clone(), self.seconds.clone()

    def restore(self, copied: tuple[Tensor, Tensor]) -> None:
        """Forget a portion that was broken off; its other accounts are written anew."""
        self.solved, self.seconds = copied


class _Page:
    """The accounts of one portion; problems that left keep the answer they left with.

    What an iteration says stays on the device: a GPU, above all one that others share, is asked
    only when problems leave, and at the end.
    """

    def __init__(self, book: _Book, task: Task, part: Batch, first: int, begun: float) -> None:
        self.book, self.task, self.part, self.first = book, task, part, first
        self.rows, self.here = torch.arange(len(part)), part
        device = part.inputs.device
        self.counts = torch.zeros(len(book.marks), dtype=torch.int64, device=device)
        self.broken = torch.zeros(len(part), dtype=torch.bool, device=device)
        self.moments = timer_for(device, begun)
        self.kept = 0
        self.next = 0

    def enter(self, iteration: Iteration) -> None:
        """One iteration: who is right at it, and how those fared who leave."""
        book, step = self.book, iteration.thought.step
        if step not in book.places and not iteration.any_leaving:
            return
        if len(iteration.rows) != len(self.rows):
            self.rows = iteration.rows.cpu()
            self.here = self.part[self.rows]
        sound = is_finite(iteration.thought.features)
        right = self.task.solved(iteration.answer()[0], self.here).to(sound.device) & sound
        self.broken[iteration.rows] |= ~sound
        if step in book.places:
            place = book.places[step]
            self.counts[place] = right.sum() + self.kept
            self.moments.note()
            self.next = place + 1
        if iteration.any_leaving:
            self._leave(iteration, right)

    def _leave(self, iteration: Iteration, right: Tensor) -> None:
        book, change = self.book, relative_change(iteration.before, iteration.thought.features)
        leaving, done, right = torch.stack([iteration.leaving, iteration.done, right]).cpu()
        gone = self.rows[leaving] + self.first
        book.right[gone] = right[leaving]
        book.stopped[gone] = done[leaving]
        book.taken[gone] = iteration.thought.step
        book.change[gone] = change.cpu()[leaving]
        self.kept += int(right[leaving].sum())

    def close(self) -> None:
        """All have left: what was true then is true at every later iteration."""
        book, end = self.book, self.first + len(self.part)
        book.broken[self.first : end] = self.broken.cpu()
        self.counts[self.next :] = self.kept
        book.solved += self.counts.cpu()
        self.moments.note()
        *seconds, last = self.moments.seconds()
        seconds += [last] * (len(book.marks) - len(seconds))
        book.seconds += torch.tensor(seconds, dtype=torch.float64)


def budget_of(net: Net, steps: int | None = None, *, cut: bool = False) -> int:
    """The iterations to take, or a refusal; None: 1,000, or all that a feed-forward net has.

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
    """The iterations whose answers are wanted, in order."""
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
    """(B,) bool: samples whose features are all finite numbers.

    >>> is_finite(torch.tensor([[1.0, 2.0], [0.0, torch.nan]]))
    tensor([ True, False])
    """
    flat = features.flatten(1)
    if flat.is_cuda:  # in one pass, and nothing is waited for
        largest: Tensor = torch.linalg.vector_norm(flat, ord=torch.inf, dim=1)
        return largest.isfinite()
    wide = torch.float64 if flat.dtype == torch.float64 else torch.float32
    # One sum a sample finds nearly all in one pass; only where it is in doubt we look closer.
    fine: Tensor = flat.sum(dim=1, dtype=wide).isfinite()
    return fine if bool(fine.all()) else flat.isfinite().all(dim=1)


def relative_change(before: Tensor, after: Tensor) -> Tensor:
    """(B,) ‖after - before‖ / ‖after‖, in float32.

    >>> relative_change(torch.zeros(1, 2, 3), torch.ones(1, 2, 3))
    tensor([1.])
    """
    old, new = before.flatten(1).float(), after.flatten(1).float()
    moved: Tensor = torch.linalg.vector_norm(new - old, dim=1)
    length: Tensor = torch.linalg.vector_norm(new, dim=1)
    return moved / length.clamp_min(1e-30)


def like(net: Net, inputs: Tensor) -> Tensor:
    """The inputs on the network's device and in its precision.

    >>> like(net.double(), x).dtype
    torch.float64
    """
    if isinstance(net, torch.nn.Module):
        weight = next(iter(net.parameters()), None)
        if weight is not None:
            return inputs.to(weight.device, weight.dtype)
    return inputs
