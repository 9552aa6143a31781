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
    from iterant.tasks.protocol import Task

    options = {} if data is None else {"data": data}
    try:
        made = names.task(word, **options)
    except TypeError as error:
        given = f" with --data {data}" if options else ""
        raise UsageError(f"task {word!r} cannot be made{given}: {error}; see docs") from error
    if not isinstance(made, Task):
        wanted = [name for name in vars(Task) if not name.startswith("_")]
        missing = ", ".join(name for name in wanted if not hasattr(made, name))
        raise UsageError(f"{word!r} is no task: it lacks {missing}; add them or choose another")
    return made
