"""Failures in the middle of a run: NaN, divergence, corrupt files, full and read-only disks."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from small_runs import Listener, assert_equal, begin, stopped, stopping_at, uninterrupted
from torch import Tensor

from iterant.errors import RunError, TrainingStopped
from iterant.io import RunFolder
from iterant.training import train
from iterant.training.trainer import Trainer


def failing(out: Path, error: type[BaseException], **changes: Any) -> str:
    """The message of a run that fails; its reporter and its folder have it, too."""
    listener = Listener()
    with pytest.raises(error) as caught:
        begin(out, reporter=listener, **changes)
    message = str(caught.value) or error.__name__
    assert "\n" not in message
    assert listener.ends == [f"failed: {message}"]
    run = RunFolder.open(out)
    assert (run.state, run.status.reason) == ("failed", message)
    return message


def changing_steps(monkeypatch: pytest.MonkeyPatch, change: Callable[[Trainer], Any]) -> None:
    """Call ``change`` after every optimizer step; what it returns is the loss, if not None."""
    original = Trainer.step

    def step(trainer: Trainer, *given: Any) -> Tensor:
        loss, changed = original(trainer, *given), change(trainer)
        return loss if changed is None else torch.tensor(changed)

    monkeypatch.setattr(Trainer, "step", step)


@pytest.mark.parametrize(
    ("what", "message"),
    [("loss", "the loss became nan at step 6"),
     ("weight", "a weight became NaN or infinite by step 8")],
)  # fmt: skip
def test_a_nan_loss_or_an_infinite_weight(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str, message: str
) -> None:
    def corrupt(trainer: Trainer) -> float | None:
        if trainer.steps == 8:
            next(trainer.master.parameters()).data.view(-1)[0] = float("inf")
        return float("nan") if trainer.steps == 6 and what == "loss" else None

    changing_steps(monkeypatch, corrupt)
    text = failing(tmp_path / "run", TrainingStopped)
    assert message in text
    assert "lower lr" in text
    run = RunFolder.open(tmp_path / "run")
    for name in run.checkpoints():  # the last good one
        tensors, about = run.load(name)
        assert about["step"] == 4
        assert all(bool(torch.isfinite(value.double()).all()) for value in tensors.values())


def test_a_run_in_half_precision_saves_losses_that_overflowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changing_steps(monkeypatch, lambda trainer: float("nan") if trainer.steps == 7 else None)
    stopping_at(monkeypatch, 7)  # the loss is logged every second step
    small: dict[str, Any] = {"count": 55, "batch_size": 1, "epochs": 1, "monitor_every": 0}
    run = begin(tmp_path / "run", **small, precision="fp16")
    assert run.load("last")[1]["losses"] == [None]
    stopping_at(monkeypatch, 9)
    assert train(resume=run.path).status.step == 9


def test_an_exception_is_recorded_in_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(trainer: Trainer) -> None:
        raise ZeroDivisionError

    changing_steps(monkeypatch, broken)
    failing(tmp_path / "run", ZeroDivisionError)
    monkeypatch.undo()
    assert_equal(train(resume=tmp_path / "run"), uninterrupted()["progressive"])


def refused(run: RunFolder) -> None:
    """A resume is refused in one line, changes nothing and releases the lock."""
    records = run.metrics()
    with pytest.raises(RunError) as caught:
        train(resume=run.path)
    assert "\n" not in str(caught.value)
    assert run.metrics() == records
    with run.lock():
        pass


def test_corrupt_folders_are_refused_and_intact_ones_resume(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = stopped(tmp_path / "run", monkeypatch, 6, "pool")
    (path,) = (run.path / "checkpoints").glob("last*.safetensors")
    whole = path.read_bytes()
    flipped = bytearray(whole)
    flipped[len(whole) // 2] ^= 16
    for content in (b"", whole[:-1], flipped):
        path.write_bytes(content)
        refused(run)
    path.unlink()
    refused(run)
    path.write_bytes(whole)
    config = run.path / "config.json"
    text = config.read_text("utf-8")
    config.write_text(text.replace('"batch_size": 10', '"batch_size": 5'), "utf-8")
    refused(run)
    config.write_text(text, "utf-8")
    assert_equal(train(resume=run.path), uninterrupted()["pool"])


def damage(run: RunFolder, name: str, how: str) -> Path:
    """Damage a checkpoint; returns the file that an error must name."""
    folder = run.path / "checkpoints"
    path = folder / f"{name}.json" if "index" in how else next(folder.glob(f"{name}-*.safetensors"))
    if "removed" in how:
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[:-1])
    return path


@pytest.mark.parametrize("how", ["cut", "removed", "index removed"])
@pytest.mark.parametrize("name", ["best", "averaged"])
def test_damaged_checkpoints_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, how: str
) -> None:
    """Of a finished run as an error; a run that is not finished replaces them."""
    finished = uninterrupted()["progressive"]
    shutil.copytree(finished.path, tmp_path / "finished")
    path = damage(RunFolder.open(tmp_path / "finished"), name, how)
    with pytest.raises(RunError, match=path.name) as caught:
        train(resume=tmp_path / "finished")
    assert "\n" not in str(caught.value)
    run, listener = stopped(tmp_path / "run", monkeypatch, 6), Listener()
    damage(run, name, how)
    assert train(resume=run.path, reporter=listener).state == "finished"
    (note,) = [note for note in listener.notes if f"checkpoint {name!r} is lost" in note]
    assert path.suffix in note
    assert train(resume=run.path).state == "finished"  # all checkpoints are intact
    for checkpoint in ("last", "averaged"):
        ours, theirs = run.load(checkpoint)[0], finished.load(checkpoint)[0]
        assert all(torch.equal(ours[key], value) for key, value in theirs.items())


@pytest.mark.parametrize(
    "change",
    [
        {"net.projection.weight": torch.zeros(9, 1, 3)},
        {"net.unknown": torch.zeros(1)},
        {"unknown.part": torch.zeros(1)},
        {"average.projection.weight": None},
    ],
)
def test_a_checkpoint_of_another_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: dict[str, Tensor | None]
) -> None:
    run = stopped(tmp_path / "run", monkeypatch, 2)
    tensors, about = run.load("last")
    changed = {name: value for name, value in {**tensors, **change}.items() if value is not None}
    run.save("last", changed, about)
    refused(run)


def test_a_full_disk_keeps_the_last_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    def fill(trainer: Trainer) -> None:
        if trainer.steps == 7:  # from here on nothing can be written, the status neither
            monkeypatch.setattr(os, "fsync", full)

    changing_steps(monkeypatch, fill)
    with pytest.raises(RunError, match="no space left"):
        begin(tmp_path / "run")
    monkeypatch.undo()
    run = RunFolder.open(tmp_path / "run")
    assert run.load("last")[1]["step"] == 4
    assert run.state == "interrupted"
    assert_equal(train(resume=run.path), uninterrupted()["progressive"])
