"""The folder of a training run, and the list of all runs below a folder.

    >>> run = RunFolder.create("runs/m0", {"task": "mazes", "recipe": {...}, "net": {...}})
    >>> with run.lock():
    ...     run.set_status("running", step=0, steps=40_000)
    ...     run.log({"step": 100, "loss": 0.3})
    ...     run.save("last", {"net.head": tensor}, {"step": 100})

    config.json       the settings; written last, so a folder that has it is complete
    environment.json  code version, libraries and machine at the start
    status.json       created, running, finished, stopped or failed; step; best figures
    metrics.jsonl     one record a line
    checkpoints/      sets of tensors: last, best, averaged
    lock              locked while a process writes

However the writer ends, the folder stays readable and the last saved checkpoint loads.
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
from iterant.io.lock import FILE, Lock, lock_holder
from iterant.io.results import environment

if TYPE_CHECKING:
    from torch import Tensor


CONFIG, ENVIRONMENT, STATUS = "config.json", "environment.json", "status.json"
METRICS, CHECKPOINTS = "metrics.jsonl", "checkpoints"

_PARTS = {ENVIRONMENT, STATUS, METRICS, CHECKPOINTS}
"""A folder with any of these is, or was, a run; a weights folder has none of them."""

STATES = ("created", "running", "finished", "stopped", "failed")
"""States in status.json; `RunFolder.state` adds "interrupted": running, but not locked."""

_DEPTH = 4
"""How many levels below a folder `list_runs` searches."""


@dataclass(frozen=True)
class Status:
    """The progress of a run."""

    state: str = "created"
    reason: str | None = None
    """Why it stopped or failed."""
    step: int = 0
    steps: int | None = None
    """The planned number of steps."""
    best: Mapping[str, Any] = field(default_factory=dict)
    """The best figures so far, by name."""
    updated: str = ""
    """The time of writing: UTC, ISO 8601."""


class RunFolder:
    """A run on disk; see `create` and `open`."""

    def __init__(self, path: Path, config: dict[str, Any]) -> None:
        """Only for `create` and `open`."""
        self.path = path
        self.config = config

    def __fspath__(self) -> str:
        """The path, so that a run can be given in place of one: ``iterant.load(run)``."""
        return os.fspath(self.path)

    def __repr__(self) -> str:
        """Path, state and progress in one line."""
        return f"RunFolder({quoted(self.path)}: {self.state}, {self._progress()})"

    def _repr_html_(self) -> str:
        """Path, state, progress and best validation accuracy, for notebooks."""
        status, best = self.status, self.status.best.get("validation")
        parts = [self.state, *([status.reason] if status.reason else []), self._progress()]
        parts += [] if best is None else [f"{best:.1%} on validation at best"]
        return f"<b>{escape(quoted(self.path))}</b>: {escape(', '.join(parts))}"

    def _progress(self) -> str:
        status = self.status
        return f"{status.step:,} of {counted(status.steps or status.step, 'update')}"

    @staticmethod
    def check_new(path: PathLike) -> None:
        """Check, before preparing data, that a run can be created in this folder."""
        if check_writable_folder(path).exists():
            _check_free(Path(path))

    @classmethod
    def create(cls, path: PathLike, config: Mapping[str, Any]) -> RunFolder:
        """Create a run in a new or empty folder; ``config`` is a JSON object."""
        folder = make_folder(path)
        _check_free(folder)
        with Lock(folder, tidy=(folder,)):
            _check_free(folder)  # again: another process may have been faster
            make_folder(folder / CHECKPOINTS)
            write_lines(folder / METRICS, [])
            write_json(folder / ENVIRONMENT, environment(), checksummed=True, nan_to_null=True)
            _write_status(folder, Status())
            write_json(folder / CONFIG, {"format": FORMAT, **config}, checksummed=True)
        return cls.open(folder)

    @classmethod
    def open(cls, path: PathLike) -> RunFolder:
        """Open the run in a folder, or raise an error that names what is missing or damaged."""
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
        """The provenance at the start: see `iterant.io.results.environment`."""
        return dict(read_json(self.path / ENVIRONMENT, checksummed=True))

    @property
    def status(self) -> Status:
        """The content of status.json, read anew each time."""
        path = self.path / STATUS
        try:
            return Status(**read_json(path, checksummed=True))
        except TypeError:
            raise RunError(f"{quoted(path)} is of another version of iterant; use that") from None

    @property
    def state(self) -> str:
        """The state in a word, "interrupted" if the process of a running run is gone."""
        if self.status.state == "running" and lock_holder(self.path) is None:
            state = self.status.state  # again: it may have finished between the two reads
            return "interrupted" if state == "running" else state
        return self.status.state

    def set_status(
        self,
        state: str,
        *,
        reason: str | None = None,
        step: int | None = None,
        steps: int | None = None,
        best: Mapping[str, Any] | None = None,
    ) -> None:
        """Write the status; step, steps and best keep their values where they are not given."""
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
        """The lock for writing: ``with run.lock(): ...``; a second process is refused."""
        return Lock(self.path, tidy=(self.path, self.path / CHECKPOINTS))

    def log(self, record: Mapping[str, Any]) -> None:
        """Append a record to the metrics; NaN and infinities become null."""
        append_line(self.path / METRICS, record)

    def metrics(self) -> list[Record]:
        """All complete records so far."""
        return read_lines(self.path / METRICS)

    def rewind_metrics(self, step: int) -> int:
        """Remove records after ``step``, which a resumed run writes again; return their number.

        Records without a step stay.
        """
        records = self.metrics()
        earlier = [record for record in records if record.get("step", step) <= step]
        write_lines(self.path / METRICS, earlier)
        return len(records) - len(earlier)

    def save(
        self,
        name: str,
        tensors: Mapping[str, Tensor],
        metadata: Mapping[str, Any] | None = None,
        shard_mb: float | None = None,
    ) -> list[Path]:
        """Replace the checkpoint of this name; the network's tensors are named ``net.…``."""
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
        """Whether there is a checkpoint of this name."""
        return index_path(self._checkpoint(name)).exists()

    def checkpoints(self) -> list[str]:
        """The names of all checkpoints."""
        try:
            return sorted(path.stem for path in (self.path / CHECKPOINTS).glob("[!.]*.json"))
        except OSError as error:
            raise explain_os_error(error, "read", self.path / CHECKPOINTS) from error

    def _checkpoint(self, name: str) -> Path:
        if not re.fullmatch(r"[A-Za-z0-9][\w-]*", name):
            raise UsageError(f"{name!r} cannot name a checkpoint; use letters, digits, - and _")
        return self.path / CHECKPOINTS / name


