"""Files that are whole or not there: atomic writes, and JSON that says when it was damaged.

    >>> write_json("runs/m0/config.json", {"seed": 1}, sealed=True)
    >>> read_json("runs/m0/config.json", sealed=True)
    {'seed': 1}

A reader sees the old file or the new one, never a half; a process killed in between leaves at
most a hidden ``.tmp`` file, which `remove_leftovers` clears. Whatever the system refuses becomes
one `RunError` line that names the path, the cause and the remedy.

Values as JSON can hold them, decided in one place.

JSON has no NaN and no infinity. What must be read back equal (configurations, the metadata of
checkpoints) refuses them; what is only shown (metrics, status, results) writes null in their
place, ``nan_to_null=True``: a gap in a curve rather than a file that other programs cannot read.

Whether something can be written somewhere: asked before long work, not after.

Nothing is made here: a refusal, or work that fails later, leaves no empty folders behind.

JSON lines: one record a line, appended while a run goes on.

A process killed while it appends leaves a torn last line. Reading passes over it, and the next
append cuts it off, so that it never ends up in the middle. A last line that only lacks its end of
line is whole, and is kept.
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


def to_json(value: Any, *, nan_to_null: bool = False, where: str = "") -> Any:
    """The value built of dict, list, str, int, float, bool and None alone.

    Takes numpy and torch scalars and arrays as numbers and lists, tuples as lists, paths as text.
    """
    if value is None or isinstance(value, (str, bool)):
        return str(value) if isinstance(value, str) else value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return _number(float(value), nan_to_null, where)
    if isinstance(value, Mapping):
        return {
            _key(key, where): to_json(item, nan_to_null=nan_to_null, where=f"{where}.{key}")
            for key, item in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [
            to_json(item, nan_to_null=nan_to_null, where=f"{where}[{index}]")
            for index, item in enumerate(value)
        ]
    if isinstance(value, PurePath):
        return str(value)
    if hasattr(value, "tolist"):  # numpy and torch: arrays give lists, scalars give numbers
        return to_json(value.tolist(), nan_to_null=nan_to_null, where=where)
    raise UsageError(
        f"cannot write a {type(value).__name__} as JSON{_place(where)}; "
        "give text, numbers, lists and dicts"
    )


def _number(value: float, nan_to_null: bool, where: str) -> float | None:
    if math.isfinite(value):
        return value
    if nan_to_null:
        return None
    raise UsageError(f"cannot write {value} as JSON{_place(where)}; give a finite number or None")


def _key(key: Any, where: str) -> str:
    if isinstance(key, str):
        return str(key)
    if isinstance(key, int) and not isinstance(key, bool):
        return str(key)
    raise UsageError(
        f"cannot write the key {key!r} as JSON{_place(where)}; give text or whole numbers as keys"
    )


def _place(where: str) -> str:
    return f" at {where.lstrip('.')!r}" if where else ""


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


def quoted(path: PathLike) -> str:
    """A path as it stands in a message: quoted, and on one line whatever it contains."""
    return repr(os.fspath(path))


def explain_os_error(error: OSError, verb: str, path: PathLike, needed: int = 0) -> RunError:
    """One line for a refusal by the system: ``raise explain_os_error(error, "write", path)``."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return RunError(
            f"cannot {verb} {quoted(path)}: the disk is full ({_room(Path(path), needed)}); "
            "free some space or choose another folder"
        )
    cause, remedy = _CAUSES.get(
        error.errno or 0, ((error.strerror or str(error)).lower(), "check the path and the disk")
    )
    return RunError(f"cannot {verb} {quoted(path)}: {cause}; {remedy}")


def _room(path: Path, needed: int) -> str:
    wanted = f"{byte_size(needed)} needed"
    with contextlib.suppress(OSError):
        return f"{wanted}, {byte_size(shutil.disk_usage(path.parent).free)} free"
    return wanted


