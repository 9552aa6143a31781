"""A campaign in which every unit has a process of its own, so that none can harm another.

    >>> in_processes(units(["sums-recall-a1"], range(5)), processes=2, out="runs.jsonl",
    ...              device="cuda", time_limit="9m")

What a GPU library keeps in a process, a NaN or a crash ends with the unit, and one that hangs is
ended when its time is long over. Starting costs seconds a unit; a few processes side by side hide
them. Only this process writes the records.
"""

from __future__ import annotations

import multiprocessing
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from iterant.experiments.campaign import campaign
from iterant.experiments.measuring import Say
from iterant.experiments.models import Unit
from iterant.experiments.records import keep
from iterant.runs import read_lines
from iterant.runs.files import PathLike, make_folder
from iterant.training.stopping import Clock, seconds

INTERRUPTED = 130
"""The exit code of a process that was interrupted."""

PATIENCE = 30.0
"""Seconds after the limit when a process that is still there hangs, and is ended."""


def in_processes(
    wanted: Sequence[Unit],
    *,
    processes: int,
    out: PathLike,
    runs: PathLike = "runs/campaign",
    time_limit: str | float | None = None,
    done: set[str] | frozenset[str] = frozenset(),
    enough_time: Callable[[Unit, float], bool] = lambda unit, left: left > 0,
    say: Say = print,
    **how: Any,
) -> list[Unit]:
    """Like `campaign`, at most so many processes at once; returns the units left over."""
    limit, clock = None if time_limit is None else seconds(time_limit), Clock(None)
    waiting = deque(unit for unit in wanted if unit.name not in done)
    left_over: list[Unit] = []
    writing = threading.Lock()

    def work() -> None:
        while True:
            try:
                unit = waiting.popleft()
            except IndexError:
                return
            left = float("inf") if limit is None else limit - clock.elapsed
            if not enough_time(unit, left):
                left_over.append(unit)
                continue
            found, code = _apart(unit, runs, None if limit is None else left, how)
            with writing:
                for record in found:
                    keep(out, record)
            if not found:
                left_over.append(unit)
            say(f"{unit.name}: {'kept' if found else f'no record, exit code {code}'}")

    threads = [threading.Thread(target=work) for _ in range(processes)]
    for thread in threads:
        thread.start()
    try:
        for thread in threads:
            thread.join()
    except KeyboardInterrupt:  # the processes heard it too: they save, and none begins after them
        waiting.clear()
        for thread in threads:
            thread.join()
        raise
    return left_over


def _apart(
    unit: Unit, runs: PathLike, left: float | None, how: dict[str, Any]
) -> tuple[list[dict[str, Any]], int | None]:
    """The records of one unit made in a process of its own, and its exit code.

    It is told how many seconds are left, and killed if it is still there long after them.
    """
    part = make_folder(runs) / f"{unit.name}.jsonl"
    part.unlink(missing_ok=True)
    given = {**how, "out": str(part), "runs": str(runs), "at_once": 1,
             "time_limit": None if left is None else max(left, 1.0)}  # fmt: skip
    process = multiprocessing.get_context("spawn").Process(target=alone, args=(unit, given))
    process.start()
    process.join(None if left is None else max(left, 0.0) + PATIENCE)
    if process.is_alive():
        process.kill()
        process.join()
    return read_lines(part) if part.exists() else [], process.exitcode


def alone(unit: Unit, given: dict[str, Any]) -> None:
    """One unit, in a process that does nothing else."""
    try:
        campaign([unit], say=_aloud, **given)
    except KeyboardInterrupt:  # no lines about a thing that somebody wished
        raise SystemExit(INTERRUPTED) from None


def _aloud(text: str) -> None:
    import sys

    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
