"""Many runs: seeds × widths × α × recipes, here or on a cluster, from one file.

    >>> plan = planned("widths", task="prefix-sums", seeds="0-4", grid={"width": [32, 64]})
    >>> sweep(plan, out="runs/widths").counts
    {'done': 10, 'running': 0, 'waiting': 0, 'failed': 0, 'left': 0}

    plan.py       the runs and tests of a sweep, from a TOML file or from Python
    folder.py     a sweep on disk, and where it stands: done, running, failed, left
    worker.py     the process of one run: train, test; how it is started and supervised
    local.py      the pool of processes on this machine, also that of ``iterant reproduce``
    slurm.py      job arrays through submitit
    sweeps.py     sweep(), stop(), and the result file with its pictures

There is no scheduler: here a run starts when another ends, on a cluster Slurm decides.
"""

from iterant.runner.folder import RunState, SweepFolder, SweepStatus, status
from iterant.runner.plan import Plan, PlannedRun, TestSpec, planned, read_plan
from iterant.runner.slurm import Cluster
from iterant.runner.sweeps import collect, stop, sweep
from iterant.runner.worker import Launch

__all__ = [
    "Cluster",
    "Launch",
    "Plan",
    "PlannedRun",
    "RunState",
    "SweepFolder",
    "SweepStatus",
    "TestSpec",
    "collect",
    "planned",
    "read_plan",
    "status",
    "stop",
    "sweep",
]
