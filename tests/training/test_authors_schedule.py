"""Learning rate and validation, epoch by epoch, as the paper's authors ran it.

Compared with their rule stated once more, and with the log of the maze run they published.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from small_runs import begin, metrics

from iterant import registry
from iterant.nets.factory import VARIANTS
from iterant.training import train
from iterant.training.build import build_network
from iterant.training.loop import Loop
from iterant.training.optim import build_optimizer, lr_factor
from iterant.training.recipe import Recipe
from iterant.training.recipes import recipe
from iterant.training.validation import Figures, Validator

PROBLEMS = ("prefix-sums", "mazes", "chess")
MAZES: dict[str, Any] = {"size": 3, "count": 50, "width": 4, "iterations": 2, "watch_every": 0}
LOG = json.loads((Path(__file__).parent / "data" / "authors-maze-run.json").read_text())
VALIDATED = [value / 100 for value in LOG["validation accuracy (%) after each epoch"]]


def authors_factors(
    epochs: int, period: int, milestones: Sequence[int], decay: float
) -> list[float]:
    """The rate of every epoch over the base rate: set anew in the warm-up, then decayed in place.

    Epochs count from 0. A milestone of 60 is met once 60 epochs are over.
    """
    factors, factor = [], 1.0
    for epoch in range(epochs):
        if epoch in milestones:
            factor *= decay
        if epoch < period:
            factor = 1.0 if epoch + 1 >= period else 1.0 - math.exp(-(epoch + 1) / period)
        factors.append(factor)
    return factors


def authors_choice(validated: Sequence[float]) -> int:
    """The epoch, from 1, whose weights are tested: only a strictly better one replaces the best."""
    best, epoch = -1.0, 0
    for number, value in enumerate(validated, start=1):
        if value > best:
            best, epoch = value, number
    return epoch


def our_factors(made: Recipe, per_epoch: int = 80) -> list[float]:
    return [lr_factor(made, epoch * per_epoch, per_epoch) for epoch in range(made.epochs)]


@pytest.mark.parametrize("word", ["paper", "paper-code"])
@pytest.mark.parametrize("net", VARIANTS)
@pytest.mark.parametrize("problem", PROBLEMS)
def test_every_epoch_has_the_authors_rate_and_a_validation(
    word: str, net: str, problem: str
) -> None:
    made = recipe(word, problem, net)
    steps = made.milestones if made.schedule == "steps" else ()
    theirs = authors_factors(made.epochs, made.warmup, steps, made.decay)
    assert our_factors(made) == pytest.approx(theirs, rel=1e-12)
    assert made.validate_every == 1
    assert any("after every epoch" in note for note in made.notes)


def test_the_rates_of_the_authors_log() -> None:
    """They log after an epoch what the next one will have."""
    made, task, config = recipe("paper", "mazes"), registry.task("mazes"), LOG["config"]
    assert (made.epochs, made.warmup, made.rate) == (
        config["epochs"], config["warmup_period"], config["lr"],
    )  # fmt: skip
    net, _ = build_network(made, task.spec, seed=0)
    assert isinstance(net, torch.nn.Module)
    first, recurrent = build_optimizer(made, net).param_groups
    logged = LOG["learning rate logged after each epoch"]
    for group, name in ((first, "all but the recurrent block"), (recurrent, "recurrent block")):
        rates = [made.rate * group["share"] * factor for factor in our_factors(made)]
        assert rates[1:] == pytest.approx(logged[name][:-1], rel=1e-5)


def test_the_authors_log_has_a_validation_an_epoch_and_tests_only_now_and_then() -> None:
    made, config = recipe("paper", "mazes"), LOG["config"]
    assert len(VALIDATED) == made.epochs // made.validate_every == 50
    assert config["val_period"] == 20
    assert LOG["test accuracy logged after epochs"] == [20, 40, 50]


def test_a_run_that_validates_as_theirs_did_tests_the_weights_they_tested(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    values, weights = iter(VALIDATED), {}
    monkeypatch.setattr(Validator, "validate", lambda self, net: {"validation": next(values)})
    keep_best = Loop._keep_best

    def remember(loop: Loop, epoch: int, fresh: Figures) -> None:
        weights[epoch] = loop.trainer.evaluated_weights()["net.projection.weight"].clone()
        keep_best(loop, epoch, fresh)

    monkeypatch.setattr(Loop, "_keep_best", remember)
    run = train("mazes", out=tmp_path / "run", device="cpu", recipe="paper", batch=40, **MAZES)
    logged = [record for record in metrics(run) if record["kind"] == "validation"]
    assert [record["epoch"] for record in logged] == list(range(1, 51))
    assert [record["figures"]["validation"] for record in logged] == VALIDATED
    assert run.status.best["epoch"] == authors_choice(VALIDATED) == 43
    assert run.status.best["validation"] == pytest.approx(0.9999)
    assert torch.equal(run.load("best")[0]["net.projection.weight"], weights[43])
    rates = [record["rate"] for record in metrics(run) if record["kind"] == "train"]
    logged_rates = LOG["learning rate logged after each epoch"]["all but the recurrent block"]
    assert rates[1:] == pytest.approx(logged_rates[:-1], rel=1e-5)


@pytest.mark.parametrize("validated", [[0.0, 0.0], [0.5, 1.0, 1.0, 0.9], [0.9, 0.2, 0.9, 0.95]])
def test_the_first_of_equals_is_tested(
    validated: list[float], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = iter(validated)
    monkeypatch.setattr(Validator, "validate", lambda self, net: {"validation": next(values)})
    run = begin(tmp_path / "run", epochs=len(validated), watch_every=0)
    assert run.status.best["epoch"] == authors_choice(validated)
