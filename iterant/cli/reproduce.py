"""``iterant reproduce``: the paper's tables and figures, from results or by training."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from iterant import bounds
from iterant.cli.options import FLAG, DataPath, DeviceName, Duration
from iterant.cli.output import console, echo, output_may_fail, print_table
from iterant.errors import UsageError
from iterant.formatting import counted, duration

if TYPE_CHECKING:
    from iterant.experiments.catalogue import Experiment
    from iterant.experiments.records import Records

_WIDE = 160
"""Columns of the terminal that a whole table needs; narrower ones get these:"""
_FEW = ("model", "measured", "all seeds", "seeds", "the paper", "beside the paper")


def reproduce(
    name: str | None = None,
    /,
    *,
    list_: Annotated[bool, FLAG] = False,
    all_: Annotated[bool, FLAG] = False,
    write: Path | None = None,
    train: Annotated[bool, FLAG] = False,
    seeds: Annotated[int | None, Parameter(validator=bounds.SEEDS)] = None,
    budget: Annotated[Duration | None, Parameter(name=["--budget", "--time-limit"])] = None,
    results: Path = Path("results"),
    device: DeviceName = "auto",
    data: DataPath = None,
) -> None:
    """Make a table or figure of the paper, with our numbers next to the paper's.

    iterant reproduce --list
    iterant reproduce table-prefix-peaks
    iterant reproduce table-prefix-peaks --seeds 1 --budget 10m
    iterant reproduce --all --write RESULTS.md

    Args:
        name: a table or figure; see --list
        list_: list all of them, and what is missing for each
        all_: make all of them from results
        write: with --all: write them into this Markdown file
        train: train what is missing (--budget implies this)
        seeds: seeds per model [default: as many as planned]
        budget: train at most this long, and resume with the same command: 10m, 1h
        results: folder of records and pictures
    """
    from iterant.experiments.catalogue import experiment
    from iterant.experiments.figures import save_figure
    from iterant.experiments.records import FOLDERS
    from iterant.io.files import check_writable_file

    training = train or budget is not None
    if (name is not None) + list_ + all_ != 1:
        raise UsageError("give the name of a table or figure, or --list, or --all")
    if write is not None:
        if not all_:
            raise UsageError("--write goes with --all; a single table is printed")
        check_writable_file(write)
    if seeds is not None and not training:
        raise UsageError("--seeds says how many to train: give --train or --budget with it")
    if training and name is None:
        raise UsageError("training is for one table or figure at a time; name it")
    if results.exists() and not results.is_dir():
        raise UsageError(f"--results is a folder, {str(results)!r} is a file")
    folders = [results / part for part in FOLDERS]
    if name is None:
        records = _read(folders).whole
        if list_:
            _show_list(records)
        else:
            _make_all(records, results, write)
        return
    chosen = experiment(name)
    if training and not chosen.models:
        raise UsageError(
            f"{name} tests networks of table-maze-peaks: train these, then test them with "
            "scripts/measure-network, as docs/how-to/reproduce.md shows"
        )
    if training:
        with output_may_fail():
            _train_missing(chosen, folders, seeds, budget, device, data)
    records = _read(folders).whole
    _show_experiment(chosen, records)
    for path in save_figure(chosen, records, results / "figures"):
        echo(f"drawn in {path}")


def _read(folders: list[Path]) -> Records:
    """The records of these folders; says which of them are not used."""
    from iterant.experiments.models import MODELS
    from iterant.experiments.records import read_records

    records = read_records(*folders)
    for file in records.torn:
        echo(f"{file} ends in the middle of a record, which is left out; copy the file again")
    if not any(folder.is_dir() for folder in folders):
        echo(f"there is no {folders[-1]} yet; give --results the folder of a clone, or --train")
    for record in records.all:
        # Chess networks that were trained for a time have no table.
        smaller = record.is_run and record.reduced and record.reduced.keys() != {"seconds"}
        if record.model not in MODELS:
            echo(f"{record.file} is of an unknown model, {record.model!r}; it is not used")
        elif smaller:
            echo(f"{record.file} is of a smaller run and is not used")
    return records


def _make_all(records: Records, results: Path, write: Path | None) -> None:
    """Print all tables or write them to a file; draw all figures."""
    from iterant.experiments.catalogue import EXPERIMENTS
    from iterant.experiments.figures import save_figure
    from iterant.experiments.report import results_page
    from iterant.io import write_atomic

    figures = results / "figures"
    if write is not None:  # before the pictures, which stay as they are if this fails
        write_atomic(write, results_page(results).encode("utf-8"))
        echo(f"written to {write}")
    else:
        for experiment in EXPERIMENTS.values():
            _show_experiment(experiment, records)
    pictures = []
    for experiment in EXPERIMENTS.values():
        pictures += save_figure(experiment, records, figures)
    echo(f"{len(pictures)} pictures in {figures}")


def _train_missing(
    experiment: Experiment,
    folders: list[Path],
    seeds: int | None,
    budget: str | None,
    device: str,
    data: Path | None,
) -> None:
    """Train and test what is missing; the records go to the last of the folders."""
    from iterant import registry
    from iterant.experiments import reproduce as todo
    from iterant.experiments.records import read_records

    runs = todo.missing(experiment, read_records(*folders).whole, seeds)
    if not runs:
        echo("every run is there already; give more --seeds for another")
        return
    time = duration(todo.estimate(runs))
    here = "" if registry.device(device).type == "cuda" else ", and far longer here without a GPU"
    echo(f"missing: {counted(len(runs), 'run')}, about {time} on one H200{here}")
    try:
        left = todo.train_missing(
            runs, out=folders[-1], device=device, budget=budget, say=echo,
            data=None if data is None else str(data),
        )  # fmt: skip
    except KeyboardInterrupt:
        echo("what was trained is kept; the same command continues from there")
        raise
    if left:
        echo(f"not done: {', '.join(left)}; give the same command again")


def _show_experiment(experiment: Experiment, records: Records) -> None:
    """Print the table of one experiment, without empty columns; rich breaks what does not fit."""
    from iterant.experiments.report import rows_of

    console().print(f"{experiment.title} ({experiment.place})", style="bold")
    rows = rows_of(experiment, records)
    names = [name for name in rows[0] if any(row[name] for row in rows)]
    if console().width < _WIDE:
        names = [name for name in names if name in _FEW]
    print_table(names, *([row[name] for name in names] for row in rows))
    if experiment.note:
        console().print(experiment.note)


def _show_list(records: Records) -> None:
    """Print every experiment, how many of its runs are done and how long the others take."""
    from iterant.experiments.catalogue import EXPERIMENTS
    from iterant.experiments.report import state_of
    from iterant.experiments.reproduce import estimate, missing

    for experiment in EXPERIMENTS.values():
        done, planned = state_of(experiment, records)
        left = estimate(missing(experiment, records))
        rest = f", the rest about {duration(left)} of an H200" if left else ""
        echo(f"{experiment.name}  {experiment.title} ({experiment.place})", style="bold")
        echo(f"  {done} of {planned} runs{rest}")
