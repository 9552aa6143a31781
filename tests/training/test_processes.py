"""Runs in separate processes: signals, kills, and several processes by torchrun."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from small_runs import POOL, PROGRESSIVE, assert_equal, begin, stopping_at, uninterrupted

from iterant.errors import RunError
from iterant.io import RunFolder
from iterant.training import train

CHILD = Path(__file__).with_name("child.py")
LONG: dict[str, Any] = {"epochs": 5000, "monitor_every": 0, "validate_every": 500,
                        "checkpoint_every": 500}  # fmt: skip
"""Too long to finish during a test."""


def started(out: Path, kind: str, changes: dict[str, Any]) -> subprocess.Popen[str]:
    """A run in a separate process, once it trains."""
    command = [sys.executable, str(CHILD), "train", str(out), json.dumps(kind), json.dumps(changes)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    metrics = out / "metrics.jsonl"
    while process.poll() is None and not (metrics.exists() and metrics.stat().st_size):
        time.sleep(0.02)
    return process


@pytest.mark.parametrize(
    ("number", "kind"), [(signal.SIGINT, "progressive"), (signal.SIGTERM, "pool")]
)
def test_a_signal_saves_and_stops(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals, kind: str
) -> None:
    process = started(tmp_path / "run", kind, LONG)
    with pytest.raises(RunError, match="is in use by"):
        train(resume=tmp_path / "run")
    process.send_signal(number)
    out, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (0, "")
    assert json.loads(out) == {"state": "stopped"}
    run = RunFolder.open(tmp_path / "run")
    assert run.status.reason == f"stopped by {number.name}"
    step = run.status.step
    assert 0 < step == run.load("last")[1]["step"]
    # What it saved is what a run in this process has at that step, and it can be resumed.
    stopping_at(monkeypatch, step)
    assert_equal(run, begin(tmp_path / "same", kind, **LONG))
    stopping_at(monkeypatch, step + 3)
    assert train(resume=run.path).status.step == step + 3


@pytest.mark.parametrize(
    ("times", "epochs"), [(10, 20), pytest.param(50, 150, marks=pytest.mark.system)]
)
def test_a_run_killed_many_times_equals_an_uninterrupted_one(
    tmp_path: Path, times: int, epochs: int
) -> None:
    changes = {"epochs": epochs, "monitor_every": 0, "validate_every": epochs // 4,
               "checkpoint_every": 2}  # fmt: skip
    interval = 8  # steps between checkpoints: four an epoch
    command = [sys.executable, str(CHILD), "killed", str(tmp_path / "run"), json.dumps(changes),
               str(times)]  # fmt: skip
    # The child opens the folder and loads every checkpoint after each kill.
    done = subprocess.run(command, capture_output=True, text=True, timeout=400)
    assert (done.returncode, done.stderr) == (0, "")
    *reports, end = [json.loads(line) for line in done.stdout.splitlines()]
    assert end == {"state": "finished"}
    assert len(reports) == times
    in_time = [report for report in reports if report["killed"]]
    assert len(in_time) >= times // 2
    for report in in_time:
        early = {"created"} if report["reached"] == 0 else set()  # before the first step
        assert report["state"] in {"interrupted"} | early, report
    lost = max(report["reached"] - report["last"] for report in in_time)
    assert lost <= interval
    assert_equal(RunFolder.open(tmp_path / "run"), begin(tmp_path / "whole", "pool", **changes))


MAZES: dict[str, Any] = {**POOL, "net": "dt-recall", "size": 3, "monitor_every": 0}


def joined(*words: str) -> tuple[int, list[dict[str, Any]], str]:
    """Run two processes; exit code, emitted records and stderr."""
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"]
    done = subprocess.run(
        [*command, str(CHILD), *words], capture_output=True, text=True, timeout=300
    )
    records = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return done.returncode, records, done.stderr


def assert_close(first: RunFolder, second: RunFolder) -> None:
    """The same run up to rounding: weights, optimizer, pool, EMA, losses."""
    assert first.checkpoints() == second.checkpoints()
    ours, theirs = first.load("last")[0], second.load("last")[0]
    assert ours.keys() == theirs.keys()
    for name, value in theirs.items():
        assert torch.allclose(ours[name].double(), value.double(), rtol=1e-3, atol=2e-5), name
    losses = [[r["loss"] for r in run.metrics() if r["kind"] == "train"] for run in (first, second)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)
    kinds = [[(r["kind"], r["step"]) for r in run.metrics()] for run in (first, second)]
    assert kinds[0] == kinds[1]


def test_two_processes_equal_one(tmp_path: Path) -> None:
    cases: dict[str, dict[str, Any]] = {
        "progressive": PROGRESSIVE,
        "pool": POOL,
        "mazes": {**MAZES, "task": "mazes"},
        "stopped": {**POOL, "stop": 6},
        "uneven": {**PROGRESSIVE, "batch_size": 5},
    }
    code, records, errors = joined("joined", str(tmp_path), json.dumps(cases))
    assert code == 0, errors
    assert not [line for line in records if "wrote" in line], "only the first process may write"
    ends = {(line["case"], line["rank"]): line for line in records}
    for case in ("progressive", "pool", "mazes", "stopped"):
        assert {ends[case, rank]["state"] for rank in (0, 1)} == {"finished"}
    whole = uninterrupted()
    assert_close(RunFolder.open(tmp_path / "progressive"), whole["progressive"])
    assert_close(RunFolder.open(tmp_path / "pool"), whole["pool"])
    one = train("mazes", out=tmp_path / "one", device="cpu", **MAZES)
    assert_close(RunFolder.open(tmp_path / "mazes"), one)
    # Stopped by a signal that only the second process received, then resumed by both.
    assert_close(RunFolder.open(tmp_path / "stopped"), whole["pool"])
    for rank in (0, 1):
        failure = ends["uneven", rank]
        assert failure["error"] == "RecipeError"
        assert "a batch of 5 cannot be shared equally by 2 processes" in failure["message"]
    assert not (tmp_path / "uneven").exists()


def test_a_killed_process_ends_the_other_with_a_message(tmp_path: Path) -> None:
    code, (noticed,), _ = joined("lost", str(tmp_path / "run"))
    assert code != 0
    assert noticed["error"] == "TrainingStopped"
    assert "process 0 of 2 lost contact with another" in noticed["message"]
    assert "again with resume" in noticed["message"]
    assert "\n" not in noticed["message"]
    run = RunFolder.open(tmp_path / "run")
    assert run.state == "failed"
    assert run.load("last")[1]["step"] == 4
    # One process resumes what two began.
    assert train(resume=run.path, device="cpu").state == "finished"
    assert_close(run, uninterrupted()["pool"])
