"""Files that are whole or absent: atomic writes, JSON with a checksum, JSON lines, folder locks.

    >>> write_json("runs/m0/config.json", {"seed": 1}, checksummed=True)
    >>> read_json("runs/m0/config.json", checksummed=True)
    {'seed': 1}

A reader sees the old file or the new one, never half of it. A process killed while writing leaves
at most a hidden ``.tmp`` file, which `lock_folder` removes. Every `OSError` becomes a one-line
`RunError`. JSON has no NaN and no infinity: they are refused, or become null where values are only
shown (``nan_to_null=True``).
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import math
import os
import secrets
import socket
import stat
import sys
import time
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from io import BufferedReader, FileIO
from pathlib import Path, PurePath
from typing import Any

try:
    import fcntl
except ImportError:  # Windows, where nothing prevents a second writer
    fcntl = None  # type: ignore[assignment]

from iterant.errors import RunError, UsageError, argument
from iterant.formatting import byte_size

PathLike = str | os.PathLike[str]
Record = dict[str, Any]

LARGEST_JSON = 64 << 20
"""In bytes, more than any file that iterant writes; larger ones are refused before reading."""

_MOST_DOTS = 100
"""In a line of TOML: the time and memory to read a key a.a.a… grow with the square of its parts."""

LOCK = "lock"
"""The file that `lock_folder` locks."""

_NO_WAIT, _NO_LINK = (getattr(os, name, 0) for name in ("O_NONBLOCK", "O_NOFOLLOW"))
"""Flags that Windows does not have."""


def quoted(path: PathLike) -> str:
    """A path for a message: in quotes and on one line."""
    return repr(os.fspath(path))


@contextlib.contextmanager
def one_line_errors(verb: str, path: PathLike) -> Iterator[None]:
    """Turn an `OSError` into a one-line `RunError`: ``with one_line_errors("write", path):``."""
    try:
        yield
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise RunError(
            f"cannot {verb} {quoted(path)}: {reason}; "
            "check the path, its permissions and the free space"
        ) from error


def cache_folder() -> Path:
    """The user's cache folder for iterant."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "iterant"


def make_folder(path: PathLike) -> Path:
    """Create a folder with its parents where it is missing."""
    folder = Path(path)
    with one_line_errors("make the folder", folder):
        folder.mkdir(parents=True, exist_ok=True)
    return folder


def make_subfolder(path: PathLike) -> Path:
    """Create a folder that iterant keeps within a run or sweep, which must not be a link."""
    check_no_link(path)
    return make_folder(path)


def check_no_link(path: PathLike) -> None:
    """Refuse a symbolic link where iterant makes a folder itself.

    With ``checkpoints -> ~/other`` in a run folder from someone else, files would be written and
    removed there. The owner of the link says nothing: unpacked from an archive, it is the user.
    The folder that the user names may be a link.
    """
    if Path(path).is_symlink():
        raise RunError(
            f"{quoted(path)} is a symbolic link to another folder, where nothing is written; to "
            "keep files on another disk, give a folder there, or a link to it, as "
            f"{argument('out')}"
        )


# Checks before long work: can the result be written? They create nothing.


def check_writable_file(path: PathLike) -> Path:
    """Check that a file can be written into an existing folder."""
    target = Path(path)
    if target.is_dir() or not target.parent.is_dir():
        missing = f"there is no folder {quoted(target.parent)}"
        problem = "it is a folder" if target.is_dir() else missing
        raise UsageError(f"cannot write {quoted(path)}: {problem}; choose another name or folder")
    check_writable_folder(target.parent)
    return target


def check_writable_folder(path: PathLike) -> Path:
    """Check that files can be written into a folder, which may have to be created."""
    folder = Path(path)
    existing = next(p for p in (folder, *folder.absolute().parents) if os.path.lexists(p))
    if not existing.is_dir() or not os.access(existing, os.W_OK | os.X_OK):
        problem = "cannot be written" if existing.is_dir() else "is not a folder"
        raise UsageError(
            f"cannot write into {quoted(path)}: {quoted(existing)} {problem}; choose another folder"
        )
    return folder


def check_new_folder(path: PathLike) -> Path:
    """Check that a folder can be written and is empty or absent."""
    folder = check_writable_folder(path)
    if folder.is_dir() and any(folder.iterdir()):
        raise UsageError(
            f"{folder} is there already; give a new or an empty folder as {argument('out')}"
        )
    return folder


def check_no_other_files(folder: Path, names: Collection[str], kind: str) -> None:
    """Check that a folder, if there is one, has only these files of a run or sweep."""
    for name in sorted(entry.name for entry in folder.glob("[!.]*")):
        if name not in names:
            raise RunError(
                f"{quoted(folder)} is not empty (it has {name!r}) and is not a {kind}; "
                f"choose another {argument('out')}"
            )


