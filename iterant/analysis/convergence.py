"""Whether thinking comes to rest: ‖Δφ‖ by iteration, and what each sample does in the end.

    >>> found = converge(net, task, batch, steps=300)
    >>> found.change[-1], found.features          # mean ‖Δφ‖; {"settled": 98, "cycling": 2, …}

A sample is settled where nothing changes any more, cycling where it comes back to where it was p
iterations ago, at each of the last iterations, and moving otherwise. Features are compared up to
a tolerance of their own norm, decoded answers exactly: right answers can rest while features
cycle. Only the last few states are kept, so memory does not grow with iterations.

Shapes: N samples, T iterations, P the longest period that is looked for.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from iterant.analysis.recovery import Tick, moved, no_tick, parts
from iterant.draw.plots import Plot, Trace
from iterant.engine import Thought, begin, think
from iterant.errors import UsageError
from iterant.evaluation.evaluator import is_finite, like
from iterant.nets.fast import fused
from iterant.nets.protocol import Net
from iterant.tasks.protocol import Batch, Task

LONGEST = 8
"""The longest period that is looked for."""
BROKEN, MOVING, SETTLED = -1, 0, 1
"""Periods that are none: features became NaN or infinite; nothing came back; every iteration."""
LEAST = 3
"""The fewest iterations from which a period can be told."""


@dataclass(frozen=True)
class Convergence:
    """How much each iteration changed, and what each sample did in the end."""

    inputs: str
    """What was thought about: "problems" or "random inputs" """
    change: Tensor
    """(T,) float64: mean ‖Δφ‖ of the samples whose features are numbers; NaN where none are"""
    periods: Tensor
    """(N,) int64 of the features: `SETTLED`, from 2 on a cycle, `MOVING` or `BROKEN`"""
    answer_periods: Tensor
    """(N,) int64 of the decoded answers, likewise"""
    broken: Tensor
    """(T,) int64: samples left out of each mean, their features being NaN or infinite"""
    solved: Tensor | None
    """(N,) bool: right at the end; None for random inputs"""

    @property
    def features(self) -> dict[str, int]:
        """How many samples' features are settled, cycling, moving, broken."""
        return classes(self.periods)

    @property
    def answers(self) -> dict[str, int]:
        """How many samples' answers are settled, cycling, moving, broken."""
        return classes(self.answer_periods)

    def figures(self) -> dict[str, Any]:
        """Everything, as JSON holds it."""
        return {
            "inputs": self.inputs,
            "samples": len(self.periods),
            "mean change": self.change.tolist(),
            "broken": self.broken.tolist(),
            "features": {**self.features, "periods": _counted(self.periods)},
            "answers": {**self.answers, "periods": _counted(self.answer_periods)},
            # Correct networks can cycle: how many are right, by what their features do.
            "solved": None if self.solved is None else classes(self.periods[self.solved]),
        }

    def headline(self) -> dict[str, str]:
        """The same in a few words, a cell each."""
        said = {
            "inputs": self.inputs,
            "last ‖Δφ‖": "–" if self.change[-1].isnan() else f"{float(self.change[-1]):.2g}",
            "features": _said(self.features, self.periods),
            "answers": _said(self.answers, self.answer_periods),
        }
        if self.solved is not None:
            said["solved"] = f"{100 * float(self.solved.double().mean()):.1f} %"
        return said

    def plots(self) -> list[tuple[Plot, Trace]]:
        """‖Δφ‖ by iteration."""
        name = f"change on {self.inputs}"
        plot = Plot(name, x_label="iterations", y_label="mean ‖Δφ‖", log=True)
        return [(plot, Trace(list(range(1, len(self.change) + 1)), self.change.tolist()))]


