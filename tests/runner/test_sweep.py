"""Sweeps on this machine, and seeds: what each run does, what is told, refused and collected."""

from __future__ import annotations

import functools
import itertools
import json
import os
import pickletools
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import cloudpickle
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_sweeps import FIELDS, assert_same_checkpoints, small_plan, toml

from iterant.errors import RunError, UsageError
from iterant.io import RunFolder, read_result, write_json
from iterant.io.files import lock_folder
from iterant.runner import (
    Launch,
    SweepFolder,
    SweepStatus,
    collect,
    parse_seeds,
    status,
    stop,
    sweep,
    train_seeds,
)
from iterant.runner.slurm import Cluster, run_job
from iterant.runner.worker import run_one
from iterant.training import train
from iterant.training.logging import Reporter


class Listener(Reporter):
    """Keeps remarks."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)


def done_by(folder: SweepFolder) -> SweepFolder:
    for name in folder.planned:
        assert run_one(folder.path, name, device="cpu")
    return folder


@pytest.fixture(scope="module", name="finished")
def _finished(tmp_path_factory: pytest.TempPathFactory) -> SweepFolder:
    """A sweep of two runs, carried out in this process."""
    return done_by(SweepFolder.prepare(tmp_path_factory.mktemp("done"), small_plan()))


class TestOneRun:
    def test_a_run_of_a_sweep_is_that_run(self, finished: SweepFolder, tmp_path: Path) -> None:
        name = "prefix-sums-quick-s1"
        alone = train("prefix-sums", seed=1, out=tmp_path / "alone", device="cpu", **FIELDS)
        ours = RunFolder.open(finished.run_path(name)).load("last")[0]
        for key, value in alone.load("last")[0].items():
            assert value.equal(ours[key]), key
        outcome = finished.outcome(name)
        assert outcome is not None
        assert [test["size"] for test in outcome["tests"].values()] == [8, 16]
        assert status(finished).counts["done"] == 2

    def test_only_tests_that_are_new_are_taken(self, tmp_path: Path) -> None:
        folder = done_by(SweepFolder.prepare(tmp_path, small_plan(seeds=[0])))
        (name,) = folder.planned
        more = [{"size": [8, 24], "count": 10, "max_steps": 5}]
        folder = SweepFolder.prepare(tmp_path, small_plan(seeds=[0], tests=more))
        assert status(folder).counts["left"] == 1
        listener = Listener()
        assert run_one(tmp_path, name, device="cpu", reporter=listener)
        assert listener.notes[1:] == ["test: size 24, 10 problems of seed 1, 5 iterations"]
        assert status(folder).counts["done"] == 1

    def test_a_damaged_outcome_is_made_again(self, tmp_path: Path) -> None:
        folder = done_by(SweepFolder.prepare(tmp_path, small_plan(seeds=[0])))
        (name,) = folder.planned
        path, before = folder.work_path(name) / "outcome.json", folder.outcome(name)
        path.write_bytes(path.read_bytes()[:-40])
        assert status(folder).counts["left"] == 1
        assert run_one(tmp_path, name, device="cpu")
        after = folder.outcome(name)
        assert before is not None
        assert after is not None
        assert [test["solved"] for test in before["tests"].values()] == [
            test["solved"] for test in after["tests"].values()
        ]

    def test_a_second_worker_is_refused(self, finished: SweepFolder) -> None:
        name = next(iter(finished.planned))
        with finished.work_lock(name), pytest.raises(RunError, match=f"process {os.getpid()} on"):
            run_one(finished.path, name, device="cpu")
        assert finished.worker(name) is None

    def test_an_unknown_run_is_refused(self, finished: SweepFolder) -> None:
        with pytest.raises(RunError, match="has no run 'nobody'"):
            run_one(finished.path, "nobody")


def test_a_second_sweep_in_the_folder_is_refused(finished: SweepFolder) -> None:
    with lock_folder(finished.path), pytest.raises(RunError, match=f"process {os.getpid()} on"):
        sweep(small_plan(), out=finished.path)


def test_averages_say_over_how_many_and_who_is_missing(tmp_path: Path) -> None:
    folder = SweepFolder.prepare(tmp_path / "s", small_plan(seeds=[0, 1, 2]))
    names = list(folder.planned)
    for name in names[:2]:
        run_one(folder.path, name, device="cpu")
    for _ in range(2):
        record = folder.failures(names[2])
        folder.write_failures(names[2], type(record)(record.failures + 1, "out of luck"))
    result, *pictures = collect(folder, tmp_path / "results")
    assert len(pictures) == 2
    found = read_result(result)
    assert found["seed"] == [0, 1, 2]
    figures = found["figures"]
    assert not figures["complete"]
    assert figures["runs"][names[2]]["error"] == "out of luck"
    (point,) = figures["points"].values()
    assert point["seeds"] == "2 of 3"
    assert point["missing"] == {names[2]: "out of luck"}
    for key, test in point["tests"].items():
        peaks = [figures["runs"][name]["tests"][key]["peak"]["accuracy"] for name in names[:2]]
        assert test["peak"]["runs"] == 2
        assert test["peak"]["mean"] == pytest.approx(sum(peaks) / 2)


def test_what_is_pickled_is_words() -> None:
    content = cloudpickle.dumps(functools.partial(run_job, "/folder", {"processes": 1}, "run"))
    strings = {arg for _, arg, _ in pickletools.genops(content) if isinstance(arg, str)}
    assert strings >= {"iterant.runner.slurm", "run_job", "/folder", "run"}
    assert all(len(word) < 40 for word in strings)
    assert len(content) < 300


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: Launch(processes=0), "processes must be at least 1"),
        (lambda: Cluster(time="soon"), "a time is written like"),
        (lambda: sweep("x.toml", on="moon"), "unknown place 'moon'"),
        (lambda: sweep("x.toml", at_once=0), "at_once must be at least 1"),
        (lambda: sweep(small_plan(), launch=Launch(nodes=2)), "this machine is one node"),
        (lambda: sweep(small_plan(), seeds="0-3"), "seeds are for a plan in a file"),
    ],
)  # fmt: skip
def test_what_cannot_be_asked_for(make: Any, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        make()


def test_without_slurm_one_line_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match=r"there is no Slurm here .*; use --on local"):
        sweep(small_plan(), out=tmp_path / "s", on="slurm")


def test_the_command(
    finished: SweepFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The state of a sweep, as text and as JSON, and what fails."""

    def said(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "iterant", "sweep", *words]
        return subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=tmp_path)

    done = said("status", str(finished.path), "--json")
    assert json.loads(done.stdout)["counts"]["done"] == 2
    # Jobs were sent from a machine with a cluster; this one has none.
    jobs = {"jobs": dict.fromkeys(finished.planned, "1")}
    (finished.path / "slurm").mkdir()
    write_json(finished.path / "slurm" / "jobs.json", jobs, checksummed=True)
    monkeypatch.setenv("PATH", str(tmp_path))
    done = said("status", str(finished.path))
    assert done.stdout == "small: 2 of 2 done\n"
    assert "the queue is not known here: there is no Slurm here" in done.stderr
    shutil.rmtree(finished.path / "slurm")
    toml(tmp_path / "bad.toml", "grid = {widht = [3]}")
    bad = said("bad.toml", "--partition", "gpu")
    assert (bad.returncode, len(bad.stderr.splitlines())) == (2, 1)
    assert "for Slurm" in bad.stderr


