"""Files of a stranger: links, pipes, names that lead elsewhere, small files that claim to be large.

Each is refused in one line, at once, and nothing outside the folder is changed.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import struct
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from bombs import write_bombs

import iterant
from iterant.errors import DataError, IterantError, RunError
from iterant.io import RunFolder
from iterant.io.checkpoint import read_weights
from iterant.io.files import (
    LOCK,
    lock_folder,
    lock_holder,
    read_bytes,
    read_json,
    read_toml,
    write_atomic,
    write_json,
)
from iterant.io.run_folder import list_runs
from iterant.runner.folder import SweepFolder, status
from iterant.runner.plan import Plan, PlannedRun
from iterant.tasks.chess.puzzles import load_puzzles
from iterant.tasks.datasets import read_easy_to_hard
from iterant.tasks.inputs import gather
from iterant.zoo.loading import SHIPPED

BOMBS = Path(__file__).with_name("bombs.py")
LARGEST_MB = 1024
HARMLESS = {"comments.pgn", "nested.pgn", "variations.pgn"}
"""These are read: what makes them expensive is skipped."""


def refused(read: Callable[[], object], *parts: str) -> str:
    """The message of one line with which something is refused."""
    with pytest.raises(IterantError) as caught:
        read()
    text = str(caught.value)
    assert "\n" not in text
    assert all(part in text for part in parts), text
    return text


def at_once(read: Callable[[], object]) -> object:
    """The result, or the error, of something that must not wait for another process."""
    results: list[object] = []

    def run() -> None:
        try:
            results.append(read())
        except IterantError as error:
            results.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(20)
    assert results, "it waits"
    return results[0]


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    config = {"task": "mazes", "recipe": {"name": "quick"}, "net": {}, "seed": 0}
    run = RunFolder.create(tmp_path / "runs" / "m0", config)
    run.save("last", {"net.a": torch.ones(2)}, {"step": 1})
    return run


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A file that does not belong to any run."""
    path = tmp_path / "outside"
    path.write_bytes(b"precious\n")
    return path


# Links


@pytest.mark.parametrize("kind", ["symbolic", "hard", "dangling"])
def test_a_lock_and_lines_are_not_written_through_a_link(
    run: RunFolder, outside: Path, kind: str
) -> None:
    link = os.link if kind == "hard" else os.symlink
    if kind == "dangling":
        outside.unlink()
    for name, write in (
        (LOCK, lambda: run.lock().__enter__()),
        ("metrics.jsonl", lambda: run.log({"step": 1})),
    ):
        (run.path / name).unlink()
        link(outside, run.path / name)
        refused(write, name, "link")
        assert not outside.exists() if kind == "dangling" else outside.read_bytes() == b"precious\n"
    assert lock_holder(run.path) is None


def test_writing_a_whole_file_replaces_a_link(tmp_path: Path, outside: Path) -> None:
    (tmp_path / "a.json").symlink_to(outside)
    write_atomic(tmp_path / "a.json", b"{}")
    assert outside.read_bytes() == b"precious\n"
    assert not (tmp_path / "a.json").is_symlink()


def test_a_lock_that_was_replaced_while_waiting_does_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replaced: list[bool] = []
    lock = fcntl.flock

    def replace_then_lock(file: Any, kind: int) -> None:
        if not replaced:
            replaced.append(True)
            (tmp_path / LOCK).unlink()
            (tmp_path / LOCK).touch()
        lock(file, kind)

    monkeypatch.setattr(fcntl, "flock", replace_then_lock)
    with lock_folder(tmp_path):
        assert json.loads((tmp_path / LOCK).read_text())["pid"] == os.getpid()
        with pytest.raises(RunError, match="in use"), lock_folder(tmp_path):
            pass


def test_checkpoints_elsewhere_are_refused_and_the_folder_itself_may_be_a_link(
    run: RunFolder, tmp_path: Path
) -> None:
    (tmp_path / "scratch").symlink_to(run.path)
    linked = RunFolder.open(tmp_path / "scratch")
    linked.save("last", {"net.a": torch.ones(2)})
    elsewhere = tmp_path / "elsewhere"
    (run.path / "checkpoints").rename(elsewhere)
    (run.path / "checkpoints").symlink_to(elsewhere)
    before = sorted(elsewhere.iterdir())
    refused(lambda: RunFolder.open(run.path), "checkpoints", "symbolic link")
    refused(lambda: run.save("last", {"net.a": torch.zeros(2)}), "symbolic link")
    assert sorted(elsewhere.iterdir()) == before
    assert [one.state for one in list_runs(tmp_path / "runs")] == ["unreadable"]


