"""The replay pool: training from states that are hundreds of iterations old.

    >>> pool = ReplayPool(slots=4096, fresh=0.3, damage=0.3, shortest=10, longest=30)

The pool's slots hold problems with their present states. An optimizer step draws a batch of slots,
puts new problems into some of them, corrupts the states of others, runs k more iterations with
gradients, takes the loss and writes the states back. It needs neither a prefix without gradients
nor a full unroll, and trains on states that an unroll never reaches.

Corruptions (zeros, noise, another slot's state …) teach a network to recover from any state:
far from the ends of a large problem, states arise that no small problem leads to by itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from iterant import registry
from iterant.engine import State
from iterant.errors import RecipeError
from iterant.nets.protocol import Net, readout_of
from iterant.training.objectives import Objective, Segment, Unroll, Update
from iterant.training.recipe import Recipe
from iterant.training.rng import StepRng, to_device

JITTER = 0.3
"""Standard deviation of the noise that jitter adds."""
_LARGEST_DISC = 0.4
"""Radius of the largest disc, as a share of the side."""
_NOISES = 32
"""Number of noise tensors, drawn once per run: drawing new ones would cost more than the step."""


@dataclass(frozen=True)
class Corruption:
    """What a kind of corruption may use; it returns a replacement for every state."""

    features: Tensor
    """(B, W, *S): the states"""
    pool: Tensor
    """(slots, W, *S): the states of all slots"""
    noise: Tensor
    """(B, W, *S): unit Gaussian noise"""
    other: Tensor
    """(B,): a random slot for each state"""
    generator: torch.Generator


def zeros(corruption: Corruption) -> Tensor:
    """Zeros instead of the state."""
    return torch.zeros_like(corruption.features)


def noise(corruption: Corruption) -> Tensor:
    """Noise instead of the state."""
    return corruption.noise


def another(corruption: Corruption) -> Tensor:
    """The state of another slot, of another problem."""
    return corruption.pool[corruption.other]


def jitter(corruption: Corruption) -> Tensor:
    """The state plus weak noise."""
    return corruption.features + JITTER * corruption.noise


def disc(corruption: Corruption) -> Tensor:
    """Zeros within a disc of random centre and of a radius from 1 to 0.4 of the side."""
    features = corruption.features
    count, _, *sides = features.shape
    drawn = torch.rand(count, len(sides) + 1, generator=corruption.generator).to(features.device)
    distance: Tensor | float = 0.0
    for axis, side in enumerate(sides):
        positions = torch.arange(side, device=drawn.device)
        off = (positions - drawn[:, axis : axis + 1] * side) ** 2
        distance = distance + off.view(count, *[1] * axis, side, *[1] * (len(sides) - axis - 1))
    radius = 1 + drawn[:, -1] * max(0.0, _LARGEST_DISC * min(sides) - 1)
    inside = distance < radius.view(-1, *[1] * len(sides)) ** 2
    return features.masked_fill(inside[:, None], 0)


@dataclass
class Slots:
    """What the pool holds, one row per slot; the field names are those of checkpoints."""

    inputs: Tensor
    targets: Tensor
    features: Tensor
    filled: Tensor
    """(slots,) bool: False where the next iteration starts at the projection"""
    solved: Tensor | None = None
    """(slots,) bool: whether the last answer was right; only kept for ``hard``"""


@dataclass
class ReplayPool:
    """The objective; its slots are created at the first step and are part of the checkpoint."""

    batch: int = 100
    slots: int = 4096
    fresh: float = 0.3
    """Share of a batch that is replaced by new problems"""
    stay: float = 1.0
    """Share of those that stay in the pool; the others' slots get back what they held"""
    swap: float = 0.0
    """Share of the new problems that start with the state of the slot's previous problem"""
    damage: float = 0.3
    """Share of the old states that are corrupted"""
    kinds: tuple[str, ...] = ("zeros", "noise", "another")
    """Kinds of corruption, equally likely"""
    shake: float = 0.0
    """Standard deviation of the noise added to the features before every iteration"""
    varied: bool = False
    """Draw that deviation for each problem, uniformly from 0 to ``shake``"""
    shortest: int = 10
    longest: int = 30
    """k ~ U{shortest … longest}"""
    every: bool = False
    """A loss after every iteration of a segment, equally weighted, instead of one at its end"""
    settle: float = 0.0
    """Weight of the features' mean absolute change per iteration, added to the loss"""
    hard: bool = False
    """A slot keeps its problem until it is solved"""
    content: Slots | None = field(default=None, repr=False)
    noise: Tensor | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        """Check shares and lengths."""
        for name in ("fresh", "stay", "swap", "damage"):
            if not 0 <= getattr(self, name) <= 1:
                raise RecipeError(f"pool {name} is a share from 0 to 1, got {getattr(self, name)}")
        if self.fresh == 0:
            raise RecipeError("a pool with fresh = 0 never sees a new problem; try 0.3")
        if self.batch > self.slots:
            raise RecipeError(f"a batch of {self.batch} does not fit a pool of {self.slots} slots")
        if not 1 <= self.shortest <= self.longest:
            raise RecipeError(
                "a pool's segment needs 1 <= shortest <= longest, "
                f"got {self.shortest} and {self.longest}"
            )

    def takes(self, batch: int) -> int:
        """The fresh share of the batch, at least one problem."""
        return max(1, round(batch * self.fresh))

    def run(self, unroll: Unroll, update: Update) -> Tensor:
        """Add this step's gradients to the parameters; return the loss, a scalar."""
        rng, processes = update.rng, update.processes
        pool = self._slots(unroll.net, update)
        drawn = torch.from_numpy(rng.choose(self.batch, self.slots, "slots"))
        rows = to_device(drawn, pool.filled.device)
        fresh = len(update.inputs)
        # Slots of new problems that do not stay get their previous content back afterwards.
        leaving = rows[round(fresh * self.stay) : fresh]
        columns = self.tensors() if self.stay < 1 else {}
        previous = {name: column[leaving] for name, column in columns.items()}
        self._insert(pool, rows[:fresh], update)
        features = self._corrupted(pool, rows, rng)
        mine = processes.shard(rows)
        k = rng.integer(self.shortest, self.longest, "stretch")
        result = unroll.forward_backward(
            pool.inputs[mine],
            pool.targets[mine],
            Segment(k, each=(1 / k,) * k if self.every else (), settle=self.settle),
            state=State(processes.shard(features)),
            restart=~pool.filled[mine],
            noise=processes.shard(self._step_noise(pool, rows, rng)) if self.shake else None,
        )
        pool.features[rows] = processes.gather(result.end.features).to(pool.features.dtype)
        pool.filled.index_fill_(0, rows, True)
        if pool.solved is not None:
            pool.solved[rows] = _solved(unroll.net, pool, rows)
        for name, column in previous.items():
            columns[name][leaving] = column
        return result.loss

    @torch.no_grad()
    def _slots(self, net: Net, update: Update) -> Slots:
        """The slots; at the first step filled with its problems, repeated, without states."""
        if self.content is None:
            device = update.inputs.device
            index = torch.arange(self.slots, device=device) % len(update.inputs)
            features = net.start(update.inputs[:1])
            solved = torch.ones(self.slots, dtype=torch.bool, device=device)
            self.content = Slots(
                inputs=update.inputs[index].clone(),
                targets=update.targets[index].clone(),
                features=features.new_zeros(self.slots, *features.shape[1:]),
                filled=torch.zeros(self.slots, dtype=torch.bool, device=device),
                solved=solved if self.hard else None,
            )
        return self.content

    def _insert(self, pool: Slots, rows: Tensor, update: Update) -> None:
        """Put new problems into these slots, except into those that keep theirs."""
        # Problems that stay come first; those that start with the previous state come last.
        pool.filled.index_fill_(0, rows[: round(len(rows) * (1 - self.swap))], False)
        for column, new in ((pool.inputs, update.inputs), (pool.targets, update.targets)):
            if pool.solved is not None:  # torch.where, because indexing by a mask synchronises
                replace = pool.solved[rows].view(-1, *[1] * (column.dim() - 1))
                new = torch.where(replace, new, column[rows])
            column[rows] = new

    def _corrupted(self, pool: Slots, rows: Tensor, rng: StepRng) -> Tensor:
        """The states of these slots, some of them corrupted."""
        features = pool.features[rows]
        if not self.damage:
            return features
        generator, device = rng.generator("damage"), features.device
        hit = torch.rand(len(rows), generator=generator) < self.damage
        kind = torch.randint(len(self.kinds), (len(rows),), generator=generator).where(hit, -1)
        other = torch.randint(self.slots, (len(rows),), generator=generator)
        which = torch.randint(_NOISES, (len(rows),), generator=generator)
        kind = kind.to(device).view(-1, *[1] * (features.dim() - 1))
        noise = self._noise(pool, rng)[to_device(which, device)]
        other = to_device(other, device)
        corruption = Corruption(features, pool.features, noise, other, generator)
        for number, word in enumerate(self.kinds):
            corrupt = registry.find("damage", word)
            features = torch.where(kind == number, corrupt(corruption), features)
        return features

    def _step_noise(self, pool: Slots, rows: Tensor, rng: StepRng) -> Tensor:
        """Noise for every iteration of this segment, (B, W, *S)."""
        generator, sides = rng.generator("shake"), pool.features.shape[2:]
        which = torch.randint(_NOISES, (len(rows),), generator=generator)
        shifts = [int(torch.randint(side, (), generator=generator)) for side in sides]
        drawn = self._noise(pool, rng)[to_device(which, pool.features.device)]
        noise = self.shake * drawn.roll(shifts, tuple(range(2, drawn.dim())))
        if not self.varied:
            return noise
        share = torch.rand(len(rows), generator=generator, dtype=noise.dtype)
        return noise * to_device(share, noise.device).view(-1, *[1] * (noise.dim() - 1))

    def _noise(self, pool: Slots, rng: StepRng) -> Tensor:
        """(32, W, *S): unit Gaussian noise."""
        if self.noise is None:
            shape = (_NOISES, *pool.features.shape[1:])
            generator = StepRng(rng.seed, 0).generator("noise")
            self.noise = torch.randn(shape, generator=generator).to(pool.features)
        return self.noise

    def tensors(self) -> dict[str, Tensor]:
        """What a checkpoint must hold for an exact resume."""
        columns = {} if self.content is None else vars(self.content)
        return {name: value for name, value in columns.items() if value is not None}

    def restore(self, tensors: dict[str, Tensor]) -> None:
        """Restore the slots of a checkpoint; without any, start with an empty pool."""
        self.content = Slots(**tensors) if tensors else None


@torch.no_grad()
def _solved(net: Net, pool: Slots, rows: Tensor) -> Tensor:
    """(rows,) bool: whether the states of these slots decode to the right answer."""
    logits = net.answer(pool.features[rows])
    right = readout_of(net).predict(logits, pool.inputs[rows]) == pool.targets[rows]
    return right.flatten(1).all(dim=1)


def pool(recipe: Recipe) -> Objective:
    """The replay pool of a recipe."""
    return ReplayPool(
        batch=recipe.batch, slots=recipe.pool_slots, fresh=recipe.pool_fresh,
        stay=recipe.pool_stay, swap=recipe.pool_swap, damage=recipe.pool_damage,
        kinds=recipe.pool_damage_kinds, shake=recipe.pool_shake, varied=recipe.pool_shake_varied,
        shortest=recipe.pool_shortest, longest=recipe.pool_longest or recipe.iterations,
        every=recipe.pool_every, settle=recipe.pool_settle, hard=recipe.pool_hard,
    )  # fmt: skip
