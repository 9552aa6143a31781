"""Atomic writes, JSON, JSON lines and locks: a file is old or new, and an error is one line."""

import fcntl
import json
import math
import multiprocessing
import os
import resource
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from iterant.errors import IterantError, RunError, UsageError
from iterant.io import files
from iterant.io.files import (
    LOCK,
    append_line,
    check_new_folder,
    check_writable_file,
    check_writable_folder,
    lock_folder,
    lock_holder,
    make_folder,
    read_json,
    read_lines,
    to_json,
    write_atomic,
    write_json,
    write_lines,
)

CONTENT = {"seed": 3, "rate": 1e-3, "name": "maze é", "sizes": [9, 13], "deep": {"a": None}}
RECORDS: list[dict[str, Any]] = [
    {"step": 1, "loss": 0.5},
    {"step": 2, "text": "é\n}"},
    {"step": 3, "deep": {"a": [1]}},
]


def check_message(caught: pytest.ExceptionInfo[IterantError], *parts: str) -> None:
    text = str(caught.value)
    assert "\n" not in text
    assert ";" in text, "the remedy is missing"
    assert all(part in text for part in parts), text


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


# Bytes


@pytest.fixture
def small_files(tmp_path: Path) -> Iterator[Path]:
    """A folder in which a file may have 4,096 bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    yield tmp_path
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_write_that_fails_keeps_old_files_and_lines(small_files: Path) -> None:
    path, lines = small_files / "a.bin", small_files / "m.jsonl"
    write_atomic(path, b"old")
    append_line(lines, {"step": 1})
    with pytest.raises(RunError) as caught:
        write_atomic(path, bytes(3 << 20))
    check_message(caught, "file too large", repr(str(path)))
    with pytest.raises(RunError) as caught:
        append_line(lines, {"text": "x" * (2 << 20)})
    check_message(caught, "file too large", repr(str(lines)))
    assert path.read_bytes() == b"old"
    assert names(small_files) == {"a.bin", "m.jsonl"}
    append_line(lines, {"step": 2})
    assert read_lines(lines) == [{"step": 1}, {"step": 2}]


@pytest.mark.parametrize("place", ["missing/a.json", "folder", "x" * 300, "two\nlines/a.json"])
def test_unwritable_folders_and_names(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()
    with pytest.raises(RunError) as caught:
        write_atomic(tmp_path / place, b"new")
    check_message(caught, "cannot write", repr(str(tmp_path / place)))
    with pytest.raises(RunError, match="cannot make the folder"):
        make_folder(tmp_path / "file" / place.strip("/"))


def test_file_and_folder_are_synchronised_and_an_interrupt_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kinds: list[bool] = []
    monkeypatch.setattr(os, "fsync", lambda h: kinds.append(stat.S_ISDIR(os.fstat(h).st_mode)))
    for data in (b"first", b"", b"old"):
        write_atomic(tmp_path / "a.bin", data)
        assert [p.read_bytes() for p in tmp_path.iterdir()] == [data]
    assert kinds == [False, True] * 3

    def interrupt(handle: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_atomic(tmp_path / "a.bin", b"new")
    assert [p.read_bytes() for p in tmp_path.iterdir()] == [b"old"]


# JSON


def test_cut_and_flipped_json_is_detected(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    write_json(path, CONTENT, checksummed=True)
    assert read_json(path, checksummed=True) == CONTENT
    data = path.read_bytes()
    for length in range(len(data) - 1):
        path.write_bytes(data[:length])
        with pytest.raises(RunError) as caught:
            read_json(path, checksummed=True)
        check_message(caught, repr(str(path)))
    for position in range(data.index(b"maze") * 8, data.index(b"maze") * 8 + 32):
        damaged = bytearray(data)
        damaged[position // 8] ^= 1 << (position % 8)
        path.write_bytes(damaged)
        with pytest.raises(RunError, match=r"a\.json"):
            read_json(path, checksummed=True)


@pytest.mark.parametrize(
    "data",
    [b"", b"\xff\xfe{}", b'{"a": NaN}', b'{"a": 1e999}', b"[" * 100_000, b"1" * 5000, b'{"a": 1}',
     b"[]", b" " * 30_000],
)  # fmt: skip
def test_foreign_json_is_refused(
    tmp_path: Path, data: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "LARGEST_JSON", 20_000)
    (tmp_path / "a.json").write_bytes(data)
    with pytest.raises(RunError) as caught:
        read_json(tmp_path / "a.json", checksummed=True)
    check_message(caught, "a.json")


def test_values_become_json_or_are_refused(tmp_path: Path) -> None:
    value = {
        "a": np.float32(0.5),
        "b": np.arange(3),
        "c": torch.tensor(2),
        3: (torch.ones(2), Path("x") / "y"),
    }
    assert to_json(value) == {"a": 0.5, "b": [0, 1, 2], "c": 2, "3": [[1.0, 1.0], "x/y"]}
    path = tmp_path / "a.json"
    for number in (-math.inf, np.float64("nan")):
        write_json(path, {"loss": [1.0, number]}, nan_to_null=True)
        assert read_json(path) == {"loss": [1.0, None]}
    for wrong in (math.inf, np.float64("nan"), {1}, {(1, 2): 1}, object()):
        with pytest.raises(UsageError) as caught:
            write_json(path, {"x": [wrong]})
        check_message(caught, "cannot write this as JSON")
    assert read_json(path) == {"loss": [1.0, None]}


# JSON lines


def test_lines_cut_at_every_byte_are_read_and_repaired(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    for record in RECORDS:
        append_line(path, record)
    data = path.read_bytes()
    write_lines(path, RECORDS)
    assert path.read_bytes() == data
    ends = [i for i in range(len(data)) if data[i : i + 1] == b"\n"]
    for length in range(len(data) + 1):
        path.write_bytes(data[:length])
        whole = RECORDS[: sum(end < length for end in ends)]
        assert read_lines(path) == whole
        append_line(path, {"step": math.nan})
        assert read_lines(path) == [*whole, {"step": None}]
        assert path.read_bytes().endswith(b'\n{"step": null}\n' if whole else b'{"step": null}\n')


def test_damaged_line_is_named_by_number(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    for line in (b'{"a" 2}', b"7"):
        path.write_bytes(b'{"a": 1}\n' + line + b'\n{"a": 3}\n')
        with pytest.raises(RunError) as caught:
            read_lines(path)
        check_message(caught, "line 2 of", "m.jsonl")
    with pytest.raises(RunError, match="no such file"):
        read_lines(tmp_path / "none.jsonl")
    with pytest.raises(RunError, match="cannot append to"):
        append_line(tmp_path, {})


# Checks before writing


@pytest.fixture
def inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for folder in ("full", "empty"):
        (tmp_path / folder).mkdir()
    for file in ("file", "full/a"):
        (tmp_path / file).touch()
    return tmp_path


def test_checks_accept_writable_paths_and_create_nothing(inside: Path) -> None:
    before = sorted(inside.rglob("*"))
    for place in ("empty", "full", "new", "new/newer/newest"):
        assert check_writable_folder(inside / place) == inside / place
        assert check_writable_folder(place) == Path(place)
    for place in ("empty", "new"):
        assert check_new_folder(inside / place) == inside / place
    assert check_writable_file(inside / "file") == inside / "file"
    assert check_writable_file("here.png") == Path("here.png")
    assert sorted(inside.rglob("*")) == before


def test_checks_refuse_unwritable_paths(inside: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = [(check_writable_folder, p) for p in ("file", "file/below", "file/far/below")]
    wrong += [(check_writable_file, p) for p in ("new/a.png", "full", "file/a.png")]
    for check, place in [*wrong, (check_new_folder, "full")]:
        with pytest.raises(UsageError) as caught:
            check(inside / place)
        check_message(caught)
    # Tests may run as root, who may write anywhere, so the system's answer is replaced.
    monkeypatch.setattr(os, "access", lambda path, mode: path != inside or not mode & os.W_OK)
    for check, place in ((check_writable_folder, "new/a"), (check_writable_file, "b")):
        with pytest.raises(UsageError, match="cannot be written; choose another"):
            check(inside / place)


# Locks

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
    check_message(caught, f"process {child.pid} on ", " since 20")
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
        with pytest.raises(RunError, match=f"process {os.getpid()} "), lock_folder(tmp_path):
            pass
    if not killed:
        ours.send("end")
        child.join()


@pytest.mark.parametrize("content", [b"", b'{"pid": 7}', b"\xff\x00", b"[" * 60_000])
def test_content_of_the_lock_does_not_matter(tmp_path: Path, content: bytes) -> None:
    with lock_folder(tmp_path):
        (tmp_path / LOCK).write_bytes(content)
        assert lock_holder(tmp_path) == "another process"
    assert lock_holder(tmp_path) is None
    with lock_folder(tmp_path):
        pass


def test_a_process_that_looks_does_not_disturb(tmp_path: Path) -> None:
    with (tmp_path / LOCK).open("w") as file:
        fcntl.flock(file, fcntl.LOCK_SH)  # as `lock_holder` does for an instant
        threading.Timer(0.1, fcntl.flock, (file, fcntl.LOCK_UN)).start()
        with lock_folder(tmp_path):
            assert lock_holder(tmp_path) is not None


def test_locking_removes_leftovers_and_needs_a_folder(tmp_path: Path) -> None:
    for name in (".a.json.0123456789ab.tmp", "a.json", ".hidden"):
        (tmp_path / name).touch()
    with lock_folder(tmp_path):
        assert names(tmp_path) == {LOCK, "a.json", ".hidden"}
    with pytest.raises(RunError, match="cannot lock"), lock_folder(tmp_path / "missing"):
        pass
    assert lock_holder(tmp_path / "missing") is None


ELSEWHERE = """
import os, signal, sys
sys.modules["fcntl"] = None
for module, names in ((os, "O_NONBLOCK O_NOFOLLOW O_CLOEXEC sched_getaffinity sysconf getloadavg"),
                      (signal, "SIGUSR1")):
    for name in names.split():
        delattr(module, name)
import iterant.cli.main
from iterant.runner.worker import Launch, capacity
from iterant.training import train
assert capacity(Launch()) >= 1
run = train("prefix-sums", out="run", device="cpu", recipe="paper", width=4, head=(4,), count=20,
            iterations=2, batch=10, epochs=1, watch_every=0)
assert run.status.state == "finished"
"""


def test_a_run_without_what_only_unix_or_linux_has(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", ELSEWHERE], cwd=tmp_path, check=True)
