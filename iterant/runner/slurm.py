"""A sweep on a cluster: submitit submits job arrays, Slurm runs them.

    >>> submit(folder, names, Launch(), Cluster(partition="gpu", time="4h", gpus_per_node=1))
    >>> queued(folder)
    {'mazes-quick-s0': 'RUNNING', 'mazes-quick-s1': 'PENDING'}

submitit stores a job as a pickle in the sweep's folder. It has the name of the function `run_job`
and its arguments (a folder, a run, numbers), no code and no data; anyone who may write to that
folder could change the runs anyway.

Slurm sends SIGUSR1 before a time limit and SIGTERM when it preempts, requeues or cancels, to every
process of a job: training saves and exits. At a time limit the job requeues itself; Slurm requeues
preempted jobs. Either way the run resumes from its checkpoint.
"""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from iterant import registry
from iterant.errors import MissingExtra, RunError, TrainingStopped, UsageError, argument
from iterant.formatting import seconds
from iterant.io import read_json, write_json
from iterant.io.files import make_subfolder
from iterant.runner.folder import SLURM, SweepFolder
from iterant.runner.worker import Launch, supervise

JOBS = "jobs.json"

LARGEST_ARRAY = 1000
"""Jobs in one array; Slurm's default MaxArraySize is 1001."""


@dataclass(frozen=True)
class Cluster:
    """Resources of the job of one run."""

    partition: str | None = None
    time: str | None = None
    """The limit of a job, as 90m or 4h; a run that needs longer is queued again"""
    gpus_per_node: int | None = None
    cpus_per_task: int | None = None
    memory_gb: float | None = None
    warning_seconds: int = 90
    """How long before its time limit a job gets the signal to save"""

    @property
    def minutes(self) -> int:
        """The limit as Slurm counts it, rounded up; without one, a day."""
        return max(1, -(-int(seconds(self.time or "1d")) // 60))


def run_job(path: str, launch: Mapping[str, Any], trusted: Sequence[str], name: str) -> str:
    """Supervise a run from within its job; ``trusted``: user-defined code that it may import."""
    registry.allow(trusted)
    received: list[str] = []
    for number in (signal.SIGUSR1, signal.SIGTERM):
        # submitit's own handlers would requeue before the run has saved.
        signal.signal(number, lambda code, _: received.append(signal.Signals(code).name))
    folder = SweepFolder.open(path)
    how = supervise(
        folder, name, Launch(**launch), stop=lambda: signal.SIGTERM if received else None
    )
    if how == "stopped" and "SIGUSR1" in received and "SIGTERM" not in received:
        job, array = os.environ["SLURM_JOB_ID"], os.environ.get("SLURM_ARRAY_JOB_ID")
        word = job if array is None else f"{array}_{os.environ['SLURM_ARRAY_TASK_ID']}"
        _slurm("scontrol", "requeue", word)
    if how == "failed":
        raise TrainingStopped(f"run {name} failed: {folder.failures(name).error}")
    return how


def submit(
    folder: SweepFolder,
    names: Sequence[str],
    launch: Launch,
    cluster: Cluster,
    at_once: int | None = None,
) -> dict[str, str]:
    """Submit one job per run, in arrays; returns the jobs' numbers by the runs' names.

    ``at_once`` limits the jobs of an array that run side by side.
    """
    try:
        from submitit import AutoExecutor
        from submitit.core.utils import FailedJobError, FailedSubmissionError
    except ImportError as error:
        raise MissingExtra("submitit", "cluster", "sweeping on Slurm") from error
    try:
        executor = AutoExecutor(folder=make_subfolder(folder.path / SLURM), cluster="slurm")
    except RuntimeError as error:
        raise UsageError(
            f"there is no Slurm here ({error}); use {argument('on', 'local')}"
        ) from error
    optional = {
        "slurm_partition": cluster.partition,
        "gpus_per_node": cluster.gpus_per_node,
        "mem_gb": cluster.memory_gb,
    }
    executor.update_parameters(
        name=folder.plan.name,
        nodes=1,
        tasks_per_node=1,
        cpus_per_task=cluster.cpus_per_task or launch.threads,
        timeout_min=cluster.minutes,
        slurm_array_parallelism=at_once or LARGEST_ARRAY,
        # submitit starts the job by -m, which would put the current folder first on the path.
        slurm_setup=["export PYTHONSAFEPATH=1"],
        slurm_additional_parameters={"signal": f"USR1@{cluster.warning_seconds}", "requeue": True},
        **{word: value for word, value in optional.items() if value is not None},
    )
    path, trusted = str(folder.path.resolve()), registry.allowed()
    job = functools.partial(run_job, path, asdict(launch), trusted)
    jobs = submitted(folder)
    for first in range(0, len(names), LARGEST_ARRAY):
        array = names[first : first + LARGEST_ARRAY]
        try:
            new = executor.map_array(job, array)
        except (FailedJobError, FailedSubmissionError, subprocess.SubprocessError) as error:
            cause = " ".join(str(error).split())
            raise UsageError(
                f"Slurm refused the jobs: {cause}; check the partition and the other options"
            ) from error
        jobs |= {name: job.job_id for name, job in zip(array, new, strict=True)}
        # After every array, so that these jobs are known whatever happens next.
        write_json(folder.path / SLURM / JOBS, {"jobs": jobs}, checksummed=True)
    return jobs


def submitted(folder: SweepFolder) -> dict[str, str]:
    """The newest job of each run that was ever submitted."""
    with contextlib.suppress(RunError, KeyError, TypeError):
        return dict(read_json(folder.path / SLURM / JOBS, checksummed=True)["jobs"])
    return {}


def queued(folder: SweepFolder) -> dict[str, str]:
    """Slurm's states of the runs that have a job in its queue."""
    jobs = submitted(folder)
    if not jobs:
        return {}
    lines = _slurm("squeue", "--noheader", "--array", "--me", "--format", "%i|%T").splitlines()
    states = dict(line.strip().partition("|")[::2] for line in lines)
    return {name: states[job] for name, job in jobs.items() if job in states}


def cancel(folder: SweepFolder) -> int:
    """Cancel the jobs of a sweep that are in the queue; returns how many."""
    states = queued(folder)
    jobs = [job for name, job in submitted(folder).items() if name in states]
    for first in range(0, len(jobs), 100):
        _slurm("scancel", *jobs[first : first + 100])
    return len(jobs)


def _slurm(*words: str) -> str:
    """The output of one of Slurm's commands."""
    try:
        process = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True)
    except FileNotFoundError as error:
        raise UsageError(
            f"there is no Slurm here ({words[0]} is not found); use {argument('on', 'local')}"
        ) from error
    except subprocess.SubprocessError as error:
        cause = getattr(error, "stderr", "") or str(error)
        raise RunError(f"{words[0]} failed: {' '.join(str(cause).split())}") from error
    return process.stdout
