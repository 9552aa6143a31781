"""``iterant reproduce``: the paper's tables and figures, from results or by training.

iterant reproduce --list
iterant reproduce table-prefix-peaks
iterant reproduce table-prefix-peaks --seeds 1 --budget 10m
iterant reproduce --all --write RESULTS.md
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from iterant.cli.options import DataPath, DeviceName
from iterant.cli.reproduce_report import show_experiment, show_list
from iterant.cli.screen import console
from iterant.errors import RunError, UsageError
from iterant.formatting import duration

if TYPE_CHECKING:
    from rich.console import Console

    from iterant.experiments.catalogue import Experiment
    from iterant.experiments.models import RunSpec
    from iterant.experiments.records import Records

REDUCED = "reduced"
"""The folder of runs that were made smaller"""
MOST_SEEDS = 1000
_FEW = 12
"""Names that are listed."""
_SMALL = ", made smaller: beside the paper's numbers, no reproduction of them"


def reproduce(
    name: str | None = None,
    /,
    *,
    list_: Annotated[bool, Parameter(name="--list", negative="")] = False,
    all_: Annotated[bool, Parameter(name="--all", negative="")] = False,
    write: Path | None = None,
    train: Annotated[bool, Parameter(negative="")] = False,
    seeds: int | None = None,
    budget: Annotated[str | None, Parameter(name=["--budget", "--time-limit"])] = None,
    results: Path = Path("results"),
    device: DeviceName = "auto",
    data: DataPath = None,
) -> None:
    """Make a table or figure of the paper, ours beside theirs.

    Args:
        name: a table or figure; see --list
        list_: show all of them, with their state
        all_: make all of them from results
        write: with --all: write them into this Markdown file
        train: train what is missing (--budget means that too)
        seeds: of every model [default: as many as planned]
        budget: train this long: 10m, 1h
        results: where records and pictures are
    """
    from iterant.experiments.catalogue import experiment
    from iterant.experiments.figures import save_figure, save_timed
    from iterant.experiments.records import Records
    from iterant.io.files import check_writable_file

    words = {name or "''": name is not None, "--list": list_, "--all": all_}
    asked = [word for word, is_given in words.items() if is_given]
    training = train or budget is not None
    if len(asked) != 1:
        both = f", not {' and '.join(asked)}" if asked else ""
        raise UsageError(f"give the name of a table or figure, --list, or --all{both}")
    if write is not None and not all_:
        raise UsageError("--write goes with --all; a single table is printed")
    if write is not None:
        check_writable_file(write)
    if seeds is not None and seeds < 1:
        raise UsageError(f"at least one seed is needed, got {seeds}")
    if seeds is not None and seeds > MOST_SEEDS:
        raise UsageError(f"at most {MOST_SEEDS:,} seeds, got {seeds:,}; give fewer")
    if seeds is not None and not training:
        raise UsageError("--seeds says how many to train: give --train or --budget with it")
    if training and name is None:
        raise UsageError("training is for one table or figure at a time; name it")
    if results.exists() and not results.is_dir():
        raise UsageError(f"--results is a folder, {str(results)!r} is a file")
    screen = console()
    if name is None:
        records = _read(results, screen)
        if list_:
            show_list(records, screen)
        else:
            _make_all(records, results, write, screen)
        return
    chosen, small = experiment(name), False
    if training:
        own = None if data is None else str(data)
        small = _train_missing(chosen, results, seeds, budget, device, own, screen)
    every = _read(results, screen, small)
    whole, timed = (every.as_finished, Records()) if small else (every.whole, every)
    show_experiment(chosen, whole, timed, screen, _SMALL if small else "")
    if small and (text := _cut_off(chosen, every)):
        screen.print(text, soft_wrap=True)
    figures = (results / REDUCED if small else results) / "figures"
    for path in save_figure(chosen, whole, figures) + save_timed(chosen, timed, figures):
        screen.print(f"drawn in {path}", soft_wrap=True)


def _read(results: Path, screen: Console, small: bool = False) -> Records:
    """The records of a folder of results; says which of them cannot be used."""
    from iterant.experiments.models import MODELS
    from iterant.experiments.records import FOLDERS, read_records

    folders = [results / name for name in ([REDUCED] if small else FOLDERS)]

    def problems() -> Iterator[str]:
        if not any(folder.is_dir() for folder in folders):
            yield (
                f"there is no {folders[-1]} yet: give --results the folder of a clone, or train "
                "with --budget 10m"
            )
        for file in records.torn:
            yield f"{file} ends in the middle of a record, which is left out; copy the file again"
        for one in records.all:
            if one.model not in MODELS:
                yield (
                    f"{one.file} is of the model {one.model!r}, which there is not; it counts "
                    "nowhere"
                )
        reduced = [one for one in records.all if one.is_run and one.reduced]
        smaller = [one.name for one in reduced if one.reduced.keys() != {"seconds"}]
        if smaller and not small:
            yield (
                f"smaller runs in {results} count nowhere: {', '.join(smaller)}; they belong into "
                f"{results / REDUCED}"
            )

    records = read_records(*folders)
    for line in problems():
        screen.print(line, soft_wrap=True)
    return records


def _make_all(records: Records, results: Path, write: Path | None, screen: Console) -> None:
    """Print all tables or write them to a file; draw all figures."""
    from iterant.experiments.catalogue import EXPERIMENTS
    from iterant.experiments.figures import Reference, save_figure, save_timed
    from iterant.experiments.report import results_page
    from iterant.io import write_atomic

    figures, whole = results / "figures", records.whole
    if write is not None:  # before the pictures, which stay as they are if this fails
        write_atomic(write, results_page(results).encode("utf-8"))
        screen.print(f"written to {write}", soft_wrap=True)
    else:
        for one in EXPERIMENTS.values():
            show_experiment(one, whole, records, screen)
    pictures = []
    for one in EXPERIMENTS.values():
        pictures += save_figure(one, whole, figures) + save_timed(one, records, figures)
    if (reference := Reference.read(results)) is not None:
        pictures += reference.save(whole, figures)
    screen.print(f"{len(pictures)} pictures in {figures}", soft_wrap=True)


def _train_missing(
    one: Experiment,
    results: Path,
    seeds: int | None,
    budget: str | None,
    device: str,
    data: str | None,
    screen: Console,
) -> bool:
    """Train and test what is missing; whether it was made smaller, for lack of a GPU."""
    from iterant.experiments import reproduce as missing_runs
    from iterant.experiments.records import read_records, read_results
    from iterant.training.interrupts import seconds
    from iterant.training.run import use_device

    def say(text: str) -> None:
        screen.print(text, soft_wrap=True)

    if budget is not None:
        seconds(budget)  # checked before anything is printed
    small = use_device(device).type != "cuda"
    if not one.models:
        _count_missing(one, results, seeds, budget, device, screen)
        return False
    out = results / (REDUCED if small else "runs")
    records = read_records(out) if small else read_results(results)
    runs = missing_runs.missing(
        one, missing_runs.tested_enough(one, records) if small else records, seeds
    )
    if not runs:
        say("every run is there already; give more --seeds for another")
        return small
    missing_runs.check_before_training(one, out, small, data)
    unfinished = {record.name for record in records.unfinished}
    begun = sum(run.name in unfinished for run in runs)
    runs.sort(key=lambda run: run.name in unfinished)  # those that had no time yet come first
    say(
        f"{'1 run is' if len(runs) == 1 else f'{len(runs)} runs are'} missing"
        + (f" ({begun} cut off before)" if begun else "")
        + f", about {duration(missing_runs.estimate(runs))} on one H200"
        + (f"; here they get {budget}" if budget else "")
    )
    if small:
        say(
            "there is no GPU here, so everything is made smaller: "
            f"{missing_runs.smaller_text(one)}; "
            f"{100 * missing_runs.SMALLER_TESTS:g} % of every test set"
            + (", each run as long as its share of the time" if budget else "")
            + f"; such runs are kept in {out} and are no part of RESULTS.md"
        )
    try:
        left = missing_runs.produce(one, runs, out=out, device=device, budget=budget,
                                    small=small, data=data, say=say)  # fmt: skip
    except KeyboardInterrupt:
        say("what was trained is kept; the same command goes on from there")
        raise
    if left:
        say(f"not done: {_few([run.name for run in left])}; give the same command again")
    if small and len(left) == len(runs):
        raise RunError(f"no run of {one.name} could be recorded; the lines above say why")
    return small


def _count_missing(
    one: Experiment,
    results: Path,
    seeds: int | None,
    budget: str | None,
    device: str,
    screen: Console,
) -> None:
    """Test networks on problems without curves; train those whose runs are missing."""
    from iterant.experiments import reproduce as missing_runs
    from iterant.experiments.records import read_results
    from iterant.experiments.train_and_test import FOLDER
    from iterant.training.interrupts import seconds
    from iterant.training.run import use_device

    def say(text: str) -> None:
        screen.print(text, soft_wrap=True)

    def train(runs: Sequence[RunSpec], out: Path) -> None:
        missing_runs.produce(one, runs, out=out, device=device, budget=budget, small=False,
                             say=say)  # fmt: skip

    records = read_results(results).whole
    tests = missing_runs.missing_counts(one, records, seeds)
    if not tests:
        say("every network is tested already; give more --seeds for another")
        return
    time = duration(missing_runs.estimate_counts(tests))
    if use_device(device).type != "cuda":
        raise UsageError(
            f"{one.name} takes about {time} of a GPU, and there is none here; test a run of your "
            "own by scripts/measure-network, with --model"
        )
    missing_runs.check_before_training(one, results / "runs", False, None)
    say(f"{len(tests)} tests are missing, about {time} on one H200, training included"
        + (f"; here they get {budget}" if budget else ""))  # fmt: skip
    try:
        left = missing_runs.fill_counts(
            tests, records, out=results / "runs", folder=FOLDER, device=device,
            train=train, limit=None if budget is None else seconds(budget), say=say,
        )  # fmt: skip
    except KeyboardInterrupt:
        say("what was trained and tested is kept; the same command goes on from there")
        raise
    if left:
        names = _few([f"{test.run.name} at {test.row.size}" for test in left])
        say(f"not done: {names}; give the same command again")


def _cut_off(one: Experiment, records: Records) -> str:
    """Which runs were tested though their time ended before they finished; "": none."""
    keys, names = {model.key for model in one.models}, []
    for record in records.unfinished:
        if record.model in keys:
            training = record.figures["training"]
            done = f"{training.get('updates', 0):,} of {training.get('of', 0):,} updates"
            names.append(f"{record.name} ({done})")
    if not names:
        return ""
    return (
        f"cut off by their time, and tested as they were: {_few(names)}; the same command "
        "gives them more"
    )


def _few(names: Sequence[str]) -> str:
    more = f" and {len(names) - _FEW} more" if len(names) > _FEW else ""
    return ", ".join(names[:_FEW]) + more
