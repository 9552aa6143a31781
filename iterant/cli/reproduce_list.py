"""``iterant reproduce --list``: all tables and figures, and how far they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from iterant.experiments.counts import Counts
    from iterant.experiments.layout import Experiment, Row
    from iterant.experiments.records import Records
    from iterant.experiments.timed import Timed

Cells = tuple[str, str, str, str]

_HEAD: Cells = ("", "seeds", "ours", "the paper's")
_LEAST = 16
"""Columns of our numbers on the narrowest terminal"""
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
            screen.print(Padding(line, (0, 0, 0, 2)))
        rows = [(_HEAD, ""), *_rows(one, records, timed, counts)]
        for measured, group in groupby(rows, key=lambda row: row[1]):
            if measured:
                screen.print(f" {measured}:")
            screen.print(_table([cells for cells, _ in group], _widths(rows, screen.width)))
        screen.print()


def _table(rows: Sequence[Cells], widths: Sequence[int]) -> Table:
    """Columns as wide as in all tables of one experiment."""
    from rich.table import Table

    table = Table.grid(padding=(0, 2, 0, 0))
    for width in (1, *widths):
        table.add_column(width=width)
    for cells in rows:
        table.add_row("", *cells)
    return table


def _widths(rows: Sequence[tuple[Cells, str]], room: int) -> list[int]:
    """As wide as what stands in a column; our numbers get what the others leave."""
    who, seeds, ours, theirs = (
        max(len(cells[place]) for cells, _ in rows) for place in range(len(_HEAD))
    )
    left = room - who - seeds - theirs - 2 * len(_HEAD) - 1
    return [who, seeds, min(ours, max(left, _LEAST)), theirs]


def _state(one: Experiment, records: Records, counts: Counts) -> Iterator[str]:
    """How many runs there are and what the rest would take; of the paper, what it says of its."""
    from iterant.cli.figures import duration
    from iterant.experiments.counting import estimate_counts, uncounted
    from iterant.experiments.paper import SEEDS
    from iterant.experiments.reproducing import RUNS, estimate, missing
    from iterant.experiments.rows import state_of

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
    from iterant.experiments.rows import HEAD, rows_of
    from iterant.experiments.timed import HEAD as TIMED_HEAD
    from iterant.experiments.timed import timed_rows

    found = [dict(zip(HEAD, cells, strict=True)) for cells in rows_of(one, records, counts)[1:]]
    planned = [*map(_planned, one.rows), *([None] * len(found))]
    for row, plan in zip(found, planned, strict=False):
        ours, theirs = row["all seeds"], row["the paper"]
        if not ours and theirs == "–":
            continue
        seeds = row["seeds"] if ours else "0"
        told = seeds if plan in (None, int(seeds)) else f"{seeds}/{plan}"
        who, measured = _who(row)
        yield (who, told, ours or "not run", theirs), measured
    for cells in timed_rows(one, timed)[1:]:
        row = dict(zip(TIMED_HEAD, cells, strict=True))
        who, measured = _who(row)
        name = f"{who}, {row['trained for']}"
        yield (name, row["seeds"], row["solved"], cells[-1]), f"{measured}, trained for a time"


def _planned(row: Row) -> int:
    """How many seeds a row is to have: some studies are of the first one only."""
    from iterant.experiments.models import MODELS

    model = MODELS[row.model]
    once = [look.name for look in model.looks if look.first_seed_only]
    return 1 if row.measure.needs in once else model.seeds


def _who(row: dict[str, str]) -> tuple[str, str]:
    """The network and the rule by which it stops; and what is measured."""
    measured, sure, _ = row["measured"].partition(_SURE)
    alpha = f" α = {row['α']}" if row["α"] else ""
    return f"{row['model']}{alpha}{', most confident' if sure else ''}", measured
