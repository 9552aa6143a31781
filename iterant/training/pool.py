"""The replay pool: problems half thought through, trained from wherever they stand.

    >>> pool = ReplayPool(slots=4096, fresh=0.3, damage=0.3, shortest=10, longest=30)

An update takes a batch of slots, puts new problems into some of them, damages the states of
others, thinks k more iterations with gradients, takes the loss at the end and puts the states
back. It needs neither a prefix without gradients nor a full unroll, and trains the network on
states hundreds of iterations old, which the unroll never reaches.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from iterant.engine import State
from iterant.errors import RecipeError
from iterant.training.hands import Hands, Stretch
from iterant.training.moments import Moment
from iterant.training.objectives import Update


@dataclass
class Slots:
    """What the pool holds, a row a slot."""

    inputs: Tensor
    targets: Tensor
    features: Tensor
    filled: Tensor
    """(slots,) bool: whether the features were ever thought"""


@dataclass
class ReplayPool:
    """The objective; its slots are made at the first update and belong to the checkpoint."""

    batch: int = 100
    slots: int = 4096
    fresh: float = 0.3
    """Share of a batch that is replaced by new problems, begun at the projection"""
    damage: float = 0.3
    """Share of the old states that are damaged: zeros, noise or another slot's state"""
    shortest: int = 10
    longest: int = 30
    held: Slots | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        """Refuse shares that are none and stretches that end before they begin."""
        for name in ("fresh", "damage"):
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

    def run(self, hands: Hands, update: Update) -> Tensor:
        """Add this update's gradients to the parameters; return the loss, a number."""
        moment, crew = update.moment, update.crew
        held = self._slots(hands, update)
        rows = torch.from_numpy(moment.chosen(self.batch, self.slots, "slots"))
        self._renew(held, rows[: len(update.inputs)], update)
        mine = crew.mine(rows).to(held.filled.device)
        features = self._damaged(held, rows, moment)
        k = moment.whole(self.shortest, self.longest, "stretch")
        learned = hands.learn(
            held.inputs[mine],
            held.targets[mine],
            Stretch(k),
            state=State(crew.mine(features)),
            restart=~held.filled[mine],
        )
        held.features[rows] = crew.gather(learned.end.features).to(held.features.dtype)
        held.filled[rows] = True
        return learned.loss

    def _slots(self, hands: Hands, update: Update) -> Slots:
        """The slots; at the first update, filled with its problems over and over, unthought."""
        if self.held is None:
            again = torch.arange(self.slots, device=update.inputs.device) % len(update.inputs)
            start = hands.advance(update.inputs[:1], None, 0).features
            self.held = Slots(
                inputs=update.inputs[again].clone(),
                targets=update.targets[again].clone(),
                features=start.new_zeros(self.slots, *start.shape[1:]),
                filled=torch.zeros(self.slots, dtype=torch.bool, device=start.device),
            )
        return self.held

    def _renew(self, held: Slots, rows: Tensor, update: Update) -> None:
        """Put new problems into these slots."""
        held.inputs[rows] = update.inputs
        held.targets[rows] = update.targets
        held.filled[rows] = False

    def _damaged(self, held: Slots, rows: Tensor, moment: Moment) -> Tensor:
        """The states of these slots, some of them damaged in one of three ways."""
        features = held.features[rows]
        generator = moment.generator("damage")
        hit = torch.rand(len(rows), generator=generator) < self.damage
        how = torch.randint(3, (len(rows),), generator=generator)
        other = torch.randint(self.slots, (len(rows),), generator=generator)
        noise = torch.randn(features.shape[1:].numel(), generator=generator)
        for row in hit.nonzero().flatten().tolist():
            if how[row] == 0:
                features[row] = 0
            elif how[row] == 1:
                # One draw of noise a batch, turned by a row's own offset: cheap and never equal.
                features[row] = noise.roll(row * 97).view(features.shape[1:]).to(features)
            else:
                features[row] = held.features[other[row]]
        return features

    def tensors(self) -> dict[str, Tensor]:
        """What a checkpoint must hold to go on exactly."""
        return {} if self.held is None else dict(vars(self.held))

    def restore(self, tensors: dict[str, Tensor]) -> None:
        """Take over what a checkpoint held; nothing: begin with empty slots."""
        self.held = Slots(**tensors) if tensors else None
