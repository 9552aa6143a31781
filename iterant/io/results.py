"""Where a number came from: code version, libraries, machine and command.

    >>> environment()["versions"]["python"]
    '3.11.7'

Nothing here imports torch: its version is read from its package, and a GPU is named only when
torch is in use already. Nothing says where on the machine things lie: absolute paths of a command
are cut to what others can use.

Numbers that anyone may quote, each with where it came from.

A figure that is NaN or infinite is written as null, "no number": the file stays JSON that every
program reads, and nobody can quote it by accident. No file says where things lie on the machine.
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

_COMMIT_VARIABLE = "ITERANT_COMMIT"

_MACHINE_PATH = re.compile(
    r"""(?P<before>^|=|[\s,'"(])(?P<path>(?:(?<![\s,'"(])/|/[^\s/]+/)[^\s,'")]+)"""
)
"""``/data`` where a word or a flag's value begins, ``/home/me`` also within prose."""


def environment() -> dict[str, Any]:
    """Everything about this process that a run should remember."""
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
    """The commit that iterant runs from, and whether its files differ from it; None: not known.

        >>> commit, changed = code_version()

    A copy without its history says so through the variable ``ITERANT_COMMIT`` (with ``-dirty``
    at the end where it holds). Files that git does not track do not count, nor do results:
    writing one must not taint the next.
    """
    if (_ROOT / ".git").exists():
        lines = _git_status()
        commits = [line.split()[2] for line in lines if line.startswith("# branch.oid ")]
        if commits and commits[0] != "(initial)":
            return commits[0], any(not line.startswith("#") for line in lines)
    told = os.environ.get(_COMMIT_VARIABLE, "").strip()
    if not told:
        return None, None
    commit = told.removesuffix("-dirty")
    return commit, commit != told


def _git_status() -> list[str]:
    # A hook or an outer git command sets GIT_DIR and the like; they speak of another folder.
    clean = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    try:
        answer = subprocess.run(
            ["/usr/bin/env", "git", "status", "--porcelain=v2", "--branch", "-uno", "--", ".",
             ":!results"],
            cwd=_ROOT, env=clean, capture_output=True, text=True, timeout=20, check=True,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return []
    return answer.stdout.splitlines()


def versions() -> dict[str, str | None]:
    """Versions of iterant, Python and the two libraries that numbers depend on."""
    return {
        "iterant": getattr(sys.modules["iterant"], "__version__", None) or _version("iterant"),
        "python": platform.python_version(),
        "torch": getattr(sys.modules.get("torch"), "__version__", None) or _version("torch"),
        "numpy": _version("numpy"),
    }


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def hardware() -> dict[str, Any]:
    """The processor, its cores open to this process, memory in GiB, and the GPU in use."""
    try:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / (1 << 30)
    except (OSError, ValueError):
        memory = None
    affinity = getattr(os, "sched_getaffinity", None)
    return {
        "cpu": _processor(),
        "cores": len(affinity(0)) if affinity else os.cpu_count(),
        "memory_gib": None if memory is None else round(memory, 1),
        "gpu": _gpu(),
    }


def _processor() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        text = ""
    named = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    return named[1].strip() if named else platform.processor() or platform.machine()


def _gpu() -> str | None:
    torch: Any = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available():
        return None
    name = str(torch.cuda.get_device_name())
    count = int(torch.cuda.device_count())
    return name if count == 1 else f"{count} x {name}"


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
    """Text whose absolute paths are relative to the current folder, or only a name."""
    here = str(Path.cwd())

    def shorten(found: re.Match[str]) -> str:
        path = PurePath(found["path"])
        inside = path.is_relative_to(here)
        return found["before"] + (str(path.relative_to(here)) if inside else path.name)

    return _MACHINE_PATH.sub(shorten, text)


_KEYS = ("name", "command", "commit", "dirty", "date", "seed", "hardware", "versions", "figures")


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
    write_json(path, result, nan_to_null=True)
    return path


def check_result_path(path: PathLike) -> Path:
    """The path itself if `write_result` can write there: asked before long work, not after."""
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
    """What `write_result` writes, for whoever keeps many in one file, a line each."""
    _check_name(name)
    commit, dirty = code_version()
    return {
        "name": name,
        "command": _command(command),
        "commit": commit,
        "dirty": dirty,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "seed": to_json(seed),
        "hardware": hardware(),
        "versions": versions(),
        "figures": _without_paths(to_json(figures, nan_to_null=True)),
    }


def _command(command: str | Sequence[str] | None) -> str:
    if not isinstance(command, str):
        return command_line(command)
    try:
        return command_line(shlex.split(command))
    except ValueError:  # an open quote: not for a shell, so keep it as prose
        return without_machine_paths(command)


def _without_paths(value: Any) -> Any:
    if isinstance(value, str):
        return without_machine_paths(value)
    if isinstance(value, dict):
        return {without_machine_paths(key): _without_paths(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_paths(item) for item in value]
    return value


def read_results(folder: PathLike = "results") -> list[dict[str, Any]]:
    """All results of a folder, by name; hidden files and other kinds of files are passed over.

    >>> [result["name"] for result in read_results("results")]
    """
    try:
        paths = sorted(p for p in Path(folder).iterdir() if re.fullmatch(r"[^.].*\.json", p.name))
    except OSError as error:
        raise explain_os_error(error, "read", folder) from error
    return [read_result(path) for path in paths]


def read_result(path: PathLike) -> dict[str, Any]:
    """One result: ``read_result("results/maze-generation.json")["figures"]``."""
    return check_result(read_json(path), quoted(path))


def check_result(result: Any, where: str) -> dict[str, Any]:
    """The result itself if it is whole; ``where`` it came from is named if it is not."""
    missing = [key for key in _KEYS if not isinstance(result, dict) or key not in result]
    if missing:
        raise RunError(
            f"{where} is no result of iterant: {', '.join(missing)} missing; "
            "remove it or write it again"
        )
    found: dict[str, Any] = result
    return found
