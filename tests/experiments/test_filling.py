"""Filling a table: tests without curves, and studies without tests."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from made_up import keep, keep_count

import iterant
from iterant.experiments import reproduce as reproducing
from iterant.experiments.catalogue import CountRow, Experiment
from iterant.experiments.measures import Recovered
from iterant.experiments.models import MODELS, usual_seconds
from iterant.experiments.records import Records, read_records
from iterant.experiments.reproduce import (
    estimate_counts,
    fill_counts,
    missing_counts,
    trained_run,
)
from iterant.runner.plan import PlannedRun

KEY = "mazes-recall-a0.01"
TINY: dict[str, Any] = {"width": 4, "head": (4,), "iterations": 2, "count": 40, "batch": 16,
                        "epochs": 1, "watch_every": 0}  # fmt: skip
ONE = Experiment("x", "x", "x", count_rows=(CountRow(KEY, "11", 2, 3, 4, 50.0),
                                         CountRow("mazes-ours", "11", 1, 3, 4, 7.0),
                                         CountRow("mazes-ours", "9")))  # fmt: skip


def test_a_run_that_only_a_study_was_made_of_did_not_break_down(tmp_path: Path) -> None:
    study = {"noise": {"samples": 10, "right": [0, 9], "mean iterations": 2.0}}
    keep(tmp_path, "sums-recall-a1", 0, [], tests={}, studies=study)
    keep(tmp_path, "sums-ours", 0, [], tests={})
    records = read_records(tmp_path)
    assert not any(record.failed for record in records.all)
    cell = Recovered("noise").of(records.of("sums-recall-a1"))
    assert cell.value is not None
    assert (cell.value.seeds, cell.value.mean) == (1, 90.0)


def names(tests: list[tuple[CountRow, int]]) -> list[str]:
    return [f"{row.model}-s{seed}" for row, seed in tests]


def test_what_is_wanted_is_what_no_result_has(tmp_path: Path) -> None:
    assert names(missing_counts(ONE, Records())) == [f"{KEY}-s0", "mazes-ours-s0", f"{KEY}-s1"]
    keep_count(tmp_path, KEY, 0, "11", {4: 1, 8: 1}, problems=3)
    there = read_records(tmp_path)
    assert names(missing_counts(ONE, there)) == ["mazes-ours-s0", f"{KEY}-s1"]
    assert names(missing_counts(ONE, there, seeds=1)) == ["mazes-ours-s0"]
    seconds = usual_seconds(MODELS[KEY]) + usual_seconds(MODELS["mazes-ours"])
    assert estimate_counts(missing_counts(ONE, there), tmp_path) == pytest.approx(seconds + 57)


def test_trained_once_tested_and_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def train(runs: Sequence[PlannedRun], *, folder: Path, recorded: set[str], **_: Any) -> None:
        assert recorded == {f"{KEY}-s1"}
        for run in runs:
            asked.append(run.name)
            iterant.train("mazes", recipe="paper", seed=run.seed, device="cpu",
                          out=folder / "runs" / run.name, **TINY)  # fmt: skip

    monkeypatch.setattr(reproducing, "train_missing", train)
    kept, runs = tmp_path / "kept", tmp_path / "r"
    keep(kept, KEY, 1, [1])
    first, _, second = missing_counts(ONE, Records())

    def fill(**more: Any) -> list[Any]:
        return fill_counts([first, second], read_records(kept), out=kept, folder=runs, device="cpu",
                           say=lambda text: None, **more)  # fmt: skip

    assert fill(budget=1e-9) == [f"{KEY}-s0 at 11", f"{KEY}-s1 at 11"], "there is no time to test"
    assert asked == [f"{KEY}-s0", f"{KEY}-s1"]
    assert fill() == []
    assert asked == [f"{KEY}-s0", f"{KEY}-s1"], "their runs are there"
    counts = read_records(kept).counts(KEY, "11")
    assert [(one.seed, one.problems, *one.solved) for one in counts] == [(0, 3, 4, 8), (1, 3, 4, 8)]
    assert [one.precision for one in counts] == ["fp32", "fp32"]
    assert trained_run(f"{KEY}-s2", runs) is None
