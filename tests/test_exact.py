"""The hand-built networks do what their descriptions say: other tests stand on them."""

from __future__ import annotations

import pytest
import torch
from exact import (
    ByHand,
    exact_prefix_sums,
    first_right,
    forgetting,
    known_answer,
    poisoned,
    swap_recovery,
    two_cycle,
)
from torch import Tensor

from iterant.engine import After, State, last, think
from iterant.nets import Net
from iterant.tasks.prefix_sums import PrefixSums
from iterant.tasks.protocol import Batch

TASK = PrefixSums()
BITS = 9
BATCH = TASK.sample(24, size=BITS, seed=4)
REST = BITS + 3
"""Iterations after which features rest."""


def rested(net: Net, batch: Batch = BATCH) -> State:
    return last(think(net, batch.inputs, steps=REST)).state


def recovery(net: Net, batch: Batch, state: State, steps: int = 3 * BITS) -> list[int]:
    """The first iteration from which each answer stays right; 0: never."""
    right = torch.stack(
        [
            TASK.solved(thought.prediction, batch)
            for thought in think(net, batch.inputs, steps=steps, state=state)
        ]
    )
    wrong = (~right).int() * torch.arange(1, steps + 1)[:, None]
    since = wrong.amax(dim=0) + 1
    return [int(step) if step <= steps else 0 for step in since]


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("make", [exact_prefix_sums, two_cycle, forgetting])
def test_every_answer_is_known(make: type[ByHand], dtype: torch.dtype) -> None:
    net = make().to(dtype)
    for thought in think(net, BATCH.inputs.to(dtype), steps=2 * BITS):
        assert torch.equal(thought.prediction, known_answer(BATCH.targets, thought.step))
    assert recovery(make(), BATCH, State(make().start(BATCH.inputs))) == (
        first_right(BATCH.targets).tolist()
    )


def noise(features: Tensor) -> Tensor:
    return features + torch.randn(
        features.shape, generator=torch.Generator().manual_seed(5), dtype=features.dtype
    )


@pytest.mark.parametrize("make", [exact_prefix_sums, two_cycle])
def test_what_was_done_to_features_is_gone(make: type[ByHand]) -> None:
    net = make()
    state = rested(net)
    zeros = State(torch.zeros_like(state.features), state.step)
    assert recovery(net, BATCH, zeros) == first_right(BATCH.targets).tolist()
    noisy = recovery(net, BATCH, State(noise(state.features), state.step))
    assert all(1 <= step <= BITS for step in noisy)
    assert max(noisy) > 1
    swapped = State(state.features.roll(1, 0), state.step)
    expected = swap_recovery(BATCH.targets, BATCH.targets.roll(1, 0))
    assert recovery(net, BATCH, swapped) == expected.tolist()


def test_what_was_forgotten_never_comes_back() -> None:
    net = forgetting()
    state = rested(net)
    zeros = last(think(net, BATCH.inputs, steps=30, intervene=[After(9, torch.zeros_like)]))
    assert int(zeros.prediction.sum()) == 0
    swapped = State(state.features.roll(1, 0), state.step)
    other = last(think(net, BATCH.inputs, steps=30, state=swapped))
    assert torch.equal(other.prediction, BATCH.targets.roll(1, 0))
    noisy = recovery(net, BATCH, State(noise(state.features), state.step))
    assert sum(step == 0 for step in noisy) > len(BATCH) // 2
    flipped = last(think(net, -BATCH.inputs, steps=30, state=state))
    assert torch.equal(flipped.prediction, BATCH.targets)


def test_poison_reaches_strings_that_begin_with_one() -> None:
    for thought in think(poisoned(3), BATCH.inputs, steps=6):
        bad = thought.features.isnan().flatten(1).any(dim=1)
        assert torch.equal(bad, (BATCH.targets[:, 0] == 1) & (thought.step > 3))
