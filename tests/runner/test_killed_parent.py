"""A sweep that is killed or stopped: its runs save, and the same command resumes them.

All with real processes.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from small_sweeps import SLOW, assert_same_runs, small_plan

from iterant.errors import RunError
from iterant.io import RunFolder
from iterant.io.files import lock_folder, signal_lock_holder
from iterant.runner import SweepFolder, status, stop, sweep
from iterant.runner.worker import run_one

PLAN = small_plan("real", seeds=[0], **SLOW)
(NAME,) = (run.name for run in PLAN.runs)
SWEEP = """
import sys
from iterant.runner import sweep
from small_sweeps import SLOW, small_plan
sweep(small_plan("real", seeds=[0], **SLOW), out=sys.argv[1], at_once=1, results=None)
"""
HOLD = """
import sys, time
from iterant.io.files import lock_folder
with lock_folder(sys.argv[1]):
    print("locked", flush=True)
    time.sleep(60)
"""


def wait_until(condition: Callable[[], object], seconds: float = 120.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "this takes too long"
        time.sleep(0.02)


@pytest.mark.parametrize("how", ["killed at its start", "killed", "stopped"])
def test_runs_of_a_killed_or_stopped_sweep_save_and_are_resumed(
    how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [str(Path(__file__).parent), *filter(None, sys.path)]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))
    out = tmp_path / "sweep"
    parent = subprocess.Popen([sys.executable, "-c", SWEEP, str(out)])
    wait_until((out / "work" / NAME / "log").exists)
    if how != "killed at its start":
        wait_until((out / "runs" / NAME / "checkpoints" / "last.json").exists)
    if how == "stopped":
        assert stop(out) == f"process {parent.pid} was signalled to save and stop"
    else:
        parent.kill()
    parent.wait()
    folder = SweepFolder.open(out)
    if how != "killed at its start":
        wait_until(lambda: folder.worker(NAME) is None)
        assert status(folder).counts["left"] == 1
        run = RunFolder.open(folder.run_path(NAME))
        assert (run.state, run.status.reason) == ("stopped", "stopped by SIGTERM")
        assert run.load("last")[1]["step"] == run.status.step < 96
    assert sweep(PLAN, out=out, at_once=1, trust=True, results=None).counts["done"] == 1
    whole = SweepFolder.prepare(tmp_path / "whole", PLAN)
    assert run_one(whole.path, NAME, device="cpu", trust=True)
    assert_same_runs(folder, whole)


@pytest.fixture
def bystander() -> Iterator[subprocess.Popen[bytes]]:
    """A process that is not ours."""
    process = subprocess.Popen(["/bin/sleep", "60"])
    yield process
    assert process.poll() is None, "it was signalled"
    process.kill()
    process.wait()


def lie(path: Path, process: subprocess.Popen[bytes]) -> None:
    """Let a lock file name that process."""
    owner = {"pid": process.pid, "host": os.uname().nodename, "command": "", "since": ""}
    path.write_text(json.dumps(owner))


def test_the_number_in_a_lock_file_is_not_believed(
    tmp_path: Path, bystander: subprocess.Popen[bytes]
) -> None:
    folder = SweepFolder.prepare(tmp_path / "s", PLAN)
    lock = folder.path / "lock"
    lie(lock, bystander)
    assert stop(folder.path) == "nothing was running"
    command = [sys.executable, "-c", HOLD, str(folder.path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"locked\n"
        truth = lock.read_text()
        lie(lock, bystander)  # such as on another machine
        with pytest.raises(RunError, match=f"run by process {bystander.pid} .*; stop it"):
            stop(folder.path)
        lock.write_text(truth)
        assert stop(folder.path) == f"process {holder.pid} was signalled to save and stop"
        assert holder.wait() == -signal.SIGTERM


def test_a_process_that_reads_the_file_and_holds_another_lock_is_not_signalled(
    tmp_path: Path,
) -> None:
    lock, other = tmp_path / "lock", tmp_path / "other"
    other.mkdir()
    command = [sys.executable, "-c", HOLD, str(other)]
    with (
        lock_folder(tmp_path),
        lock.open("rb") as file,
        subprocess.Popen(command, stdin=file, stdout=subprocess.PIPE) as process,
    ):
        assert process.stdout is not None
        assert process.stdout.readline() == b"locked\n"
        lie(lock, process)
        assert signal_lock_holder(tmp_path, signal.SIGTERM) is None
        assert process.poll() is None
        process.kill()
    for content in ("", "[]", '{"pid": -1}', '{"pid": "self"}'):
        lock.write_text(content)
        assert signal_lock_holder(tmp_path, signal.SIGTERM) is None
