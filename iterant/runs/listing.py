"""The runs under a folder, at a glance, broken ones included.

>>> for run in list_runs("runs"):
...     print(run.path, run.task, run.state, run.step, run.best)
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from iterant.errors import RunError
from iterant.runs.files import PathLike, explained, shown
from iterant.runs.folder import CHECKPOINTS, ENVIRONMENT, METRICS, STATUS, RunFolder

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
        raise RunError(f"there is no folder {shown(root)}; train a run first: iterant train --help")
    return [summary(path) for path in sorted(_run_folders(root, _DEPTH))]


def _run_folders(folder: Path, depth: int) -> Iterator[Path]:
    try:
        with os.scandir(folder) as entries:
            found = {entry.name: entry.is_dir(follow_symlinks=False) for entry in entries}
    except OSError as error:
        if depth == _DEPTH:
            raise explained(error, "read", folder) from error
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
