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
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from iterant.errors import RunError, UsageError, argument
from iterant.formatting import counted
from iterant.io.checkpoint import (
    CHECKPOINTS,
    CONFIG,
    FORMAT,
    check_format,
    checkpoint_names,
    load_tensors,
    save_tensors,
)
from iterant.io.files import (
    LOCK,
    PathLike,
    Record,
    append_line,
    check_no_link,
    check_no_other_files,
    check_writable_folder,
    lock_folder,
    lock_holder,
    make_folder,
    make_subfolder,
    quoted,
    read_json,
    read_lines,
    write_json,
    write_lines,
)
from iterant.io.results import environment

if TYPE_CHECKING:
    from torch import Tensor

ENVIRONMENT, STATUS, METRICS = "environment.json", "status.json", "metrics.jsonl"

_PARTS = {ENVIRONMENT, STATUS, METRICS, CHECKPOINTS}
"""A folder with any of these is a run, maybe an incomplete one; a weights folder has none."""

_DEPTH = 4
"""How many levels below a folder `list_runs` searches."""


@dataclass(frozen=True)
class Status:
    """The progress of a run."""

    state: str = "created"
    """created, running, finished, stopped or failed"""
    reason: str | None = None
    """Why it stopped or failed."""
    step: int = 0
    steps: int | None = None
    """The planned number of steps."""
    best: Mapping[str, Any] = field(default_factory=dict)
    """The best figures so far, by name."""
    updated: str = ""
    """The time of writing: UTC, ISO 8601."""


_STATUS_TYPES: dict[str, Any] = {"state": str, "reason": str | None, "step": int,
                                 "steps": int | None, "best": dict, "updated": str}  # fmt: skip


