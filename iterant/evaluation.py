"""Accuracy by iteration, streamed: nothing is kept of an iteration but who was right.

>>> curve = evaluate(net, task, size=59, count=1000, seed=1, max_steps=1000)
>>> curve.accuracy[29], curve.peak            # after 30 iterations; (step, accuracy)
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from iterant.engine import think
from iterant.errors import UsageError
from iterant.nets.protocol import Net, depth_of
from iterant.tasks.protocol import Batch, Size, Task

POSITIONS_AT_ONCE = 1 << 20
"""Positions of a batch that are thought about together; bounds the memory, not the answer."""


@dataclass(frozen=True)
class Curve:
    """How many problems were solved after each iteration that was asked for."""

    steps: tuple[int, ...]
    """The iterations, from the first"""
    solved: Tensor
    """(steps,) int64: problems solved after each"""
    count: int
    """Problems in all"""
    change: float
    """Mean over problems of ‖Δφ‖ / ‖φ‖ at the last iteration: 0 where thinking has settled"""

    @property
    def accuracy(self) -> Tensor:
        """(steps,) float64: the share solved after each iteration."""
        return self.solved.double() / self.count

    @property
    def peak(self) -> tuple[int, float]:
        """The iteration with the highest accuracy, the earliest of equals, and that accuracy."""
        best = int(self.solved.argmax())
        return self.steps[best], float(self.accuracy[best])

    def at(self, step: int) -> float:
        """The accuracy after an iteration that was asked for."""
        if step not in self.steps:
            raise UsageError(f"iteration {step} was not evaluated; there are {self.steps}")
        return float(self.accuracy[self.steps.index(step)])


def evaluate(
    net: Net,
    task: Task,
    *,
    size: Size | None = None,
    count: int = 1000,
    seed: int = 1,
    max_steps: int = 1000,
    progress: Callable[[int, int], None] | None = None,
) -> Curve:
    """Accuracy after each of ``max_steps`` iterations on fresh problems of one size."""
    batch = task.sample(count, size=size, seed=seed)
    return judge(net, task, batch, steps=max_steps, progress=progress)


@torch.no_grad()
def judge(
    net: Net,
    task: Task,
    batch: Batch,
    *,
    steps: int,
    at: Collection[int] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Curve:
    """Think ``steps`` iterations about every problem; answers are decoded ``at`` these only.

    None decodes all of them. Inputs are moved to the network's device and precision in portions.
    Networks of fixed depth take at most that depth.
    """
    depth = depth_of(net)
    budget = steps if depth is None else min(steps, depth)
    if budget < 1:
        raise UsageError(f"accuracy needs at least 1 iteration, got {steps}")
    marks = (
        tuple(range(1, budget + 1)) if at is None else tuple(sorted({min(s, budget) for s in at}))
    )
    place = {step: index for index, step in enumerate(marks)}
    solved = torch.zeros(len(marks), dtype=torch.int64)
    changes = []
    for done, part in portions(batch):
        inputs = _like(net, part.inputs)
        before: Tensor | None = None
        for thought in think(net, inputs, steps=budget):
            if thought.step in place:
                right = task.solved(thought.prediction.cpu(), part)
                solved[place[thought.step]] += right.sum()
            if thought.step == budget - 1:
                before = thought.features
            if progress is not None:
                progress(done * budget + thought.step * len(part), len(batch) * budget)
        if before is not None:
            changes.append(relative_change(before, thought.features).cpu())
    change = float(torch.cat(changes).mean()) if changes else float("nan")
    return Curve(marks, solved, len(batch), change)


def relative_change(before: Tensor, after: Tensor) -> Tensor:
    """(B,) ‖after - before‖ / ‖after‖, in float32."""
    old, new = before.flatten(1).float(), after.flatten(1).float()
    moved: Tensor = torch.linalg.vector_norm(new - old, dim=1)
    length: Tensor = torch.linalg.vector_norm(new, dim=1)
    return moved / length.clamp_min(1e-30)


def portions(batch: Batch) -> Iterator[tuple[int, Batch]]:
    """The batch in parts that fit in memory, each with the number of problems before it."""
    positions = batch.targets[0].numel()
    size = max(1, POSITIONS_AT_ONCE // positions)
    for first in range(0, len(batch), size):
        yield first, batch[first : first + size]


def _like(net: Net, inputs: Tensor) -> Tensor:
    """The inputs on the network's device and in its precision."""
    if isinstance(net, torch.nn.Module):
        weight = next(iter(net.parameters()), None)
        if weight is not None:
            return inputs.to(weight.device, weight.dtype)
    return inputs
