"""What `iterant reproduce` trains and tests where something is missing.

Rows under headings, in columns that all groups share, on a terminal of any width.

``iterant reproduce --list``: all tables and figures, and how far they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from iterant.errors import RunError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import Console

    from iterant.experiments.catalogue import Experiment, Row
    from iterant.experiments.counts import Counts
    from iterant.experiments.models import Unit
    from iterant.experiments.records import Records
    from iterant.experiments.timed import Timed


Cells = tuple[str, ...]

_GAP = 2
_FOLDS = (" %", ",", "difference", "all seeds", "the paper")
"""Behind what a line is broken where room is short"""


def show_grouped(head: Cells, rows: Sequence[tuple[Cells, str]], screen: Console) -> None:
    """Print the head, then for every heading its rows, without columns that say nothing."""
    from rich.table import Table

    said = [place for place in range(len(head)) if any(cells[place] for cells, _ in rows)]
    first = {heading: place for place, (_, heading) in reversed(list(enumerate(rows)))}
    ordered = sorted(rows, key=lambda row: first[row[1]])
    whole = [
        (tuple(cells[place] for place in said), heading)
        for cells, heading in [(head, ""), *ordered]
    ]
    if _over(_natural(whole), screen.width) > 0:
        whole = [(tuple(map(_folded, cells)), heading) for cells, heading in whole]
    widths = _natural(whole)  # what still does not fit is broken by rich
    for heading, group in groupby(whole, key=lambda row: row[1]):
        if heading:
            screen.print(f" {heading}:")
        table = Table.grid(padding=(0, _GAP, 0, 0), pad_edge=False)
        for width in (1, *widths):
            table.add_column(width=width)
        for cells, _ in group:
            table.add_row("", *cells)
        screen.print(table)


def _folded(text: str) -> str:
    """In lines that each say something: a number stays with its error and its sign."""
    for place in _FOLDS:
        text = text.replace(f"{place} ", f"{place}\n")
    return text


def _natural(rows: Sequence[tuple[Cells, str]]) -> list[int]:
    """As wide as the longest line of a column."""
    columns = zip(*(cells for cells, _ in rows), strict=True)
    return [max(len(line) for cell in column for line in cell.split("\n")) for column in columns]


def _over(widths: Sequence[int], room: int) -> int:
    """How many columns of the terminal are lacking, with the gaps and the indent."""
    return sum(widths) + _GAP * len(widths) + 1 - room


_HEAD = ("", "seeds", "ours", "the paper's")
_SURE = ", most confident iteration"


def show_list(
    records: Records, timed: Sequence[Timed], counts: Counts, screen: Console
) -> None:  # fmt: skip
    """Every experiment with its runs, what is missing, the paper's seeds, and both numbers."""
    from rich.padding import Padding

    from iterant.experiments.catalogue import EXPERIMENTS

    for one in EXPERIMENTS.values():
        screen.print(f"{one.name}  {one.title} ({one.place})", style="bold")
        for line in _state(one, records, counts):
            screen.print(Padding(line, (0, 0, 0, 2), expand=False))
        if rows := list(_rows(one, records, timed, counts)):
            show_grouped(_HEAD, rows, screen)
        else:
            screen.print("  no number yet, and none in the paper")
        screen.print()


def _state(one: Experiment, records: Records, counts: Counts) -> Iterator[str]:
    """How many runs there are and what the rest would take; of the paper, what it says of its."""
    from iterant.experiments.paper_numbers import SEEDS
    from iterant.experiments.reproduce import RUNS, estimate, estimate_counts, missing, uncounted
    from iterant.experiments.tables import state_of
    from iterant.formatting import duration

    done, wanted = state_of(one, records, counts)
    left = estimate(missing(one, records)) + estimate_counts(uncounted(one, counts), RUNS)
    yield f"{done} of {wanted} runs" + (
        f", the rest about {duration(left)} of an H200" if left else ""
    )
    for task in one.tasks:
        which = f" ({task})" if len(one.tasks) > 1 else ""
        yield f"seeds in the paper{which}: {SEEDS[task]}"


