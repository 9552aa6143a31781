"""Units are trained, tested and recorded once, within their time."""

from __future__ import annotations

import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from iterant.errors import RunError, TrainingStopped
from iterant.experiments import campaign as module
from iterant.experiments import campaign as processes
from iterant.experiments.campaign import DECIDED, Deciding, campaign, in_processes
from iterant.experiments.models import MODELS, Model, Trial, Unit, units
from iterant.experiments.records import read_records
from iterant.io import RunFolder
from iterant.training.loop import Loop

SMALL: dict[str, Any] = {
    "width": 4, "head": (4,), "iterations": 3, "count": 40, "batch": 16, "size": 8, "epochs": 2,
    "validate_every": 1, "watch_every": 0, "warmup": 0, "milestones": (),
}  # fmt: skip
PLAIN = Model("tiny", "prefix-sums", "dt-recall", "tiny", 1.0, tests=(Trial(8, 5, 4),))
DEEP = Model("deep", "prefix-sums", "ff", "deep", 0.0, tests=(Trial(8, 5, 9),), confident=True)


@pytest.fixture(autouse=True)
def _models(monkeypatch: pytest.MonkeyPatch) -> None:
    for model in (PLAIN, DEEP):
        monkeypatch.setitem(MODELS, model.key, model)


def begin(path: Path, wanted: list[Unit], **how: Any) -> list[Unit]:
    said: list[str] = []
    given = {"reduced": SMALL, "device": "cpu", "say": said.append, "at_once": 2, **how}
    return campaign(wanted, out=path / "kept" / "all.jsonl", runs=path / "runs", **given)


def test_every_unit_leaves_one_record(tmp_path: Path) -> None:
    wanted = units(["tiny", "deep"], range(2))
    assert [unit.name for unit in wanted] == ["tiny-s0", "deep-s0", "tiny-s1", "deep-s1"]
    assert begin(tmp_path, wanted) == []
    found = read_records(tmp_path / "kept" / "all.jsonl")
    assert found.names == {unit.name for unit in wanted}
    (first, _) = found.of("tiny")
    assert first.reduced == {**SMALL, "head": [4], "milestones": []}
    assert len(first.tests["8"]["solved"]) == 4
    assert [row["epoch"] for row in first.figures["training"]["history"]] == [1, 2]
    assert first.figures["training"]["train"]["of"] == 32
    (deep, _) = found.of("deep")
    assert len(deep.tests["8"]["solved"]) == 3, "a feed-forward network has no more iterations"


def test_what_is_recorded_is_not_done_again(tmp_path: Path) -> None:
    wanted = [Unit("tiny", 0)]
    begin(tmp_path, wanted)
    done = read_records(tmp_path / "kept" / "all.jsonl").names
    assert begin(tmp_path, wanted, done=done) == []
    assert len(read_records(tmp_path / "kept" / "all.jsonl").all) == 1
    begin(tmp_path, wanted)
    with pytest.raises(RunError, match=r"tiny with seed 0 is recorded twice, in .*all.jsonl' and"):
        read_records(tmp_path / "kept" / "all.jsonl")


def test_interrupted_it_saves_and_goes_on_from_there(tmp_path: Path) -> None:
    def say(text: str) -> None:
        if "tiny-s0: epoch 1," in text:
            signal.raise_signal(signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    slow = {**SMALL, "epochs": 4}
    wanted = [Unit("tiny", 0), Unit("deep", 0), Unit("tiny", 1)]
    with pytest.raises(KeyboardInterrupt):
        begin(tmp_path, wanted, reduced=slow, say=say, unfinished=True)
    assert signal.getsignal(signal.SIGINT) is before
    assert not (tmp_path / "kept").exists(), "what was broken off is not recorded as if it were all"
    run = RunFolder.open(tmp_path / "runs" / "tiny-s0")
    assert (run.state, run.status.reason) == ("stopped", "stopped by SIGINT")
    assert run.status.step == 2, "an epoch of two updates"
    assert not (tmp_path / "runs" / "tiny-s1").exists()
    heard: list[str] = []
    assert begin(tmp_path, wanted, reduced=slow, say=heard.append) == []
    assert heard[0].startswith("tiny-s0: goes on where ")
    assert "tiny-s1: begins" in heard
    assert read_records(tmp_path / "kept").names == {unit.name for unit in wanted}
    steps = [line["step"] for line in run.metrics() if line["kind"] == "validation"]
    assert steps == [2, 4, 6, 8], "none was done twice"


def test_tests_are_broken_off_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def measure(*_: Any, **__: Any) -> None:
        signal.raise_signal(signal.SIGINT)
        raise AssertionError("it went on")

    monkeypatch.setattr(module, "measure", measure)
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        begin(tmp_path, [Unit("tiny", 0)])
    assert signal.getsignal(signal.SIGINT) is before


def test_a_perfect_validation_ends_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    look = Loop._evaluate

    def perfect(loop: Loop, kind: str, how: Any) -> dict[str, float]:
        look(loop, kind, how)
        loop.figures["validation"] = 1.0
        return {"validation": 1.0}

    monkeypatch.setattr(Loop, "_evaluate", perfect)
    begin(tmp_path, [Unit("tiny", 0), Unit("deep", 0)], reduced={**SMALL, "average": None})
    run = RunFolder.open(tmp_path / "runs" / "tiny-s0")
    assert run.state == "stopped"
    assert DECIDED in str(run.status.reason)
    assert run.status.step == 2, "one epoch of two"
    assert all(record.finished for record in read_records(tmp_path / "kept" / "all.jsonl").all)
    assert RunFolder.open(tmp_path / "runs" / "deep-s0").status.step == 2
    # Recorded no earlier, it is only tested: no update is made.
    monkeypatch.setattr(Loop, "_step", lambda loop: pytest.fail("trained again"))
    (tmp_path / "kept" / "all.jsonl").unlink()
    begin(tmp_path, [Unit("tiny", 0)])
    assert read_records(tmp_path / "kept" / "all.jsonl").names == {"tiny-s0"}


def test_averaged_weights_are_trained_to_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Deciding, "show", _perfectly(Deciding.show))
    begin(tmp_path, [Unit("tiny", 0)], reduced={**SMALL, "average": 0.5})
    assert RunFolder.open(tmp_path / "runs" / "tiny-s0").state == "finished"


