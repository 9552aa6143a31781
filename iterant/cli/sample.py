"""``iterant sample``: make problems, show them, draw them.

iterant sample mazes --size 13 --seed 1 --save m.png
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from iterant.cli.options import DataPath, Sizes, TaskName, console, task_of

if TYPE_CHECKING:
    from rich.console import Console

    from iterant.tasks.protocol import Batch, Description, Task

_MANY = 64
"""More on one sheet would be too small to see."""


def sample(
    task: TaskName,
    /,
    *,
    size: Sizes = None,
    count: Annotated[int, Parameter(help="problems a size")] = 1,
    seed: Annotated[int, Parameter(help="the same seed makes the same problems")] = 0,
    save: Annotated[Path | None, Parameter(help="draw them into this .png or .svg file")] = None,
    solution: Annotated[bool, Parameter(help="show the answers")] = True,
    data: DataPath = None,
) -> None:
    """Make problems of a task and show them."""
    target = None
    if save is not None:
        from iterant.draw.figure import check_picture

        target = check_picture(save)
    made = task_of(task, data)
    sizes = [made.parse_size(text) for text in size] if size else [made.check_size(None)]
    shown: list[Description] = []
    for wanted in sizes:
        batch = made.sample(count, size=wanted, seed=seed)
        shown += describe(made, batch, solution)
    _print(shown, console())
    if target is not None:
        _save(shown, target)


def describe(task: Task, batch: Batch, solution: bool) -> list[Description]:
    """Every problem of a batch, with its answer or with none to be seen."""
    import torch

    from iterant.tasks.protocol import Batch

    hidden = Batch(batch.inputs, torch.full_like(batch.targets, -1), batch.extras)
    return [task.describe(batch if solution else hidden, index) for index in range(len(batch))]


def _print(shown: list[Description], screen: Console) -> None:
    """Each description in its own paragraph; on a terminal, nothing that it would break up."""
    from iterant.draw.terminal import terminal

    for place, description in enumerate(shown):
        if place:
            screen.print()
        text = terminal(description, screen)
        widest = max(len(line) for line in text.plain.splitlines())
        if screen.is_terminal and widest > screen.width:
            screen.print(
                f"{description.title}: {description.caption}\n({widest} columns wide, and this "
                f"terminal has {screen.width}: draw it with --save FILE.png)",
                soft_wrap=True,
            )
        else:
            screen.print(text, soft_wrap=True)


def _save(shown: list[Description], target: Path) -> None:
    from iterant.cli.errors import say
    from iterant.draw.figure import save_picture

    if len(shown) > _MANY:
        say(f"iterant: the picture holds the first {_MANY} of {len(shown)} problems")
    save_picture(shown[:_MANY], target)
