"""Flags that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from iterant import bounds, registry
from iterant.formatting import seconds


def _check_device(_: object, word: str) -> None:
    """Check the word now; whether that GPU exists is checked when it is used."""
    if word != "auto":
        registry.device(word, present=False)


def _check_duration(_: object, text: str | None) -> None:
    if text is not None:
        seconds(text)


def _check_seeds(_: object, text: str | None) -> None:
    from iterant.runner.plan import parse_seeds

    if text is not None:
        parse_seeds(text)


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
TrustCode = Annotated[
    bool,
    FLAG,
    Parameter(
        help="import the user-defined code (module:Class) that the given folders or files name"
    ),
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
        "rating [default: the task's]"
    ),
]
# Every number of a command has bounds; those of recipes are checked with the recipe.
Count = Annotated[int, Parameter(validator=bounds.COUNT)]
Steps = Annotated[int, Parameter(validator=bounds.STEPS)]
Seed = Annotated[int, Parameter(validator=bounds.SEED)]
Seeds = Annotated[str, Parameter(validator=_check_seeds)]
Duration = Annotated[str, Parameter(validator=_check_duration)]
Processes = Annotated[int, Parameter(validator=bounds.PROCESSES)]
Patience = Annotated[
    int | None,
    Parameter(
        help="of stable: iterations for which the answer must not change [default: 30]",
        validator=bounds.STEPS,
    ),
]
Tolerance = Annotated[
    float | None,
    Parameter(
        help="of rest: change of a feature over 16 iterations, relative to the largest feature "
        "[default: 1e-4]",
        validator=bounds.TOLERANCE,
    ),
]
