"""Many runs: seeds × widths × α × recipes, here or on a cluster, from one file.

    plan.py       the runs and tests of a sweep, from a TOML file or from Python
    folder.py     a sweep on disk, and the state of its runs: done, running, failed, left
    worker.py     the process of one run, and the pool of such processes on this machine
    slurm.py      job arrays through submitit
    sweeps.py     sweep(), train_seeds(), stop()
    results.py    means over seeds as a table, a picture and a result file

``iterant reproduce`` builds a plan too, and runs it in the same pool.
"""

from iterant.runner.folder import SweepFolder, SweepStatus, status
from iterant.runner.plan import EvaluationSpec, Plan, PlannedRun, parse_seeds, planned, read_plan
from iterant.runner.results import collect, save_picture, table
from iterant.runner.slurm import Cluster
from iterant.runner.sweeps import stop, sweep, train_seeds
from iterant.runner.worker import Launch

__all__ = [
    "Cluster", "EvaluationSpec", "Launch", "Plan", "PlannedRun", "SweepFolder", "SweepStatus",
    "collect", "parse_seeds", "planned", "read_plan", "save_picture", "status", "stop", "sweep",
    "table", "train_seeds",
]  # fmt: skip
