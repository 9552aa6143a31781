"""One optimizer step: optimizer, clipping, EMA, half precision and checkpoints."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
import restated
import torch
from torch import Tensor, nn

import iterant
from iterant.errors import RecipeError
from iterant.evaluation import evaluate
from iterant.nets import DeepThinking, paper_net
from iterant.nets.from_recipe import build_network
from iterant.rng import StepRng
from iterant.training.distributed import ProcessGroup
from iterant.training.objectives import Objective, Unroll
from iterant.training.optim import LossScale
from iterant.training.recipe import Recipe
from iterant.training.trainer import Trainer

CPU = torch.device("cpu")
SMALL: dict[str, Any] = {"width": 4, "head": (4,), "iterations": 3, "objective": "progressive"}


def trainer_of(problem: str = "prefix-sums", **changes: Any) -> Trainer:
    chosen = Recipe(**{**SMALL, **changes})
    net, _ = build_network(chosen.described(), iterant.task(problem).spec, seed=1)
    return Trainer(net, chosen, CPU)


class KnownGradients(Objective):
    """An objective with known gradients: those of step u are drawn with seed u."""

    def __init__(self, trainer: Trainer) -> None:
        super().__init__(trainer.recipe)
        self.trainer = trainer

    def run(self, unroll: Unroll, inputs: Tensor, targets: Tensor, rng: StepRng) -> Tensor:
        weights = self.trainer.compute.parameters()
        for weight, gradient in zip(weights, gradients(self.trainer, rng.step), strict=True):
            assert weight.grad is not None
            weight.grad += gradient
        return torch.zeros(())


def gradients(trainer: Trainer, number: int) -> list[Tensor]:
    generator = torch.Generator().manual_seed(number)
    return [torch.randn(w.shape, generator=generator) for w in trainer.master.parameters()]


def step(trainer: Trainer, number: int, factor: float = 1.0) -> None:
    inputs, targets = torch.zeros(2, 1, 4), torch.zeros(2, 4, dtype=torch.int64)
    trainer.step(inputs, targets, StepRng(0, number), factor)


def weights_of(trainer: Trainer) -> list[Tensor]:
    return [weight.detach().clone() for weight in trainer.master.parameters()]


OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "adam": lambda weights: torch.optim.Adam(weights, lr=0.01, weight_decay=0.1),
    "adamw": lambda weights: torch.optim.AdamW(weights, lr=0.01, weight_decay=0.1),
    "sgd": lambda weights: torch.optim.SGD(weights, lr=0.01, weight_decay=0.1, momentum=0.7),
}


@pytest.mark.parametrize("word", OPTIMIZERS)
def test_optimizers_equal_torchs(word: str) -> None:
    trainer = trainer_of(optimizer=word, lr=0.01, weight_decay=0.1, momentum=0.7)
    trainer.objective = KnownGradients(trainer)
    theirs = [nn.Parameter(weight) for weight in weights_of(trainer)]
    optimizer = OPTIMIZERS[word](theirs)
    for number in range(5):
        step(trainer, number)
        for weight, gradient in zip(theirs, gradients(trainer, number), strict=True):
            weight.grad = gradient
        optimizer.step()
    restated.assert_same(weights_of(trainer), [weight.detach() for weight in theirs], 1e-6)


PLAIN_SGD: dict[str, Any] = {"optimizer": "sgd", "momentum": 0.0, "weight_decay": 0.0, "lr": 1.0}


def moved(trainer: Trainer, factor: float = 1.0) -> list[Tensor]:
    """How far one step along known gradients moves each weight."""
    before = weights_of(trainer)
    trainer.objective = KnownGradients(trainer)
    step(trainer, 0, factor)
    return [old - new for old, new in zip(before, weights_of(trainer), strict=True)]


@pytest.mark.parametrize("variant", ["dt", "dt-recall", "ff-recall"])
def test_throttle_scales_recurrent_parameters_only(variant: str) -> None:
    trainer = trainer_of(net=variant, throttle=True, **PLAIN_SGD)
    names = [name for name, _ in trainer.master.named_parameters()]
    for name, slow, gradient in zip(
        names, moved(trainer, factor=0.5), gradients(trainer, 0), strict=True
    ):
        repeated = not variant.startswith("ff") and name.split(".")[0] in ("recall", "block")
        restated.assert_same([slow], [0.5 * gradient / (3 if repeated else 1)], 1e-5)
    assert any(name.startswith("projection") for name in names)


def test_clipping_bounds_the_norm_of_the_whole_gradient() -> None:
    trainer = trainer_of(grad_clip=0.5, **PLAIN_SGD)
    wanted = gradients(trainer, 0)
    norm = sum(float((gradient**2).sum()) for gradient in wanted) ** 0.5
    assert norm > 0.5
    restated.assert_same(moved(trainer), [gradient * 0.5 / norm for gradient in wanted], 1e-5)


def test_ema_follows_its_recurrence() -> None:
    trainer = trainer_of(ema_decay=0.6)
    trainer.objective = KnownGradients(trainer)
    wanted = weights_of(trainer)
    for number in range(20):
        step(trainer, number, factor=10.0)
        decay = min(0.6, (number + 1) / (number + 11))
        now = weights_of(trainer)
        wanted = [decay * old + (1 - decay) * new for old, new in zip(wanted, now, strict=True)]
    assert trainer.ema is not None
    restated.assert_same(list(trainer.ema.values()), wanted, 1e-5)
    with trainer.with_ema_weights() as net:
        assert isinstance(net, nn.Module)
        inside = [weight.detach().clone() for weight in net.parameters()]
    restated.assert_same(inside, wanted, 1e-5)
    restated.assert_same(weights_of(trainer), now, 0.0)
    assert not torch.allclose(inside[0], now[0])


class Normed(DeepThinking):
    """A user-defined network with batch norm, which computes differently in evaluation mode."""

    def __init__(self) -> None:
        with torch.random.fork_rng(devices=[]):
            super().__init__(replace(paper_net("prefix-sums", "dt-recall"), width=4, head=(4,)))
        self.norm = nn.BatchNorm1d(2)

    def answer(self, features: Tensor) -> Tensor:
        logits: Tensor = self.norm(super().answer(features))
        return logits


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_batch_norm_is_evaluated_saved_and_restored(precision: str) -> None:
    recipe = Recipe(**SMALL, precision=precision, ema_decay=0.9)
    trainer, other = (Trainer(Normed(), recipe, CPU) for _ in range(2))
    run_steps(trainer, 2)
    means = trainer.evaluated_weights()["net.norm.running_mean"].clone()
    assert means.abs().min() > 0, "the half-precision copy computes them"
    with trainer.with_ema_weights() as net:
        assert not any(module.training for module in trainer.compute.modules())
        evaluate(net, "prefix-sums", size=8, count=20, max_steps=3, progress=False)
    assert all(module.training for module in trainer.compute.modules())
    assert torch.equal(trainer.evaluated_weights()["net.norm.running_mean"], means)
    other.restore(copy.deepcopy(trainer.tensors()), trainer.steps)
    assert run_steps(trainer, 2) == run_steps(other, 2)
    assert torch.equal(trainer.compute.norm.running_var, other.compute.norm.running_var)


def test_tied_weights_have_one_ema() -> None:
    net = Normed()
    net.norm.bias = net.norm.weight
    trainer = Trainer(net, Recipe(**SMALL, ema_decay=0.9), CPU)
    run_steps(trainer, 3)
    weights = trainer.evaluated_weights()
    assert torch.equal(weights["net.norm.bias"], weights["net.norm.weight"])
    assert not torch.equal(weights["net.norm.bias"], net.norm.bias)


def run_steps(trainer: Trainer, count: int) -> list[float]:
    """Further steps on one batch of prefix sums; their losses."""
    batch, first = iterant.task("prefix-sums").sample(20, size=8, seed=0), trainer.steps
    return [
        trainer.step(batch.inputs, batch.targets, StepRng(0, first + i), 1.0).item()
        for i in range(count)
    ]


@pytest.mark.parametrize(("precision", "tolerance"), [("fp16", 1e-4), ("bf16", 1e-3)])
def test_half_precision_steps_equal_fp32_steps(precision: str, tolerance: float) -> None:
    exact, half = trainer_of(width=8), trainer_of(width=8, precision=precision)
    start = weights_of(exact)
    assert run_steps(exact, 10) == pytest.approx(run_steps(half, 10), abs=tolerance)
    for mine, theirs, before in zip(weights_of(half), weights_of(exact), start, strict=True):
        assert mine.dtype == torch.float32
        assert (mine - theirs).norm() < 0.2 * (theirs - before).norm()


def test_pool_refuses_networks_of_fixed_depth() -> None:
    with pytest.raises(RecipeError, match=r"fixed depth.*objective='progressive'"):
        trainer_of(net="ff", objective="pool", pool_shortest=1)


POOL: dict[str, Any] = {"objective": "pool", "batch_size": 20, "pool_slots": 24,
                        "pool_shortest": 1, "ema_decay": 0.9}  # fmt: skip


@pytest.mark.parametrize(
    "changes", [POOL, {"optimizer": "muon", "throttle": True}, {"precision": "fp16"}]
)
def test_a_restored_trainer_continues_bit_for_bit(changes: dict[str, Any]) -> None:
    first, second = trainer_of(**changes), trainer_of(**changes)
    run_steps(first, 3)
    if first.loss_scale is not None:
        first.loss_scale.scale.fill_(2.0**12)
    second.restore(copy.deepcopy(first.tensors()), first.steps)
    assert run_steps(first, 3) == run_steps(second, 3)
    ours, theirs = first.tensors(), second.tensors()
    assert ours.keys() == theirs.keys()
    for name, value in ours.items():
        assert torch.equal(value, theirs[name]), name


def test_restored_moments_have_the_strides_of_their_weights() -> None:
    """Fused optimizers on a GPU require it."""
    before, after = trainer_of("mazes"), trainer_of("mazes")
    batch = iterant.task("mazes").sample(2, size=5)
    before.step(batch.inputs, batch.targets, StepRng(0, 1), 1.0)
    for weight in after.master.parameters():
        if weight.dim() == 4:
            weight.data = weight.data.contiguous(memory_format=torch.channels_last)
    after.restore(before.tensors(), 1)
    olds = before.optimizer.state.values()
    for old, own in zip(olds, list(after.optimizer.state), strict=True):
        for key in ("exp_avg", "exp_avg_sq"):
            moment = after.optimizer.state[own][key]
            assert moment.stride() == own.stride()
            assert torch.equal(moment, old[key])


@pytest.mark.parametrize("optimizer", ["adam", "muon"])
def test_an_overflow_skips_the_step(optimizer: str) -> None:
    trainer = trainer_of(precision="fp16", optimizer=optimizer, weight_decay=0.1)
    assert trainer.loss_scale is not None
    run_steps(trainer, 2)
    before, scale = weights_of(trainer), trainer.loss_scale.scale.item()
    trainer.loss_scale.scale.fill_(float("inf"))
    run_steps(trainer, 1)
    restated.assert_same(weights_of(trainer), before, 0.0)
    trainer.loss_scale.scale.fill_(scale)
    run_steps(trainer, 1)
    after = weights_of(trainer)
    assert all(bool(weight.isfinite().all()) for weight in after)
    assert not any(map(torch.equal, before, after))


def test_processes_adapt_their_loss_scales_alike() -> None:
    """Where the loss of only one of them is not finite, which spoils the mean gradient of all."""

    class WithAnother(ProcessGroup):
        size = 2

        def average(self, tensors: Sequence[Tensor]) -> None:
            for tensor in tensors:
                tensor.mul_(0.5 if tensor.dim() == 0 else float("nan"))

    chosen = Recipe(**SMALL, precision="fp16")
    net, _ = build_network(chosen.described(), iterant.task("prefix-sums").spec, seed=1)
    trainer = Trainer(net, chosen, CPU, WithAnother())
    before = weights_of(trainer)
    run_steps(trainer, 1)
    restated.assert_same(weights_of(trainer), before, 0.0)
    assert trainer.loss_scale is not None
    assert trainer.loss_scale.scale.item() == 2.0**16


def test_the_loss_scale_adapts_to_overflows_but_not_to_nan_losses() -> None:
    loss_scale = LossScale(CPU, torch.optim.SGD([torch.zeros(1)]))
    gradients, overflowed = [torch.full((3,), 2.0**17)], torch.tensor([float("nan"), 1.0])
    loss_scale.unscale(gradients)
    assert gradients[0].tolist() == [2, 2, 2]
    assert loss_scale.overflow.item() == 0
    loss_scale.unscale([overflowed.clone()])
    assert loss_scale.overflow.item() == 1
    assert loss_scale.scale.item() == 2.0**15
    loss_scale.grown.fill_(1999)
    loss_scale.unscale([torch.ones(1)])
    assert loss_scale.scale.item() == 2.0**16
    # A NaN loss skips the step and leaves the scale; 200 real overflows stop at 1.
    for finite, scale in ((0, 2.0**16), (1, 1.0)):
        loss_scale.finite_loss.fill_(finite)
        for _ in range(200):
            loss_scale.unscale([overflowed.clone()])
            assert loss_scale.overflow.item() == 1
        assert loss_scale.scale.item() == scale
