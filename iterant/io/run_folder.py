"""The folder of a training run: everything needed to watch it, resume it and use what it learnt.

    >>> run = RunFolder.create("runs/m0", {"task": "mazes", "recipe": {...}, "net": {...}})
    >>> with run.lock():
    ...     run.set_status("running", step=0, steps=40_000)
    ...     run.log({"step": 100, "loss": 0.3})
    ...     run.save("last", {"net.head": tensor}, {"step": 100})

    config.json       what was asked for; written last, so a folder that has one is a whole run
    environment.json  code version, libraries and machine at the start
    status.json       created, running, finished, stopped or failed; step; best figures
    metrics.jsonl     a record a line
    checkpoints/      sets of tensors: last, best, averaged
    lock              held while a process writes

However the writer ends, the folder stays readable and the last saved checkpoint loads.

The runs under a folder, at a glance, broken ones included.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from iterant.errors import RunError, UsageError
from iterant.formatting import counted
from iterant.io import lock
from iterant.io.checkpoint import FORMAT, index_path, load_tensors, save_tensors
from iterant.io.files import (
    PathLike,
    Record,
    append_line,
    check_writable_folder,
    explain_os_error,
    make_folder,
    quoted,
    read_json,
    read_lines,
    write_json,
    write_lines,
)
from iterant.io.lock import Lock
from iterant.io.results import environment

if TYPE_CHECKING:
    from torch import Tensor


CONFIG, ENVIRONMENT, STATUS, METRICS = (
    "config.json",
    "environment.json",
    "status.json",
    "metrics.jsonl",
)
CHECKPOINTS = "checkpoints"

_PARTS = {ENVIRONMENT, STATUS, METRICS, CHECKPOINTS, lock.FILE}

STATES = ("created", "running", "finished", "stopped", "failed")
"""What a status says; `RunFolder.state` adds "interrupted": running, but nobody holds the lock."""


@dataclass(frozen=True)
class Status:
    """How far a run is, and how well it does."""

    state: str = "created"
    reason: str | None = None
    """Why it stopped or failed."""
    step: int = 0
    steps: int | None = None
    """How many steps there will be."""
    best: Mapping[str, Any] = field(default_factory=dict)
    """The best figures so far, by name."""
    updated: str = ""
    """When this was written: UTC, ISO 8601."""


class RunFolder:
    """A run on disk; made by `create`, found again by `open`."""

    def __init__(self, path: Path, config: dict[str, Any]) -> None:
        """For `create` and `open` to call."""
        self.path = path
        self.config = config

    def __fspath__(self) -> str:
        """Where it lies: a run can be given wherever a path can, such as ``iterant.load(run)``."""
        return os.fspath(self.path)

    def __repr__(self) -> str:
        """Where it lies and how far it is, in one line."""
        status = self.status
        done = f"{status.step:,} of {counted(status.steps or status.step, 'update')}"
        return f"RunFolder({quoted(self.path)}: {self.state}, {done})"

    @staticmethod
    def check_new(path: PathLike) -> None:
        """Refuse a folder that no run can begin in: asked before its problems are made."""
        if check_writable_folder(path).exists():
            _refuse_taken(Path(path))

    @classmethod
    def create(cls, path: PathLike, config: Mapping[str, Any]) -> RunFolder:
        """Begin a run in a new or empty folder; ``config`` is what JSON can hold."""
        folder = make_folder(path)
        _refuse_taken(folder)
        with Lock(folder, tidy=(folder,)):
            _refuse_taken(folder)  # another process may have been quicker
            make_folder(folder / CHECKPOINTS)
            write_lines(folder / METRICS, [])
            write_json(folder / ENVIRONMENT, environment(), checksummed=True, nan_to_null=True)
            _write_status(folder, Status())
            write_json(folder / CONFIG, {"format": FORMAT, **config}, checksummed=True)
        return cls.open(folder)

    @classmethod
    def open(cls, path: PathLike) -> RunFolder:
        """The run in a folder, or one line that says what is missing or damaged."""
        folder = Path(path)
        if not folder.is_dir():
            what = "is not a folder" if folder.exists() else "does not exist"
            raise RunError(
                f"run folder {quoted(folder)} {what}; see the runs there are: iterant runs"
            )
        if not (folder / CONFIG).exists():
            raise RunError(
                f"{quoted(folder)} holds no run ({CONFIG} is missing); "
                "give the folder that was --out when training"
            )
        missing = [n for n in (ENVIRONMENT, STATUS, METRICS) if not (folder / n).exists()]
        if missing:
            raise RunError(
                f"{quoted(folder)} is not a whole run folder: {', '.join(missing)} is missing; "
                "restore it from a copy"
            )
        config = read_json(folder / CONFIG, checksummed=True)
        if config.get("format") != FORMAT:
            raise RunError(
                f"{quoted(folder / CONFIG)} has format {config.get('format')!r}, and this version "
                f"of iterant reads {FORMAT}; use the version that wrote it"
            )
        run = cls(folder, config)
        _ = run.environment, run.status
        return run

    @property
    def environment(self) -> dict[str, Any]:
        """Where the run began: see `iterant.io.results`."""
        found: dict[str, Any] = read_json(self.path / ENVIRONMENT, checksummed=True)
        return found

    @property
    def status(self) -> Status:
        """What the run last said about itself, read anew each time."""
        path = self.path / STATUS
        try:
            return Status(**read_json(path, checksummed=True))
        except TypeError:
            raise RunError(f"{quoted(path)} is of another version of iterant; use that") from None

    @property
    def state(self) -> str:
        """The status in a word, "interrupted" where the process behind "running" is gone."""
        if self.status.state == "running" and lock.lock_holder(self.path) is None:
            said = self.status.state  # again: it may have finished between the two looks
            return "interrupted" if said == "running" else said
        return self.status.state

    def _repr_html_(self) -> str:
        """What a notebook shows: where, how far, and the best that validation saw."""
        status, best = self.status, self.status.best.get("validation")
        said = [self.state, *([status.reason] if status.reason else [])]
        said.append(f"{status.step:,} of {counted(status.steps or status.step, 'update')}")
        said += [] if best is None else [f"{best:.1%} on validation at best"]
        return f"<b>{escape(quoted(self.path))}</b>: {escape(', '.join(said))}"

    def set_status(
        self,
        state: str,
        *,
        reason: str | None = None,
        step: int | None = None,
        steps: int | None = None,
        best: Mapping[str, Any] | None = None,
    ) -> None:
        """Say how the run is; what is not given stays as it was, but a reason does not."""
        if state not in STATES:
            raise UsageError(f"unknown state {state!r}; choose one of: {', '.join(STATES)}")
        old = self.status
        new = Status(
            state=state,
            reason=reason,
            step=old.step if step is None else step,
            steps=old.steps if steps is None else steps,
            best=old.best if best is None else best,
        )
        _write_status(self.path, new)

    def lock(self) -> Lock:
        """The right to write here: ``with run.lock(): ...``; a second process is refused."""
        return Lock(self.path, tidy=(self.path, self.path / CHECKPOINTS))

    def log(self, record: Mapping[str, Any]) -> None:
        """Add a record to the metrics; NaN and infinities become null."""
        append_line(self.path / METRICS, record)

    def metrics(self) -> list[Record]:
        """All records so far, a torn last line aside."""
        return read_lines(self.path / METRICS)

    def rewind_metrics(self, step: int) -> int:
        """Drop records whose "step" lies past ``step``, as a resumed run will write them again.

        Records without a step stay. Returns how many were dropped.
        """
        records = self.metrics()
        kept = [record for record in records if record.get("step", step) <= step]
        write_lines(self.path / METRICS, kept)
        return len(records) - len(kept)

    def save(
        self,
        name: str,
        tensors: Mapping[str, Tensor],
        metadata: Mapping[str, Any] | None = None,
        shard_mb: float | None = None,
    ) -> list[Path]:
        """Replace the checkpoint of that name; the network's tensors are named ``net.…``."""
        path = self._checkpoint(name)
        make_folder(path.parent)
        return save_tensors(path, tensors, metadata, shard_mb)

    def load(self, name: str, prefix: str = "") -> tuple[dict[str, Tensor], dict[str, Any]]:
        """The tensors and metadata of a checkpoint, verified; see `load_tensors`."""
        try:
            return load_tensors(self._checkpoint(name), prefix)
        except RunError as error:
            others = ", ".join(other for other in self.checkpoints() if other != name)
            hint = f"; this run also has: {others}" if others else ""
            raise RunError(f"checkpoint {name!r}: {error}{hint}") from error

    def has(self, name: str) -> bool:
        """Whether a checkpoint of that name was saved."""
        return index_path(self._checkpoint(name)).exists()

    def checkpoints(self) -> list[str]:
        """The names of the checkpoints there are."""
        try:
            return sorted(path.stem for path in (self.path / CHECKPOINTS).glob("[!.]*.json"))
        except OSError as error:
            raise explain_os_error(error, "read", self.path / CHECKPOINTS) from error

    def _checkpoint(self, name: str) -> Path:
        if not re.fullmatch(r"[A-Za-z0-9][\w-]*", name):
            raise UsageError(f"{name!r} cannot name a checkpoint; use letters, digits, - and _")
        return self.path / CHECKPOINTS / name


