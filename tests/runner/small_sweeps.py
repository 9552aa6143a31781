"""Sweeps small enough for tests."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from iterant.io import RunFolder
from iterant.runner import Plan, SweepFolder, planned
from iterant.tasks.prefix_sums import PrefixSums
from iterant.tasks.protocol import Batch

FIELDS: dict[str, Any] = {
    "width": 4, "head": [4], "size": 8, "count": 50, "batch_size": 10, "epochs": 2, "iterations": 3,
    "pool_slots": 16, "pool_shortest": 1, "monitor_every": 0, "validate_every": 2,
    "checkpoint_every": 1,
}  # fmt: skip
"""Two epochs of four optimizer steps each."""


class SlowSums(PrefixSums):
    """Prefix sums with a pause at every validation: runs take seconds but little CPU time."""

    def solved(self, prediction: Tensor, batch: Batch) -> Tensor:
        time.sleep(0.15)
        return super().solved(prediction, batch)


SLOW: dict[str, Any] = {
    "task": "small_sweeps:SlowSums", "fields": {**FIELDS, "epochs": 24, "validate_every": 1},
    "tests": [{"size": 16, "count": 10, "max_steps": 2}],
}  # fmt: skip
"""Settings of runs that take several seconds; their processes need this folder on the path."""

TESTS = [{"size": [8, 16], "count": 10, "max_steps": 5}]


def small_plan(name: str = "small", **settings: Any) -> Plan:
    defaults = {"task": "prefix-sums", "fields": FIELDS, "seeds": [0, 1], "tests": TESTS}
    return planned(name, **{**defaults, **settings})


def assert_same_checkpoints(first: Path, second: Path) -> None:
    """All checkpoints of two runs are equal bit for bit, and there are some."""
    run, other = RunFolder.open(first), RunFolder.open(second)
    assert run.checkpoints() == other.checkpoints() != []
    for name in run.checkpoints():
        (tensors, metadata), (other_tensors, other_metadata) = run.load(name), other.load(name)
        assert metadata == other_metadata, (first, name)
        assert tensors.keys() == other_tensors.keys()
        for key, value in tensors.items():
            assert torch.equal(value, other_tensors[key]), (first, name, key)


def solved_counts(folder: SweepFolder, name: str) -> dict[str, Any]:
    """The numbers of solved problems of a finished run, by test."""
    outcome = folder.outcome(name)
    assert outcome is not None
    return {key: test["solved"] for key, test in outcome["tests"].items()}


def assert_same_runs(first: SweepFolder, second: SweepFolder) -> None:
    """All runs of two sweeps have equal checkpoints and test results."""
    assert first.planned == second.planned
    for name in first.planned:
        assert_same_checkpoints(first.run_path(name), second.run_path(name))
        assert solved_counts(first, name) == solved_counts(second, name)
