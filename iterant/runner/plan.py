"""The runs and tests of a sweep: settings multiplied out, from a TOML file or from Python.

    >>> plan = planned("widths", task="mazes", grid={"width": [32, 64]})
    >>> [run.name for run in plan.runs]
    ['mazes-quick-width32-s0', 'mazes-quick-width64-s0']

`read_plan` shows all settings of a file. Everything is checked before anything is written, networks
included: a wrong setting is an error here, not in run 900.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from iterant import registry
from iterant.errors import IterantError, UsageError
from iterant.io.files import PathLike, quoted, read_bytes
from iterant.tasks.protocol import Size, Task
from iterant.tasks.rng import check_seed
from iterant.training.multi_seed import check_seeds, parse_seeds
from iterant.training.recipe import Recipe
from iterant.training.run import recipe_for
from iterant.training.trainer import build_network

Fields = dict[str, Any]

MOST_RUNS = 100_000
"""More runs in one sweep are taken for a mistake."""

WORDS = ("task", "recipe")
"""Settings of a point that are no fields of a recipe."""

_LONGEST_NAME = 80


def multiplied(
    task: Any, recipe: Any, fields: Any, grid: Any, entries: Any
) -> tuple[list[Fields], list[str]]:
    """Every combination of the grid with every entry of the list, and the settings that vary.

    An entry overrides the grid, and the grid overrides the fields.
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
    # What the fields or all entries set is not multiplied by the general setting.
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
    """The values of a setting that varies."""
    if not isinstance(values, Sequence) or isinstance(values, str) or not values:
        raise UsageError(f"{word} must be a list of one or more values, got {values!r}")
    return list(values)


def _check_word(kind: str, value: Any) -> None:
    if value is None:
        raise UsageError(f"which {kind}? give one of: {', '.join(registry.known(kind))}")
    if not isinstance(value, str):
        raise UsageError(f"{kind} must be a word, got {value!r}")


def checked(point: Fields, task: Task) -> Fields:
    """The point with its values as a recipe takes them; checks that it does."""
    # TOML has no None.
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
    """A name for a point: readable, valid for a folder, unchanged when values are added later."""
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
    """Build a network of each kind once: one that cannot be built is an error now."""
    kinds = {(task, str(changes.get("net"))): (recipe, changes) for task, recipe, changes in runs}
    for (word, _), (recipe, changes) in kinds.items():
        task = tasks[word]
        build_network(recipe_of(recipe, changes, task), task.spec, 0)


def _test_settings(tests: Any, tasks: Mapping[str, Task]) -> Iterator[Fields]:
    """The settings of each test, lists in them multiplied out."""
    if not isinstance(tests, Sequence) or isinstance(tests, str):
        raise UsageError(f"tests must be tables, each written [[tests]], got {tests!r}")
    known = ("task", "size", "count", "seed", "max_steps")
    for test in tests:
        if not isinstance(test, Mapping):
            raise UsageError(f"a test must be a table with size, count and so on, got {test!r}")
        for word in test:
            if word not in known:
                raise UsageError(registry.unknown_name("setting of a test", word, known))
        each = {
            word: listed(word, value) if isinstance(value, list) else [value]
            for word, value in test.items()
        }
        for values in itertools.product(*each.values()):
            yield _test(dict(zip(each, values, strict=True)), tasks)


def _test(settings: Fields, tasks: Mapping[str, Task]) -> Fields:
    """One test, checked by the tasks that it is for."""
    wanted = settings.get("task")
    if wanted is not None and wanted not in list(tasks):
        raise UsageError(f"a test is for task {wanted!r}, and no run is; leave it out")
    for word, least in (("count", 1), ("max_steps", 1)):
        value = settings.get(word, least)
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise UsageError(
                f"{word} of a test must be a whole number from {least} on, got {value!r}"
            )
    check_seed(settings.get("seed", 0))
    size = settings.get("size")
    if size is None:
        return settings
    for word, task in tasks.items():
        if wanted in (None, word):
            settings = {**settings, "size": task.parse_size(size) if isinstance(size, str)
                        else task.check_size(size)}  # fmt: skip
    return settings


