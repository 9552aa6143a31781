"""A small replay pool whose every update can be looked at."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from test_objectives import tiny
from torch import Tensor
from watched_hands import Asked, Watched

import iterant
from iterant.nets.fast.deep_thinking import Fused, can_fuse
from iterant.training.distributed import Crew
from iterant.training.objectives import Update
from iterant.training.replay_pool import ReplayPool, Slots
from iterant.training.rng import Moment

BATCH, SLOTS = 8, 24


def hands_of(*, idle: bool = False) -> Watched:
    net = tiny()
    hands = Watched(Fused(net) if can_fuse(net) else net)
    hands.idle = idle
    return hands


def copied(slots: Slots | None) -> Slots | None:
    return slots and Slots(**{name: value.clone() for name, value in there(slots).items()})


def there(slots: Slots) -> dict[str, Tensor]:
    return {name: value for name, value in vars(slots).items() if value is not None}


def updates(
    pool: ReplayPool, hands: Watched, count: int, seed: int = 2
) -> Iterator[tuple[Update, Tensor, Slots | None, Asked, Slots]]:
    """Run updates; of each: what it was given, its slots, the pool before, the ask, the pool."""
    task = iterant.task("prefix-sums")
    takes = pool.takes(pool.batch)
    for number in range(count):
        fresh = task.sample(takes, size=5, seed=9, first=number * takes)
        moment = Moment(seed, number)
        update = Update(fresh.inputs.double(), fresh.targets, moment, Crew())
        before = copied(pool.held)
        pool.run(hands, update)
        rows = torch.from_numpy(moment.chosen(pool.batch, pool.slots, "slots"))
        after = copied(pool.held)
        assert hands.asked is not None
        assert after is not None
        yield update, rows, before, hands.asked, after


def small(**changes: float) -> ReplayPool:
    known = {"fresh": 0.25, "damage": 0.5, "shortest": 2, "longest": 4, **changes}
    return ReplayPool(BATCH, SLOTS, **known)  # type: ignore[arg-type]
