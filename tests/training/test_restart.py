"""A run that ends below ``restart_below`` restarts with other weights."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from small_runs import Listener, assert_equal, begin, metrics, stopping_at

from iterant.training import loop as loops
from iterant.training import train
from iterant.training.loop import Validator

RESTARTING: dict[str, Any] = {"restart_below": 0.9, "validate_every": 3}


@pytest.fixture(autouse=True)
def short_runs_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops, "_MIN_STEPS", 12)


def set_accuracies(monkeypatch: pytest.MonkeyPatch, *accuracies: float) -> None:
    """Let validation return these accuracies, one after the other."""
    results: Iterator[float] = iter(accuracies)
    monkeypatch.setattr(Validator, "validate", lambda *_: {"validation": next(results)})


def test_a_failed_run_restarts_with_other_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listener = Listener()
    set_accuracies(monkeypatch, 0.2, 0.9)
    run = begin(tmp_path / "again", **RESTARTING, reporter=listener)
    assert run.state == "finished"
    (note,) = [text for text in listener.notes if "restarting" in text]
    assert "validation accuracy 20.00 % at the end, below 90 %" in note
    weights, about = run.load("last")
    assert (about["tries"], about["step"]) == (2, 12)
    assert run.status.best == {"validation": 0.9, "epoch": 3, "step": 12}
    first, *others = metrics(run)
    assert (first["kind"], first["try"], first["figures"]["validation"]) == ("again", 2, 0.2)
    assert [record["step"] for record in others if record["kind"] == "train"] == [*range(1, 13)]
    set_accuracies(monkeypatch, 0.9)
    straight, metadata = begin(tmp_path / "straight", **RESTARTING).load("last")
    assert metadata["tries"] == 1
    assert any(not torch.equal(weights[name], straight[name]) for name in straight)


@pytest.mark.parametrize("stop", [2, 11])
def test_resume_in_the_second_try(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stop: int
) -> None:
    set_accuracies(monkeypatch, 0.2, 0.95)
    uninterrupted = begin(tmp_path / "uninterrupted", "best", **RESTARTING, choose="validation")
    set_accuracies(monkeypatch, 0.2, 0.95)
    original = loops.Loop._restart

    def then_stop(loop: loops.Loop, fresh: dict[str, float]) -> None:
        original(loop, fresh)
        stopping_at(monkeypatch, stop)

    monkeypatch.setattr(loops.Loop, "_restart", then_stop)
    broken = begin(tmp_path / "broken", "best", **RESTARTING, choose="validation")
    assert (broken.state, broken.status.step) == ("stopped", stop)
    stopping_at(monkeypatch, None)
    assert_equal(uninterrupted, train(resume=broken.path, device="cpu"))


def test_a_kill_during_the_restart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    set_accuracies(monkeypatch, 0.2, 0.95)
    uninterrupted = begin(tmp_path / "uninterrupted", **RESTARTING)
    set_accuracies(monkeypatch, 0.2, 0.95)
    with monkeypatch.context() as patch:
        patch.setattr("iterant.io.RunFolder.rewind_metrics", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            begin(tmp_path / "killed", **RESTARTING)
    killed = train(resume=tmp_path / "killed", device="cpu")
    assert killed.load("last")[1] == uninterrupted.load("last")[1]
    for name, value in uninterrupted.load("last")[0].items():
        assert torch.equal(value, killed.load("last")[0][name]), name


@pytest.mark.parametrize(
    ("accuracies", "least", "tries", "best"),
    [((0.2,), 13, 1, 0.2), ((0.1, 0.3, 0.2), 12, 3, 0.3), ((0.9,), 12, 1, 0.9)],
    ids=["a short run is not restarted", "the best of three is kept", "good enough"],
)
def test_the_number_of_tries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, accuracies: tuple[float, ...], least: int,
    tries: int, best: float,
) -> None:  # fmt: skip
    monkeypatch.setattr(loops, "_MIN_STEPS", least)
    set_accuracies(monkeypatch, *accuracies)
    run = begin(tmp_path / "run", **RESTARTING)
    assert (run.state, run.load("last")[1]["tries"]) == ("finished", tries)
    assert run.status.best["validation"] == best
