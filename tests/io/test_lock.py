"""One writer at a time, and no lock outlives its process."""

import fcntl
import json
import multiprocessing
import os
import threading
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from iterant.errors import RunError
from iterant.io.files import LOCK, lock_folder, lock_holder

START = multiprocessing.get_context("forkserver")


def hold(folder: str, pipe: Connection) -> None:
    with lock_folder(folder):
        pipe.send("locked")
        pipe.recv()
    pipe.send("released")
    pipe.recv()


@pytest.mark.parametrize("killed", [False, True])
def test_one_process_locks_and_its_end_releases(tmp_path: Path, killed: bool) -> None:
    ours, theirs = START.Pipe()
    child = START.Process(target=hold, args=(str(tmp_path), theirs), daemon=True)
    child.start()
    assert ours.recv() == "locked"
    with pytest.raises(RunError) as caught, lock_folder(tmp_path):
        pass
    text = str(caught.value)
    assert f"process {child.pid} on " in text
    assert " since 20" in text
    assert "\n" not in text
    assert lock_holder(tmp_path) is not None
    if killed:
        child.kill()
        child.join()
    else:
        ours.send("release")
        assert ours.recv() == "released"
    assert str(child.pid) in (tmp_path / LOCK).read_text(), "the stale content must be there"
    assert lock_holder(tmp_path) is None
    with lock_folder(tmp_path):
        assert json.loads((tmp_path / LOCK).read_text())["pid"] == os.getpid()
    if not killed:
        ours.send("end")
        child.join()


def test_same_process_cannot_lock_twice(tmp_path: Path) -> None:
    with (
        lock_folder(tmp_path),
        pytest.raises(RunError, match=f"process {os.getpid()} "),
        lock_folder(tmp_path),
    ):
        pass
    assert lock_holder(tmp_path) is None


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"7", b'{"pid": 1}', b"\xff\x00"])
def test_content_of_the_file_does_not_matter(tmp_path: Path, content: bytes) -> None:
    (tmp_path / LOCK).write_bytes(content)
    assert lock_holder(tmp_path) is None
    with lock_folder(tmp_path):
        (tmp_path / LOCK).write_bytes(content)
        assert lock_holder(tmp_path) is not None


def test_a_process_that_looks_does_not_disturb(tmp_path: Path) -> None:
    with (tmp_path / LOCK).open("w") as file:
        fcntl.flock(file, fcntl.LOCK_SH)  # as `lock_info` does for an instant
        threading.Timer(0.1, fcntl.flock, (file, fcntl.LOCK_UN)).start()
        with lock_folder(tmp_path):
            assert lock_holder(tmp_path) is not None


def test_missing_folder(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="cannot lock"), lock_folder(tmp_path / "missing"):
        pass
    assert lock_holder(tmp_path / "missing") is None


def test_locking_removes_leftovers(tmp_path: Path) -> None:
    for name in (".a.json.0123456789ab.tmp", "a.json", ".hidden"):
        (tmp_path / name).touch()
    with lock_folder(tmp_path):
        assert {p.name for p in tmp_path.iterdir()} == {LOCK, "a.json", ".hidden"}
