"""One writer a folder.

    >>> with Lock("runs/m0"):
    ...     train()

The truth is the system's advisory lock (`flock`) on the open file ``lock``: it ends with the
process however that ends, so a stale lock cannot exist and nobody has to guess from process
numbers. What the file says (process, host, since when, command) is for the message alone.

On NFS the lock holds between hosts only where the server offers locking (Linux maps `flock` to
its byte-range locks); a mount with ``nolock`` guards against processes of the same host only.
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

_PATIENCE_SECONDS = 0.3
"""A look from `lock_holder` takes the lock for an instant: do not mistake it for another writer."""

_held: set[int] = set()


def _forget_in_child() -> None:
    """A forked child (a data worker, say) must not keep its parent's lock alive."""
    for handle in _held:
        with contextlib.suppress(OSError):
            os.close(handle)
    _held.clear()


os.register_at_fork(after_in_child=_forget_in_child)


class Lock:
    """The right to write into a folder, from `with` to its end, for this process alone."""

    def __init__(self, folder: PathLike, tidy: Iterable[PathLike] = ()) -> None:
        """Name the folder; nothing is locked before ``with`` or `take`.

        In the folders of ``tidy`` the leftovers of killed writers are removed once it is taken.
        """
        self.folder = Path(folder)
        self._tidy = tuple(tidy)
        self._handle: int | None = None

    def take(self) -> None:
        """Take the lock, or raise a `RunError` that names who has it."""
        path = self.folder / FILE
        try:
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise explain_os_error(error, "lock", path) from error
        try:
            self._wait(handle)
            os.ftruncate(handle, 0)
            os.pwrite(handle, json.dumps(_myself()).encode() + b"\n", 0)
        except OSError as error:
            os.close(handle)
            raise explain_os_error(error, "lock", path) from error
        except BaseException:
            os.close(handle)
            raise
        self._handle = handle
        _held.add(handle)
        for folder in self._tidy:
            remove_leftovers(folder)

    def _wait(self, handle: int) -> None:
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while not _try(handle, fcntl.LOCK_EX):
            if time.monotonic() > deadline:
                raise RunError(
                    f"{quoted(self.folder)} is in use by {_described(_read(handle))}; "
                    "wait for it, stop it, or choose another folder"
                )
            time.sleep(0.02)

    def release(self) -> None:
        """Give the lock back; a second time does nothing."""
        handle, self._handle = self._handle, None
        if handle in _held:  # after a fork the child has none
            _held.discard(handle)
            with contextlib.suppress(OSError):
                os.ftruncate(handle, 0)
            os.close(handle)

    def __enter__(self) -> Lock:
        """Take it."""
        self.take()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Give it back."""
        self.release()


def lock_holder(folder: PathLike) -> str | None:
    """Who writes into a folder, in words, or None when nobody does."""
    who = lock_info(folder)
    return None if who is None else _described(who)


def lock_info(folder: PathLike) -> dict[str, Any] | None:
    """The same as facts: pid, host, since and command; {} where they are not written yet."""
    try:
        handle = os.open(Path(folder) / FILE, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return None if _try(handle, fcntl.LOCK_SH) else _read(handle)
    except OSError:
        return None
    finally:
        os.close(handle)


def _try(handle: int, kind: int) -> bool:
    try:
        fcntl.flock(handle, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _myself() -> dict[str, Any]:
    return {
        "pid": os.getpid(),
        "host": socket.gethostname(),
        "since": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": command_line(),
    }


def _read(handle: int) -> dict[str, Any]:
    with contextlib.suppress(OSError, ValueError):
        value = json.loads(os.pread(handle, 1 << 16, 0))
        if isinstance(value, dict):
            return value
    return {}


def _described(who: dict[str, Any]) -> str:
    if not {"pid", "host", "since", "command"} <= who.keys():
        return "another process"
    return (
        f"process {who['pid']} on {who['host']} since {who['since']} "
        f"({' '.join(str(who['command']).split())})"
    )
