"""Flags that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from iterant import registry


def _check_device(_: object, word: str) -> None:
    """Check the word now; whether that GPU exists is checked when it is used."""
    if word != "auto":
        registry.device(word, present=False)


SEVERAL = Parameter(consume_multiple=1, negative="")
"""A list: ``--size 13 59``."""
FLAG = Parameter(negative="", show_default=False)
"""A switch without ``--no-…``."""
TASKS = f"{', '.join(registry.known('task'))}, or module:Class of your own"
RULES = ", ".join(registry.known("rule"))
TaskName = Annotated[str, Parameter(help=TASKS)]
DeviceName = Annotated[str, Parameter(help="auto, cpu, cuda or cuda:0", validator=_check_device)]
DataPath = Annotated[
    Path | None, Parameter(help="folder of problem files, used instead of the task's own problems")
]
Problems = Annotated[
    str,
    Parameter(
        name="--problems",
        help="kind of generated problems; mazes: start=any, p=0.1 (loops), walls=0.3, "
        "path=100-140, joined by commas [default: the paper's]",
        show_default=False,
    ),
]
Sizes = Annotated[
    list[str] | None,
    SEVERAL,
    Parameter(
        help="difficulty, one or several: number of bits, side of a maze, FIRST:STOP of puzzles by "
        "rating [default: the training size]"
    ),
]
Patience = Annotated[
    int | None,
    Parameter(help="of stable: iterations for which the answer must not change [default: 30]"),
]
Tolerance = Annotated[
    float | None,
    Parameter(
        help="of rest: change of a feature over 16 iterations, relative to the largest feature "
        "[default: 1e-4]"
    ),
]
