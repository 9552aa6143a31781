"""What stops a run whose loss runs away, and what it remembers."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_runs import begin, stopping_at

from iterant.errors import TrainingStopped
from iterant.training import train
from iterant.training.interrupts import LossGuard


def test_a_checkpoint_is_spoken_of_only_where_there_is_one() -> None:
    guard = LossGuard(patience=1)
    guard.see(1, 0.5)
    assert "no checkpoint was saved yet" in guard.advice
    guard.saved = True
    assert "the last good checkpoint is kept" in guard.advice


def test_a_rate_is_not_blamed_for_a_loss_that_never_was_a_number() -> None:
    with pytest.raises(TrainingStopped, match=r"at update 1 .*: look at the network"):
        LossGuard().see(1, float("nan"))
    resumed = LossGuard()
    resumed.saved = True
    with pytest.raises(TrainingStopped, match="lower --rate"):
        resumed.see(9, float("nan"))


def test_high_losses_are_counted_on_over_a_resume(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopping_at(monkeypatch, 6)
    original = LossGuard.see
    monkeypatch.setattr(LossGuard, "see", lambda guard, n, loss: original(guard, n, 1e6 * (n > 1)))
    run = begin(tmp_path / "run")
    count = run.load("last")[1]["losses_above"]
    assert count == run.status.step - 1 > 0
    seen: list[int] = []

    def see(guard: LossGuard, update: int, loss: float) -> None:
        seen.append(guard.above)
        original(guard, update, loss)

    monkeypatch.setattr(LossGuard, "see", see)
    stopping_at(monkeypatch, None)
    train(resume=run.path)
    assert seen[0] == count


def test_an_explosion_is_noticed_and_a_bad_batch_is_not() -> None:
    guard = LossGuard(factor=10.0, patience=3)
    for number, loss in enumerate([0.7, 0.01, 122.0, 90.0, 0.02, 0.5, 6.9]):
        guard.see(number, loss)
    for number in (7, 8):
        guard.see(number, 8.0)
    with pytest.raises(TrainingStopped, match=r"exploded at update 9 .*: 6.9, 7: 8, 8: 8, 9: 8"):
        guard.see(9, 8.0)


def test_the_guard_remembers_over_a_resume(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stopping_at(monkeypatch, 6)
    run = begin(tmp_path / "run")
    first = run.load("last")[1]["first_loss"]
    assert 0 < first < 1
    seen: list[float | None] = []
    original = LossGuard.see

    def see(guard: LossGuard, update: int, loss: float) -> None:
        seen.append(guard.first)
        original(guard, update, loss)

    monkeypatch.setattr(LossGuard, "see", see)
    stopping_at(monkeypatch, None)
    train(resume=run.path)
    assert set(seen) == {first}
