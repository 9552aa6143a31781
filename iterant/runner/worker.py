"""Minding one run: start the process that works on it, and once more if it fails.

>>> mind(folder, "prefix-sums-quick-s0", Means(), told=lambda: None)
'done'

Here and on a cluster the same: a process of its own, so that whatever kills it kills no other
run, and its last line says why.

What one process does for a sweep: train one run, or go on with it, and take its tests.

    $ iterant sweep one runs/widths prefix-sums-quick-width32-s0
    $ torchrun --nproc-per-node 2 -m iterant sweep one runs/widths prefix-sums-quick-width32-s0

Locally and on a cluster the same words are run; nothing else is ever handed over.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from iterant import registry
from iterant.errors import RunError, TrainingStopped, UsageError
from iterant.evaluation import evaluate
from iterant.io import RunFolder
from iterant.io.files import explain_os_error, make_folder
from iterant.runner.folder import LOG, Record, SweepFolder
from iterant.runner.plan import Exam, PlannedRun, recipe_of
from iterant.training.device import device_of
from iterant.training.logging import Reporter
from iterant.training.run import train
from iterant.zoo.loading import load

STOPPED = 75
"""The exit code of a process that was told to stop and saved: not done, and not failed."""

Say = Callable[[str], None]


def carry_out(
    path: str | Path,
    name: str,
    *,
    resume: bool | None = None,
    device: str = "auto",
    time_limit: str | None = None,
    reporter: Reporter | None = None,
    say: Say = lambda _: None,
) -> bool:
    """Train a run of a sweep and take its tests; False: it was stopped before the end.

    ``resume`` says whether the run has been begun: of several processes none may look, because
    the first of them makes the folder.
    """
    folder = SweepFolder.open(path)
    planned = folder.run(name)
    first = int(os.environ.get("RANK", "0")) == 0
    going = folder.begun(name) if resume is None else resume
    with folder.work_lock(name) if first else contextlib.nullcontext():
        begun = time.monotonic()
        how: dict[str, Any] = {"device": device, "time_limit": time_limit, "reporter": reporter,
                               "data": folder.plan.data}  # fmt: skip
        run = train(resume=folder.run_path(name), **how) if going else _begin(folder, planned, how)
        if run.state != "finished":
            return False
        if first:
            _finish(folder, planned, run, device, time.monotonic() - begun, say)
    return True


def _begin(folder: SweepFolder, planned: PlannedRun, how: dict[str, Any]) -> RunFolder:
    data = folder.plan.data
    task = registry.task(planned.task, **({"data": data} if data else {}))
    recipe = recipe_of(planned.recipe, planned.changes, task)
    out = folder.run_path(planned.name)
    return train(planned.task, recipe=recipe, seed=planned.seed, out=out, **how)


def _finish(
    folder: SweepFolder, planned: PlannedRun, run: RunFolder, device: str, seconds: float, say: Say
) -> None:
    """Take the tests that were not taken yet, and write down that the run is done."""
    before = folder.partial_outcome(planned.name) or {"seconds": seconds, "tests": {}}
    tests = dict(before["tests"])
    for test in folder.plan.tests_of(planned):
        if test.key not in tests:
            say(f"test: {test.key}")
            tests[test.key] = _taken(folder, planned, run, test, device)
    status = run.status
    if status.step != status.steps:
        raise TrainingStopped(f"{run.path} says finished at {status.step} of {status.steps}")
    outcome = {"seconds": before["seconds"], "steps": status.steps, "best": dict(status.best),
               "iterations": run.config["recipe"]["iterations"], "tests": tests}  # fmt: skip
    folder.write_outcome(planned.name, outcome)


def _taken(
    folder: SweepFolder, planned: PlannedRun, run: RunFolder, test: Exam, device: str
) -> dict[str, Any]:
    data = folder.plan.data
    task = registry.task(planned.task, **({"data": data} if data else {}))
    curve = evaluate(
        load(run.path, device_of(device)), task, size=test.size, count=test.count, seed=test.seed,
        max_steps=test.max_steps,
    )  # fmt: skip
    figures = curve.described()
    figures.pop("operations a problem", None)
    return {"size": test.size, **figures}


_LOOK_SECONDS = 0.1
_TAIL_BYTES = 1 << 16

Told = Callable[[], str | None]
"""Why to stop: None, a signal's name, or `AT_ONCE`."""

AT_ONCE = "at once"


