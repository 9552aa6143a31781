"""Processes of runs on this machine: retries, stops, interrupts, and how many run in parallel."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from small_sweeps import small_plan

from iterant.cli.main import run
from iterant.runner import Launch, SweepFolder, status
from iterant.runner import worker as worker_module
from iterant.runner.worker import (
    STOPPED,
    capacity,
    failure_reason,
    run_local,
    supervise,
)


def replace_process(monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Run a script as the process of each run; its argument is the run's work folder."""

    def command(folder: SweepFolder, name: str, _: str) -> list[str]:
        return [sys.executable, "-c", script, str(folder.work_path(name))]

    monkeypatch.setattr(worker_module, "command_for", command)


def run_until_end(folder: SweepFolder, name: str, number: signal.Signals | None = None) -> str:
    return supervise(folder, name, Launch(), stop=lambda: number)


def test_a_failure_is_retried_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = SweepFolder.prepare(tmp_path, small_plan(seeds=[0, 1]))
    first, second = folder.planned
    count = "import sys, pathlib as p; f = p.Path(sys.argv[1], 'n'); n = f.exists(); f.touch()\n"
    replace_process(monkeypatch, count + "sys.exit('iterant: error: too hot') if not n else 0")
    assert run_until_end(folder, first) == "done"
    assert (folder.failures(first).failures, folder.failures(first).error) == (1, "too hot")
    replace_process(monkeypatch, count + "f.write_text(f.read_text() + '.'); sys.exit('too cold')")
    for _ in range(2):  # the second call starts no process
        assert run_until_end(folder, second) == "failed"
        assert (folder.work_path(second) / "n").read_text() == ".."
    (state,) = status(folder).of("failed")
    assert (state.name, state.error) == (second, "too cold")


def test_a_stop_is_no_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = SweepFolder.prepare(tmp_path, small_plan(seeds=[0]))
    (name,) = folder.planned
    replace_process(monkeypatch, f"import sys; sys.exit({STOPPED})")
    assert run_until_end(folder, name) == "stopped"
    assert folder.failures(name).failures == 0
    assert run_until_end(folder, name, signal.SIGTERM) == "stopped"


def test_a_run_of_another_process_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = SweepFolder.prepare(tmp_path, small_plan(seeds=[0]))
    (name,) = folder.planned
    replace_process(monkeypatch, "import sys, pathlib as p; p.Path(sys.argv[1], 'up').touch()")
    ends: list[str] = []
    thread = threading.Thread(target=lambda: ends.append(run_until_end(folder, name)))
    with folder.work_lock(name):
        thread.start()
        time.sleep(0.5)
        assert status(folder).counts["running"] == 1
        assert not (folder.work_path(name) / "up").exists()
    thread.join()
    assert ends == ["done"]
    assert (folder.work_path(name) / "up").exists()


@pytest.mark.parametrize(
    ("log", "code", "reason"),
    [("iterant: error: full\nmore output\n", 1, "full"),
     ("a\nKeyError: 3\n\niterant: unexpected error; please report it\n", 1, "KeyError: 3"),
     ("", 7, "exited with code 7 and no output"), ("x", -9, "killed by SIGKILL"),
     ("\udcff\n", 1, "�")],
)  # fmt: skip
def test_failure_reason(tmp_path: Path, log: str, code: int, reason: str) -> None:
    (tmp_path / "log").write_bytes(log.encode(errors="surrogateescape"))
    assert failure_reason(tmp_path / "log", code) == reason


def test_exit_codes_of_the_process(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = SweepFolder.prepare(tmp_path, small_plan(seeds=[0]))
    (name,) = folder.planned

    def exit_code(*words: str) -> Any:
        with pytest.raises(SystemExit) as ended:
            run(["sweep", "one", str(tmp_path), *words, "--device", "cpu"])
        return ended.value.code

    assert exit_code("no-such-run") == 1
    assert capsys.readouterr().err.startswith("iterant: error: ")
    with monkeypatch.context() as patched:
        patched.setattr("iterant.training.loop.Clock.over", True)
        assert exit_code(name) == STOPPED
    assert exit_code(name) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "done"


def test_number_of_runs_in_parallel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = SweepFolder.prepare(tmp_path / "s", small_plan(seeds=list(range(6))))
    script = ("import os, sys, time, pathlib as p; place = p.Path(sys.argv[1]).parent\n"
              "f = place / f'alive{os.getpid()}'; f.touch(); time.sleep(0.2)\n"
              "n = len(list(place.glob('alive*'))); f.unlink()\n"
              "sys.exit(0 if n <= 2 else 'too many')")  # fmt: skip
    replace_process(monkeypatch, script)
    names, ends = list(folder.planned), dict[str, str]()
    run_local(folder, names, Launch(), at_once=2, on_end=ends.__setitem__)
    assert ends == dict.fromkeys(names, "done")
    run_local(folder, names, Launch(), at_once=1, on_end=ends.__setitem__, limit=1e-9)
    assert ends == dict.fromkeys(names, "stopped")
    assert capacity(Launch()) >= 1
    assert capacity(Launch(threads=10_000)) == 1


@pytest.mark.parametrize(("interrupts", "ignored"), [(1, False), (2, True)])
def test_an_interrupt_reaches_the_runs_and_starts_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, interrupts: int, ignored: bool
) -> None:
    """A second interrupt kills processes that ignore the first."""
    folder = SweepFolder.prepare(tmp_path / "s", small_plan(seeds=[0, 1, 2]))
    handler = "pass" if ignored else f"sys.exit({STOPPED})"
    replace_process(
        monkeypatch,
        "import signal, sys, time, pathlib as p\n"
        f"def handle(*_): {handler}\n"
        "signal.signal(signal.SIGTERM, handle); p.Path(sys.argv[1], 'up').touch()\n"
        "while True: time.sleep(0.05)",
    )
    ends: dict[str, str] = {}

    def interrupt() -> None:
        while len(list(folder.path.glob("work/*/up"))) < 2:
            time.sleep(0.02)
        for _ in range(interrupts):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.5)

    threading.Thread(target=interrupt).start()
    run_local(folder, list(folder.planned), Launch(), at_once=2, on_end=ends.__setitem__)
    assert ends == dict.fromkeys(folder.planned, "stopped")
    assert len(list(folder.path.glob("work/*/up"))) == 2
    assert all(folder.failures(name).failures == 0 for name in folder.planned)
