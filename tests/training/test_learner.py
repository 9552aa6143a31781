"""One update: the optimisers are torch's own, and everything around them does what it says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import restated
import torch
from torch import Tensor, nn

import iterant
from iterant.errors import NetError, RecipeError
from iterant.nets import Net
from iterant.training.build import build_network
from iterant.training.objectives import Unroll, Update
from iterant.training.recipe import Recipe
from iterant.training.rng import StepRng
from iterant.training.trainer import Trainer

CPU = torch.device("cpu")
SMALL: dict[str, Any] = {"width": 4, "head": (4,), "iterations": 3, "objective": "progressive"}


def learner_of(problem: str = "prefix-sums", **changes: Any) -> Trainer:
    chosen = Recipe(**{**SMALL, **changes})
    net, _ = build_network(chosen, iterant.task(problem).spec, seed=1)
    return Trainer(net, chosen, CPU)


def module_of(trainer: Trainer) -> nn.Module:
    return trainer.module


class Given:
    """An objective whose gradients are known: of update u, the u-th draw of a generator."""

    def __init__(self, trainer: Trainer, scale: float = 1.0) -> None:
        self.trainer, self.scale = trainer, scale

    def takes(self, batch: int) -> int:
        return batch

    def run(self, unroll: Unroll, update: Update) -> Tensor:
        weights = self.trainer.compute.parameters()
        for weight, gradient in zip(
            weights, gradients(self.trainer, update.rng.update), strict=True
        ):
            assert weight.grad is not None
            weight.grad += (self.scale * gradient).to(weight.dtype)
        return torch.zeros(())


def gradients(trainer: Trainer, number: int) -> list[Tensor]:
    generator = torch.Generator().manual_seed(number)
    return [torch.randn(w.shape, generator=generator) for w in trainer.module.parameters()]


def step(trainer: Trainer, number: int, factor: float = 1.0) -> None:
    inputs, targets = torch.zeros(2, 1, 4), torch.zeros(2, 4, dtype=torch.int64)
    trainer.update(inputs, targets, StepRng(0, number), factor)


def weights_of(trainer: Trainer) -> list[Tensor]:
    return [weight.detach().clone() for weight in trainer.module.parameters()]


OPTIMISERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "adam": lambda weights: torch.optim.Adam(weights, lr=0.01, weight_decay=0.1),
    "adamw": lambda weights: torch.optim.AdamW(weights, lr=0.01, weight_decay=0.1),
    "sgd": lambda weights: torch.optim.SGD(weights, lr=0.01, weight_decay=0.1, momentum=0.7),
}


@pytest.mark.parametrize("word", OPTIMISERS)
def test_optimisers_are_torchs_own(word: str) -> None:
    trainer = learner_of(optimizer=word, rate=0.01, weight_decay=0.1, momentum=0.7)
    trainer.objective = Given(trainer)
    theirs = [nn.Parameter(weight) for weight in weights_of(trainer)]
    optimiser = OPTIMISERS[word](theirs)
    for number in range(5):
        step(trainer, number)
        for weight, gradient in zip(theirs, gradients(trainer, number), strict=True):
            weight.grad = gradient
        optimiser.step()
    restated.assert_same(weights_of(trainer), [weight.detach() for weight in theirs], 1e-6)


def test_decay_inside_adam_is_not_decoupled_decay() -> None:
    ends = []
    for word in ("adam", "adamw"):
        trainer = learner_of(optimizer=word, weight_decay=0.1)
        trainer.objective = Given(trainer)
        step(trainer, 0)
        ends.append(weights_of(trainer)[0])
    assert not torch.allclose(ends[0], ends[1])


@pytest.mark.parametrize("variant", ["dt", "dt-recall", "ff-recall"])
def test_the_throttle_slows_exactly_what_is_repeated(variant: str) -> None:
    moved = {}
    for throttle in (False, True):
        trainer = learner_of(
            net=variant,
            optimizer="sgd",
            momentum=0.0,
            weight_decay=0.0,
            throttle=throttle,
            rate=1.0,
        )
        before = weights_of(trainer)
        trainer.objective = Given(trainer)
        step(trainer, 0, factor=0.5)
        moved[throttle] = [b - a for a, b in zip(before, weights_of(trainer), strict=True)]
    named = [name for name, _ in module_of(trainer).named_parameters()]
    for name, plain, slow in zip(named, moved[False], moved[True], strict=True):
        repeated = not variant.startswith("ff") and name.split(".")[0] in ("recall", "block")
        restated.assert_same([slow], [plain / 3 if repeated else plain], 1e-5)
    assert any(name.startswith("projection") for name in named)


def test_clipping_bounds_the_norm_of_all_gradients_together() -> None:
    trainer = learner_of(optimizer="sgd", momentum=0.0, weight_decay=0.0, rate=1.0, clip=0.5)
    before = weights_of(trainer)
    trainer.objective = Given(trainer)
    step(trainer, 0)
    wanted = gradients(trainer, 0)
    length = sum(float((gradient**2).sum()) for gradient in wanted) ** 0.5
    assert length > 0.5
    for old, new, gradient in zip(before, weights_of(trainer), wanted, strict=True):
        torch.testing.assert_close(old - new, gradient * 0.5 / length, rtol=1e-4, atol=1e-6)


def test_small_gradients_are_not_clipped() -> None:
    ends = []
    for clip in (None, 100.0):
        trainer = learner_of(optimizer="sgd", clip=clip)
        trainer.objective = Given(trainer, scale=1e-3)
        step(trainer, 0)
        ends.append(weights_of(trainer))
    restated.assert_same(ends[0], ends[1], 0.0)


def test_averaged_weights_follow_their_recurrence() -> None:
    trainer = learner_of(average=0.6)
    trainer.objective = Given(trainer)
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


def test_what_is_no_parameter_is_shipped_beside_the_average() -> None:
    trainer = learner_of(average=0.6)
    trainer.module.register_buffer("counted", torch.ones(2))
    trainer.objective = Given(trainer)
    step(trainer, 0, factor=10.0)
    judged = trainer.evaluated_weights()
    assert judged.keys() == {f"net.{name}" for name in trainer.module.state_dict()}
    assert trainer.average is not None
    assert torch.equal(judged["net.projection.weight"], trainer.average["projection.weight"])


def test_a_failure_within_averaged_gives_the_weights_back() -> None:
    trainer = learner_of(average=0.9)
    trainer.objective = Given(trainer)
    step(trainer, 0, factor=100.0)
    raw = weights_of(trainer)
    with pytest.raises(RuntimeError, match="judging failed"), trainer.averaged():
        raise RuntimeError("judging failed")
    restated.assert_same(weights_of(trainer), raw, 0.0)


def test_the_bf16_copy_follows_its_masters() -> None:
    trainer = learner_of(precision="bf16", average=0.9)
    batch = iterant.task("prefix-sums").sample(8, size=8)
    for number in range(6):
        trainer.update(batch.inputs, batch.targets, StepRng(0, number), 1.0)
        for master, compute in zip(
            trainer.module.parameters(), trainer.compute.parameters(), strict=True
        ):
            assert master.dtype == torch.float32
            assert compute.dtype == torch.bfloat16
            assert torch.equal(master.to(torch.bfloat16), compute)
    masters = torch.cat([weight.flatten() for weight in weights_of(trainer)])
    assert not torch.equal(masters, masters.to(torch.bfloat16).float())


@pytest.mark.parametrize(
    "changes",
    [
        {"net": "dt-recall", "group_norm": True},
        {"net": "dt", "precision": "bf16"},
        {"net": "ff", "alpha": 0.0},
        {"net": "ff-recall", "alpha": 0.5},
        {"objective": "pool", "pool_slots": 32, "pool_shortest": 2, "batch": 16},
        {"objective": "run-time-weighted"},
        {"objective": "progressive-n0"},
    ],
)
def test_every_kind_learns(changes: dict[str, Any]) -> None:
    trainer = learner_of(**{"rate": 0.02, "weight_decay": 0.0, "width": 8, **changes})
    batch = iterant.task("prefix-sums").sample(16, size=4)
    takes = trainer.objective.takes(16)
    losses = [
        float(trainer.update(batch.inputs[:takes], batch.targets[:takes], StepRng(0, u), 1.0))
        for u in range(40)
    ]
    assert sum(losses[-5:]) < 0.9 * sum(losses[:5])
    assert all(map(torch.isfinite, map(torch.tensor, losses)))


def test_a_pool_of_states_is_not_for_networks_of_fixed_depth() -> None:
    with pytest.raises(RecipeError, match=r"fixed depth.*--objective progressive"):
        learner_of(net="ff", objective="pool", pool_shortest=1)


def test_only_modules_are_trained() -> None:
    class Bare:
        def read(self, inputs: Tensor) -> Tensor | None:
            return None

        def start(self, inputs: Tensor) -> Tensor:
            return inputs

        def step(self, features: Tensor, memory: Tensor | None, index: int) -> Tensor:
            return features

        def answer(self, features: Tensor) -> Tensor:
            return features

    bare: Net = Bare()
    with pytest.raises(NetError, match=r"only an nn\.Module can be trained, got Bare"):
        Trainer(bare, Recipe(), CPU)
