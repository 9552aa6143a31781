"""A sweep that is killed or stopped: its runs save, and the same command resumes them.

All with real processes.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from small_sweeps import SLOW, assert_same_runs, small_plan

from iterant.io import RunFolder
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
        assert stop(out).startswith(f"process {parent.pid} on ")
    else:
        parent.kill()
    parent.wait()
    folder = SweepFolder.open(out)
    assert stop(out) == "nothing was running"
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