# Bytes
#
# A folder may come from someone else, so a name in it may be a pipe (opening it would wait for
# ever), a device, or a link to a file elsewhere. Files are opened without waiting and must be
# regular. To write, links are not followed; `write_atomic` replaces a link, as it replaces a file.


def open_to_read(path: PathLike, *, pipes: bool = False) -> BufferedReader:
    """Open a regular file; with ``pipes`` also a pipe or device that the user named.

    A pipe that no process has open for writing is at its end at once.
    """
    file = FileIO(path, "r", opener=lambda path, flags: os.open(path, flags | _NO_WAIT))
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        if not pipes:
            file.close()
            raise OSError(errno.EINVAL, "it is a pipe or a device, not a file")
        os.set_blocking(file.fileno(), True)
    return BufferedReader(file)


def open_to_append(path: PathLike) -> FileIO:
    """Open a file to read and append, or create it; no link, pipe or device."""
    flags = _NO_LINK | _NO_WAIT
    file = FileIO(path, "a+", opener=lambda path, mode: os.open(path, mode | flags, 0o666))
    info = os.fstat(file.fileno())
    if not stat.S_ISREG(info.st_mode) or info.st_nlink > 1:
        file.close()
        raise OSError(errno.EINVAL, "it is a pipe or a device, or a hard link: remove it")
    return file


def check_regular(path: PathLike) -> None:
    """Refuse a pipe or device, for libraries that open a file by its path."""
    with one_line_errors("read", path), open_to_read(path):
        pass