def test_stopping_tells_the_process_that_runs_it_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, told = SweepFolder.prepare(tmp_path / "s", small_plan()), []
    monkeypatch.setattr(os, "kill", lambda pid, number: told.append((pid, number)))
    assert stop(folder.path) == "nothing was running"
    with lock_folder(folder.path):
        assert stop(folder.path) == f"process {os.getpid()} was signalled to save and stop"
        assert told == [(os.getpid(), signal.SIGTERM)]
        monkeypatch.setattr(socket, "gethostname", lambda: "elsewhere")
        with pytest.raises(RunError, match=f"is run by process {os.getpid()} on .*stop it there"):
            stop(folder.path)
        (folder.path / "lock").write_text("")  # taken, and not yet said by whom
        with pytest.raises(RunError, match="is run by another process; stop it there"):
            stop(folder.path)
    assert len(told) == 1


def several(out: Path, seeds: list[int], **changes: Any) -> SweepStatus:
    return train_seeds("prefix-sums", seeds=seeds, out=out, device="cpu", **{**FIELDS, **changes})


@given(st.sets(st.integers(0, 40), min_size=1))
def test_parse_seeds(seeds: set[int]) -> None:
    wanted = sorted(seeds)
    assert parse_seeds(",".join(map(str, wanted))) == wanted
    low, high = wanted[0], wanted[-1]
    assert parse_seeds(f"99, {low}-{high}") == [99, *range(low, high + 1)]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        *((text, "written like 0-7") for text in ("", ",", "-1", "1--2", "one", "²", "3-1")),
        ("0-2,2", "different seeds"),
        ("0-1000", "at most 1000"),
        ("18446744073709551616", r"from 0 to 2\*\*64 - 1"),
    ],
)
def test_parse_seeds_refuses(text: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
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


def test_a_time_limit_holds_for_all_seeds_together(tmp_path: Path) -> None:
    assert several(tmp_path / "r", [0, 1], time_limit=1e-3).counts["left"] == 2
    assert not list(tmp_path.glob("r-s*"))


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"seeds": []}, "seeds must be a list of one or more"),
        ({"seeds": [-1]}, "seed"),
        ({"seeds": [2, 2]}, "different seeds"),
        ({"batch": 4000}, "batch of 4000"),
        ({"out": None}, "either out"),
        ({"resume": "r"}, "either out"),
        ({"out": None, "resume": "nowhere"}, "no run nowhere-s0"),
        ({"out": None, "resume": "taken"}, "keep their recipe"),
        ({"out": "taken", "seeds": [0, 2]}, "taken-s2 for seed 2 .*--resume taken --seeds 0-2"),
    ],
    ids=str,
)
def test_refused_before_any_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any], why: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "taken-s2").mkdir()
    (tmp_path / "taken-s2" / "file").touch()
    changes = {} if settings.get("resume") == "nowhere" else FIELDS
    with pytest.raises((UsageError, RunError), match=why):
        train_seeds("prefix-sums", **{"seeds": [0], "out": "r", **changes, **settings})
    assert [path.name for path in tmp_path.iterdir()] == ["taken-s2"]


def test_several_processes_refuse_several_seeds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(UsageError, match="give --seed"):
        several(tmp_path / "r", [0])
