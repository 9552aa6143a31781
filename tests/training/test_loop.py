"""A run resumed at any step equals the uninterrupted run, however it was stopped."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest
import torch
from small_runs import (
    KINDS,
    Listener,
    assert_equal,
    begin,
    metrics,
    stopped,
    stopping_at,
    uninterrupted,
)

import iterant
from iterant.errors import TrainingStopped
from iterant.io import RunFolder
from iterant.training import train
from iterant.training.loop import PERFECT, Clock, Loop, LossGuard, Validator


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("stops", [(0,), (1,), (4,), (6, 7), (3, 9, 11)])
def test_a_run_resumed_at_any_step_equals_an_uninterrupted_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, stops: tuple[int, ...]
) -> None:
    run: RunFolder | None = None
    for stop in stops:
        stopping_at(monkeypatch, stop)
        run = begin(tmp_path / "run", kind) if run is None else train(resume=run.path)
        assert (run.state, run.status.reason) == ("stopped", "stopped by SIGINT")
        assert run.status.step == run.load("last")[1]["step"] == stop
    stopping_at(monkeypatch, None)
    assert run is not None
    assert_equal(train(resume=run.path, device="cpu"), uninterrupted()[kind])


def test_logged_losses_do_not_depend_on_a_stop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # 44 optimizer steps an epoch: the loss is read every second one.
    changes: dict[str, Any] = {"count": 55, "batch_size": 1, "epochs": 1, "monitor_every": 0}
    whole = begin(tmp_path / "whole", **changes)
    broken = stopped(tmp_path / "broken", monkeypatch, 7, **changes)
    assert_equal(train(resume=broken.path), whole)
    steps = [r["step"] for r in metrics(whole) if r["kind"] == "train"]
    assert steps == list(range(2, 45, 2))


def test_a_checkpoint_without_its_pool_is_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As earlier versions saved it with ``drop_pool``: the pool starts empty."""
    run = stopped(tmp_path / "run", monkeypatch, 6, "pool")
    tensors, metadata = run.load("last")
    tensors = {name: value for name, value in tensors.items() if not name.startswith("pool.")}
    run.save("last", tensors, {**metadata, "pool": False})
    assert train(resume=run.path).state == "finished"


def test_a_run_without_checkpoint_restarts(tmp_path: Path) -> None:
    config = dict(uninterrupted()["pool"].config)
    del config["format"]
    run = RunFolder.create(tmp_path / "run", config)
    run.log({"step": 2, "kind": "train", "loss": 0.1})
    listener = Listener()
    assert_equal(train(resume=run.path, device="cpu", reporter=listener), uninterrupted()["pool"])
    assert any("starts from the beginning" in note for note in listener.notes)


def test_another_version_of_the_code_is_noted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopping_at(monkeypatch, 2)
    run = begin(tmp_path / "run")
    listener = Listener()
    train(resume=run.path, reporter=listener)
    assert listener.notes == []
    monkeypatch.setattr("iterant.training.run.code_version", lambda: ("0" * 40, False))
    train(resume=run.path, reporter=listener)
    assert "another version of the code" in listener.notes[0]


def test_a_resumed_run_finds_the_data_of_its_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = tmp_path / "stored"
    stored.mkdir()
    batch = iterant.task("prefix-sums").sample(60, size=8, seed=4)
    torch.save((batch.inputs[:, 0] > 0).float(), stored / "8_data.pth")
    torch.save(batch.targets.float(), stored / "8_targets.pth")
    monkeypatch.chdir(tmp_path)
    task = iterant.task("prefix-sums", data="stored")
    stopping_at(monkeypatch, 2)
    changes = {**KINDS["progressive"], "monitor_every": 0}
    run = train(task, out=tmp_path / "run", device="cpu", **changes)
    assert run.config["data"] == str(stored.resolve())
    monkeypatch.chdir("/")
    stopping_at(monkeypatch, 3)
    assert train(resume=run.path).status.step == 3


@pytest.mark.parametrize(("average", "step"), [(None, 4), (0.5, 12)])
def test_a_perfect_validation_ends_a_run_whose_weights_are_not_averaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, average: float | None, step: int
) -> None:
    monkeypatch.setattr(Validator, "validate", lambda *_: {"validation": 1.0})
    run = begin(tmp_path / "run", until_perfect=True, ema_decay=average, validate_every=1)
    assert run.status.step == step
    assert run.status.reason == (PERFECT if average is None else None)
    assert run.load("last")[1]["step"] == step, "it can be resumed"


def fake_clock(monkeypatch: pytest.MonkeyPatch, tick: float) -> None:
    """Let clocks advance by that many seconds each time they are read."""
    elapsed = iter(range(10**6))
    monkeypatch.setattr(Clock, "elapsed", property(lambda _: tick * next(elapsed)))


def test_a_time_limit_stops_with_a_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_clock(monkeypatch, 10.0)
    run = begin(tmp_path / "run", "pool", time_limit=200.0)
    assert (run.state, run.status.reason) == ("stopped", "stopped at the time limit")
    assert 0 < run.status.step < 12
    clock = Clock(1000.0)
    fake_clock(monkeypatch, 985.0)
    clock.record(10.0)
    assert [clock.over, clock.over] == [False, True], "21 s are reserved for the longest work"
    monkeypatch.undo()
    assert_equal(train(resume=run.path), uninterrupted()["pool"])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1])
def test_repeated_sigterm_still_saves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    original = Loop.save

    def signalled(loop: Loop) -> None:
        for again in (number, signal.SIGTERM, signal.SIGUSR1):
            signal.raise_signal(again)
        original(loop)

    with monkeypatch.context() as patch:
        patch.setattr(Loop, "save", signalled)
        run = begin(tmp_path / "run", "pool")
    assert run.status.reason == f"stopped by {number.name}"
    assert run.status.step == run.load("last")[1]["step"] > 0
    assert_equal(train(resume=run.path), uninterrupted()["pool"])


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
    nan = float("nan")
    with pytest.raises(TrainingStopped, match=r"became nan at step 1 .*lower lr"):
        LossGuard().check(1, nan)
    guard = LossGuard(factor=10.0, patience=3)
    for number, loss in enumerate([0.7, 0.01, 122.0, 90.0, 0.02, 0.5, 6.9, 8.0, 8.0]):
        guard.check(number, loss)
    with pytest.raises(TrainingStopped, match=r"exploded at step 9 .*: 6.9, 7: 8, 8: 8, 9: 8"):
        guard.check(9, 8.0)
    guard = LossGuard(patience=3, least_first=0.7)
    for number, loss in enumerate([0.002, 0.1, 0.2, 0.3, 6.9]):  # a branch: its first loss is low
        guard.check(number, loss)
    for losses in ([1.0, 0.9], []):  # where a loss scale skips steps, NaN is only a high loss
        guard = LossGuard(patience=3, forgiving=True)
        for number, loss in enumerate([*losses, nan, float("inf")]):
            guard.check(number, loss)
        with pytest.raises(TrainingStopped, match="became nan"):
            guard.check(4, nan)


def test_the_guard_continues_after_a_resume(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = LossGuard.check
    monkeypatch.setattr(LossGuard, "check", lambda guard, n, loss: original(guard, n, 9.0**n))
    stopping_at(monkeypatch, 6)
    run = begin(tmp_path / "run")
    stopping_at(monkeypatch, 8)
    about = train(resume=run.path).load("last")[1]
    assert (about["first_loss"], about["losses_above"]) == (9.0, 6)
