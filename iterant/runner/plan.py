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
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from iterant import registry
from iterant.errors import IterantError, UsageError
from iterant.io.files import PathLike, quoted, read_bytes
from iterant.rng import check_seed
from iterant.tasks.protocol import Size, Task
from iterant.training.recipe import RECIPES, Recipe
from iterant.training.run import recipe_for
from iterant.training.trainer import build_network

Fields = dict[str, Any]

_MOST_RUNS = 100_000
_MOST_SEEDS = 1000
_LONGEST_NAME = 80
_LARGEST_FILE = 1 << 20


@dataclass(frozen=True)
class TestSpec:
    """Problems that every finished run is tested on."""

    __test__ = False  # not for pytest
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
    task: str
    recipe: str
    seed: int
    changes: Fields = field(default_factory=dict)
    """Fields of the recipe that are changed"""
    varied: Fields = field(default_factory=dict)
    """Its values of the settings in which points differ"""

    @property
    def point(self) -> str:
        """The name without the seed: the same for all seeds of a point."""
        return self.name.rpartition("-s")[0]


@dataclass(frozen=True)
class Plan:
    """All runs of a sweep, their tests, and the job that each run executes."""

    name: str
    runs: tuple[PlannedRun, ...]
    tests: tuple[TestSpec, ...] = ()
    data: str | None = None
    job: str | None = None
    """``module:function`` that trains and measures a run (see `iterant.runner.worker.Job`); None:
    train it and take its tests"""
    options: Fields = field(default_factory=dict)
    """For that function"""
    beside: bool = False
    """Run folders lie beside the sweep's folder, not in it"""

    def tests_of(self, run: PlannedRun) -> tuple[TestSpec, ...]:
        """The tests that a run takes."""
        return tuple(test for test in self.tests if test.task in (None, run.task))

    def described(self) -> dict[str, Any]:
        """Everything, as JSON holds it."""
        optional = {"job", "options", "beside"}
        return {key: value for key, value in asdict(self).items() if value or key not in optional}

    @classmethod
    def of(cls, described: Mapping[str, Any]) -> Plan:
        """The plan that `described` describes."""
        return cls(
            described["name"],
            tuple(PlannedRun(**run) for run in described["runs"]),
            tuple(TestSpec(**test) for test in described["tests"]),
            described["data"],
            described.get("job"),
            described.get("options", {}),
            described.get("beside", False),
        )


def parse_seeds(text: str) -> list[int]:
    """Seeds from text: ``0-7``, ``0,2,5``, ``0-3,8``."""
    seeds: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*([0-9]+)(?:\s*-\s*([0-9]+))?\s*", part)
        low, high = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if not 0 <= high - low < _MOST_SEEDS:
            raise UsageError(
                f"seeds are written like 0-7 or 0,2,5, at most {_MOST_SEEDS} of them, got {text!r}"
            )
        seeds += range(low, high + 1)
    return check_seeds(seeds)


def check_seeds(seeds: Sequence[int]) -> list[int]:
    """The seeds, if there is at least one, none is negative and all differ."""
    for seed in seeds:
        check_seed(seed)
    if not seeds or len(set(seeds)) < len(seeds):
        raise UsageError(f"give one or more different seeds, like 0-7 or 0,2,5, got {list(seeds)}")
    return list(seeds)


