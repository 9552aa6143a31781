"""One optimizer step: optimizer, clipping, EMA, half precision and checkpoints."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import restated
import torch
from torch import Tensor, nn

import iterant
from iterant.errors import NetError, RecipeError
from iterant.rng import StepRng
from iterant.training.objectives import Objective
from iterant.training.optim import LossScale
from iterant.training.recipe import Recipe, recipe
from iterant.training.trainer import Trainer, build_network
from iterant.training.unroll import Unroll

CPU = torch.device("cpu")
SMALL: dict[str, Any] = {"width": 4, "head": (4,), "iterations": 3, "objective": "progressive"}


def trainer_of(problem: str = "prefix-sums", **changes: Any) -> Trainer:
    chosen = Recipe(**{**SMALL, **changes})
    net, _ = build_network(chosen, iterant.task(problem).spec, seed=1)
    return Trainer(net, chosen, CPU)


class KnownGradients(Objective):
    """An objective with known gradients: those of step u are drawn with seed u."""

    def __init__(self, trainer: Trainer, scale: float = 1.0) -> None:
        super().__init__(trainer.recipe)
        self.trainer, self.scale = trainer, scale

    def run(self, unroll: Unroll, inputs: Tensor, targets: Tensor, rng: StepRng) -> Tensor:
        weights = self.trainer.compute.parameters()
        for weight, gradient in zip(weights, gradients(self.trainer, rng.step), strict=True):
            assert weight.grad is not None
            weight.grad += (self.scale * gradient).to(weight.dtype)
        return torch.zeros(())


def gradients(trainer: Trainer, number: int) -> list[Tensor]:
    generator = torch.Generator().manual_seed(number)
    return [torch.randn(w.shape, generator=generator) for w in trainer.module.parameters()]


def step(trainer: Trainer, number: int, factor: float = 1.0) -> None:
    inputs, targets = torch.zeros(2, 1, 4), torch.zeros(2, 4, dtype=torch.int64)
    trainer.step(inputs, targets, StepRng(0, number), factor)


def weights_of(trainer: Trainer) -> list[Tensor]:
    return [weight.detach().clone() for weight in trainer.module.parameters()]


OPTIMISERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "adam": lambda weights: torch.optim.Adam(weights, lr=0.01, weight_decay=0.1),
    "adamw": lambda weights: torch.optim.AdamW(weights, lr=0.01, weight_decay=0.1),
    "sgd": lambda weights: torch.optim.SGD(weights, lr=0.01, weight_decay=0.1, momentum=0.7),
}


@pytest.mark.parametrize("word", OPTIMISERS)
def test_optimizers_equal_torchs(word: str) -> None:
    trainer = trainer_of(optimizer=word, rate=0.01, weight_decay=0.1, momentum=0.7)
    trainer.objective = KnownGradients(trainer)
    theirs = [nn.Parameter(weight) for weight in weights_of(trainer)]
    optimiser = OPTIMISERS[word](theirs)
    for number in range(5):
        step(trainer, number)
        for weight, gradient in zip(theirs, gradients(trainer, number), strict=True):
            weight.grad = gradient
        optimiser.step()
    restated.assert_same(weights_of(trainer), [weight.detach() for weight in theirs], 1e-6)


@pytest.mark.parametrize("variant", ["dt", "dt-recall", "ff-recall"])
def test_throttle_scales_recurrent_parameters_only(variant: str) -> None:
    moved = {}
    for throttle in (False, True):
        trainer = trainer_of(
            net=variant,
            optimizer="sgd",
            momentum=0.0,
            weight_decay=0.0,
            throttle=throttle,
            rate=1.0,
        )
        before = weights_of(trainer)
        trainer.objective = KnownGradients(trainer)
        step(trainer, 0, factor=0.5)
        moved[throttle] = [b - a for a, b in zip(before, weights_of(trainer), strict=True)]
    named = [name for name, _ in trainer.module.named_parameters()]
    for name, plain, slow in zip(named, moved[False], moved[True], strict=True):
        repeated = not variant.startswith("ff") and name.split(".")[0] in ("recall", "block")
        restated.assert_same([slow], [plain / 3 if repeated else plain], 1e-5)
    assert any(name.startswith("projection") for name in named)


def test_clipping_bounds_the_norm_of_the_whole_gradient() -> None:
    trainer = trainer_of(optimizer="sgd", momentum=0.0, weight_decay=0.0, rate=1.0, clip=0.5)
    before = weights_of(trainer)
    trainer.objective = KnownGradients(trainer)
    step(trainer, 0)
    wanted = gradients(trainer, 0)
    length = sum(float((gradient**2).sum()) for gradient in wanted) ** 0.5
    assert length > 0.5
    for old, new, gradient in zip(before, weights_of(trainer), wanted, strict=True):
        torch.testing.assert_close(old - new, gradient * 0.5 / length, rtol=1e-4, atol=1e-6)


def test_ema_follows_its_recurrence() -> None:
    trainer = trainer_of(average=0.6)
    trainer.objective = KnownGradients(trainer)
    wanted = weights_of(trainer)
    for number in range(20):
        step(trainer, number, factor=10.0)
        decay = min(0.6, (number + 1) / (number + 11))
        now = weights_of(trainer)
        wanted = [decay * old + (1 - decay) * new for old, new in zip(wanted, now, strict=True)]
    assert trainer.average is not None
    restated.assert_same(list(trainer.average.values()), wanted, 1e-5)
    raw = weights_of(trainer)
    with trainer.averaged() as net:
        assert isinstance(net, nn.Module)
        inside = [weight.detach().clone() for weight in net.parameters()]
    restated.assert_same(inside, wanted, 1e-5)
    restated.assert_same(weights_of(trainer), raw, 0.0)
    assert not torch.allclose(inside[0], raw[0])


def test_the_bf16_copy_equals_the_rounded_weights() -> None:
    trainer = trainer_of(precision="bf16", average=0.9)
    batch = iterant.task("prefix-sums").sample(8, size=8)
    for number in range(6):
        trainer.step(batch.inputs, batch.targets, StepRng(0, number), 1.0)
        for master, compute in zip(
            trainer.module.parameters(), trainer.compute.parameters(), strict=True
        ):
            assert master.dtype == torch.float32
            assert compute.dtype == torch.bfloat16
            assert torch.equal(master.to(torch.bfloat16), compute)
    masters = torch.cat([weight.flatten() for weight in weights_of(trainer)])
    assert not torch.equal(masters, masters.to(torch.bfloat16).float())


def test_pool_refuses_networks_of_fixed_depth() -> None:
    with pytest.raises(RecipeError, match=r"fixed depth.*--objective progressive"):
        trainer_of(net="ff", objective="pool", pool_shortest=1)


@pytest.mark.parametrize(
    "changes",
    [
        {"objective": "pool", "batch": 10, "pool_slots": 12, "pool_shortest": 1, "average": 0.9},
        {"optimizer": "muon", "throttle": True},
        {"precision": "fp16"},
    ],
)
def test_a_restored_trainer_continues_bit_for_bit(changes: dict[str, Any]) -> None:
    batch = iterant.task("prefix-sums").sample(10, size=6)
    first, second = trainer_of(**changes), trainer_of(**changes)
    for number in range(3):
        first.step(batch.inputs[:3], batch.targets[:3], StepRng(0, number), 1.0)
    if first.loss_scale is not None:
        first.loss_scale.scale.fill_(2.0**12)
    second.restore(copy.deepcopy(first.tensors()), first.steps)
    for trainer in (first, second):
        for number in range(3, 6):
            trainer.step(batch.inputs[3:6], batch.targets[3:6], StepRng(0, number), 0.5)
    theirs = second.tensors()
    assert theirs.keys() == first.tensors().keys()
    for name, value in first.tensors().items():
        assert torch.equal(value, theirs[name]), name


def test_restored_moments_have_the_strides_of_their_weights() -> None:
    """Fused optimizers on a GPU require it."""
    before, after = trainer_of("mazes"), trainer_of("mazes")
    batch = iterant.task("mazes").sample(2, size=5)
    before.step(batch.inputs, batch.targets, StepRng(0, 1), 1.0)
    for weight in after.module.parameters():
        if weight.dim() == 4:
            weight.data = weight.data.contiguous(memory_format=torch.channels_last)
    after.restore(before.tensors(), 1)
    olds = before.optimizer.state.values()
    for old, own in zip(olds, list(after.optimizer.state), strict=True):
        for key in ("exp_avg", "exp_avg_sq"):
            moment = after.optimizer.state[own][key]
            assert moment.stride() == own.stride()
            assert torch.equal(moment, old[key])


def trainer_in(precision: str) -> Trainer:
    chosen = recipe("paper", "prefix-sums").changed(precision=precision, width=8, batch=20)
    net, _ = build_network(chosen, iterant.task("prefix-sums").spec, 0)
    return Trainer(net, chosen, CPU)


def run_steps(trainer: Trainer, count: int) -> list[float]:
    batch = iterant.task("prefix-sums").sample(20, size=8, seed=0)
    first = trainer.steps
    return [
        trainer.step(batch.inputs, batch.targets, StepRng(0, first + i), 1.0).item()
        for i in range(count)
    ]


def flat_weights(trainer: Trainer) -> Tensor:
    return torch.cat([weight.detach().flatten() for weight in trainer.module.parameters()])


def test_fp16_steps_equal_fp32_steps() -> None:
    exact, half = trainer_in("fp32"), trainer_in("fp16")
    losses = [run_steps(trainer, 10) for trainer in (exact, half)]
    assert half.compute is not half.module
    assert all(weight.dtype == torch.float16 for weight in half.compute.parameters())
    assert all(weight.dtype == torch.float32 for weight in half.module.parameters())
    assert max(abs(a - b) for a, b in zip(*losses, strict=True)) < 1e-4
    assert (flat_weights(exact) - flat_weights(half)).norm() < 0.02 * flat_weights(exact).norm()


def test_an_overflow_skips_the_step() -> None:
    trainer = trainer_in("fp16")
    assert trainer.loss_scale is not None
    run_steps(trainer, 2)
    before, scale = flat_weights(trainer), trainer.loss_scale.scale.item()
    trainer.loss_scale.scale.fill_(float("inf"))
    run_steps(trainer, 1)
    assert torch.equal(flat_weights(trainer), before)
    trainer.loss_scale.scale.fill_(scale)
    run_steps(trainer, 1)
    assert not torch.equal(flat_weights(trainer), before)


def fresh_scale() -> LossScale:
    return LossScale(CPU, torch.optim.SGD([torch.zeros(1)]))


def test_gradients_are_unscaled_and_the_scale_adapts() -> None:
    loss_scale = fresh_scale()
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


def test_a_nan_loss_does_not_lower_the_scale() -> None:
    loss_scale, broken = fresh_scale(), [torch.tensor([float("nan")])]
    for _ in range(200):
        loss_scale.finite_loss.fill_(0)
        loss_scale.unscale([gradient.clone() for gradient in broken])
        assert loss_scale.overflow.item() == 1, "the update is left out"
    assert loss_scale.scale.item() == 2.0**16
    for _ in range(200):  # as many real overflows do not bring it down to nothing
        loss_scale.finite_loss.fill_(1)
        loss_scale.unscale([gradient.clone() for gradient in broken])
    assert loss_scale.scale.item() == 1


def test_only_modules_are_trained() -> None:
    net: Any = object()
    with pytest.raises(NetError, match=r"only an nn\.Module can be trained, got object"):
        Trainer(net, Recipe(), CPU)
