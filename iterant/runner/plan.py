"""The runs of a sweep: settings multiplied out, from a TOML file or from Python.

    >>> plan = planned("widths", task="mazes", grid={"width": [32, 64]})
    >>> [run.name for run in plan.runs]
    ['mazes-quick-width32-s0', 'mazes-quick-width64-s0']

Everything is checked before anything is written, networks included: a wrong setting is an error
here, not in run 900.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from iterant import registry
from iterant.errors import IterantError, UsageError
from iterant.io.files import PathLike, quoted, read_toml
from iterant.nets.from_recipe import build_network
from iterant.rng import check_seed
from iterant.tasks.protocol import Size, Task, with_problems
from iterant.training.data import split_sizes
from iterant.training.recipe import RECIPES
from iterant.training.run import recipe_for

Fields = dict[str, Any]

_MOST_RUNS = 100_000
_MOST_SEEDS = 1000
_LONGEST_NAME = 80


@dataclass(frozen=True)
class EvaluationSpec:
    """Problems that every finished run is tested on."""

    task: str | None = None
    """None: the task of each run"""
    size: Size | None = None
    """None: the training size"""
    count: int = 1000
    seed: int = 1
    max_steps: int | None = None

    def __post_init__(self) -> None:
        """Check the numbers; a range comes back from JSON as a list."""
        for word, value in (("count", self.count), ("max_steps", self.max_steps)):
            if value is not None and (type(value) is not int or value < 1):
                raise UsageError(f"{word} of a test must be a whole number above 0, got {value!r}")
        check_seed(self.seed)
        if isinstance(self.size, list):
            object.__setattr__(self, "size", tuple(self.size))

    @property
    def key(self) -> str:
        """Its unique name: ``size 512, 100 problems of seed 1, 300 iterations``."""
        size = "the training size" if self.size is None else f"size {self.size}"
        steps = "" if self.max_steps is None else f", {self.max_steps} iterations"
        return f"{size}, {self.count} problems of seed {self.seed}{steps}"


@dataclass(frozen=True)
class PlannedRun:
    """One run of a sweep: a point of the grid, and a seed."""

    name: str
    """``POINT-sSEED``, also the name of its folder"""
    task: str
    recipe: str
    seed: int
    changes: Fields = field(default_factory=dict)
    """Fields of the recipe that are changed"""
    varied: Fields = field(default_factory=dict)
    """Values of the settings that vary in the sweep, for its tables"""

    @property
    def point(self) -> str:
        """The name without the seed: the same for all seeds of a point."""
        return self.name.rpartition("-s")[0]


@dataclass(frozen=True)
class Plan:
    """All runs of a sweep, their tests, and the job that each run executes."""

    name: str
    runs: tuple[PlannedRun, ...]
    tests: tuple[EvaluationSpec, ...] = ()
    data: str | None = None
    job: str | None = None
    """The registered name of a function of `iterant.runner.worker.Job`, which trains and measures a
    run; None: `iterant.runner.worker.train_and_evaluate`"""
    options: Fields = field(default_factory=dict)
    """``{"tensorboard": True}`` where runs write events for TensorBoard"""
    sibling_folders: bool = False
    """Run folders lie beside the sweep's folder, not in it"""

    def tests_of(self, run: PlannedRun) -> tuple[EvaluationSpec, ...]:
        return tuple(test for test in self.tests if test.task in (None, run.task))

    def described(self) -> dict[str, Any]:
        """Everything, as JSON holds it."""
        optional = {"job", "options", "sibling_folders"}
        return {key: value for key, value in asdict(self).items() if value or key not in optional}

    @classmethod
    def of(cls, described: Mapping[str, Any]) -> Plan:
        runs = tuple(PlannedRun(**run) for run in described["runs"])
        tests = tuple(EvaluationSpec(**test) for test in described["tests"])
        return cls(**{**described, "runs": runs, "tests": tests})


