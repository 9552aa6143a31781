"""Result files: figures with their provenance (code version, libraries, machine, command).

    >>> write_result("table-1", {"accuracy": 0.97}, seed=0)
    >>> read_result("results/table-1.json")["figures"]

NaN and infinities are written as null. Absolute paths of the machine are shortened, in the command
and in the figures. Nothing here imports torch: its version comes from the package metadata, and
the GPU is named only when torch is already imported.
"""

from __future__ import annotations

import os
import platform
import re
import shlex
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
    explain_os_error,
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
"""``/data`` at the start of a word or of a flag's value; ``/home/me`` also within prose."""


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
    if (_ROOT / ".git").exists():
        # Without GIT_DIR and the like: a hook or an outer git command sets them for another folder.
        clean = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
        try:
            output = subprocess.run(
                ["/usr/bin/env", "git", "status", "--porcelain=v2", "--branch", "-uno", "--", ".",
                 ":!results"],
                cwd=_ROOT, env=clean, capture_output=True, text=True, timeout=20, check=True,
            ).stdout  # fmt: skip
        except (OSError, subprocess.SubprocessError):
            output = ""
        commit = re.search(r"^# branch\.oid (\w+)$", output, re.MULTILINE)
        if commit:
            return commit[1], any(not line.startswith("#") for line in output.splitlines())
    variable = os.environ.get("ITERANT_COMMIT", "").strip()
    if not variable:
        return None, None
    return variable.removesuffix("-dirty"), variable.endswith("-dirty")


def versions() -> dict[str, str | None]:
    """Versions of iterant, Python, torch and numpy."""

    def installed(package: str) -> str | None:
        try:
            return metadata.version(package)
        except metadata.PackageNotFoundError:
            return None

    return {
        "iterant": getattr(sys.modules["iterant"], "__version__", None) or installed("iterant"),
        "python": platform.python_version(),
        "torch": getattr(sys.modules.get("torch"), "__version__", None) or installed("torch"),
        "numpy": installed("numpy"),
    }


def hardware() -> dict[str, Any]:
    """The processor, the cores open to this process, memory in GiB, and the GPU in use."""
    try:
        memory = round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / (1 << 30), 1)
    except (OSError, ValueError):
        memory = None
    try:
        cpuinfo = Path("/proc/cpuinfo").read_text()
    except OSError:
        cpuinfo = ""
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
        "memory_gib": memory,
        "gpu": gpu,
    }


def command_line(words: Sequence[str] | None = None) -> str:
    """A command as one line without the machine's paths; by default, of this process.

    >>> command_line(["/home/me/bin/iterant", "train", "mazes"])
    'iterant train mazes'
    """
    first, *rest = list(sys.argv if words is None else words) or [""]
    program = PurePath(first).name
    if program in ("__main__.py", "main.py"):  # python -m iterant
        program = PurePath(first).parent.name
    return shlex.join([program, *map(without_machine_paths, rest)])


def without_machine_paths(text: str) -> str:
    """Shorten absolute paths: relative to the current folder, otherwise the last name."""
    here = str(Path.cwd())

    def shorten(match: re.Match[str]) -> str:
        path = PurePath(match["path"])
        inside = path.is_relative_to(here)
        return match["before"] + (str(path.relative_to(here)) if inside else path.name)

    return _MACHINE_PATH.sub(shorten, text)


def write_result(
    name: str,
    figures: Mapping[str, Any],
    *,
    seed: int | Sequence[int] | None = None,
    command: str | Sequence[str] | None = None,
    folder: PathLike = "results",
) -> Path:
    """Write ``folder/NAME.json`` and return its path; ``command`` is this process's by default."""
    result = make_result(name, figures, seed=seed, command=command)
    path = make_folder(folder) / f"{name}.json"
    write_json(path, result)
    return path


def check_result_path(path: PathLike) -> Path:
    """Check, before long work, that `write_result` can write this file."""
    target = Path(path)
    if target.suffix != ".json":
        raise UsageError(
            f"figures are written as .json, got {quoted(path)}; try {target.stem}.json"
        )
    _check_name(target.stem)
    if target.is_dir():
        raise UsageError(f"cannot write {quoted(path)}: it is a folder; choose another name")
    check_writable_folder(target.parent)
    return target


def _check_name(name: str) -> None:
    if not re.fullmatch(r"[A-Za-z0-9][\w.-]*", name):
        raise UsageError(f"{name!r} cannot name a result; use letters, digits, -, _ and .")


def make_result(
    name: str,
    figures: Mapping[str, Any],
    *,
    seed: int | Sequence[int] | None = None,
    command: str | Sequence[str] | None = None,
) -> dict[str, Any]:
    """The content that `write_result` writes."""
    _check_name(name)
    commit, dirty = code_version()
    try:
        line = command_line(shlex.split(command) if isinstance(command, str) else command)
    except ValueError:  # an open quote: not a shell command, so treat it as prose
        line = without_machine_paths(str(command))
    return {
        "name": name,
        "command": line,
        "commit": commit,
        "dirty": dirty,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "seed": to_json(seed),
        "hardware": hardware(),
        "versions": versions(),
        "figures": _shorten_paths(to_json(figures, nan_to_null=True)),
    }


def _shorten_paths(value: Any) -> Any:
    if isinstance(value, str):
        return without_machine_paths(value)
    if isinstance(value, dict):
        return {without_machine_paths(key): _shorten_paths(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_shorten_paths(item) for item in value]
    return value


def read_results(folder: PathLike = "results") -> list[dict[str, Any]]:
    """All results of a folder by name, without hidden and other files."""
    try:
        paths = sorted(p for p in Path(folder).iterdir() if re.fullmatch(r"[^.].*\.json", p.name))
    except OSError as error:
        raise explain_os_error(error, "read", folder) from error
    return [read_result(path) for path in paths]


def read_result(path: PathLike) -> dict[str, Any]:
    """Read one result: ``read_result("results/speed/maze-generation.json")["figures"]``."""
    return check_result(read_json(path), quoted(path))


def check_result(result: Any, where: str) -> dict[str, Any]:
    """Check that a result has all its keys; ``where`` names its file in the error."""
    missing = [key for key in _KEYS if not isinstance(result, dict) or key not in result]
    if missing:
        raise RunError(
            f"{where} is no result of iterant: {', '.join(missing)} missing; "
            "remove it or write it again"
        )
    return dict(result)