def write_atomic(path: PathLike, data: bytes) -> None:
    """Replace a file in one step: ``write_atomic("a.json", b"{}")``; on failure it is unchanged.

    The bytes are on disk before the name points to them, and the folder is synchronised after, so
    neither a killed process nor a power cut leaves a half-written file.
    """
    path = Path(path)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
    try:
        with one_line_errors("write", path):
            with temporary.open("xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
    with contextlib.suppress(OSError):  # some file systems cannot synchronise a folder
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def read_bytes(path: PathLike, limit: int | None = None, *, pipes: bool = False) -> bytes:
    """Read a file of at most ``limit`` bytes; ``pipes``: see `open_to_read`."""
    with one_line_errors("read", path), open_to_read(path, pipes=pipes) as file:
        data = file.read() if limit is None else file.read(limit + 1)
    if limit is not None and len(data) > limit:
        raise RunError(f"{quoted(path)} is larger than {byte_size(limit)}; check the path")
    return data


def read_toml(path: PathLike) -> dict[str, Any]:
    """Read a TOML file that a user wrote."""
    try:
        text = read_bytes(path, 1 << 20, pipes=True).decode()
        if any(line.count(".") > _MOST_DOTS for line in text.splitlines()):
            raise ValueError(
                f"a line has more than {_MOST_DOTS} dots; write a long list with one value a line"
            )
        return tomllib.loads(text)
    except RunError as error:
        raise UsageError(str(error)) from error
    except (ValueError, RecursionError) as error:
        cause = str(error) or "it is nested too deeply"
        raise UsageError(f"{quoted(path)} is not a TOML file for iterant: {cause}") from error


# JSON


def to_json(value: Any, *, nan_to_null: bool = False) -> Any:
    """Convert a value to dict, list, str, int, float, bool and None.

    Tuples become lists, paths text, numpy and torch values numbers and lists.
    """

    def plain(other: Any) -> Any:
        if isinstance(other, Mapping):
            return dict(other)
        if isinstance(other, PurePath):
            return str(other)
        if hasattr(other, "tolist"):
            return other.tolist()
        raise TypeError(f"{str(other)[:50]!r} is a {type(other).__name__}")

    try:
        text = json.dumps(value, default=plain, allow_nan=nan_to_null)
        return json.loads(text, parse_constant=lambda _: None)
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(
            f"cannot write this as JSON: {error}; give text, finite numbers, lists and dicts"
        ) from error


def checksum(value: dict[str, Any]) -> str:
    """The SHA-256 of a JSON object, independent of spacing and key order."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def write_json(
    path: PathLike, value: Any, *, checksummed: bool = False, nan_to_null: bool = False
) -> None:
    """Write a value as JSON, atomically; ``checksummed`` adds the checksum of an object."""
    content = to_json(value, nan_to_null=nan_to_null)
    if checksummed:
        content = {**content, "sha256": checksum(content)}
    write_atomic(path, json.dumps(content, indent=1).encode() + b"\n")


def read_json(path: PathLike, *, checksummed: bool = False) -> Any:
    """Read a JSON file; verify and remove the checksum of one that was written with it."""
    value = _parse(read_bytes(path, LARGEST_JSON), quoted(path))
    if checksummed and (
        not isinstance(value, dict) or value.pop("sha256", None) != checksum(value)
    ):
        raise RunError(
            f"{quoted(path)} does not match its own checksum: it was damaged, edited or not "
            "written by iterant; restore it from a copy"
        )
    return value


def _parse(data: bytes, where: str) -> Any:
    """Parse JSON without NaN and infinities; ``where`` names the file in errors."""

    def finite(text: str) -> float:
        if not math.isfinite(float(text)):
            raise ValueError(f"{text[:20]} is not a JSON number")
        return float(text)

    try:
        return json.loads(data.decode(), parse_constant=finite, parse_float=finite)
    except (ValueError, RecursionError) as error:
        raise RunError(f"{where} is not valid JSON ({error}); restore it from a copy") from None


# JSON lines: one record a line, appended during a run.
#
# A process killed while appending leaves a torn last line, without its newline. `read_lines` skips
# it and the next `append_line` cuts it off.


def append_line(path: PathLike, record: Mapping[str, Any]) -> None:
    """Append a record, with null for NaN; on failure the file keeps its complete lines.

    The line reaches the operating system at once: a killed process loses nothing, a power cut may
    lose the last seconds.
    """
    data = _line(record)
    with one_line_errors("append to", path), open_to_append(path) as file:
        end = file.seek(0, os.SEEK_END)
        file.seek(max(0, end - 1))
        if file.read() != b"\n":
            end -= len(read_bytes(path).rpartition(b"\n")[2])
        file.truncate(end)
        while data:  # one call may write less than it is given
            data = data[file.write(data) :]


def write_lines(path: PathLike, records: Iterable[Mapping[str, Any]]) -> None:
    """Replace the file by these records, atomically."""
    write_atomic(path, b"".join(map(_line, records)))


def read_lines(path: PathLike) -> list[Record]:
    """All complete records; a damaged line other than a torn last one is an error."""
    *lines, _ = read_bytes(path).split(b"\n")
    records = []
    for number, line in enumerate(lines, start=1):
        where = f"line {number} of {quoted(path)}"
        record = _parse(line, where)
        if not isinstance(record, dict):
            raise RunError(f"{where} is not a JSON object; restore it from a copy")
        records.append(record)
    return records


def _line(record: Mapping[str, Any]) -> bytes:
    return json.dumps(to_json(record, nan_to_null=True)).encode() + b"\n"


# Locks: one writer per folder.
#
# The lock is the system's advisory `flock` on a file, whose content is for messages. It ends with
# the process, so a stale lock cannot exist. On NFS it works where the server offers locks. The
# package filelock has exclusive locks only. Asking whether a folder is locked needs a shared one:
# processes that ask at the same time do not see each other, and the file may be read-only.


@contextlib.contextmanager
def lock_folder(folder: PathLike) -> Iterator[None]:
    """Lock a folder and remove temporary files of killed writers; an error if it is locked."""
    path = Path(folder) / LOCK
    with contextlib.ExitStack() as stack:
        with one_line_errors("lock", path):
            deadline = time.monotonic() + 0.3  # `lock_holder` of others locks for an instant
            file = stack.enter_context(open_to_append(path))
            # The file that was locked must be the one that other processes find by its name.
            while not (
                _try_lock(file) and os.path.samestat(os.fstat(file.fileno()), os.lstat(path))
            ):
                if time.monotonic() > deadline:
                    raise RunError(
                        f"{quoted(folder)} is in use by {lock_holder(folder)}; "
                        "wait for it, stop it, or choose another folder"
                    )
                time.sleep(0.02)
                file.close()
                file = stack.enter_context(open_to_append(path))
            owner = {
                "pid": os.getpid(),
                "host": socket.gethostname(),
                "command": " ".join(" ".join(sys.argv).split()),
                "since": datetime.now(UTC).isoformat(timespec="seconds"),
            }
            file.truncate(0)
            file.write(json.dumps(owner).encode() + b"\n")
            for leftover in path.parent.glob(".*.tmp"):
                leftover.unlink(missing_ok=True)
        yield


def lock_holder(folder: PathLike) -> str | None:
    """The process that writes into a folder, in words, or None."""
    try:
        with open_to_read(Path(folder) / LOCK) as file:
            if _try_lock(file, shared=True):
                return None
            owner = _parse(file.read(1 << 16), "")
        return "process {pid} on {host} since {since} ({command})".format(**owner)
    except OSError:
        return None
    except (RunError, LookupError, TypeError):
        return "another process"


def _try_lock(file: BufferedReader | FileIO, *, shared: bool = False) -> bool:
    with contextlib.suppress(BlockingIOError):
        if fcntl is not None:
            fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        return True
    return False
