"""Sweeps on a real Slurm: a cluster of one node, started for these tests and taken down again."""

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
from iterant.runner import Cluster, Launch, Plan, SweepFolder, SweepStatus, status, sweep
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


def told(*words: str) -> str:
    return subprocess.run(words, capture_output=True, text=True, check=True, timeout=60).stdout


def until(what: Callable[[], Any], why: str) -> Any:
    """Wait for something to become true."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if found := what():
            return found
        time.sleep(0.1)
    raise AssertionError(f"waited {PATIENCE:.0f} s in vain: {why}")


def learning(folder: SweepFolder, name: str) -> bool:
    """Whether a run has saved at least once and is being worked on."""
    return (
        folder.worker(name) is not None
        and (folder.run_path(name) / "checkpoints" / "last.json").exists()
    )


class Watched(threading.Thread):
    """A sweep on Slurm, watched by a thread of its own."""

    def __init__(self, plan: Plan, out: Path, **how: Any) -> None:
        super().__init__(daemon=True)
        self.plan, self.out, self.how = plan, out, how
        self.said: list[str] = []
        self.seen: SweepStatus | BaseException | None = None
        self.start()
        until(lambda: (out / "slurm" / "jobs.json").exists() or self.seen, "jobs are submitted")
        self.folder = SweepFolder.open(out)

    def run(self) -> None:
        cluster = Cluster(partition="main", time="10m")
        try:
            self.seen = sweep(
                self.plan, out=self.out, on="slurm", cluster=self.how.pop("cluster", cluster),
                look_seconds=0.5, results=self.out.with_name("results"), say=self.said.append,
                **self.how,
            )  # fmt: skip
        except BaseException as error:
            self.seen = error

    def ended(self) -> SweepStatus:
        self.join(PATIENCE)
        assert isinstance(self.seen, SweepStatus), (self.seen, self.said)
        return self.seen


def test_six_runs_that_are_disturbed_equal_six_that_are_not(slurm: None, tmp_path: Path) -> None:
    plan = small_plan("six", seeds=[0, 1, 2], entries=[{"epochs": 48}, {"epochs": 2}], **SLOW)
    long = [run.name for run in plan.runs if run.changes["epochs"] == 48]
    watched = Watched(plan, tmp_path / "disturbed")
    folder = watched.folder
    jobs = submitted(folder)
    assert len({job.partition("_")[0] for job in jobs.values()}) == 1, "one array"

    # Cancelled while it runs: it saves, and is submitted once more.
    until(lambda: learning(folder, long[0]), "the first run learns")
    told("scancel", jobs[long[0]])
    until(lambda: submitted(folder)[long[0]] != jobs[long[0]], "it is submitted once more")

    # Requeued: Slurm runs the same job again, and it goes on from its checkpoint.
    until(lambda: learning(folder, long[1]), "the second run learns")
    told("scontrol", "requeue", jobs[long[1]])
    until(lambda: queued(folder).get(long[1]) == "PENDING", "it waits again")
    # Slurm lets a requeued job wait two minutes; that is not what is tested.
    told("scontrol", "update", f"JobId={jobs[long[1]]}", "StartTime=now")

    # Its worker killed: the job notices and starts it again.
    until(lambda: learning(folder, long[2]), "the third run learns")
    worker = json.loads((folder.work_path(long[2]) / "lock").read_text())
    os.kill(worker["pid"], signal.SIGKILL)

    counts = watched.ended().counts
    assert counts == {"done": 6, "running": 0, "waiting": 0, "failed": 0, "left": 0}
    assert submitted(folder)[long[1]] == jobs[long[1]]
    assert "Restarts=1" in told("scontrol", "show", "job", jobs[long[1]])
    assert folder.failures(long[2]).error == "killed by SIGKILL"
    assert folder.failures(long[2]).failures == 1
    for name in long[:2]:
        log = (folder.work_path(name) / "log").read_text()
        assert "stopped; continue with the same command" in log, log

    quiet = tmp_path / "quiet"
    assert sweep(plan, out=quiet, at_once=4, results=None).counts == counts
    assert_same_runs(folder, SweepFolder.open(quiet))
    assert (tmp_path / "results" / "six.json").exists()


def test_a_job_at_its_time_limit_is_queued_again(slurm: None, tmp_path: Path) -> None:
    plan = small_plan("limit", seeds=[0], **SLOW)
    seen = sweep(plan, out=tmp_path / "sweep", on="slurm", watch=False)
    assert seen.counts["waiting"] + seen.counts["running"] == 1
    folder = SweepFolder.open(tmp_path / "sweep")
    (name,) = folder.planned
    (job,) = submitted(folder).values()
    until(lambda: learning(folder, name), "it learns")
    # What Slurm sends some time before a limit; its own clock is too coarse for a test.
    told("scancel", "--signal", "USR1", job)
    until(lambda: "Restarts=1" in told("scontrol", "show", "job", job), "it is queued again")
    until(lambda: queued(folder).get(name) == "PENDING", "it waits")
    run = RunFolder.open(folder.run_path(name))
    assert run.status.reason == "stopped by SIGUSR1"
    assert run.status.step == run.load("last")[1]["step"] > 0
    assert status(folder, queued(folder)).counts["waiting"] == 1
    # Stopped for good by the command that a person would use.
    stopped = subprocess.run(
        [sys.executable, "-m", "iterant", "sweep", "stop", str(folder.path)],
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert (stopped.returncode, stopped.stdout) == (0, "1 job was cancelled\n"), stopped.stderr
    until(lambda: not queued(folder), "it leaves the queue")
    assert status(folder, queued(folder)).counts["left"] == 1


def test_torchrun_joins_processes_within_a_job(slurm: None, tmp_path: Path) -> None:
    plan = small_plan("joined", seeds=[0])
    watched = Watched(plan, tmp_path / "joined", launch=Launch(processes=2))
    assert watched.ended().counts["done"] == 1
    (name,) = watched.folder.planned
    joined = RunFolder.open(watched.folder.run_path(name))
    assert sweep(plan, out=tmp_path / "alone", results=None).counts["done"] == 1
    alone = RunFolder.open(tmp_path / "alone" / "runs" / name)
    ours, theirs = joined.load("last")[0], alone.load("last")[0]
    for key, value in theirs.items():
        assert ours[key].double().allclose(value.double(), rtol=1e-3, atol=2e-5), key


def test_what_slurm_refuses_is_one_line(slurm: None, tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text('task = "prefix-sums"\n')
    done = subprocess.run(
        [sys.executable, "-m", "iterant", "sweep", "s.toml", "--on", "slurm", "--partition",
         "nowhere"],
        capture_output=True, text=True, timeout=60, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 2
    *theirs, ours = done.stderr.splitlines()
    assert all(line.startswith("sbatch: ") for line in theirs)
    assert ours.startswith("iterant: error: Slurm refused the jobs: ")
    assert "invalid partition specified: nowhere" in ours
