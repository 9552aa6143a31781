"""Atomic writes, JSON and JSON lines: a file is old or new, and an error is one line."""

import json
import math
import os
import resource
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from iterant.errors import IterantError, RunError, UsageError
from iterant.io.files import (
    append_line,
    check_new_folder,
    check_writable_file,
    check_writable_folder,
    is_torn,
    make_folder,
    read_json,
    read_lines,
    remove_leftovers,
    to_json,
    write_atomic,
    write_json,
    write_lines,
)
from iterant.io.results import write_result

CONTENT = {"seed": 3, "rate": 1e-3, "name": "maze é", "sizes": [9, 13], "deep": {"a": None}}
RECORDS: list[dict[str, Any]] = [
    {"step": 1, "loss": 0.5},
    {"step": 2, "text": "é\n}"},
    {"step": 3, "deep": {"a": [1]}},
]


def one_line(caught: pytest.ExceptionInfo[RunError]) -> str:
    text = str(caught.value)
    assert "\n" not in text
    assert ";" in text, "the remedy is missing"
    return text


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of one megabyte, so that a full disk is a real one."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["/usr/bin/env", "mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", "disk"],
        cwd=tmp_path,
        check=False,
        capture_output=True,
    )
    if mounted.returncode:
        pytest.skip("mounting a small disk needs root")
    yield disk
    subprocess.run(["/usr/bin/env", "umount", "disk"], cwd=tmp_path, check=True)


def test_write_replaces_the_file_and_leaves_no_other(tmp_path: Path) -> None:
    path = tmp_path / "a.bin"
    for data in (b"first", b"", bytes(range(256)) * 1000):
        write_atomic(path, data)
        assert path.read_bytes() == data
        assert [p.name for p in tmp_path.iterdir()] == ["a.bin"]


def test_full_disk_keeps_the_old_file(small_disk: Path) -> None:
    path = small_disk / "a.bin"
    write_atomic(path, b"old")
    with pytest.raises(RunError) as caught:
        write_atomic(path, bytes(3 << 20))
    text = one_line(caught)
    assert "disk is full" in text
    assert "3 MiB needed" in text
    assert "iB free" in text
    assert path.read_bytes() == b"old"
    assert [p.name for p in small_disk.iterdir()] == ["a.bin"]


def test_read_only_disk(small_disk: Path) -> None:
    write_atomic(small_disk / "a.bin", b"old")
    subprocess.run(
        ["/usr/bin/env", "mount", "-o", "remount,ro", "disk"], cwd=small_disk.parent, check=True
    )
    with pytest.raises(RunError, match="read-only"):
        write_atomic(small_disk / "a.bin", b"new")
    assert (small_disk / "a.bin").read_bytes() == b"old"


def test_file_size_limit_keeps_the_old_file_and_lines(tmp_path: Path) -> None:
    path = tmp_path / "a.bin"
    write_atomic(path, b"old")
    lines = tmp_path / "m.jsonl"
    append_line(lines, {"step": 1})
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    try:
        with pytest.raises(RunError) as caught:
            write_atomic(path, bytes(10_000))
        with pytest.raises(RunError, match="cannot append to"):
            append_line(lines, {"text": "x" * 10_000})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert "larger than the system allows" in one_line(caught)
    assert path.read_bytes() == b"old"
    assert read_lines(lines) == [{"step": 1}]
    assert {p.name for p in tmp_path.iterdir()} == {"a.bin", "m.jsonl"}


@pytest.mark.parametrize(
    ("place", "cause"),
    [
        ("missing/a.json", "no such file or folder"),
        ("file/a.json", "a file stands where a folder is wanted"),
        ("folder", "a folder stands where a file is wanted"),
        ("x" * 300, "name is too long"),
        ("two\nlines/a.json", "no such file or folder"),
    ],
)
def test_unwritable_paths(tmp_path: Path, place: str, cause: str) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()
    with pytest.raises(RunError) as caught:
        write_atomic(tmp_path / place, b"new")
    text = one_line(caught)
    assert cause in text
    assert repr(str(tmp_path / place)) in text


@pytest.mark.skipif(not Path("/proc/version").exists(), reason="needs /proc")
def test_unwritable_folder() -> None:
    with pytest.raises(RunError, match=r"cannot write '/proc/a\.json'"):
        write_atomic("/proc/a.json", b"new")
    with pytest.raises(RunError, match="cannot make the folder '/proc/a'"):
        make_folder("/proc/a")


@pytest.mark.parametrize("checksummed", [False, True])
def test_json_round_trip(tmp_path: Path, checksummed: bool) -> None:
    write_json(tmp_path / "a.json", CONTENT, checksummed=checksummed)
    assert read_json(tmp_path / "a.json", checksummed=checksummed) == CONTENT


