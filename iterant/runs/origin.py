"""Where a number came from: code version, libraries, machine and command.

    >>> environment()["versions"]["python"]
    '3.11.7'

Nothing here imports torch: its version is read from its package, and a GPU is named only when
torch is in use already. Nothing says where on the machine things lie: absolute paths of a command
are cut to what others can use.
"""

from __future__ import annotations

import os
import platform
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path, PurePath
from typing import Any

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
