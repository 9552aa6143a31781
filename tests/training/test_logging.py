"""The lines of progress, and TensorBoard events, read back by TensorBoard's reader."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import pytest
from small_runs import Listener, begin, stopping_at

from iterant.errors import MissingExtra
from iterant.io import RunFolder
from iterant.training import train
from iterant.training.logging import RunProgress, TensorBoardReporter


def assert_holds_the_metrics(run: RunFolder) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(run.path / "events"))
    events.Reload()
    steps = {kind: [r["step"] for r in run.metrics() if r["kind"] == kind]
             for kind in ("train", "validation", "monitor")}  # fmt: skip
    names = events.Tags()["scalars"]
    assert sum(name.startswith("monitoring/") for name in names) == 7
    for name in names:
        kind = {"training": "train", "monitoring": "monitor"}.get(name.split("/")[0], "validation")
        assert [event.step for event in events.Scalars(name)] == steps[kind]
    losses = [r["loss"] for r in run.metrics() if r["kind"] == "train"]
    assert [event.value for event in events.Scalars("training/loss")] == pytest.approx(losses)


def test_a_resumed_run_has_each_step_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stopping_at(monkeypatch, 6)
    first, second = Listener(), Listener()  # to which everything is passed on
    begin(tmp_path / "run", reporter=TensorBoardReporter(first))
    stopping_at(monkeypatch, None)
    run = train(resume=tmp_path / "run", device="cpu", reporter=TensorBoardReporter(second))
    assert (first.ends, second.ends) == (["stopped by SIGINT"], ["finished"])
    assert len(first.titles) == len(second.titles) == 1
    assert [r.step for r in second.reports] == [6, 7, 8, 8, 9, 10, 11, 12, 12]
    assert_holds_the_metrics(run)


def test_progress_in_lines() -> None:
    start = RunProgress(0, 4000, 0, 50, math.nan, 1e-3, 0.0, math.inf)
    assert start.lines() == ["epoch 0 of 50, step 0 of 4,000"]
    figures = {"validation": 0.9996, "48 at 4m": 0.5, "48 change": 3e-5}
    later = RunProgress(2000, 4000, 25, 50, 0.12345, 1e-3, 20.0, 100.0, figures)
    first = "epoch 25 of 50, step 2,000 of 4,000, loss 0.1235, 20.0 steps/s"
    rest = ["accuracy 99.9 % at m", "monitoring: 48 at 4m 50.0 %, 48 change 3e-05"]
    assert later.lines() == [f"{first}, 1 min 40 s left", *rest]
    assert later.lines(is_over=True) == [first, *rest]


def test_missing_tensorboard_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(MissingExtra, match=r"iterant\[track\]"):
        TensorBoardReporter(Listener())
