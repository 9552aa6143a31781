"""The folder of a sweep: its plan, the run folders, what became of each run, and where it stands.

    >>> folder = SweepFolder.prepare("runs/widths", plan)      # made, or extended by new runs
    >>> folder.run_path("mazes-quick-width32-s0")              # a run folder like any other
    >>> status(folder).counts
    {'done': 1, 'running': 1, 'waiting': 0, 'failed': 0, 'left': 8}

    sweep.json              the plan, with a checksum; a sweep only ever grows
    runs/NAME/              the run folder that training writes
    work/NAME/lock          held by the process of the run
    work/NAME/log           its output, all attempts one after the other
    work/NAME/record.json   how often it failed and why
    work/NAME/outcome.json  the test scores of the finished run; with it, the run is done
    slurm/                  files of submitit: see `iterant.runner.slurm`
    lock                    held by the one process that starts runs

Every file is written atomically, as in run folders. A damaged file costs no more than its own run,
which is looked at again.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from iterant.errors import RunError
from iterant.io import RunFolder, read_json, write_json
from iterant.io.checkpoint import CONFIG
from iterant.io.files import PathLike, make_folder, quoted
from iterant.io.lock import lock_folder, lock_holder
from iterant.runner.plan import Plan, PlannedRun

PLAN, RUNS, WORK, SLURM = "sweep.json", "runs", "work", "slurm"
LOG, RECORD, OUTCOME = "log", "record.json", "outcome.json"

FORMAT = 1

ATTEMPTS = 2
"""How often a run may fail before it is left alone and reported."""


@dataclass(frozen=True)
class Failures:
    """How often a run failed so far, and why."""

    failures: int = 0
    error: str | None = None
    """The last line of the last failure"""

    @property
    def given_up(self) -> bool:
        """Whether it failed as often as it may."""
        return self.failures >= ATTEMPTS


class SweepFolder:
    """A sweep on disk, made by `prepare` and found again by `open`."""

    def __init__(self, path: Path, plan: Plan) -> None:
        """For `prepare` and `open`."""
        self.path = path
        self.plan = plan
        self.planned = {run.name: run for run in plan.runs}

    @classmethod
    def open(cls, path: PathLike) -> SweepFolder:
        """The sweep in a folder, or one line that says what is missing or damaged."""
        folder = Path(path)
        if not (folder / PLAN).exists():
            raise RunError(
                f"{quoted(folder)} holds no sweep ({PLAN} is missing); "
                "give the folder that iterant sweep named"
            )
        plan = read_json(folder / PLAN, checksummed=True)
        if plan.get("format") != FORMAT:
            raise RunError(
                f"{quoted(folder / PLAN)} has format {plan.get('format')!r}, and this version of "
                f"iterant reads {FORMAT}; use the version that wrote it"
            )
        try:
            return cls(folder, Plan.of(plan))
        except (KeyError, TypeError):
            raise RunError(f"{quoted(folder / PLAN)} is of another version of iterant") from None

    @classmethod
    def prepare(cls, path: PathLike, plan: Plan) -> SweepFolder:
        """The folder with the plan in it; the caller holds its lock.

        Runs that exist stay, even if the new plan does not have them. A run whose settings differ
        from those it was started with is an error.
        """
        folder = make_folder(path)
        if (folder / PLAN).exists():
            plan = _extended(cls.open(folder).plan, plan)
        else:
            refuse_foreign(folder)
        make_folder(folder / RUNS)
        make_folder(folder / WORK)
        write_json(folder / PLAN, {"format": FORMAT, **plan.described()}, checksummed=True)
        return cls.open(folder)

    def lock(self) -> AbstractContextManager[None]:
        """The right to start runs of this sweep."""
        return lock_folder(self.path)

    def run(self, name: str) -> PlannedRun:
        """The planned run of that name."""
        if name not in self.planned:
            raise RunError(f"{quoted(self.path)} has no run {name!r}; see: iterant sweep status")
        return self.planned[name]

    def run_path(self, name: str) -> Path:
        """Where training writes."""
        return self.path / RUNS / name

    def work_path(self, name: str) -> Path:
        """Files of the process of a run."""
        return self.path / WORK / name

    def work_lock(self, name: str) -> AbstractContextManager[None]:
        """The right to work on a run."""
        return lock_folder(make_folder(self.work_path(name)))

    def worker(self, name: str) -> str | None:
        """The process that works on a run, in words; None: there is none."""
        return lock_holder(self.work_path(name))

    def is_started(self, name: str) -> bool:
        """Whether training has made its folder."""
        return (self.run_path(name) / CONFIG).exists()

    def failures(self, name: str) -> Failures:
        """How often the run failed; a damaged file counts as none."""
        try:
            return Failures(**read_json(self.work_path(name) / RECORD, checksummed=True))
        except (RunError, TypeError):
            return Failures()

    def write_failures(self, name: str, failures: Failures) -> None:
        """Remember them."""
        write_json(make_folder(self.work_path(name)) / RECORD, asdict(failures), checksummed=True)

    def outcome(self, name: str) -> dict[str, Any] | None:
        """The scores of the run; None where it is not finished or a test is missing."""
        outcome = self.partial_outcome(name)
        tests = {test.key for test in self.plan.tests_of(self.run(name))}
        return outcome if outcome is not None and tests <= outcome["tests"].keys() else None

    def partial_outcome(self, name: str) -> dict[str, Any] | None:
        """The scores that were written, perhaps with fewer tests than are planned now."""
        try:
            outcome = read_json(self.work_path(name) / OUTCOME, checksummed=True)
        except RunError:
            return None
        return outcome if isinstance(outcome.get("tests"), dict) else None

    def write_outcome(self, name: str, outcome: Mapping[str, Any]) -> None:
        """Write the scores: from now on the run is done."""
        write_json(
            self.work_path(name) / OUTCOME, dict(outcome), checksummed=True, nan_to_null=True
        )


def _extended(old: Plan, new: Plan) -> Plan:
    """Both plans' runs, the tests of the new one."""
    before = {run.name: run for run in old.runs}
    for run in new.runs:
        if run.name in before and _settings(before[run.name]) != _settings(run):
            theirs, ours = _settings(before[run.name]), _settings(run)
            which = next(key for key in {**theirs, **ours} if theirs.get(key) != ours.get(key))
            raise RunError(
                f"run {run.name} was begun with {which} = {theirs.get(which)!r}, and is now asked "
                f"for with {ours.get(which)!r}; choose another --out, or put it into the grid"
            )
    runs = {**before, **{run.name: run for run in new.runs}}
    return Plan(new.name, tuple(runs.values()), new.tests, new.data)


