"""One writer per folder.

    >>> with Lock("runs/m0"):
    ...     train()

The lock is the system's advisory `flock` on the file ``lock``. It ends with the process, so a
stale lock cannot exist. The content of the file (process, host, start, command) is only for
messages. On NFS the lock works between hosts where the server offers locking; a mount with
``nolock`` guards against processes of the same host only.

The package filelock would not replace much of this: most of its versions empty the file on every
attempt, which erases the information about the holder, and it cannot tell whether a folder that
may only be read is locked.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import socket
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any

from iterant.errors import RunError
from iterant.io.files import PathLike, explain_os_error, quoted, remove_leftovers
from iterant.io.results import command_line

FILE = "lock"

_WAIT_SECONDS = 0.3
"""`lock_info` takes a shared lock for an instant, so one failed attempt is not yet a refusal."""

_handles: set[int] = set()


def _close_in_child() -> None:
    """Close the inherited handles: a forked data worker must not keep its parent's lock alive."""
    for handle in _handles:
        with contextlib.suppress(OSError):
            os.close(handle)
    _handles.clear()


os.register_at_fork(after_in_child=_close_in_child)


class Lock:
    """The exclusive right of this process to write into a folder, as a context manager."""

    def __init__(self, folder: PathLike, tidy: Iterable[PathLike] = ()) -> None:
        """Once locked, remove the leftovers of killed writers in the folders of ``tidy``."""
        self.folder = Path(folder)
        self._tidy = tuple(tidy)
        self._handle: int | None = None

    def take(self) -> None:
        """Lock, or raise a `RunError` that names the process holding the lock."""
        path = self.folder / FILE
        owner = {
            "pid": os.getpid(),
            "host": socket.gethostname(),
            "since": datetime.now(UTC).isoformat(timespec="seconds"),
            "command": command_line(),
        }
        try:
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            try:
                deadline = time.monotonic() + _WAIT_SECONDS
                while not _try_lock(handle, fcntl.LOCK_EX):
                    if time.monotonic() > deadline:
                        raise RunError(
                            f"{quoted(self.folder)} is in use by {_describe(_read(handle))}; "
                            "wait for it, stop it, or choose another folder"
                        )
                    time.sleep(0.02)
                os.ftruncate(handle, 0)
                os.pwrite(handle, json.dumps(owner).encode() + b"\n", 0)
            except BaseException:
                os.close(handle)
                raise
        except OSError as error:
            raise explain_os_error(error, "lock", path) from error
        self._handle = handle
        _handles.add(handle)
        for folder in self._tidy:
            remove_leftovers(folder)

    def release(self) -> None:
        """Unlock; no effect the second time or in a forked child."""
        handle, self._handle = self._handle, None
        if handle in _handles:
            _handles.discard(handle)
            with contextlib.suppress(OSError):
                os.ftruncate(handle, 0)
            os.close(handle)

    def __enter__(self) -> Lock:
        """Lock."""
        self.take()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Unlock."""
        self.release()


def lock_holder(folder: PathLike) -> str | None:
    """The process that writes into a folder, in words, or None."""
    info = lock_info(folder)
    return None if info is None else _describe(info)


def lock_info(folder: PathLike) -> dict[str, Any] | None:
    """The same as a dict (pid, host, since, command), empty where they are not written yet."""
    try:
        handle = os.open(Path(folder) / FILE, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return None if _try_lock(handle, fcntl.LOCK_SH) else _read(handle)
        finally:
            os.close(handle)
    except OSError:
        return None


def _try_lock(handle: int, kind: int) -> bool:
    try:
        fcntl.flock(handle, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _read(handle: int) -> dict[str, Any]:
    with contextlib.suppress(OSError, ValueError):
        value = json.loads(os.pread(handle, 1 << 16, 0))
        if isinstance(value, dict):
            return value
    return {}


def _describe(info: dict[str, Any]) -> str:
    if not {"pid", "host", "since", "command"} <= info.keys():
        return "another process"
    command = " ".join(str(info["command"]).split())
    return f"process {info['pid']} on {info['host']} since {info['since']} ({command})"
