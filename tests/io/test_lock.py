"""One writer at a time, and no lock outlives its process."""

import multiprocessing
import os
import time
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from iterant.errors import RunError
from iterant.io.lock import FILE, Lock, lock_holder

START = multiprocessing.get_context("forkserver")


def hold(folder: str, pipe: Connection) -> None:
    with Lock(folder):
        pipe.send("held")
        pipe.recv()
    pipe.send("released")
    pipe.recv()


def test_second_process_is_refused_with_the_holder(tmp_path: Path) -> None:
    ours, theirs = START.Pipe()
    child = START.Process(target=hold, args=(str(tmp_path), theirs), daemon=True)
    child.start()
    assert ours.recv() == "held"
    with pytest.raises(RunError) as caught:
        Lock(tmp_path).take()
    text = str(caught.value)
    assert f"process {child.pid} on " in text
    assert " since 20" in text
    assert "\n" not in text
    assert lock_holder(tmp_path) is not None
    ours.send("release")
    assert ours.recv() == "released"
    assert lock_holder(tmp_path) is None
    with Lock(tmp_path):
        pass
    ours.send("end")
    child.join()


def test_killed_process_releases_the_lock(tmp_path: Path) -> None:
    ours, theirs = START.Pipe()
    child = START.Process(target=hold, args=(str(tmp_path), theirs), daemon=True)
    child.start()
    assert ours.recv() == "held"
    child.kill()
    child.join()
    assert str(child.pid) in (tmp_path / FILE).read_text(), "the stale content must be there"
    assert lock_holder(tmp_path) is None
    with Lock(tmp_path):
        assert str(os.getpid()) in (tmp_path / FILE).read_text()


def test_same_process_cannot_lock_twice(tmp_path: Path) -> None:
    with Lock(tmp_path), pytest.raises(RunError, match=f"process {os.getpid()} "):
        Lock(tmp_path).take()
    assert lock_holder(tmp_path) is None


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"pid": 1}', b"\xff\x00"])
def test_content_of_the_file_does_not_matter(tmp_path: Path, content: bytes) -> None:
    (tmp_path / FILE).write_bytes(content)
    with Lock(tmp_path) as lock:
        (tmp_path / FILE).write_bytes(content)
        assert lock_holder(tmp_path) == "another process"
    lock.release()


def test_looking_does_not_disturb_a_writer(tmp_path: Path) -> None:
    (tmp_path / FILE).touch()
    for _ in range(20):
        assert lock_holder(tmp_path) is None
        with Lock(tmp_path):
            assert lock_holder(tmp_path) is not None


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_forked_child_does_not_keep_the_lock(tmp_path: Path) -> None:
    lock = Lock(tmp_path)
    lock.take()
    child = multiprocessing.get_context("fork").Process(target=time.sleep, args=(60,))
    child.start()
    try:
        deadline = time.monotonic() + 20
        lock.release()
        while lock_holder(tmp_path) and time.monotonic() < deadline:
            time.sleep(0.01)  # the child closes its copy as it starts
        assert lock_holder(tmp_path) is None
        assert child.is_alive()
    finally:
        child.kill()
        child.join()


def test_missing_folder(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"cannot lock .*no such file or folder"):
        Lock(tmp_path / "missing").take()
    assert lock_holder(tmp_path / "missing") is None


def test_locking_removes_leftovers(tmp_path: Path) -> None:
    (tmp_path / ".a.json.0123456789ab.tmp").touch()
    with Lock(tmp_path, tidy=[tmp_path]):
        assert [p.name for p in tmp_path.iterdir()] == [FILE]
