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
from iterant.cli.reproduce_report import show_grouped, show_list, who_and_what
from iterant.errors import UsageError

if TYPE_CHECKING:
    from rich.console import Console

    from iterant.experiments.catalogue import Experiment
    from iterant.experiments.counts import Counts
    from iterant.experiments.records import Records
    from iterant.experiments.timed import Timed

REDUCED = "reduced"
"""The folder of runs that were made smaller"""
MOST_SEEDS = 1000
WIDE = 182
"""Columns of a terminal that a whole table fits."""
FEW = ("all seeds", "seeds", "the paper", "all seeds beside it")
FEW_TIMED = ("trained for", "solved", "at the end", "the paper (its recipe, its puzzles)")
"""What is shown where it does not, behind what was measured on which model."""

SMALL = ", made smaller: beside the paper's numbers, no reproduction of them"
BY_TIME = "Trained for a time each, on other puzzles: no reproduction of the paper's recipe"


def reproduce(
    name: Annotated[str | None, Parameter(help="a table or figure; see --list")] = None,
    /,
    *,
    list_: Annotated[
        bool, Parameter(name="--list", negative="", help="show all of them, with their state")
    ] = False,
    all_: Annotated[
        bool, Parameter(name="--all", negative="", help="make all of them from results")
    ] = False,
    write: Annotated[
        Path | None, Parameter(help="with --all: write them into this Markdown file")
    ] = None,
    train: Annotated[
        bool, Parameter(negative="", help="train what is missing (--budget means that too)")
    ] = False,
    seeds: Annotated[int | None, Parameter(help="of every model [default: as many as planned]")] = (
        None
    ),
    budget: Annotated[
        str | None, Parameter(name=["--budget", "--time-limit"], help="train this long: 10m, 1h")
    ] = None,
    results: Annotated[Path, Parameter(help="where records and pictures are")] = Path("results"),
    device: DeviceName = "auto",
    data: DataPath = None,
) -> None:
    """Make a table or figure of the paper, ours beside theirs."""
    from iterant.experiments.catalogue import experiment
    from iterant.experiments.counts import Counts, read_counts
    from iterant.experiments.figures import save_by_time, save_figure
    from iterant.experiments.timed import read_timed
    from iterant.io.files import check_writable_file

    screen = console()
    words = ((name or "''", name is not None), ("--list", list_), ("--all", all_))
    asked = [word for word, given in words if given]
    if len(asked) != 1:
        came = f", not {' and '.join(asked)}" if asked else ""
        raise UsageError(f"give the name of a table or figure, --list, or --all{came}")
    if write is not None and not all_:
        raise UsageError("--write goes with --all; a single table is printed")
    if write is not None:
        check_writable_file(write)
    if seeds is not None and seeds < 1:
        raise UsageError(f"at least one seed is needed, got {seeds}")
    if seeds is not None and seeds > MOST_SEEDS:
        raise UsageError(f"at most {MOST_SEEDS:,} seeds, got {seeds:,}; give fewer")
    training = train or budget is not None
    if seeds is not None and not training:
        raise UsageError("--seeds says how many to train: give --train or --budget with it")
    if training and name is None:
        raise UsageError("training is for one table or figure at a time; name it")
    if results.exists() and not results.is_dir():
        raise UsageError(f"--results is a folder, {str(results)!r} is a file")
    if name is None:
        records = _kept(results / "runs", screen).whole
        if list_:
            show_list(records, read_timed(results), read_counts(results), screen)
        else:
            _all(records, results, write, screen)
        return
    chosen, small = experiment(name), False
    if training:
        from iterant.cli.reproduce_report import cut_off, fill

        small = fill(chosen, results, seeds, budget, device, None if data is None else str(data),
                     screen)  # fmt: skip
    place = results / (REDUCED if small else "runs")
    found = _kept(place, screen)
    records = found.taken_as_they_are if small else found.whole
    timed, counts = ((), Counts()) if small else (read_timed(results), read_counts(results))
    _show(chosen, records, screen, timed, counts, SMALL if small else "")
    if small and (told := cut_off(chosen, found)):
        screen.print(told, soft_wrap=True)
    figures = (place if small else results) / "figures"
    for path in save_figure(chosen, records, figures) + save_by_time(chosen, timed, figures):
        screen.print(f"drawn in {path}", soft_wrap=True)


