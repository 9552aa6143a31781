"""Run folders stay readable however their writer ends."""

import contextlib
import math
import multiprocessing
import time
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
import pytest
import torch

from iterant.errors import RunError, UsageError
from iterant.io.checkpoint import CHECKPOINTS, CONFIG, save_weights
from iterant.io.files import LOCK
from iterant.io.run_folder import ENVIRONMENT, METRICS, STATUS, RunFolder, Status, list_runs

CONFIGURATION = {"task": "mazes", "recipe": {"name": "best"}, "seed": 1, "net": {"kind": "x"}}

START = multiprocessing.get_context("forkserver")
START.set_forkserver_preload(["torch", "iterant.io"])


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    return RunFolder.create(tmp_path / "m0", CONFIGURATION)


def test_create_and_open(run: RunFolder) -> None:
    again = RunFolder.open(run.path)
    assert again.config == run.config == {"format": 1, **CONFIGURATION}
    assert again.metrics() == []
    assert again.checkpoints() == []
    assert again.status.state == again.state == "created"
    assert again.environment["versions"]["torch"] == torch.__version__
    names = {CONFIG, ENVIRONMENT, STATUS, METRICS, CHECKPOINTS, LOCK}
    assert {path.name for path in run.path.iterdir()} == names


def test_folder_in_use_is_refused(run: RunFolder, tmp_path: Path) -> None:
    for folder in ("full", "empty"):
        (tmp_path / folder).mkdir()
    (tmp_path / "full" / "thesis.tex").touch()
    for check in (RunFolder.check_new, lambda path: RunFolder.create(path, CONFIGURATION)):
        with pytest.raises(RunError, match=r"holds a run already.*resume='"):
            check(run.path)
        with pytest.raises(RunError, match=r"not empty \(it has 'thesis.tex'\).*another out"):
            check(tmp_path / "full")
        with pytest.raises(UsageError, match="is not a folder"):
            check(tmp_path / "full" / "thesis.tex")
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["thesis.tex"]
    for place in ("empty", "new"):
        RunFolder.check_new(tmp_path / place)


def test_invalid_config_leaves_no_run(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="as JSON"):
        RunFolder.create(tmp_path / "m0", {"recipe": {"rate": math.nan}})
    RunFolder.create(tmp_path / "m0", CONFIGURATION)


@pytest.mark.parametrize("name", [CONFIG, ENVIRONMENT, STATUS, METRICS])
def test_missing_or_damaged_file_is_named(run: RunFolder, name: str) -> None:
    path = run.path / name
    data = path.read_bytes()
    path.write_bytes(b"\x00" + data[1:] if data else b"\x00\n")
    with pytest.raises(RunError, match=name):
        RunFolder.open(run.path).metrics()
    path.unlink()
    with pytest.raises(RunError, match=f"holds no run .{name} is missing"):
        RunFolder.open(run.path)


def test_status_keeps_earlier_values(run: RunFolder) -> None:
    run.set_status("running", step=5, steps=10, best={"accuracy": 0.5, "loss": math.inf})
    run.set_status("failed", reason="NaN at step 6", step=6)
    best = {"accuracy": 0.5, "loss": None}
    now = RunFolder.open(run.path).status
    assert now == Status("failed", "NaN at step 6", 6, 10, best, now.updated)
    run.set_status("finished")
    assert run.status.reason is None


def test_running_without_a_lock_is_interrupted(run: RunFolder) -> None:
    with run.lock():
        run.set_status("running")
        assert RunFolder.open(run.path).state == "running"
    assert run.state == "interrupted"
    run.set_status("finished")
    assert run.state == "finished"


def test_rewind_metrics(run: RunFolder) -> None:
    for step in range(1, 8):
        run.log({"step": step, "loss": math.nan if step == 3 else 1 / step})
        run.log({"event": f"after {step}"})
    with (run.path / METRICS).open("ab") as file:
        file.write(b'{"step": 8, "lo')
    before = run.metrics()
    run.rewind_metrics(4)
    assert run.metrics() == [r for r in before if "event" in r or r["step"] <= 4]
    assert run.metrics()[4] == {"step": 3, "loss": None}
    run.log({"step": 5})
    assert run.metrics()[-1] == {"step": 5}


