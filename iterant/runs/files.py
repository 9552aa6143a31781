"""Files that are whole or not there: atomic writes, and JSON that says when it was damaged.

    >>> write_json("runs/m0/config.json", {"seed": 1}, sealed=True)
    >>> read_json("runs/m0/config.json", sealed=True)
    {'seed': 1}

A reader sees the old file or the new one, never a half; a process killed in between leaves at
most a hidden ``.tmp`` file, which `remove_leftovers` clears. Whatever the system refuses becomes
one `RunError` line that names the path, the cause and the remedy.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import math
import os
import secrets
import shutil
from pathlib import Path
from typing import Any, NoReturn

from iterant.errors import RunError
from iterant.runs.plain import plain

PathLike = str | os.PathLike[str]

MEBIBYTE = 1 << 20
LARGEST_JSON = 64 * MEBIBYTE
"""More than any file of ours holds: a larger one is foreign, and would only fill the memory."""

_SEAL = "sha256"

_CAUSES: dict[int, tuple[str, str]] = {
    errno.EROFS: ("the file system is read-only", "choose a folder that can be written"),
    errno.EACCES: ("permission is denied", "choose another folder or change its permissions"),
    errno.EPERM: ("permission is denied", "choose another folder or change its permissions"),
    errno.ENOENT: ("no such file or folder", "check the path"),
    errno.ENOTDIR: ("a file stands where a folder is wanted", "check the path"),
    errno.EISDIR: ("a folder stands where a file is wanted", "check the path"),
    errno.EEXIST: ("a file stands where a folder is wanted", "check the path"),
    errno.EFBIG: ("the file is larger than the system allows", "lower --shard-mb"),
    errno.ENAMETOOLONG: ("the name is too long", "choose a shorter one"),
    errno.EIO: ("the device reports an input/output error", "check the disk"),
}


def shown(path: PathLike) -> str:
    """A path as it stands in a message: quoted, and on one line whatever it contains."""
    return repr(os.fspath(path))


def explained(error: OSError, verb: str, path: PathLike, needed: int = 0) -> RunError:
    """The one line for what the system refused: ``raise explained(error, "write", path)``."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return RunError(
            f"cannot {verb} {shown(path)}: the disk is full ({_room(Path(path), needed)}); "
            "free some space or choose another folder"
        )
    cause, remedy = _CAUSES.get(
        error.errno or 0, ((error.strerror or str(error)).lower(), "check the path and the disk")
    )
    return RunError(f"cannot {verb} {shown(path)}: {cause}; {remedy}")


def _room(path: Path, needed: int) -> str:
    wanted = f"{needed / MEBIBYTE:.2f} MiB needed"
    with contextlib.suppress(OSError):
        return f"{wanted}, {shutil.disk_usage(path.parent).free / MEBIBYTE:.2f} MiB free"
    return wanted


def make_folder(path: PathLike) -> Path:
    """The folder, made with its parents where it is missing."""
    folder = Path(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise explained(error, "make the folder", folder) from error
    return folder


def write_atomic(path: PathLike, data: bytes) -> None:
    """Replace a file as one step: ``write_atomic("a.json", b"{}")``; on failure it stays as it was.

    The bytes are on the disk before the name points at them, and the folder is synchronised
    after, so that neither a killed process nor a power cut shows a half-written file.
    """
    path = Path(path)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
    try:
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        try:
            write_all(handle, data)
            os.fsync(handle)
        finally:
            os.close(handle)
        temporary.replace(path)
        sync_folder(path.parent)
    except BaseException as error:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise explained(error, "write", path, len(data)) from error
        raise


def write_all(handle: int, data: bytes) -> None:
    """Write every byte: the system may take fewer than it is given."""
    left = memoryview(data)
    while left:
        left = left[os.write(handle, left) :]


def sync_folder(folder: Path) -> None:
    """Make a rename last; file systems that cannot synchronise a folder are let be."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(handle)


def remove_leftovers(folder: PathLike) -> None:
    """Remove what killed writers left in a folder; only who holds its lock may call this."""
    with contextlib.suppress(OSError):
        for leftover in Path(folder).glob(".*.tmp"):
            leftover.unlink(missing_ok=True)


def read_bytes(path: PathLike, limit: int | None = None) -> bytes:
    """All bytes of a file, or one line that says why not."""
    path = Path(path)
    try:
        with path.open("rb") as file:
            data = file.read() if limit is None else file.read(limit + 1)
    except OSError as error:
        raise explained(error, "read", path) from error
    if limit is not None and len(data) > limit:
        raise RunError(
            f"{shown(path)} is larger than {limit / MEBIBYTE:g} MiB, too large for a file "
            "that iterant wrote; check the path"
        )
    return data


def seal(value: dict[str, Any]) -> str:
    """The checksum of what a JSON object says, whatever its spacing and the order of its keys."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def write_json(path: PathLike, value: Any, *, sealed: bool = False, gaps: bool = False) -> None:
    """Write a value as JSON, atomically: ``write_json("config.json", {"seed": 1}, sealed=True)``.

    Sealed, an object carries the checksum of its content. With ``gaps``, NaN and infinities are
    written as null; without, they are refused, because the value must be read back equal.
    """
    content = plain(value, gaps=gaps)
    if sealed:
        content = {**content, _SEAL: seal(content)}
    write_atomic(path, json.dumps(content, indent=1, allow_nan=False).encode() + b"\n")


def read_json(path: PathLike, *, sealed: bool = False, limit: int = LARGEST_JSON) -> Any:
    """The value in a JSON file; of a sealed one, the object without its seal, once verified."""
    value = parsed(read_bytes(path, limit), shown(path))
    if not sealed:
        return value
    if not isinstance(value, dict) or _SEAL not in value:
        raise RunError(
            f"{shown(path)} carries no checksum, so iterant did not write it or it is damaged; "
            "restore it from a copy or choose another folder"
        )
    found = value.pop(_SEAL)
    if found != seal(value):
        raise RunError(
            f"{shown(path)} does not match its own checksum: it was damaged or edited; "
            "restore it from a copy"
        )
    return value


def parsed(data: bytes, where: str) -> Any:
    """JSON bytes as a value; ``where`` names their place in the message of a failure."""
    try:
        return json.loads(
            data.decode(), parse_constant=_refuse_constant, parse_float=_finite_number
        )
    except json.JSONDecodeError as error:
        cause = f"{error.msg} at byte {error.pos} (line {error.lineno}, column {error.colno})"
        if not data.strip():
            cause = "it is empty"
        elif error.pos >= len(data.rstrip()):
            cause = f"it ends too early, at byte {len(data)}"
    except UnicodeDecodeError as error:
        cause = f"byte {error.start} is not UTF-8"
    except RecursionError:
        cause = "it is nested too deeply"
    except ValueError as error:
        cause = str(error)
    raise RunError(f"{where} is not valid JSON: {cause}; restore it from a copy") from None


def _refuse_constant(word: str) -> NoReturn:
    raise ValueError(f"it holds {word}, which JSON has no number for")


def _finite_number(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"it holds {text[:20]}, which is too large for a number")
    return value
