"""Time limits, signals and diverging losses."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from small_runs import Listener, assert_equal, begin, stopping_at, unbroken

from iterant.errors import TrainingStopped, UsageError
from iterant.io import RunFolder
from iterant.training import train
from iterant.training.interrupts import Clock, LossGuard, seconds
from iterant.training.loop import Loop


def clock_of(monkeypatch: pytest.MonkeyPatch, tick: float) -> None:
    """Let clocks go on by that many seconds each time they are looked at."""
    elapsed = iter(range(10**6))
    monkeypatch.setattr(Clock, "elapsed", property(lambda _: tick * next(elapsed)))


def test_a_time_limit_stops_with_a_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock_of(monkeypatch, 10.0)
    run = begin(tmp_path / "run", "pool", time_limit=200.0)
    assert (run.state, run.status.reason) == ("stopped", "stopped at the time limit")
    assert 0 < run.status.step < 12
    monkeypatch.undo()
    assert_equal(train(resume=run.path), unbroken()["pool"])


def test_time_is_reserved_for_the_longest_work(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(1000.0)
    clock_of(monkeypatch, 985.0)
    assert not clock.over  # after 0 s
    clock.record(6.0)
    assert not clock.over  # after 985 s: 13 s are reserved
    clock_of(monkeypatch, 985.0)
    clock.record(10.0)
    assert not clock.over
    assert clock.over  # 21 s are reserved
    assert not Clock(None).over


@pytest.mark.parametrize(
    ("text", "value"),
    [("9m", 540), ("90s", 90), ("1h30m", 5400), ("2d", 172_800), ("45", 45), (1.5, 1.5),
     ("1.5h", 5400), (" 9m ", 540)],
)  # fmt: skip
def test_durations(text: str | float, value: float) -> None:
    assert seconds(text) == value


@pytest.mark.parametrize("text", ["", "soon", "9x", "-9m", "0", 0, -1.0, float("nan"), "m9"])
def test_bad_durations(text: str | float) -> None:
    with pytest.raises(UsageError):
        seconds(text)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1])
def test_repeated_sigterm_still_saves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    original = Loop.save

    def pressed(loop: Loop) -> None:
        for again in (number, signal.SIGTERM, signal.SIGUSR1):
            signal.raise_signal(again)
        original(loop)

    with monkeypatch.context() as patch:
        patch.setattr(Loop, "save", pressed)
        run = begin(tmp_path / "run", "pool")
    assert run.status.reason == f"stopped by {number.name}"
    assert run.status.step == run.load("last")[1]["step"] > 0
    assert_equal(train(resume=run.path), unbroken()["pool"])


def test_a_second_sigint_stops_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listener = Listener()

    def twice(loop: Loop) -> None:
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(Loop, "_step", twice)
    with pytest.raises(KeyboardInterrupt):
        begin(tmp_path / "run", reporter=listener)
    run = RunFolder.open(tmp_path / "run")
    assert (run.state, run.status.reason) == ("stopped", "interrupted")
    assert listener.ends == ["stopped: interrupted"]


def test_only_nan_and_consecutive_high_losses_stop_a_run() -> None:
    with pytest.raises(TrainingStopped, match=r"became nan at step 1 .*lower --rate"):
        LossGuard().check(1, float("nan"))
    guard = LossGuard(factor=10.0, patience=3)
    for number, loss in enumerate([0.7, 0.01, 122.0, 90.0, 0.02, 0.5, 6.9, 8.0, 8.0]):
        guard.check(number, loss)
    with pytest.raises(TrainingStopped, match=r"exploded at step 9 .*: 6.9, 7: 8, 8: 8, 9: 8"):
        guard.check(9, 8.0)


def test_a_forgiving_guard_counts_nan_as_a_high_loss() -> None:
    guard = LossGuard(patience=3, forgiving=True)
    for number, loss in enumerate([float("nan"), 1.0, float("nan"), float("inf")]):
        guard.check(number, loss)
    with pytest.raises(TrainingStopped, match="became nan"):
        guard.check(4, float("nan"))


def test_the_guard_continues_after_a_resume(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopping_at(monkeypatch, 6)
    original = LossGuard.check
    monkeypatch.setattr(LossGuard, "check", lambda guard, n, loss: original(guard, n, 9.0**n))
    run = begin(tmp_path / "run")
    seen: list[tuple[float | None, int]] = []

    def see(guard: LossGuard, step: int, loss: float) -> None:
        seen.append((guard.first, guard.above))
        original(guard, step, loss)

    monkeypatch.setattr(LossGuard, "check", see)
    stopping_at(monkeypatch, None)
    train(resume=run.path)
    assert seen[0] == (9.0, 4)
