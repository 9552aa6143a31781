"""Small runs, and when two of them are equal."""

from __future__ import annotations

import atexit
import functools
import shutil
import tempfile
from pathlib import Path
from typing import Any

import torch

from iterant.io import RunFolder
from iterant.training import train
from iterant.training.logging import Reporter, RunProgress
from iterant.training.loop import Loop, Signals

PROGRESSIVE: dict[str, Any] = {
    "recipe": "paper", "width": 4, "head": (4,), "size": 8, "count": 50, "batch_size": 10,
    "epochs": 3, "iterations": 3, "alpha": 0.5, "warmup_epochs": 2, "milestones": (2,),
    "monitor_count": 4, "monitor_every": 2, "validate_every": 1, "checkpoint_every": 1,
    "ema_decay": 0.9,
}  # fmt: skip
"""Three epochs of four steps each."""

POOL: dict[str, Any] = {
    **PROGRESSIVE, "recipe": "quick", "objective": "pool", "pool_slots": 16, "pool_shortest": 1,
}  # fmt: skip

BEST: dict[str, Any] = {
    **POOL, "recipe": "best", "head": None, "hidden": 5, "pool_longest": 2,
    "warmup_steps": 3,
}  # fmt: skip
"""A local rule."""

KINDS = {"progressive": PROGRESSIVE, "pool": POOL, "best": BEST}

TIMES = ("seconds", "steps_per_second")


class Listener(Reporter):
    """A reporter that records its calls."""

    def __init__(self) -> None:
        self.titles: list[str] = []
        self.reports: list[RunProgress] = []
        self.notes: list[str] = []
        self.ends: list[str] = []

    def begin(self, title: str, folder: Path, progress: RunProgress) -> None:
        self.titles.append(title)
        self.reports.append(progress)

    def show(self, progress: RunProgress) -> None:
        self.reports.append(progress)

    def note(self, text: str) -> None:
        self.notes.append(text)

    def end(self, text: str) -> None:
        self.ends.append(text)


def stopping_at(monkeypatch: Any, step: int | None) -> None:
    """Stop every run before that step; None: stop none."""
    original = _REASON

    def reason(loop: Loop, signals: Signals) -> str | None:
        if step is not None and loop.step >= step:
            signals.raised = "SIGINT"
        return original(loop, signals)

    monkeypatch.setattr(Loop, "_reason_to_stop", reason)


_REASON = Loop._reason_to_stop


def begin(out: Path, kind: str = "progressive", **changes: Any) -> RunFolder:
    return train("prefix-sums", out=out, device="cpu", **{**KINDS[kind], **changes})


def stopped(
    out: Path, monkeypatch: Any, step: int, kind: str = "progressive", **changes: Any
) -> RunFolder:
    """A run that was stopped before that step and can be resumed."""
    stopping_at(monkeypatch, step)
    run = begin(out, kind, **changes)
    stopping_at(monkeypatch, None)
    return run


@functools.cache
def uninterrupted() -> dict[str, RunFolder]:
    """An uninterrupted run of each kind, trained once per test process."""
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return {kind: begin(Path(folder) / kind, kind) for kind in KINDS}


def metrics(run: RunFolder) -> list[dict[str, Any]]:
    """The records without durations."""
    return [
        {name: value for name, value in record.items() if name not in TIMES}
        for record in run.metrics()
    ]


def assert_equal(first: RunFolder, second: RunFolder) -> None:
    """Bit for bit: tensors and metadata of every checkpoint, metrics, status."""
    assert first.checkpoints() == second.checkpoints() != []
    for name in first.checkpoints():
        ours, about = first.load(name)
        theirs, about_theirs = second.load(name)
        assert about == about_theirs, name
        assert ours.keys() == theirs.keys(), name
        for key, value in ours.items():
            assert value.dtype == theirs[key].dtype, key
            assert torch.equal(value, theirs[key]), f"{name} {key}"
    assert metrics(first) == metrics(second)
    assert first.status.best == second.status.best
    assert first.state == second.state
