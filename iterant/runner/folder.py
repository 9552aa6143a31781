"""The folder of a sweep: its plan, the run folders, and the outcome and state of each run.

    >>> folder = SweepFolder.prepare("runs/widths", plan)      # new, or extended by new runs
    >>> status(folder).counts
    {'done': 1, 'running': 1, 'waiting': 0, 'failed': 0, 'left': 8}

    sweep.json              the plan, with a checksum; a sweep only ever grows
    runs/NAME/              the run folder that training writes
    work/NAME/lock          held by the process of the run
    work/NAME/log           its output, all attempts one after the other
    work/NAME/record.json   how often it failed and why
    work/NAME/outcome.json  the figures of the trained run; with it, the run is done
    slurm/                  files of submitit: see `iterant.runner.slurm`
    lock                    held by the one process that starts runs
    stop                    asks that process to save its runs and end

Every file is written atomically. A corrupt file affects only its own run, which is then run
again.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from iterant.errors import RunError, argument
from iterant.io import RunFolder, read_json, write_json
from iterant.io.checkpoint import CONFIG
from iterant.io.files import (
    LOCK,
    PathLike,
    check_no_link,
    check_no_other_files,
    lock_folder,
    lock_holder,
    make_folder,
    make_subfolder,
    one_line_errors,
    quoted,
    to_json,
)
from iterant.runner.plan import Plan, PlannedRun
from iterant.training.recipe import current_names

PLAN, SLURM, LOG, STOP = "sweep.json", "slurm", "log", "stop"
_FORMAT = 1

ATTEMPTS = 2
"""How often a run may fail before it is reported as failed."""

STATES = ("done", "running", "waiting", "failed", "left")


@dataclass(frozen=True)
class Failures:
    """How often a run failed so far, and the last line of the last failure."""

    failures: int = 0
    error: str | None = None


class SweepFolder:
    """A sweep on disk, written by `prepare` and read by `open`."""

    def __init__(self, path: Path, plan: Plan) -> None:
        self.path, self.plan = path, plan
        self.planned = {run.name: run for run in plan.runs}

    @classmethod
    def open(cls, path: PathLike) -> SweepFolder:
        folder = Path(path)
        if not (folder / PLAN).exists():
            raise RunError(
                f"{quoted(folder)} holds no sweep ({PLAN} is missing); "
                "give the folder that iterant sweep named"
            )
        plan = read_json(folder / PLAN, checksummed=True)
        try:
            if plan.pop("format") == _FORMAT:
                sweep = cls(folder, Plan.of(plan))
                _check_names(sweep)
                return sweep
        except (KeyError, TypeError):
            pass
        raise RunError(f"{quoted(folder / PLAN)} is of another version of iterant; use that one")

    @classmethod
    def prepare(cls, path: PathLike, plan: Plan) -> SweepFolder:
        """Create the folder or extend its plan, without a lock; `locked` also locks it.

        Runs that exist stay, even if the new plan does not have them. A run whose settings differ
        from those it was started with is an error.
        """
        folder = make_folder(path)
        if (folder / PLAN).exists():
            before = {run.name: run for run in cls.open(folder).plan.runs}
            for run in plan.runs:
                _check_settings(before.get(run.name, run), run)
            runs = {**before, **{run.name: run for run in plan.runs}}
            plan = replace(plan, runs=tuple(runs.values()))
        for part in ("runs", "work"):
            make_subfolder(folder / part)
        write_json(folder / PLAN, {"format": _FORMAT, **plan.described()}, checksummed=True)
        return cls.open(folder)

    @classmethod
    @contextlib.contextmanager
    def locked(cls, path: PathLike, plan: Plan) -> Iterator[SweepFolder]:
        """As `prepare`, locked for the one process that starts runs; failed runs may be retried."""
        target = make_folder(path)
        if not (target / PLAN).exists():
            check_no_other_files(target, {"runs", "work", SLURM, LOCK, STOP}, "sweep")
        with lock_folder(path):
            folder = cls.prepare(path, plan)
            with one_line_errors("remove", folder.path / STOP):  # of an earlier start
                (folder.path / STOP).unlink(missing_ok=True)
            for name in folder.planned:
                if folder.failures(name).failures >= ATTEMPTS:
                    folder.write_failures(name, Failures(0, folder.failures(name).error))
            yield folder

    def is_stopping(self) -> bool:
        """Whether the process that starts runs was asked to stop."""
        return (self.path / STOP).exists()

    def run(self, name: str) -> PlannedRun:
        if name not in self.planned:
            raise RunError(f"{quoted(self.path)} has no run {name!r}; see: iterant sweep status")
        return self.planned[name]

    def run_path(self, name: str) -> Path:
        """The run folder that training writes."""
        parent = self.path.parent if self.plan.sibling_folders else self.path / "runs"
        return self._inside(parent / name)

    def work_path(self, name: str) -> Path:
        """Files of the process of a run."""
        return self._inside(self.path / "work" / name)

    def _inside(self, path: Path) -> Path:
        for part in (path.parent, path):
            if part not in (self.path, self.path.parent):
                check_no_link(part)
        return path

    def work_lock(self, name: str) -> AbstractContextManager[None]:
        """Held by the process that works on a run."""
        return lock_folder(make_folder(self.work_path(name)))

    def worker(self, name: str) -> str | None:
        """The process that works on a run, in words; None: there is none."""
        return lock_holder(self.work_path(name))

    def is_started(self, name: str) -> bool:
        """Whether training has created its folder."""
        return (self.run_path(name) / CONFIG).exists()

    def failures(self, name: str) -> Failures:
        """How often the run failed; a corrupt file counts as none."""
        with contextlib.suppress(RunError, TypeError):
            record = Failures(**read_json(self.work_path(name) / "record.json", checksummed=True))
            if isinstance(record.failures, int) and isinstance(record.error, str | None):
                return record
        return Failures()

    def write_failures(self, name: str, failures: Failures) -> None:
        path = make_folder(self.work_path(name)) / "record.json"
        write_json(path, asdict(failures), checksummed=True)

    def outcome(self, name: str, *, partial: bool = False) -> dict[str, Any] | None:
        """The figures of a run; None: not done, or without ``partial`` a test is missing."""
        tests = {test.key for test in self.plan.tests_of(self.run(name))}
        try:
            outcome = read_json(self.work_path(name) / "outcome.json", checksummed=True)
            complete = tests <= outcome["tests"].keys()
        except (RunError, AttributeError, KeyError):
            return None
        return outcome if complete or partial else None

    def write_outcome(self, name: str, outcome: Mapping[str, Any]) -> None:
        """Write the figures: from now on the run is done."""
        path = self.work_path(name) / "outcome.json"
        write_json(path, dict(outcome), checksummed=True, nan_to_null=True)


_LONGEST_NAME = 200
"""Of a run or a sweep: file systems allow 255 bytes."""


def _check_names(sweep: SweepFolder) -> None:
    """Check the names in sweep.json, which may come from someone else: they become folders."""
    own, plain = sweep.path.absolute().name, r"[A-Za-z0-9][A-Za-z0-9._+=-]*"
    form = re.escape(own) + "-s[0-9]+" if sweep.plan.sibling_folders else plain
    names = [("[^/]+", sweep.plan.name), *((form, name) for name in sweep.planned)]
    for pattern, name in names:
        known = isinstance(name, str) and name.isprintable() and len(name) <= _LONGEST_NAME
        if not known or not re.fullmatch(pattern, name):
            raise RunError(
                f"{quoted(sweep.path / PLAN)} has a sweep or run of the name {str(name)[:100]!r}, "
                "which iterant does not write; do not use it unless you know where it comes from"
            )


def _check_settings(before: PlannedRun, now: PlannedRun) -> None:
    """Raise an error if a run would be resumed with other settings than it was started with."""
    old, new = (
        {"task": run.task, "recipe": run.recipe, "seed": run.seed, **current_names(run.changes)}
        for run in (before, now)
    )
    old, new = to_json(old), to_json(new)
    for key in {**old, **new}:
        if old.get(key) != new.get(key):
            raise RunError(
                f"run {now.name} was started with {key} = {old.get(key)!r}, and the plan now has "
                f"{new.get(key)!r}; choose another {argument('out')}, or put it into the grid"
            )


@dataclass(frozen=True)
class RunState:
    """The state of one run of a sweep."""

    name: str
    state: str
    """One of `STATES`; waiting: in a cluster's queue"""
    error: str | None = None
    """The last line of its last failure, also of one that was retried"""
    step: int = 0
    steps: int | None = None
    seconds: float | None = None
    """Training time, once done"""
    seconds_left: float | None = None
    """Estimated from its latest speed"""


