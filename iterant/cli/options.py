"""Flags that several commands share, and the tasks and halting rules that they name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

from cyclopts import App, ArgumentCollection, Parameter

from iterant import registry
from iterant.errors import UsageError

if TYPE_CHECKING:
    from iterant.halting import Rule
    from iterant.tasks.protocol import Task


def _check_device(_: object, word: str) -> None:
    """Check the word now; whether that GPU exists is checked when it is used."""
    if word != "auto":
        registry.device(word, present=False)


SEVERAL = Parameter(consume_multiple=1, negative="")
"""A list: ``--size 13 59``."""
FLAG = Parameter(negative="", show_default=False)
"""A switch without ``--no-…``."""
TASKS = f"{', '.join(registry.known('task'))}, or module:Class of your own"
RULES = ("rest", "stable", "plain", "max-confidence")
TaskName = Annotated[str, Parameter(help=TASKS)]
DeviceName = Annotated[str, Parameter(help="auto, cpu, cuda or cuda:0", validator=_check_device)]
DataPath = Annotated[
    Path | None, Parameter(help="folder of problem files, used instead of the task's own problems")
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


def task_of(word: str, data: Path | None = None) -> Task:
    """The task of that name, with problems from the user's files if there are any."""
    if word and Path(word).is_dir() and ":" not in word and word not in registry.known("task"):
        raise UsageError(
            f"{word!r} is a folder, and the task comes first: {TASKS}; "
            f"a run is given as --net {word} or --resume {word}"
        )
    return registry.task(word) if data is None else registry.task(word, data=data)


def rule_of(
    word: str, patience: int | None, tolerance: float | None, *, default: str
) -> Rule | None:
    """The halting rule of that name; None for the command's default rule without options.

    >>> rule_of("stable", 5, None, default="rest")
    StableAnswer(patience=5)
    """
    from iterant import halting

    word = "rest" if word == "settled" else word  # its name before version 0.2
    if word not in RULES:
        raise UsageError(registry.unknown_name("rule", word, RULES))
    flags = {"patience": patience, "tolerance": tolerance}
    options: dict[str, Any] = {name: value for name, value in flags.items() if value is not None}
    if word == default and not options:
        return None
    rules: dict[str, Callable[..., Rule]] = {
        "rest": halting.Resting,
        "stable": halting.StableAnswer,
        "plain": halting.Fixed,
        "max-confidence": halting.MostConfident,
    }
    try:
        return rules[word](**options)
    except TypeError:
        names = " or ".join(f"--{name}" for name in options)
        raise UsageError(f"the rule {word} takes no {names}; leave it out") from None


def refuse_fractions(_: App, __: tuple[str, ...], arguments: ArgumentCollection) -> None:
    """Refuse ``--seed 1.5``, which cyclopts would round; a configuration of an `App`."""

    def types(hint: Any) -> set[Any]:
        inner = get_args(hint)
        return set().union(*map(types, inner)) if inner else {hint}

    for argument in arguments:
        if int in (accepted := types(argument.hint)) and not accepted & {float, str}:
            for token in argument.tokens:
                if "." in token.value:
                    name = token.keyword or argument.name
                    raise UsageError(f"{name} takes a whole number, got {token.value}; round it")
