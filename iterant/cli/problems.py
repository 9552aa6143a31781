"""``iterant sample`` and ``iterant data``: problems, generated from a seed or from files.

iterant sample mazes --size 13 --seed 1 --save m.png
iterant data chess lichess_db_puzzle.csv.zst --out puzzles
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from cyclopts import App

from iterant.cli.options import DataPath, Sizes, TaskName, task_of
from iterant.cli.output import console, echo, progress_bar, warn
from iterant.formatting import counted

_MOST = 64
"""Problems in one picture."""


def sample(
    task: TaskName,
    /,
    *,
    size: Sizes = None,
    count: int = 1,
    seed: int = 0,
    save: Path | None = None,
    solution: bool = True,
    data: DataPath = None,
) -> None:
    """Generate problems of a task and show them.

    Args:
        count: problems per size
        seed: the same seed gives the same problems
        save: draw them into this .png or .svg file
        solution: show the answers
    """
    import torch

    from iterant.draw.figure import check_picture, save_picture
    from iterant.draw.terminal import terminal

    target = None if save is None else check_picture(save)
    task_object = task_of(task, data)
    descriptions, screen = [], console()
    sizes = [task_object.parse_size(text) for text in size or ()]
    for problem_size in sizes or [task_object.check_size(None)]:
        batch = task_object.sample(count, size=problem_size, seed=seed)
        if not solution:
            batch = replace(batch, targets=torch.full_like(batch.targets, -1))
        descriptions += [task_object.describe(batch, index) for index in range(len(batch))]
    for index, description in enumerate(descriptions):
        if index:
            screen.print()
        lines = screen.height if screen.is_terminal else None
        screen.print(terminal(description, screen, lines=lines), soft_wrap=True)
    if target is not None:
        if len(descriptions) > _MOST:
            warn(f"iterant: the picture shows the first {_MOST} of {len(descriptions)} problems")
        save_picture(descriptions[:_MOST], target)


data = App(name="data", help="Convert datasets that are not generated from a seed.")


@data.command
def chess(file: Path, /, *, out: Path) -> None:
    """Pack Lichess's puzzle CSV into the arrays that the chess task reads.

    Args:
        file: Lichess's puzzle file: .csv, .csv.zst or .csv.bz2
        out: the new folder for the packed puzzles
    """
    from iterant.tasks.chess.puzzles import pack_csv

    with progress_bar("reading") as update:
        report = pack_csv(file, out, lambda rows, share: update(share, 1, f"{rows:,} rows"))
    echo(
        f"{counted(report.kept, 'puzzle')} written to {out} in {report.seconds:.0f} s: "
        f"{counted(report.rows, 'row')} read, {report.broken:,} broken, "
        f"{report.repeated:,} repeated"
    )
    for line, reason in report.first_broken:
        echo(f"  line {line}: {reason}")
    echo(f"use them: iterant sample chess --data {out}")
