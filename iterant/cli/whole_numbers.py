"""Whole numbers on the command line are whole: ``--seed 1.5`` is refused, not rounded.

>>> App(group_parameters=parameters())
"""

from __future__ import annotations

from typing import Any, get_args

from cyclopts import ArgumentCollection, Group

from iterant.errors import UsageError


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
