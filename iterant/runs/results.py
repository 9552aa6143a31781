"""Numbers that anyone may quote, each with where it came from.

    >>> write_result("maze-generation", {"size 59": {"mazes": 1000, "seconds": 3.1}}, seed=1)
    PosixPath('results/maze-generation.json')

A figure that is NaN or infinite is written as null, "no number": the file stays JSON that every
program reads, and nobody can quote it by accident. No file says where things lie on the machine.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from iterant.errors import RunError, UsageError
from iterant.runs.files import PathLike, explained, make_folder, read_json, shown, write_json
from iterant.runs.origin import (
    code_version,
    command_line,
    hardware,
    versions,
    without_machine_paths,
)
from iterant.runs.places import check_folder
from iterant.runs.plain import plain

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
    write_json(path, result, gaps=True)
    return path


def check_result_place(path: PathLike) -> Path:
    """The path itself if `write_result` can write there: asked before long work, not after."""
    target = Path(path)
    if target.suffix != ".json":
        raise UsageError(f"figures are written as .json, got {shown(path)}; try {target.stem}.json")
    _check_name(target.stem)
    if target.is_dir():
        raise UsageError(f"cannot write {shown(path)}: it is a folder; choose another name")
    check_folder(target.parent)
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
        "seed": plain(seed),
        "hardware": hardware(),
        "versions": versions(),
        "figures": _without_paths(plain(figures, gaps=True)),
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
        raise explained(error, "read", folder) from error
    return [read_result(path) for path in paths]


def read_result(path: PathLike) -> dict[str, Any]:
    """One result: ``read_result("results/maze-generation.json")["figures"]``."""
    return check_result(read_json(path), shown(path))


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
