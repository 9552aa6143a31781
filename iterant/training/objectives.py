"""Training objectives: the loss, and what one optimizer step minimises.

    >>> objective = Progressive(Recipe(iterations=30, alpha=1.0))
    >>> loss = objective.run(unroll, inputs, targets, StepRng(seed=0, step=0))

To change the loss, change this file: `Criterion` is the loss of one decoded answer, `segment_loss`
that of a segment of iterations, `Progressive` the paper's Algorithm 1 and `RunTimeWeighted` the
loss that it is compared with. An objective calls two methods of an `Unroll`: forward without
gradients, and forward with backward. A local rule with message passing is unrolled faster on a CPU
(`nets/fast/sparse_training.py`), where only messages have gradients: a loss that uses features, as
the change penalty does, must not go there (`Unroll.forward_backward`). CUDA graphs are in
`cuda_graphs.py`, the replay pool is in `replay_pool.py`. `bench/plain.py` restates the progressive
loss on purpose, and a test compares the two.

Shapes: B batch, C channels, W width, K classes, *S space, I iterations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from iterant import registry
from iterant.engine import State
from iterant.errors import UsageError
from iterant.nets.fast.sparse_training import MessageTrajectory
from iterant.nets.protocol import Net, readout_of
from iterant.rng import StepRng
from iterant.training.distributed import ALONE, ProcessGroup
from iterant.training.recipe import Recipe

_MASKED = -1e4
"""Score of positions that do not count, before a softmax over positions."""


Loss = Callable[[Tensor, Tensor], Tensor]
"""A user-defined loss: logits (B, K, *S) and targets (B, *S) to a scalar."""


@dataclass(frozen=True)
class Criterion:
    """Cross-entropy of logits, averaged over the counted positions of a problem, then problems."""

    label_smoothing: float = 0.0
    position_loss: float = 0.0
    """Weight of a second cross-entropy, over positions: at which of them is class 1?

    Where few of many positions are of class 1, such as the two squares of a chess move, the loss by
    position is almost minimised by predicting class 0 everywhere.
    """
    loss: Loss | None = None
    """A user-defined loss instead of all this"""

    def __call__(self, net: Net, logits: Tensor, inputs: Tensor, targets: Tensor) -> Tensor:
        """The loss of logits (B, K, *S) for targets (B, *S)."""
        logits = logits if logits.dtype == torch.float64 else logits.float()
        if self.loss is not None:
            return _scalar(self.loss(logits, targets))
        counted = readout_of(net).counted(inputs)
        loss = self._by_position(logits, targets, counted)
        if self.position_loss:
            over_positions = self._over_positions(logits, targets, counted)
            loss = (1 - self.position_loss) * loss + self.position_loss * over_positions
        return loss

    def _by_position(self, logits: Tensor, targets: Tensor, counted: Tensor | None) -> Tensor:
        losses = functional.cross_entropy(
            logits, targets, reduction="none", label_smoothing=self.label_smoothing
        ).flatten(1)
        if counted is None:
            return losses.mean()
        weights = counted.flatten(1).to(losses.dtype)
        return ((losses * weights).sum(dim=1) / weights.sum(dim=1).clamp_min(1)).mean()

    def _over_positions(self, logits: Tensor, targets: Tensor, counted: Tensor | None) -> Tensor:
        """Softmax over positions; the target is uniform over the positions of class 1."""
        scores, is_one = logits[:, 1].flatten(1), (targets == 1).flatten(1).to(logits.dtype)
        if counted is not None:
            scores = scores.masked_fill(~counted.flatten(1), _MASKED)
        target = is_one / is_one.sum(dim=1, keepdim=True).clamp_min(1)
        target = (1 - self.label_smoothing) * target + self.label_smoothing / target.shape[1]
        return -(scores.log_softmax(dim=1) * target).sum(dim=1).mean()


def _scalar(loss: Any) -> Tensor:
    """The result of a user-defined loss, checked."""
    if not isinstance(loss, Tensor) or loss.dim() or not loss.requires_grad:
        kind = f"a tensor of shape {tuple(loss.shape)}" if isinstance(loss, Tensor) else repr(loss)
        raise UsageError(
            f"a loss is a scalar tensor with a gradient, got {kind:.80}; take the mean, for example"
        )
    return loss


@dataclass(frozen=True)
class Segment:
    """Consecutive iterations with gradients, and where the loss is taken."""

    steps: int
    weight: float = 1.0
    """Factor of the whole loss"""
    weights: tuple[float, ...] = ()
    """Weights of the losses after each iteration; empty: one loss, after the last"""
    change_penalty: float = 0.0
    """Weight of the features' mean absolute change per iteration, added to the loss"""
    all_states: bool = False
    """Whether the result holds the state after every iteration, or only after the last"""


