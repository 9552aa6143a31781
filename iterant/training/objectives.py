"""Training objectives: the loss, and what one optimizer step minimises.

    >>> objective = Progressive(Recipe(iterations=30, alpha=1.0))
    >>> loss = objective.run(unroll, inputs, targets, StepRng(seed=0, step=0))

To change the loss, change this file: `Criterion` is the loss of one decoded answer, `segment_loss`
that of a segment of iterations, `Progressive` the paper's Algorithm 1 and `RunTimeWeighted` the
loss that it is compared with. An objective calls two methods of `iterant.training.unroll.Unroll`:
forward without gradients, and forward with backward. The replay pool is in `replay_pool.py`.

`SparseUnroll` (local rules on a CPU) computes the same cross-entropy by cell instead of calling
`Criterion` and `segment_loss`: a change of these must be made there too.

Shapes: B batch, C channels, W width, K classes, *S space.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.nn import functional

from iterant import registry
from iterant.engine import State
from iterant.nets.fast.gradients import cell_rows
from iterant.nets.protocol import Net, readout_of
from iterant.rng import StepRng
from iterant.training.recipe import Recipe

if TYPE_CHECKING:
    from iterant.training.distributed import ProcessGroup
    from iterant.training.unroll import Unroll

_MASKED = -1e4
"""Score of positions that do not count, before a softmax over positions."""


@dataclass(frozen=True)
class Criterion:
    """Cross-entropy of logits, averaged over the counted positions of a problem, then problems."""

    smoothing: float = 0.0
    """Label smoothing"""
    places: float = 0.0
    """Weight of a second cross-entropy, over positions: at which of them is class 1?

    Where few of many positions are of class 1, such as the two squares of a chess move, the loss by
    position is almost minimised by predicting class 0 everywhere.
    """

    def __call__(self, net: Net, logits: Tensor, inputs: Tensor, targets: Tensor) -> Tensor:
        """The loss of logits (B, K, *S) for targets (B, *S)."""
        logits = logits if logits.dtype == torch.float64 else logits.float()
        counted = readout_of(net).counted(inputs)
        loss: Tensor | float = 0.0
        if self.places < 1:
            loss = (1 - self.places) * self._by_position(logits, targets, counted)
        if self.places > 0:
            loss = loss + self.places * self._over_positions(logits, targets, counted)
        return torch.as_tensor(loss)

    def _by_position(self, logits: Tensor, targets: Tensor, counted: Tensor | None) -> Tensor:
        losses = functional.cross_entropy(
            logits, targets, reduction="none", label_smoothing=self.smoothing
        ).flatten(1)
        if counted is None:
            return losses.mean()
        weights = counted.flatten(1).to(losses.dtype)
        return ((losses * weights).sum(dim=1) / weights.sum(dim=1).clamp_min(1)).mean()

    def by_cell(self, logits: Tensor, targets: Tensor) -> Tensor:
        """`_by_position` for logits (I, N, K) of open cells after I iterations: (I,) losses.

        ``targets`` (N, K) are rows of `cell_targets`, with smoothing and averaging in them.
        """
        logits = logits if logits.dtype == torch.float64 else logits.float()
        return -(logits.log_softmax(dim=-1) * targets).sum(dim=(1, 2))

    def cell_targets(self, net: Any, inputs: Tensor, targets: Tensor) -> Tensor:
        """(cells of all samples, K): the weight of every cell and class in the loss.

        A cell answers for all of its pixels; the mean is over a sample's counted pixels, then over
        samples.
        """
        config = net.config
        classes = functional.one_hot(targets, config.classes).movedim(-1, 1).to(inputs.dtype)
        counted = net.readout.counted(inputs)
        if counted is not None:
            classes = classes * counted[:, None]
        if config.stem > 1:
            pool = functional.avg_pool1d if config.dims == 1 else functional.avg_pool2d
            classes = pool(classes, 2, stride=2, padding=1) * 2**config.dims
        pixels = classes.sum(dim=1, keepdim=True)
        weights = (1 - self.smoothing) * classes + self.smoothing / config.classes * pixels
        total = pixels.flatten(1).sum(dim=1).clamp_min(1) * len(inputs)
        return cell_rows(weights / total.view(-1, *[1] * (weights.dim() - 1)))

    def _over_positions(self, logits: Tensor, targets: Tensor, counted: Tensor | None) -> Tensor:
        """Softmax over positions; the target is uniform over the positions of class 1."""
        scores, is_one = logits[:, 1].flatten(1), (targets == 1).flatten(1).to(logits.dtype)
        if counted is not None:
            scores = scores.masked_fill(~counted.flatten(1), _MASKED)
        target = is_one / is_one.sum(dim=1, keepdim=True).clamp_min(1)
        target = (1 - self.smoothing) * target + self.smoothing / target.shape[1]
        return -(scores.log_softmax(dim=1) * target).sum(dim=1).mean()


@dataclass(frozen=True)
class Segment:
    """Consecutive iterations with gradients, and where the loss is taken."""

    steps: int
    weight: float = 1.0
    """Factor of the whole loss"""
    weights: tuple[float, ...] = ()
    """Weights of the losses after each iteration; empty: one loss, after the last"""
    settle: float = 0.0
    """Weight of the features' mean absolute change per iteration, added to the loss"""
    path: bool = False
    """Whether the result holds all states, the start first, or only the last"""