def _refuse_taken(folder: Path) -> None:
    try:
        found = {entry.name for entry in folder.iterdir()}
    except OSError as error:
        raise explain_os_error(error, "read", folder) from error
    if CONFIG in found:
        raise RunError(
            f"{quoted(folder)} holds a run already; go on with it: --resume {folder}, "
            "or choose another --out"
        )
    # Parts without a config are what a process left that was killed while it created the run.
    foreign = sorted(name for name in found - _PARTS if not re.fullmatch(r"\..*\.tmp", name))
    if foreign:
        raise RunError(
            f"{quoted(folder)} is not empty (it has {foreign[0]!r}) and is no run; "
            "choose another --out"
        )


def _write_status(folder: Path, status: Status) -> None:
    now = datetime.now(UTC).isoformat(timespec="seconds")
    write_json(
        folder / STATUS, asdict(replace(status, updated=now)), checksummed=True, nan_to_null=True
    )


_DEPTH = 4

_SIGNS = {ENVIRONMENT, STATUS, METRICS, CHECKPOINTS}
"""A folder with any of these is, or was, a run; a weights folder has none of them."""


@dataclass(frozen=True)
class RunSummary:
    """What `iterant runs` shows of a run."""

    path: Path
    state: str
    """created, running, interrupted, finished, stopped, failed; or unreadable"""
    reason: str | None = None
    """Why it stopped, failed or cannot be read."""
    task: str = ""
    recipe: str = ""
    seed: int | None = None
    step: int = 0
    steps: int | None = None
    best: Mapping[str, Any] = field(default_factory=dict)
    age_seconds: float | None = None
    """Time since the run last said something."""


