"""What the commands share: types of flags, tasks and rules by name, flags of the recipe fields."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, get_args, get_type_hints

from cyclopts import App, ArgumentCollection, Group, Parameter

from iterant import registry
from iterant.errors import UsageError
from iterant.training.recipe import Recipe

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
TaskName = Annotated[str, Parameter(help=TASKS)]
DeviceName = Annotated[str, Parameter(help="auto, cpu, cuda or cuda:0", validator=_check_device)]
DataPath = Annotated[Path | None, Parameter(help="take the problems from these files")]
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
    words: tuple[str, ...], word: str, patience: int | None, tolerance: float | None
) -> Rule | None:
    """The halting rule of that word, one of ``words``; None: the first of them, by default.

    >>> rule_of(("rest", "stable"), "stable", 5, None)
    StableAnswer(patience=5)
    """
    from iterant import halting

    word = "rest" if word == "settled" else word  # its name before version 0.2
    if word not in words:
        raise UsageError(registry.unknown_name("rule", word, words))
    rules: dict[str, Callable[..., Rule]] = {
        "rest": halting.Resting,
        "stable": halting.StableAnswer,
        "plain": halting.Fixed,
        "max-confidence": halting.MostConfident,
    }
    for taker, flag, value in (("stable", "patience", patience), ("rest", "tolerance", tolerance)):
        if value is not None:
            if word != taker:
                raise UsageError(f"--{flag} is for the rule {taker}, not for {word}; leave it out")
            return rules[word](value)
    return None if word == words[0] else rules[word]()


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


class RecipeField(NamedTuple):
    """A field of `Recipe` as its source describes it."""

    section: str
    """The comment above its group"""
    name: str
    help: str
    """The docstring below it"""


def recipe_fields() -> list[RecipeField]:
    """All fields in their order.

    >>> [field.name for field in recipe_fields()][:2]
    ['name', 'net']
    """
    fields, section = [], "The recipe"
    pattern = r'^(?:    # (.+)\n)?    (\w+): .+\n    """((?s:.+?))"""'
    for title, name, text in re.findall(pattern, inspect.getsource(Recipe), re.MULTILINE):
        section, text = title or section, " ".join(text.split()).replace("None", "none")
        fields.append(RecipeField(section, name, text[:1].lower() + text[1:]))
    return fields


def with_recipe_flags(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command with ``**changes`` a flag for every recipe field but the notes.

    Only flags that are given reach the command: ``--clip none`` differs from no --clip.
    """
    signature, types = inspect.signature(command), get_type_hints(Recipe)
    flags = [one for one in signature.parameters.values() if one.kind is not one.VAR_KEYWORD]
    groups: dict[str, Group] = {}
    for section, name, text in recipe_fields():
        if name == "notes":
            continue
        group = groups.setdefault(section, Group(section, sort_key=len(groups) + 1))
        # The task knows how its sizes are written: 32, or 0:600000.
        kind: Any = str if name == "size" else types[name]
        extra = SEVERAL if "tuple" in str(kind) else Parameter()
        annotation = Annotated[kind | None, extra, Parameter(help=text, group=group)]
        flags.append(
            inspect.Parameter(
                name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation
            )
        )
    vars(command)["__signature__"] = signature.replace(parameters=flags)
    return command