def parse_seeds(seeds: str | Sequence[int]) -> list[int]:
    """Different seeds, from a list or from text: ``0-7``, ``0,2,5``, ``0-3,8``."""
    numbers: list[int] = []
    for part in seeds.split(",") if isinstance(seeds, str) else ():
        match = re.fullmatch(r"\s*([0-9]{1,20})(?:\s*-\s*([0-9]{1,20}))?\s*", part)
        low, high = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if not 0 <= high - low < _MOST_SEEDS:
            raise UsageError(
                f"seeds are written like 0-7 or 0,2,5, at most {_MOST_SEEDS} of them, "
                f"got {seeds[:50]!r}"
            )
        numbers += range(low, high + 1)
    numbers = numbers or _values("seeds", seeds)
    for seed in numbers:
        check_seed(seed)
    if len(set(numbers)) < len(numbers):
        raise UsageError(f"give different seeds, like 0-7 or 0,2,5, got {numbers}")
    return numbers


def read_plan(
    path: PathLike, seeds: str | Sequence[int] | None = None, *, trust: bool = False
) -> Plan:
    """The plan in a TOML file; ``seeds`` replace those that it names.

    Its settings are the arguments of `planned`, with ``[[list]]`` for ``entries``; docs/scale.md
    shows a file. Without a name the sweep has that of the file. ``trust``: import the user-defined
    code that the file names.
    """
    path = Path(path)
    settings = read_toml(path)
    settings.setdefault("name", re.sub(r"[^\w.-]+", "-", path.stem).strip("-.") or "sweep")
    if seeds is not None:
        settings["seeds"] = seeds
    known = ("name", "task", "recipe", "seeds", "fields", "grid", "list", "tests", "data")
    try:
        _check_known("setting", settings, known)
        entries = settings.pop("list", ())
        return planned(settings.pop("name"), entries=entries, trust=trust, **settings)
    except IterantError as error:
        raise UsageError(f"{quoted(path)}: {error}") from error


def planned(
    name: str,
    *,
    task: str | Sequence[str] | None = None,
    recipe: str | Sequence[str] = "quick",
    seeds: str | Sequence[int] = (0,),
    fields: Mapping[str, Any] | None = None,
    grid: Mapping[str, Sequence[Any]] | None = None,
    entries: Sequence[Mapping[str, Any]] = (),
    tests: Sequence[Mapping[str, Any]] = (),
    data: str | None = None,
    trust: bool = True,
) -> Plan:
    """A plan from its settings.

    Args:
        name: of the result.
        task: a task, or a list of them.
        recipe: a recipe, or a list of them.
        seeds: ``0-4``, or a list.
        fields: of the recipe, the same in every run.
        grid: lists of values by field; every combination is a run.
        entries: tables of fields; each is combined with the whole grid.
        tests: tables of size, count, seed and max_steps, and task; a list gives one test each.
        data: where the task finds its problems, if it needs that.
        trust: import the user-defined code that the settings name.
    """
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9][\w.-]*", name):
        raise UsageError(f"{name!r} cannot name a sweep; use letters, digits, -, _ and .")
    if not isinstance(data, str | None):
        raise UsageError(f"data must be the path of a folder or file, got {data!r}")
    seed_list = parse_seeds(seeds)
    if trust:
        registry.allow([task, fields, grid, entries])
    points, varied = _points(task, recipe, fields or {}, grid or {}, entries, len(seed_list))
    words = dict.fromkeys(point["task"] for point in points)
    tasks = {word: registry.task(word, data=data or None) for word in words}
    runs: dict[str, PlannedRun] = {}
    nets: set[tuple[str, Any]] = set()
    for point in points:
        task_name, task_object = point["task"], tasks[point["task"]]
        if isinstance(point.get("size"), str):  # which sizes are valid depends on the kind
            kind = with_problems(task_object, point.get("problems") or "")
            point["size"] = kind.parse_size(point["size"])
        changes = {key: point[key] for key in point if key not in ("task", "recipe")}
        full_recipe = recipe_for(task_object, point["recipe"], **changes)
        split_sizes(with_problems(task_object, full_recipe.problems), full_recipe)
        if (task_name, full_recipe.net) not in nets:
            # Build one network of each kind now, so that errors come before the first run.
            build_network(full_recipe.described(), task_object.spec, 0)
            nets.add((task_name, full_recipe.net))
        point_name = _point_name(point, varied)
        if f"{point_name}-s{seed_list[0]}" in runs:
            raise UsageError(f"the point {point_name} appears twice; remove one of them")
        for seed in seed_list:
            run_name = f"{point_name}-s{seed}"
            values = {key: point[key] for key in varied if key in point}
            runs[run_name] = PlannedRun(run_name, task_name, point["recipe"], seed, changes, values)
    return Plan(name, tuple(runs.values()), _tests(tests, tasks), data)


