"""Rows under headings, in columns that all groups share, on a terminal of any width.

>>> show_grouped(("", "ours"), [(("DT α = 0", "99.52 %"), "size 48")], screen)
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

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