@dataclass(frozen=True)
class SweepStatus:
    """The states of all runs of a sweep."""

    name: str
    runs: tuple[RunState, ...]
    seconds_left: float | None
    """Until the last run is done; None: not known yet"""

    @property
    def counts(self) -> dict[str, int]:
        return {state: len(self.of(state)) for state in STATES}

    def of(self, *states: str) -> tuple[RunState, ...]:
        return tuple(run for run in self.runs if run.state in states)

    def described(self) -> dict[str, Any]:
        return {"name": self.name, "counts": self.counts, "seconds left": self.seconds_left,
                "runs": [asdict(run) for run in self.runs]}  # fmt: skip


def status(folder: SweepFolder, queued: Mapping[str, str] | None = None) -> SweepStatus:
    """The state of every run; ``queued``: states of jobs in a cluster's queue."""
    runs = tuple(_state(folder, name, (queued or {}).get(name)) for name in folder.planned)
    left = [run for run in runs if run.state not in ("done", "failed")]
    durations = [run.seconds for run in runs if run.seconds is not None]
    if not left or not durations:
        return SweepStatus(folder.plan.name, runs, None if left else 0.0)
    mean = sum(durations) / len(durations)
    remaining = [mean if run.seconds_left is None else run.seconds_left for run in left]
    parallel = max(1, sum(run.state == "running" for run in runs))
    return SweepStatus(folder.plan.name, runs, max(max(remaining), sum(remaining) / parallel))


def _state(folder: SweepFolder, name: str, queued: str | None) -> RunState:
    """The state of one run; an unreadable file is reported in it, not raised."""
    outcome, failures = folder.outcome(name), folder.failures(name)
    if outcome is not None:
        steps = outcome.get("steps") or 0
        return RunState(name, "done", failures.error, steps, steps, outcome.get("seconds"))
    if folder.worker(name) is not None or queued == "RUNNING":
        state = "running"
    elif queued is not None:
        state = "waiting"
    else:
        state = "failed" if failures.failures >= ATTEMPTS else "left"
    if not folder.is_started(name):
        return RunState(name, state, failures.error)
    try:
        run = RunFolder.open(folder.run_path(name))
        steps, metrics = run.status.steps, run.metrics()
        step = max([run.status.step, *(line["step"] for line in metrics[-1:])])
        # The second key is that of earlier versions.
        speeds = [line.get("steps_per_second") or line["updates_per_second"]
                  for line in metrics if line.get("kind") == "train"]  # fmt: skip
    except (RunError, KeyError, TypeError) as error:
        return RunState(name, state, failures.error or str(error))
    left = (steps - step) / speeds[-1] if steps and speeds and speeds[-1] else None
    return RunState(name, state, failures.error, step, steps, seconds_left=left)