def _check_free(folder: Path) -> None:
    try:
        names = {entry.name for entry in folder.iterdir()}
    except OSError as error:
        raise explain_os_error(error, "read", folder) from error
    if CONFIG in names:
        raise RunError(
            f"{quoted(folder)} holds a run already; go on with it: --resume {folder}, "
            "or choose another --out"
        )
    # A process killed while creating a run leaves some parts without a config: start over.
    foreign = sorted(n for n in names - _PARTS - {FILE} if not re.fullmatch(r"\..*\.tmp", n))
    if foreign:
        raise RunError(
            f"{quoted(folder)} is not empty (it has {foreign[0]!r}) and is no run; "
            "choose another --out"
        )


def _write_status(folder: Path, status: Status) -> None:
    content = asdict(replace(status, updated=datetime.now(UTC).isoformat(timespec="seconds")))
    write_json(folder / STATUS, content, checksummed=True, nan_to_null=True)


@dataclass(frozen=True)
class RunSummary:
    """A row of `iterant runs`."""

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
    """Time since the last status."""


def list_runs(root: PathLike) -> list[RunSummary]:
    """All runs at and below ``root``, sorted by path; one that cannot be read has the reason."""
    root = Path(root)
    if not root.is_dir():
        raise RunError(
            f"there is no folder {quoted(root)}; train a run first: iterant train --help"
        )
    return [_summary(path) for path in sorted(_run_folders(root, _DEPTH))]


def _run_folders(folder: Path, depth: int) -> Iterator[Path]:
    try:
        with os.scandir(folder) as entries:
            is_folder = {entry.name: entry.is_dir(follow_symlinks=False) for entry in entries}
    except OSError as error:
        if depth == _DEPTH:
            raise explain_os_error(error, "read", folder) from error
        return  # skip subfolders without read permission
    if _PARTS & is_folder.keys():
        yield folder
    elif depth:
        for name in is_folder:
            if is_folder[name] and not name.startswith("."):
                yield from _run_folders(folder / name, depth - 1)


def _summary(path: Path) -> RunSummary:
    try:
        run = RunFolder.open(path)
        status, state = run.status, run.state
    except RunError as error:
        return RunSummary(path, "unreadable", str(error))
    recipe = run.config.get("recipe")
    seed = run.config.get("seed", recipe.get("seed") if isinstance(recipe, dict) else None)
    try:
        updated = datetime.fromisoformat(status.updated)
        age = (datetime.now(UTC) - updated).total_seconds()
    except (TypeError, ValueError):
        age = None
    return RunSummary(
        path=path,
        state=state,
        reason=status.reason,
        task=_name(run.config.get("task")),
        recipe=_name(recipe),
        seed=seed if isinstance(seed, int) else None,
        step=status.step,
        steps=status.steps,
        best=status.best,
        age_seconds=age,
    )


def _name(value: Any) -> str:
    """The name of a task or recipe, which is stored as text or as an object with "name"."""
    if isinstance(value, dict):
        value = value.get("name")
    return value if isinstance(value, str) else ""
