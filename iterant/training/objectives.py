"""What is minimised, as small objects that speak in two verbs: advance and learn.

    >>> loss = Progressive(iterations=30, alpha=1.0).run(hands, update)

`Progressive` is the paper's Algorithm 1, `RunTimeWeighted` the loss it compares itself with. The
replay pool has a file of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from iterant.errors import RecipeError
from iterant.training.distributed import ProcessGroup
from iterant.training.rng import StepRng
from iterant.training.unroll import Segment, Unroll


@dataclass(frozen=True)
class Update:
    """What one update is given."""

    inputs: Tensor
    """The new problems, all processes' together"""
    targets: Tensor
    rng: StepRng
    processes: ProcessGroup

    def mine(self) -> tuple[Tensor, Tensor]:
        """This process's share of the problems."""
        return self.processes.mine(self.inputs), self.processes.mine(self.targets)


class Objective(Protocol):
    """What one update minimises."""

    def takes(self, batch: int) -> int:
        """How many new problems an update with this batch size needs."""

    def run(self, unroll: Unroll, update: Update) -> Tensor:
        """Add this update's gradients to the parameters; return the loss, a number."""


def _check_iterations(iterations: int) -> None:
    if iterations < 1:
        raise RecipeError(
            f"training needs at least 1 iteration, got m = {iterations}; the paper has 30"
        )


@dataclass(frozen=True)
class Progressive:
    """The paper's Algorithm 1: α of the loss after a random stretch, 1 - α of the full unroll.

    The stretch begins after n ~ U{0 … m-1} iterations without gradients and lasts
    k ~ U{1 … m-n}. At α = 1 no full unroll is run, at α = 0 no stretch. In between, the stretch
    starts from the full unroll's own features after n iterations: the same weights and the same
    start, so nothing is computed twice. ``prefix=False`` is the variant with n = 0 always.
    """

    iterations: int = 30
    alpha: float = 1.0
    prefix: bool = True

    def __post_init__(self) -> None:
        """Refuse an α that mixes nothing, and no iterations."""
        _check_iterations(self.iterations)
        if not 0 <= self.alpha <= 1:
            raise RecipeError(f"alpha must lie between 0 and 1, got {self.alpha}")

    def takes(self, batch: int) -> int:
        """Every problem of the batch is new."""
        return batch

    def draw(self, rng: StepRng) -> tuple[int, int]:
        """n and k of this update."""
        n = rng.whole(0, self.iterations - 1, "prefix") if self.prefix else 0
        return n, rng.whole(1, self.iterations - n, "stretch")

    def run(self, unroll: Unroll, update: Update) -> Tensor:
        """Add this update's gradients to the parameters; return the loss, a number."""
        inputs, targets = update.mine()
        n, k = self.draw(update.rng)
        if self.alpha == 0:
            return unroll.forward_backward(inputs, targets, Segment(self.iterations)).loss
        if self.alpha == 1:
            state = unroll.forward_no_grad(inputs, None, n) if n else None
            return unroll.forward_backward(inputs, targets, Segment(k), state=state).loss
        full = unroll.forward_backward(
            inputs, targets, Segment(self.iterations, 1 - self.alpha), keep=n
        )
        part = unroll.forward_backward(
            inputs, targets, Segment(k, self.alpha), state=full.kept if n else None
        )
        return (1 - self.alpha) * full.loss + self.alpha * part.loss


@dataclass(frozen=True)
class RunTimeWeighted:
    """A loss after every one of m iterations, weighted by i / (1 + … + m): late ones count more."""

    iterations: int = 30

    def __post_init__(self) -> None:
        """Refuse no iterations."""
        _check_iterations(self.iterations)

    def takes(self, batch: int) -> int:
        """Every problem of the batch is new."""
        return batch

    def run(self, unroll: Unroll, update: Update) -> Tensor:
        """Add this update's gradients to the parameters; return the loss, a number."""
        inputs, targets = update.mine()
        total = self.iterations * (self.iterations + 1) / 2
        each = tuple((i + 1) / total for i in range(self.iterations))
        return unroll.forward_backward(inputs, targets, Segment(self.iterations, each=each)).loss