def _rows(
    one: Experiment, records: Records, timed: Sequence[Timed], counts: Counts
) -> Iterator[tuple[Cells, str]]:
    """A network, its seeds, our number and the paper's; and what is measured."""
    from iterant.experiments.tables import HEAD, rows_of
    from iterant.experiments.timed import HEAD as TIMED_HEAD
    from iterant.experiments.timed import timed_rows

    found = [dict(zip(HEAD, cells, strict=True)) for cells in rows_of(one, records, counts)[1:]]
    by_time, none = timed_rows(one, timed)[1:], not any(row["all seeds"] for row in found)
    for number, row in enumerate(found):
        ours, theirs = row["all seeds"], row["the paper"]
        # Of what there is no number at all, and of what had a time, the other rows say enough.
        if not ours and theirs == "–" and (none or by_time):
            continue
        seeds = row["seeds"] if ours else "0"
        plan = _planned(one.rows[number]) if number < len(one.rows) else _wanted(one, row)
        told = f"{seeds}/{plan}" if int(seeds) < plan else seeds
        who, measured = who_and_what(row)
        yield (who, told, ours or "not run", theirs), measured
    for cells in by_time:
        row = dict(zip(TIMED_HEAD, cells, strict=True))
        who, measured = who_and_what(row)
        name = f"{who}, {row['trained for']}"
        yield (name, row["seeds"], row["solved"], cells[-1]), f"{measured}, trained for a time"


def _planned(row: Row) -> int:
    """How many seeds a row is to have: some studies are of the first ones only."""
    from iterant.experiments.models import MODELS

    model = MODELS[row.model]
    fewer = {look.name: look.seeds for look in model.looks if look.seeds is not None}
    return fewer.get(row.measure.needs, model.seeds)


def _wanted(one: Experiment, row: dict[str, str]) -> int:
    """The same of a row without curves; 0: it is shown where there is any."""
    from iterant.experiments.models import MODELS

    size = row["measured"].removeprefix("size ").partition(",")[0]
    return max(
        (wanted.seeds for wanted in one.counted
         if (MODELS[wanted.model].label, wanted.size) == (row["model"], size)),
        default=0,
    )  # fmt: skip


def who_and_what(row: dict[str, str]) -> tuple[str, str]:
    """The network and the rule by which it stops; and what is measured."""
    measured, sure, _ = row["measured"].partition(_SURE)
    alpha = f" α = {row['α']}" if row["α"] else ""
    return f"{row['model']}{alpha}{', most confident' if sure else ''}", measured


FEW = 12
"""Names that are told one by one."""


def fill(
    one: Experiment,
    results: Path,
    seeds: int | None,
    budget: str | None,
    device: str,
    data: str | None,
    screen: Console,
) -> bool:
    """Train and test what is missing; says whether it was made smaller."""
    from iterant.experiments.records import read_records
    from iterant.experiments.reproduce import (
        check_places,
        check_tests,
        missing,
        produce,
        tested_enough,
    )
    from iterant.training.interrupts import seconds
    from iterant.training.run import use_device

    if budget is not None:
        seconds(budget)  # refused before anything is said
    small = use_device(device).type != "cuda"
    if not one.models:
        _count(one, results, seeds, budget, device, screen)
        return False
    out = results / ("reduced" if small else "runs")
    there = read_records(out)
    units = missing(one, tested_enough(one, there) if small else there, seeds)
    if not units:
        screen.print("every run is there already; give more --seeds for another")
        return small
    check_tests(one, data)
    check_places(out, small)
    before = {f"{record.model}-s{record.seed}" for record in there.unfinished()}
    begun = sum(unit.name in before for unit in units)
    units.sort(key=lambda unit: unit.name in before)  # those that had no time yet come first
    for line in _promised(one, units, begun, budget, out if small else None):
        screen.print(line, soft_wrap=True)
    try:
        left = produce(
            one, units, out=out, device=device, budget=budget, small=small, data=data,
            say=lambda text: screen.print(text, soft_wrap=True),
        )  # fmt: skip
    except KeyboardInterrupt:
        screen.print("what was trained is kept; the same command goes on from there")
        raise
    if left:
        names = _few([unit.name for unit in left])
        screen.print(f"not done: {names}; give the same command again", soft_wrap=True)
    if small and len(left) == len(units):
        raise RunError(f"no run of {one.name} could be recorded; the lines above say why")
    return small


