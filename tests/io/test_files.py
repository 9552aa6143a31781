"""A file is the old one or the new one, and a refusal is one line."""

import resource
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from iterant.errors import IterantError, RunError
from iterant.io import files
from iterant.io.files import (
    append_line,
    read_json,
    read_lines,
    remove_leftovers,
    write_atomic,
    write_json,
)
from iterant.io.results import write_result

CONTENT = {"seed": 3, "rate": 1e-3, "name": "maze é", "sizes": [9, 13], "deep": {"a": None}}


def one_line(caught: pytest.ExceptionInfo[RunError]) -> str:
    text = str(caught.value)
    assert "\n" not in text
    assert ";" in text, "what to do is missing"
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


def test_written_bytes_are_read_back_and_nothing_else_is_left(tmp_path: Path) -> None:
    path = tmp_path / "a.bin"
    for data in (b"first", b"", bytes(range(256)) * 1000):
        write_atomic(path, data)
        assert path.read_bytes() == data
        assert [p.name for p in tmp_path.iterdir()] == ["a.bin"]


def test_a_full_disk_keeps_the_old_file_and_tells_the_sizes(small_disk: Path) -> None:
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


def test_a_read_only_disk_is_named_as_such(small_disk: Path) -> None:
    write_atomic(small_disk / "a.bin", b"old")
    subprocess.run(
        ["/usr/bin/env", "mount", "-o", "remount,ro", "disk"], cwd=small_disk.parent, check=True
    )
    with pytest.raises(RunError, match="read-only"):
        write_atomic(small_disk / "a.bin", b"new")
    assert (small_disk / "a.bin").read_bytes() == b"old"


def test_a_write_that_the_system_cuts_keeps_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "a.bin"
    write_atomic(path, b"old")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    try:
        with pytest.raises(RunError) as caught:
            write_atomic(path, bytes(10_000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert "larger than the system allows" in one_line(caught)
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["a.bin"]


def test_an_interrupt_leaves_no_temporary_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(handle: int, data: bytes) -> None:
        raise KeyboardInterrupt

    write_atomic(tmp_path / "a.bin", b"old")
    monkeypatch.setattr(files, "write_all", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_atomic(tmp_path / "a.bin", b"new")
    assert [p.read_bytes() for p in tmp_path.iterdir()] == [b"old"]


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
def test_places_that_cannot_be_written_are_named(tmp_path: Path, place: str, cause: str) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()
    with pytest.raises(RunError) as caught:
        write_atomic(tmp_path / place, b"new")
    text = one_line(caught)
    assert cause in text
    assert repr(str(tmp_path / place)) in text


@pytest.mark.skipif(not Path("/proc/version").exists(), reason="needs /proc")
def test_a_folder_that_nobody_can_write_is_refused() -> None:
    with pytest.raises(RunError, match=r"cannot write '/proc/a\.json'"):
        write_atomic("/proc/a.json", b"new")
    with pytest.raises(RunError, match="cannot make the folder '/proc/a'"):
        files.make_folder("/proc/a")


@pytest.mark.parametrize("checksummed", [False, True])
def test_json_comes_back_equal(tmp_path: Path, checksummed: bool) -> None:
    write_json(tmp_path / "a.json", CONTENT, checksummed=checksummed)
    assert read_json(tmp_path / "a.json", checksummed=checksummed) == CONTENT


def test_json_cut_at_every_byte_is_an_error_or_whole(tmp_path: Path) -> None:
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


def test_sealed_json_with_any_bit_flipped_is_an_error_or_says_the_same(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    write_json(path, CONTENT, checksummed=True)
    data = path.read_bytes()
    refused = 0
    for position in np.random.default_rng(0).integers(len(data) * 8, size=300):
        damaged = bytearray(data)
        damaged[position // 8] ^= 1 << (position % 8)
        path.write_bytes(damaged)
        try:
            assert read_json(path, checksummed=True) == CONTENT  # such as 1e-3 against 1E-3
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
    ],
)
def test_foreign_json_is_refused_in_one_line(tmp_path: Path, data: bytes, cause: str) -> None:
    (tmp_path / "a.json").write_bytes(data)
    limit = 2000 if cause == "larger than" else 1 << 20
    with pytest.raises(RunError) as caught:
        read_json(tmp_path / "a.json", checksummed=True, limit=limit)
    assert cause in one_line(caught)


def test_what_is_no_number_is_refused_unless_gaps_are_wanted(tmp_path: Path) -> None:
    with pytest.raises(IterantError):
        write_json(tmp_path / "a.json", {"loss": float("nan")})
    assert not (tmp_path / "a.json").exists()
    write_json(tmp_path / "a.json", {"loss": float("nan")}, nan_to_null=True)
    assert read_json(tmp_path / "a.json") == {"loss": None}


def test_a_seal_is_that_of_what_is_said_not_of_how() -> None:
    assert files.checksum({"a": 1, "b": [2, 3]}) == files.checksum({"b": [2, 3], "a": 1})
    assert files.checksum({"a": 1}) != files.checksum({"a": 2})


def test_a_cut_file_says_that_it_ends_too_early() -> None:
    for cut in (b'{"a": 1', b'{"a": 1\n'):
        with pytest.raises(RunError, match=f"it ends too early, at byte {len(cut)}; restore"):
            files.parsed(cut, "here")
    with pytest.raises(RunError, match="delimiter at byte 8"):
        files.parsed(b'{"a": 1 2}', "here")


def test_a_new_name_is_brought_to_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A power cut would show whether the folder was synchronised; nobody can do that here."""
    synced: list[Path] = []
    monkeypatch.setattr(files, "sync_folder", synced.append)
    write_atomic(tmp_path / "a.json", b"{}")
    assert synced == [tmp_path]


def test_leftovers_are_removed_and_other_files_stay(tmp_path: Path) -> None:
    for name in (".a.json.0123456789ab.tmp", "a.json", ".hidden"):
        (tmp_path / name).write_text("")
    remove_leftovers(tmp_path)
    assert sorted(p.name for p in tmp_path.iterdir()) == [".hidden", "a.json"]


def test_a_full_disk_keeps_the_result_that_was_there(small_disk: Path) -> None:
    path = write_result("figures", {"accuracy": 0.5}, folder=small_disk)
    before = path.read_bytes()
    with pytest.raises(RunError, match="disk is full") as caught:
        write_result("figures", {"accuracy": [0.25] * 1_000_000}, folder=small_disk)
    one_line(caught)
    assert path.read_bytes() == before
    assert [entry.name for entry in small_disk.iterdir()] == ["figures.json"]


def test_a_full_disk_keeps_the_metrics_that_were_there(small_disk: Path) -> None:
    path = small_disk / "metrics.jsonl"
    append_line(path, {"step": 1})
    before = path.read_bytes()
    with pytest.raises(RunError, match="disk is full") as caught:
        append_line(path, {"text": "x" * (2 << 20)})
    one_line(caught)
    assert path.read_bytes() == before  # the part that did fit was taken back
    append_line(path, {"step": 2})
    assert read_lines(path) == [{"step": 1}, {"step": 2}]