def make_folder(path: PathLike) -> Path:
    """The folder, made with its parents where it is missing."""
    folder = Path(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise explain_os_error(error, "make the folder", folder) from error
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
            raise explain_os_error(error, "write", path, len(data)) from error
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
        raise explain_os_error(error, "read", path) from error
    if limit is not None and len(data) > limit:
        raise RunError(
            f"{quoted(path)} is larger than {byte_size(limit)}, too large for a file "
            "that iterant wrote; check the path"
        )
    return data


def checksum(value: dict[str, Any]) -> str:
    """The checksum of what a JSON object says, whatever its spacing and the order of its keys."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def write_json(
    path: PathLike, value: Any, *, checksummed: bool = False, nan_to_null: bool = False
) -> None:
    """Write a value as JSON, atomically: ``write_json("config.json", {"seed": 1})``.

    With ``checksummed``, an object carries the checksum of its content. With ``nan_to_null``, NaN
    and infinities are written as null; without, they are refused, because the value must be
    read back equal.
    """
    content = to_json(value, nan_to_null=nan_to_null)
    if checksummed:
        content = {**content, _SEAL: checksum(content)}
    write_atomic(path, json.dumps(content, indent=1, allow_nan=False).encode() + b"\n")


def read_json(path: PathLike, *, checksummed: bool = False, limit: int = LARGEST_JSON) -> Any:
    """The value in a JSON file; of a sealed one, the object without its seal, once verified."""
    value = parsed(read_bytes(path, limit), quoted(path))
    if not checksummed:
        return value
    if not isinstance(value, dict) or _SEAL not in value:
        raise RunError(
            f"{quoted(path)} carries no checksum, so iterant did not write it or it is damaged; "
            "restore it from a copy or choose another folder"
        )
    found = value.pop(_SEAL)
    if found != checksum(value):
        raise RunError(
            f"{quoted(path)} does not match its own checksum: it was damaged or edited; "
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


def check_writable_file(path: PathLike) -> Path:
    """The path itself if a file can be written there, into a folder that is there."""
    target = Path(path)
    if not target.parent.is_dir():
        raise UsageError(
            f"cannot write {quoted(path)}: there is no folder {quoted(target.parent)}; "
            "make it first or choose another"
        )
    if target.is_dir():
        raise UsageError(f"cannot write {quoted(path)}: it is a folder; choose another name")
    _check_writable(target, target.parent)
    return target


def check_writable_folder(path: PathLike) -> Path:
    """The path itself if files can be written into a folder there, which may be made for it."""
    folder = Path(path)
    there = next((place for place in (folder, *folder.absolute().parents) if _exists(place)), None)
    if there is None or not there.is_dir():
        what = "nothing is there" if there is None else f"{quoted(there)} is no folder"
        raise UsageError(f"cannot write into {quoted(path)}: {what}; choose another folder")
    _check_writable(folder, there)
    return folder


def check_new_folder(path: PathLike) -> Path:
    """The path itself if a folder there can be written and has nothing in it yet."""
    folder = check_writable_folder(path)
    if folder.is_dir() and any(folder.iterdir()):
        raise UsageError(f"{folder} is there already; give a new or an empty folder as --out")
    return folder


def _exists(place: Path) -> bool:
    """Whether anything is there; below a file, nothing is."""
    return os.path.lexists(place)


def _check_writable(path: Path, folder: Path) -> None:
    if not os.access(folder, os.W_OK | os.X_OK):
        raise UsageError(
            f"cannot write {quoted(path)}: nothing may be written into the folder "
            f"{quoted(folder)}; choose another"
        )


Record = dict[str, Any]

_BLOCK = 1 << 16


def append_line(path: PathLike, record: Mapping[str, Any]) -> None:
    """Add one record at the end; on failure the file keeps the whole lines that it had.

    NaN and infinities become null. The line is handed to the system at once, so a killed process
    loses nothing; a power cut may lose the last seconds.
    """
    data = _line(record)
    path = Path(path)
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            end, joint = _whole_end(handle)
            os.ftruncate(handle, end)
            os.lseek(handle, end, os.SEEK_SET)
            try:
                write_all(handle, joint + data)
            except BaseException:
                os.ftruncate(handle, end)
                raise
        finally:
            os.close(handle)
    except OSError as error:
        raise explain_os_error(error, "append to", path, len(data)) from error


def _line(record: Mapping[str, Any]) -> bytes:
    return json.dumps(to_json(record, nan_to_null=True), allow_nan=False).encode() + b"\n"


def _whole_end(handle: int) -> tuple[int, bytes]:
    """Where the next line may begin, and what must stand before it (a missing end of line)."""
    size = os.fstat(handle).st_size
    tail, start = b"", size
    while start > 0 and b"\n" not in tail:
        length = min(_BLOCK, start)
        start -= length
        tail = os.pread(handle, length, start) + tail
    torn = tail.rpartition(b"\n")[2]
    if torn and _record(torn) is not None:
        return size, b"\n"
    return size - len(torn), b""


def _record(line: bytes) -> Record | None:
    try:
        value = parsed(line, "")
    except RunError:
        return None
    return value if isinstance(value, dict) else None


def read_lines(path: PathLike) -> list[Record]:
    """All whole records, in order; a damaged line other than a torn last one is an error."""
    *lines, tail = read_bytes(path).split(b"\n")
    records: list[Record] = []
    for number, line in enumerate(lines, start=1):
        record = parsed(line, f"line {number} of {quoted(path)}")
        if not isinstance(record, dict):
            raise RunError(
                f"line {number} of {quoted(path)} is not a JSON object; restore it from a copy"
            )
        records.append(record)
    last = _record(tail) if tail else None
    return records if last is None else [*records, last]


def is_torn(path: PathLike) -> bool:
    """Whether its last line is no whole record, which `read_lines` passes over.

    >>> is_torn("runs/m0/metrics.jsonl")
    """
    tail = read_bytes(path).rpartition(b"\n")[2]
    return bool(tail) and _record(tail) is None


def write_lines(path: PathLike, records: Iterable[Mapping[str, Any]]) -> None:
    """Replace the whole file atomically by these records."""
    write_atomic(path, b"".join(map(_line, records)))
