"""Sweeps on this machine and several seeds of a recipe: runs, errors and the result."""

from __future__ import annotations

import functools
import itertools
import json
import math
import os
import pickletools
import shutil
from pathlib import Path
from typing import Any

import cloudpickle
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from small_sweeps import FIELDS, assert_same_checkpoints, small_plan, solved_counts

from iterant import registry
from iterant.cli.main import run as run_command
from iterant.errors import RunError, UsageError
from iterant.io import RunFolder, read_result, write_json
from iterant.io.files import lock_folder, make_folder
from iterant.runner import (
    SweepFolder,
    collect,
    parse_seeds,
    save_picture,
    slurm,
    status,
    sweep,
    sweeps,
    table,
    train_seeds,
)
from iterant.runner.folder import Failures
from iterant.runner.slurm import run_job
from iterant.runner.worker import run_one
from iterant.training import train
from iterant.training.logging import Reporter


def execute(folder: SweepFolder) -> SweepFolder:
    """Execute all runs in this process."""
    for name in folder.planned:
        assert run_one(folder.path, name, device="cpu")
    return folder


@pytest.fixture(scope="module", name="finished")
def _finished(tmp_path_factory: pytest.TempPathFactory) -> SweepFolder:
    """A finished sweep of two runs."""
    return execute(SweepFolder.prepare(tmp_path_factory.mktemp("done"), small_plan()))


def test_jobs_are_watched_and_a_missing_one_is_submitted_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    submitted: list[list[str]] = []
    polls = itertools.count()

    def queued(folder: SweepFolder) -> dict[str, str]:
        """All jobs are pending, the first is missing in two polls, and both are done at the end."""
        poll, (first, second) = next(polls), folder.planned
        if poll == 5:
            execute(folder)
        names = {0: [], 3: [second], 4: [second], 5: []}.get(poll, [first, second])
        return dict.fromkeys(names, "PENDING")

    monkeypatch.setattr(slurm, "queued", queued)
    monkeypatch.setattr(slurm, "submit", lambda folder, names, **_: submitted.append(list(names)))
    options: dict[str, Any] = {"out": tmp_path / "s", "on": "slurm", "results": None}
    now = sweep(small_plan(), watch=False, **options)
    assert now.counts["waiting"] == 2
    assert sweep(small_plan(), look_seconds=0.01, **options).counts["done"] == 2
    names = [run.name for run in now.runs]
    assert submitted == [names, names[:1]]
    assert next(polls) == 6


def test_the_runs_of_the_given_plan_are_executed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names: list[str] = []
    monkeypatch.setattr(sweeps, "run_local", lambda _, runs, *__, **___: names.extend(runs))
    SweepFolder.prepare(tmp_path / "s", small_plan(seeds=[0, 1, 2]))
    assert len(sweep(small_plan(seeds=[1]), out=tmp_path / "s", results=None).runs) == 3
    assert names == ["prefix-sums-quick-s1"]


def test_a_run_of_a_sweep_equals_one_of_train(finished: SweepFolder, tmp_path: Path) -> None:
    name = "prefix-sums-quick-s1"
    train("prefix-sums", seed=1, out=tmp_path / "alone", device="cpu", **FIELDS)
    assert_same_checkpoints(finished.run_path(name), tmp_path / "alone")
    outcome = finished.outcome(name)
    assert outcome is not None
    assert [test["size"] for test in outcome["tests"].values()] == [8, 16]
    assert status(finished).counts["done"] == 2


def test_only_new_tests_are_evaluated_and_corrupt_outcomes_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = execute(SweepFolder.prepare(tmp_path, small_plan(seeds=[0])))
    (name,) = folder.planned
    # Without a size a test has that of training, 8; the task's own is 32.
    tests = [{"size": [8, 24], "count": 10, "max_steps": 5}, {"count": 9, "max_steps": 5}]
    folder = SweepFolder.prepare(tmp_path, small_plan(seeds=[0], tests=tests))
    assert status(folder).counts["left"] == 1
    notes: list[str] = []
    monkeypatch.setattr(Reporter, "note", lambda _, text: notes.append(text))
    execute(folder)
    assert notes[1:] == [
        "test: size 24, 10 problems of seed 1, 5 iterations",
        "test: the training size, 9 problems of seed 1, 5 iterations",
    ]
    outcome = folder.outcome(name)
    assert outcome is not None
    assert [test["size"] for test in outcome["tests"].values()] == [8, 16, 24, 8]
    assert status(folder).counts["done"] == 1
    path, before = folder.work_path(name) / "outcome.json", solved_counts(folder, name)
    path.write_bytes(path.read_bytes()[:-40])
    assert status(folder).counts["left"] == 1
    execute(folder)
    after = solved_counts(folder, name)
    assert after == {key: before[key] for key in after} != {}