class _Returns:
    """Which samples came back to where they were p iterations before, at every look so far."""

    def __init__(self, longest: int, same: Callable[[Tensor, Tensor], Tensor]) -> None:
        self.ring: deque[Tensor] = deque(maxlen=longest)
        self.same, self.longest = same, longest
        self.held: list[Tensor] = []

    def see(self, now: Tensor, *, judge: bool) -> None:
        if judge:
            back = [self.same(self.ring[-period], now) for period in range(1, self.longest + 1)]
            self.held = [a & b for a, b in zip(self.held, back, strict=True)] if self.held else back
        self.ring.append(now)

    def periods(self, broken: Tensor) -> Tensor:
        """(B,) the shortest period that held, `MOVING` where none did."""
        found = torch.zeros(len(broken), dtype=torch.int64, device=broken.device)
        for period in range(self.longest, 0, -1):
            found[self.held[period - 1]] = period
        return found.masked_fill(broken, BROKEN).cpu()


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
    """Think ``steps`` iterations and look at the last of them; ``inputs`` says what the batch is.

    The last two thirds of 24 iterations, or of ``steps`` where there are fewer, are looked at,
    and periods up to a third.
    """
    if steps < LEAST:
        raise UsageError(
            f"whether thinking rests takes at least {LEAST} iterations to tell, got {steps}"
        )
    if not tolerance > 0:
        raise UsageError(f"the tolerance must be above 0, got {tolerance}")
    longest = min(LONGEST, steps // 3)
    total, counted = (torch.zeros(steps, dtype=torch.float64) for _ in range(2))
    periods, answers, solved = [], [], []
    pieces, fast = list(parts(batch)), fused(net)
    for place, part in enumerate(pieces):

        def moved_on(step: int, place: int = place) -> None:
            tick(place * steps + step, len(pieces) * steps)

        seen = _Part(longest, tolerance, steps)
        end = seen.think(fast, like(net, part.inputs), moved_on)
        total += seen.sums
        counted += seen.sounds
        broken = ~is_finite(end.features)
        periods.append(seen.features.periods(broken))
        answers.append(seen.decoded.periods(broken))
        if part.labelled:
            solved.append((task.solved(end.prediction.cpu(), part)) & ~broken.cpu())
    return Convergence(
        inputs=inputs,
        change=total / counted.masked_fill(counted == 0, float("nan")),
        periods=torch.cat(periods),
        answer_periods=torch.cat(answers),
        broken=(len(batch) - counted).long(),
        solved=torch.cat(solved) if solved else None,
    )


class _Part:
    """What one portion of the problems shows."""

    def __init__(self, longest: int, tolerance: float, steps: int) -> None:
        self.longest, self.steps = longest, steps
        self.features = _Returns(
            longest, lambda old, new: moved(old, new) <= tolerance * _norm(new)
        )
        self.decoded = _Returns(longest, lambda old, new: (old == new).flatten(1).all(dim=1))

    def think(self, net: Net, inputs: Tensor, tick: Callable[[int], None]) -> Thought:
        """Think about them; ``sums`` and ``sounds`` then hold the changes at every iteration."""
        steps, longest, state = self.steps, self.longest, begin(net, inputs)
        before = state.features
        # Kept where it is computed: a GPU that others share would be waited for at every step.
        sums, sounds = (torch.zeros(steps, dtype=torch.float64, device=inputs.device) for _ in "ab")
        for thought in think(net, inputs, steps=steps, state=state):
            change = moved(before, thought.features)
            sound = torch.isfinite(change)
            sums[thought.step - 1] = change.masked_fill(~sound, 0.0).sum()
            sounds[thought.step - 1] = sound.sum()
            before = thought.features
            if thought.step > steps - 3 * longest:
                judge = thought.step > steps - 2 * longest
                self.features.see(thought.features, judge=judge)
                self.decoded.see(thought.prediction, judge=judge)
            tick(thought.step)
        self.sums, self.sounds = sums.cpu(), sounds.cpu()
        return thought


def classes(periods: Tensor) -> dict[str, int]:
    """How many samples are of each class."""
    return {
        "settled": int((periods == SETTLED).sum()),
        "cycling": int((periods > SETTLED).sum()),
        "moving": int((periods == MOVING).sum()),
        "broken": int((periods == BROKEN).sum()),
    }


def _counted(periods: Tensor) -> dict[str, int]:
    """How many samples have each period of 2 or more."""
    found = Counter(periods[periods > SETTLED].tolist())
    return {str(period): found[period] for period in sorted(found)}


def _said(counts: dict[str, int], periods: Tensor) -> str:
    """The classes that occur, in words."""
    cycles = ", ".join(f"{count} × {period}" for period, count in _counted(periods).items())
    said = [f"{count} {name}" for name, count in counts.items() if count]
    return ", ".join(said) + (f" (periods: {cycles})" if cycles else "")


def _norm(features: Tensor) -> Tensor:
    length: Tensor = torch.linalg.vector_norm(features.flatten(1), dim=1, dtype=torch.float64)
    return length
