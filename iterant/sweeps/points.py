"""Multiplying settings out into points, and refusing those that no run could be made of.

>>> points, axes = multiplied("mazes", "quick", {}, {"width": [32, 64]}, [])
>>> [label(point, axes) for point in points]
['mazes-quick-width32', 'mazes-quick-width64']
"""

from __future__ import annotations

import hashlib
import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from iterant import names
from iterant.errors import UsageError
from iterant.tasks.chance import check_seed
from iterant.tasks.protocol import Task
from iterant.training.parts import network_of
from iterant.training.recipe import Recipe
from iterant.training.start import recipe_for

Fields = dict[str, Any]

MOST_RUNS = 100_000
"""More runs than this in one sweep are a slip of the pen."""

WORDS = ("task", "recipe")
"""What a point may set beside the fields of a recipe."""

_LONGEST_NAME = 80


def multiplied(
    task: Any, recipe: Any, fields: Any, grid: Any, entries: Any
) -> tuple[list[Fields], list[str]]:
    """Every combination of the grid with every entry of the list, and the settings that vary.

    The more special setting wins: an entry over the grid, the grid over the fields.
    """
    for word, value in (("fields", fields), ("grid", grid)):
        if not isinstance(value, Mapping):
            raise UsageError(f"{word} must be a table of fields, got {value!r}")
    if not isinstance(entries, Sequence) or isinstance(entries, str):
        raise UsageError(f"list must be tables, each written [[list]], got {entries!r}")
    for entry in entries:
        if not isinstance(entry, Mapping):
            raise UsageError(f"an entry of the list must be a table of fields, got {entry!r}")
    several = {
        word: value if isinstance(value, list | tuple) else [value]
        for word, value in (("task", task), ("recipe", recipe))
        if value is not None
    }
    # A word that a narrower setting gives everywhere is not multiplied by the wider one.
    given = {
        word for word in WORDS if word in fields or (entries and all(word in e for e in entries))
    }
    axes = {**{word: value for word, value in several.items() if word not in given}, **grid}
    count = max(1, len(entries))
    for word, values in axes.items():
        count *= len(listed(word, values))
    if count > MOST_RUNS:
        raise UsageError(f"{count:,} points are more than {MOST_RUNS:,}; sweep over less")
    points = [
        {**fields, **dict(zip(axes, values, strict=True)), **entry}
        for values in itertools.product(*axes.values())
        for entry in entries or [{}]
    ]
    for point in points:
        for word in WORDS:
            _check_word(word, point.get(word))
    varied = {*grid, *(key for entry in entries for key in entry)}
    return points, sorted(varied - set(WORDS))


def listed(word: str, values: Any) -> list[Any]:
    """The values of a setting that is to vary."""
    if not isinstance(values, Sequence) or isinstance(values, str) or not values:
        raise UsageError(f"{word} must be a list of one or more values, got {values!r}")
    return list(values)


def _check_word(kind: str, value: Any) -> None:
    if value is None:
        raise UsageError(f"which {kind}? give one of: {', '.join(names.known(kind))}")
    if not isinstance(value, str):
        raise UsageError(f"{kind} must be a word, got {value!r}")


def checked(point: Fields, task: Task) -> Fields:
    """The point with its values as a recipe takes them, once the recipe did take them."""
    # TOML has no word for nothing.
    one: Fields = {key: None if value == "none" else value for key, value in point.items()}
    if isinstance(one.get("size"), str):
        one["size"] = task.parse_size(one["size"])
    made = recipe_of(one["recipe"], one, task)
    task.check_size(made.size)
    return one


def recipe_of(word: str, settings: Fields, task: Task) -> Recipe:
    """The recipe of a point: of that name, for its network, with its fields changed."""
    changes = {key: value for key, value in settings.items() if key not in WORDS}
    net = changes.pop("net", None)
    if not isinstance(net, str | None):
        raise UsageError(f"net must be a word, got {net!r}")
    return recipe_for(task, word, net, changes)


def label(point: Fields, axes: Sequence[str]) -> str:
    """A point's name: readable, safe as a folder's, and the same when values are added later."""
    words = [
        point["task"],
        point["recipe"],
        *(f"{key}{point[key]}" for key in axes if key in point),
    ]
    text = "-".join(re.sub(r"[^A-Za-z0-9.+-]+", "_", word).strip("_") for word in words)
    plain = all(re.fullmatch(r"[A-Za-z0-9.+-]+", word.replace("_", "")) for word in words)
    if plain and len(text) <= _LONGEST_NAME and text[0].isalnum():
        return text
    content = json.dumps(point, sort_keys=True, default=str)
    digest = hashlib.sha256(content.encode()).hexdigest()[:10]
    return f"{text[: _LONGEST_NAME - 11].strip('.-_+')}-{digest}".lstrip("-")


def check_networks(runs: Sequence[tuple[str, str, Fields]], tasks: Mapping[str, Task]) -> None:
    """Build a network of each kind once, so that one that cannot be is refused now."""
    kinds = {(task, str(changes.get("net"))): (recipe, changes) for task, recipe, changes in runs}
    for (word, _), (recipe, changes) in kinds.items():
        task = tasks[word]
        network_of(recipe_of(recipe, changes, task), task.spec, 0)


def tests_told(tests: Any, tasks: Mapping[str, Task]) -> Iterator[Fields]:
    """The settings of each test, lists in them multiplied out."""
    if not isinstance(tests, Sequence) or isinstance(tests, str):
        raise UsageError(f"tests must be tables, each written [[tests]], got {tests!r}")
    known = ("task", "size", "count", "seed", "max_steps")
    for test in tests:
        if not isinstance(test, Mapping):
            raise UsageError(f"a test must be a table with size, count and so on, got {test!r}")
        for word in test:
            if word not in known:
                raise UsageError(names.unknown("setting of a test", word, known))
        each = {
            word: listed(word, value) if isinstance(value, list) else [value]
            for word, value in test.items()
        }
        for values in itertools.product(*each.values()):
            yield _test(dict(zip(each, values, strict=True)), tasks)


def _test(told: Fields, tasks: Mapping[str, Task]) -> Fields:
    """One test, tried on the tasks that it is for."""
    wanted = told.get("task")
    if wanted is not None and wanted not in list(tasks):
        raise UsageError(f"a test is for task {wanted!r}, and no run is; leave it out")
    for word, least in (("count", 1), ("max_steps", 1)):
        value = told.get(word, least)
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise UsageError(
                f"{word} of a test must be a whole number from {least} on, got {value!r}"
            )
    check_seed(told.get("seed", 0))
    if told.get("size") is None:
        return told
    size = told["size"]
    for word, task in tasks.items():
        if wanted in (None, word):
            told = {**told, "size": task.parse_size(size) if isinstance(size, str)
                    else task.check_size(size)}  # fmt: skip
    return told
