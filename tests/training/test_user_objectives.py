"""A loss or an objective that the caller of `iterant.train` gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from small_runs import assert_equal, begin, stopped
from torch import Tensor, nn
from torch.nn import functional

from iterant.errors import UsageError
from iterant.rng import StepRng
from iterant.training import train
from iterant.training.objectives import Objective, Segment, Unroll


def doubled(logits: Tensor, targets: Tensor) -> Tensor:
    return 2 * functional.cross_entropy(logits, targets)


class FullUnroll(Objective):
    def run(self, unroll: Unroll, inputs: Tensor, targets: Tensor, rng: StepRng) -> Tensor:
        return unroll.forward_backward(inputs, targets, Segment(self.recipe.iterations)).loss


def first_loss(folder: Path, **options: Any) -> float:
    return float(begin(folder, epochs=1, **options).metrics()[0]["loss"])


def test_a_function_replaces_the_cross_entropy(tmp_path: Path) -> None:
    usual = first_loss(tmp_path / "usual")
    # Prefix sums count every position, so that this is the usual loss.
    same = first_loss(tmp_path / "same", objective=nn.CrossEntropyLoss())
    assert same == pytest.approx(usual, rel=1e-6)
    assert first_loss(tmp_path / "twice", objective=doubled) == pytest.approx(2 * usual, rel=1e-6)


def test_a_class_replaces_the_objective(tmp_path: Path) -> None:
    run = begin(tmp_path / "mine", objective=FullUnroll)
    weights, _ = run.load("last")
    usual, _ = begin(tmp_path / "usual", alpha=0.0).load("last")  # the full unroll alone
    for name, value in usual.items():
        assert torch.equal(weights[name], value)
    assert run.config["objective"] == "test_user_objectives:FullUnroll"
    assert run.config["recipe"]["name"] == "paper, changed"
    assert train(resume=run.path).state == "finished"  # nothing to do, so it is not needed


def test_a_run_resumes_with_the_same_loss_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = begin(tmp_path / "whole", objective=doubled)
    stopped(tmp_path / "broken", monkeypatch, 5, objective=doubled)
    stopped(tmp_path / "plain", monkeypatch, 5)
    with pytest.raises(UsageError, match=r"test_user_objectives:doubled.*give it again"):
        train(resume=tmp_path / "broken", device="cpu", trust=True)
    for path, objective, remedy in (
        ("broken", FullUnroll, "give it again: objective="),
        ("plain", doubled, "leave out objective="),
    ):
        with pytest.raises(UsageError, match=f"was trained with .*; {remedy}"):
            train(resume=tmp_path / path, device="cpu", objective=objective)
    assert_equal(train(resume=tmp_path / "broken", device="cpu", objective=doubled), whole)


@pytest.mark.parametrize(
    ("objective", "message"),
    [
        (int, "a subclass of iterant.training.objectives.Objective; got <class 'int'>"),
        (3, "got 3"),
        ("poool", "did you mean 'pool'"),
        (lambda logits, _: logits, "a loss is a scalar tensor with a gradient, got a tensor of"),
        (lambda *_: 1.0, "got 1.0"),
    ],
)
def test_wrong_objectives(tmp_path: Path, objective: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        begin(tmp_path / "run", objective=objective)
