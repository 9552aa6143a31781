"""The replay pool: problems half thought through, trained from wherever they stand.

    >>> pool = ReplayPool(slots=4096, fresh=0.3, damage=0.3, shortest=10, longest=30)

An update takes a batch of slots, puts new problems into some of them, damages the states of
others, thinks k more iterations with gradients, takes the loss at the end and puts the states
back. It needs neither a prefix without gradients nor a full unroll, and trains the network on
states hundreds of iterations old, which the unroll never reaches.

Ways to damage a state, so that a network learns to come back from any.

A pool damages some of the states it learns from, each in one of the ways that its recipe names.
Far from the ends of a large problem, states arise that no small problem leads to by itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from iterant import registry
from iterant.engine import State
from iterant.errors import RecipeError
from iterant.nets.protocol import Net, readout_of
from iterant.training.objectives import Update
from iterant.training.rng import StepRng, to_device
from iterant.training.unroll import Segment, Unroll, empty_features

JITTER = 0.3
"""How strong the noise is that is added to a state; unit noise replaces one."""

_WIDEST = 0.4
"""The largest disc's radius, as a share of the side."""


@dataclass(frozen=True)
class Corruption:
    """What a kind of damage may use; it says what becomes of every state, hit or not."""

    features: Tensor
    """(B, W, *S): the states"""
    held: Tensor
    """(slots, W, *S): the states of all slots"""
    noise: Tensor
    """(B, W, *S): unit Gaussian noise"""
    other: Tensor
    """(B,): a slot for each state"""
    generator: torch.Generator


def zeros(corruption: Corruption) -> Tensor:
    """Nothing is left."""
    return torch.zeros_like(corruption.features)


def noise(corruption: Corruption) -> Tensor:
    """Noise instead of the state."""
    return corruption.noise


def another(corruption: Corruption) -> Tensor:
    """The state of another slot, thought about another problem."""
    return corruption.held[corruption.other]


def jitter(corruption: Corruption) -> Tensor:
    """The state with weak noise added."""
    return corruption.features + JITTER * corruption.noise


def disc(corruption: Corruption) -> Tensor:
    """Nothing is left within a disc, of any place and of a radius from 1 to 0.4 of the side."""
    count, _, *sides = corruption.features.shape
    drawn = torch.rand(count, len(sides) + 1, generator=corruption.generator).to(
        corruption.features.device
    )
    distance: Tensor | float = 0.0
    for axis, side in enumerate(sides):
        places = torch.arange(side, device=drawn.device)
        off = (places - drawn[:, axis : axis + 1] * side) ** 2
        distance = distance + off.view(count, *[1] * axis, side, *[1] * (len(sides) - axis - 1))
    radius = 1 + drawn[:, -1] * max(0.0, _WIDEST * min(sides) - 1)
    inside = distance < radius.view(-1, *[1] * len(sides)) ** 2
    return corruption.features.masked_fill(inside[:, None], 0)


_NOISES = 32
"""How many draws of noise damage takes from."""


@dataclass
class Slots:
    """What the pool holds, a row a slot."""

    inputs: Tensor
    targets: Tensor
    features: Tensor
    filled: Tensor
    """(slots,) bool: whether the features were ever thought"""
    solved: Tensor | None = None
    """(slots,) bool: whether the answer was right when the slot was last thought about, if asked"""


