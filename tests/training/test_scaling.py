"""Training in float16: what the scale does, and that updates stay those of float32."""

from __future__ import annotations

import torch
from torch import Tensor

import iterant
from iterant.training.build import build_network
from iterant.training.optim import LossScale
from iterant.training.recipes import recipe
from iterant.training.rng import StepRng
from iterant.training.trainer import Trainer

CPU = torch.device("cpu")


def trainer(precision: str) -> Trainer:
    made = recipe("paper", "prefix-sums").changed(precision=precision, width=8, batch=20)
    net, _ = build_network(made, iterant.task("prefix-sums").spec, 0)
    return Trainer(net, made, CPU)


def updates(made: Trainer, count: int) -> list[float]:
    batch = iterant.task("prefix-sums").sample(20, size=8, seed=0)
    first = made.updates
    return [
        made.update(batch.inputs, batch.targets, StepRng(0, first + i), 1.0).item()
        for i in range(count)
    ]


def weights(made: Trainer) -> Tensor:
    return torch.cat([weight.detach().flatten() for weight in made.module.parameters()])


def test_float16_updates_are_those_of_float32() -> None:
    exact, half = trainer("fp32"), trainer("fp16")
    losses = [updates(made, 10) for made in (exact, half)]
    assert half.compute is not half.module
    assert all(weight.dtype == torch.float16 for weight in half.compute.parameters())
    assert all(weight.dtype == torch.float32 for weight in half.module.parameters())
    assert max(abs(a - b) for a, b in zip(*losses, strict=True)) < 1e-4
    assert (weights(exact) - weights(half)).norm() < 0.02 * weights(exact).norm()


def test_an_overflow_leaves_the_update_out() -> None:
    made = trainer("fp16")
    assert made.loss_scale is not None
    updates(made, 2)
    before, scale = weights(made), made.loss_scale.scale.item()
    made.loss_scale.scale.fill_(float("inf"))
    updates(made, 1)
    assert torch.equal(weights(made), before)
    made.loss_scale.scale.fill_(scale)
    updates(made, 1)
    assert not torch.equal(weights(made), before)


def test_gradients_are_unscaled_and_the_scale_adapts() -> None:
    loss_scale = LossScale(CPU)
    gradients = [torch.full((3,), 2.0**17)]
    loss_scale.unscale(gradients)
    assert gradients[0].tolist() == [2, 2, 2]
    assert loss_scale.overflow.item() == 0
    loss_scale.unscale([torch.tensor([float("nan"), 1.0])])
    assert loss_scale.overflow.item() == 1
    assert loss_scale.scale.item() == 2.0**15
    loss_scale.grown.fill_(1999)
    loss_scale.unscale([torch.ones(1)])
    assert loss_scale.scale.item() == 2.0**16


def test_a_loss_that_is_no_number_is_no_fault_of_the_scale() -> None:
    loss_scale, broken = LossScale(CPU), [torch.tensor([float("nan")])]
    for _ in range(200):
        loss_scale.see(torch.tensor(float("nan")))
        loss_scale.unscale([gradient.clone() for gradient in broken])
        assert loss_scale.overflow.item() == 1, "the update is left out"
    assert loss_scale.scale.item() == 2.0**16
    for _ in range(200):  # as many real overflows do not bring it down to nothing
        loss_scale.see(torch.tensor(1.0))
        loss_scale.unscale([gradient.clone() for gradient in broken])
    assert loss_scale.scale.item() == 1


def test_features_beyond_float16_move_no_weight() -> None:
    made = trainer("fp16")
    updates(made, 1)
    with torch.no_grad():
        for weight in made.module.parameters():
            weight.mul_(1e4)
    made._sync_copies()
    before = weights(made)
    losses = updates(made, 60)
    assert not any(loss == loss for loss in losses)
    assert torch.equal(weights(made), before)


def test_the_scale_belongs_to_the_checkpoint() -> None:
    whole, first, second = trainer("fp16"), trainer("fp16"), trainer("fp16")
    updates(whole, 6)
    updates(first, 3)
    assert first.loss_scale is not None
    first.loss_scale.scale.fill_(2.0**12)
    assert second.loss_scale is not None
    second.restore({name: value.clone() for name, value in first.tensors().items()}, 3)
    assert second.loss_scale.scale.item() == 2.0**12
    updates(second, 3)
    assert (weights(second) - weights(whole)).norm() < 0.02 * weights(whole).norm()