def test_a_test_without_a_size_takes_the_range_of_a_chess_run(tmp_path: Path) -> None:
    plan = small_plan(task="chess", fields={**FIELDS, "size": "0:60"}, seeds=[0],
                      tests=[{"count": 2, "max_steps": 1}])  # fmt: skip
    folder = execute(SweepFolder.prepare(tmp_path, plan))
    outcome = folder.outcome("chess-quick-s0")
    assert outcome is not None
    assert [test["size"] for test in outcome["tests"].values()] == [[0, 60]]


def test_a_second_process_is_refused(finished: SweepFolder) -> None:
    name, message = next(iter(finished.planned)), f"process {os.getpid()} on"
    with finished.work_lock(name), pytest.raises(RunError, match=message):
        run_one(finished.path, name, device="cpu")
    assert finished.worker(name) is None
    with lock_folder(finished.path), pytest.raises(RunError, match=message):
        sweep(small_plan(), out=finished.path)


def test_means_of_points_name_the_runs_that_are_missing(tmp_path: Path) -> None:
    plan = small_plan(grid={"alpha": [0.0, 0.5]}, seeds=[0, 1])
    folder = SweepFolder.prepare(tmp_path / "s", plan)
    assert (table(folder)[1], save_picture(folder)) == ([], None)
    keys = [test.key for test in plan.tests]
    for name, share in zip(folder.planned, (0.5, 0.7, 0.3), strict=False):
        test = {"peak": {"accuracy": 0.8}, "end": {"accuracy": share}}
        outcome = {"tests": {keys[0]: test, keys[1]: {**test, "end": {"accuracy": 0.8}}},
                   "best": {"validation": 1.0}, "steps": 8, "seconds": 1.0}  # fmt: skip
        make_folder(folder.work_path(name))
        folder.write_outcome(name, outcome)
    head, rows = table(folder)
    assert head == ["", "seeds", "validation", "size 8", "size 16"]
    assert rows == [
        ["prefix-sums, quick, alpha 0.0", "2 of 2", "100.0 %", "60.0 % ± 14.1 (peak 80.0 %)",
         "80.0 %"],
        ["prefix-sums, quick, alpha 0.5", "1 of 2", "100.0 %", "30.0 % (peak 80.0 %)", "80.0 %"],
    ]  # fmt: skip
    assert save_picture(folder) == tmp_path / "s" / "sweep.png"
    *_, missing = folder.planned
    folder.write_failures(missing, Failures(2, "out of memory"))
    result = read_result(collect(folder, tmp_path / "results"))
    assert (result["seed"], result["figures"]["complete"]) == ([0, 1], False)
    assert result["figures"]["runs"][missing]["error"] == "out of memory"
    first, second = result["figures"]["points"].values()
    assert (first["missing"], second["missing"]) == ({}, {missing: "out of memory"})
    assert first["tests"][keys[0]]["end"] == {
        "runs": 2, "mean": pytest.approx(0.6), "lowest": 0.5, "highest": 0.7,
        "deviation": pytest.approx(math.sqrt(0.02)),
    }  # fmt: skip


def test_a_pickled_job_has_only_strings() -> None:
    content = cloudpickle.dumps(
        functools.partial(run_job, "/folder", {"threads": 1}, ("mine:Net",), "run")
    )
    strings = {arg for _, arg, _ in pickletools.genops(content) if isinstance(arg, str)}
    assert strings >= {"iterant.runner.slurm", "run_job", "/folder", "mine:Net", "run"}
    assert len(content) < 300