def test_checkpoints_by_name(run: RunFolder) -> None:
    with pytest.raises(RunError, match=r"last\.json"):
        run.load("last")
    run.save("best", {"net.a": torch.ones(2)}, {"step": 1})
    assert (run.has("best"), run.has("last")) == (True, False)
    run.save("last", {"net.a": torch.zeros(2), "pool.b": torch.ones(1)}, {"step": 2})
    assert run.checkpoints() == ["best", "last"]
    assert list(run.load("last", "pool.")[0]) == ["pool.b"]
    assert run.load("best")[1] == {"step": 1}


def train(path: str, pipe: Connection) -> None:
    """Resume, then log and save as fast as possible; send each completed step."""
    run = RunFolder.open(path)
    with run.lock():
        step = run.load("last")[1]["step"] if run.has("last") else 0
        run.rewind_metrics(step)
        run.set_status("running")
        while True:
            step += 1
            run.log({"step": step, "padding": "x" * (step % 50)})
            tensors = {"net.a": torch.full((6000,), float(step)), "n": torch.tensor(step)}
            run.save("last", tensors, {"step": step})
            run.set_status("running", step=step)
            pipe.send(step)


def test_killed_writer_loses_nothing_saved(run: RunFolder) -> None:
    """A child is killed at random times, repeatedly."""
    for delay in np.random.default_rng(0).uniform(0, 0.04, size=20):
        ours, theirs = START.Pipe(duplex=False)
        child = START.Process(target=train, args=(str(run.path), theirs), daemon=True)
        child.start()
        theirs.close()
        sent = int(ours.recv())
        time.sleep(delay)
        child.kill()
        child.join()
        with contextlib.suppress(EOFError):
            while True:
                sent = int(ours.recv())
        again = RunFolder.open(run.path)
        assert again.state == "interrupted"
        tensors, metadata = again.load("last")
        step = metadata["step"]
        assert sent <= step <= sent + 1
        assert (tensors["net.a"] == step).all()
        assert tensors["n"] == step
        assert again.status.step in (step - 1, step)
        assert [record["step"] for record in again.metrics()][:step] == list(range(1, step + 1))
    with run.lock():
        run.save("last", {"net.a": torch.ones(1)})
    assert len(list((run.path / CHECKPOINTS).iterdir())) == 2, "leftovers were not removed"
    assert not list(run.path.glob(".*"))


def test_list_runs(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="iterant train"):
        list_runs(tmp_path / "runs")
    assert list_runs(tmp_path) == []
    config = {"task": "mazes", "recipe": {"name": "best"}, "seed": 4}
    done = RunFolder.create(tmp_path / "a", config)
    done.set_status("finished", step=10, steps=10, best={"accuracy": 0.9})
    lost = RunFolder.create(tmp_path / "sweep/x/y/b", {})
    lost.set_status("running", step=3, steps=10)
    broken = RunFolder.create(tmp_path / "c", {})
    (broken.path / STATUS).write_text("{")
    (tmp_path / "d" / "checkpoints").mkdir(parents=True)
    save_weights(tmp_path / "weights", {"kind": "x", "config": {}}, {"a": torch.ones(1)})
    (tmp_path / ".hidden" / "checkpoints").mkdir(parents=True)
    (tmp_path / "1/2/3/4/5/checkpoints").mkdir(parents=True)  # too deep
    (tmp_path / "sweep" / "up").symlink_to(tmp_path)
    RunFolder.create(done.path / "inner", {})  # a run holds no others

    a, c, d, b = list_runs(tmp_path)
    assert (a.path, a.state, a.config) == (done.path, "finished", {"format": 1, **config})
    assert (a.status.step, a.status.best) == (10, {"accuracy": 0.9})
    assert a.age_seconds is not None
    assert -1 <= a.age_seconds < 3600
    assert (b.path, b.state) == (lost.path, "interrupted")
    assert c.state == d.state == "unreadable"
    assert STATUS in str(c.reason)
    assert CONFIG in str(d.reason)
    assert "\n" not in str(c.reason)
    with lost.lock():
        assert list_runs(lost.path)[0].state == "running"