def _points(
    task: Any, recipe: Any, fields: Any, grid: Any, entries: Any, seeds: int
) -> tuple[list[Fields], list[str]]:
    """Every combination of the grid with every entry, and the settings that vary.

    An entry overrides the grid, which overrides the fields and the task and recipe at the top.
    """
    for word, value in (("fields", fields), ("grid", grid)):
        if not isinstance(value, Mapping):
            raise UsageError(f"{word} must be a table of fields, got {value!r}")
    _check_tables("list", entries)
    words = {"task": task, "recipe": recipe}
    axes = {word: value for word, value in words.items() if isinstance(value, list | tuple)} | grid
    axes = {word: _values(word, values) for word, values in axes.items()}
    count = math.prod(map(len, axes.values())) * max(1, len(entries)) * seeds
    if count > _MOST_RUNS:
        raise UsageError(f"{count:,} runs are more than {_MOST_RUNS:,}; sweep over less")
    points = []
    for *values, entry in itertools.product(*axes.values(), entries or [{}]):
        point = {**words, **fields, **dict(zip(axes, values, strict=True)), **entry}
        for word, known in (("task", registry.known("task")), ("recipe", RECIPES)):
            if not isinstance(point[word], str):
                raise UsageError(f"{word} must be one of: {', '.join(known)}; got {point[word]!r}")
        # TOML has no null: "none" stands for None.
        points.append({key: None if value == "none" else value for key, value in point.items()})
    varied = {*grid, *(key for entry in entries for key in entry)}
    return points, sorted(varied - {"task", "recipe"})


def _point_name(point: Fields, axes: Sequence[str]) -> str:
    """Readable, valid for a folder, and unchanged when values are added later."""
    words = [point["task"], point["recipe"]]
    words += [f"{key}{point[key]}" for key in axes if key in point]
    text = "-".join(re.sub(r"[^A-Za-z0-9.+-]+", "_", word).strip("_") for word in words)
    plain = all(re.fullmatch(r"[A-Za-z0-9.+_-]+", word) and word.strip("_") for word in words)
    if plain and len(text) <= _LONGEST_NAME and text[0].isalnum():
        return text
    content = json.dumps(point, sort_keys=True, default=str)
    digest = hashlib.sha256(content.encode()).hexdigest()[:10]
    return f"{text[: _LONGEST_NAME - 11].strip('.-_+')}-{digest}".lstrip("-")


def _tests(tests: Any, tasks: Mapping[str, Task]) -> tuple[EvaluationSpec, ...]:
    """All tests, lists in their settings multiplied out, checked by the tasks they are for."""
    _check_tables("tests", tests)
    specs = []
    for test in tests:
        _check_known("setting of a test", test, ("task", "size", "count", "seed", "max_steps"))
        axes = [_values(word, value) if isinstance(value, list) else [value]
                for word, value in test.items()]  # fmt: skip
        for values in itertools.product(*axes):
            settings: Fields = dict(zip(test, values, strict=True))
            task_name, size = settings.get("task"), settings.get("size")
            if task_name is not None and task_name not in list(tasks):
                raise UsageError(f"a test is for task {task_name!r}, and no run is; leave it out")
            for word, task in tasks.items():
                if size is not None and task_name in (None, word):
                    parse = task.parse_size if isinstance(size, str) else task.check_size
                    settings["size"] = parse(size)
            specs.append(EvaluationSpec(**settings))
    return tuple(specs)


def _values(word: str, values: Any) -> list[Any]:
    if not isinstance(values, Sequence) or isinstance(values, str) or not values:
        raise UsageError(f"{word} must be a list of one or more values, got {values!r}")
    return list(values)


def _check_tables(word: str, values: Any) -> None:
    if not isinstance(values, list | tuple) or not all(isinstance(one, Mapping) for one in values):
        raise UsageError(f"{word} must be tables, each written [[{word}]], got {values!r}")


def _check_known(kind: str, words: Mapping[str, Any], known: tuple[str, ...]) -> None:
    for word in words:
        if word not in known:
            raise UsageError(registry.unknown_name(kind, word, known))
