"""``iterant sweep``: many runs from one file, on this machine or on Slurm."""

from __future__ import annotations

import sys
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from iterant import bounds
from iterant.cli.options import FLAG, DeviceName, Duration, Processes, Seeds, TrustCode
from iterant.cli.output import echo, output_may_fail, print_table
from iterant.errors import IterantError, TrainingStopped, UsageError
from iterant.progress import warn

if TYPE_CHECKING:
    from iterant.runner import SweepStatus

sweep = App(
    name="sweep",
    help="""Train and test many runs from one file, on this machine or on Slurm; repeat the command
to resume or extend them.

iterant sweep widths.toml
iterant sweep widths.toml --on slurm --partition gpu --time 4h
iterant sweep widths.toml --seeds 0-9
iterant sweep status runs/widths
iterant sweep stop runs/widths""",
)


@sweep.default
def start(
    file: Path,
    /,
    *,
    out: Path | None = None,
    seeds: Seeds | None = None,
    on: str = "local",
    at_once: Processes | None = None,
    threads: Processes = 1,
    device: DeviceName = "auto",
    time: Duration | None = None,
    partition: str | None = None,
    gpus_per_node: Annotated[int | None, Parameter(validator=bounds.GPUS)] = None,
    cpus_per_task: Processes | None = None,
    memory: Annotated[float | None, Parameter(validator=bounds.MEMORY_GB)] = None,
    warning: Annotated[int, Parameter(validator=bounds.WAIT_SECONDS)] = 90,
    detach: Annotated[bool, FLAG] = False,
    look: Annotated[float, Parameter(validator=bounds.WAIT_SECONDS)] = 5.0,
    results: Path = Path("results"),
    trust_code: TrustCode = False,
) -> None:
    """Start, resume or extend a sweep; failed runs are repeated.

    Args:
        file: a TOML file: task, recipe and seeds (each one or a list), [fields] fixed in every
            run, [grid] of fields with lists of values, [[list]] of alternatives, [[tests]] of
            every finished run. For example: task = "prefix-sums", recipe = "quick",
            seeds = "0-4", then [grid] with width = [32, 64]
        out: the sweep's folder [default: runs/NAME]
        seeds: instead of the file's: 0-7 or 0,2,5
        on: local or slurm
        at_once: runs in parallel [default: as many as cores or GPUs and memory allow]
        threads: CPU threads per run
        time: time limit of a job on Slurm, or of the whole sweep on this machine: 90m, 4h
        partition: Slurm partition
        gpus_per_node: GPUs of the job of a run, on Slurm; a run uses one
        cpus_per_task: CPU cores of the job of a run, on Slurm
        memory: memory of the job of a run in GB, on Slurm
        warning: seconds before its time limit at which a job saves a checkpoint
        detach: submit to Slurm and exit
        look: seconds between polls of Slurm's queue
        results: folder for the result
    """
    from iterant.runner import Cluster, Launch
    from iterant.runner import sweep as run_sweep

    local = on == "local"
    if local and (partition or gpus_per_node or cpus_per_task or memory or detach):
        raise UsageError(
            "--partition, --gpus-per-node, --cpus-per-task, --memory and --detach are for Slurm; "
            "give --on slurm too"
        )
    with output_may_fail():
        final = run_sweep(
            file,
            out=out,
            seeds=seeds,
            on=on,
            at_once=at_once,
            launch=Launch(threads, device),
            cluster=Cluster(
                partition=partition,
                time=time,
                gpus_per_node=gpus_per_node,
                cpus_per_task=cpus_per_task,
                memory_gb=memory,
                warning_seconds=warning,
            ),
            time_limit=time if local else None,
            watch=not detach,
            look_seconds=look,
            results=results,
            trust=trust_code,
            say=echo,
        )
        _show_table(Path("runs") / final.name if out is None else out)
        print_outcome(final, "the same command")


def _show_table(folder: Path) -> None:
    """Print and draw the figures of the runs that are done."""
    from iterant.runner import SweepFolder, save_picture, table

    sweep_folder = SweepFolder.open(folder)
    head, rows = table(sweep_folder)
    if rows:
        print_table(head, *rows, right=True)
        try:
            if picture := save_picture(sweep_folder):
                echo(f"drawn in {picture}")
        except IterantError as error:  # the folder may be someone else's
            warn(f"iterant: no picture: {error}")


def print_outcome(final: SweepStatus, command: str) -> None:
    """Print how runs ended; failed ones are an error that names the ``command`` to retry them."""
    from iterant.runner.sweeps import summary

    echo(summary(final))
    if failed := final.of("failed"):
        names = ", ".join(run.name for run in failed[:5]) + (" …" if len(failed) > 5 else "")
        raise TrainingStopped(
            f"{len(failed)} of {len(final.runs)} runs failed twice ({names}); "
            f"{failed[0].name}: {failed[0].error}; try again: {command}"
        )


@sweep.command
def status(folder: Path, /, *, json: Annotated[bool, FLAG] = False) -> None:
    """Show which runs are done, running, failed (with the last line of the error) or left.

    iterant sweep status runs/widths
    iterant sweep status runs/widths --json

    The accuracies of the runs that are done follow as a table and as a picture, sweep.png.

    Args:
        folder: the sweep's folder, runs/NAME
        json: print it as JSON
    """
    from iterant.formatting import duration
    from iterant.runner import SweepFolder
    from iterant.runner import status as status_of
    from iterant.runner.slurm import queued
    from iterant.runner.sweeps import summary

    sweep_folder = SweepFolder.open(folder)
    try:
        waiting = queued(sweep_folder)
    except IterantError as error:  # on a machine without Slurm the files can still be read
        waiting = {}
        warn(f"iterant: the queue is not known here: {error}")
    now = status_of(sweep_folder, waiting)
    if json:
        sys.stdout.write(dumps(now.described(), indent=1) + "\n")
        return
    echo(f"{now.name}: {summary(now)}")
    for run in now.runs:
        if run.state == "running" or (run.state == "left" and run.step):
            of = f" of {run.steps:,}" if run.steps else ""
            left = "" if run.seconds_left is None else f", about {duration(run.seconds_left)} to go"
            echo(f"  {run.name}: {run.state}, step {run.step:,}{of}{left}")
        if run.error and run.state != "done":
            echo(f"  {run.name}: {run.state}: {run.error}")
    _show_table(folder)


@sweep.command
def stop(folder: Path, /) -> None:
    """Stop a sweep; its runs save a checkpoint first. Repeat the command that began it to resume.

    iterant sweep stop runs/widths

    Args:
        folder: the sweep's folder, runs/NAME
    """
    from iterant.runner import stop as stop_sweep

    echo(stop_sweep(folder))


@sweep.command
def one(
    folder: Path,
    run: str,
    /,
    *,
    device: DeviceName = "auto",
    trust_code: TrustCode = False,
) -> None:
    """Execute one run of a sweep, as its worker processes do.

    iterant sweep one runs/widths prefix-sums-quick-width32-s0

    Args:
        folder: the sweep's folder, runs/NAME
        run: the run's name
    """
    from iterant.runner.worker import STOPPED, run_one
    from iterant.training.logging import LineReporter

    with output_may_fail():
        done = run_one(folder, run, device=device, trust=trust_code, reporter=LineReporter(echo))
        echo("done" if done else "stopped; continue with the same command")
    if not done:
        sys.exit(STOPPED)