def segment_loss(
    net: Net,
    states: Sequence[State],
    inputs: Tensor,
    targets: Tensor,
    segment: Segment,
    criterion: Criterion,
) -> Tensor:
    """The loss of a segment, with its graph; ``states`` are all of its states, the start first."""
    path = [state.features for state in states]  # each (B, W, *S)
    if not segment.weights:
        loss = criterion(net, net.answer(path[-1]), inputs, targets)
    elif len(set(segment.weights)) == 1:
        # Decode all iterations at once: a few large kernels instead of many small ones.
        logits = net.answer(torch.cat(path[1:]))
        repeated = [x.repeat(segment.steps, *[1] * (x.dim() - 1)) for x in (inputs, targets)]
        loss = sum(segment.weights) * criterion(net, logits, repeated[0], repeated[1])
    else:
        losses = [
            weight * criterion(net, net.answer(features), inputs, targets)
            for weight, features in zip(segment.weights, path[1:], strict=True)
        ]
        loss = torch.stack(losses).sum()
    if segment.settle:
        features = torch.stack(path)
        loss = loss + segment.settle * (features[1:] - features[:-1]).abs().mean()
    return loss


class Objective:
    """What one optimizer step minimises; `registry.py` has the names of all objectives."""

    def __init__(self, recipe: Recipe, processes: ProcessGroup | None = None) -> None:
        """``processes``: those that share the batch; None: this one alone."""
        self.recipe, self.processes = recipe, processes

    @property
    def new_problems(self) -> int:
        """Number of new problems per optimizer step, over all processes."""
        return self.recipe.batch

    def run(self, unroll: Unroll, inputs: Tensor, targets: Tensor, rng: StepRng) -> Tensor:
        """Add one step's gradients to the parameters; return the loss, a scalar.

        Inputs and targets are the new problems of all processes together.
        """
        raise NotImplementedError

    def shard(self, rows: Tensor) -> Tensor:
        """The rows of this process."""
        return rows if self.processes is None else self.processes.shard(rows)

    def tensors(self) -> dict[str, Tensor]:
        """What a checkpoint must hold of the objective."""
        return {}

    def restore(self, tensors: dict[str, Tensor]) -> None:
        """Restore what `tensors` returned."""


def build_objective(recipe: Recipe, processes: ProcessGroup | None = None) -> Objective:
    """The objective that the recipe names."""
    objective: Objective = registry.find("objective", recipe.objective)(recipe, processes)
    return objective


class Progressive(Objective):
    """The paper's Algorithm 1: α times the loss of a random segment, 1 - α times the full unroll.

    The segment begins after n ~ U{0 … m-1} iterations without gradients and has k ~ U{1 … m-n}.
    At α = 1 there is no full unroll, at α = 0 no segment. In between, the segment starts from the
    full unroll's own features after n iterations: same weights, same start, nothing to recompute.
    ``progressive-n0`` is the variant with n = 0.
    """

    def draw(self, rng: StepRng) -> tuple[int, int]:
        """n and k of one optimizer step."""
        m, prefix = self.recipe.iterations, self.recipe.objective != "progressive-n0"
        # The names of random streams are hashed: renaming one would change every run.
        n = rng.integer(0, m - 1, "prefix") if prefix else 0
        return n, rng.integer(1, m - n, "stretch")

    def run(self, unroll: Unroll, inputs: Tensor, targets: Tensor, rng: StepRng) -> Tensor:
        """Add one step's gradients to the parameters; return the loss, a scalar."""
        inputs, targets = self.shard(inputs), self.shard(targets)
        m, alpha = self.recipe.iterations, self.recipe.alpha
        n, k = self.draw(rng)
        if alpha == 0:
            return unroll.forward_backward(inputs, targets, Segment(m)).loss
        if alpha == 1:
            state = unroll.forward_no_grad(inputs, None, n) if n else None
            return unroll.forward_backward(inputs, targets, Segment(k), state=state).loss
        full = unroll.forward_backward(inputs, targets, Segment(m, weight=1 - alpha, path=True))
        state = full.states[n] if n else None
        segment = Segment(k, weight=alpha)
        progressive = unroll.forward_backward(inputs, targets, segment, state=state)
        return (1 - alpha) * full.loss + alpha * progressive.loss


class RunTimeWeighted(Objective):
    """A loss after each of m iterations, the i-th weighted by i / (1 + … + m)."""

    def run(self, unroll: Unroll, inputs: Tensor, targets: Tensor, rng: StepRng) -> Tensor:
        """Add one step's gradients to the parameters; return the loss, a scalar."""
        m = self.recipe.iterations
        weights = tuple(i / (m * (m + 1) / 2) for i in range(1, m + 1))
        segment = Segment(m, weights=weights)
        return unroll.forward_backward(self.shard(inputs), self.shard(targets), segment).loss
