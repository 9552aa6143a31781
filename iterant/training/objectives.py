"""Training objectives: the loss, and what one optimizer step minimises.

    >>> objective = Progressive(Recipe(iterations=30, alpha=1.0))
    >>> loss = objective.run(unroll, inputs, targets, StepRng(seed=0, step=0))

To change the loss, change this file: `Criterion` is the loss of one decoded answer, `segment_loss`
that of a segment of iterations, `Progressive` the paper's Algorithm 1, `RunTimeWeighted` the loss
that it is compared with, and `ReplayPool` ours. An objective calls two methods of an `Unroll`:
forward without gradients, and forward with backward. A local rule with message passing is unrolled
faster on a CPU (`nets/fast/sparse_training.py`), where only messages have gradients: a loss that
uses features, as the change penalty does, must not go there (`Unroll.forward_backward`). CUDA
graphs are in `cuda_graphs.py`. `bench.py` restates the progressive loss on purpose, and a test
compares the two.

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
from iterant.errors import RecipeError, UsageError
from iterant.nets.fast.sparse_training import MessageTrajectory
from iterant.nets.protocol import Net, readout_of
from iterant.rng import StepRng
from iterant.training.data import to_device
from iterant.training.distributed import ALONE, ProcessGroup
from iterant.training.recipe import Recipe

_MASKED = -1e4
"""Score of positions that do not count, before a softmax over positions."""
_NOISES = 32
"""Number of noise tensors, drawn once per run: drawing new ones would cost more than the step."""


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


def per_sample(values: Tensor, like: Tensor) -> Tensor:
    """(B,) as (B, 1, …): to broadcast one value per sample over a tensor ``like`` (B, …)."""
    return values.view(-1, *[1] * (like.dim() - 1))


def iterate(
    net: Net, inputs: Tensor, start: State, steps: int, noise: Tensor | None = None
) -> Iterator[Tensor]:
    """The features after each iteration; ``noise`` is added before every one."""
    features, memory = start.features, net.read(inputs)
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
            rows = per_sample(restart, state.features)
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


class ReplayPool(Objective):
    """Training from states that are hundreds of iterations old; the recipe's fields ``pool_…``.

    The pool's slots hold problems with their present states. An optimizer step draws a batch of
    slots, puts new problems into some of them, corrupts the states of others, runs k more
    iterations with gradients, takes the loss and writes the states back. It needs neither a prefix
    without gradients nor a full unroll, and trains on states that an unroll never reaches.

    Corruptions (zeros, noise, another slot's state) teach a network to recover from any state: far
    from the ends of a large problem, states arise that no small problem leads to by itself.

    The slots are created at the first step and are part of the checkpoint.
    """

    def __init__(self, recipe: Recipe, processes: ProcessGroup = ALONE) -> None:
        super().__init__(recipe, processes)
        self.longest = recipe.pool_longest or recipe.iterations
        self.slots: dict[str, Tensor] = {}
        """One row per slot: inputs, targets, features, filled (False: the next iteration starts at
        the projection) and, with ``pool_until_solved``, solved (was the last answer right?)"""
        self._noise: Tensor | None = None
        if recipe.pool_new_fraction == 0:
            raise RecipeError("pool_new_fraction = 0 never sees a new problem; try 0.3")
        if recipe.batch_size > recipe.pool_slots:
            raise RecipeError(
                f"a batch of {recipe.batch_size} does not fit a pool of {recipe.pool_slots} slots"
            )
        if recipe.pool_shortest > self.longest:
            raise RecipeError(
                "a segment needs pool_shortest <= pool_longest, "
                f"got {recipe.pool_shortest} and {self.longest}"
            )

    @property
    def new_problems(self) -> int:
        """The share ``pool_new_fraction`` of the batch, at least one problem."""
        return max(1, round(self.recipe.batch_size * self.recipe.pool_new_fraction))

    def run(self, unroll: Unroll, inputs: Tensor, targets: Tensor, rng: StepRng) -> Tensor:
        recipe, fresh = self.recipe, len(inputs)
        if not self.slots:
            self._create(unroll.net, inputs, targets)
        pool = self.slots
        slots = torch.from_numpy(rng.choose(recipe.batch_size, recipe.pool_slots, "slots"))
        rows = to_device(slots, inputs.device)  # (B,); new problems go into the first ones
        # The last of the new problems are used once: their slots get their old content back.
        once = rows[round(fresh * recipe.pool_insert_fraction) : fresh]
        previous = {name: column[once] for name, column in pool.items()} if len(once) else {}
        self._insert(rows[:fresh], inputs, targets)
        features = self._corrupted(rows, rng)
        shard = self.processes.shard(rows)
        k = rng.integer(recipe.pool_shortest, self.longest, "stretch")
        weights = (1 / k,) * k if recipe.pool_all_losses else ()
        result = unroll.forward_backward(
            pool["inputs"][shard],
            pool["targets"][shard],
            Segment(k, weights=weights, change_penalty=recipe.pool_change_penalty),
            state=State(self.processes.shard(features)),
            restart=~pool["filled"][shard],
            noise=self.processes.shard(self._step_noise(rows, rng)) if recipe.pool_noise else None,
        )
        end = self.processes.gather(result.states[-1].features)
        pool["features"][rows] = end.to(pool["features"].dtype)
        pool["filled"].index_fill_(0, rows, True)
        if "solved" in pool:
            pool["solved"][rows] = self._solved(unroll.net, rows)
        for name, column in previous.items():
            pool[name][once] = column
        return result.loss

    @torch.no_grad()
    def _create(self, net: Net, inputs: Tensor, targets: Tensor) -> None:
        """Fill the slots with the first step's problems, repeated, without states."""
        count = self.recipe.pool_slots
        index = torch.arange(count, device=inputs.device) % len(inputs)
        features = net.start(inputs[:1])
        self.slots = {
            "inputs": inputs[index],
            "targets": targets[index],
            "features": features.new_zeros(count, *features.shape[1:]),
            "filled": torch.zeros_like(index, dtype=torch.bool),
        }
        if self.recipe.pool_until_solved:
            self.slots["solved"] = torch.ones_like(index, dtype=torch.bool)

    def _insert(self, rows: Tensor, inputs: Tensor, targets: Tensor) -> None:
        """Put new problems into these slots; with ``pool_until_solved`` only where one is solved.

        The last share ``pool_stale_fraction`` of them starts from the state in its slot.
        """
        restart = rows[: round(len(rows) * (1 - self.recipe.pool_stale_fraction))]
        self.slots["filled"].index_fill_(0, restart, False)
        for name, new in (("inputs", inputs), ("targets", targets)):
            column = self.slots[name]
            if "solved" in self.slots:  # torch.where, because indexing by a mask synchronises
                replace = per_sample(self.slots["solved"][rows], column)
                new = torch.where(replace, new, column[rows])
            column[rows] = new

    def _corrupted(self, rows: Tensor, rng: StepRng) -> Tensor:
        """(B, W, *S): the states of these slots, some of them corrupted."""
        features, recipe = self.slots["features"][rows], self.recipe
        if not recipe.pool_corrupt_fraction:
            return features
        generator, device = rng.generator("damage"), features.device
        # Everything is drawn for all rows, on the CPU: the same draws on every device.
        count = len(rows)
        hit = torch.rand(count, generator=generator) < recipe.pool_corrupt_fraction
        kind = torch.randint(3, (count,), generator=generator).where(hit, -1)
        other = torch.randint(recipe.pool_slots, (count,), generator=generator)
        which_noise = torch.randint(_NOISES, (count,), generator=generator)
        noise = self._unit_noise(rng)[to_device(which_noise, device)]
        another = self.slots["features"][to_device(other, device)]
        kind = per_sample(to_device(kind, device), features)
        for number, corrupted in enumerate((torch.zeros_like(features), noise, another)):
            features = torch.where(kind == number, corrupted, features)
        return features

    def _step_noise(self, rows: Tensor, rng: StepRng) -> Tensor:
        """(B, W, *S): noise for every iteration of this segment."""
        generator, features = rng.generator("shake"), self.slots["features"]
        which = torch.randint(_NOISES, (len(rows),), generator=generator)
        shifts = [int(torch.randint(side, (), generator=generator)) for side in features.shape[2:]]
        unit = self._unit_noise(rng)[to_device(which, features.device)]
        noise = self.recipe.pool_noise * unit.roll(shifts, tuple(range(2, unit.dim())))
        if not self.recipe.pool_noise_varied:
            return noise
        strength = torch.rand(len(rows), generator=generator, dtype=noise.dtype)
        return noise * per_sample(to_device(strength, noise.device), noise)

    def _unit_noise(self, rng: StepRng) -> Tensor:
        """(32, W, *S): unit Gaussian noise."""
        if self._noise is None:
            features = self.slots["features"]
            generator = StepRng(rng.seed, 0).generator("noise")
            shape = (_NOISES, *features.shape[1:])
            self._noise = torch.randn(shape, generator=generator).to(features)
        return self._noise

    @torch.no_grad()
    def _solved(self, net: Net, rows: Tensor) -> Tensor:
        """(rows,) bool: whether the states of these slots decode to the right answer."""
        inputs, targets, features = (
            self.slots[name][rows] for name in ("inputs", "targets", "features")
        )
        right = readout_of(net).predict(net.answer(features), inputs) == targets
        return right.flatten(1).all(dim=1)

    def tensors(self) -> dict[str, Tensor]:
        return self.slots

    def restore(self, tensors: dict[str, Tensor]) -> None:
        """Restore the slots of a checkpoint; without any, start with an empty pool."""
        self.slots = tensors
