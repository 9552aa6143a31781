"""Muon moves recurrent kernels along all directions alike, and everything else as AdamW does."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

import iterant
from iterant.training.build import build_network
from iterant.training.optim import LossScale, Muon, orthogonal
from iterant.training.recipe import Recipe
from iterant.training.rng import StepRng
from iterant.training.trainer import Trainer

CPU = torch.device("cpu")


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("shape", [(1, 6, 6), (3, 5, 40), (2, 40, 5)])
def test_singular_values_come_near_one_and_directions_stay(shape: tuple[int, ...]) -> None:
    matrices = drawn(*shape).double()
    made = orthogonal(matrices)
    assert made.shape == matrices.shape
    for before, after in zip(matrices, made, strict=True):
        u, sizes, vt = torch.linalg.svd(before, full_matrices=False)
        seen = u.T @ after @ vt.T  # diagonal: the same directions on both sides
        off = seen - torch.diag(seen.diag())
        assert float(off.abs().max()) < 1e-6
        sound = sizes > 0.1 * sizes[0]
        assert float(seen.diag()[sound].min()) > 0.5
        assert float(seen.diag().max()) < 1.3


def test_the_size_of_a_gradient_does_not_matter() -> None:
    ends = []
    for scale in (1.0, 1e-3):
        weight = nn.Parameter(drawn(4, 6, 3))
        muon = Muon([{"params": [weight], "matrices": {id(weight)}}], 0.01)
        for number in range(3):
            weight.grad = scale * drawn(4, 6, 3, seed=number)
            muon.step()
        ends.append(weight.detach())
    torch.testing.assert_close(ends[0], ends[1], rtol=1e-4, atol=1e-6)


def test_an_update_is_as_large_as_adams_usually_is() -> None:
    weight = nn.Parameter(torch.zeros(8, 16, 3, 3))
    muon = Muon([{"params": [weight], "matrices": {id(weight)}}], 1.0)
    weight.grad = drawn(8, 16, 3, 3)
    muon.step()
    assert 0.15 < float(weight.detach().square().mean().sqrt()) < 0.25


def test_other_weights_move_as_adamw_moves_them() -> None:
    ours, theirs = nn.Parameter(drawn(5, 3)), nn.Parameter(drawn(5, 3))
    muon = Muon([{"params": [ours]}], 0.01, betas=(0.9, 0.95), weight_decay=0.1)
    adamw = torch.optim.AdamW([theirs], lr=0.01, betas=(0.9, 0.95), weight_decay=0.1)
    for number in range(5):
        ours.grad, theirs.grad = drawn(5, 3, seed=number), drawn(5, 3, seed=number)
        muon.step()
        adamw.step()
    torch.testing.assert_close(ours, theirs)


def test_gradients_that_overflowed_move_nothing() -> None:
    weights = [nn.Parameter(drawn(4, 6)), nn.Parameter(drawn(3))]
    muon = Muon([{"params": weights, "matrices": {id(weights[0])}}], 0.1, weight_decay=0.1)
    loss_scale = LossScale(CPU)
    loss_scale.attach(muon)
    before = [weight.detach().clone() for weight in weights]
    for weight in weights:
        weight.grad = torch.full_like(weight, float("inf"))
    loss_scale.overflow.fill_(1.0)
    muon.step()
    assert all(torch.equal(old, new) for old, new in zip(before, weights, strict=True))
    for weight in weights:
        weight.grad = torch.ones_like(weight)
    loss_scale.overflow.zero_()
    muon.step()
    assert all(bool(torch.isfinite(weight).all()) for weight in weights)
    assert not any(torch.equal(old, new) for old, new in zip(before, weights, strict=True))


def learner_of(**changes: Any) -> Trainer:
    fields: dict[str, Any] = {"width": 4, "head": (4,), "iterations": 2, "optimizer": "muon",
                              "rate": 0.01, "weight_decay": 0.0}  # fmt: skip
    chosen = Recipe(**{**fields, **changes})
    net, _ = build_network(chosen, iterant.task("mazes").spec, seed=1)
    return Trainer(net, chosen, CPU)


@pytest.mark.parametrize("net", ["dt", "dt-recall", "ff", "ff-recall"])
def test_kernels_between_features_are_orthogonalised_and_nothing_else(net: str) -> None:
    trainer = learner_of(net=net)
    batch = iterant.task("mazes").sample(2, size=5)
    trainer.update(batch.inputs, batch.targets, StepRng(0, 0), 1.0)
    kept = {id(weight): set(state) for weight, state in trainer.optimizer.state.items()}
    for name, weight in trainer.module.named_parameters():
        ends = name.startswith(("projection", "head"))
        assert kept[id(weight)] == ({"first", "second", "step"} if ends else {"first"}), name


@pytest.mark.parametrize("throttle", [False, True])
def test_a_restored_learner_goes_on_alike(throttle: bool) -> None:
    batch = iterant.task("mazes").sample(2, size=5)
    first, second = learner_of(throttle=throttle), learner_of(throttle=throttle)
    first.update(batch.inputs, batch.targets, StepRng(0, 0), 1.0)
    second.restore({name: held.clone() for name, held in first.tensors().items()}, 1)
    for trainer in (first, second):
        trainer.update(batch.inputs, batch.targets, StepRng(0, 1), 1.0)
    theirs = second.tensors()
    for name, held in first.tensors().items():
        assert torch.equal(held, theirs[name]), name
