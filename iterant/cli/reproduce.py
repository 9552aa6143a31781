"""``iterant reproduce``: the paper's tables and figures, from results or by training."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from iterant import bounds
from iterant.cli.options import FLAG, SEVERAL, DataPath, DeviceName, Duration
from iterant.cli.output import console, echo, output_may_fail, print_rows, print_table
from iterant.errors import UnknownName, UsageError
from iterant.formatting import counted, duration

if TYPE_CHECKING:
    from iterant.experiments.catalogue import Experiment
    from iterant.experiments.records import Records
    from iterant.experiments.shifts import MazeExperiment

_WIDE = 160
"""Width of a terminal from which tables have all columns."""
_LEFT_OUT = ("95 %", "converged")
"""Columns that are left out on narrower terminals."""


def reproduce(
    name: str | None = None,
    /,
    *,
    list_: Annotated[bool, FLAG] = False,
    all_: Annotated[bool, FLAG] = False,
    write: Path | None = None,
    train: Annotated[bool, FLAG] = False,
    seeds: Annotated[int | None, Parameter(validator=bounds.SEEDS)] = None,
    networks: Annotated[list[str] | None, SEVERAL] = None,
    budget: Annotated[Duration | None, Parameter(name=["--budget", "--time-limit"])] = None,
    results: Annotated[Path | None, Parameter(show_default=False)] = None,
    device: DeviceName = "auto",
    data: DataPath = None,
) -> None:
    """Make a table or figure of the paper, or of mazes unlike the paper's, next to our numbers.

    iterant reproduce --list
    iterant reproduce table-prefix-peaks
    iterant reproduce table-prefix-peaks --seeds 1 --budget 10m
    iterant reproduce maze-shifts --networks mazes runs/m-s0
    iterant reproduce --all --write RESULTS.md

    Args:
        name: a table or figure; see --list
        list_: list all of them, and how many of the runs are there; with --all also where they
            are in the paper, and how long the missing runs take
        all_: make all of them from results
        write: with --all: write them into this Markdown file
        train: train what is missing (--budget implies this)
        seeds: seeds per model [default: as many as planned]
        networks: of maze-shifts and maze-hard: test these networks first, on all cores; names,
            runs or folders of weights. maze-hard reads its mazes from --data
        budget: train or test at most this long, and resume with the same command: 10m, 1h
        results: folder of records and pictures [default: results, or to look only, where that has
            none, the records that ship with iterant]
    """
    from iterant import registry
    from iterant.experiments.figures import save_pictures
    from iterant.experiments.records import FOLDERS
    from iterant.experiments.report import ALL_EXPERIMENTS
    from iterant.experiments.shifts import MAZE_EXPERIMENTS
    from iterant.io.files import check_writable_file

    training = train or budget is not None
    if (name is not None) + (list_ or all_) != 1:
        raise UsageError("give the name of a table or figure, or --list, or --all")
    if write is not None:
        if list_ or not all_:
            raise UsageError("--write goes with --all; a single table is printed")
        check_writable_file(write)
    if seeds is not None and not training:
        raise UsageError("--seeds says how many to train: give --train or --budget with it")
    if name not in MAZE_EXPERIMENTS and networks:
        raise UsageError(f"--networks goes with {' or '.join(MAZE_EXPERIMENTS)}")
    if training and name is None:
        raise UsageError("training is for one table or figure at a time; name it")
    or_shipped = results is None and not training and not networks
    results = results or Path("results")
    if results.exists() and not results.is_dir():
        raise UsageError(f"--results is a folder, {str(results)!r} is a file")
    folders = [results / part for part in FOLDERS]
    if name is None:
        records = _read(folders, or_shipped)
        if list_:
            _show_list(records, complete=all_)
        else:
            _make_all(records, results, write)
        return
    if name not in ALL_EXPERIMENTS:
        raise UnknownName(registry.unknown_name("table or figure", name, tuple(ALL_EXPERIMENTS)))
    chosen = ALL_EXPERIMENTS[name]
    if networks:
        _test_networks(name, networks, folders[-1], budget, device, data)
    elif training:
        if not chosen.models:
            raise UsageError(
                f"{name} tests networks that are trained already: give --networks, or use "
                "scripts/measure-network, as docs/how-to/reproduce.md shows"
            )
        with output_may_fail():
            _train_missing(chosen, folders, seeds, budget, device, data)
    records = _read(folders, or_shipped)
    _show(chosen, records)
    for path in save_pictures(chosen, records, results / "figures"):
        echo(f"drawn in {path}")


def _read(folders: list[Path], or_shipped: bool) -> Records:
    """The records of these folders, or the shipped ones; says which of them are not used."""
    from iterant.experiments.models import MODELS
    from iterant.experiments.records import FOLDERS, read_records, shipped_results

    if not any(folder.is_dir() for folder in folders):
        if or_shipped:
            echo(f"there are no records in {folders[-1].parent} here; these are the recorded "
                 "results that ship with iterant")  # fmt: skip
            folders = [shipped_results() / part for part in FOLDERS]
        else:
            echo(f"there is no {folders[-1]} yet; give --results the folder of a clone, or --train")
    records = read_records(*folders)
    for record in records.all:
        # Networks that are tested on other mazes may have any name.
        on_other_mazes = any(test.any_path for test in record.counts)
        if record.model not in MODELS and not on_other_mazes:
            echo(f"{record.file} is of an unknown model, {record.model!r}; it is not used")
    return records


def _make_all(records: Records, results: Path, write: Path | None) -> None:
    """Print all tables or write them to a file; draw all figures."""
    from iterant.experiments.figures import save_pictures
    from iterant.experiments.report import ALL_EXPERIMENTS, results_page
    from iterant.io import write_atomic

    figures = results / "figures"
    if write is not None:  # before the pictures, which stay as they are if this fails
        write_atomic(write, results_page(results, records).encode("utf-8"))
        echo(f"written to {write}")
    else:
        for one in ALL_EXPERIMENTS.values():
            _show(one, records)
    count = sum(len(save_pictures(one, records, figures)) for one in ALL_EXPERIMENTS.values())
    echo(f"{count} pictures in {figures}")


def _train_missing(
    experiment: Experiment | MazeExperiment,
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

    runs = todo.missing(experiment, read_records(*folders), seeds)
    if not runs:
        echo("every run is there already; give more --seeds for another")
        return
    time = duration(todo.estimate(runs))
    here = "" if registry.device(device).type == "cuda" else ", and far longer here without a GPU"
    echo(f"missing: {counted(len(runs), 'run')}, about {time} on one H200{here}")
    left = todo.train_missing(
        runs, out=folders[-1], device=device, budget=budget, say=echo,
        data=None if data is None else str(data),
    )  # fmt: skip
    if left:
        echo(f"not done: {', '.join(left)}; give the same command again")


def _test_networks(
    name: str, networks: list[str], folder: Path, budget: str | None, device: str, data: Path | None
) -> None:
    """Test networks on mazes unlike the paper's; the records go to a file of the folder."""
    from iterant import registry
    from iterant.experiments.shifts import GRID, LARGE, maze_hard, measure_mazes
    from iterant.io.results import hardware

    if (name == "maze-hard") != (data is not None):
        raise UsageError(
            "maze-hard, and only that, reads mazes: give --data, a folder of its files"
        )
    target = registry.device(device)
    left = measure_mazes(
        networks, (*GRID, *LARGE) if data is None else maze_hard(data), folder / f"{name}.jsonl",
        processes=1 if target.type == "cuda" else hardware()["cores"], budget=budget,
        device=str(target), say=echo,
    )  # fmt: skip
    if left:
        echo(f"{counted(left, 'test')} not done; give the same command again")


def _show(experiment: Experiment | MazeExperiment, records: Records) -> None:
    """Print its table, without empty columns; rich breaks what does not fit."""
    console().print(f"{experiment.title} ({experiment.place})", style="bold")
    left_out = _LEFT_OUT if console().width < _WIDE else ()
    rows = experiment.make_table(records)
    print_rows([{k: v for k, v in row.items() if k not in left_out} for row in rows])
    if experiment.note:
        console().print(experiment.note)


def _show_list(records: Records, *, complete: bool) -> None:
    """Print what there is, and how many of its runs are there; ``complete``: all about it."""
    from iterant.experiments.report import ALL_EXPERIMENTS
    from iterant.experiments.reproduce import estimate, missing

    rows = []
    for one in ALL_EXPERIMENTS.values():
        row = [one.name, one.title, one.state(records)]
        if complete:
            runs = missing(one, records)
            left = f"the rest about {duration(estimate(runs))} on an H200" if runs else ""
            row += [one.place, left]
        rows.append(row)
    print_table(None, *rows)
    echo("iterant reproduce NAME shows one" + ("" if complete else "; --list --all says more"))
