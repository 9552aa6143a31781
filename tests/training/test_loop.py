"""A run resumed at any step equals the unbroken run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from small_runs import KINDS, Listener, assert_equal, begin, metrics, stopping_at, unbroken

import iterant
from iterant.io import RunFolder
from iterant.training import train
from iterant.training.loop import PERFECT, Validator


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("stops", [(0,), (1,), (4,), (6, 7), (3, 9, 11)])
def test_a_run_resumed_at_any_step_equals_the_unbroken_run(
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
    assert_equal(train(resume=run.path, device="cpu"), unbroken()[kind])


def test_logged_losses_do_not_depend_on_a_stop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # 44 updates an epoch: the loss is read every second one.
    changes: dict[str, Any] = {"count": 55, "batch": 1, "epochs": 1, "watch_every": 0}
    whole = begin(tmp_path / "whole", **changes)
    stopping_at(monkeypatch, 7)
    broken = begin(tmp_path / "broken", **changes)
    stopping_at(monkeypatch, None)
    assert_equal(train(resume=broken.path), whole)
    steps = [r["step"] for r in metrics(whole) if r["kind"] == "train"]
    assert steps == list(range(2, 45, 2))


def test_a_run_resumed_without_its_pool_notes_it_and_differs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopping_at(monkeypatch, 6)
    first, second = Listener(), Listener()
    run = begin(tmp_path / "run", "pool", drop_pool=True, reporter=first)
    assert any("resumed run will differ" in note for note in first.notes)
    assert not any(name.startswith("pool.") for name in run.load("last")[0])
    stopping_at(monkeypatch, None)
    train(resume=run.path, reporter=second)
    assert any("--drop-pool" in note and "differs" in note for note in second.notes)
    ours, theirs = (r.load("last")[0] for r in (run, unbroken()["pool"]))
    assert not torch.equal(ours["net.projection.weight"], theirs["net.projection.weight"])
    silent = Listener()
    begin(tmp_path / "none", drop_pool=True, reporter=silent)  # an objective without a pool
    assert silent.notes == []


def test_a_run_without_checkpoint_restarts(tmp_path: Path) -> None:
    config = dict(unbroken()["pool"].config)
    del config["format"]
    run = RunFolder.create(tmp_path / "run", config)
    run.log({"step": 2, "kind": "train", "loss": 0.1})
    listener = Listener()
    assert_equal(train(resume=run.path, device="cpu", reporter=listener), unbroken()["pool"])
    assert any("starts from the beginning" in note for note in listener.notes)


def test_a_finished_run_is_not_touched() -> None:
    def times() -> list[tuple[str, int]]:
        return sorted((p.name, p.stat().st_mtime_ns) for p in unbroken()["pool"].path.rglob("*"))

    listener, before = Listener(), times()
    run = train(resume=unbroken()["pool"].path, reporter=listener)
    assert run.state == "finished"
    assert len(listener.notes) == 1
    assert times() == before


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
    changes = {**KINDS["progressive"], "watch_every": 0}
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
    run = begin(tmp_path / "run", until_perfect=True, average=average, validate_every=1)
    assert run.status.step == step
    assert run.status.reason == (PERFECT if average is None else None)
    assert run.load("last")[1]["step"] == step, "it can be resumed"
