"""Failures in the middle of a run: NaN, divergence, corrupt files, full and read-only disks."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from small_runs import Listener, assert_equal, begin, stopping_at, unbroken
from torch import Tensor

from iterant.errors import IterantError, RunError, TrainingStopped
from iterant.io import RunFolder
from iterant.nets.fast.deep_thinking import Fused
from iterant.training import train
from iterant.training.trainer import Trainer


def failing(out: Path, **changes: Any) -> tuple[str, Listener]:
    """The message of a run that fails."""
    listener = Listener()
    with pytest.raises(TrainingStopped) as caught:
        begin(out, reporter=listener, **changes)
    message = str(caught.value)
    assert "\n" not in message
    assert listener.ends == [f"failed: {message}"]
    return message, listener


class TestNumbers:
    def test_an_answer_that_is_no_number(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        original, updates = Fused.answer, Trainer.update
        at: dict[str, int] = {"update": 0}

        def update(trainer: Trainer, *given: Any) -> Tensor:
            at["update"] = trainer.updates + 1
            return updates(trainer, *given)

        def answer(net: Fused, features: Tensor) -> Tensor:
            logits = original(net, features)
            return logits * float("nan") if at["update"] == 6 else logits

        monkeypatch.setattr(Trainer, "update", update)
        monkeypatch.setattr(Fused, "answer", answer)
        message, _ = failing(tmp_path / "run")
        assert "the loss became nan at update 6" in message
        assert all(f"{number}: 0." in message for number in range(1, 6))
        assert "lower --rate" in message
        self.assert_kept(tmp_path / "run", step=4, message=message)

    def test_weights_that_are_no_numbers(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        updates = Trainer.update

        def update(trainer: Trainer, *given: Any) -> Tensor:
            loss = updates(trainer, *given)
            if trainer.updates == 8:
                with torch.no_grad():
                    next(trainer.module.parameters()).view(-1)[0] = float("inf")
            return loss

        monkeypatch.setattr(Trainer, "update", update)
        message, _ = failing(tmp_path / "run")
        assert "a weight became NaN or infinite by update 8" in message
        self.assert_kept(tmp_path / "run", step=4, message=message)
        best, about = RunFolder.open(tmp_path / "run").load("best")
        assert about["step"] == 4
        assert all(bool(torch.isfinite(value).all()) for value in best.values())

    def assert_kept(self, path: Path, *, step: int, message: str) -> None:
        """The last good checkpoint loads and is finite; the folder has the reason."""
        run = RunFolder.open(path)
        assert (run.state, run.status.reason) == ("failed", message)
        for name in run.checkpoints():
            tensors, about = run.load(name)
            assert about["step"] == step
            assert all(bool(torch.isfinite(value.double()).all()) for value in tensors.values())

    def test_a_huge_learning_rate(self, tmp_path: Path) -> None:
        message, _ = failing(tmp_path / "run", rate=1e30, clip=None, optimizer="sgd", warmup=0)
        assert "at update" in message or "by update" in message
        assert RunFolder.open(tmp_path / "run").state == "failed"

    def test_an_exception_is_recorded_in_the_folder(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def broken(*_: Any) -> Tensor:
            raise ZeroDivisionError

        monkeypatch.setattr(Trainer, "update", broken)
        listener = Listener()
        with pytest.raises(ZeroDivisionError):
            begin(tmp_path / "run", reporter=listener)
        run = RunFolder.open(tmp_path / "run")
        assert (run.state, run.status.reason) == ("failed", "ZeroDivisionError")
        assert listener.ends == ["failed: ZeroDivisionError"]
        monkeypatch.undo()
        assert_equal(train(resume=run.path), unbroken()["progressive"])


class TestDamage:
    @pytest.fixture
    def stopped(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunFolder:
        stopping_at(monkeypatch, 6)
        run = begin(tmp_path / "run", "pool")
        stopping_at(monkeypatch, None)
        return run

    def file_of(self, run: RunFolder, name: str) -> Path:
        (found,) = (run.path / "checkpoints").glob(f"{name}*.safetensors")
        return found

    def test_a_truncated_checkpoint(self, stopped: RunFolder) -> None:
        path = self.file_of(stopped, "last")
        whole = path.read_bytes()
        for length in (0, 7, len(whole) // 2, len(whole) - 1):
            path.write_bytes(whole[:length])
            self.refused(stopped)
        path.write_bytes(whole)
        assert_equal(train(resume=stopped.path), unbroken()["pool"])

    def test_a_flipped_bit(self, stopped: RunFolder) -> None:
        path = self.file_of(stopped, "last")
        whole = path.read_bytes()
        for place in (3, 40, len(whole) // 2, len(whole) - 1):
            path.write_bytes(whole[:place] + bytes([whole[place] ^ 16]) + whole[place + 1 :])
            self.refused(stopped)
        path.write_bytes(whole)
        assert_equal(train(resume=stopped.path), unbroken()["pool"])

    def test_a_missing_file(self, stopped: RunFolder) -> None:
        self.file_of(stopped, "last").unlink()
        self.refused(stopped)

    def test_an_edited_config(self, stopped: RunFolder) -> None:
        path = stopped.path / "config.json"
        path.write_text(path.read_text("utf-8").replace('"batch": 10', '"batch": 5'), "utf-8")
        self.refused(stopped)

    def test_a_checkpoint_of_another_network(self, stopped: RunFolder) -> None:
        tensors, about = stopped.load("last")
        for change in (
            {"net.projection.weight": torch.zeros(9, 1, 3)},
            {"net.unknown": torch.zeros(1)},
            {"unknown.part": torch.zeros(1)},
        ):
            stopped.save("last", {**tensors, **change}, about)
            self.refused(stopped)
        less = {name: value for name, value in tensors.items() if not name.startswith("average.")}
        stopped.save("last", less, about)
        self.refused(stopped)

    def refused(self, run: RunFolder) -> None:
        records = run.metrics()
        with pytest.raises(IterantError) as caught:
            train(resume=run.path)
        assert isinstance(caught.value, RunError)
        assert "\n" not in str(caught.value)
        assert run.metrics() == records
        with run.lock():
            pass  # the lock was released


@pytest.fixture
def little_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 400 kB."""
    place = tmp_path / "disk"
    place.mkdir()
    mount, unmount = shutil.which("mount"), shutil.which("umount")
    if os.geteuid() != 0 or mount is None or unmount is None:
        pytest.skip("needs root to mount a small disk")
    made = subprocess.run(
        [mount, "-t", "tmpfs", "-o", "size=400k", "tmpfs", str(place)], capture_output=True
    )
    if made.returncode:
        pytest.skip("this system mounts nothing here")
    yield place
    subprocess.run([unmount, str(place)], check=True)


class TestDisks:
    def test_a_full_disk_keeps_the_last_checkpoint(
        self, little_disk: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        updates = Trainer.update

        def update(trainer: Trainer, *given: Any) -> Tensor:
            if trainer.updates == 6:
                with (little_disk / "filler").open("wb", buffering=0) as file:
                    while True:
                        try:
                            file.write(bytes(4096))
                        except OSError:
                            break
            return updates(trainer, *given)

        monkeypatch.setattr(Trainer, "update", update)
        listener = Listener()
        with pytest.raises(RunError, match="the disk is full") as caught:
            begin(little_disk / "run", reporter=listener)
        assert "\n" not in str(caught.value)
        assert listener.ends == [f"failed: {caught.value}"]
        run = RunFolder.open(little_disk / "run")
        assert run.load("last")[1]["step"] == 4
        assert run.state in ("failed", "interrupted")
        (little_disk / "filler").unlink()
        monkeypatch.undo()
        assert_equal(train(resume=run.path), unbroken()["progressive"])
