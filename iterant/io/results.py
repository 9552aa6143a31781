"""Result files: figures with their provenance (code version, libraries, machine, command).

    >>> write_result("table-1", {"accuracy": 0.97}, seed=0)
    >>> read_result("results/table-1.json")["figures"]

NaN and infinities are written as null. Absolute paths of the machine are shortened, in the command
and in the figures. Nothing here imports torch: its version comes from the package metadata, and
GPU and threads are named only when torch is already imported.
"""

from __future__ import annotations

import contextlib
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path, PurePath
from typing import Any

from iterant.errors import RunError, UsageError
from iterant.io.files import (
    PathLike,
    check_writable_folder,
    make_folder,
    quoted,
    read_json,
    to_json,
    write_json,
)

_ROOT = Path(__file__).resolve().parents[2]

_KEYS = ("name", "command", "commit", "dirty", "date", "seed", "hardware", "versions", "figures")

_MACHINE_PATH = re.compile(
    r"""(?P<before>^|=|[\s,'"(])(?P<path>(?:(?<![\s,'"(])/|/[^\s/]+/)[^\s,'")]+)"""
)
"""Absolute paths: ``/data`` at the start of the text or after =; ``/home/me`` in any place."""


def environment() -> dict[str, Any]:
    """The provenance of a run: commit, versions, hardware, platform, command."""
    commit, dirty = code_version()
    return {
        "commit": commit,
        "dirty": dirty,
        "versions": versions(),
        "hardware": hardware(),
        "platform": platform.platform(),
        "command": command_line(),
    }


def code_version() -> tuple[str | None, bool | None]:
    """The commit that iterant runs from and whether tracked files differ from it, None if unknown.

        >>> commit, changed = code_version()

    Changes in results/ do not count: writing one result must not mark the next as dirty. A copy
    without git history takes the commit from ``ITERANT_COMMIT`` (``-dirty`` appended if changed).
    """
    if (_ROOT / ".git").exists() and shutil.which("git"):
        # Without GIT_DIR and the like: a hook or an outer git command sets them for another folder.
        clean = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
        command = ["git", "status", "--porcelain=v2", "--branch", "-uno", "--", ".", ":!results"]
        process = subprocess.run(command, cwd=_ROOT, env=clean, capture_output=True, text=True)
        commit = re.search(r"^# branch\.oid (\w+)$", process.stdout, re.MULTILINE)
        if commit:
            return commit[1], any(not line.startswith("#") for line in process.stdout.splitlines())
    variable = os.environ.get("ITERANT_COMMIT", "").strip()
    if not variable:
        return None, None
    return variable.removesuffix("-dirty"), variable.endswith("-dirty")


def versions() -> dict[str, str | None]:
    """Versions of iterant, Python, torch and numpy."""
    result: dict[str, str | None] = {"iterant": None, "python": platform.python_version()}
    for package in ("iterant", "torch", "numpy"):
        result[package] = None
        with contextlib.suppress(metadata.PackageNotFoundError):
            result[package] = metadata.version(package)
    if "torch" in sys.modules:  # its own version also names the build: 2.11.0+cpu
        result["torch"] = sys.modules["torch"].__version__
    return result


def hardware() -> dict[str, Any]:
    """The processor, the cores open to this process, torch's threads, memory in GiB, the GPU."""
    try:
        memory = round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / (1 << 30), 1)
        cpuinfo = Path("/proc/cpuinfo").read_text()
    except (AttributeError, OSError, ValueError):  # not Linux
        memory, cpuinfo = None, ""
    model = re.search(r"^model name\s*:\s*(.+)$", cpuinfo, re.MULTILINE)
    affinity = getattr(os, "sched_getaffinity", None)
    torch: Any = sys.modules.get("torch")
    gpu = None
    if torch is not None and torch.cuda.is_available():
        name, count = str(torch.cuda.get_device_name()), int(torch.cuda.device_count())
        gpu = name if count == 1 else f"{count} x {name}"
    return {
        "cpu": model[1].strip() if model else platform.processor() or platform.machine(),
        "cores": len(affinity(0)) if affinity else os.cpu_count(),
        "threads": None if torch is None else int(torch.get_num_threads()),
        "memory_gib": memory,
        "gpu": gpu,
    }


def command_line() -> str:
    """The command of this process without paths of the machine: ``iterant train mazes``."""
    first, *rest = sys.argv or [""]
    program = PurePath(first)
    if program.name in ("__main__.py", "main.py"):  # python -m iterant
        program = program.parent
    return shlex.join([program.name, *map(_without_machine_paths, rest)])


def _without_machine_paths(value: Any) -> Any:
    """Shorten absolute paths in JSON: relative to the current folder, otherwise the last name."""
    if isinstance(value, dict):
        return {_without_machine_paths(k): _without_machine_paths(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_without_machine_paths(item) for item in value]
    if not isinstance(value, str):
        return value
    here = Path.cwd()

    def shorten(match: re.Match[str]) -> str:
        path = PurePath(match["path"])
        short = path.relative_to(here) if path.is_relative_to(here) else path.name
        return f"{match['before']}{short}"

    return _MACHINE_PATH.sub(shorten, value)


def make_result(
    name: str,
    figures: Mapping[str, Any],
    *,
    seed: int | Sequence[int] | None = None,
    command: str | None = None,
) -> dict[str, Any]:
    """The content that `write_result` writes."""
    _check_name(name)
    commit, dirty = code_version()
    return {
        "name": name,
        "command": command_line() if command is None else _without_machine_paths(command),
        "commit": commit,
        "dirty": dirty,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "seed": to_json(seed),
        "hardware": hardware(),
        "versions": versions(),
        "figures": _without_machine_paths(to_json(figures, nan_to_null=True)),
    }


def write_result(
    name: str,
    figures: Mapping[str, Any],
    *,
    seed: int | Sequence[int] | None = None,
    command: str | None = None,
    folder: PathLike = "results",
) -> Path:
    """Write ``folder/NAME.json`` and return its path; ``command`` is this process's by default."""
    path = make_folder(folder) / f"{name}.json"
    write_json(path, make_result(name, figures, seed=seed, command=command))
    return path


def check_result_path(path: PathLike) -> Path:
    """Check, before long work, that `write_result` can write this file."""
    target = Path(path)
    if target.suffix != ".json" or target.is_dir():
        raise UsageError(
            f"figures are written to a .json file, got {quoted(path)}; try {target.stem}.json"
        )
    _check_name(target.stem)
    check_writable_folder(target.parent)
    return target


def _check_name(name: str) -> None:
    if not re.fullmatch(r"[A-Za-z0-9][\w.-]*", name):
        raise UsageError(f"{name!r} cannot name a result; use letters, digits, -, _ and .")


def read_result(path: PathLike) -> dict[str, Any]:
    """Read one result: ``read_result("results/speed/solve-mazes.json")["figures"]``."""
    return check_result(read_json(path), quoted(path))


def check_result(result: Any, where: str) -> dict[str, Any]:
    """Check that a result has all its keys; ``where`` names its file in the error."""
    missing = [key for key in _KEYS if not isinstance(result, dict) or key not in result]
    if missing:
        raise RunError(
            f"{where} is not a result of iterant: {', '.join(missing)} missing; "
            "remove it or write it again"
        )
    return dict(result)
