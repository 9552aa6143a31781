"""A flag for every field of a recipe, read from the recipe itself: nothing is written twice.

    >>> [field.flag for field in recipe_fields()][:2]
    ['--name', '--net']

`with_recipe_flags` gives them to a command, which finds those that were given in its keywords.

Where commands print: a terminal as it is, a file or a pipe without colours or broken lines.

Figures as people read them: shares, durations, small curves and bars.

The device that a command line names, refused where torch has it and nothing computes on it.

The task that a command line names, checked before anything is asked of it.

The halting rule that --rule, --patience and --tolerance name together.

Whole numbers on the command line are whole: ``--seed 1.5`` is refused, not rounded.
"""

from __future__ import annotations

import ast
import inspect
import math
import sys
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_type_hints

from cyclopts import ArgumentCollection, Group, Parameter
from rich.console import Console

from iterant import registry
from iterant.errors import UsageError
from iterant.formatting import percent
from iterant.training.logging import Report
from iterant.training.recipe import Recipe

if TYPE_CHECKING:
    from iterant.halting import Rule
    from iterant.tasks.protocol import Task


_PIPE_COLUMNS = 200


def console() -> Console:
    """The console on standard output; made anew, so that it sees a redirected stream."""
    width = None if sys.stdout.isatty() else _PIPE_COLUMNS
    return Console(file=sys.stdout, width=width, highlight=False, markup=False, emoji=False)


_STEPS = "▁▂▃▄▅▆▇█"
_LEAST = 1e-8