def plan_of(*names: Any, beside: bool = False, title: Any = "s") -> Plan:
    runs = tuple(PlannedRun(name, "mazes", "quick", 0) for name in names)
    return Plan(title, runs, sibling_folders=beside)


@pytest.mark.parametrize("place", ["runs", "work", "runs/a-s0", "work/a-s0"])
def test_folders_of_a_sweep_that_are_links_are_refused(tmp_path: Path, place: str) -> None:
    folder = SweepFolder.prepare(tmp_path / "sweep", plan_of("a-s0"))
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "a-s0").mkdir(parents=True)
    target = folder.path / place
    shutil.rmtree(target, ignore_errors=True)
    target.symlink_to(elsewhere)
    refused(lambda: status(SweepFolder.open(folder.path)), "symbolic link")
    if place.startswith("work"):
        refused(lambda: folder.work_lock("a-s0"), "symbolic link")
        assert not list(elsewhere.rglob(LOCK))


# Names


WRONG = ["../a", "/a", "a/b", "..", ".", "", ".a", "-a", "a\nb", "a b", "é", "a\\b", "a\0", 7]
WRONG_BESIDE = ["other-s0", "sum s-s0/../../x", "sum s-sx", "sum s", "sum s-s0\n"]


@pytest.mark.parametrize(
    ("beside", "name"), [*((False, name) for name in WRONG), *((True, n) for n in WRONG_BESIDE)]
)
def test_names_in_a_sweep_stay_in_its_folder(tmp_path: Path, beside: bool, name: Any) -> None:
    right = "sum s-s12" if beside else "mazes-quick-rate1e-3+x_y=2.5-s0"
    folder = SweepFolder.prepare(tmp_path / "sum s", plan_of(right, beside=beside))
    assert folder.run_path(right) == (tmp_path if beside else folder.path / "runs") / right
    again = tmp_path / "again" / "sum s"
    refused(lambda: SweepFolder.prepare(again, plan_of(name, beside=beside)), "of the name")


@pytest.mark.parametrize("title", ["a\n#SBATCH --wrap=x", "../a", "a/b", 7, None])
def test_the_name_of_a_sweep_is_one_word_of_a_file_name(tmp_path: Path, title: Any) -> None:
    refused(lambda: SweepFolder.prepare(tmp_path / "sweep", plan_of("a-s0", title=title)), "name")


# Pipes


@pytest.mark.parametrize(
    "name",
    [
        "config.json",
        "status.json",
        "environment.json",
        "metrics.jsonl",
        LOCK,
        "checkpoints/last.json",
    ],
)
def test_a_pipe_in_a_run_folder_is_refused_at_once(run: RunFolder, name: str) -> None:
    run.set_status("running")
    (run.path / name).unlink()
    os.mkfifo(run.path / name)
    summaries: Any = at_once(lambda: list_runs(run.path.parent))
    assert (summaries[0].state == "unreadable") == (
        name in ("config.json", "status.json", "environment.json")
    )
    readers: dict[str, Callable[[], object]] = {
        "metrics.jsonl": run.metrics,
        LOCK: lambda: run.lock().__enter__(),
        "checkpoints/last.json": lambda: run.load("last"),
    }
    error = at_once(readers.get(name, lambda: RunFolder.open(run.path)))
    assert "it is a pipe or a device" in str(error), error
    if name == "metrics.jsonl":
        assert "pipe" in str(at_once(lambda: run.log({})))
        (run.path / name).unlink()
        (run.path / name).symlink_to("/dev/zero")
        assert "pipe or a device" in str(at_once(run.metrics))


def test_shards_puzzles_and_benchmark_files_are_no_pipes(run: RunFolder, tmp_path: Path) -> None:
    (shard,) = (run.path / "checkpoints").glob("*.safetensors")
    shard.unlink()
    os.mkfifo(shard)
    assert "pipe" in str(at_once(lambda: run.load("last")))
    folder = tmp_path / "set"
    for name in ("boards", "moves", "rating", "rating_deviation", "flags", "ids"):
        folder.mkdir(exist_ok=True)
        (folder / f"{name}.npy").write_bytes(b"\x93NUMPY")
    (folder / "boards.npy").unlink()
    os.mkfifo(folder / "boards.npy")
    assert isinstance(at_once(lambda: load_puzzles(folder)), DataError)
    for inputs, targets in (("inputs.npy", "solutions.npy"), ("data.pth", "targets.pth")):
        folder = tmp_path / inputs
        folder.mkdir()
        torch.save(torch.zeros(2, 12, 8, 8), folder / "data.pth")
        np.save(folder / "inputs.npy", np.zeros((2, 3, 24, 24)))
        (folder / ("data.pth" if inputs != "data.pth" else "inputs.npy")).unlink()
        os.mkfifo(folder / targets)
        assert "pipe" in str(at_once(lambda path=folder: read_easy_to_hard(path)))  # type: ignore[misc]


