"""A flag for every field of a recipe, read from the recipe itself: nothing is written twice.

    >>> [field.flag for field in recipe_fields()][:2]
    ['--name', '--net']

`with_recipe_flags` gives them to a command, which finds those that were given in its keywords.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, get_type_hints

from cyclopts import Parameter

from iterant.cli.whole_numbers import parameters
from iterant.training.recipe import Recipe

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