@dataclass(frozen=True, repr=False, eq=False)
class RunFolder:
    """A run on disk; see `create` and `open`."""

    path: Path
    config: dict[str, Any]

    def __fspath__(self) -> str:
        """The path, so that a run can be given in place of one: ``iterant.load(run)``."""
        return os.fspath(self.path)

    def __repr__(self) -> str:
        status = self.status
        progress = f"{status.step:,} of {counted(status.steps or status.step, 'step')}"
        return f"RunFolder({quoted(self.path)}: {self.state}, {progress})"

    @staticmethod
    def check_new(path: PathLike) -> None:
        """Check, before preparing data, that a run can be created in this folder."""
        folder = check_writable_folder(path)
        if (folder / CONFIG).exists():
            raise RunError(
                f"{quoted(folder)} holds a run already; continue it: "
                f"{argument('resume', folder)}, or choose another {argument('out')}"
            )
        # A process killed while creating a run leaves some parts without a config: start over.
        check_no_other_files(folder, _PARTS | {LOCK}, "run")

    @classmethod
    def create(cls, path: PathLike, config: Mapping[str, Any]) -> RunFolder:
        """Create a run in a new or empty folder; ``config`` is a JSON object."""
        cls.check_new(path)
        folder = make_folder(path)
        with lock_folder(folder):
            cls.check_new(folder)  # again: another process may have been faster
            make_subfolder(folder / CHECKPOINTS)
            write_lines(folder / METRICS, [])
            write_json(folder / ENVIRONMENT, environment(), checksummed=True, nan_to_null=True)
            _write_status(folder, Status())
            write_json(folder / CONFIG, {"format": FORMAT, **config}, checksummed=True)
        return cls.open(folder)

    @classmethod
    def open(cls, path: PathLike) -> RunFolder:
        """Open the run in a folder, or raise an error that names what is missing or damaged."""
        folder = Path(path)
        for name in (CONFIG, ENVIRONMENT, STATUS, METRICS):
            if not (folder / name).exists():
                raise RunError(
                    f"{quoted(folder)} does not exist or holds no run ({name} is missing); "
                    f"give the folder that was {argument('out')} when training: iterant runs "
                    "lists them"
                )
        check_no_link(folder / CHECKPOINTS)
        config = read_json(folder / CONFIG, checksummed=True)
        check_format(config, folder / CONFIG)
        run = cls(folder, config)
        _ = run.environment, run.status  # report damage now
        return run

    @property
    def environment(self) -> dict[str, Any]:
        """The provenance at the start: see `iterant.io.results.environment`."""
        return dict(read_json(self.path / ENVIRONMENT, checksummed=True))

    @property
    def status(self) -> Status:
        """The content of status.json, read anew each time."""
        path = self.path / STATUS
        content = read_json(path, checksummed=True)
        valid = all(isinstance(content[key], _STATUS_TYPES.get(key, ())) for key in content)
        best = content.get("best", {}).values() if valid else ()
        if not valid or not all(isinstance(figure, int | float | None) for figure in best):
            raise RunError(f"{quoted(path)} is of another version of iterant; use that")
        return Status(**content)

    @property
    def state(self) -> str:
        """The state of `status`, or "interrupted" if the process of a running run is gone."""
        state = self.status.state
        if state == "running" and lock_holder(self.path) is None:
            state = self.status.state  # again: it may have finished in between
            return "interrupted" if state == "running" else state
        return state

    def set_status(self, state: str, *, reason: str | None = None, **changes: Any) -> None:
        """Write the status; other fields of `Status` keep their values unless they are given."""
        _write_status(self.path, replace(self.status, state=state, reason=reason, **changes))

    def lock(self) -> AbstractContextManager[None]:
        """The lock for writing: ``with run.lock(): ...``; a second process is refused."""
        return lock_folder(self.path)

    def log(self, record: Mapping[str, Any]) -> None:
        """Append a record to the metrics; NaN and infinities become null."""
        append_line(self.path / METRICS, record)

    def metrics(self) -> list[Record]:
        """All complete records so far."""
        return read_lines(self.path / METRICS)

    def rewind_metrics(self, step: int) -> None:
        """Remove records after ``step``: a resumed run writes them again."""
        records = [record for record in self.metrics() if record.get("step", step) <= step]
        write_lines(self.path / METRICS, records)

    def save(
        self, name: str, tensors: Mapping[str, Tensor], metadata: Mapping[str, Any] | None = None
    ) -> None:
        """Replace the checkpoint of this name; the network's tensors are named ``net.…``."""
        save_tensors(make_subfolder(self.path / CHECKPOINTS) / name, tensors, metadata)

    def load(self, name: str, prefix: str = "") -> tuple[dict[str, Tensor], dict[str, Any]]:
        """The tensors and metadata of a checkpoint, verified; see `load_tensors`."""
        return load_tensors(self.path / CHECKPOINTS / name, prefix)

    def has(self, name: str) -> bool:
        return name in self.checkpoints()

    def checkpoints(self) -> list[str]:
        return checkpoint_names(self.path)


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
    config: Mapping[str, Any] = field(default_factory=dict)
    status: Status = field(default_factory=Status)
    age_seconds: float | None = None
    """Time since the last status."""


def free_folder(name: str) -> Path:
    """``runs/NAME`` for a new run or its seeds; ``runs/NAME-2`` and so on if that exists."""
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise UsageError(
            f"several processes write into one folder; name it: {argument('out', 'DIR')}"
        )
    folder, number = Path("runs") / name, 1
    while folder.exists() or any(folder.parent.glob(f"{folder.name}-s[0-9]*")):
        number += 1
        folder = Path("runs") / f"{name}-{number}"
    return folder


def list_runs(root: PathLike) -> list[RunSummary]:
    """All runs at and below ``root``, sorted by path; one that cannot be read has the reason."""
    root = Path(root)
    if not root.is_dir():
        raise RunError(
            f"there is no folder {quoted(root)}; train a run first: iterant train --help"
        )
    runs = []
    for name, folders, files in os.walk(root):
        folder = Path(name)
        is_run = bool(_PARTS & {*folders, *files})
        if is_run:
            runs.append(folder)
        too_deep = len(folder.relative_to(root).parts) == _DEPTH
        folders[:] = [] if is_run or too_deep else [n for n in folders if not n.startswith(".")]
    return [_summary(path) for path in sorted(runs)]


def _summary(path: Path) -> RunSummary:
    try:
        run = RunFolder.open(path)
        status = run.status
        age = (datetime.now(UTC) - datetime.fromisoformat(status.updated)).total_seconds()
        return RunSummary(path, run.state, status.reason, run.config, status, age)
    except RunError as error:
        return RunSummary(path, "unreadable", str(error))
    except (TypeError, ValueError):  # a time that is none
        return RunSummary(path, "unreadable", f"{quoted(path)} is of another version of iterant")
