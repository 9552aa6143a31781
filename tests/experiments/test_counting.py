"""Rows without curves are filled: what has no run is trained, what has one is only tested."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from made_up import keep

from iterant.experiments import reproduce as counting
from iterant.experiments.campaign import Setup, campaign
from iterant.experiments.catalogue import Counted, Experiment
from iterant.experiments.counts import Counts, read_counts
from iterant.experiments.models import MODELS, Trial, Unit, usual_seconds
from iterant.experiments.records import read_records
from iterant.experiments.reproduce import AGAIN, Wanted, count, estimate_counts, run_of, uncounted
from iterant.io import read_lines, read_result, write_result

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

    def __call__(self, units: Sequence[Unit], out: Path) -> None:
        self.asked += [unit.name for unit in units]
        models = {KEY: replace(MODELS[KEY], tests=(Trial(9, 2, 2),), looks=())}
        campaign(units, out=out, runs=self.runs, device="cpu", reduced=TINY, models=models,
                 say=lambda text: None)  # fmt: skip


def told(folder: Path, wanted: Sequence[Wanted], trainer: Trainer, **more: Any) -> list[Wanted]:
    return count(wanted, read_records(folder / "runs"), results=folder, runs=trainer.runs,
                 device="cpu", train=trainer, say=lambda text: None, **more)  # fmt: skip


def test_what_is_wanted_is_what_no_result_has(tmp_path: Path) -> None:
    names = [one.unit.name for one in uncounted(ONE, Counts())]
    assert names == [f"{KEY}-s0", "mazes-ours-s0", f"{KEY}-s1"]
    test = {"solved": 1, "solved at twice": 1, "problems": 3, "iterations": 4}
    write_result("measure-a", {"model": KEY, "size 11": test}, seed=0, folder=tmp_path)
    there = read_counts(tmp_path)
    assert [one.unit.name for one in uncounted(ONE, there)] == ["mazes-ours-s0", f"{KEY}-s1"]
    assert [one.unit.name for one in uncounted(ONE, there, seeds=1)] == ["mazes-ours-s0"]
    seconds = usual_seconds(MODELS[KEY]) + usual_seconds(MODELS["mazes-ours"])
    assert estimate_counts(uncounted(ONE, there), tmp_path) == pytest.approx(seconds + 57)


def test_trained_once_tested_and_recorded_where_nobody_has(tmp_path: Path) -> None:
    trainer = Trainer(tmp_path / "r")
    keep(tmp_path / "runs", KEY, 1, [1])
    first, _, second = uncounted(ONE, Counts())
    assert told(tmp_path, [first, second], trainer) == []
    assert trainer.asked == [f"{KEY}-s0", f"{KEY}-s1"]
    # Seed 1 was recorded before: its new record must not stand beside the old one.
    assert read_records(tmp_path / "runs").names == {f"{KEY}-s0", f"{KEY}-s1"}
    assert [line["figures"]["seed"] for line in read_lines(trainer.runs / AGAIN)] == [1]
    counts = read_counts(tmp_path)
    assert [(one.seed, one.size, one.problems, one.iterations) for one in counts.all] == [
        (0, "11", 3, 4), (1, "11", 3, 4),
    ]  # fmt: skip
    result = read_result(tmp_path / f"measure-mazes-{KEY}-s0-11.json")
    assert result["figures"]["precision"] == "fp32"
    (tmp_path / f"measure-mazes-{KEY}-s0-11.json").unlink()
    assert told(tmp_path, [first], trainer) == []
    assert trainer.asked == [f"{KEY}-s0", f"{KEY}-s1"], "its run is still there"


def test_what_was_not_trained_or_has_no_time_is_left_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainer = Trainer(tmp_path / "r")
    (first, *_) = uncounted(ONE, Counts())

    def idle(units: Sequence[Unit], out: Path) -> None:
        """No time for any."""

    assert count([first], read_records(tmp_path / "runs"), results=tmp_path, runs=trainer.runs,
                 device="cpu", train=idle) == [first]  # fmt: skip
    assert told(tmp_path, [first], trainer, limit=0.0) == [first]
    assert run_of(first.unit, trainer.runs) is not None
    assert read_counts(tmp_path) == Counts()
    monkeypatch.setattr(counting, "is_over", lambda run: False)
    assert run_of(first.unit, trainer.runs) is None, "it was cut off"


def test_our_recipes_keep_their_own_precision_in_a_campaign_of_halves(tmp_path: Path) -> None:
    import torch

    setup = Setup(tmp_path, tmp_path, torch.device("cpu"), precision="fp16")
    assert setup.recipe(MODELS[KEY]).precision == "fp16"
    own = MODELS["mazes-ours"].recipe().precision
    assert setup.recipe(MODELS["mazes-ours"]).precision == own != "fp16"
