"""A small replay pool whose every update can be looked at."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from test_objectives import tiny
from torch import Tensor
from watched_hands import Asked, Watched

import iterant
from iterant.nets.fast.deep_thinking import Fused, can_fuse
from iterant.training.distributed import ProcessGroup
from iterant.training.objectives import Update
from iterant.training.replay_pool import ReplayPool, Slots
from iterant.training.rng import StepRng

BATCH, SLOTS = 8, 24


def hands_of(*, idle: bool = False) -> Watched:
    net = tiny()
    unroll = Watched(Fused(net) if can_fuse(net) else net)
    unroll.idle = idle
    return unroll


def copied(slots: Slots | None) -> Slots | None:
    return slots and Slots(**{name: value.clone() for name, value in there(slots).items()})


def there(slots: Slots) -> dict[str, Tensor]:
    return {name: value for name, value in vars(slots).items() if value is not None}


def updates(
    pool: ReplayPool, unroll: Watched, count: int, seed: int = 2
) -> Iterator[tuple[Update, Tensor, Slots | None, Asked, Slots]]:
    """Run updates; of each: what it was given, its slots, the pool before, the ask, the pool."""
    task = iterant.task("prefix-sums")
    takes = pool.takes(pool.batch)
    for number in range(count):
        fresh = task.sample(takes, size=5, seed=9, first=number * takes)
        rng = StepRng(seed, number)
        update = Update(fresh.inputs.double(), fresh.targets, rng, ProcessGroup())
        before = copied(pool.held)
        pool.run(unroll, update)
        rows = torch.from_numpy(rng.choose(pool.batch, pool.slots, "slots"))
        after = copied(pool.held)
        assert unroll.asked is not None
        assert after is not None
        yield update, rows, before, unroll.asked, after


def small(**changes: float) -> ReplayPool:
    known = {"fresh": 0.25, "damage": 0.5, "shortest": 2, "longest": 4, **changes}
    return ReplayPool(BATCH, SLOTS, **known)  # type: ignore[arg-type]
