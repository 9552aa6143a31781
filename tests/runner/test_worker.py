"""Minding runs on this machine: retries, stops, interrupts, and as many as there is room for."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from small_sweeps import SLOW, assert_same_runs, small_plan

from iterant.cli.main import run
from iterant.io import read_result
from iterant.runner import Launch, SweepFolder, status, sweep
from iterant.runner import worker as worker_module
from iterant.runner.sweeps import stop
from iterant.runner.worker import (
    STOPPED,
    capacity,
    command_for,
    failure_reason,
    run_local,
    run_one,
    supervise,
)


def acting(monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Let a script stand for the process that works on a run: its place is its first argument."""

    def words(folder: SweepFolder, name: str, launch: Launch, **_: Any) -> list[str]:
        return [sys.executable, "-c", script, str(folder.work_path(name))]

    monkeypatch.setattr(worker_module, "command_for", words)


class TestMinding:
    def test_a_failure_is_retried_once_and_told(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        folder = SweepFolder.prepare(tmp_path, small_plan(seeds=[0, 1]))
        first, second = folder.planned
        count = (
            "import sys, pathlib as p; f = p.Path(sys.argv[1], 'n'); n = f.exists(); f.touch()\n"
        )
        acting(monkeypatch, count + "sys.exit('iterant: error: no luck') if not n else 0")
        assert supervise(folder, first, Launch(), stop=lambda: None) == "done"
        assert folder.failures(first).failures == 1
        assert folder.failures(first).error == "no luck"
        acting(monkeypatch, count + "f.write_text(f.read_text() + '.'); sys.exit('no luck at all')")
        assert supervise(folder, second, Launch(), stop=lambda: None) == "failed"
        assert (folder.work_path(second) / "n").read_text() == ".."
        seen = {run.name: run for run in status(folder).runs}
        assert (seen[second].state, seen[second].error) == ("failed", "no luck at all")
        # Given up on: minding it again starts nothing.
        assert supervise(folder, second, Launch(), stop=lambda: None) == "failed"
        assert (folder.work_path(second) / "n").read_text() == ".."

    def test_a_stop_is_no_failure(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        folder = SweepFolder.prepare(tmp_path, small_plan(seeds=[0]))
        (name,) = folder.planned
        acting(monkeypatch, f"import sys; sys.exit({STOPPED})")
        assert supervise(folder, name, Launch(), stop=lambda: None) == "stopped"
        assert folder.failures(name).failures == 0
        assert supervise(folder, name, Launch(), stop=lambda: "SIGTERM") == "stopped"

    def test_somebody_elses_run_is_let_be(self, tmp_path: Path) -> None:
        folder = SweepFolder.prepare(tmp_path, small_plan(seeds=[0]))
        (name,) = folder.planned
        with folder.work_lock(name):
            assert supervise(folder, name, Launch(), stop=lambda: None) == "elsewhere"
            assert status(folder).counts["running"] == 1

    @pytest.mark.parametrize(
        ("text", "code", "why"),
        [("iterant: error: full\nlater words\n", 1, "full"),
         ("a\nKeyError: 3\n\niterant: unexpected error; please report it\n", 1, "KeyError: 3"),
         ("", 7, "exited with code 7 and no output"), ("x", -9, "killed by SIGKILL"),
         ("\udcff\n", 1, "�")],
    )  # fmt: skip
    def test_the_last_line_that_says_why(
        self, tmp_path: Path, text: str, code: int, why: str
    ) -> None:
        (tmp_path / "log").write_bytes(text.encode(errors="surrogateescape"))
        assert failure_reason(tmp_path / "log", code) == why

    def test_several_processes_are_joined_by_torchrun(self, tmp_path: Path) -> None:
        folder = SweepFolder.prepare(tmp_path, small_plan())
        alone = command_for(folder, "r", Launch(), time_limit=9.0)
        assert alone[1:6] == ["-m", "iterant", "sweep", "one", str(tmp_path)]
        assert alone[-2:] == ["--time", "9.000s"]
        joined = command_for(folder, "r", Launch(processes=2))
        assert joined[1:3] == ["-m", "torch.distributed.run"]
        assert joined[-len(alone) + 3 :] == alone[1:-2]

    def test_the_process_says_how_it_ended(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        folder = SweepFolder.prepare(tmp_path, small_plan(seeds=[0]))
        (name,) = folder.planned

        def exit_code(*words: str) -> Any:
            with pytest.raises(SystemExit) as ended:
                run(["sweep", "one", str(tmp_path), *words, "--device", "cpu"])
            return ended.value.code

        assert exit_code("nothing") == 1
        assert capsys.readouterr().err.startswith("iterant: error: ")
        assert exit_code(name, "--time", "0.001") == STOPPED
        assert exit_code(name, "--resume") == 0
        assert capsys.readouterr().out.splitlines()[-1] == "done"


class TestHere:
    def test_as_many_as_there_is_room_for(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        folder = SweepFolder.prepare(tmp_path / "s", small_plan(seeds=list(range(6))))
        script = ("import os, sys, time, pathlib as p; place = p.Path(sys.argv[1]).parent\n"
                  "f = place / f'alive{os.getpid()}'; f.touch(); time.sleep(0.2)\n"
                  "n = len(list(place.glob('alive*'))); f.unlink()\n"
                  "sys.exit(0 if n <= 2 else 'crowded')")  # fmt: skip
        acting(monkeypatch, script)
        ends: dict[str, str] = {}
        assert run_local(folder, list(folder.planned), Launch(), at_once=2,
                        on_end=ends.__setitem__) is None  # fmt: skip
        assert ends == dict.fromkeys(folder.planned, "done")
        ends.clear()
        run_local(folder, list(folder.planned), Launch(), at_once=1, on_end=ends.__setitem__,
                  time_for=lambda name: 0.0)  # fmt: skip
        assert set(ends.values()) == {"no time left"}
        assert capacity(Launch()) >= 1
        assert capacity(Launch(processes=10_000)) == 1

    @pytest.mark.parametrize(("interrupts", "stubborn"), [(1, False), (2, True)])
    def test_an_interrupt_reaches_the_runs_and_starts_no_more(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, interrupts: int, stubborn: bool
    ) -> None:
        folder = SweepFolder.prepare(tmp_path / "s", small_plan(seeds=[0, 1, 2]))
        answer = "pass" if stubborn else f"sys.exit({STOPPED})"
        acting(monkeypatch, "import signal, sys, time, pathlib as p\n"
               f"def leave(*_): {answer}\n"
               "signal.signal(signal.SIGTERM, leave); p.Path(sys.argv[1], 'up').touch()\n"
               "while True: time.sleep(0.05)")  # fmt: skip
        ends: dict[str, str] = {}

        def interrupt() -> None:
            while len(list(folder.path.glob("work/*/up"))) < 2:
                time.sleep(0.02)
            for _ in range(interrupts):
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(0.5)

        threading.Thread(target=interrupt).start()
        why = run_local(folder, list(folder.planned), Launch(), at_once=2, on_end=ends.__setitem__)
        assert why == ("at once" if stubborn else "SIGINT")
        assert ends == dict.fromkeys(folder.planned, "stopped")
        assert len(list(folder.path.glob("work/*/up"))) == 2
        assert all(folder.failures(name).failures == 0 for name in folder.planned)

    @pytest.mark.system
    def test_a_real_sweep_interrupted_and_continued(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(Path(__file__).parent), *sys.path]))
        plan = small_plan("real", seeds=[0], **SLOW)
        (name,) = (run.name for run in plan.runs)
        out = tmp_path / "sweep"

        def interrupt() -> None:
            while not (out / "runs" / name / "checkpoints" / "last.json").exists():
                time.sleep(0.05)
            assert stop(out).startswith(f"process {os.getpid()} was signalled")

        monkeypatch.chdir(tmp_path)
        threading.Thread(target=interrupt).start()
        seen = sweep(plan, out=out, at_once=1)
        assert seen.counts["left"] == 1
        assert 0 < seen.runs[0].step < 96
        assert not (tmp_path / "results").exists()
        said: list[str] = []
        assert sweep(plan, out=out, at_once=1, say=said.append).counts["done"] == 1
        quiet = SweepFolder.prepare(tmp_path / "quiet", plan)
        assert run_one(quiet.path, name, device="cpu")
        assert_same_runs(SweepFolder.open(out), quiet)
        assert read_result(tmp_path / "results" / "real.json")["figures"]["complete"]
        # Nothing is left to do, and nothing is done.
        assert sweep(plan, out=out, results=None, say=said.append).counts["done"] == 1
        assert said[-1] == f"0 of 1 run to do in {out}"
