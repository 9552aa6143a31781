"""Units are trained, tested and recorded once, within their time."""

from __future__ import annotations

import os
import runpy
import signal
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from exact import exact_prefix_sums

import iterant
from iterant.analysis import Subject
from iterant.errors import RunError, TrainingStopped
from iterant.experiments import train_and_test as module
from iterant.experiments.measures import Changes, Indices, Peaks, Recovered
from iterant.experiments.models import MODELS, Model, RunSpec, StudySpec, TestSpec, runs_of
from iterant.experiments.records import Record, read_records
from iterant.experiments.train_and_test import (
    PERFECT,
    StopWhenPerfect,
    history,
    measure,
    measure_study,
    measure_test,
    train_and_test,
    train_side_by_side,
)
from iterant.io import RunFolder
from iterant.nets import build, variant_config
from iterant.training.data import TrainingSet
from iterant.training.loop import Loop
from iterant.training.recipe import Recipe

SMALL: dict[str, Any] = {
    "width": 4, "head": (4,), "iterations": 3, "count": 40, "batch": 16, "size": 8, "epochs": 2,
    "validate_every": 1, "watch_every": 0, "warmup": 0, "milestones": (),
}  # fmt: skip
PLAIN = Model("tiny", "prefix-sums", "dt-recall", "tiny", 1.0, tests=(TestSpec(8, 5, 4),))
DEEP = Model("deep", "prefix-sums", "ff", "deep", 0.0, tests=(TestSpec(8, 5, 9),), confident=True)


@pytest.fixture(autouse=True)
def _models(monkeypatch: pytest.MonkeyPatch) -> None:
    for model in (PLAIN, DEEP):
        monkeypatch.setitem(MODELS, model.key, model)


def begin(path: Path, wanted: list[RunSpec], **how: Any) -> list[RunSpec]:
    said: list[str] = []
    options = {"reduced": SMALL, "device": "cpu", "say": said.append, **how}
    return train_and_test(wanted, out=path / "kept" / "all.jsonl", folder=path / "runs", **options)


def test_every_unit_leaves_one_record(tmp_path: Path) -> None:
    wanted = runs_of(["tiny", "deep"], range(2))
    assert [run.name for run in wanted] == ["tiny-s0", "deep-s0", "tiny-s1", "deep-s1"]
    assert begin(tmp_path, wanted) == []
    found = read_records(tmp_path / "kept" / "all.jsonl")
    assert found.names == {run.name for run in wanted}
    (first, _) = found.of("tiny")
    assert first.reduced == {**SMALL, "head": [4], "milestones": []}
    assert len(first.tests["8"]["solved"]) == 4
    assert [row["epoch"] for row in first.figures["training"]["history"]] == [1, 2]
    assert first.figures["training"]["train"]["of"] == 32
    (deep, _) = found.of("deep")
    assert len(deep.tests["8"]["solved"]) == 3, "a feed-forward network has no more iterations"


def test_what_is_recorded_is_not_done_again(tmp_path: Path) -> None:
    wanted = [RunSpec("tiny", 0)]
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
    wanted = [RunSpec("tiny", 0), RunSpec("deep", 0), RunSpec("tiny", 1)]
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
    assert read_records(tmp_path / "kept").names == {run.name for run in wanted}
    steps = [line["step"] for line in run.metrics() if line["kind"] == "validation"]
    assert steps == [2, 4, 6, 8], "none was done twice"


def test_tests_are_broken_off_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def measure(*_: Any, **__: Any) -> None:
        signal.raise_signal(signal.SIGINT)
        raise AssertionError("it went on")

    monkeypatch.setattr(module, "measure", measure)
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        begin(tmp_path, [RunSpec("tiny", 0)])
    assert signal.getsignal(signal.SIGINT) is before


def test_a_perfect_validation_ends_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    look = Loop._evaluate

    def perfect(loop: Loop, kind: str, how: Any) -> dict[str, float]:
        look(loop, kind, how)
        loop.figures["validation"] = 1.0
        return {"validation": 1.0}

    monkeypatch.setattr(Loop, "_evaluate", perfect)
    begin(tmp_path, [RunSpec("tiny", 0), RunSpec("deep", 0)], reduced={**SMALL, "average": None})
    run = RunFolder.open(tmp_path / "runs" / "tiny-s0")
    assert run.state == "stopped"
    assert PERFECT in str(run.status.reason)
    assert run.status.step == 2, "one epoch of two"
    assert all(record.finished for record in read_records(tmp_path / "kept" / "all.jsonl").all)
    assert RunFolder.open(tmp_path / "runs" / "deep-s0").status.step == 2
    # Recorded no earlier, it is only tested: no update is made.
    monkeypatch.setattr(Loop, "_step", lambda loop: pytest.fail("trained again"))
    (tmp_path / "kept" / "all.jsonl").unlink()
    begin(tmp_path, [RunSpec("tiny", 0)])
    assert read_records(tmp_path / "kept" / "all.jsonl").names == {"tiny-s0"}


