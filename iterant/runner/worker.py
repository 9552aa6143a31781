"""One run of a sweep: what its process does, and how that process is started and supervised.

    $ iterant sweep one runs/widths prefix-sums-quick-width32-s0
    $ torchrun --nproc-per-node 2 -m iterant sweep one runs/widths prefix-sums-quick-width32-s0

The same command runs locally and on a cluster. Every run has a process of its own, so that a crash
ends no other run, and the last line of its log says why.
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
from typing import IO, Any

from iterant import registry
from iterant.errors import RunError, TrainingStopped, UsageError
from iterant.evaluation import evaluate
from iterant.io import RunFolder
from iterant.io.files import explain_os_error, make_folder
from iterant.runner.folder import LOG, Failures, SweepFolder
from iterant.runner.plan import PlannedRun, recipe_of
from iterant.training.logging import Reporter
from iterant.training.run import train
from iterant.zoo.loading import load

STOPPED = 75
"""Exit code of a process that was asked to stop and saved: neither done nor failed."""

Stop = Callable[[], str | None]
"""Why to stop: None, the name of a signal, or `KILL`."""

KILL = "at once"


def run_one(
    path: str | Path,
    name: str,
    *,
    resume: bool | None = None,
    device: str = "auto",
    time_limit: str | None = None,
    reporter: Reporter | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> bool:
    """Train a run of a sweep and test it; False: it was stopped before the end.

    ``resume``: whether the run was started before. Under torchrun the processes must be told,
    because the first of them makes the folder.
    """
    folder = SweepFolder.open(path)
    planned = folder.run(name)
    first = int(os.environ.get("RANK", "0")) == 0
    data = folder.plan.data
    options: dict[str, Any] = {"device": device, "time_limit": time_limit, "reporter": reporter,
                               "data": data}  # fmt: skip
    resume = folder.is_started(name) if resume is None else resume
    with folder.work_lock(name) if first else contextlib.nullcontext():
        start = time.monotonic()
        if resume:
            run = train(resume=folder.run_path(name), **options)
        else:
            task = registry.task(planned.task, **({"data": data} if data else {}))
            recipe = recipe_of(planned.recipe, planned.changes, task)
            run = train(planned.task, recipe=recipe, seed=planned.seed, out=folder.run_path(name),
                        **options)  # fmt: skip
        if run.state != "finished":
            return False
        if first:
            _test(folder, planned, run, device, time.monotonic() - start, say)
    return True


def _test(
    folder: SweepFolder,
    planned: PlannedRun,
    run: RunFolder,
    device: str,
    seconds: float,
    say: Callable[[str], None],
) -> None:
    """Take the tests that are missing, and write the outcome: the run is done."""
    before = folder.partial_outcome(planned.name) or {"seconds": seconds, "tests": {}}
    tests, data = dict(before["tests"]), folder.plan.data
    for test in folder.plan.tests_of(planned):
        if test.key in tests:
            continue
        say(f"test: {test.key}")
        task = registry.task(planned.task, **({"data": data} if data else {}))
        curve = evaluate(
            load(run.path, registry.device(device)), task, size=test.size, count=test.count,
            seed=test.seed, max_steps=test.max_steps,
        )  # fmt: skip
        figures = curve.described()
        figures.pop("operations a problem", None)
        tests[test.key] = {"size": test.size, **figures}
    status = run.status
    if status.step != status.steps:
        raise TrainingStopped(f"{run.path} says finished at {status.step} of {status.steps}")
    outcome = {"seconds": before["seconds"], "steps": status.steps, "best": dict(status.best),
               "iterations": run.config["recipe"]["iterations"], "tests": tests}  # fmt: skip
    folder.write_outcome(planned.name, outcome)


@dataclass(frozen=True)
class Launch:
    """The processes of one run."""

    processes: int = 1
    """On every node; more than one in all are joined by torchrun"""
    nodes: int = 1
    threads: int = 1
    """Of a process on the CPU: results are equal bit for bit only with the same number"""
    device: str = "auto"

    def __post_init__(self) -> None:
        """Refuse counts below 1."""
        for word in ("processes", "nodes", "threads"):
            value = getattr(self, word)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise UsageError(f"{word} must be a whole number from 1 on, got {value!r}")


def command_for(
    folder: SweepFolder, name: str, launch: Launch, *, resume: bool, rendezvous: Sequence[str] = ()
) -> list[str]:
    """The command line of a run; ``rendezvous``: torchrun's options where it has many nodes."""
    one = ["-m", "iterant", "sweep", "one", str(folder.path), name,
           "--resume" if resume else "--begin", "--device", launch.device]  # fmt: skip
    if launch.processes * launch.nodes == 1:
        return [sys.executable, *one]
    return [sys.executable, "-m", "torch.distributed.run", "--max-restarts", "0",
            "--nnodes", str(launch.nodes), "--nproc-per-node", str(launch.processes),
            *(rendezvous or ["--standalone"]), *one]  # fmt: skip


