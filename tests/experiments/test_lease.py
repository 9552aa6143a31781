"""`scripts/lease` with real processes that sleep: lanes, limits, results on the way, an end."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import pytest

LEASE = Path(__file__).resolve().parents[2] / "scripts" / "lease"


class Lease:
    """One in a folder of its own, which is stopped in the end."""

    def __init__(self, path: Path) -> None:
        self.path, self.at = path, path / "at"

    def say(self, verb: str, *words: str, code: int = 0) -> str:
        """What a verb prints; of one that fails, its one line."""
        told = subprocess.run(
            [sys.executable, LEASE, verb, "--at", self.at, *words],
            capture_output=True, text=True, cwd=self.path, timeout=60, check=False,
        )  # fmt: skip
        assert told.returncode == code, told.stderr
        return told.stderr if code else told.stdout

    def start(self, *lines: str, until: str = "30", code: int = 0) -> str:
        (self.path / "jobs.txt").write_text("\n".join(lines), encoding="utf-8")
        return self.say("start", "--jobs", "jobs.txt", "--until", until, code=code)

    def ended(self, seconds: str = "30") -> dict[str, str]:
        lines = self.say("wait", "--seconds", seconds, "--out", "out").splitlines()
        return {line[:24].strip(): line[25:] for line in lines}

    def packed(self) -> dict[str, str]:
        """The files that came home."""
        with tarfile.open(self.path / "out" / "lease.tar.gz") as tar:
            tar.extractall(self.path / "home", filter="data")
        home = self.path / "home" / "jobs"
        return {str(file.relative_to(home)): file.read_text() for file in home.rglob("*")
                if file.is_file()}  # fmt: skip


@pytest.fixture
def lease(tmp_path: Path) -> Lease:
    return Lease(tmp_path)


def alive(pid: int) -> bool:
    """Whether there is such a process, and it is no corpse."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_lane_is_one_after_the_other_and_lanes_are_side_by_side(lease: Lease) -> None:
    # first waits for what only the other lane makes; third finds what first left.
    lease.start(
        "# two lanes",
        "gpu   first  20  while [ ! -e made ]; do sleep 0.05; done; echo 1 > $HERE/r.json",
        "gpu   third  20  cat $HERE/../first/r.json > $HERE/copy.json",
        "cpu1  other  20  touch made; echo threads $OMP_NUM_THREADS gpu:$CUDA_VISIBLE_DEVICES.",
        "",
    )
    told = lease.ended()
    assert list(told) == ["first", "third", "other"]
    assert all(", exit code 0" in text for text in told.values())
    files = lease.packed()
    assert files["third/copy.json"] == files["first/r.json"] == "1\n"
    assert files["other/log"] == "threads 1 gpu:.\n"


def test_a_job_ends_at_its_time_with_all_that_it_started_and_the_next_begins(lease: Lease) -> None:
    lease.start(
        "gpu  long   1  sleep 60 & echo $! > $HERE/pid; wait",
        "gpu  next   5  echo here",
        "gpu  wrong  5  exit 3",
    )
    told = lease.ended()
    assert told["long"].endswith("exit code 124, ended at its time")
    assert told["wrong"].endswith("exit code 3")
    files = lease.packed()
    assert files["next/log"] == "here\n"
    assert not alive(int(files["long/pid"]))


def test_nothing_begins_after_the_end_of_the_whole(lease: Lease) -> None:
    lease.start("gpu  long  20  sleep 20", "gpu  late  20  touch $HERE/x", until="1")
    told = lease.ended()
    assert "ended at its time" in told["long"]
    assert told["late"] == "not begun: the time is over"


def test_results_come_home_on_the_way_and_hidden_files_do_not(lease: Lease) -> None:
    lease.start(
        "gpu  slow  60  echo half > $HERE/a.json; touch $HERE/.part $HERE/made; sleep 60",
        "gpu  later 60  true",
    )
    made, deadline = lease.at / "jobs" / "slow" / "made", time.monotonic() + 20
    while not made.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    told = lease.ended("0")
    assert told == {"slow": "runs", "later": "waits"}
    assert set(lease.packed()) == {"slow/a.json", "slow/made", "slow/log"}
    pid = int((lease.at / "pid").read_text())
    assert os.getsid(pid) == pid, "it outlives the shell that started it"
    assert "stopped" in lease.say("stop")
    assert not alive(pid)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("gpu name soon true", "line 1 of jobs.txt is no LANE NAME SECONDS COMMAND"),
        ("gpu name 5", "line 1 of jobs.txt is no LANE NAME SECONDS COMMAND"),
        ("gpu ../x 5 true", "'../x' is no new name for a folder"),
        ("gpu a 5 true\ngpu a 5 true", "line 2 of jobs.txt: 'a' is no new name"),
    ],
)
def test_a_wrong_list_is_refused_before_anything_begins(lease: Lease, line: str, told: str) -> None:
    text = lease.start(line, code=1)
    assert told in text
    assert text.count("\n") == 1
    assert not lease.at.exists()


def test_what_is_too_large_stays_and_is_named(lease: Lease) -> None:
    lease.start("gpu a 5 head -c 3000000 /dev/zero > $HERE/large; echo 1 > $HERE/small.json")
    lease.ended()
    text = lease.say("collect", "--out", "out", "--most", "2")
    assert text.startswith("no room for jobs/a/large\n")
    assert set(lease.packed()) == {"a/small.json", "a/log"}


def test_a_folder_is_used_once(lease: Lease) -> None:
    lease.start("gpu a 5 true")
    lease.ended()
    assert "a new folder" in lease.start("gpu a 5 true", code=1)