def test_averaged_weights_are_trained_to_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(StopWhenPerfect, "show", _perfectly(StopWhenPerfect.show))
    begin(tmp_path, [RunSpec("tiny", 0)], reduced={**SMALL, "average": 0.5})
    assert RunFolder.open(tmp_path / "runs" / "tiny-s0").state == "finished"


def _perfectly(show: Any) -> Any:
    def seen(self: Any, report: Any) -> None:
        show(self, replace(report, figures={**report.figures, "validation": 1.0}))

    return seen


def test_units_for_which_there_is_no_time_are_left_over(tmp_path: Path) -> None:
    wanted = runs_of(["tiny"], range(2))
    assert begin(tmp_path, wanted, enough_time=lambda run, left: run.seed == 1) == wanted[:1]
    assert read_records(tmp_path / "kept" / "all.jsonl").names == {"tiny-s1"}


@pytest.mark.parametrize("unfinished", [False, True])
def test_a_run_that_is_cut_off_counts_as_unfinished(tmp_path: Path, unfinished: bool) -> None:
    begin(tmp_path, [RunSpec("tiny", 0)], time_limit=0.004, reserve=0.0, unfinished=unfinished,
          enough_time=lambda run, left: True)  # fmt: skip
    found = read_records(tmp_path / "kept")
    assert found.names == set()
    assert len(found.unfinished) == unfinished


def test_a_failure_is_recorded_and_stops_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    update = Loop._step

    def failing(loop: Loop) -> None:
        if loop.seed == 0:
            raise TrainingStopped("the loss exploded")
        update(loop)

    monkeypatch.setattr(Loop, "_step", failing)
    begin(tmp_path, runs_of(["tiny"], range(2)))
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
    begin(tmp_path, [RunSpec("tiny", 0)], precision="bf16")
    (found,) = read_records(tmp_path / "kept" / "all.jsonl").of("tiny")
    assert found.figures["precision"] == found.figures["training"]["recipe"]["precision"] == "fp32"
    assert len(found.tests["8"]["solved"]) == 4
    assert RunFolder.open(tmp_path / "runs" / "tiny-s0").state == "failed"
    # Recorded no earlier, it is only tested: neither precision is trained in again.
    monkeypatch.setattr(Loop, "_step", lambda loop: pytest.fail("trained again"))
    (tmp_path / "kept" / "all.jsonl").unlink()
    begin(tmp_path, [RunSpec("tiny", 0)], precision="bf16")
    assert read_records(tmp_path / "kept" / "all.jsonl").names == {"tiny-s0"}


def test_every_run_has_a_process_of_its_own(tmp_path: Path) -> None:
    # The child knows sums-n0; nothing that was patched here reaches it.
    wanted = [RunSpec("sums-n0", 0), RunSpec("tiny", 0), RunSpec("sums-n0", 1)]
    said: list[str] = []
    left = train_side_by_side(
        wanted, processes=2, out=tmp_path / "kept" / "all.jsonl", folder=tmp_path / "runs",
        device="cpu", time_limit="10m", reserve=0.0, reduced=SMALL, share=0.002, say=said.append,
        enough_time=lambda run, left: run.seed == 0,
    )  # fmt: skip
    assert {run.name for run in left} == {"tiny-s0", "sums-n0-s1"}
    assert read_records(tmp_path / "kept").names == {"sums-n0-s0"}
    assert any(line.startswith("tiny-s0: no record, exit code") for line in said)


def test_after_an_interrupt_no_process_is_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "command_for", lambda run, settings: ["sleep", "0.5"])
    said: list[str] = []
    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        train_side_by_side(
            [RunSpec("sums-n0", seed) for seed in range(3)], processes=1, say=said.append,
            device="cpu", out=tmp_path / "all.jsonl", folder=tmp_path / "runs",
        )  # fmt: skip
    assert sorted(said)[1:] == ["sums-n0-s1: not started", "sums-n0-s2: not started"]


def test_a_process_that_hangs_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "command_for", lambda run, settings: ["sleep", "600"])
    monkeypatch.setattr(module, "GRACE", 0.2)
    said: list[str] = []
    left = train_side_by_side(
        [RunSpec("sums-n0", 0)], processes=1, out=tmp_path / "all.jsonl", folder=tmp_path / "runs",
        device="cpu", time_limit=0.1, say=said.append,
    )  # fmt: skip
    assert left == [RunSpec("sums-n0", 0)]
    assert said == ["sums-n0-s0: no record, exit code -9"]


SUMS = iterant.task("prefix-sums")
MODEL = Model("m", "prefix-sums", "dt-recall", "m", study_size=8)
SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "campaign"


def record(**figures: Any) -> Record:
    about: dict[str, Any] = {"training": {}, "tests": {}, "studies": {}}
    return Record("m", 0, True, {}, {**about, **figures}, Path("x"))


