"""Missing runs are trained, measured and recorded once, within the time budget."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from exact_networks import exact_prefix_sums

import iterant
from iterant.analysis import Subject
from iterant.errors import TrainingStopped, UsageError
from iterant.experiments.measures import Changes, Peaks, Recovered, RecoveryByIndex
from iterant.experiments.models import MODELS, Model, SizeTest, StudySpec
from iterant.experiments.records import Record, read_records
from iterant.experiments.reproduce import (
    history,
    measure_study,
    measure_test,
    planned_run,
    train_missing,
)
from iterant.io import RunFolder
from iterant.runner import Launch, SweepFolder, sweeps
from iterant.runner.worker import run_one
from iterant.training.loop import PERFECT, Loop, Validator

SMALL: dict[str, Any] = {
    "width": 4, "head": (4,), "iterations": 3, "count": 40, "batch_size": 16, "size": 8,
    "epochs": 2, "validate_every": 1, "monitor_every": 0, "warmup_epochs": 0, "milestones": (),
    "ema_decay": None,
}  # fmt: skip
TINY, DEEP = "tiny-s0", "deep-s0"
SUMS = iterant.task("prefix-sums")
MODEL = Model("m", "prefix-sums", "dt-recall", "m", study_size=8, confident=True)


@pytest.fixture(autouse=True)
def _models(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two tiny models; runs are executed in this process instead of a pool."""
    for model in (
        Model("tiny", "prefix-sums", "dt-recall", "tiny", 1.0, SMALL, tests=(SizeTest(8, 5, 4),),
              studies=(StudySpec("clean"), StudySpec("swap", seeds=0)), study_size=8),
        Model("deep", "prefix-sums", "ff", "deep", 0.0, SMALL, tests=(SizeTest(8, 5, 9),)),
    ):  # fmt: skip
        monkeypatch.setitem(MODELS, model.key, model)

    def run_in_process(
        folder: SweepFolder, names: list[str], launch: Launch, *, on_end: Any, **_: Any
    ) -> None:
        for name in names:
            done = run_one(folder.path, name, device=launch.device)
            on_end(name, "done" if done else "stopped")

    monkeypatch.setattr(sweeps, "run_local", run_in_process)


def train(path: Path, runs: list[str], **how: Any) -> list[str]:
    """Train these runs; their records are in path/records, their folders in path/runs."""
    planned = [planned_run(name.removesuffix("-s0"), 0) for name in runs]
    out, folder = path / "records" / "all.jsonl", path / "runs"
    how = {"device": "cpu", "say": lambda text: None, **how}
    return train_missing(planned, out=out, folder=folder, **how)


def run_folder(path: Path) -> RunFolder:
    return RunFolder.open(path / "runs" / "runs" / TINY)


def test_every_run_leaves_one_record(tmp_path: Path) -> None:
    assert train(tmp_path, [TINY, DEEP]) == []
    records = read_records(tmp_path / "records" / "all.jsonl")
    assert records.names == {"tiny-s0", "deep-s0"}
    (tiny,), (deep,) = records.of("tiny"), records.of("deep")
    assert tiny.figures["reduced"] == {}
    assert len(tiny.tests["8"]["solved"]) == 4
    assert set(tiny.studies) == {"clean"}, "swap is for no seed"
    assert [row["epoch"] for row in tiny.figures["training"]["history"]] == [1, 2]
    assert tiny.figures["training"]["train"]["of"] == 32
    assert len(deep.tests["8"]["solved"]) == 3, "a feed-forward network has no more iterations"
    assert train(tmp_path, [TINY, DEEP]) == []
    assert len(read_records(tmp_path / "records" / "all.jsonl").all) == 2, "not recorded again"


def test_a_perfect_validation_ends_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Validator, "validate", lambda *_: {"validation": 1.0})
    train(tmp_path, [TINY])
    assert (run_folder(tmp_path).status.reason, run_folder(tmp_path).status.step) == (PERFECT, 2)
    assert read_records(tmp_path / "records").names == {TINY}
    # Without its record it is tested again, not trained.
    monkeypatch.setattr(Loop, "_step", lambda loop: pytest.fail("trained again"))
    (tmp_path / "records" / "all.jsonl").unlink()
    train(tmp_path, [TINY])
    assert read_records(tmp_path / "records" / "all.jsonl").names == {"tiny-s0"}