def _kept(folder: Path, screen: Console) -> Records:
    """The records of a folder, with a word where some or all are not to be had."""
    from iterant.experiments.records import read_records

    if not folder.is_dir():
        screen.print(
            f"there is no {folder} yet: give --results the folder of a clone, or train with "
            "--budget 10m",
            soft_wrap=True,
        )
    found = read_records(folder)
    for file in found.torn:
        screen.print(
            f"{file} ends in the middle of a record, which is left out; copy the file again",
            soft_wrap=True,
        )
    for line in _passed_over(found, folder):
        screen.print(line, soft_wrap=True)
    return found


def _passed_over(found: Records, folder: Path) -> Iterator[str]:
    """Records that nothing here is made of, which whoever copied them should know."""
    from iterant.experiments.models import MODELS

    for one in found.all:
        if one.model not in MODELS:
            yield f"{one.file} is of the model {one.model!r}, which there is not; it counts nowhere"
    smaller = [f"{one.model}-s{one.seed}" for one in found.all if one.reduced]
    if smaller and folder.name != REDUCED:
        yield (
            f"smaller runs in {folder} count nowhere: {', '.join(smaller)}; they belong into "
            f"{folder.parent / REDUCED}"
        )


def _all(records: Records, results: Path, write: Path | None, screen: Console) -> None:
    from iterant.experiments.catalogue import EXPERIMENTS
    from iterant.experiments.counts import read_counts
    from iterant.experiments.figures import Reference, save_by_time, save_figure
    from iterant.experiments.report import results_page
    from iterant.experiments.timed import read_timed
    from iterant.io import write_atomic

    figures, timed = results / "figures", read_timed(results)
    if write is not None:  # before the pictures: what cannot be written leaves them as they are
        write_atomic(write, results_page(results).encode("utf-8"))
        screen.print(f"written to {write}", soft_wrap=True)
    else:
        counts = read_counts(results)
        for one in EXPERIMENTS.values():
            _show(one, records, screen, timed, counts)
    drawn = []
    for one in EXPERIMENTS.values():
        drawn += save_figure(one, records, figures) + save_by_time(one, timed, figures)
    reference = Reference.read(results)
    if reference is not None:
        drawn += reference.save(records, figures)
    screen.print(f"{len(drawn)} pictures in {figures}", soft_wrap=True)


def _show(
    one: Experiment,
    records: Records,
    screen: Console,
    timed: Sequence[Timed],
    counts: Counts,
    note: str = "",
) -> None:
    from rich.table import Table

    from iterant.experiments.tables import HEAD, rows_of
    from iterant.experiments.timed import HEAD as TIMED_HEAD
    from iterant.experiments.timed import remarks, timed_rows

    narrow = screen.width < WIDE
    title = f"{one.title} ({one.place}){note}"
    by_time = timed_rows(one, timed)
    for name, rows, few in (
        (title, rows_of(one, records, counts), [HEAD.index(word) for word in FEW]),
        (BY_TIME, by_time, [TIMED_HEAD.index(word) for word in FEW_TIMED]),
    ):
        if not rows:
            continue
        head, *rest = rows
        if narrow:
            screen.print(name, style="italic")
            parts = [
                ((who, *(cells[place] for place in few)), measured)
                for cells in rest
                for who, measured in [who_and_what(dict(zip(head, cells, strict=True)))]
            ]
            show_grouped(("", *(head[place] for place in few)), parts, screen)
            continue
        filled = [place for place in range(len(head)) if any(cells[place] for cells in rest)]
        table = Table(*(head[place] for place in filled), title=name, title_justify="left",
                      box=None)  # fmt: skip
        for cells in rest:
            table.add_row(*(cells[place] for place in filled))
        screen.print(table)
    for text in remarks(one, timed)[1:] if by_time else ():
        screen.print(text.replace("**", ""), soft_wrap=not narrow)
    if one.note:
        screen.print(one.note, soft_wrap=not narrow)
