"""Killed fifty times at random moments: nothing unreadable, little lost, the end the same."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from small_runs import assert_equal, begin

from iterant.io import RunFolder

CHILD = Path(__file__).with_name("child.py")
TIMES = 50
INTERVAL = 8
"""Updates between checkpoints: four an epoch, a checkpoint every second one."""


@pytest.mark.system
def test_a_run_killed_fifty_times_equals_the_unbroken_one(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    changes = {"epochs": 150, "watch_every": 0, "validate_every": 50, "checkpoint_every": 2}
    command = [sys.executable, str(CHILD), "killed", str(tmp_path / "run"), "pool",
               json.dumps(changes), str(TIMES)]  # fmt: skip
    # The child opens the folder and loads every checkpoint after each kill; it would fail.
    done = subprocess.run(command, capture_output=True, text=True, timeout=400)
    assert (done.returncode, done.stderr) == (0, "")
    *looks, end = [json.loads(line) for line in done.stdout.splitlines()]
    assert end == {"state": "finished"}
    assert len(looks) == TIMES
    in_time = [look for look in looks if look["killed"] and look["there"]]
    assert len(in_time) >= TIMES // 2, "the run ended before most of the kills"
    assert all(look["state"] == "interrupted" for look in in_time)
    lost = max(look["reached"] - look["last"] for look in in_time)
    assert lost <= INTERVAL
    record_property("times", len(in_time))
    record_property("said", f"at most {lost} updates done again, of {INTERVAL} between checkpoints")
    assert_equal(RunFolder.open(tmp_path / "run"), begin(tmp_path / "whole", "pool", **changes))