def segment_loss(
    net: Net,
    trajectory: Trajectory | MessageTrajectory,
    inputs: Tensor,
    targets: Tensor,
    segment: Segment,
    criterion: Criterion,
) -> Tensor:
    """The loss of a segment, with its graph."""
    if not segment.weights:
        loss = criterion(net, trajectory.logits([segment.steps]), inputs, targets)
    elif len(set(segment.weights)) == 1:
        # Decode all iterations at once: a few large kernels instead of many small ones.
        logits = trajectory.logits(range(1, segment.steps + 1))
        repeated = [x.repeat(segment.steps, *[1] * (x.dim() - 1)) for x in (inputs, targets)]
        loss = sum(segment.weights) * criterion(net, logits, repeated[0], repeated[1])
    else:
        losses = [
            weight * criterion(net, trajectory.logits([iteration]), inputs, targets)
            for iteration, weight in enumerate(segment.weights, start=1)
        ]
        loss = torch.stack(losses).sum()
    if segment.change_penalty and isinstance(trajectory, Trajectory):
        loss = loss + segment.change_penalty * trajectory.mean_change()
    return loss


def iterate(
    net: Net, inputs: Tensor, start: State, steps: int, noise: Tensor | None = None
) -> Iterator[Tensor]:
    """The features after each iteration; ``noise`` is added before every one.

    A network with a method ``segment`` computes them in one call, without gradients only the last.
    """
    features, memory = start.features, net.read(inputs)
    segment: Any = getattr(net, "segment", None)
    if segment is not None and noise is None and steps:
        yield from segment(features, memory, steps, start.step)
        return
    for index in range(start.step, start.step + steps):
        features = net.step(features if noise is None else features + noise, memory, index)
        yield features


class Trajectory:
    """The features of a segment, with their graph; `MessageTrajectory` is faster."""

    def __init__(
        self, net: Net, inputs: Tensor, start: State, steps: int, noise: Tensor | None
    ) -> None:
        self._net = net
        self._features = [start.features, *iterate(net, inputs, start, steps, noise)]

    def logits(self, iterations: Sequence[int]) -> Tensor:
        """(I * B, K, *S): the answers after these iterations, counted from 1."""
        features = [self._features[iteration] for iteration in iterations]
        return self._net.answer(features[0] if len(features) == 1 else torch.cat(features))

    def mean_change(self) -> Tensor:
        """The mean absolute change of a feature per iteration, a scalar."""
        features = torch.stack(self._features)
        return (features[1:] - features[:-1]).abs().mean()

    def features(self, iteration: int) -> Tensor:
        """(B, W, *S): the features after that iteration, detached."""
        return self._features[iteration].detach()


@dataclass(frozen=True)
class StepResult:
    """The result of a segment, detached."""

    loss: Tensor
    """The loss without the segment's weight, a scalar"""
    states: list[State]
    """The state after the last iteration, or after each; see `Segment.all_states`"""


