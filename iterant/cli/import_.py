"""``iterant import``: networks of the paper's authors, as folders that iterant reads.

iterant import model_best.pth --task mazes --out imported
"""

from __future__ import annotations

from pathlib import Path

from iterant.cli.options import TaskName, console, task_of


def import_(file: Path, /, *, task: TaskName, out: Path, group_norm: bool = False) -> None:
    """Turn a checkpoint of the paper's authors into a folder of weights.

    Args:
        file: a checkpoint of the paper's authors, such as *.pth
        out: the new folder for the weights
        group_norm: it was trained with group norm, which the file does not say
    """
    from iterant.export import import_checkpoint

    imported = import_checkpoint(file, task=task_of(task).spec, out=out, group_norm=group_norm)
    config = imported.config
    parts = [
        config.kind,
        f"{config.dims}D",
        f"width {config.width}",
        "with recall" if config.recall else "without recall",
        *(["with group norm"] if config.group_norm else []),
        f"{imported.parameters:,} parameters",
        *([f"after epoch {imported.epoch}"] if imported.epoch is not None else []),
    ]
    screen = console()
    screen.print(f"{', '.join(parts)}: written to {imported.folder}", soft_wrap=True)
    screen.print(f'use it: iterant.load("{imported.folder}")', soft_wrap=True)