def test_a_job_may_import_what_its_sweep_may(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = SweepFolder.prepare(tmp_path, small_plan(seeds=[0]))
    seen: list[tuple[str, ...]] = []
    monkeypatch.setattr("signal.signal", lambda *_: None)
    monkeypatch.setattr(slurm, "supervise", lambda *_, **__: seen.append(registry.allowed()))
    run_job(str(folder.path), {}, ["mine:Net"], next(iter(folder.planned)))
    assert seen == [("mine:Net",)]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: sweep("x.toml", on="moon"), "unknown place 'moon'"),
        (lambda: sweep(small_plan(), seeds="0-3"), "seeds are for a plan in a file"),
        (lambda: sweep(small_plan(), results=__file__), "is not a folder"),
    ],
)  # fmt: skip
def test_wrong_settings(make: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        make()


def test_status_command(
    finished: SweepFolder,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def status_command(folder: SweepFolder, *flags: str) -> tuple[str, str]:
        with pytest.raises(SystemExit) as end:
            run_command(["sweep", "status", str(folder.path), *flags])
        assert end.value.code == 0
        output, errors = capsys.readouterr()
        return output, errors

    assert json.loads(status_command(finished, "--json")[0])["counts"]["done"] == 2
    # Jobs were submitted on a machine with Slurm; this one has none.
    jobs = {"jobs": dict.fromkeys(finished.planned, "1")}
    (finished.path / "slurm").mkdir()
    write_json(finished.path / "slurm" / "jobs.json", jobs, checksummed=True)
    monkeypatch.setenv("PATH", str(tmp_path))
    output, errors = status_command(finished)
    first, _, row, drawn = output.splitlines()
    assert first == "small: 2 of 2 done"
    assert row.split()[:5] == ["prefix-sums,", "quick", "2", "of", "2"]
    assert drawn == f"drawn in {finished.path / 'sweep.png'}"
    assert "the queue is not known here: there is no Slurm here" in errors
    shutil.rmtree(finished.path / "slurm")
    # One run was stopped, one failed twice.
    folder = SweepFolder.prepare(tmp_path / "s", small_plan())
    first, second = folder.planned
    train("prefix-sums", out=folder.run_path(first), device="cpu", time_limit=1e-3, **FIELDS)
    folder.write_failures(second, Failures(2, "out of memory"))
    RunFolder.open(folder.run_path(first)).set_status("stopped", step=3)
    assert status_command(folder)[0].splitlines() == [
        "small: 0 of 2 done, 1 failed, 1 left",
        f"  {first}: left, step 3 of 8",
        f"  {second}: failed: out of memory",
    ]


@given(st.sets(st.integers(0, 40), min_size=1))
def test_parse_seeds(seeds: set[int]) -> None:
    numbers = sorted(seeds)
    assert parse_seeds(",".join(map(str, numbers))) == numbers
    low, high = numbers[0], numbers[-1]
    assert parse_seeds(f"99, {low}-{high}") == [99, *range(low, high + 1)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        *((text, "written like 0-7") for text in ("", ",", "-1", "1--2", "one", "²", "3-1")),
        ("0-2,2", "different seeds"),
        ("0-1000", "at most 1000"),
        ("18446744073709551616", r"from 0 to 2\*\*64 - 1"),
    ],
)
def test_parse_seeds_refuses(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse_seeds(text)


def test_seeds_equal_those_trained_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Seed 0 was stopped, the checkpoint of seed 1 is corrupt, seed 2 was not started."""

    def alone(name: str, seed: int) -> RunFolder:
        return train("prefix-sums", seed=seed, out=tmp_path / name, device="cpu", **FIELDS)

    whole = {seed: alone(f"alone-{seed}", seed) for seed in (0, 2)}
    with monkeypatch.context() as patched:
        over = itertools.cycle([*[False] * 5, True])
        patched.setattr("iterant.training.loop.Clock.over", property(lambda _: next(over)))
        stopped = [alone(f"r-s{seed}", seed) for seed in (0, 1)]
    assert [run.status.step for run in stopped] == [5, 5]
    for path in stopped[1].path.glob("checkpoints/last-*"):
        path.write_bytes(path.read_bytes()[:-1])
    lines: list[str] = []
    seen = train_seeds(
        seeds=[2, 1, 0], resume=tmp_path / "r", device="cpu", at_once=2, say=lines.append
    )
    states = {run.name: run.state for run in seen.runs}
    assert states == {"r-s2": "done", "r-s1": "failed", "r-s0": "done"}
    for seed, run in whole.items():
        assert_same_checkpoints(tmp_path / f"r-s{seed}", run.path)
    assert status(SweepFolder.open(tmp_path / "r")) == seen
    assert any(line.startswith("r-s1: failed: ") for line in lines)


def test_seeds_resume_with_their_number_of_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers: list[int] = []
    monkeypatch.setattr(sweeps, "run_local", lambda *given, **_: numbers.append(given[2].threads))
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
    monkeypatch.setattr("iterant.training.run._SMALL_NETWORK", 0)  # one thread for smaller ones
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        train("prefix-sums", out=tmp_path / "r-s0", device="cpu", time_limit=1e-3, **FIELDS)
        torch.set_num_threads(1)
        train_seeds(seeds=[0], resume=tmp_path / "r", device="cpu")
        monkeypatch.setenv("OMP_NUM_THREADS", "1")
        train_seeds(seeds=[0], resume=tmp_path / "r", device="cpu")
    finally:
        torch.set_num_threads(before)
    assert numbers == [2, 1]


def test_a_time_limit_holds_for_all_seeds_together(tmp_path: Path) -> None:
    options = {**FIELDS, "out": tmp_path / "r", "device": "cpu", "time_limit": 1e-9}
    assert train_seeds("prefix-sums", seeds=[0, 1], **options).counts["left"] == 2
    assert not list(tmp_path.glob("r-s*"))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"seeds": [2, 2]}, "different seeds"),
        ({"batch_size": 4000}, "batch of 4000"),
        ({"out": None}, "either out"),
        ({"resume": "r"}, "either out"),
        ({"out": None, "resume": "nowhere"}, "no run nowhere-s0"),
        ({"out": None, "resume": "taken"}, "keep their recipe"),
        ({"out": "taken", "seeds": [0, 2]}, "taken-s2 for seed 2 .*resume='taken' seeds='0-2'"),
    ],
    ids=str,
)
def test_refused_before_any_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "taken-s2").mkdir()
    (tmp_path / "taken-s2" / "file").touch()
    changes = {} if settings.get("resume") == "nowhere" else FIELDS
    with pytest.raises((UsageError, RunError), match=message):
        train_seeds("prefix-sums", **{"seeds": [0], "out": "r", **changes, **settings})
    assert [path.name for path in tmp_path.iterdir()] == ["taken-s2"]
