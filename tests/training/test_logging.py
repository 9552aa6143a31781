"""The lines of progress, and TensorBoard events, read back by TensorBoard's reader."""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from small_runs import Listener, begin, stopping_at

import iterant
from iterant.errors import MissingExtra
from iterant.io import RunFolder
from iterant.training import train
from iterant.training.logging import LineReporter, RunProgress, TensorBoardReporter


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


FIGURES = {"validation": 0.9996, "validation at 2m": 0.5, "48 at 2m": 0.25, "48 at 4m": 0.75,
           "48 change": 3e-5}  # fmt: skip
ACCURACIES = ("validation 99.9 % after 30 iterations, 50.0 % after 60; "
              "size 48: 25.0 % after 60, 75.0 % after 120")  # fmt: skip
LATER = RunProgress(2000, 4000, 25, 50, 0.12345, 1e-3, 20.0, 100.0, FIGURES, iterations=30)
POSITION = "epoch 25 of 50, step 2,000 of 4,000, loss 0.1235, 20.0 steps/s"


def test_progress_as_text() -> None:
    start = RunProgress(0, 4000, 0, 50, math.nan, 1e-3, 0.0, math.inf)
    assert start.position() == "epoch 0 of 50, step 0 of 4,000"
    fixed_depth = replace(LATER, figures={"48 at m": 0.5, "64 at m": 0.25})
    shown = "size 48: 50.0 % after 30 iterations; size 64: 25.0 % after 30"
    assert fixed_depth.accuracies(fixed_depth.figures) == shown


def test_lines_come_every_five_seconds_and_accuracies_once(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, lines = [100.0], list[str]()
    monkeypatch.setattr("iterant.training.logging.monotonic", lambda: clock[0])
    reporter = LineReporter(lines.append)
    reporter.begin("title", Path("r"), LATER)
    for _ in range(11):
        reporter.show(replace(LATER, fresh=("validation",) if clock[0] == 102 else ()))
        clock[0] += 1
    line = f"{POSITION}, 1 min 40 s left"
    validation = "validation 99.9 % after 30 iterations"
    assert lines == ["title, kept in r", line, line, validation, line]
    reporter.show(replace(LATER, step=4000, fresh=tuple(FIGURES)))  # `end` prints the last line
    reporter.end("failed: the loss became nan")
    assert lines[5:] == [f"{POSITION.replace('2,000', '4,000')}, failed", ACCURACIES]


def test_a_script_gets_lines_unless_it_wants_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("iterant.training.run.spins_on_busy_cores", lambda: True)
    monkeypatch.setattr("iterant.training.run.threads_for", lambda _: 2)
    begin(tmp_path / "run", "pool")
    output, errors = capsys.readouterr()
    note, title, first, *_, last, accuracies = errors.splitlines()[1:]
    assert output == ""
    assert "OMP_WAIT_POLICY=PASSIVE, set before torch is imported" in errors.splitlines()[0]
    assert title.endswith("seed 0, kept in " + str(tmp_path / "run"))
    assert note == "note: alpha has no effect: the objective is pool, not progressive"
    assert first.startswith("epoch 0 of 3, step 1 of 12, loss ")
    assert last.endswith(", finished")
    assert accuracies.startswith("validation ")
    begin(tmp_path / "silent", "pool", reporter=False)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("progress", [None, False])
def test_evaluation_and_analysis_in_a_script(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, progress: Any
) -> None:
    monkeypatch.setattr("iterant.progress._FIRST_LINE_SECONDS", 0.0)
    options: Any = {"size": 16, "count": 3, "max_steps": 20, "progress": progress}
    iterant.evaluate(iterant.load("prefix-sums"), "prefix-sums", **options)
    iterant.analyze("prefix-sums", "zeros", **options)
    lines = capsys.readouterr().err.splitlines()
    names = [] if progress is False else ["evaluating 3 problems", "prefix-sums"]
    assert [line.partition(":")[0] for line in lines] == names
    assert all(line.endswith(" % done") for line in lines)


def test_missing_tensorboard_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(MissingExtra, match=r"iterant\[track\]"):
        TensorBoardReporter(Listener())
