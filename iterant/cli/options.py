"""What the commands share: the console, types of flags, and a flag for every recipe field."""

from __future__ import annotations

import ast
import inspect
import sys
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_type_hints

from cyclopts import ArgumentCollection, Group, Parameter
from rich.console import Console

from iterant import registry
from iterant.errors import UsageError
from iterant.training.recipe import Recipe

if TYPE_CHECKING:
    from iterant.halting import Rule
    from iterant.tasks.protocol import Task

_PIPE_COLUMNS = 200


def console() -> Console:
    """A console on the current standard output; a pipe gets wide lines and no colours."""
    width = None if sys.stdout.isatty() else _PIPE_COLUMNS
    return Console(file=sys.stdout, width=width, highlight=False, markup=False, emoji=False)


def print_table(head: Sequence[str], *rows: Sequence[str], right: bool = False) -> None:
    """Print a table without lines; ``right``: all columns but the first are aligned right."""
    from rich.table import Table

    table = Table(box=None)
    for place, name in enumerate(head):
        table.add_column(name, justify="right" if right and place else "left")
    for row in rows:
        table.add_row(*row)
    console().print(table)


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
        help="how hard: bits, side of a maze, FIRST:STOP puzzles by rating; several if you like "
        "[default: the training size]"
    ),
]
Patience = Annotated[
    int | None,
    Parameter(help="iterations that an answer must stay the same, for stable [default: 30]"),
]
Tolerance = Annotated[
    float | None,
    Parameter(
        help="how far features may move in 16 iterations, as a share of the largest, for rest "
        "[default: 1e-4]"
    ),
]


def task_of(word: str, data: Path | None = None) -> Task:
    """The task of that name, with problems from the user's files if there are any."""
    if word and Path(word).is_dir() and ":" not in word and word not in registry.known("task"):
        raise UsageError(
            f"{word!r} is a folder, and the task comes first: "
            f"{', '.join(registry.known('task'))}, or "
            f"module:Class; a run is given as --net {word} or --resume {word}"
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
    rules: dict[str, tuple[type[Rule], str]] = {
        "rest": (halting.Resting, "tolerance"),
        "stable": (halting.StableAnswer, "patience"),
        "plain": (halting.Fixed, ""),
        "max-confidence": (halting.MostConfident, ""),
    }
    rule, option = rules[word]
    options: dict[str, Any] = {"patience": patience, "tolerance": tolerance}
    options = {name: value for name, value in options.items() if value is not None}
    for name in options:
        if name != option:
            takers = " or ".join(other for other in words if rules[other][1] == name)
            raise UsageError(f"--{name} is for the rule {takers}, not for {word}; leave it out")
    return rule(**options) if options or word != words[0] else None


def parameters(name: str = "Parameters", place: int = 0) -> Group:
    """A group of options in the help; it refuses ``--seed 1.5``, which cyclopts would round."""
    return Group(name, validator=_refuse_fractions, sort_key=place)


def _refuse_fractions(arguments: ArgumentCollection) -> None:
    def types(hint: Any) -> set[Any]:
        inner = get_args(hint)
        return set().union(*map(types, inner)) if inner else {hint}

    for argument in arguments:
        if int in (accepted := types(argument.hint)) and not accepted & {float, str}:
            for token in argument.tokens:
                if "." in token.value:
                    name = token.keyword or argument.name
                    raise UsageError(f"{name} takes a whole number, got {token.value}")


@dataclass(frozen=True)
class RecipeField:
    """A field of `Recipe` as its source describes it."""

    name: str
    section: str
    """The comment above its group"""
    help: str
    """The docstring below it"""
    type: Any


def recipe_fields() -> list[RecipeField]:
    """All fields in their order.

    >>> [field.name for field in recipe_fields()][:2]
    ['name', 'net']
    """
    source = textwrap.dedent(inspect.getsource(Recipe))
    lines, types, fields, section = source.splitlines(), get_type_hints(Recipe), [], "The recipe"
    (body,) = ast.parse(source).body
    nodes = list(body.body) if isinstance(body, ast.ClassDef) else []
    for node, after in zip(nodes, [*nodes[1:], None], strict=True):
        if not isinstance(node, ast.AnnAssign) or not isinstance(node.target, ast.Name):
            continue
        above = lines[node.lineno - 2].strip()
        section = above.removeprefix("# ") if above.startswith("# ") else section
        is_text = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
        text = str(after.value.value) if is_text else ""  # type: ignore[union-attr]
        text = (text[:1].lower() + text[1:]).replace("None", "none")
        fields.append(RecipeField(node.target.id, section, text, types[node.target.id]))
    return fields


def with_recipe_flags(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command with ``**changes`` a flag for every recipe field but the notes.

    Only flags that are given reach the command, so that ``--clip none`` is told from no --clip.
    """
    signature = inspect.signature(command)
    flags = [one for one in signature.parameters.values() if one.kind is not one.VAR_KEYWORD]
    sections: dict[str, Group] = {}
    for field in recipe_fields():
        if field.name == "notes":
            continue
        group = sections.setdefault(field.section, parameters(field.section, len(sections) + 1))
        # The task knows how its sizes are written: 32, or 0:600000.
        kind = str if field.name == "size" else field.type
        several = "tuple" in str(kind)
        about = Parameter(
            help=field.help,
            group=group,
            consume_multiple=1 if several else False,
            negative="" if several else None,
        )
        flags.append(
            inspect.Parameter(
                field.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=None,
                annotation=Annotated[kind | None, about],
            )
        )
    vars(command)["__signature__"] = signature.replace(parameters=flags)
    return command
