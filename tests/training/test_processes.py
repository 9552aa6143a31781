"""Several processes, started by torchrun and joined by gloo."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from small_runs import POOL, PROGRESSIVE, begin, unbroken

from iterant.io import RunFolder
from iterant.training import train

CHILD = Path(__file__).with_name("child.py")
MAZES: dict[str, Any] = {**POOL, "size": 3, "watch_every": 0}


def joined(*words: str) -> tuple[int, list[dict[str, Any]], str]:
    """Two processes; the exit code, what they told, and what else was said."""
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"]
    done = subprocess.run(
        [*command, str(CHILD), *words], capture_output=True, text=True, timeout=300
    )
    told = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return done.returncode, told, done.stderr


def assert_close(first: RunFolder, second: RunFolder) -> None:
    """The same run up to rounding: weights, optimiser, pool, average, losses."""
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
        "odd": {**PROGRESSIVE, "batch": 5},
    }
    code, told, said = joined("joined", str(tmp_path), json.dumps(cases))
    assert code == 0, said
    assert not [line for line in told if "wrote" in line], "only the first process may write"
    ends = {(line["case"], line["rank"]): line for line in told}
    for case in ("progressive", "pool", "mazes", "stopped"):
        assert {ends[case, rank]["state"] for rank in (0, 1)} == {"finished"}
    whole = unbroken()
    assert_close(RunFolder.open(tmp_path / "progressive"), whole["progressive"])
    assert_close(RunFolder.open(tmp_path / "pool"), whole["pool"])
    one = train("mazes", out=tmp_path / "one", device="cpu", **MAZES)
    assert_close(RunFolder.open(tmp_path / "mazes"), one)
    # Stopped by a signal that only the second process heard, then resumed by both.
    assert_close(RunFolder.open(tmp_path / "stopped"), whole["pool"])
    for rank in (0, 1):
        refused = ends["odd", rank]
        assert refused["error"] == "RecipeError"
        assert "a batch of 5 cannot be shared equally by 2 processes" in refused["message"]
    assert not (tmp_path / "odd").exists()


def test_a_killed_process_ends_the_other_with_a_message(tmp_path: Path) -> None:
    code, told, _ = joined("lost", str(tmp_path / "run"), "pool")
    assert code != 0
    (noticed,) = [line for line in told if "noticed" in line]
    assert noticed["error"] == "TrainingStopped"
    assert "process 0 of 2 lost contact with another" in noticed["message"]
    assert "--resume" in noticed["message"]
    assert "\n" not in noticed["message"]
    run = RunFolder.open(tmp_path / "run")
    assert run.state == "failed"
    assert run.load("last")[1]["step"] == 4
    # One process goes on with what two began.
    assert train(resume=run.path, device="cpu").state == "finished"
    assert_close(run, unbroken()["pool"])


def test_one_process_is_a_crew_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "1")
    assert begin(tmp_path / "run", epochs=1).state == "finished"
