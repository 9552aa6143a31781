"""Several processes on one run, measured as a person would."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from iterant.bench.scale import bench_scale, measure
from iterant.errors import RunError, UsageError
from iterant.io import read_result

TINY = {"width": 4, "batch": 4, "iterations": 3, "pool_slots": 8, "pool_shortest": 1,
        "watch_every": 0}  # fmt: skip


def test_one_process_does_not_talk() -> None:
    told = measure("prefix-sums", "quick", {**TINY, "size": 8}, 2)
    assert told["talking"] == 0.0
    assert told["updates per second"] > 0
    assert told["bytes an update"] == 4 * told["parameters"]


@pytest.mark.parametrize("wrong", [{"updates": 0}, {"rounds": 0}, {"processes": ()}])
def test_what_cannot_be_measured(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="at least one"):
        bench_scale("mazes", **wrong)


@pytest.mark.system
def test_two_processes_talk(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "iterant", "bench", "scale", "--task", "prefix-sums",
               "--width", "4", "--batch", "4", "--updates", "2", "--rounds", "1",
               "--processes", "1", "2"]  # fmt: skip
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=300, cwd=tmp_path, check=False
    )
    assert done.returncode == 0, done.stderr
    figures = read_result(tmp_path / "results" / "bench-scale-prefix-sums-cpu.json")["figures"]
    one, two = (figures["processes"][count] for count in ("1", "2"))
    assert (one["talking"], one["times faster"]) == (0.0, 1.0)
    assert 0 < two["talking"] < 1
    assert two["efficiency"] == pytest.approx(two["times faster"] / 2)
    with pytest.raises(RunError, match="3 processes cannot be measured"):
        bench_scale("prefix-sums", batch=4, updates=1, rounds=1, processes=(3,))
    assert json.dumps(figures)
