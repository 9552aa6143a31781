"""Sweeps small enough for tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from iterant.io import RunFolder
from iterant.runner import Plan, SweepFolder, planned

FIELDS: dict[str, Any] = {
    "width": 4, "head": [4], "size": 8, "count": 50, "batch": 10, "epochs": 2, "iterations": 3,
    "pool_slots": 16, "pool_shortest": 1, "watch_every": 0, "validate_every": 2,
    "checkpoint_every": 1,
}  # fmt: skip
"""Two epochs of four updates each."""

SLOW: dict[str, Any] = {
    "task": "slow_sums:SlowSums", "fields": {**FIELDS, "epochs": 24, "validate_every": 1},
    "tests": [{"size": 16, "count": 10, "max_steps": 2}],
}  # fmt: skip
"""Settings of runs that take some seconds of waiting; the module lies beside this one."""

TESTS = [{"size": [8, 16], "count": 10, "max_steps": 5}]


def small_plan(name: str = "small", **settings: Any) -> Plan:
    given = {"task": "prefix-sums", "fields": FIELDS, "seeds": [0, 1], "tests": TESTS, **settings}
    return planned(name, **given)


def toml(path: Path, text: str = "") -> Path:
    """A file with the same settings, and what else it should say."""
    fields = "\n".join(f"{key} = {value}" for key, value in FIELDS.items())
    path.write_text(f'task = "prefix-sums"\n{text}\n[fields]\n{fields}\n')
    return path


def assert_same_checkpoints(first: Path, second: Path) -> None:
    """Bit for bit, and that there are some."""
    ours, theirs = RunFolder.open(first), RunFolder.open(second)
    assert ours.checkpoints() == theirs.checkpoints() != []
    for name in ours.checkpoints():
        (mine, about), (other, about_other) = ours.load(name), theirs.load(name)
        assert about == about_other, (first, name)
        assert mine.keys() == other.keys()
        for key, value in mine.items():
            assert torch.equal(value, other[key]), (first, name, key)


def assert_same_runs(first: SweepFolder, second: SweepFolder) -> None:
    """Bit for bit: every run's checkpoints, and what it scored."""
    assert first.planned == second.planned
    for name in first.planned:
        assert_same_checkpoints(first.run_path(name), second.run_path(name))
        scores, scores_other = (folder.outcome(name) for folder in (first, second))
        assert scores is not None
        assert scores_other is not None
        for key, test in scores["tests"].items():
            assert test["solved"] == scores_other["tests"][key]["solved"]
