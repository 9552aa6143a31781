"""Tables of ``iterant reproduce`` for terminals of any width."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from iterant.formatting import duration

if TYPE_CHECKING:
    from rich.console import Console

    from iterant.experiments.catalogue import Experiment
    from iterant.experiments.records import Records

Cells = tuple[str, ...]

_GAP = 2
_BREAKS = (" %", ",", "difference", "all seeds", "the paper")
"""A line is broken after these where room is short."""
_WIDE = 182
"""Columns that a whole table needs; narrower terminals get these columns only:"""
_FEW = ("all seeds", "seeds", "the paper", "all seeds beside it")
_FEW_TIMED = ("trained for", "solved", "at the end", "the paper (its recipe, its puzzles)")
_BY_TIME = "Trained for a time each, on other puzzles: no reproduction of the paper's recipe"
_CONFIDENT = ", most confident iteration"


def show_experiment(
    one: Experiment,
    records: Records,
    timed: Records,
    screen: Console,
    note: str = "",
) -> None:
    """Print the table of one experiment, and its networks that were trained for a time."""
    from rich.table import Table

    from iterant.experiments.tables import HEAD, TIMED_HEAD, rows_of, timed_remarks, timed_rows

    narrow = screen.width < _WIDE
    by_time = timed_rows(one, timed)
    for title, rows, few in (
        (f"{one.title} ({one.place}){note}", rows_of(one, records),
         [HEAD.index(word) for word in _FEW]),
        (_BY_TIME, by_time, [TIMED_HEAD.index(word) for word in _FEW_TIMED]),
    ):  # fmt: skip
        if not rows:
            continue
        head, *rest = rows
        if narrow:
            screen.print(title, style="italic")
            grouped = []
            for cells in rest:
                who, measured = _who_and_what(dict(zip(head, cells, strict=True)))
                grouped.append(((who, *(cells[place] for place in few)), measured))
            show_grouped(("", *(head[place] for place in few)), grouped, screen)
            continue
        filled = [place for place in range(len(head)) if any(cells[place] for cells in rest)]
        table = Table(*(head[place] for place in filled), title=title, title_justify="left",
                      box=None)  # fmt: skip
        for cells in rest:
            table.add_row(*(cells[place] for place in filled))
        screen.print(table)
    for text in timed_remarks(one, timed)[1:] if by_time else ():
        screen.print(text.replace("**", ""), soft_wrap=not narrow)
    if one.note:
        screen.print(one.note, soft_wrap=not narrow)


def show_grouped(head: Cells, rows: Sequence[tuple[Cells, str]], screen: Console) -> None:
    """Print rows under their headings, in columns that all groups share; no empty columns."""
    from rich.table import Table

    def widths() -> list[int]:
        columns = zip(*(cells for cells, _ in lines), strict=True)
        return [max(len(line) for cell in column for line in cell.split("\n"))
                for column in columns]  # fmt: skip

    def broken(text: str) -> str:
        for place in _BREAKS:
            text = text.replace(f"{place} ", f"{place}\n")
        return text

    filled = [place for place in range(len(head)) if any(cells[place] for cells, _ in rows)]
    first = {heading: place for place, (_, heading) in reversed(list(enumerate(rows)))}
    ordered = sorted(rows, key=lambda row: first[row[1]])
    lines = [
        (tuple(cells[place] for place in filled), heading)
        for cells, heading in [(head, ""), *ordered]
    ]
    if sum(widths()) + _GAP * len(filled) + 1 > screen.width:
        lines = [(tuple(map(broken, cells)), heading) for cells, heading in lines]
    shared = widths()  # what still does not fit is broken by rich
    for heading, group in groupby(lines, key=lambda row: row[1]):
        if heading:
            screen.print(f" {heading}:")
        table = Table.grid(padding=(0, _GAP, 0, 0), pad_edge=False)
        for width in (1, *shared):
            table.add_column(width=width)
        for cells, _ in group:
            table.add_row("", *cells)
        screen.print(table)


def show_list(records: Records, screen: Console) -> None:
    """Print every experiment: runs done and missing, the paper's seeds, and both numbers."""
    from rich.padding import Padding

    from iterant.experiments.catalogue import EXPERIMENTS

    for one in EXPERIMENTS.values():
        screen.print(f"{one.name}  {one.title} ({one.place})", style="bold")
        for line in _state(one, records.whole):
            screen.print(Padding(line, (0, 0, 0, 2), expand=False))
        if rows := list(_list_rows(one, records)):
            show_grouped(("", "seeds", "ours", "the paper's"), rows, screen)
        else:
            screen.print("  no number yet, and none in the paper")
        screen.print()


def _state(one: Experiment, records: Records) -> Iterator[str]:
    """Runs done and the time that the others take; the paper's seeds."""
    from iterant.experiments.paper_numbers import SEEDS
    from iterant.experiments.reproduce import (
        estimate,
        estimate_counts,
        missing,
        missing_counts,
    )
    from iterant.experiments.tables import state_of

    done, planned = state_of(one, records)
    left = estimate(missing(one, records)) + estimate_counts(missing_counts(one, records))
    rest = f", the rest about {duration(left)} of an H200" if left else ""
    yield f"{done} of {planned} runs{rest}"
    for task in one.tasks:
        which = f" ({task})" if len(one.tasks) > 1 else ""
        yield f"seeds in the paper{which}: {SEEDS[task]}"


def _list_rows(one: Experiment, records: Records) -> Iterator[tuple[Cells, str]]:
    """A network, its seeds, our number and the paper's; and what is measured."""
    from iterant.experiments.tables import HEAD, TIMED_HEAD, rows_of, timed_rows

    rows = [dict(zip(HEAD, cells, strict=True)) for cells in rows_of(one, records.whole)[1:]]
    by_time, no_runs = timed_rows(one, records)[1:], not any(row["all seeds"] for row in rows)
    for number, row in enumerate(rows):
        ours, theirs = row["all seeds"], row["the paper"]
        # Rows without any number are left out where nothing was run, or where others were timed.
        if not ours and theirs == "–" and (no_runs or by_time):
            continue
        seeds, planned = row["seeds"] if ours else "0", _planned_seeds(one, number, row)
        who, measured = _who_and_what(row)
        text = f"{seeds}/{planned}" if int(seeds) < planned else seeds
        yield (who, text, ours or "not run", theirs), measured
    for cells in by_time:
        row = dict(zip(TIMED_HEAD, cells, strict=True))
        who, measured = _who_and_what(row)
        name = f"{who}, {row['trained for']}"
        yield (name, row["seeds"], row["solved"], cells[-1]), f"{measured}, trained for a time"


def _planned_seeds(one: Experiment, number: int, row: dict[str, str]) -> int:
    """Seeds that a row is to have; 0: it is shown where there is any."""
    from iterant.experiments.models import MODELS

    if number < len(one.rows):
        model = MODELS[one.rows[number].model]
        fewer = {study.name: study.seeds for study in model.studies if study.seeds is not None}
        return fewer.get(one.rows[number].measure.needs, model.seeds)
    size = row["measured"].removeprefix("size ").partition(",")[0]
    return max(
        (test.seeds for test in one.counted
         if (MODELS[test.model].label, test.size) == (row["model"], size)),
        default=0,
    )  # fmt: skip


def _who_and_what(row: dict[str, str]) -> tuple[str, str]:
    """The network and the rule by which it stops; and what is measured."""
    measured, confident, _ = row["measured"].partition(_CONFIDENT)
    alpha = f" α = {row['α']}" if row["α"] else ""
    return f"{row['model']}{alpha}{', most confident' if confident else ''}", measured