class Unroll:
    """Runs a network's iterations for an objective; gradients add up on its parameters.

    ``scale`` is the loss scale of fp16; ``sparse``: compute only the messages between open cells.
    """

    def __init__(
        self,
        net: Net,
        criterion: Criterion | None = None,
        scale: Tensor | None = None,
        *,
        sparse: bool = False,
    ) -> None:
        self.net, self.criterion, self.scale = net, criterion or Criterion(), scale
        self.sparse = sparse

    @torch.no_grad()
    def forward_no_grad(self, inputs: Tensor, steps: int) -> State:
        """Iterate without gradients, from the projection."""
        start = state = State(self.net.start(inputs))
        for features in iterate(self.net, inputs, start, steps):
            state = State(features, steps)
        return state

    def forward_backward(
        self,
        inputs: Tensor,
        targets: Tensor,
        segment: Segment,
        *,
        state: State | None = None,
        restart: Tensor | None = None,
        noise: Tensor | None = None,
    ) -> StepResult:
        """Iterate with gradients and back-propagate the segment's loss.

        Samples that ``restart`` (B,) marks begin at the projection instead of ``state``, and train
        it. ``noise`` (B, W, *S) is added to the features before every iteration.
        """
        start = state or State(self.net.start(inputs))
        if state is not None and restart is not None:
            rows = restart.view(-1, *[1] * (state.features.dim() - 1))
            start = State(torch.where(rows, self.net.start(inputs), state.features), state.step)
        trajectory: Trajectory | MessageTrajectory
        if self.sparse and not segment.change_penalty:  # the penalty counts messages to walls, too
            trajectory = MessageTrajectory(self.net, inputs, start.features, segment.steps, noise)
        else:
            trajectory = Trajectory(self.net, inputs, start, segment.steps, noise)
        loss = segment_loss(self.net, trajectory, inputs, targets, segment, self.criterion)
        iterations = range(1, segment.steps + 1) if segment.all_states else [segment.steps]
        states = [State(trajectory.features(i), start.step + i) for i in iterations]
        del trajectory  # so that the backward pass can free the states that it has used
        weighted = loss * segment.weight
        torch.autograd.backward(weighted if self.scale is None else weighted * self.scale)
        flush = getattr(self.net, "flush", None)  # fast forms add their gradients there
        if flush is not None:
            flush()
        return StepResult(loss.detach(), states)


class Objective:
    """What one optimizer step minimises; `registry.py` has the names of all objectives.

    ``processes`` share the batch.
    """

    def __init__(self, recipe: Recipe, processes: ProcessGroup = ALONE) -> None:
        self.recipe, self.processes = recipe, processes

    @property
    def new_problems(self) -> int:
        """Number of new problems per optimizer step, over all processes."""
        return self.recipe.batch_size

    def run(self, unroll: Unroll, inputs: Tensor, targets: Tensor, rng: StepRng) -> Tensor:
        """Add one step's gradients to the parameters; return the loss, a scalar.

        Inputs and targets are the new problems of all processes together.
        """
        raise NotImplementedError

    def tensors(self) -> dict[str, Tensor]:
        """What a checkpoint must hold of the objective."""
        return {}

    def restore(self, tensors: dict[str, Tensor]) -> None:
        """Restore what `tensors` returned."""


UserObjective = type[Objective] | Loss
"""What `iterant.train` takes: a class in place of the recipe's objective, or a loss for it."""


def build_objective(
    recipe: Recipe, processes: ProcessGroup = ALONE, user: UserObjective | None = None
) -> Objective:
    """The objective that the recipe names, or of the class that the user gives."""
    kind = user if isinstance(user, type) else registry.find("objective", recipe.objective)
    objective: Objective = kind(recipe, processes)
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
        inputs, targets = self.processes.shard(inputs), self.processes.shard(targets)
        m, alpha = self.recipe.iterations, self.recipe.alpha
        n, k = self.draw(rng)
        if alpha == 0:
            return unroll.forward_backward(inputs, targets, Segment(m)).loss
        if alpha == 1:
            state = unroll.forward_no_grad(inputs, n) if n else None
            return unroll.forward_backward(inputs, targets, Segment(k), state=state).loss
        whole = Segment(m, weight=1 - alpha, all_states=True)
        full = unroll.forward_backward(inputs, targets, whole)
        state = full.states[n - 1] if n else None
        segment = Segment(k, weight=alpha)
        progressive = unroll.forward_backward(inputs, targets, segment, state=state)
        return (1 - alpha) * full.loss + alpha * progressive.loss


class RunTimeWeighted(Objective):
    """A loss after each of m iterations, the i-th weighted by i / (1 + … + m)."""

    def run(self, unroll: Unroll, inputs: Tensor, targets: Tensor, rng: StepRng) -> Tensor:
        inputs, targets = self.processes.shard(inputs), self.processes.shard(targets)
        m = self.recipe.iterations
        weights = tuple(i / (m * (m + 1) / 2) for i in range(1, m + 1))
        return unroll.forward_backward(inputs, targets, Segment(m, weights=weights)).loss
