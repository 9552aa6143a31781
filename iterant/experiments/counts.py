"""Results without curves: how many problems networks solved after a number of iterations.

    >>> [count.seed for count in read_counts("results").of("mazes-ours", "201")]
    [0, 1, 2, 3, 4, 5, 6, 7]

For problems so large that a look at every iteration would take minutes of a card. They are made by
``scripts/every-seed`` and ``scripts/measure-network``. Of which model a result is, stands in it
(``--model``) or, for those made before that, in `SOURCES`.

Whether a model's recipe has changed since something was made by it.
"""

from __future__ import annotations

import re
import reprlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from iterant.errors import RunError
from iterant.experiments.models import MODELS
from iterant.experiments.statistics import Summary, summary
from iterant.io import read_result
from iterant.io.files import PathLike, quoted, to_json
from iterant.training.recipe import Recipe

_NOT_OF_A_RECIPE = {"name", "notes", "precision"}
"""Fields that may differ from run to run of one recipe."""


def has_changed(
    model: str, was: Mapping[str, Any] | None, validated: Iterable[float | None] = ()
) -> bool:
    """Whether its recipe is another now; see `changed_fields`."""
    return bool(changed_fields(model, was, validated))


def changed_fields(
    model: str, was: Mapping[str, Any] | None, validated: Iterable[float | None] = ()
) -> dict[str, Any]:
    """Fields of its recipe that are others now, as they were; {} for what kept no recipe.

    ``validated`` is how its runs validated: those that reached what the recipe asks of a run now
    would not have begun again, and are the same.
    """
    if model not in MODELS or not was:
        return {}
    usual, now = Recipe().described(), to_json(MODELS[model].recipe().described())
    # What a recipe did not know then was as usual.
    then = {key: was.get(key, to_json(usual[key])) for key in now}
    fields = {key for key, value in now.items() if then[key] != value}
    reached = list(validated)
    if reached and all(one is not None and one >= now["again_below"] for one in reached):
        fields.discard("again_below")
    return {key: then[key] for key in sorted(fields - _NOT_OF_A_RECIPE)}


def validations(seeds: object) -> list[float | None]:
    """How the seeds of a result validated; None where it does not say."""
    if not isinstance(seeds, Mapping):
        return []
    best = [part.get("best") for part in seeds.values() if isinstance(part, Mapping)]
    return [one.get("validation") if isinstance(one, Mapping) else None for one in best]


SOURCES = {
    "best-prefix-sums-h200": "sums-ours",
    "best-mazes-h200": "mazes-ours",
    "best-mazes-more-h200": "mazes-ours",
    "measure-mazes-best-*-801": "mazes-ours",
    "measure-mazes-shipped-801": "mazes-ours",
}
"""Names of results that do not say themselves of which model they are, * for anything."""

MEASURED = "measure-"
"""How names of results begin that may say it themselves."""

_WHOLE = ("solved", "solved at twice", "problems", "iterations")
"""Whole numbers of every test."""


@dataclass(frozen=True)
class Count:
    """What one trained network solved after some iterations, and after twice as many."""

    model: str
    seed: int | None
    """None: its result does not say"""
    size: str
    problems: int
    iterations: int
    solved: int
    twice: int
    file: Path
    older: bool = False
    """Whether the model's recipe has changed since"""
    precision: str = ""
    """What it was trained in; "": its result does not say"""


@dataclass(frozen=True)
class Group:
    """The networks of one model that had the same test."""

    counts: tuple[Count, ...]

    @property
    def solved(self) -> Summary:
        """Per cent over networks, no surer than the number of problems allows."""
        return self._over([count.solved for count in self.counts])

    @property
    def twice(self) -> Summary:
        """The same after twice the iterations."""
        return self._over([count.twice for count in self.counts])

    def _over(self, solved: list[int]) -> Summary:
        shares = [100 * one / c.problems for one, c in zip(solved, self.counts, strict=True)]
        made = summary(shares, self.counts[0].problems)
        return made or Summary(0.0, None, 0)


@dataclass(frozen=True)
class Counts:
    """All of a folder of results."""

    all: tuple[Count, ...] = ()

    def of(self, model: str, size: str) -> tuple[Count, ...]:
        """Of one model on problems of one size."""
        return tuple(one for one in self.all if (one.model, one.size) == (model, size))

    def groups(self, model: str, size: str) -> list[Group]:
        """The same, test by test: the fewest iterations first."""
        found: dict[tuple[int, int], list[Count]] = {}
        for one in self.of(model, size):
            found.setdefault((one.iterations, one.problems), []).append(one)
        return [Group(tuple(found[key])) for key in sorted(found)]


def read_counts(results: PathLike) -> Counts:
    """All of a folder of results; two of the same test of one network are refused."""
    found: dict[tuple[Any, ...], Count] = {}
    for file in sorted(Path(results).glob("*.json")):
        known = next((m for name, m in SOURCES.items() if fnmatch(file.stem, name)), None)
        if known is None and not file.name.startswith(MEASURED):
            continue
        for count in _counts(file, known):
            same = (count.model, count.seed, count.size, count.problems, count.iterations)
            if same in found:
                raise RunError(
                    f"{count.model} with seed {count.seed} was tested twice at size {count.size}, "
                    f"in {quoted(found[same].file)} and in {quoted(file)}; remove one of them"
                )
            found[same] = count
    return Counts(tuple(found.values()))


def _counts(file: Path, known: str | None) -> Iterator[Count]:
    """Those of one result, or one line about what is wrong with it."""
    result = read_result(file)
    figures = result["figures"]
    model = known or (figures.get("model") if isinstance(figures, dict) else None)
    if model is None:
        return
    if model not in MODELS:
        raise RunError(f"{quoted(file)} is of the model {model!r}, which there is not; correct it")
    recipe = figures.get("recipe") or {}
    older = has_changed(model, recipe, validations(figures.get("seeds")))
    # Our own recipes have one precision, which a result without its recipe had too.
    own = "" if MODELS[model].half else MODELS[model].recipe().precision
    for seed, size, test in _tests(result, file):
        wrong = [name for name in _WHOLE if type(test.get(name)) is not int or test[name] < 0]
        if wrong or not max(test["solved"], test["solved at twice"]) <= test["problems"] > 0:
            raise RunError(
                f"{quoted(file)}: the test at size {size} is {reprlib.repr(test)}, no count of "
                "problems solved; restore it from a copy, or remove it"
            )
        yield Count(model, seed, size, test["problems"], test["iterations"], test["solved"],
                    test["solved at twice"], file, older,
                    recipe.get("precision", own))  # fmt: skip


def _tests(
    result: Mapping[str, Any], file: Path
) -> Iterator[tuple[int | None, str, Mapping[str, Any]]]:
    """Seed, size and test: of many seeds by every-seed, or of one by measure-network."""
    figures = result["figures"]
    own = result["seed"] if type(result["seed"]) is int else ""
    parts = figures.get("seeds", {own: figures})
    if not isinstance(parts, dict) or not all(isinstance(part, dict) for part in parts.values()):
        raise RunError(f"{quoted(file)}: its seeds are no object; restore it from a copy")
    for seed, part in parts.items():
        for name, test in part.items():
            size = re.fullmatch(r"(?:size )?(\d+)(?::\d+:\d+)?", name)
            if size is not None and isinstance(test, dict):
                yield int(seed) if str(seed).isdecimal() else None, size[1], test
