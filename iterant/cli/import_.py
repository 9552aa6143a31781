"""``iterant import``: networks of the paper's authors, as folders that iterant reads.

iterant import model_best.pth --task mazes --out imported
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from iterant.cli.options import TaskName, console, task_of


def import_(
    file: Annotated[Path, Parameter(help="a checkpoint of the paper's authors, such as *.pth")],
    /,
    *,
    task: TaskName,
    out: Annotated[Path, Parameter(help="the new folder for the weights")],
    group_norm: Annotated[
        bool, Parameter(help="it was trained with group norm, which the file does not say")
    ] = False,
) -> None:
    """Turn a checkpoint of the paper's authors into a folder of weights."""
    from iterant.export import import_checkpoint

    found = import_checkpoint(file, task=task_of(task).spec, out=out, group_norm=group_norm)
    config = found.config
    parts = [
        config.kind,
        f"{config.dims}D",
        f"width {config.width}",
        "with recall" if config.recall else "without recall",
        *(["with group norm"] if config.group_norm else []),
        f"{found.parameters:,} parameters",
        *([f"after epoch {found.epoch}"] if found.epoch is not None else []),
    ]
    screen = console()
    screen.print(f"{', '.join(parts)}: written to {found.folder}", soft_wrap=True)
    screen.print(f'use it: iterant.load("{found.folder}")', soft_wrap=True)
