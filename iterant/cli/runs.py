"""``iterant runs``: the training runs under a folder, at a glance.

iterant runs
iterant runs runs/widths
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from iterant.cli.options import console
from iterant.formatting import duration


def runs(
    folder: Annotated[Path, Parameter(help="where they are, or above")] = Path("runs"), /
) -> None:
    """List training runs with their state and best figures."""
    from rich.table import Table

    from iterant.io import list_runs

    screen = console()
    found = list_runs(folder)
    if not found:
        screen.print(f"no runs under {folder}")
        return
    table = Table("run", "task", "recipe", "seed", "state", "step", "best", "last heard", box=None)
    for run in found:
        table.add_row(
            str(run.path),
            run.task,
            run.recipe,
            "" if run.seed is None else str(run.seed),
            run.state,
            f"{run.step:,}" + (f" of {run.steps:,}" if run.steps else ""),
            figures(run.best),
            "" if run.age_seconds is None else f"{duration(run.age_seconds)} ago",
        )
    screen.print(table)
    for run in found:
        if run.reason:
            screen.print(f"{run.path}: {run.reason}", soft_wrap=True)


def figures(best: Mapping[str, Any]) -> str:
    """The best figures on one line: ``accuracy 0.998, step 2400``."""
    return ", ".join(
        f"{name} {value:.4g}" if isinstance(value, float) else f"{name} {value}"
        for name, value in best.items()
    )