def _settings(run: PlannedRun) -> dict[str, Any]:
    """All settings of a run, as JSON gives them back."""
    settings = {"task": run.task, "recipe": run.recipe, "seed": run.seed, **run.changes}
    return {
        key: list(value) if isinstance(value, tuple) else value for key, value in settings.items()
    }


def refuse_foreign(folder: Path) -> None:
    """Refuse a folder that has something else than a sweep in it."""
    ours = {PLAN, RUNS, WORK, SLURM, "lock"}
    names = sorted(entry.name for entry in folder.iterdir())
    foreign = [name for name in names if name not in ours and not name.startswith(".")]
    if foreign:
        raise RunError(
            f"{quoted(folder)} is not empty (it has {foreign[0]!r}) and is no sweep; "
            "choose another --out"
        )


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
    """That it took, once done"""
    seconds_left: float | None = None
    """At its last pace"""


@dataclass(frozen=True)
class SweepStatus:
    """Where a sweep stands."""

    name: str
    runs: tuple[RunState, ...]
    seconds_left: float | None
    """Until the last run is done; None: not known yet"""

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


def status(
    folder: SweepFolder, queued: Mapping[str, str] | None = None, at_once: int | None = None
) -> SweepStatus:
    """The state of every run; ``queued``: states of jobs in a cluster's queue."""
    runs = tuple(_state(folder, name, (queued or {}).get(name)) for name in folder.planned)
    return SweepStatus(folder.plan.name, runs, _time_left(runs, at_once))


def _state(folder: SweepFolder, name: str, queued: str | None) -> RunState:
    """The state of one run; an unreadable file is reported in it, not raised."""
    outcome, failures = folder.outcome(name), folder.failures(name)
    if outcome is not None:
        steps = outcome.get("steps") or 0
        return RunState(name, "done", failures.error, steps, steps, outcome.get("seconds"))
    step, steps, left, unreadable = _progress(folder, name)
    if folder.worker(name) is not None or queued == "RUNNING":
        state = "running"
    elif queued is not None:
        state = "waiting"
    else:
        state = "failed" if failures.given_up else "left"
    return RunState(name, state, failures.error or unreadable, step, steps, None, left)


def _progress(folder: SweepFolder, name: str) -> tuple[int, int | None, float | None, str | None]:
    """Steps done, steps in all, seconds left at the last pace, and why it cannot be read."""
    if not folder.is_started(name):
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
    """The seconds of work that is left, divided by the runs side by side."""
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