def supervise(
    folder: SweepFolder,
    name: str,
    launch: Launch,
    *,
    stop: Stop,
    environment: Mapping[str, str] | None = None,
    rendezvous: Sequence[str] = (),
    head: bool = True,
) -> str:
    """Start the process of a run, again if it fails: done, stopped, failed or elsewhere.

    ``head``: of several nodes, the one that records failures. "elsewhere": another process has it.
    """
    variables = {
        "OMP_NUM_THREADS": str(launch.threads), "PYTHONUNBUFFERED": "1",
        "TORCHELASTIC_SIGNALS_TO_HANDLE": "SIGTERM,SIGINT,SIGHUP,SIGQUIT,SIGUSR1",
        **(environment or {}),
    }  # fmt: skip
    failures = 0
    while stop() is None:
        before = folder.failures(name)
        if replace(before, failures=max(before.failures, failures)).given_up:
            return "failed"
        if head and folder.worker(name) is not None:
            return "elsewhere"
        command = command_for(
            folder, name, launch, resume=folder.is_started(name), rendezvous=rendezvous
        )
        log = make_folder(folder.work_path(name)) / LOG
        try:
            with log.open("ab") as file:
                code = run_process(command, variables, stop, file)
        except OSError as error:
            raise explain_os_error(error, "write", log) from error
        if code == 0:
            return "done"
        if code == STOPPED or stop() is not None:
            return "stopped"
        failures += 1
        if head:
            # A full disk may be why it failed; then only this process counts.
            with contextlib.suppress(RunError):
                reason = failure_reason(log, code)
                folder.write_failures(name, Failures(before.failures + 1, reason))
    return "stopped"


def run_process(
    command: Sequence[str],
    environment: Mapping[str, str],
    stop: Stop,
    output: IO[bytes] | None = None,
) -> int:
    """Run a process to its end and return its exit code (negative: a signal).

    It gets SIGTERM when ``stop`` gives a reason, and SIGKILL when that is `KILL`.
    """
    # A session of its own: an interrupt from the keyboard comes to us, and we pass it on.
    process = subprocess.Popen(
        list(command), stdout=output, stderr=subprocess.STDOUT if output else None,
        stdin=subprocess.DEVNULL, env={**os.environ, **environment}, start_new_session=True,
    )  # fmt: skip
    asked = False
    while True:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.wait(0.1)
        reason = stop()
        if reason == KILL:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        elif reason is not None and not asked:
            asked = True
            process.terminate()


def failure_reason(log: Path, code: int) -> str:
    """Why a process failed: the last line of its log that says so."""
    if code < 0:
        with contextlib.suppress(ValueError):
            return f"killed by {signal.Signals(-code).name}"
        return f"killed by signal {-code}"
    try:
        with log.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - (1 << 16)))
            text = file.read().decode(errors="replace")
    except OSError:
        text = ""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("iterant: error: ")]
    if errors:
        return errors[-1].removeprefix("iterant: error: ")
    # Of a bug the last line asks for a report; the one above it names the exception.
    lines = [line for line in lines if not line.startswith("iterant: this is a bug")]
    return lines[-1][:500] if lines else f"it ended with code {code} and said nothing"
