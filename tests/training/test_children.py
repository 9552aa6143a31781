"""Runs in processes of their own: signals and kills."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from small_runs import assert_equal, begin, stopping_at

from iterant.errors import RunError
from iterant.io import RunFolder
from iterant.training import train

CHILD = Path(__file__).with_name("child.py")
LONG: dict[str, Any] = {"epochs": 5000, "watch_every": 0, "validate_every": 500,
                        "checkpoint_every": 500}  # fmt: skip
"""Too long to end by itself while a test watches."""


def started(out: Path, kind: str, changes: dict[str, Any]) -> subprocess.Popen[str]:
    """A run in a process of its own, once it has begun to learn."""
    command = [sys.executable, str(CHILD), "train", str(out), kind, json.dumps(changes)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    metrics = out / "metrics.jsonl"
    while process.poll() is None and not (metrics.exists() and metrics.stat().st_size):
        time.sleep(0.02)
    return process


@pytest.mark.parametrize(
    ("number", "kind"), [(signal.SIGINT, "progressive"), (signal.SIGTERM, "pool")]
)
def test_a_signal_saves_and_leaves(
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
    # What it saved is what a run in this process has at that update, and it goes on.
    stopping_at(monkeypatch, step)
    assert_equal(run, begin(tmp_path / "same", kind, **LONG))
    stopping_at(monkeypatch, step + 3)
    assert train(resume=run.path).status.step == step + 3


def test_a_run_killed_ten_times_equals_the_unbroken_one(tmp_path: Path) -> None:
    changes = {"epochs": 20, "watch_every": 0, "validate_every": 5, "checkpoint_every": 2}
    command = [sys.executable, str(CHILD), "killed", str(tmp_path / "run"), "pool"]
    done = subprocess.run(
        [*command, json.dumps(changes)], capture_output=True, text=True, timeout=300
    )
    assert (done.returncode, done.stderr) == (0, "")
    *looks, end = [json.loads(line) for line in done.stdout.splitlines()]
    assert end == {"state": "finished"}
    assert len(looks) == 10
    assert sum(look["killed"] and look["there"] for look in looks) >= 3
    for look in looks:
        if look["there"]:
            # Four updates an epoch, a checkpoint every second one.
            assert look["reached"] - look["last"] <= 8, look
            early = {"created"} if look["reached"] == 0 else set()  # before its first update
            assert look["state"] in ({"interrupted"} | early if look["killed"] else {"finished"}), (
                look
            )
    whole = begin(tmp_path / "whole", "pool", **changes)
    assert_equal(RunFolder.open(tmp_path / "run"), whole)