def cut_off(one: Experiment, records: Records) -> str:
    """Which of its runs had no time to finish, though they were tested; "": none."""
    keys = {model.key for model in one.models}
    told = []
    for record in records.unfinished():
        if record.model in keys:
            training = record.figures["training"]
            done = f"{training.get('updates', 0):,} of {training.get('of', 0):,} updates"
            told.append(f"{record.model}-s{record.seed} ({done})")
    if not told:
        return ""
    return (
        f"cut off by their time, and tested as they were: {_few(told)}; the same command "
        "gives them more"
    )


def _few(names: Sequence[str]) -> str:
    """As many as a person reads, and how many more there are."""
    more = f" and {len(names) - FEW} more" if len(names) > FEW else ""
    return ", ".join(names[:FEW]) + more


def _promised(
    one: Experiment, units: Sequence[Unit], begun: int, budget: str | None, reduced: Path | None
) -> Iterator[str]:
    """What is going to be done, and how much smaller it is made where it goes to ``reduced``."""
    from iterant.experiments.reproduce import SMALLER_TESTS, estimate, told
    from iterant.formatting import duration

    yield (
        f"{'1 run is' if len(units) == 1 else f'{len(units)} runs are'} missing"
        + (f" ({begun} cut off before)" if begun else "")
        + f", about {duration(estimate(units))} on one H200"
        + (f"; here they get {budget}" if budget else "")
    )
    if reduced is not None:
        yield (
            f"there is no GPU here, so everything is made smaller: {told(one)}; "
            f"{100 * SMALLER_TESTS:g} % of every test set"
            + (", each run as long as its share of the time" if budget else "")
            + f"; such runs are kept in {reduced} and are no part of RESULTS.md"
        )


def _count(
    one: Experiment,
    results: Path,
    seeds: int | None,
    budget: str | None,
    device: str,
    screen: Console,
) -> None:
    """Train the networks whose runs are not here, and test all on problems without curves."""
    from iterant.experiments.counts import read_counts
    from iterant.experiments.records import read_records
    from iterant.experiments.reproduce import (
        RUNS,
        check_places,
        count,
        estimate_counts,
        produce,
        uncounted,
    )
    from iterant.formatting import duration
    from iterant.training.interrupts import seconds
    from iterant.training.run import use_device

    wanted = uncounted(one, read_counts(results), seeds)
    if not wanted:
        screen.print("every network is tested already; give more --seeds for another")
        return
    if use_device(device).type != "cuda":
        raise UsageError(
            f"{one.name} takes about {duration(estimate_counts(wanted, RUNS))} of a GPU, and there "
            "is none here; test a run of your own by scripts/measure-network, with --model"
        )
    check_places(results / "runs", small=False)

    def say(text: str) -> None:
        screen.print(text, soft_wrap=True)

    def train(units: Sequence[Unit], out: Path) -> None:
        produce(one, units, out=out, device=device, budget=budget, small=False, say=say)

    say(f"{len(wanted)} tests are missing, about {duration(estimate_counts(wanted, RUNS))} on one "
        "H200, training included" + (f"; here they get {budget}" if budget else ""))  # fmt: skip
    try:
        left = count(
            wanted, read_records(results / "runs").whole, results=results, runs=RUNS, device=device,
            train=train, limit=None if budget is None else seconds(budget), say=say,
        )  # fmt: skip
    except KeyboardInterrupt:
        say("what was trained and tested is kept; the same command goes on from there")
        raise
    if left:
        names = _few([f"{test.unit.name} at {test.row.size}" for test in left])
        say(f"not done: {names}; give the same command again")