def list_runs(root: PathLike) -> list[RunSummary]:
    """All runs at and below ``root``, by path; one that cannot be read says why."""
    root = Path(root)
    if not root.is_dir():
        raise RunError(
            f"there is no folder {quoted(root)}; train a run first: iterant train --help"
        )
    return [summary(path) for path in sorted(_run_folders(root, _DEPTH))]


def _run_folders(folder: Path, depth: int) -> Iterator[Path]:
    try:
        with os.scandir(folder) as entries:
            found = {entry.name: entry.is_dir(follow_symlinks=False) for entry in entries}
    except OSError as error:
        if depth == _DEPTH:
            raise explain_os_error(error, "read", folder) from error
        return  # a folder that nobody may look into is not known to hold a run
    if _SIGNS & found.keys():
        yield folder
    elif depth:
        for name, is_folder in found.items():
            if is_folder and not name.startswith("."):
                yield from _run_folders(folder / name, depth - 1)


def summary(path: PathLike) -> RunSummary:
    """One run at a glance; never fails."""
    path = Path(path)
    try:
        run = RunFolder.open(path)
        status, state = run.status, run.state
    except RunError as error:
        return RunSummary(path, "unreadable", str(error))
    config = run.config
    recipe = config.get("recipe")
    seed = config.get("seed", recipe.get("seed") if isinstance(recipe, dict) else None)
    return RunSummary(
        path=path,
        state=state,
        reason=status.reason,
        task=_name(config.get("task")),
        recipe=_name(recipe),
        seed=seed if isinstance(seed, int) else None,
        step=status.step,
        steps=status.steps,
        best=status.best,
        age_seconds=_age(status.updated),
    )


def _name(value: Any) -> str:
    """A task or a recipe is written as its name, or as an object that has one."""
    if isinstance(value, dict):
        value = value.get("name")
    return value if isinstance(value, str) else ""


def _age(updated: str) -> float | None:
    try:
        return (datetime.now(UTC) - datetime.fromisoformat(updated)).total_seconds()
    except (TypeError, ValueError):
        return None