@dataclass(frozen=True)
class Means:
    """What a run is carried out with."""

    processes: int = 1
    """On every node; more than one in all are joined by torchrun"""
    nodes: int = 1
    threads: int = 1
    """Of a process on the CPU: sums are only the same bits with the same number"""
    device: str = "auto"

    def __post_init__(self) -> None:
        """Refuse what no machine has."""
        for word in ("processes", "nodes", "threads"):
            value = getattr(self, word)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise UsageError(f"{word} must be a whole number from 1 on, got {value!r}")

    @property
    def together(self) -> int:
        """Processes of one run."""
        return self.processes * self.nodes


def words_of(
    folder: SweepFolder, name: str, means: Means, *, resume: bool, meeting: Sequence[str] = ()
) -> list[str]:
    """The command line that works on a run; ``meeting``: where processes of many nodes meet."""
    one = ["-m", "iterant", "sweep", "one", str(folder.path), name,
           "--resume" if resume else "--begin", "--device", means.device]  # fmt: skip
    if means.together == 1:
        return [sys.executable, *one]
    where = meeting or ["--standalone"]
    return [sys.executable, "-m", "torch.distributed.run", "--max-restarts", "0",
            "--nnodes", str(means.nodes), "--nproc-per-node", str(means.processes), *where,
            *one]  # fmt: skip


def environment_of(means: Means, more: Mapping[str, str]) -> dict[str, str]:
    """The variables of a process at work."""
    listened = "SIGTERM,SIGINT,SIGHUP,SIGQUIT,SIGUSR1"
    return {**os.environ, "OMP_NUM_THREADS": str(means.threads), "PYTHONUNBUFFERED": "1",
            "TORCHELASTIC_SIGNALS_TO_HANDLE": listened, **more}  # fmt: skip


def mind(
    folder: SweepFolder,
    name: str,
    means: Means,
    *,
    told: Told,
    more: Mapping[str, str] | None = None,
    meeting: Sequence[str] = (),
    head: bool = True,
) -> str:
    """Carry a run as far as it goes: done, stopped, failed, or elsewhere (another has it).

    ``head``: the node that keeps the record, of several.
    """
    failures = 0
    while told() is None:
        record = folder.record(name)
        if replace(record, failures=max(record.failures, failures)).given_up:
            return "failed"
        if head and folder.worker(name) is not None:
            return "elsewhere"
        words = words_of(folder, name, means, resume=folder.begun(name), meeting=meeting)
        code = _ended(words, folder.work_path(name), environment_of(means, more or {}), told)
        if code == 0:
            return "done"
        if code == STOPPED or told() is not None:
            return "stopped"
        failures += 1
        error = failure(folder.work_path(name) / LOG, code)
        if head:
            # A full disk may be why it failed: the count goes on in this process then.
            with contextlib.suppress(RunError):
                folder.write_record(name, Record(record.failures + 1, error))
    return "stopped"


def _ended(words: Sequence[str], place: Path, variables: Mapping[str, str], told: Told) -> int:
    """Start the process, pass on the wish to stop, and give its exit code (negative: a signal)."""
    make_folder(place)
    try:
        log = (place / LOG).open("ab")
    except OSError as error:
        raise explain_os_error(error, "write", place / LOG) from error
    with log:
        log.seek(0, os.SEEK_END)
        # A session of its own: an interrupt from the keyboard is for us to hear and to pass on.
        process = subprocess.Popen(
            words, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
            env=dict(variables), start_new_session=True,
        )  # fmt: skip
        asked = False
        while True:
            with contextlib.suppress(subprocess.TimeoutExpired):
                return process.wait(_LOOK_SECONDS)
            wish = told()
            if wish == AT_ONCE:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
            elif wish is not None and not asked:
                asked = True
                process.terminate()


def failure(log: Path, code: int) -> str:
    """The last line that says why, from what a process printed."""
    if code < 0:
        with contextlib.suppress(ValueError):
            return f"killed by {signal.Signals(-code).name}"
        return f"killed by signal {-code}"
    try:
        with log.open("rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - _TAIL_BYTES))
            lines = file.read().decode(errors="replace").splitlines()
    except OSError:
        lines = []
    said = [line.strip() for line in lines if line.strip()]
    errors = [line for line in said if line.startswith("iterant: error: ")]
    if errors:
        return errors[-1].removeprefix("iterant: error: ")
    # Of a bug the last line asks for a report; the one above it names the exception.
    said = [line for line in said if not line.startswith("iterant: this is a bug")]
    return said[-1][:500] if said else f"it ended with code {code} and said nothing"
