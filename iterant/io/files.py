"""Files that are whole or absent: atomic writes, JSON with a checksum, JSON lines.

    >>> write_json("runs/m0/config.json", {"seed": 1}, checksummed=True)
    >>> read_json("runs/m0/config.json", checksummed=True)
    {'seed': 1}

A reader sees the old file or the new one, never half of it. A process killed while writing leaves
at most a hidden ``.tmp`` file, which `remove_leftovers` deletes. Every `OSError` becomes a
one-line `RunError` with path, cause and remedy.

JSON has no NaN and no infinity. Values that must be read back equal (configurations, checkpoint
metadata) refuse them; values that are only shown (metrics, status, results) store null instead,
with ``nan_to_null=True``.
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
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePath
from typing import Any, NoReturn

from iterant.errors import RunError, UsageError
from iterant.formatting import byte_size

PathLike = str | os.PathLike[str]
Record = dict[str, Any]

LARGEST_JSON = 64 << 20
"""Larger than any JSON file that iterant writes; refuse others before they fill the memory."""

_CHECKSUM = "sha256"
_BLOCK = 1 << 16

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


def quoted(path: PathLike) -> str:
    """A path for a message: in quotes and on one line."""
    return repr(os.fspath(path))


def explain_os_error(error: OSError, verb: str, path: PathLike, needed: int = 0) -> RunError:
    """One line for a refusal by the system: ``raise explain_os_error(error, "write", path)``."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        space = f"{byte_size(needed)} needed"
        with contextlib.suppress(OSError):
            space += f", {byte_size(shutil.disk_usage(Path(path).parent).free)} free"
        cause, remedy = f"the disk is full ({space})", "free some space or choose another folder"
    else:
        other = (error.strerror or str(error)).lower(), "check the path and the disk"
        cause, remedy = _CAUSES.get(error.errno or 0, other)
    return RunError(f"cannot {verb} {quoted(path)}: {cause}; {remedy}")


# Folders, and whether they can be written


