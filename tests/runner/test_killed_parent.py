"""Runs whose sweep was killed go on: `status` sees them, `stop` ends them, a repeated sweep waits.

All with real processes.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from small_sweeps import SLOW, assert_same_runs, small_plan

from iterant.errors import RunError
from iterant.io import RunFolder
from iterant.io.files import lock_folder, signal_lock_holder
from iterant.runner import SweepFolder, SweepStatus, status, stop, sweep
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


@pytest.fixture(autouse=True)
def imports(monkeypatch: pytest.MonkeyPatch) -> None:
    paths = [str(Path(__file__).parent), *filter(None, sys.path)]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))


def worker_pid(out: Path) -> int:
    """The process that the lock of the run names; 0: none yet."""
    lock = out / "work" / NAME / "lock"
    return int(json.loads(lock.read_text() or '{"pid": 0}')["pid"]) if lock.exists() else 0


@pytest.fixture
def orphan(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[SweepFolder]:
    """A sweep killed when its only run begins to load its libraries, or has a checkpoint."""
    out = tmp_path / "sweep"
    parent = subprocess.Popen([sys.executable, "-c", SWEEP, str(out)])
    # Until the process has been started, its parent holds the lock.
    wait_until(lambda: worker_pid(out) not in (0, parent.pid))
    if getattr(request, "param", "training") == "training":
        wait_until((out / "runs" / NAME / "checkpoints" / "last.json").exists)
    parent.kill()
    parent.wait()
    folder = SweepFolder.open(out)
    yield folder
    signal_lock_holder(folder.work_path(NAME), signal.SIGKILL)


def repeat(folder: SweepFolder, **options: Any) -> SweepStatus:
    return sweep(PLAN, out=folder.path, at_once=1, trust=True, **options)


@pytest.mark.parametrize("orphan", ["starting", "training"], indirect=True)
def test_a_run_without_its_parent_is_seen_and_stopped(orphan: SweepFolder) -> None:
    assert status(orphan).counts["running"] == 1
    pid = worker_pid(orphan.path)
    assert f"process {pid}" in str(orphan.worker(NAME))
    assert stop(orphan.path) == f"process {pid} of {NAME} was signalled to save and stop"
    wait_until(lambda: orphan.worker(NAME) is None)
    assert status(orphan).counts["left"] == 1
    assert stop(orphan.path) == "nothing was running"
    if orphan.is_started(NAME):
        run = RunFolder.open(orphan.run_path(NAME))
        assert (run.state, run.status.reason) == ("stopped", "stopped by SIGTERM")
        assert run.load("last")[1]["step"] == run.status.step


@pytest.mark.parametrize("orphan", ["starting"], indirect=True)
def test_a_repeated_sweep_waits_for_it(orphan: SweepFolder, tmp_path: Path) -> None:
    pid = worker_pid(orphan.path)
    lines: list[str] = []
    done = repeat(orphan, results=tmp_path / "results", say=lines.append)
    assert done.counts["done"] == 1
    assert lines[1].startswith(f"{NAME}: continued by process {pid}")
    assert lines[1].endswith("from an earlier start; waiting for it")
    assert (tmp_path / "results" / "real.json").exists()
    log = (orphan.work_path(NAME) / "log").read_text()
    assert log.count("kept in") == log.count("done") == 1  # of one process
    assert orphan.failures(NAME).failures == 0
    whole = SweepFolder.prepare(tmp_path / "whole", PLAN)
    assert run_one(whole.path, NAME, device="cpu", trust=True)
    assert_same_runs(orphan, whole)


def test_a_repeated_sweep_takes_over(orphan: SweepFolder) -> None:
    pid = worker_pid(orphan.path)

    def kill() -> None:
        time.sleep(0.5)
        os.kill(pid, signal.SIGKILL)

    threading.Thread(target=kill).start()
    assert repeat(orphan, results=None).counts["done"] == 1
    log = (orphan.work_path(NAME) / "log").read_text()
    assert log.count("kept in") == 2
    assert orphan.failures(NAME).failures == 0


def test_a_stop_reaches_a_run_that_a_sweep_waits_for(orphan: SweepFolder) -> None:
    texts: list[str] = []

    def stop_soon() -> None:
        time.sleep(0.5)
        texts.append(stop(orphan.path))

    threading.Thread(target=stop_soon).start()
    assert repeat(orphan, results=None).counts["left"] == 1
    assert texts == [f"process {os.getpid()} was signalled to save and stop"]
    assert orphan.worker(NAME) is None
    assert RunFolder.open(orphan.run_path(NAME)).status.reason == "stopped by SIGTERM"


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
    folder.work_path(NAME).mkdir()
    for place, words in ((folder.path, ""), (folder.work_path(NAME), f" of {NAME}")):
        lie(place / "lock", bystander)
        assert stop(folder.path) == "nothing was running"
        command = [sys.executable, "-c", HOLD, str(place)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as holder:
            assert holder.stdout is not None
            assert holder.stdout.readline() == b"locked\n"
            truth = (place / "lock").read_text()
            lie(place / "lock", bystander)  # such as on another machine
            with pytest.raises(RunError, match=f"run by process {bystander.pid} .*; stop it"):
                stop(folder.path)
            (place / "lock").write_text(truth)
            assert (
                stop(folder.path) == f"process {holder.pid}{words} was signalled to save and stop"
            )
            assert holder.wait() == -signal.SIGTERM


def test_processes_that_read_the_file_or_hold_another_lock_are_not_signalled(
    tmp_path: Path,
) -> None:
    lock, other = tmp_path / "lock", tmp_path / "other"
    other.mkdir()
    with (
        lock_folder(tmp_path),
        lock.open("rb") as file,
        subprocess.Popen(["/bin/sleep", "60"], stdin=file) as reader,
        lock_folder(other) as held,
        subprocess.Popen(["/bin/sleep", "60"], stdin=held) as holder,
    ):
        for process in (reader, holder):
            lie(lock, process)
            assert signal_lock_holder(tmp_path, signal.SIGTERM) is None
            process.kill()
    for content in ("", "[]", '{"pid": -1}', '{"pid": "self"}'):
        lock.write_text(content)
        assert signal_lock_holder(tmp_path, signal.SIGTERM) is None