_LARGEST_FILE = 1 << 20


@dataclass(frozen=True)
class TestSpec:
    """Problems that every finished run is tested on."""

    __test__ = False  # not for pytest
    task: str | None = None
    """None: every run's own"""
    size: Size | None = None
    """None: the training size"""
    count: int = 1000
    seed: int = 1
    max_steps: int | None = None

    def __post_init__(self) -> None:
        """A range comes back from JSON as a list."""
        if isinstance(self.size, list):
            object.__setattr__(self, "size", tuple(self.size))

    @property
    def key(self) -> str:
        """What tells it from other tests: ``size 512, 100 problems of seed 1, 300 iterations``."""
        size = "the training size" if self.size is None else f"size {self.size}"
        steps = "" if self.max_steps is None else f", {self.max_steps} iterations"
        return f"{size}, {self.count} problems of seed {self.seed}{steps}"


@dataclass(frozen=True)
class PlannedRun:
    """One run of a sweep: a point and a seed."""

    name: str
    task: str
    recipe: str
    seed: int
    changes: Fields = field(default_factory=dict)
    """Fields of the recipe that are changed"""
    varied: Fields = field(default_factory=dict)
    """Those of the settings in which points differ"""

    @property
    def point(self) -> str:
        """What the seeds of a point share: the name without the seed."""
        return self.name.rpartition("-s")[0]


@dataclass(frozen=True)
class Plan:
    """All runs of a sweep, and what they are tested on."""

    name: str
    runs: tuple[PlannedRun, ...]
    tests: tuple[TestSpec, ...] = ()
    data: str | None = None

    def tests_of(self, run: PlannedRun) -> tuple[TestSpec, ...]:
        """The tests that a run takes."""
        return tuple(test for test in self.tests if test.task in (None, run.task))

    def described(self) -> dict[str, Any]:
        """Everything, as JSON holds it."""
        return asdict(self)

    @classmethod
    def of(cls, described: Mapping[str, Any]) -> Plan:
        """The plan that `described` describes."""
        return cls(
            described["name"],
            tuple(PlannedRun(**run) for run in described["runs"]),
            tuple(TestSpec(**test) for test in described["tests"]),
            described["data"],
        )


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
    for word in settings:
        if word not in known:
            raise UsageError(f"{quoted(path)}: {registry.unknown_name('setting', word, known)}")
    try:
        name = settings.pop("name")
        return planned(name, entries=settings.pop("list", ()), **settings)
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
    if data is not None and not isinstance(data, str):
        raise UsageError(f"data must be the path of a folder or file, got {data!r}")
    chosen = parse_seeds(seeds) if isinstance(seeds, str) else check_seeds(listed("seeds", seeds))
    points, axes = multiplied(task, recipe, fields or {}, grid or {}, entries)
    if len(points) * len(chosen) > MOST_RUNS:
        raise UsageError(
            f"{len(points):,} points with {len(chosen)} seeds are more than {MOST_RUNS:,} runs; "
            "sweep over less"
        )
    words = dict.fromkeys(point["task"] for point in points)
    made = {word: registry.task(word, **({"data": data} if data else {})) for word in words}
    seen: set[str] = set()
    runs: list[PlannedRun] = []
    for point in points:
        one = checked(point, made[point["task"]])
        title = label(one, axes)
        if title in seen:
            raise UsageError(f"the point {title} stands there twice; leave one of them out")
        seen.add(title)
        changes = {key: value for key, value in one.items() if key not in WORDS}
        varied = {key: one[key] for key in axes if key in one}
        runs += [
            PlannedRun(f"{title}-s{seed}", one["task"], one["recipe"], seed, changes, varied)
            for seed in chosen
        ]
    check_networks([(run.task, run.recipe, run.changes) for run in runs], made)
    return Plan(
        name, tuple(runs), tuple(TestSpec(**test) for test in _test_settings(tests, made)), data
    )
