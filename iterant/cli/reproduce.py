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

from iterant.cli.options import DataPath, DeviceName, console
from iterant.cli.reproduce_report import show_experiment, show_list
from iterant.errors import RunError, UsageError
from iterant.formatting import duration

if TYPE_CHECKING:
    from rich.console import Console

    from iterant.experiments.catalogue import Experiment
    from iterant.experiments.models import Unit
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
    from iterant.experiments.counts import Counts, read_counts
    from iterant.experiments.figures import save_by_time, save_figure
    from iterant.experiments.timed import read_timed
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
        records = _read(results / "runs", screen).whole
        if list_:
            show_list(records, read_timed(results), read_counts(results), screen)
        else:
            _make_all(records, results, write, screen)
        return
    chosen, small = experiment(name), False
    if training:
        own = None if data is None else str(data)
        small = _train_missing(chosen, results, seeds, budget, device, own, screen)
    folder = results / (REDUCED if small else "runs")
    read = _read(folder, screen)
    records = read.taken_as_they_are if small else read.whole
    timed, counts = ((), Counts()) if small else (read_timed(results), read_counts(results))
    show_experiment(chosen, records, screen, timed, counts, _SMALL if small else "")
    if small and (text := _cut_off(chosen, read)):
        screen.print(text, soft_wrap=True)
    figures = (folder if small else results) / "figures"
    for path in save_figure(chosen, records, figures) + save_by_time(chosen, timed, figures):
        screen.print(f"drawn in {path}", soft_wrap=True)


def _read(folder: Path, screen: Console) -> Records:
    """The records of a folder; says which of them cannot be used."""
    from iterant.experiments.models import MODELS
    from iterant.experiments.records import read_records

    def problems() -> Iterator[str]:
        if not folder.is_dir():
            yield (
                f"there is no {folder} yet: give --results the folder of a clone, or train with "
                "--budget 10m"
            )
        for file in records.torn:
            yield f"{file} ends in the middle of a record, which is left out; copy the file again"
        for one in records.all:
            if one.model not in MODELS:
                yield (
                    f"{one.file} is of the model {one.model!r}, which there is not; it counts "
                    "nowhere"
                )
        smaller = [f"{one.model}-s{one.seed}" for one in records.all if one.reduced]
        if smaller and folder.name != REDUCED:
            yield (
                f"smaller runs in {folder} count nowhere: {', '.join(smaller)}; they belong into "
                f"{folder.parent / REDUCED}"
            )

    records = read_records(folder)
    for line in problems():
        screen.print(line, soft_wrap=True)
    return records


def _make_all(records: Records, results: Path, write: Path | None, screen: Console) -> None:
    """Print all tables or write them to a file; draw all figures."""
    from iterant.experiments.catalogue import EXPERIMENTS
    from iterant.experiments.counts import read_counts
    from iterant.experiments.figures import Reference, save_by_time, save_figure
    from iterant.experiments.report import results_page
    from iterant.experiments.timed import read_timed
    from iterant.io import write_atomic

    figures, timed = results / "figures", read_timed(results)
    if write is not None:  # before the pictures, which stay as they are if this fails
        write_atomic(write, results_page(results).encode("utf-8"))
        screen.print(f"written to {write}", soft_wrap=True)
    else:
        counts = read_counts(results)
        for one in EXPERIMENTS.values():
            show_experiment(one, records, screen, timed, counts)
    pictures = []
    for one in EXPERIMENTS.values():
        pictures += save_figure(one, records, figures) + save_by_time(one, timed, figures)
    if (reference := Reference.read(results)) is not None:
        pictures += reference.save(records, figures)
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
    from iterant.experiments.records import read_records
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
    records = read_records(out)
    units = missing_runs.missing(
        one, missing_runs.tested_enough(one, records) if small else records, seeds
    )
    if not units:
        say("every run is there already; give more --seeds for another")
        return small
    missing_runs.check_tests(one, data)
    missing_runs.check_places(out, small)
    unfinished = {f"{record.model}-s{record.seed}" for record in records.unfinished()}
    begun = sum(unit.name in unfinished for unit in units)
    units.sort(key=lambda unit: unit.name in unfinished)  # those that had no time yet come first
    say(
        f"{'1 run is' if len(units) == 1 else f'{len(units)} runs are'} missing"
        + (f" ({begun} cut off before)" if begun else "")
        + f", about {duration(missing_runs.estimate(units))} on one H200"
        + (f"; here they get {budget}" if budget else "")
    )
    if small:
        say(
            f"there is no GPU here, so everything is made smaller: {missing_runs.told(one)}; "
            f"{100 * missing_runs.SMALLER_TESTS:g} % of every test set"
            + (", each run as long as its share of the time" if budget else "")
            + f"; such runs are kept in {out} and are no part of RESULTS.md"
        )
    try:
        left = missing_runs.produce(one, units, out=out, device=device, budget=budget,
                                    small=small, data=data, say=say)  # fmt: skip
    except KeyboardInterrupt:
        say("what was trained is kept; the same command goes on from there")
        raise
    if left:
        say(f"not done: {_few([unit.name for unit in left])}; give the same command again")
    if small and len(left) == len(units):
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
    from iterant.experiments.counts import read_counts
    from iterant.experiments.records import read_records
    from iterant.training.interrupts import seconds
    from iterant.training.run import use_device

    def say(text: str) -> None:
        screen.print(text, soft_wrap=True)

    def train(units: Sequence[Unit], out: Path) -> None:
        missing_runs.produce(one, units, out=out, device=device, budget=budget, small=False,
                             say=say)  # fmt: skip

    tests = missing_runs.uncounted(one, read_counts(results), seeds)
    if not tests:
        say("every network is tested already; give more --seeds for another")
        return
    time = duration(missing_runs.estimate_counts(tests, missing_runs.RUNS))
    if use_device(device).type != "cuda":
        raise UsageError(
            f"{one.name} takes about {time} of a GPU, and there is none here; test a run of your "
            "own by scripts/measure-network, with --model"
        )
    missing_runs.check_places(results / "runs", small=False)
    say(f"{len(tests)} tests are missing, about {time} on one H200, training included"
        + (f"; here they get {budget}" if budget else ""))  # fmt: skip
    try:
        left = missing_runs.count(
            tests, read_records(results / "runs").whole, results=results, runs=missing_runs.RUNS,
            device=device, train=train, limit=None if budget is None else seconds(budget), say=say,
        )  # fmt: skip
    except KeyboardInterrupt:
        say("what was trained and tested is kept; the same command goes on from there")
        raise
    if left:
        names = _few([f"{test.unit.name} at {test.row.size}" for test in left])
        say(f"not done: {names}; give the same command again")


def _cut_off(one: Experiment, records: Records) -> str:
    """Which runs were tested though their time ended before they finished; "": none."""
    keys, names = {model.key for model in one.models}, []
    for record in records.unfinished():
        if record.model in keys:
            training = record.figures["training"]
            done = f"{training.get('updates', 0):,} of {training.get('of', 0):,} updates"
            names.append(f"{record.model}-s{record.seed} ({done})")
    if not names:
        return ""
    return (
        f"cut off by their time, and tested as they were: {_few(names)}; the same command "
        "gives them more"
    )


def _few(names: Sequence[str]) -> str:
    more = f" and {len(names) - _FEW} more" if len(names) > _FEW else ""
    return ", ".join(names[:_FEW]) + more