def _perfectly(show: Any) -> Any:
    from dataclasses import replace

    def seen(self: Any, report: Any) -> None:
        show(self, replace(report, figures={**report.figures, "validation": 1.0}))

    return seen


def test_units_for_which_there_is_no_time_are_left_over(tmp_path: Path) -> None:
    wanted = units(["tiny"], range(2))
    assert begin(tmp_path, wanted, enough_time=lambda unit, left: unit.seed == 1) == wanted[:1]
    assert read_records(tmp_path / "kept" / "all.jsonl").names == {"tiny-s1"}


@pytest.mark.parametrize("unfinished", [False, True])
def test_a_run_that_is_cut_off_counts_as_unfinished(tmp_path: Path, unfinished: bool) -> None:
    begin(tmp_path, [Unit("tiny", 0)], time_limit=0.004, reserve=0.0, unfinished=unfinished,
          enough_time=lambda unit, left: True)  # fmt: skip
    found = read_records(tmp_path / "kept")
    assert found.names == set()
    assert len(found.unfinished()) == unfinished


def test_a_failure_is_recorded_and_stops_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    update = Loop._step

    def failing(loop: Loop) -> None:
        if loop.seed == 0:
            raise TrainingStopped("the loss exploded")
        update(loop)

    monkeypatch.setattr(Loop, "_step", failing)
    begin(tmp_path, units(["tiny"], range(2)))
    zero, one = read_records(tmp_path / "kept" / "all.jsonl").of("tiny")
    assert zero.figures["training"]["ended"] == "the loss exploded"
    assert zero.converged is False
    assert one.tests


def test_what_breaks_down_in_half_precision_begins_anew_in_float32(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    update = Loop._step

    def failing(loop: Loop) -> None:
        if loop.recipe.precision != "fp32":
            raise TrainingStopped("the loss became nan")
        update(loop)

    monkeypatch.setattr(Loop, "_step", failing)
    begin(tmp_path, [Unit("tiny", 0)], precision="bf16")
    (found,) = read_records(tmp_path / "kept" / "all.jsonl").of("tiny")
    assert found.figures["precision"] == found.figures["training"]["recipe"]["precision"] == "fp32"
    assert len(found.tests["8"]["solved"]) == 4
    assert RunFolder.open(tmp_path / "runs" / "tiny-s0").state == "failed"
    # Recorded no earlier, it is only tested: neither precision is trained in again.
    monkeypatch.setattr(Loop, "_step", lambda loop: pytest.fail("trained again"))
    (tmp_path / "kept" / "all.jsonl").unlink()
    begin(tmp_path, [Unit("tiny", 0)], precision="bf16")
    assert read_records(tmp_path / "kept" / "all.jsonl").names == {"tiny-s0"}


def test_a_process_a_unit(tmp_path: Path) -> None:
    # A model that the child knows too; nothing that was patched here reaches it.
    wanted = [Unit("sums-n0", 0), Unit("tiny", 0), Unit("sums-n0", 1)]
    said: list[str] = []
    left = in_processes(
        wanted, processes=2, out=tmp_path / "kept" / "all.jsonl", runs=tmp_path / "runs",
        device="cpu", time_limit="10m", reserve=0.0, reduced=SMALL, share=0.002, say=said.append,
        enough_time=lambda unit, left: unit.seed == 0,
    )  # fmt: skip
    assert {unit.name for unit in left} == {"tiny-s0", "sums-n0-s1"}
    assert read_records(tmp_path / "kept").names == {"sums-n0-s0"}
    assert any(line.startswith("tiny-s0: no record, exit code") for line in said)


def soon_over(unit: Unit, given: dict[str, Any]) -> None:
    """What a process does that has nothing to do."""


def test_interrupted_no_process_begins_after_the_one_that_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "alone", soon_over)
    said: list[str] = []

    def say(text: str) -> None:
        said.append(text)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        time.sleep(0.5)  # until the main thread has heard it

    with pytest.raises(KeyboardInterrupt):
        in_processes(
            [Unit("sums-n0", seed) for seed in range(3)], processes=1, say=say,
            out=tmp_path / "all.jsonl", runs=tmp_path / "runs",
        )  # fmt: skip
    assert said == ["sums-n0-s0: no record, exit code 0"]


def hanging(unit: Unit, given: dict[str, Any]) -> None:
    """What a process may do that waits for a GPU in vain."""
    time.sleep(600)


def test_a_process_that_hangs_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "alone", hanging)
    monkeypatch.setattr(processes, "PATIENCE", 0.2)
    said: list[str] = []
    left = in_processes(
        [Unit("sums-n0", 0)], processes=1, out=tmp_path / "all.jsonl", runs=tmp_path / "runs",
        time_limit=0.1, say=said.append,
    )  # fmt: skip
    assert left == [Unit("sums-n0", 0)]
    assert said == ["sums-n0-s0: no record, exit code -9"]