def sparkline(values: Sequence[float], width: int, *, log: bool = False) -> str:
    """The values as a curve of at most ``width`` signs, each the mean of its part."""
    kept = [value for value in values if math.isfinite(value)]
    if log:
        kept = [math.log(max(value, _LEAST)) for value in kept]
    if len(kept) < 2:
        return ""
    parts = min(width, len(kept))
    edges = [len(kept) * part // parts for part in range(parts + 1)]
    means = [math.fsum(kept[low:high]) / (high - low) for low, high in pairwise(edges)]
    low, high = min(means), max(means)
    height = (high - low) or 1.0
    return "".join(_STEPS[round((mean - low) / height * (len(_STEPS) - 1))] for mean in means)


def bar(done: float, width: int, *, ascii_only: bool = False) -> str:
    """A bar so many signs wide, filled as far as the work is done."""
    full = round(min(max(done, 0.0), 1.0) * width)
    return ("#" * full + "-" * (width - full)) if ascii_only else "━" * full + "╌" * (width - full)


def watched(report: Report) -> list[str]:
    """What was seen on larger problems, a text a size: ``48: 97.0 % at 2m, 98.0 % at 4m``."""
    sizes: dict[str, list[str]] = {}
    for name in report.figures:
        size, _, what = name.partition(" ")
        if name not in report.monitoring:
            continue
        value = report.figures[name]
        said = f"change {value:.0e}" if what == "change" else f"{percent(value)} {what}"
        sizes.setdefault(size, []).append(said)
    return [f"{size}: {', '.join(said)}" for size, said in sizes.items()]


def _check(_: object, word: str) -> None:
    """Raise UsageError for what is no computer here; whether a GPU is there is asked later."""
    if word != "auto":
        from iterant.training.device import device_named

        device_named(word)


SEVERAL = Parameter(consume_multiple=1, negative="")
"""A list: ``--size 13 59``."""
FLAG = Parameter(negative="", show_default=False)
"""A switch without ``--no-…``."""
DeviceName = Annotated[str, Parameter(help="auto, cpu, cuda or cuda:0", validator=_check)]


TaskName = Annotated[
    str, Parameter(help=f"{', '.join(registry.known('task'))}, or module:Class of your own")
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
    """The rule of that word, one of ``words``; None: the first of them as it is by default.

    >>> rule_of(("rest", "stable"), "stable", 5, None)
    StableAnswer(patience=5)
    """
    from iterant import halting

    if word not in words:
        raise UsageError(registry.unknown_name("rule", word, words))
    made: dict[str, tuple[type[Rule], tuple[str, ...]]] = {
        "rest": (halting.Resting, ("tolerance",)),
        "stable": (halting.StableAnswer, ("patience",)),
        "plain": (halting.Fixed, ()),
        "max-confidence": (halting.MostConfident, ()),
    }
    kind, takes = made[word]
    given: dict[str, Any] = {
        name: value
        for name, value in (("patience", patience), ("tolerance", tolerance))
        if value is not None
    }
    for name in given:
        if name not in takes:
            takers = " or ".join(rule for rule in words if name in made[rule][1])
            raise UsageError(f"--{name} is for the rule {takers}, not for {word}; leave it out")
    return kind(**given) if given or word != words[0] else None


def parameters(name: str = "Parameters", place: int = 0) -> Group:
    """A group of options, shown under that name and in that place, whose numbers are checked."""
    return Group(name, validator=refuse_fractions, sort_key=place)


def refuse_fractions(arguments: ArgumentCollection) -> None:
    """Raise UsageError for a number with a point where a whole one is wanted."""
    for argument in arguments:
        kinds = _kinds(argument.hint)
        if int in kinds and not kinds & {float, str}:
            for token in argument.tokens:
                if "." in token.value:
                    named = token.keyword or argument.name
                    raise UsageError(f"{named} takes a whole number, got {token.value}")


def _kinds(hint: Any) -> set[Any]:
    """The plain types that a hint is made of."""
    inner = get_args(hint)
    return set().union(*map(_kinds, inner)) if inner else {hint}


_NO_FLAG = {"notes"}
"""Notes explain a recipe; nobody decides anything by them."""


@dataclass(frozen=True)
class RecipeField:
    """A field as the recipe's source describes it."""

    name: str
    section: str
    """The comment above its group"""
    about: str
    """The text below it"""
    kind: Any
    """Its type"""

    @property
    def flag(self) -> str:
        """``--pool-slots``."""
        return f"--{self.name.replace('_', '-')}"

    @property
    def words(self) -> str:
        """What it means, in the words of the command line: ``features; none: the paper's``."""
        return (self.about[:1].lower() + self.about[1:]).replace("None", "none")


def recipe_fields() -> list[RecipeField]:
    """All fields in their order."""
    source = textwrap.dedent(inspect.getsource(Recipe))
    lines = source.splitlines()
    (body,) = ast.parse(source).body
    kinds, found, section = get_type_hints(Recipe), [], "The recipe"
    nodes = list(body.body) if isinstance(body, ast.ClassDef) else []
    for node, after in zip(nodes, [*nodes[1:], None], strict=True):
        if not isinstance(node, ast.AnnAssign) or not isinstance(node.target, ast.Name):
            continue
        above = lines[node.lineno - 2].strip()
        section = above.removeprefix("# ") if above.startswith("# ") else section
        name = node.target.id
        found.append(RecipeField(name, section, _text(after), kinds[name]))
    return found


def _text(node: ast.stmt | None) -> str:
    """The string that stands alone as this statement, if it is one."""
    value = node.value if isinstance(node, ast.Expr) else None
    return value.value if isinstance(value, ast.Constant) and isinstance(value.value, str) else ""


def with_recipe_flags(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command with ``**changes`` a flag for every field; only given ones reach it."""
    signature = inspect.signature(command)
    own = [
        parameter
        for parameter in signature.parameters.values()
        if parameter.kind is not inspect.Parameter.VAR_KEYWORD
    ]
    # Sections are shown in the recipe's order, after the command's own flags.
    fields = [field for field in recipe_fields() if field.name not in _NO_FLAG]
    order = {section: place for place, section in enumerate({f.section: 0 for f in fields})}
    flags = [_parameter(order[field.section] + 1, field) for field in fields]
    made = signature.replace(parameters=[*own, *flags])
    vars(command)["__signature__"] = made
    return command


def _parameter(place: int, field: RecipeField) -> inspect.Parameter:
    """A keyword that is absent unless it was given: ``--clip none`` gives a None of its own."""
    # The task knows how its sizes are written: 32, or 0:600000.
    kind = str if field.name == "size" else field.kind
    several = "tuple" in str(kind)
    about = Parameter(
        help=field.words,
        group=parameters(field.section, place),
        consume_multiple=1 if several else False,
        negative="" if several else None,
    )
    return inspect.Parameter(
        field.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=None,
        annotation=Annotated[kind | None, about],
    )