def make_folder(path: PathLike) -> Path:
    """Create a folder with its parents where it is missing."""
    folder = Path(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise explain_os_error(error, "make the folder", folder) from error
    return folder


def check_writable_file(path: PathLike) -> Path:
    """Check, before long work, that a file can be written into an existing folder."""
    target = Path(path)
    if not target.parent.is_dir():
        raise UsageError(
            f"cannot write {quoted(path)}: there is no folder {quoted(target.parent)}; "
            "make it first or choose another"
        )
    if target.is_dir():
        raise UsageError(f"cannot write {quoted(path)}: it is a folder; choose another name")
    _check_access(target, target.parent)
    return target


def check_writable_folder(path: PathLike) -> Path:
    """Check that files can be written into a folder, which may have to be created; create none."""
    folder = Path(path)
    existing = next(p for p in (folder, *folder.absolute().parents) if os.path.lexists(p))
    if not existing.is_dir():
        raise UsageError(
            f"cannot write into {quoted(path)}: {quoted(existing)} is no folder; "
            "choose another folder"
        )
    _check_access(folder, existing)
    return folder


def check_new_folder(path: PathLike) -> Path:
    """Check that a folder can be written and is empty or absent."""
    folder = check_writable_folder(path)
    if folder.is_dir() and any(folder.iterdir()):
        raise UsageError(f"{folder} is there already; give a new or an empty folder as --out")
    return folder


def _check_access(path: Path, folder: Path) -> None:
    if not os.access(folder, os.W_OK | os.X_OK):
        raise UsageError(
            f"cannot write {quoted(path)}: nothing may be written into the folder "
            f"{quoted(folder)}; choose another"
        )


# Bytes


def write_atomic(path: PathLike, data: bytes) -> None:
    """Replace a file in one step: ``write_atomic("a.json", b"{}")``; on failure it is unchanged.

    The bytes are on disk before the name points to them, and the folder is synchronised after, so
    neither a killed process nor a power cut leaves a half-written file.
    """
    path = Path(path)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
    try:
        with temporary.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        except OSError as error:
            if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # unsupported by some systems
                raise
        finally:
            os.close(folder)
    except BaseException as error:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise explain_os_error(error, "write", path, len(data)) from error
        raise


def remove_leftovers(folder: PathLike) -> None:
    """Remove the temporary files of killed writers; the caller must hold the folder's lock."""
    with contextlib.suppress(OSError):
        for leftover in Path(folder).glob(".*.tmp"):
            leftover.unlink(missing_ok=True)


def read_bytes(path: PathLike, limit: int | None = None) -> bytes:
    """Read a file of at most ``limit`` bytes."""
    path = Path(path)
    try:
        with path.open("rb") as file:
            data = file.read() if limit is None else file.read(limit + 1)
    except OSError as error:
        raise explain_os_error(error, "read", path) from error
    if limit is not None and len(data) > limit:
        raise RunError(
            f"{quoted(path)} is larger than {byte_size(limit)}, too large for a file "
            "that iterant wrote; check the path"
        )
    return data


# JSON


def to_json(value: Any, *, nan_to_null: bool = False, where: str = "") -> Any:
    """Convert a value to dict, list, str, int, float, bool and None.

    Tuples become lists, paths text, numpy and torch values numbers and lists. ``where`` is the
    position of the value for error messages.
    """
    at = f" at {where.lstrip('.')!r}" if where else ""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, (str, PurePath)):
        return str(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        if math.isfinite(value):
            return float(value)
        if nan_to_null:
            return None
        raise UsageError(f"cannot write {value} as JSON{at}; give a finite number or None")
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, (str, int)) or isinstance(key, bool):
                raise UsageError(
                    f"cannot write the key {key!r} as JSON{at}; give text or whole numbers as keys"
                )
        return {
            str(key): to_json(item, nan_to_null=nan_to_null, where=f"{where}.{key}")
            for key, item in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [
            to_json(item, nan_to_null=nan_to_null, where=f"{where}[{index}]")
            for index, item in enumerate(value)
        ]
    if hasattr(value, "tolist"):
        return to_json(value.tolist(), nan_to_null=nan_to_null, where=where)
    raise UsageError(
        f"cannot write a {type(value).__name__} as JSON{at}; give text, numbers, lists and dicts"
    )


def checksum(value: dict[str, Any]) -> str:
    """The SHA-256 of a JSON object, independent of spacing and key order."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def write_json(
    path: PathLike, value: Any, *, checksummed: bool = False, nan_to_null: bool = False
) -> None:
    """Write a value as JSON, atomically; ``checksummed`` adds the checksum of an object."""
    content = to_json(value, nan_to_null=nan_to_null)
    if checksummed:
        content = {**content, _CHECKSUM: checksum(content)}
    write_atomic(path, json.dumps(content, indent=1, allow_nan=False).encode() + b"\n")


def read_json(path: PathLike, *, checksummed: bool = False, limit: int = LARGEST_JSON) -> Any:
    """Read a JSON file; verify and remove the checksum of one that was written with it."""
    value = _parse(read_bytes(path, limit), quoted(path))
    if not checksummed:
        return value
    if not isinstance(value, dict) or _CHECKSUM not in value:
        raise RunError(
            f"{quoted(path)} carries no checksum, so iterant did not write it or it is damaged; "
            "restore it from a copy or choose another folder"
        )
    if value.pop(_CHECKSUM) != checksum(value):
        raise RunError(
            f"{quoted(path)} does not match its own checksum: it was damaged or edited; "
            "restore it from a copy"
        )
    return value


def _parse(data: bytes, where: str) -> Any:
    """Parse JSON without NaN and infinities; ``where`` names the file in errors."""

    def refuse_constant(word: str) -> NoReturn:
        raise ValueError(f"it holds {word}, which JSON has no number for")

    def finite(text: str) -> float:
        if not math.isfinite(float(text)):
            raise ValueError(f"it holds {text[:20]}, which is too large for a number")
        return float(text)

    try:
        return json.loads(data.decode(), parse_constant=refuse_constant, parse_float=finite)
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


# JSON lines: one record a line, appended during a run.
#
# A process killed while appending leaves a torn last line. `read_lines` skips it and the next
# `append_line` cuts it off. A last line that lacks only its newline is complete and is kept.


def append_line(path: PathLike, record: Mapping[str, Any]) -> None:
    """Append a record, with null for NaN; on failure the file keeps its complete lines.

    The line reaches the operating system at once: a killed process loses nothing, a power cut may
    lose the last seconds.
    """
    data = _line(record)
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            size = start = os.fstat(handle).st_size
            tail = b""
            while start > 0 and b"\n" not in tail:
                length = min(_BLOCK, start)
                start -= length
                tail = os.pread(handle, length, start) + tail
            last = tail.rpartition(b"\n")[2]
            complete = _record(last) is not None
            end = size if complete else size - len(last)
            os.ftruncate(handle, end)
            os.lseek(handle, end, os.SEEK_SET)
            left = memoryview(b"\n" + data if complete else data)
            try:
                while left:  # one call may write less than it is given
                    left = left[os.write(handle, left) :]
            except BaseException:
                os.ftruncate(handle, end)
                raise
        finally:
            os.close(handle)
    except OSError as error:
        raise explain_os_error(error, "append to", path, len(data)) from error


def write_lines(path: PathLike, records: Iterable[Mapping[str, Any]]) -> None:
    """Replace the file by these records, atomically."""
    write_atomic(path, b"".join(map(_line, records)))


def read_lines(path: PathLike) -> list[Record]:
    """All complete records; a damaged line other than a torn last one is an error."""
    *lines, tail = read_bytes(path).split(b"\n")
    records: list[Record] = []
    for number, line in enumerate(lines, start=1):
        where = f"line {number} of {quoted(path)}"
        record = _parse(line, where)
        if not isinstance(record, dict):
            raise RunError(f"{where} is not a JSON object; restore it from a copy")
        records.append(record)
    last = _record(tail)
    return records if last is None else [*records, last]


def is_torn(path: PathLike) -> bool:
    """Whether the last line is incomplete, so that `read_lines` skips it."""
    tail = read_bytes(path).rpartition(b"\n")[2]
    return bool(tail) and _record(tail) is None


def _line(record: Mapping[str, Any]) -> bytes:
    return json.dumps(to_json(record, nan_to_null=True), allow_nan=False).encode() + b"\n"


def _record(line: bytes) -> Record | None:
    try:
        value = _parse(line, "")
    except RunError:
        return None
    return value if isinstance(value, dict) else None