def test_json_cut_at_every_byte(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    write_json(path, CONTENT, checksummed=True)
    data = path.read_bytes()
    for length in range(len(data)):
        path.write_bytes(data[:length])
        if data[:length] == data.rstrip():
            assert read_json(path, checksummed=True) == CONTENT
            continue
        with pytest.raises(RunError) as caught:
            read_json(path, checksummed=True)
        text = one_line(caught)
        assert repr(str(path)) in text
        assert "empty" in text or "at byte" in text


def test_checksum_detects_flipped_bits(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    write_json(path, CONTENT, checksummed=True)
    data = path.read_bytes()
    refused = 0
    for position in np.random.default_rng(0).integers(len(data) * 8, size=300):
        damaged = bytearray(data)
        damaged[position // 8] ^= 1 << (position % 8)
        path.write_bytes(damaged)
        try:
            assert read_json(path, checksummed=True) == CONTENT  # 1e-3 or 1E-3
        except RunError:
            refused += 1
    assert refused > 290


@pytest.mark.parametrize(
    ("data", "cause"),
    [
        (b"\xff\xfe{}", "byte 0 is not UTF-8"),
        (b'{"a": NaN}', "holds NaN"),
        (b"[" * 100_000, "nested too deeply"),
        (b"1" * 5000, "digits"),
        (b'{"a": 1}', "no checksum"),
        (b"[]", "no checksum"),
        (b" " * 3000, "larger than"),
        (b'{"a": 1 2}', "delimiter at byte 8"),
        (b'{"a": 1\n', "it ends too early, at byte 8"),
    ],
)
def test_foreign_json_is_refused(tmp_path: Path, data: bytes, cause: str) -> None:
    (tmp_path / "a.json").write_bytes(data)
    limit = 2000 if cause == "larger than" else 1 << 20
    with pytest.raises(RunError) as caught:
        read_json(tmp_path / "a.json", checksummed=True, limit=limit)
    assert cause in one_line(caught)


def test_remove_leftovers(tmp_path: Path) -> None:
    for name in (".a.json.0123456789ab.tmp", "a.json", ".hidden"):
        (tmp_path / name).write_text("")
    remove_leftovers(tmp_path)
    assert sorted(p.name for p in tmp_path.iterdir()) == [".hidden", "a.json"]


def test_full_disk_keeps_results_and_metrics(small_disk: Path) -> None:
    result = write_result("figures", {"accuracy": 0.5}, folder=small_disk)
    metrics = small_disk / "metrics.jsonl"
    append_line(metrics, {"step": 1})
    before = result.read_bytes()
    with pytest.raises(RunError, match="disk is full") as caught:
        write_result("figures", {"accuracy": [0.25] * 1_000_000}, folder=small_disk)
    one_line(caught)
    with pytest.raises(RunError, match="disk is full") as caught:
        append_line(metrics, {"text": "x" * (2 << 20)})
    one_line(caught)
    assert result.read_bytes() == before
    assert {entry.name for entry in small_disk.iterdir()} == {result.name, metrics.name}
    append_line(metrics, {"step": 2})
    assert read_lines(metrics) == [{"step": 1}, {"step": 2}]


def test_file_and_folder_are_synchronised_and_an_interrupt_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kinds: list[bool] = []
    monkeypatch.setattr(os, "fsync", lambda h: kinds.append(stat.S_ISDIR(os.fstat(h).st_mode)))
    write_atomic(tmp_path / "a.bin", b"old")
    assert kinds == [False, True]

    def interrupt(handle: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_atomic(tmp_path / "a.bin", b"new")
    assert [p.read_bytes() for p in tmp_path.iterdir()] == [b"old"]


# Conversion to JSON

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(values)
@settings(deadline=None, max_examples=60)
def test_json_values_are_unchanged(value: Any) -> None:
    if "inf" in repr(value):
        assert json.dumps(to_json(value, nan_to_null=True), allow_nan=False)
    else:
        assert json.loads(json.dumps(to_json(value))) == value


def test_numpy_and_torch_values_become_numbers_and_lists() -> None:
    value = {
        "a": np.float32(0.5),
        "b": np.arange(3),
        "c": torch.tensor(2),
        3: (torch.ones(2), Path("x") / "y"),
    }
    assert to_json(value) == {"a": 0.5, "b": [0, 1, 2], "c": 2, "3": [[1.0, 1.0], "x/y"]}


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, np.float64("nan")])
def test_nan_is_refused_or_becomes_null(tmp_path: Path, value: float) -> None:
    with pytest.raises(UsageError, match=r"'best\.loss\[1\]'"):
        to_json({"best": {"loss": [1.0, value]}})
    path = tmp_path / "a.json"
    with pytest.raises(IterantError):
        write_json(path, {"loss": value})
    assert not path.exists()
    write_json(path, {"loss": [1.0, value]}, nan_to_null=True)
    assert read_json(path) == {"loss": [1.0, None]}


def test_other_objects_and_keys_are_refused() -> None:
    with pytest.raises(UsageError, match=r"a set as JSON at 'x'"):
        to_json({"x": {1}})
    with pytest.raises(UsageError, match=r"the key 1\.5"):
        to_json({1.5: 1})


# JSON lines


def test_lines_round_trip(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    for record in RECORDS:
        append_line(path, record)
    append_line(path, {"loss": math.nan})
    assert read_lines(path) == [*RECORDS, {"loss": None}]
    assert path.read_bytes().count(b"\n") == 4


def test_lines_cut_at_every_byte_are_read_and_repaired(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    write_lines(path, RECORDS)
    data = path.read_bytes()
    ends = [i for i in range(len(data)) if data[i : i + 1] == b"\n"]
    for length in range(len(data) + 1):
        path.write_bytes(data[:length])
        whole = RECORDS[: sum(end <= length for end in ends)]
        assert is_torn(path) == (length not in (0, *ends, *(end + 1 for end in ends)))
        assert read_lines(path) == whole
        append_line(path, {"step": 9})
        assert read_lines(path) == [*whole, {"step": 9}]
        assert path.read_bytes().endswith(b'\n{"step": 9}\n' if whole else b'{"step": 9}\n')


def test_long_torn_line_is_repaired(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    path.write_bytes(b'{"step": 1}\n{"text": "' + b"x" * 200_000)
    append_line(path, {"step": 2})
    assert read_lines(path) == [{"step": 1}, {"step": 2}]


def test_damaged_line_is_named_by_number(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    path.write_bytes(b'{"a": 1}\n{"a" 2}\n{"a": 3}\n')
    with pytest.raises(RunError, match=r"line 2 of '.*m.jsonl' is not valid JSON: .* byte 5"):
        read_lines(path)
    path.write_bytes(b'{"a": 1}\n7\n')
    with pytest.raises(RunError, match=r"line 2 .* is not a JSON object"):
        read_lines(path)
    with pytest.raises(RunError, match="no such file"):
        read_lines(tmp_path / "none.jsonl")
    with pytest.raises(RunError, match="a folder stands where a file is wanted"):
        append_line(tmp_path, {})


# Checks before writing


@pytest.fixture
def inside(tmp_path: Path) -> Path:
    (tmp_path / "file").write_text("")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "a").write_text("")
    (tmp_path / "empty").mkdir()
    return tmp_path


def test_checks_accept_writable_paths_and_create_nothing(
    inside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = sorted(inside.rglob("*"))
    for place in ("empty", "full", "new", "new/newer/newest"):
        assert check_writable_folder(inside / place) == inside / place
    for place in ("empty", "new"):
        assert check_new_folder(inside / place) == inside / place
    assert check_writable_file(inside / "file") == inside / "file"
    monkeypatch.chdir(inside)
    assert check_writable_folder("new/er") == Path("new/er")
    assert check_writable_file("here.png") == Path("here.png")
    assert sorted(inside.rglob("*")) == before


def test_checks_refuse_unwritable_paths(inside: Path) -> None:
    for place in ("file", "file/below", "file/far/below"):
        with pytest.raises(UsageError, match=r"file' is no folder; choose another"):
            check_writable_folder(inside / place)
    with pytest.raises(UsageError, match="full is there already"):
        check_new_folder(inside / "full")
    with pytest.raises(UsageError, match="there is no folder"):
        check_writable_file(inside / "new" / "a.png")
    with pytest.raises(UsageError, match="it is a folder"):
        check_writable_file(inside / "full")


def test_checks_ask_the_system_about_permissions(
    inside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests may run as root, who may write anywhere, so the system's answer is replaced."""
    folders: list[str] = []

    def access(path: str, mode: int) -> bool:
        folders.append(str(path))
        return not mode & os.W_OK

    monkeypatch.setattr(os, "access", access)
    for place, check in (
        ("new/a", check_writable_folder),
        ("empty", check_new_folder),
        ("b", check_writable_file),
    ):
        with pytest.raises(UsageError, match="nothing may be written into the folder"):
            check(inside / place)
    assert folders == [str(inside), str(inside / "empty"), str(inside)]
