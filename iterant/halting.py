"""When to stop, decided for every sample by itself.

    >>> for thought in until(StableAnswer(patience=5), think(net, x, steps=1000)):
    ...     pass

A rule is a small frozen object; `Rule.watch` starts it on a batch. The watch sees every thought,
says which samples are done, and gives the answer of each: usually that of the moment it stopped,
for `MostConfident` that of the best moment so far.

Shapes: B batch, *S space.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from iterant.engine import Thought
from iterant.errors import UsageError
from iterant.nets.protocol import moved_of, readout_of


class Watch(Protocol):
    """A rule at work on one batch."""

    def see(self, thought: Thought) -> Tensor:
        """(B,) bool: samples whose thinking may stop now."""

    def answer(self, thought: Thought) -> tuple[Tensor, Tensor]:
        """Prediction (B, *S) and the step (B,) that it comes from, were all to stop now."""

    def keep(self, rows: Tensor) -> None:
        """Go on with these samples only: the others have left the batch."""


@runtime_checkable
class Foreseen(Protocol):
    """A watch that knows, without looking at numbers, when nobody can be done."""

    def none_done(self, step: int) -> bool:
        """Whether no sample is done after this iteration: a GPU need not be asked."""


class Rule(Protocol):
    """When to stop: ``iterant.solve(net, x, rule=Resting())``."""

    def watch(self) -> Watch:
        """Begin to watch a batch."""


def _now(thought: Thought) -> tuple[Tensor, Tensor]:
    steps = torch.full((len(thought.features),), thought.step, device=thought.features.device)
    return thought.prediction, steps


@dataclass(frozen=True)
class Fixed:
    """Stop after a number of iterations; None: never, the budget ends it."""

    steps: int | None = None

    def __post_init__(self) -> None:
        """Refuse a budget that no iteration fits in."""
        if self.steps is not None and self.steps < 1:
            raise UsageError(f"a fixed number of iterations is 1 or more, got {self.steps}")

    def watch(self) -> Watch:
        """Begin to watch a batch."""
        return _FixedWatch(self)


class _FixedWatch:
    def __init__(self, rule: Fixed) -> None:
        self.rule = rule

    def see(self, thought: Thought) -> Tensor:
        done = not self.none_done(thought.step)
        return torch.full((len(thought.features),), done, device=thought.features.device)

    def none_done(self, step: int) -> bool:
        return self.rule.steps is None or step < self.rule.steps

    def answer(self, thought: Thought) -> tuple[Tensor, Tensor]:
        return _now(thought)

    def keep(self, rows: Tensor) -> None:
        pass


@dataclass(frozen=True)
class StableAnswer:
    """Stop when the decoded answer has stayed the same for ``patience`` further iterations."""

    patience: int = 30

    def __post_init__(self) -> None:
        """Refuse a patience that would stop at once."""
        if self.patience < 1:
            raise UsageError(f"patience must be 1 or more, got {self.patience}")

    def watch(self) -> Watch:
        """Begin to watch a batch."""
        return _StableWatch(self)


class _StableWatch:
    def __init__(self, rule: StableAnswer) -> None:
        self.rule = rule
        self.previous: Tensor | None = None
        self.unchanged: Tensor | None = None

    def see(self, thought: Thought) -> Tensor:
        now = thought.prediction
        if self.previous is None or self.unchanged is None:
            self.unchanged = torch.zeros(len(now), dtype=torch.int64, device=now.device)
        else:
            same = (now == self.previous).flatten(1).all(dim=1)
            self.unchanged = (self.unchanged + 1) * same
        self.previous = now
        return self.unchanged >= self.rule.patience

    def answer(self, thought: Thought) -> tuple[Tensor, Tensor]:
        return _now(thought)

    def keep(self, rows: Tensor) -> None:
        if self.previous is not None and self.unchanged is not None:
            self.previous, self.unchanged = self.previous[rows], self.unchanged[rows]


@dataclass(frozen=True)
class SettledFeatures:
    """Stop when an iteration moves the features by at most ``tolerance`` of their own norm.

    Networks can be right and cycle for ever between two states: this rule then never stops them,
    `StableAnswer` does.
    """

    tolerance: float = 1e-3

    def __post_init__(self) -> None:
        """Refuse a tolerance that nothing can meet."""
        if not self.tolerance > 0:
            raise UsageError(f"the tolerance must be above 0, got {self.tolerance}")

    def watch(self) -> Watch:
        """Begin to watch a batch."""
        return _SettledWatch(self)


class _SettledWatch:
    def __init__(self, rule: SettledFeatures) -> None:
        self.rule = rule
        self.previous: Tensor | None = None

    def see(self, thought: Thought) -> Tensor:
        now = thought.features.flatten(1)
        if self.previous is None:
            done = torch.zeros(len(now), dtype=torch.bool, device=now.device)
        else:
            moved = torch.linalg.vector_norm(now - self.previous, dim=1)
            done = moved <= self.rule.tolerance * torch.linalg.vector_norm(now, dim=1)
            done &= moved.isfinite()  # features that explode meet in infinity, and do not rest
        self.previous = now
        return done

    def answer(self, thought: Thought) -> tuple[Tensor, Tensor]:
        return _now(thought)

    def keep(self, rows: Tensor) -> None:
        if self.previous is not None:
            self.previous = self.previous[rows]


_LOOK, _LOOKS = 8, 32
"""Iterations between two looks at an answer, at the least; looks that are enough for a patience."""


@dataclass(frozen=True)
class Resting:
    """Stop when no feature anywhere moves by more than ``tolerance`` of the largest, or of 1.

    An answer can stand for long while knowledge still travels through a corridor, and a small part
    of a large problem hardly shows in a norm: here the part that moves most decides. A network that
    cycles for ever is stopped once its answer was the same, every time it was looked at, for
    ``patience`` iterations; looking costs more than thinking, so that is every eighth iteration, or
    32 times within the patience where that is less often.
    """

    tolerance: float = 1e-4
    patience: int = 300

    def __post_init__(self) -> None:
        """Refuse a tolerance that nothing can meet and a patience that would stop at once."""
        if not self.tolerance > 0:
            raise UsageError(f"the tolerance must be above 0, got {self.tolerance}")
        if self.patience < 1:
            raise UsageError(f"patience must be 1 or more, got {self.patience}")

    def watch(self) -> Watch:
        """Begin to watch a batch."""
        return _RestingWatch(self)


class _RestingWatch:
    def __init__(self, rule: Resting) -> None:
        self.rule = rule
        self.look = max(_LOOK, rule.patience // _LOOKS)
        self.stable = StableAnswer(-(-rule.patience // self.look)).watch()
        self.previous: Tensor | None = None
        self.begun = False

    def see(self, thought: Thought) -> Tensor:
        features = thought.features
        done = torch.zeros(len(features), dtype=torch.bool, device=features.device)
        if thought.step % self.look == 0:
            done = self.stable.see(thought)
        if (moved := moved_of(thought.net)) is not None:
            begun, self.begun = self.begun, True
            return done | (moved <= self.rule.tolerance) if begun else done
        now = features.flatten(1)
        before, self.previous = self.previous, now
        if before is None:
            return done
        scale = now.abs().amax(dim=1).clamp_min(1)
        return done | ((now - before).abs().amax(dim=1) <= self.rule.tolerance * scale)

    def answer(self, thought: Thought) -> tuple[Tensor, Tensor]:
        return _now(thought)

    def keep(self, rows: Tensor) -> None:
        self.stable.keep(rows)
        if self.previous is not None:
            self.previous = self.previous[rows]


@dataclass(frozen=True)
class MostConfident:
    """Never stop before the budget; answer as at the most confident iteration, the later on a tie.

    The confidence of an iteration is the sum of the largest class probability over the positions
    that count: the paper's exit rule for networks that overthink.
    """

    def watch(self) -> Watch:
        """Begin to watch a batch."""
        return _ConfidentWatch()


class _ConfidentWatch:
    def __init__(self) -> None:
        self.best: tuple[Tensor, Tensor, Tensor] | None = None

    def see(self, thought: Thought) -> Tensor:
        now = confidence(thought)
        prediction, steps = _now(thought)
        if self.best is None:
            self.best = (now, prediction, steps)
        else:
            best, answer, when = self.best
            better = now >= best
            spread = better.view(-1, *[1] * (prediction.dim() - 1))
            self.best = (
                torch.where(better, now, best),
                torch.where(spread, prediction, answer),
                torch.where(better, steps, when),
            )
        return torch.zeros(len(now), dtype=torch.bool, device=now.device)

    def none_done(self, step: int) -> bool:
        return True

    def answer(self, thought: Thought) -> tuple[Tensor, Tensor]:
        return _now(thought) if self.best is None else self.best[1:]

    def keep(self, rows: Tensor) -> None:
        if self.best is not None:
            confident, answer, when = self.best
            self.best = (confident[rows], answer[rows], when[rows])


def confidence(thought: Thought) -> Tensor:
    """(B,): the largest class probability, summed over the positions that count."""
    surest = thought.logits.softmax(dim=1).amax(dim=1)
    counted = readout_of(thought.net).counted(thought.inputs)
    return (surest if counted is None else surest * counted).flatten(1).sum(dim=1)


def until(rule: Rule, thoughts: Iterable[Thought]) -> Iterator[Thought]:
    """The thoughts up to the first at which every sample has been done once."""
    watch, done = rule.watch(), None
    for thought in thoughts:
        now = watch.see(thought)
        done = now if done is None else done | now
        yield thought
        if bool(done.all()):
            return