def test_a_run_that_was_stopped_is_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr("iterant.training.loop.Clock.over", property(lambda _: True))
        assert train(tmp_path, [TINY], budget="10m") == [TINY]
    assert not (tmp_path / "records").exists()
    assert train(tmp_path, [TINY], budget="10m") == []
    assert read_records(tmp_path / "records").names == {TINY}


def test_a_study_that_fails_is_measured_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: Any) -> dict[str, Any]:
        raise UsageError("no such study")

    with monkeypatch.context() as patched:
        patched.setattr("iterant.experiments.reproduce.measure_study", failing)
        with pytest.raises(UsageError, match="no such study"):
            train(tmp_path, [TINY])
    assert not (tmp_path / "records" / "all.jsonl").exists(), "a record would count as complete"
    monkeypatch.setattr(Loop, "_step", lambda loop: pytest.fail("trained again"))
    assert train(tmp_path, [TINY]) == []
    (tiny,) = read_records(tmp_path / "records" / "all.jsonl").of("tiny")
    assert set(tiny.studies) == {"clean"}


def test_divergence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that diverges in half precision is repeated in float32; there it has failed."""
    step, broken = Loop._step, {"bf16"}

    def failing(loop: Loop) -> None:
        if loop.recipe.precision in broken:
            raise TrainingStopped("the loss became nan")
        step(loop)

    monkeypatch.setattr(Loop, "_step", failing)
    train(tmp_path, [TINY], precision="bf16")
    (record,) = read_records(tmp_path / "records").of("tiny")
    assert record.precision == record.figures["training"]["recipe"]["precision"] == "fp32"
    assert len(record.tests["8"]["solved"]) == 4
    assert run_folder(tmp_path).state == "failed"
    broken.add("fp32")
    train(tmp_path / "other", [TINY], precision="bf16")
    (record,) = read_records(tmp_path / "other" / "records").of("tiny")
    assert record.failed
    assert record.figures["training"]["ended"] == "the loss became nan"


def record(**figures: Any) -> Record:
    empty: dict[str, Any] = {"training": {}, "tests": {}, "studies": {}}
    return Record("m", 0, {**empty, **figures}, Path("x"))


def test_test_of_an_exact_network() -> None:
    figures = measure_test(exact_prefix_sums(), SUMS, SizeTest(8, 6, 20), MODEL)
    assert figures["problems"] == 6
    assert figures["solved"][-1] == figures["solved by the most confident"][-1] == 6
    cell = Peaks("8").of([record(tests={"8": figures})])
    assert cell.value is not None
    assert cell.value.mean == 100
    assert cell.value.step == figures["solved"].index(6) + 1 <= 9


def test_studies_of_an_exact_network() -> None:
    subject = Subject(exact_prefix_sums(), SUMS, "exact")
    specs = (
        StudySpec("swap"),
        StudySpec("bit-flip"),
        StudySpec("convergence"),
        StudySpec("zeros", after=50),
    )
    studies = {one.name: measure_study(subject, one, MODEL) for one in specs}
    assert [study.get("after") for study in studies.values()] == [50, 50, None, 50]
    exact = [record(studies=studies)]
    for name in ("swap", "zeros after 50"):
        assert studies[name]["recovered"] == 1.0
        assert (
            Recovered(name).of(exact).text.startswith(f"{studies[name]['mean iterations']:.2f} (")
        )
    (curve,) = RecoveryByIndex().curves(exact)
    assert len(curve) == 8
    assert curve == sorted(curve, reverse=True), "later bits affect fewer outputs"
    (change,) = Changes("problems").curves(exact)
    assert (len(change), change[-1]) == (300, 0.0)
    assert studies["convergence"]["problems"]["features"]["settled"] == 100


def test_history_by_epoch() -> None:
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
