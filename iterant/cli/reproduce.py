"""``iterant reproduce``: the paper's tables and figures, from results or by training."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from iterant import bounds
from iterant.cli.options import FLAG, DataPath, DeviceName, Duration
from iterant.cli.output import console, echo, output_may_fail, print_table
from iterant.errors import RunError, UsageError
from iterant.formatting import counted, duration

if TYPE_CHECKING:
    from iterant.experiments.catalogue import Experiment
    from iterant.experiments.records import Records

REDUCED = "reduced"
"""The folder of runs that were made smaller, for lack of a GPU"""
_SMALL = ", made smaller: beside the paper's numbers, no reproduction of them"
_WIDE = 160
"""Columns of the terminal that a whole table needs; narrower ones, and --list, get these:"""
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
        budget: train this long: 10m, 1h
        results: folder of records and pictures
    """
    from iterant import registry
    from iterant.experiments.catalogue import experiment
    from iterant.experiments.figures import save_figure
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
    if name is None:
        records = _read(results).whole
        if list_:
            _show_list(records)
        else:
            _make_all(records, results, write)
        return
    chosen = experiment(name)
    small = training and bool(chosen.models) and registry.device(device).type != "cuda"
    if training:
        with output_may_fail():
            _train_missing(chosen, results, small, seeds, budget, device, data)
    every = _read(results, small)
    records = every.as_finished if small else every.whole
    _show_experiment(chosen, records, _SMALL if small else "")
    keys = {model.key for model in chosen.models}
    names = [record.name for record in every.unfinished if small and record.model in keys]
    if names:
        echo(
            f"cut off by their time, and tested as they were: {', '.join(names)}; the same "
            "command gives them more"
        )
    figures = (results / REDUCED if small else results) / "figures"
    for path in save_figure(chosen, records, figures):
        echo(f"drawn in {path}")


def _read(results: Path, small: bool = False) -> Records:
    """The records of a folder of results; says which of them cannot be used."""
    from iterant.experiments.models import MODELS
    from iterant.experiments.records import FOLDERS, read_records

    folders = [results / name for name in ([REDUCED] if small else FOLDERS)]
    records = read_records(*folders)
    for file in records.torn:
        echo(f"{file} ends in the middle of a record, which is left out; copy the file again")
    if not any(folder.is_dir() for folder in folders):
        echo(
            f"there is no {folders[-1]} yet: give --results the folder of a clone, or train with "
            "--budget 10m"
        )
    for record in records.all:
        # Chess networks that were trained for a time have no table.
        reduced = record.is_run and record.reduced and record.reduced.keys() != {"seconds"}
        if record.model not in MODELS:
            echo(f"{record.file} is of an unknown model, {record.model!r}; it is not used")
        elif reduced and not small:
            echo(
                f"{record.file} is of a smaller run and is not used; move it to {results / REDUCED}"
            )
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
    results: Path,
    small: bool,
    seeds: int | None,
    budget: str | None,
    device: str,
    data: Path | None,
) -> None:
    """Train and test what is missing; ``small``: made smaller, for lack of a GPU."""
    from iterant import registry
    from iterant.experiments import reproduce as todo
    from iterant.experiments.records import read_records, read_results

    out = results / (REDUCED if small else "runs")
    records = read_records(out) if small else read_results(results).whole
    finished = todo.tested_enough(experiment, records) if small else records
    runs = todo.missing(experiment, finished, seeds)
    tests = todo.missing_counts(experiment, records, seeds)
    if not runs and not tests:
        echo("every run is there already; give more --seeds for another")
        return
    time = duration(todo.estimate(runs) + todo.estimate_counts(tests))
    if tests and registry.device(device).type != "cuda":
        raise UsageError(
            f"{experiment.name} takes about {time} of a GPU, and there is none here; test a run of "
            "your own by scripts/measure-network, with --model"
        )
    unfinished = {record.name for record in records.unfinished}
    runs.sort(key=lambda run: run.name in unfinished)  # those that had no time yet come first
    what = counted(len(runs), "run") if runs else counted(len(tests), "test")
    here = f"; here they get {budget}" if budget else ""
    echo(f"missing: {what}, about {time} on one H200{here}")
    if small:
        echo(
            "there is no GPU here, so everything is made smaller: "
            f"{todo.smaller_text(experiment)}; {100 * todo.SMALLER_TESTS:g} % of every test set; "
            f"such runs are kept in {out} and are no part of RESULTS.md"
        )
    try:
        if tests:
            left = todo.fill_counts(tests, records, out=out, device=device, budget=budget, say=echo)
        else:
            left = todo.train_missing(
                runs, out=out, folder=todo.SMALL_FOLDER if small else todo.FOLDER, device=device,
                budget=budget, experiment=experiment if small else None, say=echo,
                data=None if data is None else str(data),
            )  # fmt: skip
    except KeyboardInterrupt:
        echo("what was trained is kept; the same command continues from there")
        raise
    if left:
        echo(f"not done: {', '.join(left)}; give the same command again")
    if small and len(left) == len(runs):
        raise RunError(f"no run of {experiment.name} could be recorded; the lines above say why")


def _show_experiment(experiment: Experiment, records: Records, title_end: str = "") -> None:
    """Print the table of one experiment."""
    from iterant.experiments.report import rows_of

    console().print(f"{experiment.title} ({experiment.place}){title_end}", style="bold")
    _show_table(rows_of(experiment, records))
    if experiment.note:
        console().print(experiment.note)


def _show_list(records: Records) -> None:
    """Print every experiment: runs done and missing, the paper's seeds, and both numbers."""
    from iterant.experiments.catalogue import EXPERIMENTS, SEEDS
    from iterant.experiments.report import rows_of, state_of
    from iterant.experiments.reproduce import estimate, estimate_counts, missing, missing_counts

    screen = console()
    for experiment in EXPERIMENTS.values():
        done, planned = state_of(experiment, records)
        left = estimate(missing(experiment, records))
        left += estimate_counts(missing_counts(experiment, records))
        rest = f", the rest about {duration(left)} of an H200" if left else ""
        screen.print(f"{experiment.name}  {experiment.title} ({experiment.place})", style="bold")
        screen.print(f"{done} of {planned} runs{rest}")
        for task in experiment.tasks:
            screen.print(f"seeds in the paper, {task}: {SEEDS[task]}")
        _show_table(rows_of(experiment, records), brief=True)
        screen.print()


def _show_table(rows: Sequence[dict[str, str]], *, brief: bool = False) -> None:
    """Without empty columns; rich breaks what does not fit."""
    names = [name for name in rows[0] if any(row[name] for row in rows)]
    if brief or console().width < _WIDE:
        names = [name for name in names if name in _FEW]
    print_table(names, *([row[name] for name in names] for row in rows))
