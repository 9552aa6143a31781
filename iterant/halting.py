"""When to stop, per sample.

    >>> iterant.solve(net, x, rule=StableAnswer(patience=5)).steps

A rule is a small frozen object; `Rule.start` gives its state on one batch. The state is updated
with every iteration and says which samples are done, and the answer of each: usually that of the
iteration at which it stopped, for `MostConfident` that of the best one so far.

``rule.reason`` is why a sample stopped. `Resting`, the default of `iterant.solve`, and `ExactRest`
have the reason "settled": the state has converged to a fixed point, or to a short cycle whose
answers agree, so more iterations give the same answer. An answer that has stayed the same for a
while (`StableAnswer`) can still change when information from distant positions arrives.

Shapes: B batch, *S space.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

import torch
from torch import Tensor

from iterant.engine import Thought
from iterant.errors import UsageError
from iterant.nets.protocol import depth_of, last_change_of, readout_of


class RuleState:
    """The state of a rule on one batch; the answer is that of the latest iteration.

    A rule may see a fast form of the network (`iterant.nets.fast.accelerate`), whose features are
    (B, …) with another layout than (B, W, *S). Logits and predictions are always (B, K, *S) and
    (B, *S).
    """

    def update(self, thought: Thought) -> Tensor | None:
        """(B,) bool: samples that may stop now.

        None: no sample may; a rule that knows this spares the CPU waiting for a GPU.
        """
        raise NotImplementedError

    def answer(self, thought: Thought) -> tuple[Tensor, Tensor]:
        """Prediction (B, *S) and the step (B,) it is from, if all stopped now."""
        steps = torch.full((len(thought.features),), thought.step, device=thought.features.device)
        return thought.prediction, steps

    def select(self, rows: Tensor) -> None:
        """Go on with these samples, (b,) int64 indices; the others have left the batch."""


class Rule(Protocol):
    """When to stop: ``iterant.solve(net, x, rule=Resting())``.

        >>> class Two(RuleState):       # in a file mine.py
        ...     def start(self):
        ...         return self
        ...     def update(self, thought):
        ...         return torch.full((len(thought.features),), thought.step >= 2)
        >>> iterant.solve(net, x, rule=Two()).stopped_by
        ('Two', 'Two')

    On the command line it is ``iterant solve … --halt mine:Two``; the names of ours are in
    `iterant.registry`.

    A rule may have ``reason``, a text for `iterant.solving.Answer.stopped_by`; the default is the
    name of its class. The reason "settled" promises that the answer no longer changes. A rule with
    a true attribute ``copies`` promises to clone the features that it keeps: iterations may then
    overwrite those of the one before, which is faster on a CPU.
    """

    def start(self) -> RuleState:
        """The state before the first iteration of a batch."""


SETTLED = "settled"
"""The reason of a rule that is met only where more iterations give the same answer."""


@dataclass(frozen=True)
class Fixed(RuleState):
    """Stop after a number of iterations; None: only the budget ends it."""

    reason: ClassVar[str] = "fixed iterations"
    copies: ClassVar[bool] = True
    steps: int | None = None

    def __post_init__(self) -> None:
        if self.steps is not None and self.steps < 1:
            raise UsageError(f"a fixed number of iterations is 1 or more, got {self.steps}")

    def start(self) -> RuleState:
        return self  # it remembers nothing

    def update(self, thought: Thought) -> Tensor | None:
        if self.steps is None or thought.step < self.steps:
            return None
        features = thought.features
        return torch.ones(len(features), dtype=torch.bool, device=features.device)


@dataclass(frozen=True)
class StableAnswer:
    """Stop when the decoded answer has stayed the same for ``patience`` further iterations.

    The state may still move, and the answer change later: the sample is not settled.
    """

    reason: ClassVar[str] = "stable answer"
    copies: ClassVar[bool] = True
    patience: int = 30

    def __post_init__(self) -> None:
        if self.patience < 1:
            raise UsageError(f"patience must be 1 or more, got {self.patience}")

    def start(self) -> RuleState:
        return _StableState(self.patience)


class _StableState(RuleState):
    def __init__(self, patience: int) -> None:
        self.patience = patience
        self.previous: Tensor | None = None
        """(B, *S): the latest answer"""
        self.unchanged = torch.empty(0)
        """(B,) int64: for how many iterations it has been the same"""

    def update(self, thought: Thought) -> Tensor:
        now = thought.prediction
        if self.previous is None:
            self.unchanged = torch.zeros(len(now), dtype=torch.int64, device=now.device)
        else:
            same = (now == self.previous).flatten(1).all(dim=1)
            self.unchanged = (self.unchanged + 1) * same
        self.previous = now
        return self.unchanged >= self.patience

    def select(self, rows: Tensor) -> None:
        if self.previous is not None:
            self.previous, self.unchanged = self.previous[rows], self.unchanged[rows]


_WINDOW = 16
"""Iterations over which a state must not change, and the longest period of a cycle."""


@dataclass(frozen=True)
class Resting:
    """Stop a sample when it is settled: its state is at rest, or in a cycle that keeps its answer.

        >>> iterant.solve(net, x, rule=Resting(tolerance=1e-4)).settled
        tensor([True, True])

    At rest: the sum over the last 16 iterations of max|Δφ| is at most tolerance * max(1, max|φ|),
    where φ are the features of a sample. A sum bounds the distance from the state 16 iterations
    ago, so slow drift is not mistaken for rest. The maximum is used instead of a norm because the
    last wave through a large problem is a small part of a norm.

    In a cycle: for 32 iterations the state returns to within ``tolerance`` of an earlier one every
    p iterations, p at most 16, and all answers of the last 16 iterations are equal. Cycles are
    looked for at intervals of a quarter of the iterations done, so that looking costs little.

    NaN and infinity count as changed. A network of fixed depth never settles: its layers differ,
    so a layer that changes nothing says nothing about the next.
    """

    reason: ClassVar[str] = SETTLED
    copies: ClassVar[bool] = True
    tolerance: float = 1e-4

    def __post_init__(self) -> None:
        if not 0 < self.tolerance <= 0.1:
            raise UsageError(f"the tolerance must be at most 0.1 and above 0, got {self.tolerance}")

    def start(self) -> RuleState:
        return _RestState(self.tolerance)


class _RestState(RuleState):
    def __init__(self, tolerance: float) -> None:
        self.tolerance = tolerance
        self.previous: Tensor | None = None
        """(B, N): the latest features, flattened"""
        self.changes: Tensor | None = None
        """(B, 16): the largest change of any feature in each of the last 16 iterations"""
        self.cycle = _Cycle(tolerance)

    def update(self, thought: Thought) -> Tensor | None:
        if depth_of(thought.net) is not None:
            return None
        rest, cycle = self._rest(thought), self.cycle.update(thought)
        return rest if cycle is None else rest | cycle.to(rest.device)

    def _rest(self, thought: Thought) -> Tensor:
        """(B,) bool: samples at rest; on the device on which the network reports its changes."""
        change = last_change_of(thought.net)
        if change is None:  # then `step` returned a new tensor: no need to clone it
            now = thought.features.flatten(1)
            before, self.previous = self.previous, now
            change = (now if before is None else now - before).abs().amax(dim=1)
            if before is not None and before.data_ptr() == now.data_ptr():
                # The network overwrites its features, against the protocol: the change is not
                # known. `_Cycle`, which clones its states, still finds rest.
                change = torch.full_like(change, torch.inf)
        if self.changes is None:  # the change of the first iteration is not known
            self.changes = change.new_full((len(change), _WINDOW), torch.inf)
        else:
            self.changes[:, thought.step % _WINDOW] = change
        return _near(self.changes.sum(dim=1), thought, self.tolerance)

    def select(self, rows: Tensor) -> None:
        self.cycle.select(rows)
        if self.changes is not None:
            self.changes = self.changes[rows.to(self.changes.device)]
        if self.previous is not None:
            self.previous = self.previous[rows]


class _Cycle:
    """Find samples in a cycle: compare the states of 32 iterations with one earlier state."""

    def __init__(self, tolerance: float) -> None:
        self.tolerance = tolerance
        self.next_anchor = _WINDOW
        """The iteration whose state is the next anchor"""
        self.anchor: Tensor | None = None
        """(B, N): the earlier state; None between two comparisons"""
        self.near: list[Tensor] = []
        """(B,) bool for each iteration since the anchor: whether its state is near the anchor"""
        self.prediction: Tensor | None = None
        """(B, *S): the answer 16 iterations after the anchor"""
        self.same: Tensor = torch.empty(0)
        """(B,) bool: whether all later answers are equal to ``prediction``"""

    def update(self, thought: Thought) -> Tensor | None:
        """(B,) bool: samples in a cycle; None: not known yet."""
        now = thought.features.flatten(1)
        if self.anchor is None:
            if thought.step >= self.next_anchor:
                self.anchor = now.clone()  # the network may overwrite its features
            return None
        distance = (now - self.anchor).abs().amax(dim=1)
        self.near.append(_near(distance, thought, self.tolerance))
        if len(self.near) == _WINDOW:
            if not bool(_returns(self.near).any()):
                self._end(thought.step)
                return None
            self.prediction, self.same = thought.prediction, torch.ones_like(self.near[0])
        elif self.prediction is not None:
            self.same &= (thought.prediction == self.prediction).flatten(1).all(dim=1)
        if len(self.near) < 2 * _WINDOW:
            return None
        in_cycle = _returns(self.near) & self.same
        self._end(thought.step)
        return in_cycle

    def _end(self, step: int) -> None:
        self.anchor, self.prediction, self.near = None, None, []
        self.next_anchor = step + max(1, step // 4)

    def select(self, rows: Tensor) -> None:
        if self.anchor is not None:
            self.anchor, self.near = self.anchor[rows], [near[rows] for near in self.near]
            if self.prediction is not None:
                self.prediction, self.same = self.prediction[rows], self.same[rows]


def _returns(near: list[Tensor]) -> Tensor:
    """(B,) bool: whether the state returns to the anchor every p iterations, for some p up to 16.

    ``near``: (B,) bool for each iteration since the anchor, whether its state is near the anchor.
    """
    is_near = torch.stack(near)  # (T, B)
    age = torch.arange(1, len(near) + 1, device=is_near.device)[:, None]
    # argmax of all False is 0: the period is then 1, and the test below fails at age 1.
    period = is_near[:_WINDOW].int().argmax(dim=0) + 1
    return (is_near | (age % period != 0)).all(dim=0)


def _near(distance: Tensor, thought: Thought, tolerance: float) -> Tensor:
    """(B,) bool: whether a distance (B,) is at most ``tolerance`` * max(1, largest feature).

    False for distances that are NaN or infinite.
    """
    if last_change_of(thought.net) is not None:
        # No need to look at all features for the largest: see `last_change_of`.
        return distance <= tolerance
    scale = thought.features.flatten(1).abs().amax(dim=1).clamp_min(1)
    return (distance <= tolerance * scale) & distance.isfinite()


@dataclass(frozen=True)
class ExactRest(RuleState):
    """Stop a sample when none of its features changes any more.

    Only for networks that report their changes (`last_change_of`): local rules and max-plus
    networks in their fast forms. These compute every cell by itself, so removing samples does not
    change a bit of the others. With other networks no sample stops.
    """

    reason: ClassVar[str] = SETTLED
    copies: ClassVar[bool] = True

    def start(self) -> RuleState:
        return self  # it remembers nothing

    def update(self, thought: Thought) -> Tensor | None:
        change = last_change_of(thought.net)
        return None if change is None else change == 0  # NaN is a change


@dataclass(frozen=True)
class MostConfident:
    """Use the whole budget; answer as at the most confident iteration, the latest on a tie.

    The confidence of an iteration is the sum of the largest class probability over the positions
    that count: the paper's exit rule for networks that overthink.
    """

    copies: ClassVar[bool] = True

    def start(self) -> RuleState:
        return _ConfidentState()


class _ConfidentState(RuleState):
    def __init__(self) -> None:
        self.best: tuple[Tensor, Tensor, Tensor] | None = None
        """Confidence (B,), prediction (B, *S) and step (B,) of the best iteration so far"""

    def update(self, thought: Thought) -> None:
        latest = (confidence(thought), *super().answer(thought))
        if self.best is None:
            self.best = latest
        else:
            better = latest[0] >= self.best[0]
            confident, prediction, steps = (
                torch.where(better.view(-1, *[1] * (new.dim() - 1)), new, old)
                for new, old in zip(latest, self.best, strict=True)
            )
            self.best = (confident, prediction, steps)

    def answer(self, thought: Thought) -> tuple[Tensor, Tensor]:
        return super().answer(thought) if self.best is None else self.best[1:]

    def select(self, rows: Tensor) -> None:
        if self.best is not None:
            confident, prediction, steps = self.best
            self.best = (confident[rows], prediction[rows], steps[rows])


def confidence(thought: Thought) -> Tensor:
    """(B,): the largest class probability, summed over the positions that count."""
    # In float16 the sum of 100,000 positions would overflow; in bfloat16 most sums would be equal.
    wide = torch.promote_types(thought.logits.dtype, torch.float32)
    probability = thought.logits.to(wide).softmax(dim=1).amax(dim=1)
    counted = readout_of(thought.net).counted(thought.inputs)
    return (probability if counted is None else probability * counted).flatten(1).sum(dim=1)
