"""``iterant data``: convert data that is not generated.

iterant data chess lichess_db_puzzle.csv.zst --out puzzles
"""

from __future__ import annotations

from pathlib import Path

from cyclopts import App

from iterant.cli.options import console
from iterant.formatting import counted

data = App(name="data", help="Prepare data that is not made from a seed.")


@data.command
def chess(file: Path, /, *, out: Path) -> None:
    """Pack Lichess's puzzle CSV into the arrays that the chess task reads.

    Args:
        file: Lichess's puzzle file: .csv, .csv.zst or .csv.bz2
        out: the new folder for the packed puzzles
    """
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeRemainingColumn,
    )

    from iterant.tasks.chess.puzzles import pack_csv

    screen = console()
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[rows]:,} rows"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=screen, disable=not screen.is_terminal) as bar:
        reading = bar.add_task("reading", total=1.0, rows=0)
        report = pack_csv(
            file, out, lambda rows, share: bar.update(reading, completed=share, rows=rows)
        )
    screen.print(
        f"{counted(report.kept, 'puzzle')} written to {out} in {report.seconds:.0f} s: "
        f"{counted(report.rows, 'row')} read, {report.broken:,} broken, "
        f"{report.repeated:,} repeated",
        soft_wrap=True,
    )
    for line, reason in report.first_broken:
        screen.print(f"  line {line}: {reason}", soft_wrap=True)
    if report.broken > len(report.first_broken):
        screen.print(f"  and {report.broken - len(report.first_broken):,} more")
    screen.print(f"use them: iterant sample chess --data {out}", soft_wrap=True)
