"""TensorBoard events, read back by TensorBoard's reader."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from small_runs import Listener, begin, stopping_at

from iterant.errors import MissingExtra
from iterant.io import RunFolder
from iterant.training import train
from iterant.training.logging import TensorBoardReporter


def scalars(run: RunFolder) -> dict[str, list[tuple[int, float]]]:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    read = EventAccumulator(str(run.path / "events"))
    read.Reload()
    return {
        name: [(event.step, event.value) for event in read.Scalars(name)]
        for name in read.Tags()["scalars"]
    }


def logged(run: RunFolder, kind: str) -> list[int]:
    return [record["step"] for record in run.metrics() if record["kind"] == kind]


def assert_holds_the_metrics(run: RunFolder) -> None:
    found = scalars(run)
    losses = [(r["step"], r["loss"]) for r in run.metrics() if r["kind"] == "train"]
    assert [step for step, _ in found["training/loss"]] == [step for step, _ in losses]
    assert [value for _, value in found["training/loss"]] == pytest.approx(
        [value for _, value in losses]
    )
    assert [step for step, _ in found["validation/validation"]] == logged(run, "validation")
    watched = [name for name in found if name.startswith("monitoring/")]
    assert len(watched) == 7
    for name in watched:
        assert [step for step, _ in found[name]] == logged(run, "watch")
    assert all(value >= 0 for _, value in found["training/rate"])


def test_events_equal_the_metrics_and_are_passed_on(tmp_path: Path) -> None:
    heard, alone = Listener(), Listener()
    run = begin(tmp_path / "run", reporter=TensorBoardReporter(heard))
    assert_holds_the_metrics(run)
    begin(tmp_path / "alone", reporter=alone)
    assert heard.titles == alone.titles
    assert heard.ends == alone.ends == ["finished"]
    assert [r.step for r in heard.reports] == [r.step for r in alone.reports]


def test_a_resumed_run_has_each_step_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stopping_at(monkeypatch, 6)
    begin(tmp_path / "run", reporter=TensorBoardReporter(Listener()))
    stopping_at(monkeypatch, None)
    run = train(resume=tmp_path / "run", device="cpu", reporter=TensorBoardReporter(Listener()))
    assert run.state == "finished"
    assert_holds_the_metrics(run)


def test_missing_tensorboard_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(MissingExtra, match=r"iterant\[track\]"):
        TensorBoardReporter(Listener())
