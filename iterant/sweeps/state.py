"""Where a sweep stands: done, running, waiting, failed with the last line of the error, left.

>>> survey(SweepFolder.open("runs/widths")).counts
{'done': 4, 'running': 2, 'waiting': 0, 'failed': 1, 'left': 3}
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from iterant.errors import RunError
from iterant.runs import RunFolder
from iterant.sweeps.folder import SweepFolder

STATES = ("done", "running", "waiting", "failed", "left")


@dataclass(frozen=True)
class RunState:
    """Where one run of a sweep stands."""

    name: str
    state: str
    """One of `STATES`; waiting: in a cluster's queue"""
    error: str | None = None
    """The last line of its last failure, also of one that was retried"""
    step: int = 0
    steps: int | None = None
    seconds: float | None = None
    """What it took, once done"""
    seconds_left: float | None = None
    """What a begun run still needs at its last pace"""


@dataclass(frozen=True)
class Survey:
    """Where a sweep stands."""

    name: str
    runs: tuple[RunState, ...]
    seconds_left: float | None
    """Until the last run is done, as long as so many go side by side; None: nobody knows yet"""

    @property
    def counts(self) -> dict[str, int]:
        """How many runs are in each state."""
        return {state: len(self.of(state)) for state in STATES}

    def of(self, state: str) -> tuple[RunState, ...]:
        """The runs in a state."""
        return tuple(run for run in self.runs if run.state == state)

    @property
    def ended(self) -> bool:
        """Whether every run is done or has failed for good."""
        return all(run.state in ("done", "failed") for run in self.runs)

    def described(self) -> dict[str, Any]:
        """Everything, for JSON."""
        return {"name": self.name, "counts": self.counts, "seconds left": self.seconds_left,
                "runs": [asdict(run) for run in self.runs]}  # fmt: skip


def survey(
    folder: SweepFolder, queued: Mapping[str, str] | None = None, at_once: int | None = None
) -> Survey:
    """Look at every run; ``queued``: what a cluster says of the runs in its queue."""
    runs = tuple(_state(folder, name, (queued or {}).get(name)) for name in folder.planned)
    return Survey(folder.plan.name, runs, _time_left(runs, at_once))


def _state(folder: SweepFolder, name: str, queued: str | None) -> RunState:
    """The state of one run; what cannot be read is told, not raised."""
    outcome, record = folder.outcome(name), folder.record(name)
    if outcome is not None:
        steps = outcome.get("steps") or 0
        return RunState(name, "done", record.error, steps, steps, outcome.get("seconds"))
    step, steps, left, unreadable = _progress(folder, name)
    if folder.worker(name) is not None or queued == "RUNNING":
        state = "running"
    elif queued is not None:
        state = "waiting"
    else:
        state = "failed" if record.given_up else "left"
    return RunState(name, state, record.error or unreadable, step, steps, None, left)


def _progress(folder: SweepFolder, name: str) -> tuple[int, int | None, float | None, str | None]:
    """Updates done, of how many, seconds left at the last pace, and what hinders reading it."""
    if not folder.begun(name):
        return 0, None, None, None
    try:
        run = RunFolder.open(folder.run_path(name))
        status = run.status
        paces = [
            line["updates_per_second"] for line in run.metrics() if line.get("kind") == "train"
        ]
        reached = max([status.step, *(line["step"] for line in run.metrics()[-1:])])
    except (RunError, KeyError, TypeError) as error:
        return 0, None, None, str(error)
    pace = paces[-1] if paces else None
    left = (status.steps - reached) / pace if status.steps and pace else None
    return reached, status.steps, left, None


def _time_left(runs: tuple[RunState, ...], at_once: int | None) -> float | None:
    """Work that is left, shared by as many as run now."""
    open_runs = [run for run in runs if run.state in ("running", "waiting", "left")]
    if not open_runs:
        return 0.0
    known = [run.seconds for run in runs if run.seconds is not None]
    if not known:
        known = [run.seconds_left * run.steps / max(run.steps - run.step, 1)
                 for run in open_runs if run.seconds_left is not None and run.steps]  # fmt: skip
    if not known:
        return None
    typical = sum(known) / len(known)
    needs = [typical if run.seconds_left is None else run.seconds_left for run in open_runs]
    running = sum(run.state == "running" for run in runs)
    return max(max(needs), sum(needs) / (at_once or max(1, running)))
