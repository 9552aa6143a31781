"""How commands print: the console, lines, tables and the progress bar."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator, Sequence

from rich.console import Console


def console() -> Console:
    """A console on the current standard output; a pipe gets wide lines and no colours.

    Of several processes of torchrun, the one of rank 0 prints.
    """
    return Console(
        file=sys.stdout,
        width=None if sys.stdout.isatty() else 200,
        quiet=os.environ.get("RANK", "0") != "0",
        highlight=False,
        markup=False,
        emoji=False,
    )


def echo(text: str = "", style: str | None = None) -> None:
    """Print one line without wrapping it."""
    console().print(text, style=style, soft_wrap=True)


def warn(text: str) -> None:
    """Write one line to the error stream; a closed stream is ignored."""
    # Flush the output first, so that the two streams appear in order.
    for stream, line in ((sys.stdout, ""), (sys.stderr, f"{' '.join(text.split())}\n")):
        with contextlib.suppress(OSError):
            stream.write(line)
            stream.flush()


def print_table(head: Sequence[str] | None, *rows: Sequence[str], right: bool = False) -> None:
    """Print a table without lines; ``right``: all columns but the first are aligned right."""
    from rich.table import Table

    table = Table(box=None, show_header=head is not None, padding=(0, 1) if head else (0, 2, 0, 0))
    for index, name in enumerate(head or [""] * len(rows[0])):
        table.add_column(name, justify="right" if right and index else "left", overflow="fold")
    for row in rows:
        table.add_row(*row)
    console().print(table)


@contextlib.contextmanager
def progress_bar(label: str, *, show: bool = True) -> Iterator[Callable[..., None]]:
    """A bar on a terminal, nothing elsewhere; yields ``update(done, total, label)``."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    screen = console()
    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    hidden = not (show and screen.is_terminal)
    with Progress(*columns, console=screen, transient=True, disable=hidden) as bar:
        task_id = bar.add_task(label, total=None)
        yield lambda done, total, label=label: bar.update(
            task_id, completed=done, total=total, description=label
        )
