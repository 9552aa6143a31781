"""The process of one run, how it is supervised, and the pool of such processes on this machine.

    $ iterant sweep one runs/widths prefix-sums-quick-width32-s0

    >>> run_local(folder, ["prefix-sums-quick-s0", "prefix-sums-quick-s1"], Launch(), at_once=2)

The same command runs here and on a cluster, for sweeps, ``iterant train --seeds`` and ``iterant
reproduce``. Every run is a separate process, so that a crash does not end other runs, and the last
line of its log says why.
"""

from __future__ import annotations

import contextlib
import math
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from iterant import registry
from iterant.errors import IterantError, RunError
from iterant.evaluation import evaluate
from iterant.io import RunFolder
from iterant.io.files import make_folder, one_line_errors, open_to_append, open_to_read
from iterant.io.results import hardware
from iterant.runner.folder import ATTEMPTS, LOG, Failures, SweepFolder
from iterant.runner.plan import PlannedRun
from iterant.tasks.protocol import Task
from iterant.training.logging import Reporter, TensorBoardReporter
from iterant.training.loop import Clock, Signals
from iterant.training.run import recipe_for, train
from iterant.zoo.loading import load

STOPPED = 75
"""Exit code of a process that was asked to stop and saved: neither done nor failed."""

_SUPERVISED = "ITERANT_SUPERVISED"
"""Set for a process whose standard input is a pipe from its supervisor: see `_stop_with_parent`."""

_GIB_PER_PROCESS = 1.0
"""Memory that a process on the CPU is taken to need; torch itself is about a third of it."""

Stop = Callable[[], signal.Signals | None]
"""The signal that stops the process of a run; SIGKILL does not let it save. None: go on."""

Say = Callable[[str], None]
"""Prints or logs one line."""


@dataclass(frozen=True)
class Job:
    """One run of a sweep within its process: the argument of the plan's job function.

    That function returns the outcome, figures with at least ``tests``; None if it was stopped.
    """

    folder: SweepFolder
    planned: PlannedRun
    device: str = "auto"
    reporter: Reporter = field(default_factory=Reporter)

    @property
    def task(self) -> Task:
        return registry.task(self.planned.task, data=self.folder.plan.data or None)

    def train(
        self, suffix: str = "", changes: Mapping[str, Any] | None = None, **options: Any
    ) -> RunFolder:
        """Train or resume the run; ``options`` are those of `train`.

        ``suffix``: of the folder of a variant with ``changes``.
        """
        name, planned = self.planned.name + suffix, self.planned
        tensorboard = self.folder.plan.options.get("tensorboard", False)
        options |= {
            "device": self.device,
            "data": self.folder.plan.data,
            "reporter": TensorBoardReporter(self.reporter) if tensorboard else self.reporter,
        }
        path = self.folder.run_path(name)
        if self.folder.is_started(name):
            return train(resume=path, **options)
        recipe = recipe_for(self.task, planned.recipe, **{**planned.changes, **(changes or {})})
        return train(planned.task, recipe=recipe, seed=planned.seed, out=path, **options)


def train_and_evaluate(job: Job) -> dict[str, Any] | None:
    """The default job of a plan: train the run, then evaluate it on the tests not done yet."""
    start, run = time.monotonic(), job.train()
    if run.state != "finished":
        return None
    before = job.folder.outcome(job.planned.name, partial=True)
    before = before or {"seconds": time.monotonic() - start, "tests": {}}
    tests = dict(before["tests"])
    for test in job.folder.plan.tests_of(job.planned):
        if test.key in tests:
            continue
        job.reporter.note(f"test: {test.key}")
        net = load(run.path, registry.device(job.device))
        size = test.size or run.config["recipe"]["size"]
        size = tuple(size) if isinstance(size, list) else size  # chess: a range, a list in JSON
        figures = evaluate(
            net, job.task, size=size, count=test.count, seed=test.seed, max_steps=test.max_steps
        ).described()  # fmt: skip
        figures.pop("operations a problem", None)
        tests[test.key] = {"size": size, **figures}
    return {"seconds": before["seconds"], "steps": run.status.steps, "best": dict(run.status.best),
            "iterations": run.config["recipe"]["iterations"], "tests": tests}  # fmt: skip


def run_one(path: str | Path, name: str, *, trust: bool = False, **options: Any) -> bool:
    """Execute a run of a sweep; False: it was stopped before the end.

    ``trust``: import the user-defined task and network that the plan names for this run.
    ``options``: fields of `Job`.
    """
    folder = SweepFolder.open(path)
    job = Job(folder, folder.run(name), **options)
    with registry.names_of_file(folder.path, _user_code(job.planned), trust=trust):
        execute = registry.find("job", folder.plan.job or "train-and-evaluate")
        _ = job.task  # imported here, where the plan's names are allowed and errors name the plan
    if _SUPERVISED in os.environ:
        threading.Thread(target=_stop_with_parent, daemon=True).start()
    with folder.work_lock(name):
        outcome = execute(job)
        if outcome is not None:
            folder.write_outcome(name, outcome)
    return outcome is not None


def _stop_with_parent() -> None:
    """Save and stop when the supervisor ends, however it ends: then the pipe from it ends, too."""
    os.read(0, 1)
    os.kill(os.getpid(), signal.SIGTERM)


def _user_code(run: PlannedRun) -> list[str]:
    """The names of user-defined code in the plan of a run."""
    return [word for word in map(str, (run.task, run.changes.get("net"))) if ":" in word]


@dataclass(frozen=True)
class Launch:
    """How the process of a run is started."""

    threads: int = 1
    """On the CPU: results are equal bit for bit only with the same number"""
    device: str = "auto"