def read_plan(path: PathLike, seeds: str | Sequence[int] | None = None) -> Plan:
    """The plan in a TOML file; ``seeds`` replace those that it names.

    ::

        task = "prefix-sums"          # or a list
        recipe = "quick"              # or a list
        seeds = "0-4"                 # or a list
        name = "widths"               # of the result; without it, the file's
        data = "puzzles/"             # where the task finds its problems, if it needs that

        [fields]                      # the same in every run
        epochs = 4

        [grid]                        # every combination of these
        width = [32, 64]
        alpha = [0.0, 0.5, 1.0]

        [[list]]                      # each of these with every combination
        net = "dt-recall"
        [[list]]
        net = "dt"
        rate = 1e-4

        [[tests]]                     # a list in size, count, seed or max_steps: one test each
        size = [64, 512]
        count = 100
        max_steps = 300
    """
    path = Path(path)
    try:
        settings = tomllib.loads(read_bytes(path, _LARGEST_FILE).decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        cause = str(error) or "it is nested too deeply"
        raise UsageError(f"{quoted(path)} is not a TOML file: {cause}") from error
    settings.setdefault("name", re.sub(r"[^\w.-]+", "-", path.stem).strip("-.") or "sweep")
    if seeds is not None:
        settings["seeds"] = seeds
    known = ("name", "task", "recipe", "seeds", "fields", "grid", "list", "tests", "data")
    try:
        _check_known("setting", settings, known)
        return planned(settings.pop("name"), entries=settings.pop("list", ()), **settings)
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
) -> Plan:
    """A plan from its settings; `read_plan` says what they mean (``entries`` is its list)."""
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9][\w.-]*", name):
        raise UsageError(f"{name!r} cannot name a sweep; use letters, digits, -, _ and .")
    if not isinstance(data, str | None):
        raise UsageError(f"data must be the path of a folder or file, got {data!r}")
    seed_list = (
        parse_seeds(seeds) if isinstance(seeds, str) else check_seeds(_values("seeds", seeds))
    )
    points, varied = _points(task, recipe, fields or {}, grid or {}, entries, len(seed_list))
    tasks = {
        word: registry.task(word, **({"data": data} if data else {}))
        for word in dict.fromkeys(point["task"] for point in points)
    }
    runs: dict[str, PlannedRun] = {}
    nets: set[tuple[str, Any]] = set()
    for point in points:
        task_name, task_object = point["task"], tasks[point["task"]]
        if isinstance(point.get("size"), str):
            point["size"] = task_object.parse_size(point["size"])
        changes = {key: point[key] for key in point if key not in ("task", "recipe")}
        full_recipe = recipe_of(point["recipe"], changes, task_object)
        task_object.check_size(full_recipe.size)
        if (task_name, full_recipe.net) not in nets:
            # Build one network of each kind now, so that errors come before the first run.
            build_network(full_recipe, task_object.spec, 0)
            nets.add((task_name, full_recipe.net))
        point_name = _point_name(point, varied)
        if f"{point_name}-s{seed_list[0]}" in runs:
            raise UsageError(f"the point {point_name} appears twice; remove one of them")
        for seed in seed_list:
            run_name = f"{point_name}-s{seed}"
            values = {key: point[key] for key in varied if key in point}
            runs[run_name] = PlannedRun(run_name, task_name, point["recipe"], seed, changes, values)
    return Plan(name, tuple(runs.values()), _tests(tests, tasks), data)


def recipe_of(word: str, changes: Mapping[str, Any], task: Task) -> Recipe:
    """The recipe of a run: of that name, for its network, with its fields changed."""
    net = changes.get("net")
    if not isinstance(net, str | None):
        raise UsageError(f"net must be a word, got {net!r}")
    return recipe_for(task, word, **changes)


def _points(
    task: Any, recipe: Any, fields: Any, grid: Any, entries: Any, seeds: int
) -> tuple[list[Fields], list[str]]:
    """Every combination of the grid with every entry, and the settings that vary.

    An entry overrides the grid, and the grid overrides the fields.
    """
    for word, value in (("fields", fields), ("grid", grid)):
        if not isinstance(value, Mapping):
            raise UsageError(f"{word} must be a table of fields, got {value!r}")
    _check_tables("list", entries)
    axes: dict[str, Any] = {}
    for word, value in (("task", task), ("recipe", recipe)):
        # A setting in the fields or in all entries replaces the one at the top of the file.
        set_there = word in fields or (entries and all(word in entry for entry in entries))
        if value is not None and not set_there:
            axes[word] = value if isinstance(value, list | tuple) else [value]
    axes |= grid
    axes = {word: _values(word, values) for word, values in axes.items()}
    count = math.prod(map(len, axes.values())) * max(1, len(entries)) * seeds
    if count > _MOST_RUNS:
        raise UsageError(f"{count:,} runs are more than {_MOST_RUNS:,}; sweep over less")
    points = []
    for values in itertools.product(*axes.values()):
        for entry in entries or [{}]:
            point = {**fields, **dict(zip(axes, values, strict=True)), **entry}
            for word in ("task", "recipe"):
                if not isinstance(point.get(word), str):
                    words = ", ".join(registry.known("task") if word == "task" else RECIPES)
                    raise UsageError(f"{word} must be one of: {words}; got {point.get(word)!r}")
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


def _tests(tests: Any, tasks: Mapping[str, Task]) -> tuple[TestSpec, ...]:
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
            specs.append(TestSpec(**settings))
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