def test_a_network_that_is_right_is_found_right() -> None:
    found = measure_test(exact_prefix_sums(), SUMS, TestSpec(8, 6, 20), confident=True)
    assert found["problems"] == 6
    assert found["solved"][-1] == found["solved by the most confident"][-1] == 6
    cell = Peaks("8").of([record(tests={"8": found})])
    assert cell.every is not None
    assert cell.every.mean == 100
    assert cell.step == found["solved"].index(6) + 1 <= 9


def test_studies_in_a_few_numbers() -> None:
    subject = Subject(exact_prefix_sums(), SUMS, "exact")
    specs = (
        StudySpec("swap"),
        StudySpec("bit-flip"),
        StudySpec("convergence"),
        StudySpec("zeros", after=50),
    )
    studies = {one.name: measure_study(subject, one, MODEL, 0.03) for one in specs}
    assert [study.get("after") for study in studies.values()] == [50, 50, None, 50]
    exact = [record(studies=studies)]
    for name in ("swap", "zeros after 50"):
        assert studies[name]["recovered"] == 1.0
        assert Recovered(name).of(exact).text == f"{studies[name]['mean iterations']:.2f}"
    (curve,) = Indices().curves(exact)
    assert len(curve) == 8
    assert curve == sorted(curve, reverse=True), "later bits change less"
    (change,) = Changes("problems").curves(exact)
    assert (len(change), change[-1]) == (300, 0.0)
    assert studies["convergence"]["problems"]["features"]["settled"] == 3


def test_a_network_that_ends_before_the_intervention_is_skipped() -> None:
    config = variant_config("ff", "prefix-sums", dims=1, channels=1, width=4, depth=3)
    subject = Subject(build(config.kind, config, seed=0), SUMS, "deep")
    assert measure_study(subject, StudySpec("swap"), MODEL) == {"skipped": "there are 3 iterations"}
    assert Recovered("swap").of([record(studies={"swap": {"skipped": "…"}})]).every is None


def test_a_history_by_epoch() -> None:
    rows = [
        {"kind": "train", "epoch": 0.5, "loss": 1.0},
        {"kind": "train", "epoch": 1.0, "loss": 3.0},
        {"kind": "validation", "epoch": 1.0, "figures": {"validation": 0.5}},
        {"kind": "watch", "epoch": 1.0, "figures": {}},
        {"kind": "train", "epoch": 1.5, "loss": None},
        {"kind": "train", "epoch": 2.0, "loss": 0.25},
    ]
    assert history(rows) == [
        {"epoch": 1, "loss": 2.0, "validation": 0.5},
        {"epoch": 2, "loss": 0.25},
    ]


def test_a_plan_holds_every_seed_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = runpy.run_path(str(SCRIPT))["plan"]
    names = [run.name for run in plan("sums")]
    assert names[0] == "sums-recall-a1-s0"
    wanted = [m for m in MODELS.values() if m.key.startswith("sums-")]
    assert len(names) == len(set(names)) == sum(model.seeds for model in wanted)
    asked = ["--list", "--models", "sums-ff", "--units", "sums-n0-s2", "sums-ff-s0", "--done"]
    monkeypatch.setattr(sys, "argv", [str(SCRIPT), *asked])
    with pytest.raises(SystemExit) as caught:
        runpy.run_path(str(SCRIPT), run_name="__main__")
    assert caught.value.code == 0
    listed = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in listed] == ["sums-n0-s2", "sums-ff-s0"]


def test_a_study_that_fails_does_not_lose_the_tests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = iterant.train("prefix-sums", out=tmp_path / "run", seed=0, width=4, head=(4,), count=20,
                        batch=5, epochs=1, device="cpu", watch_every=0)  # fmt: skip
    model = replace(MODEL, tests=(TestSpec(8, 2, 3),), studies=(StudySpec("clean"),))

    def fail(*given: object) -> None:
        raise RuntimeError("CUDA: out of luck")

    monkeypatch.setattr(module, "measure_study", fail)
    said: list[str] = []
    found = measure(model, run, iterant.load(run.path), SUMS, seed=0, say=said.append)
    assert len(found["tests"]["8"]["solved"]) == 3
    assert found["studies"] == {"clean": {"skipped": "it failed: CUDA: out of luck"}}
    assert said[-2] == "m clean failed: CUDA: out of luck"


def test_a_share_of_the_problems_is_one_of_all_that_is_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = iterant.train("prefix-sums", out=tmp_path / "run", seed=0, width=4, head=(4,), count=20,
                        batch=5, epochs=1, device="cpu", watch_every=0)  # fmt: skip
    problems = TrainingSet.of(SUMS, Recipe().changed(**run.config["recipe"]), torch.device("cpu"))
    monkeypatch.setattr(module, "TRAIN_PROBLEMS", 10)
    model, net = replace(MODEL, tests=(TestSpec(8, 2, 3),)), iterant.load(run.path)
    for share, counts in ((1.0, (10, 4, 2)), (0.5, (5, 2, 1))):
        found = measure(model, run, net, SUMS, seed=0, problems=problems, share=share)
        judged = [found["training"][which]["of"] for which in ("train", "validation")]
        assert (*judged, found["tests"]["8"]["problems"]) == counts
