"""Many runs: seeds × widths × α × recipes, here or on a cluster, from one file.

    >>> plan = planned("widths", task="prefix-sums", seeds="0-4", grid={"width": [32, 64]})
    >>> sweep(plan, out="runs/widths").counts
    {'done': 10, 'running': 0, 'waiting': 0, 'failed': 0, 'left': 0}

    points.py     settings multiplied out, and refused where no run could be made of them
    plan.py       the runs and tests of a sweep, from a TOML file or from Python
    folder.py     a sweep on disk: plain files, atomic, locked
    work.py       what one process does: train a run or go on with it, and test it
    minding.py    start that process, and once more if it fails
    local.py      as many of them as this machine holds
    slurm.py      job arrays through submitit
    state.py      done, running, failed with the last line of the error, left
    collect.py    the result file and its pictures
    start.py      sweep() and stop()

We schedule nothing: here a run starts when another ends, on a cluster Slurm decides.
"""

from iterant.runner.folder import RunState, Survey, SweepFolder, survey
from iterant.runner.plan import Exam, Plan, PlannedRun, planned, read_plan
from iterant.runner.slurm import Cluster
from iterant.runner.sweeps import collect, stop, sweep
from iterant.runner.worker import Means

__all__ = [
    "Cluster",
    "Exam",
    "Means",
    "Plan",
    "PlannedRun",
    "RunState",
    "Survey",
    "SweepFolder",
    "collect",
    "planned",
    "read_plan",
    "stop",
    "survey",
    "sweep",
]
