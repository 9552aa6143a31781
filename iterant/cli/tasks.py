"""The task that a command line names, checked before anything is asked of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from iterant import names
from iterant.errors import UsageError

if TYPE_CHECKING:
    from iterant.tasks.protocol import Task

TaskName = Annotated[
    str, Parameter(help=f"{', '.join(names.known('task'))}, or module:Class of your own")
]
Sizes = Annotated[
    list[str] | None,
    Parameter(
        consume_multiple=1,
        negative="",
        help="how hard: bits, side of a maze, FIRST:STOP puzzles by rating; several if you like "
        "[default: the training size]",
    ),
]
DataPath = Annotated[Path | None, Parameter(help="take the problems from these files")]


def task_of(word: str, data: Path | None = None) -> Task:
    """The task of that name, on the user's own files if there are any."""
    if word and Path(word).is_dir() and ":" not in word and word not in names.known("task"):
        raise UsageError(
            f"{word!r} is a folder, and the task comes first: {', '.join(names.known('task'))}, or "
            f"module:Class; a run is given as --net {word} or --resume {word}"
        )
    return names.task(word) if data is None else names.task(word, data=data)
