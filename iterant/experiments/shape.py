"""Whether a record holds what tables and figures are made of: people copy and edit such files.

>>> fault_in({"model": "sums-n0", "seed": "one"})
"seed is 'one', no whole number"
"""

from __future__ import annotations

import reprlib
from collections.abc import Iterator, Mapping
from typing import Any

_SORTS: dict[str, tuple[type, str]] = {
    "model": (str, "name"),
    "seed": (int, "whole number"),
    "finished": (bool, "true or false"),
    "reduced": (dict, "object"),
    "training": (dict, "object"),
    "tests": (dict, "object"),
    "studies": (dict, "object"),
}

_MOST = 2**53
"""Problems that a number of the machine counts exactly"""

NEEDED = tuple(_SORTS)
"""What the figures of every record have."""


def fault_in(figures: Mapping[str, Any]) -> str:
    """The first thing that is wrong with a record's figures; "": nothing."""
    return next(_faults(figures), "")


def _faults(figures: Mapping[str, Any]) -> Iterator[str]:
    for name, (sort, told) in _SORTS.items():
        if name in figures and not _is(figures[name], sort):
            yield f"{name} is {reprlib.repr(figures[name])}, no {told}"
            return
    missing = [name for name in NEEDED if name not in figures]
    if missing:
        yield f"{', '.join(missing)} missing"
        return
    if figures["seed"] < 0:
        yield f"seed is {figures['seed']}, below 0"
    for name, test in figures["tests"].items():
        yield from _curve(test, f"the test {name}", "problems", "solved")
        if isinstance(test, dict) and "solved by the most confident" in test:
            yield from _curve(test, f"the test {name}", "problems", "solved by the most confident")
    yield from _training(figures["training"])
    for name, study in figures["studies"].items():
        yield from _study(study, f"the study {name}")


def _training(training: Mapping[str, Any]) -> Iterator[str]:
    for name in ("train", "validation"):
        if name in training:
            found = training[name]
            if not isinstance(found, dict) or not _counts([found.get("solved")], found.get("of")):
                yield f"the accuracy {name} is {reprlib.repr(found)}, no count solved of a count"
    if not isinstance(training.get("recipe", {}), dict):
        yield f"the recipe is {reprlib.repr(training['recipe'])}, no object"
    history = training.get("history", [])
    if not isinstance(history, list) or not all(
        isinstance(row, dict) and _is(row.get("epoch"), int) for row in history
    ):
        yield "the history is no list of epochs"


def _study(study: Any, name: str) -> Iterator[str]:
    if not isinstance(study, dict):
        yield f"{name} is {reprlib.repr(study)}, no object"
        return
    if "right" in study:
        yield from _curve(study, name, "samples", "right")
    for key in ("recovered", "mean iterations", "mean iterations to first"):
        if not _number(study.get(key)):
            yield f"{key} of {name} is {reprlib.repr(study[key])}, no number"
    series = {"mean iterations by index": study.get("mean iterations by index", [])}
    for inputs in ("problems", "random inputs"):
        found = study.get(inputs)
        if isinstance(found, dict):
            series[f"change on {inputs}"] = found.get("change")
            ends = found.get("features", {})
            if not isinstance(ends, dict) or not _counts(list(ends.values()), _MOST):
                yield f"features on {inputs} of {name} are no counts"
    for key, values in series.items():
        known = isinstance(values, list) and all(map(_number, values))
        if not known or (not values and key.startswith("change")):
            yield f"{key} of {name} is no list of numbers"


def _curve(part: Any, name: str, count: str, curve: str) -> Iterator[str]:
    """Problems right after every iteration, and of how many."""
    if not isinstance(part, dict):
        yield f"{name} is {reprlib.repr(part)}, no object"
    elif not isinstance(part.get(curve), list) or not part[curve]:
        yield f"{curve!r} of {name} is no list of counts"
    elif not _counts(part[curve], part.get(count)):
        yield f"{name} has counts in {curve!r} that are none of {reprlib.repr(part.get(count))}"


def _counts(values: list[Any], of: Any) -> bool:
    known = _is(of, int) and 0 < of <= _MOST
    return known and all(_is(one, int) and 0 <= one <= of for one in values)


def _number(value: Any) -> bool:
    """Or nothing, where there was none."""
    return value is None or _is(value, int) or isinstance(value, float)


def _is(value: Any, sort: type) -> bool:
    """True and false are no numbers."""
    return isinstance(value, sort) and (sort is not int or not isinstance(value, bool))