def test_a_pipe_that_the_user_names_is_read(tmp_path: Path) -> None:
    task = iterant.task("prefix-sums")
    os.mkfifo(tmp_path / "drawing.png")
    assert "is empty" in str(at_once(lambda: gather(task, str(tmp_path / "drawing.png"))))
    os.mkfifo(tmp_path / "problems")
    writer = threading.Thread(target=(tmp_path / "problems").write_text, args=("1011\n0110\n",))
    writer.start()
    reading, writing = os.pipe()
    os.write(writing, b"1011\n")
    os.close(writing)
    assert len(gather(task, f"/dev/fd/{reading}").problems) == 1
    os.close(reading)
    reading, writing = os.pipe()
    threading.Timer(0.3, os.write, (writing, b"a = 1\n")).start()
    threading.Timer(0.4, os.close, (writing,)).start()
    assert read_toml(f"/dev/fd/{reading}") == {"a": 1}
    os.close(reading)
    assert read_bytes(tmp_path / "problems", pipes=True) == b"1011\n0110\n"
    writer.join()


# Sizes


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, str, float, int]]:
    """What a process of its own says of every bomb, with the seconds and the memory it took."""
    folder = tmp_path_factory.mktemp("bombs")
    write_bombs(folder)
    process = subprocess.run(
        [sys.executable, str(BOMBS), str(folder)], capture_output=True, text=True, timeout=300
    )
    assert process.returncode == 0, process.stderr[-2000:]
    shutil.rmtree(folder)
    return [tuple(json.loads(line)) for line in process.stdout.splitlines()]


def test_small_files_stay_small(reports: list[tuple[str, str, float, int]]) -> None:
    assert len(reports) > 35
    for name, text, _, memory in reports:
        assert (text == "read") == (name in HARMLESS), (name, text)
        assert "\n" not in text, name
        assert len(text) < 600, name
        assert memory < LARGEST_MB, (name, memory)


@pytest.mark.parametrize(
    ("name", "field", "value"),
    [
        ("mazes-paper", "width", 10**9),
        ("mazes-paper", "blocks", 10**9),
        ("mazes-paper", "classes", 10**12),
        ("mazes-paper", "head", [8] * 100_000),
        ("prefix-sums", "width", 10**9),
        ("mazes", "hidden", 10**9),
        ("chess", "width", 10**30),
    ],
)
def test_a_network_larger_than_its_weights_is_not_built(
    tmp_path: Path, name: str, field: str, value: Any
) -> None:
    folder = shutil.copytree(SHIPPED / name, tmp_path / "net")
    content = read_json(folder / "config.json", checksummed=True)
    content["config"][field] = value
    write_json(folder / "config.json", content, checksummed=True)
    text = refused(lambda: iterant.load(folder))
    assert "cannot be built" in text or "do not fit" in text


def shard_of(header: dict[str, Any], data: bytes) -> bytes:
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


@pytest.mark.parametrize(
    "content",
    [
        shard_of(
            {n: {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]} for n in "ab"}, bytes(8)
        ),
        shard_of({"a": {"dtype": "F32", "shape": [1 << 40], "data_offsets": [0, 1 << 42]}}, b""),
        shard_of({"a": {"dtype": "F32", "shape": [1 << 40], "data_offsets": [0, 8]}}, bytes(8)),
        shard_of({"a": {"dtype": "F32", "shape": [1 << 62, 8], "data_offsets": [0, 0]}}, b""),
        struct.pack("<Q", 1 << 62) + b"{}",
    ],
    ids=["overlapping", "longer than the file", "longer than its bytes", "overflow", "header"],
)
def test_tensors_that_overlap_or_claim_more_than_the_file(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "w.safetensors").write_bytes(content)
    shard = {"file": "w.safetensors", "sha256": hashlib.sha256(content).hexdigest(), "holds": ["a"]}
    index = {"format": 1, "kind": "local-rule", "weights": {"shards": [shard], "split": {}}}
    write_json(tmp_path / "config.json", index, checksummed=True)
    refused(lambda: read_weights(tmp_path), "lists no tensors")


def test_an_index_that_lists_one_file_many_times(tmp_path: Path) -> None:
    folder = shutil.copytree(SHIPPED / "mazes", tmp_path / "net")
    content = read_json(folder / "config.json", checksummed=True)
    content["weights"]["shards"] *= 1000
    write_json(folder / "config.json", content, checksummed=True)
    refused(lambda: read_weights(folder), "twice")
