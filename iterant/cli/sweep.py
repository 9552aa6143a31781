"""``iterant sweep``: many runs from one file, here or on a cluster.

iterant sweep widths.toml
iterant sweep widths.toml --on slurm --partition gpu --time 4h
iterant sweep widths.toml --seeds 0-9
iterant sweep status runs/widths
iterant sweep stop runs/widths
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter

from iterant.cli.options import DeviceName, console, parameters
from iterant.errors import IterantError, TrainingStopped, UsageError

if TYPE_CHECKING:
    from iterant.runner import Survey

sweep = App(
    name="sweep",
    usage="Usage: iterant sweep FILE.toml [OPTIONS], or: iterant sweep status|stop|one DIR",
    help="Carry out many runs from one file, here or on a cluster; again to go on or to extend.",
    group_parameters=parameters(),
)

Flag = Parameter(negative="", show_default=False)


@sweep.default
def start(
    file: Annotated[Path, Parameter(help="a TOML file; docs/scale.md shows all its settings")],
    /,
    *,
    out: Annotated[Path | None, Parameter(help="the sweep's folder [default: runs/NAME]")] = None,
    seeds: Annotated[str | None, Parameter(help="instead of the file's: 0-7 or 0,2,5")] = None,
    on: Annotated[str, Parameter(help="local or slurm")] = "local",
    at_once: Annotated[
        int | None, Parameter(help="runs side by side [default: as many as fit]")
    ] = None,
    processes: Annotated[
        int | None,
        Parameter(help="of one run on a node, joined by torchrun [default: one, or one a GPU]"),
    ] = None,
    threads: Annotated[int, Parameter(help="of a process on the CPU")] = 1,
    device: DeviceName = "auto",
    time: Annotated[
        str | None,
        Parameter(help="limit of a job on Slurm, or of the whole sweep here: 90m, 4h"),
    ] = None,
    partition: Annotated[str | None, Parameter(help="of Slurm")] = None,
    nodes: Annotated[int, Parameter(help="of one run on Slurm")] = 1,
    gpus_per_node: Annotated[int | None, Parameter(help="of one run on Slurm")] = None,
    cpus_per_task: Annotated[int | None, Parameter(help="of one run on Slurm")] = None,
    memory: Annotated[float | None, Parameter(help="of one run on Slurm, in GB")] = None,
    warning: Annotated[
        int, Parameter(help="seconds before its limit at which a job is told to save")
    ] = 90,
    detach: Annotated[bool, Flag, Parameter(help="submit to Slurm and do not watch")] = False,
    look: Annotated[float, Parameter(help="seconds between looks at Slurm's queue")] = 5.0,
    results: Annotated[Path, Parameter(help="the folder for the result")] = Path("results"),
) -> None:
    """Begin a sweep, go on with it, try its failed runs again, or extend it."""
    from iterant.runner import Cluster, Means
    from iterant.runner import sweep as swept

    cluster: dict[str, Any] = {"partition": partition, "gpus_per_node": gpus_per_node,
               "cpus_per_task": cpus_per_task, "memory_gb": memory}  # fmt: skip
    if on == "local":
        words = [
            f"--{word.replace('_', '-')}" for word, value in cluster.items() if value is not None
        ]
        if words or nodes != 1 or detach:
            given = [
                *words,
                *(["--nodes"] if nodes != 1 else []),
                *(["--detach"] if detach else []),
            ]
            verb = "is" if len(given) == 1 else "are"
            raise UsageError(f"{', '.join(given)} {verb} for Slurm; give --on slurm too")
    screen = console()
    seen = swept(
        file, out=out, seeds=seeds, on=on, at_once=at_once,
        means=Means(gpus_per_node or 1 if processes is None else processes, nodes, threads, device),
        cluster=Cluster(time=time, warning_seconds=warning, at_once=at_once, **cluster),
        time_limit=time if on == "local" else None, watch=not detach, look_seconds=look,
        results=results, say=lambda line: screen.print(line, soft_wrap=True, highlight=False),
    )  # fmt: skip
    _say_end(seen)


def _say_end(seen: Survey) -> None:
    """How it stands; failed runs are a failure of the command."""
    from iterant.runner.sweeps import summary

    console().print(summary(seen), soft_wrap=True, highlight=False)
    if failed := seen.of("failed"):
        first = failed[0]
        raise TrainingStopped(
            f"{len(failed)} of {len(seen.runs)} runs failed twice "
            f"({', '.join(run.name for run in failed[:5])}{' …' if len(failed) > 5 else ''}); "
            f"{first.name}: {first.error}; the same command tries them again"
        )


@sweep.command
def status(
    folder: Annotated[Path, Parameter(help="the sweep's folder, runs/NAME")],
    /,
    *,
    json: Annotated[bool, Flag, Parameter(help="print it as JSON")] = False,
) -> None:
    """Say what is done, running, failed (with the last line of the error) and left."""
    from iterant.formatting import duration
    from iterant.runner import SweepFolder, survey
    from iterant.runner.slurm import queued
    from iterant.runner.sweeps import summary

    found, screen = SweepFolder.open(folder), console()
    try:
        waiting = queued(found)
    except IterantError as error:  # a machine that does not know the cluster still sees the files
        waiting = {}
        sys.stderr.write(f"iterant: the queue is not known here: {error}\n")
    seen = survey(found, waiting)
    if json:
        import json as notation

        sys.stdout.write(notation.dumps(seen.described(), indent=1) + "\n")
        return
    screen.print(f"{seen.name}: {summary(seen)}", soft_wrap=True, highlight=False)
    for run in seen.runs:
        if run.state == "running" or (run.state == "left" and run.step):
            of = f" of {run.steps:,}" if run.steps else ""
            left = "" if run.seconds_left is None else f", about {duration(run.seconds_left)} to go"
            screen.print(f"  {run.name}: {run.state}, update {run.step:,}{of}{left}",
                         soft_wrap=True, highlight=False)  # fmt: skip
        if run.error and run.state != "done":
            screen.print(f"  {run.name}: {run.state}: {run.error}", soft_wrap=True, highlight=False)


@sweep.command
def stop(folder: Annotated[Path, Parameter(help="the sweep's folder, runs/NAME")], /) -> None:
    """Stop a sweep: running ones save first; the same command as before goes on with it."""
    from iterant.runner import stop as stopped

    console().print(stopped(folder), soft_wrap=True, highlight=False)


@sweep.command
def one(
    folder: Annotated[Path, Parameter(help="the sweep's folder, runs/NAME")],
    run: Annotated[str, Parameter(help="the run's name")],
    /,
    *,
    begin: Annotated[bool, Flag, Parameter(help="it has no folder yet")] = False,
    resume: Annotated[bool, Flag, Parameter(help="it has")] = False,
    device: DeviceName = "auto",
    time: Annotated[str | None, Parameter(help="stop in time with a checkpoint: 9m")] = None,
) -> None:
    """Carry out one run of a sweep: what its processes do; also by hand, also under torchrun."""
    from iterant.cli.live import display
    from iterant.runner.worker import STOPPED, carry_out

    if begin and resume:
        raise UsageError("a run is begun or resumed, not both; leave one of the two out")
    screen = console()
    if int(os.environ.get("RANK", "0")):
        screen.quiet = True
    with display(screen) as shown:
        done = carry_out(
            folder, run, resume=resume if begin or resume else None, device=device,
            time_limit=time, reporter=shown.of(0),
            say=lambda line: screen.print(line, soft_wrap=True, highlight=False),
        )  # fmt: skip
    screen.print("done" if done else "stopped; go on with the same command", soft_wrap=True)
    if not done:
        sys.exit(STOPPED)
