"""Tables of ``iterant reproduce`` in the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from iterant.formatting import duration

if TYPE_CHECKING:
    from rich.console import Console

    from iterant.experiments.catalogue import Experiment
    from iterant.experiments.records import Records

_WIDE = 182
"""Columns that a whole table needs; narrower terminals get these columns only:"""
_FEW = ("model", "α", "measured", "all seeds", "seeds", "the paper", "all seeds beside it",
        "trained for", "solved", "at the end", "the paper (its recipe, its puzzles)")  # fmt: skip


def show_experiment(
    one: Experiment, records: Records, timed: Records, screen: Console, note: str = ""
) -> None:
    """Print the table of one experiment, and its networks that were trained for a time."""
    from iterant.experiments.tables import rows_of, timed_remarks, timed_rows

    by_time = timed_rows(one, timed)
    _show_table(f"{one.title} ({one.place}){note}", rows_of(one, records), screen)
    if by_time:
        title = "Trained for a time each, on other puzzles: no reproduction of the paper's recipe"
        _show_table(title, by_time, screen)
    remarks = timed_remarks(one, timed)[1:] if by_time else []
    for text in [*remarks, *([one.note] if one.note else [])]:
        screen.print(text.replace("**", ""))


def show_list(records: Records, screen: Console) -> None:
    """Print every experiment: runs done and missing, the paper's seeds, and both numbers."""
    from iterant.experiments.catalogue import EXPERIMENTS
    from iterant.experiments.paper_numbers import SEEDS
    from iterant.experiments.reproduce import estimate, estimate_counts, missing, missing_counts
    from iterant.experiments.tables import state_of

    for one in EXPERIMENTS.values():
        whole = records.whole
        done, planned = state_of(one, whole)
        left = estimate(missing(one, whole)) + estimate_counts(missing_counts(one, whole))
        rest = f", the rest about {duration(left)} of an H200" if left else ""
        screen.print(f"{one.name}  {one.title} ({one.place})", style="bold")
        screen.print(f"{done} of {planned} runs{rest}")
        for task in one.tasks:
            screen.print(f"seeds in the paper, {task}: {SEEDS[task]}")
        rows = list(_list_rows(one, records))
        if rows:
            head = ["network", "measured", "seeds", "ours", "the paper's"]
            _show_table("", [head, *rows], screen)
        else:
            screen.print("no number yet, and none in the paper")
        screen.print()


def _show_table(title: str, rows: Sequence[Sequence[str]], screen: Console) -> None:
    """Without empty columns; rich breaks what does not fit."""
    from rich.table import Table

    head, *rest = rows
    narrow = screen.width < _WIDE and len(head) > len(_FEW) // 2
    columns = [
        i for i, name in enumerate(head)
        if any(row[i] for row in rest) and (name in _FEW or not narrow)
    ]  # fmt: skip
    table = Table(*(head[i] for i in columns), title=title or None, title_justify="left", box=None)
    for row in rest:
        table.add_row(*(row[i] for i in columns))
    screen.print(table)


def _list_rows(one: Experiment, records: Records) -> Iterator[list[str]]:
    """A network, what is measured, its seeds, our number and the paper's."""
    from iterant.experiments.tables import HEAD, TIMED_HEAD, rows_of, timed_rows

    rows = [dict(zip(HEAD, cells, strict=True)) for cells in rows_of(one, records.whole)[1:]]
    by_time, no_runs = timed_rows(one, records)[1:], not any(row["all seeds"] for row in rows)
    for row in rows:
        ours, theirs = row["all seeds"], row["the paper"]
        # Rows without any number are left out where nothing was run, or where others were timed.
        if ours or theirs != "–" or not (no_runs or by_time):
            seeds = row["seeds"] if ours else "0"
            yield [_network(row), row["measured"], seeds, ours or "not run", theirs]
    for cells in by_time:
        row = dict(zip(TIMED_HEAD, cells, strict=True))
        measured = f"{row['measured']}, trained for {row['trained for']}"
        yield [_network(row), measured, row["seeds"], row["solved"], cells[-1]]


def _network(row: dict[str, str]) -> str:
    return row["model"] + (f" α = {row['α']}" if row["α"] else "")
