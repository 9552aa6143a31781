"""Filling a table: the budget on a small machine, and tests without curves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from made_up import keep, keep_count

from iterant.experiments import reproduce as reproducing
from iterant.experiments.catalogue import EXPERIMENTS, Counted, Experiment
from iterant.experiments.measures import Recovered
from iterant.experiments.models import MODELS, RunSpec, TestSpec, usual_seconds
from iterant.experiments.records import Records, read_records
from iterant.experiments.reproduce import (
    AGAIN,
    CountTest,
    estimate_counts,
    fill_counts,
    missing_counts,
    trained_run,
)
from iterant.experiments.train_and_test import Session, train_and_test
from iterant.io import read_lines
from iterant.training.interrupts import Clock

FAST, SLOW, NEVER = RunSpec("sums-n0", 0), RunSpec("sums-recall-a1", 0), RunSpec("sums-ours", 0)


@pytest.mark.parametrize(
    ("took", "runs", "again"),
    [(300.0, [FAST, SLOW], [[SLOW]]), (500.0, [FAST, SLOW], []), (300.0, [SLOW, NEVER], [])],
)
def test_what_was_cut_off_goes_on_in_what_is_left_of_the_budget(
    took: float,
    runs: list[RunSpec],
    again: list[list[RunSpec]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: list[tuple[list[RunSpec], Any]] = []

    def train(wanted: Sequence[RunSpec], *, time_limit: Any, **_: Any) -> list[RunSpec]:
        for run in wanted:
            if run != NEVER:
                keep(tmp_path, run.model, run.seed, [1], finished=run == FAST)
        calls.append((list(wanted), time_limit))
        return [run for run in wanted if run == NEVER]

    monkeypatch.setattr(reproducing, "train_and_test", train)
    monkeypatch.setattr(Clock, "elapsed", property(lambda clock: took))
    left = reproducing.produce(
        EXPERIMENTS["compare-n-zero"], runs, out=tmp_path, device="cpu", budget="10m", small=True,
        say=lambda text: None,
    )  # fmt: skip
    assert left == [run for run in runs if run == NEVER]
    assert [some for some, _ in calls] == [runs, *again]
    assert [limit for _, limit in calls[1:]] == [600 - took] * len(again)


def test_a_run_that_only_a_study_was_made_of_did_not_break_down(tmp_path: Path) -> None:
    study = {"noise": {"samples": 10, "right": [0, 9], "mean iterations": 2.0}}
    keep(tmp_path, "sums-recall-a1", 0, [], tests={}, studies=study)
    keep(tmp_path, "sums-ours", 0, [], tests={})
    records = read_records(tmp_path)
    assert not any(record.failed for record in records.all)
    cell = Recovered("noise").of(records.of("sums-recall-a1"))
    assert cell.every is not None
    assert (cell.every.seeds, cell.every.mean) == (1, 90.0)


KEY = "mazes-recall-a0.01"
TINY: dict[str, Any] = {"width": 4, "head": (4,), "iterations": 2, "count": 40, "batch": 16,
                        "epochs": 1, "watch_every": 0}  # fmt: skip
ONE = Experiment("x", "x", "x", counted=(Counted(KEY, "11", 2, 3, 4, 50.0),
                                         Counted("mazes-ours", "11", 1, 3, 4, 7.0),
                                         Counted("mazes-ours", "9")))  # fmt: skip


class Trainer:
    """Trains tiny networks, and remembers which."""

    def __init__(self, runs: Path) -> None:
        self.runs, self.asked = runs, list[str]()

    def __call__(self, units: Sequence[RunSpec], out: Path) -> None:
        self.asked += [unit.name for unit in units]
        models = {KEY: replace(MODELS[KEY], tests=(TestSpec(9, 2, 2),), studies=())}
        train_and_test(units, out=out, folder=self.runs, device="cpu", reduced=TINY, models=models,
                 say=lambda text: None)  # fmt: skip


def fill(
    folder: Path, wanted: Sequence[CountTest], trainer: Trainer, **more: Any
) -> list[CountTest]:
    return fill_counts(wanted, read_records(folder), out=folder, folder=trainer.runs, device="cpu",
                       train=trainer, say=lambda text: None, **more)  # fmt: skip


def test_what_is_wanted_is_what_no_result_has(tmp_path: Path) -> None:
    names = [one.run.name for one in missing_counts(ONE, Records())]
    assert names == [f"{KEY}-s0", "mazes-ours-s0", f"{KEY}-s1"]
    keep_count(tmp_path, KEY, 0, "11", {4: 1, 8: 1}, problems=3)
    there = read_records(tmp_path)
    assert [one.run.name for one in missing_counts(ONE, there)] == ["mazes-ours-s0", f"{KEY}-s1"]
    assert [one.run.name for one in missing_counts(ONE, there, seeds=1)] == ["mazes-ours-s0"]
    seconds = usual_seconds(MODELS[KEY]) + usual_seconds(MODELS["mazes-ours"])
    assert estimate_counts(missing_counts(ONE, there), tmp_path) == pytest.approx(seconds + 57)


def test_trained_once_tested_and_recorded_where_nobody_has(tmp_path: Path) -> None:
    trainer = Trainer(tmp_path / "r")
    keep(tmp_path / "kept", KEY, 1, [1])
    first, _, second = missing_counts(ONE, Records())
    assert fill(tmp_path / "kept", [first, second], trainer) == []
    assert trainer.asked == [f"{KEY}-s0", f"{KEY}-s1"]
    # Seed 1 was recorded before: its new record must not stand beside the old one.
    assert read_records(tmp_path / "kept").names == {f"{KEY}-s0", f"{KEY}-s1"}
    assert [line["figures"]["seed"] for line in read_lines(trainer.runs / AGAIN)] == [1]
    counts = read_records(tmp_path / "kept").counts(KEY, "11")
    assert [(one.seed, one.problems, *one.solved) for one in counts] == [(0, 3, 4, 8), (1, 3, 4, 8)]
    assert [one.precision for one in counts] == ["fp32", "fp32"]
    (tmp_path / "kept" / f"measure-mazes-{KEY}-s0-11.json").unlink()
    assert fill(tmp_path / "kept", [first], trainer) == []
    assert trainer.asked == [f"{KEY}-s0", f"{KEY}-s1"], "its run is still there"


def test_what_was_not_trained_or_has_no_time_is_left_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainer = Trainer(tmp_path / "r")
    (first, *_) = missing_counts(ONE, Records())

    def idle(units: Sequence[RunSpec], out: Path) -> None:
        """No time for any."""

    assert fill_counts([first], Records(), out=tmp_path / "kept", folder=trainer.runs,
                       device="cpu", train=idle) == [first]  # fmt: skip
    assert fill(tmp_path / "kept", [first], trainer, limit=0.0) == [first]
    assert trained_run(first.run, trainer.runs) is not None
    assert read_records(tmp_path / "kept").counts(KEY, "11") == []
    monkeypatch.setattr(reproducing, "is_over", lambda run: False)
    assert trained_run(first.run, trainer.runs) is None, "it was cut off"


def test_our_recipes_keep_their_own_precision_in_a_campaign_of_halves(tmp_path: Path) -> None:
    session = Session(tmp_path, tmp_path, torch.device("cpu"), precision="fp16")
    assert session.recipe(MODELS[KEY]).precision == "fp16"
    own = MODELS["mazes-ours"].recipe().precision
    assert session.recipe(MODELS["mazes-ours"]).precision == own != "fp16"