@dataclass
class ReplayPool:
    """The objective; its slots are made at the first update and belong to the checkpoint."""

    batch: int = 100
    slots: int = 4096
    fresh: float = 0.3
    """Share of a batch that is replaced by new problems, begun at the projection"""
    stay: float = 1.0
    """Share of those that stay in the pool; the others' slots get back what they held"""
    swap: float = 0.0
    """Share of the new problems that begin with the state another problem left in their slot"""
    damage: float = 0.3
    """Share of the old states that are damaged"""
    kinds: tuple[str, ...] = ("zeros", "noise", "another")
    """How, each as likely: words for functions of `iterant.training.replay_pool`"""
    shake: float = 0.0
    """Strength of the noise that is added to the features before every iteration

    What has to be told over long ways survives it only if it is told clearly.
    """
    varied: bool = False
    """That strength is drawn for every problem, evenly from nothing to ``shake``

    Strong noise makes every number of a message tell the same, weak lets problems be solved.
    """
    shortest: int = 10
    longest: int = 30
    every: bool = False
    """A loss after every iteration of a stretch, all alike, instead of one at its end"""
    settle: float = 0.0
    """Weight of the features' mean absolute change an iteration, added to the loss"""
    hard: bool = False
    """A slot lets go of its problem only when solved; until then it begins again with the same"""
    held: Slots | None = field(default=None, repr=False)
    noise: Tensor | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        """Refuse shares that are none and stretches that end before they begin."""
        for name in ("fresh", "stay", "swap", "damage"):
            if not 0 <= getattr(self, name) <= 1:
                raise RecipeError(f"pool {name} is a share from 0 to 1, got {getattr(self, name)}")
        if self.fresh == 0:
            raise RecipeError("a pool with fresh = 0 never sees a new problem; try 0.3")
        if self.batch > self.slots:
            raise RecipeError(f"a batch of {self.batch} does not fit a pool of {self.slots} slots")
        if not 1 <= self.shortest <= self.longest:
            raise RecipeError(
                "a pool's stretch needs 1 <= shortest <= longest, "
                f"got {self.shortest} and {self.longest}"
            )

    def takes(self, batch: int) -> int:
        """The fresh share of the batch, at least one problem."""
        return max(1, round(batch * self.fresh))

    def run(self, unroll: Unroll, update: Update) -> Tensor:
        """Add this update's gradients to the parameters; return the loss, a number."""
        rng, processes = update.rng, update.processes
        held = self._slots(unroll, update)
        chosen = torch.from_numpy(rng.chosen(self.batch, self.slots, "slots"))
        rows = to_device(chosen, held.filled.device)
        leaving = rows[round(len(update.inputs) * self.stay) : len(update.inputs)]
        kept = self.tensors() if self.stay < 1 else {}
        lent = {name: column[leaving] for name, column in kept.items()}
        self._renew(held, rows[: len(update.inputs)], update)
        mine = processes.mine(rows)
        features = self._damaged(held, rows, rng)
        k = rng.whole(self.shortest, self.longest, "stretch")
        learned = unroll.forward_backward(
            held.inputs[mine],
            held.targets[mine],
            Segment(k, each=(1 / k,) * k if self.every else (), settle=self.settle),
            state=State(processes.mine(features)),
            restart=~held.filled[mine],
            noise=processes.mine(self._shaking(held, rows, rng)) if self.shake else None,
        )
        held.features[rows] = processes.gather(learned.end.features).to(held.features.dtype)
        held.filled.index_fill_(0, rows, True)
        if held.solved is not None:
            held.solved[rows] = _solved(unroll.net, held, rows)
        for name, column in lent.items():
            kept[name][leaving] = column
        return learned.loss

    def _slots(self, unroll: Unroll, update: Update) -> Slots:
        """The slots; at the first update, filled with its problems over and over, unthought."""
        if self.held is None:
            device = update.inputs.device
            again = torch.arange(self.slots, device=device) % len(update.inputs)
            self.held = Slots(
                inputs=update.inputs[again].clone(),
                targets=update.targets[again].clone(),
                features=empty_features(unroll.net, update.inputs, self.slots),
                filled=torch.zeros(self.slots, dtype=torch.bool, device=device),
                solved=torch.ones(self.slots, dtype=torch.bool, device=device)
                if self.hard
                else None,
            )
        return self.held

    def _renew(self, held: Slots, rows: Tensor, update: Update) -> None:
        """Put new problems into these slots, but for those that keep theirs."""
        # Those that stay come first, and begin at the beginning as long as any does.
        held.filled.index_fill_(0, rows[: round(len(rows) * (1 - self.swap))], False)
        if held.solved is not None:
            # Written without asking which: a question to the device would wait for the answer.
            new = held.solved[rows]
            for mine, given in ((held.inputs, update.inputs), (held.targets, update.targets)):
                mine[rows] = torch.where(new.view(-1, *[1] * (mine.dim() - 1)), given, mine[rows])
            return
        held.inputs[rows] = update.inputs
        held.targets[rows] = update.targets

    def _damaged(self, held: Slots, rows: Tensor, rng: StepRng) -> Tensor:
        """The states of these slots, some of them damaged in one of the ways."""
        if not self.damage:
            return held.features[rows]
        generator, device = rng.generator("damage"), held.features.device
        hit = torch.rand(len(rows), generator=generator) < self.damage
        how = torch.randint(len(self.kinds), (len(rows),), generator=generator).where(hit, -1)
        other = torch.randint(self.slots, (len(rows),), generator=generator)
        which = torch.randint(_NOISES, (len(rows),), generator=generator)
        features = held.features[rows]
        kind = how.to(device).view(-1, *[1] * (features.dim() - 1))
        corruption = Corruption(
            features, held.features, self._noise(held, rng)[which], other, generator
        )
        for number, word in enumerate(self.kinds):
            features = torch.where(
                kind == number, registry.find("damage", word)(corruption), features
            )
        return features

    def _shaking(self, held: Slots, rows: Tensor, rng: StepRng) -> Tensor:
        """What the features of these slots are shaken by, at every iteration of this stretch."""
        generator, sides = rng.generator("shake"), held.features.shape[2:]
        which = torch.randint(_NOISES, (len(rows),), generator=generator)
        shifts = [int(torch.randint(side, (), generator=generator)) for side in sides]
        drawn = self._noise(held, rng)[to_device(which, held.features.device)]
        noise = self.shake * drawn.roll(shifts, tuple(range(2, drawn.dim())))
        if not self.varied:
            return noise
        share = torch.rand(len(rows), generator=generator, dtype=noise.dtype)
        return noise * to_device(share, noise.device).view(-1, *[1] * (noise.dim() - 1))

    def _noise(self, held: Slots, rng: StepRng) -> Tensor:
        """Unit Gaussian noise, drawn once a run: drawing it anew would cost more than learning."""
        if self.noise is None:
            shape = (_NOISES, *held.features.shape[1:])
            generator = StepRng(rng.seed, 0).generator("noise")
            self.noise = torch.randn(shape, generator=generator).to(held.features)
        return self.noise

    def tensors(self) -> dict[str, Tensor]:
        """What a checkpoint must hold to go on exactly."""
        held = {} if self.held is None else vars(self.held)
        return {name: value for name, value in held.items() if value is not None}

    def restore(self, tensors: dict[str, Tensor]) -> None:
        """Take over what a checkpoint held; nothing: begin with empty slots."""
        self.held = Slots(**tensors) if tensors else None


@torch.no_grad()
def _solved(net: Net, held: Slots, rows: Tensor) -> Tensor:
    """(rows,) bool: whether each of these slots' states gives the right answer."""
    logits = net.answer(held.features[rows])
    right = readout_of(net).predict(logits, held.inputs[rows]) == held.targets[rows]
    return right.flatten(1).all(dim=1)
