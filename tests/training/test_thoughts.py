"""A stretch at a time is the same thinking as an iteration at a time."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from thinkers import small_batch, small_net
from torch import nn

from iterant.engine import State, last, think
from iterant.nets import DeepThinking
from iterant.nets.fast.strings import FusedStrings
from iterant.training.distributed import ProcessGroup
from iterant.training.objectives import Objective, Progressive, RunTimeWeighted, Unroll, Update
from iterant.training.replay_pool import ReplayPool
from iterant.training.rng import StepRng
from iterant.training.unroll import EagerUnroll, iterate

OBJECTIVES: dict[str, Callable[[], Objective]] = {
    "alpha 0.3": lambda: Progressive(6, 0.3),
    "alpha 1": lambda: Progressive(6, 1.0),
    "run-time weighted": lambda: RunTimeWeighted(5),
    "pool": lambda: ReplayPool(batch=4, slots=8, fresh=0.5, damage=0.5, shortest=2, longest=5),
}


def plain_net(variant: str) -> DeepThinking:
    net = small_net("prefix-sums", variant)
    assert isinstance(net, DeepThinking)
    return net


@pytest.mark.parametrize("variant", ["dt", "dt-recall"])
@pytest.mark.parametrize("name", OBJECTIVES)
def test_updates_by_stretches_equal_updates_by_iterations(name: str, variant: str) -> None:
    batch, outcome = small_batch("prefix-sums"), {}
    for kind in ("plain", "strings"):
        net = plain_net(variant)
        for weight in net.parameters():
            weight.grad = torch.zeros_like(weight)
        unroll: Unroll = EagerUnroll(FusedStrings(net) if kind == "strings" else net)
        objective, seen = OBJECTIVES[name](), []
        new = objective.takes(4)
        for number in range(6):
            nn.Module.zero_grad(net, set_to_none=False)
            update = Update(
                batch.inputs[:new], batch.targets[:new], StepRng(0, number), ProcessGroup()
            )
            loss = objective.run(unroll, update)
            gradients = [weight.grad for weight in net.parameters() if weight.grad is not None]
            seen.append(torch.cat([loss.view(1), *[g.flatten() for g in gradients]]))
        outcome[kind] = torch.stack(seen)
    assert outcome["plain"].abs().max() > 0
    assert (outcome["plain"] - outcome["strings"]).abs().max() < 1e-11


@pytest.mark.parametrize("steps", [0, 1, 5])
@pytest.mark.parametrize("learning", [False, True])
def test_thoughts_have_the_numbers_and_features_of_thinking(steps: int, learning: bool) -> None:
    x, net = small_batch("prefix-sums").inputs, plain_net("dt-recall")
    fast = FusedStrings(net)
    with torch.set_grad_enabled(learning):
        begun = State(net.start(x), 3)
        wanted = list(think(net, x, steps=steps, state=begun))
        got = list(iterate(fast, x, steps=steps, state=begun))
        end = last(iterate(fast, x, steps=steps))
    assert [t.step for t in got] == [t.step for t in wanted][0 if learning else -1 :]
    for mine, theirs in zip(reversed(got), reversed(wanted), strict=False):
        assert (mine.features - theirs.features).abs().max() < 1e-12
        assert (mine.logits - theirs.logits).abs().max() < 1e-12
    assert end.step == steps
