"""One writer per folder: ``with lock_folder("runs/m0"): ...``.

The lock is the system's advisory `flock` on the file ``lock``, whose content is for messages. It
ends with the process, so a stale lock cannot exist. On NFS it works where the server offers locks.
The package filelock can tell that a folder is locked only where it may write; the rest would stay.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import socket
import time
from collections.abc import Iterator
from io import FileIO
from pathlib import Path
from typing import Any

from iterant.errors import RunError
from iterant.io.files import PathLike, explain_os_error, quoted
from iterant.io.results import command_line

FILE = "lock"
_files: set[FileIO] = set()


def _close_in_child() -> None:
    """A forked data worker must not keep its parent's lock alive."""
    for file in _files:
        file.close()


os.register_at_fork(after_in_child=_close_in_child)


@contextlib.contextmanager
def lock_folder(folder: PathLike) -> Iterator[None]:
    """Lock a folder and remove what killed writers left; refuse one that is locked already."""
    path = Path(folder) / FILE
    with contextlib.ExitStack() as stack:
        try:
            file = stack.enter_context(FileIO(path, "a+"))
            deadline = time.monotonic() + 0.3  # `lock_info` of another process locks for an instant
            while not _try_lock(file, fcntl.LOCK_EX):
                time.sleep(0.02)
                if time.monotonic() > deadline:
                    raise RunError(
                        f"{quoted(folder)} is in use by {lock_holder(folder)}; "
                        "wait for it, stop it, or choose another folder"
                    )
            owner = {"pid": os.getpid(), "host": socket.gethostname(), "command": command_line(),
                     "since": time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime())}  # fmt: skip
            file.truncate(0)
            file.write(json.dumps(owner).encode() + b"\n")
            _files.add(file)
            stack.callback(_files.discard, file)
            for leftover in path.parent.glob(".*.tmp"):
                leftover.unlink(missing_ok=True)
        except OSError as error:
            raise explain_os_error(error, "lock", path) from error
        yield


def lock_holder(folder: PathLike) -> str | None:
    """The process that writes into a folder, in words, or None."""
    info = lock_info(folder)
    if not info or not {"pid", "host", "since", "command"} <= info.keys():
        return None if info is None else "another process"
    command = " ".join(str(info["command"]).split())
    return f"process {info['pid']} on {info['host']} since {info['since']} ({command})"


def lock_info(folder: PathLike) -> dict[str, Any] | None:
    """The same as a dict (pid, host, since, command), empty where they are not written yet."""
    try:
        with FileIO(Path(folder) / FILE) as file:
            return None if _try_lock(file, fcntl.LOCK_SH) else dict(json.loads(file.read(1 << 16)))
    except OSError:
        return None
    except (TypeError, ValueError):
        return {}


def _try_lock(file: FileIO, kind: int) -> bool:
    with contextlib.suppress(BlockingIOError):
        fcntl.flock(file, kind | fcntl.LOCK_NB)
        return True
    return False