def command_for(folder: SweepFolder, name: str, device: str) -> list[str]:
    """The command line of a run."""
    worker = ["-m", "iterant", "sweep", "one", str(folder.path), name, "--device", device]
    code = _user_code(folder.run(name))
    if code and set(code) <= set(registry.allowed()):
        worker.append("--trust-code")
    return [sys.executable, *worker]


def supervise(
    folder: SweepFolder,
    name: str,
    launch: Launch,
    *,
    stop: Stop,
    environment: Mapping[str, str] | None = None,
) -> str:
    """Run the process of a run, again if it fails; returns "done", "stopped" or "failed".

    If another process works on the run, such as a job on a cluster or one of an earlier start that
    still saves, wait for it.
    """
    failures, waited = folder.failures(name).failures, False
    work = make_folder(folder.work_path(name))
    while stop() is None:
        if failures >= ATTEMPTS:
            return "failed"
        if folder.worker(name) is not None:
            waited = True
            time.sleep(0.1)
            continue
        if waited and folder.outcome(name) is not None:
            return "done"
        command = command_for(folder, name, launch.device)
        variables = {
            **os.environ,
            "OMP_NUM_THREADS": str(launch.threads),
            "PYTHONUNBUFFERED": "1",
            # -m would put the current folder first on the path, before the standard library.
            "PYTHONSAFEPATH": "1",
            _SUPERVISED: "1",
            **(environment or {}),
        }
        code = _run_process(command, variables, work / LOG, stop)
        if code == 0:
            return "done"
        if code == STOPPED or stop() is not None:
            return "stopped"
        failures += 1
        # A full disk may be why it failed; then only this process counts.
        with contextlib.suppress(RunError):
            folder.write_failures(name, Failures(failures, failure_reason(work / LOG, code)))
    return "stopped"


def _run_process(
    command: Sequence[str], environment: Mapping[str, str], log: Path, stop: Stop
) -> int:
    """Run a process to its end, or to ``stop``; returns its exit code (negative: a signal)."""
    with one_line_errors("write", log), open_to_append(log) as output:
        # A new session: Ctrl-C reaches only this process, which passes it on.
        process = subprocess.Popen(
            command, stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.PIPE,
            env=environment, start_new_session=True,
        )  # fmt: skip
    sent = None
    with process:
        while True:
            with contextlib.suppress(subprocess.TimeoutExpired):
                return process.wait(0.1)
            number = stop()
            if number is not None and number != sent:
                process.send_signal(number)
                sent = number


def failure_reason(log: Path, code: int) -> str:
    """Why a process failed: the last error in its log, or else the last line."""
    if code < 0:
        return f"killed by {signal.Signals(-code).name}"
    with contextlib.suppress(OSError), open_to_read(log) as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - (1 << 16)))
        text = file.read().decode(errors="replace")
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        # After a traceback the command asks for a report, which is not the reason.
        lines = [line for line in lines if not line.startswith("iterant: unexpected error")]
        errors = [line for line in lines if line.startswith("iterant: error: ")]
        if lines:
            return (errors or lines)[-1].removeprefix("iterant: error: ")[:500]
    return f"exited with code {code} and no output"


def capacity(launch: Launch) -> int:
    """How many runs fit on this machine side by side: by GPUs, or by cores and memory."""
    if registry.device(launch.device).type == "cuda":
        return 1 if ":" in launch.device else torch.cuda.device_count()
    machine = hardware()
    memory = machine["memory_gib"] or math.inf  # None: not known
    return max(1, int(min(machine["cores"] // launch.threads, memory // _GIB_PER_PROCESS)))


def run_local(
    folder: SweepFolder,
    names: Sequence[str],
    launch: Launch,
    *,
    at_once: int,
    limit: float | None = None,
    on_end: Callable[[str, str], None] = lambda name, how: None,
) -> None:
    """Execute runs of a sweep in parallel.

    An interrupt lets the runs save; a second one kills them, and they lose what they did since
    their last checkpoint. After ``limit`` seconds they save and stop, too. ``on_end(name, how)`` is
    called after each run, with the error if it failed. GPUs are assigned in turn.
    """
    slots: queue.SimpleQueue[int] = queue.SimpleQueue()
    for slot in range(at_once):
        slots.put(slot)
    clock, kill = Clock(limit), False
    with Signals() as signals:

        def stop() -> signal.Signals | None:
            if kill:
                return signal.SIGKILL
            ended = signals.raised or clock.over or folder.is_stopping()
            return signal.SIGTERM if ended else None

        def run_in_slot(name: str) -> str:
            slot = slots.get()
            try:
                gpus = _visible_gpu(slot, launch.device)
                how = supervise(folder, name, launch, stop=stop, environment=gpus)
                return f"failed: {folder.failures(name).error}" if how == "failed" else how
            except IterantError as error:
                return f"failed: {error}"
            finally:
                slots.put(slot)

        with ThreadPoolExecutor(max_workers=at_once) as pool:
            waiting = {pool.submit(run_in_slot, name): name for name in names}
            while waiting:
                try:
                    for future in wait(waiting, timeout=0.2, return_when=FIRST_COMPLETED).done:
                        on_end(waiting.pop(future), future.result())
                except KeyboardInterrupt:
                    kill = True


def _visible_gpu(slot: int, device: str) -> dict[str, str]:
    """The GPU of one slot, unless the device is a CPU or names its GPU."""
    if registry.device(device).type != "cuda" or ":" in device:
        return {}
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    gpus = visible.split(",") if visible else list(map(str, range(torch.cuda.device_count())))
    return {"CUDA_VISIBLE_DEVICES": gpus[slot % len(gpus)]}
