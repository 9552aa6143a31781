"""Runs in separate processes, for tests that kill, signal and connect them.

    python child.py train OUT KIND CHANGES     a run, as a user would start it
    python child.py killed OUT CHANGES TIMES   the same with a pool, killed on the way
    torchrun … child.py joined OUT CASES       several runs in several processes
    torchrun … child.py lost OUT               the second process dies at step 5

Arguments after OUT are JSON. Each prints a JSON object a line.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from small_runs import KINDS

from iterant.errors import IterantError
from iterant.io import RunFolder
from iterant.io.files import lock_holder
from iterant.training import train
from iterant.training.loop import Loop, Signals
from iterant.training.trainer import Trainer

torch.set_num_threads(1)
RANK = int(os.environ.get("RANK", "0"))
GONE = os.WEXITED | os.WNOHANG | os.WNOWAIT


def emit(**what: Any) -> None:
    # One write per line: several processes share the stream.
    os.write(1, json.dumps(what).encode() + b"\n")


def train_or_resume(out: Path, kind: str, changes: dict[str, Any]) -> RunFolder:
    """Start the run, or resume it if there is one."""
    if (out / "config.json").exists():
        return train(resume=out, device="cpu", reporter=False)
    return train("prefix-sums", out=out, device="cpu", reporter=False, **{**KINDS[kind], **changes})


def run_once(out: Path, kind: str, changes: dict[str, Any]) -> None:
    emit(state=train_or_resume(out, kind, changes).state)


def kill_repeatedly(out: Path, changes: dict[str, Any], times: int) -> None:
    """Kill a run at random times, report the state of its folder each time, then let it finish."""
    rng = np.random.default_rng(7)
    train_or_resume(
        out.with_name("warm"), "pool", {"epochs": 1}
    )  # import and allocate before timing
    for _ in range(times):
        process = os.fork()
        if process == 0:
            with patch.object(Trainer, "step", slow_step):
                train_or_resume(out, "pool", changes)
            os._exit(0)
        # Wait until training has started, on slow machines too.
        while lock_holder(out) is None and os.waitid(os.P_PID, process, GONE) is None:
            time.sleep(0.002)
        time.sleep(rng.uniform(0.0, 0.3))
        os.kill(process, signal.SIGKILL)
        _, status = os.waitpid(process, 0)
        run = RunFolder.open(out)
        steps = {name: run.load(name)[1]["step"] for name in run.checkpoints()}
        reached = max((record["step"] for record in run.metrics()), default=0)
        emit(killed=os.WIFSIGNALED(status), last=steps.get("last", 0), reached=reached,
             state=run.state)  # fmt: skip
    emit(state=train_or_resume(out, "pool", changes).state)


_STEP = Trainer.step


def slow_step(trainer: Trainer, *given: Any) -> torch.Tensor:
    """A slow step: the run must not end before it is killed."""
    time.sleep(0.01)
    return _STEP(trainer, *given)


def run_cases(out: Path, cases: dict[str, dict[str, Any]]) -> None:
    """Runs in several processes; only the first may write."""
    if RANK:
        sys.addaudithook(lambda event, given: forbid(event, given, str(out)))
    for name, case in cases.items():
        stop = case.pop("stop", None)
        try:
            if stop is not None:
                with patch.object(Loop, "_reason_to_stop", stopping(stop)):
                    train("prefix-sums", out=out / name, device="cpu", **case)
                run = train(resume=out / name, device="cpu")
            else:
                run = train(case.pop("task", "prefix-sums"), out=out / name, device="cpu", **case)
            emit(rank=RANK, case=name, state=run.state)
        except IterantError as error:
            emit(rank=RANK, case=name, error=type(error).__name__, message=str(error))


def stopping(step: int) -> Callable[..., str | None]:
    """A signal before that step in the second process only; all must stop."""
    original = Loop._reason_to_stop

    def reason(loop: Loop, signals: Signals) -> str | None:
        if RANK == 1 and loop.step >= step:
            signals.raised = "SIGTERM"
        return original(loop, signals)

    return reason


def forbid(event: str, given: tuple[Any, ...], out: str) -> None:
    """Exit with code 77 on a write under the folder."""
    writes = event in ("os.rename", "os.remove", "os.mkdir", "os.truncate")
    if event == "open":
        flags = given[2] if isinstance(given[2], int) else 0
        writes = bool(flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))
    if writes and str(given[0]).startswith(out):
        emit(rank=RANK, wrote=str(given[0]), event=event)
        os._exit(77)


def lose_a_process(out: Path) -> None:
    """The second process dies in the middle; the first reports its error."""

    def step(trainer: Trainer, *given: Any) -> torch.Tensor:
        if RANK == 1 and trainer.steps == 5:
            os.kill(os.getpid(), signal.SIGKILL)
        return _STEP(trainer, *given)

    try:
        with patch.object(Trainer, "step", step):
            train_or_resume(out, "pool", {})
    except IterantError as error:
        emit(error=type(error).__name__, message=str(error))
        sys.exit(error.exit_code)


if __name__ == "__main__":
    what, folder, *rest = sys.argv[1:]
    modes: dict[str, Callable[..., None]] = {
        "train": run_once, "killed": kill_repeatedly, "joined": run_cases, "lost": lose_a_process,
    }  # fmt: skip
    modes[what](Path(folder), *map(json.loads, rest))
