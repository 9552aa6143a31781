"""Sweeps on a real Slurm: a cluster of one node, started for these tests and stopped after."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from small_sweeps import SLOW, assert_same_runs, small_plan

from iterant.io import RunFolder
from iterant.runner import Cluster, Plan, SweepFolder, SweepStatus, status, sweep
from iterant.runner.slurm import queued, submitted

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
PATIENCE = 400.0

pytestmark = pytest.mark.system


@pytest.fixture(scope="module", name="slurm")
def _slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A Slurm of one node; where it cannot start the tests fail and say why."""
    folder = tmp_path_factory.mktemp("slurm") / "cluster"
    done = subprocess.run(
        [SCRIPTS / "slurm-up", folder], capture_output=True, text=True, timeout=300,
        env={**os.environ, "SLURM_CPUS": "4"},
    )  # fmt: skip
    if done.returncode:
        pytest.fail(f"Slurm cannot start here, and these tests need it:\n{done.stderr}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SLURM_CONF", str(folder / "slurm.conf"))
        # Jobs inherit it, and find the slow task.
        patch.setenv("PYTHONPATH", os.pathsep.join([str(Path(__file__).parent), *sys.path]))
        yield
        subprocess.run([SCRIPTS / "slurm-down", folder], check=True, timeout=120)


def output_of(*words: str) -> str:
    return subprocess.run(words, capture_output=True, text=True, check=True, timeout=60).stdout


def until(what: Callable[[], Any], why: str) -> Any:
    """Wait until ``what()`` is true and return its value."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if value := what():
            return value
        time.sleep(0.1)
    raise AssertionError(f"still waiting after {PATIENCE:.0f} s: {why}")


def is_training(folder: SweepFolder, name: str) -> bool:
    """Whether a run has saved a checkpoint and has a process."""
    return (
        folder.worker(name) is not None
        and (folder.run_path(name) / "checkpoints" / "last.json").exists()
    )


class Watched(threading.Thread):
    """A sweep on Slurm that a thread watches."""

    def __init__(self, plan: Plan, out: Path, **how: Any) -> None:
        super().__init__(daemon=True)
        self.plan, self.out, self.how = plan, out, how
        self.lines: list[str] = []
        self.result: SweepStatus | BaseException | None = None
        self.start()
        until(lambda: (out / "slurm" / "jobs.json").exists() or self.result, "jobs are submitted")
        self.folder = SweepFolder.open(out)

    def run(self) -> None:
        cluster = Cluster(partition="main", time="10m")
        try:
            self.result = sweep(
                self.plan, out=self.out, on="slurm", cluster=self.how.pop("cluster", cluster),
                look_seconds=0.5, results=self.out.with_name("results"), say=self.lines.append,
                **self.how,
            )  # fmt: skip
        except BaseException as error:
            self.result = error

    def ended(self) -> SweepStatus:
        self.join(PATIENCE)
        assert isinstance(self.result, SweepStatus), (self.result, self.lines)
        return self.result


def test_interrupted_runs_equal_uninterrupted_ones(slurm: None, tmp_path: Path) -> None:
    plan = small_plan("six", seeds=[0, 1, 2], entries=[{"epochs": 48}, {"epochs": 2}], **SLOW)
    long = [run.name for run in plan.runs if run.changes["epochs"] == 48]
    watched = Watched(plan, tmp_path / "interrupted")
    folder = watched.folder
    jobs = submitted(folder)
    assert len({job.partition("_")[0] for job in jobs.values()}) == 1, "one array"

    # Cancelled while running: it saves and is submitted once more.
    until(lambda: is_training(folder, long[0]), "the first run trains")
    output_of("scancel", jobs[long[0]])
    until(lambda: submitted(folder)[long[0]] != jobs[long[0]], "it is submitted once more")

    # Requeued: Slurm runs the same job again, which resumes from its checkpoint.
    until(lambda: is_training(folder, long[1]), "the second run trains")
    output_of("scontrol", "requeue", jobs[long[1]])
    until(lambda: queued(folder).get(long[1]) == "PENDING", "it waits again")
    # Slurm would delay a requeued job by two minutes.
    output_of("scontrol", "update", f"JobId={jobs[long[1]]}", "StartTime=now")

    # Its process killed: the job starts it again.
    until(lambda: is_training(folder, long[2]), "the third run trains")
    worker = json.loads((folder.work_path(long[2]) / "lock").read_text())
    os.kill(worker["pid"], signal.SIGKILL)

    counts = watched.ended().counts
    assert counts == {"done": 6, "running": 0, "waiting": 0, "failed": 0, "left": 0}
    assert submitted(folder)[long[1]] == jobs[long[1]]
    assert "Restarts=1" in output_of("scontrol", "show", "job", jobs[long[1]])
    assert folder.failures(long[2]).error == "killed by SIGKILL"
    assert folder.failures(long[2]).failures == 1
    for name in long[:2]:
        log = (folder.work_path(name) / "log").read_text()
        assert "stopped; continue with the same command" in log, log

    local = tmp_path / "local"
    assert sweep(plan, out=local, at_once=4, results=None).counts == counts
    assert_same_runs(folder, SweepFolder.open(local))
    assert (tmp_path / "results" / "six.json").exists()


def test_a_job_at_its_time_limit_is_queued_again(slurm: None, tmp_path: Path) -> None:
    plan = small_plan("limit", seeds=[0], **SLOW)
    submission = sweep(plan, out=tmp_path / "sweep", on="slurm", watch=False)
    assert submission.counts["waiting"] + submission.counts["running"] == 1
    folder = SweepFolder.open(tmp_path / "sweep")
    (name,) = folder.planned
    (job,) = submitted(folder).values()
    until(lambda: is_training(folder, name), "it trains")
    # The signal that Slurm sends before a time limit, which is at least a minute.
    output_of("scancel", "--signal", "USR1", job)
    until(lambda: "Restarts=1" in output_of("scontrol", "show", "job", job), "it is queued again")
    until(lambda: queued(folder).get(name) == "PENDING", "it waits")
    run = RunFolder.open(folder.run_path(name))
    assert run.status.reason == "stopped by SIGUSR1"
    assert run.status.step == run.load("last")[1]["step"] > 0
    assert status(folder, queued(folder)).counts["waiting"] == 1
    stopped = subprocess.run(
        [sys.executable, "-m", "iterant", "sweep", "stop", str(folder.path)],
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert (stopped.returncode, stopped.stdout) == (0, "1 job was cancelled\n"), stopped.stderr
    until(lambda: not queued(folder), "it leaves the queue")
    assert status(folder, queued(folder)).counts["left"] == 1


def test_an_error_of_slurm_is_one_line(slurm: None, tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text('task = "prefix-sums"\n')
    done = subprocess.run(
        [sys.executable, "-m", "iterant", "sweep", "s.toml", "--on", "slurm", "--partition",
         "nowhere"],
        capture_output=True, text=True, timeout=60, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 2
    *sbatch, error = done.stderr.splitlines()
    assert all(line.startswith("sbatch: ") for line in sbatch)
    assert error.startswith("iterant: error: Slurm refused the jobs: ")
    assert "invalid partition specified: nowhere" in error
