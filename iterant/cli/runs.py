"""``iterant runs``: the training runs under a folder.

iterant runs
iterant runs runs/widths
"""

from __future__ import annotations

from pathlib import Path

from iterant.cli.options import console, print_table
from iterant.formatting import duration


def runs(folder: Path = Path("runs"), /) -> None:
    """List training runs with their state and best figures.

    Args:
        folder: where they are, or above
    """
    from iterant.io import list_runs

    screen, summaries = console(), list_runs(folder)
    if not summaries:
        screen.print(f"no runs under {folder}")
        return
    rows = []
    for run in summaries:
        best = ", ".join(
            f"{name} {value:.4g}" if isinstance(value, float) else f"{name} {value}"
            for name, value in run.best.items()
        )
        step = f"{run.step:,}" + (f" of {run.steps:,}" if run.steps else "")
        seed = "" if run.seed is None else str(run.seed)
        age = "" if run.age_seconds is None else f"{duration(run.age_seconds)} ago"
        rows.append([str(run.path), run.task, run.recipe, seed, run.state, step, best, age])
    print_table(("run", "task", "recipe", "seed", "state", "step", "best", "last heard"), *rows)
    for run in summaries:
        if run.reason:
            screen.print(f"{run.path}: {run.reason}", soft_wrap=True)
