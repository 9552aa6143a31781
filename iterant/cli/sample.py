"""``iterant sample``: generate problems, print them, draw them.

iterant sample mazes --size 13 --seed 1 --save m.png
"""

from __future__ import annotations

from pathlib import Path

from iterant.cli.options import DataPath, Sizes, TaskName, console, task_of

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
    """Make problems of a task and show them.

    Args:
        count: problems a size
        seed: the same seed makes the same problems
        save: draw them into this .png or .svg file
        solution: show the answers
    """
    import torch

    from iterant.cli.errors import say
    from iterant.draw.figure import check_picture, save_picture
    from iterant.draw.terminal import terminal
    from iterant.tasks.protocol import Batch

    target = None if save is None else check_picture(save)
    opened = task_of(task, data)
    sizes = [opened.parse_size(text) for text in size] if size else [opened.check_size(None)]
    descriptions = []
    for one in sizes:
        batch = opened.sample(count, size=one, seed=seed)
        if not solution:
            batch = Batch(batch.inputs, torch.full_like(batch.targets, -1), batch.extras)
        descriptions += [opened.describe(batch, index) for index in range(len(batch))]
    screen = console()
    for place, description in enumerate(descriptions):
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
    if target is not None:
        if len(descriptions) > _MOST:
            say(f"iterant: the picture holds the first {_MOST} of {len(descriptions)} problems")
        save_picture(descriptions[:_MOST], target)
