"""What a sweep is made of: settings multiplied out into runs, and the tests that each one takes.

    >>> plan = planned("widths", task="prefix-sums", seeds="0-4", grid={"width": [32, 64]},
    ...                tests=[{"size": 512, "count": 100, "max_steps": 300}])
    >>> len(plan.runs), plan.runs[0].name
    (10, 'prefix-sums-quick-width32-s0')

The same words in a file are what ``iterant sweep FILE.toml`` reads; `read_plan` shows them all.
Everything is tried out before anything is written: a wrong word is refused here, not by run 900.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from iterant import names
from iterant.errors import IterantError, UsageError
from iterant.runs.files import PathLike, read_bytes, shown
from iterant.sweeps.points import (
    MOST_RUNS,
    WORDS,
    Fields,
    check_networks,
    checked,
    label,
    listed,
    multiplied,
    tests_told,
)
from iterant.tasks.protocol import Size
from iterant.training.seeds import check_seeds, parse_seeds

_LARGEST_FILE = 1 << 20


@dataclass(frozen=True)
class Exam:
    """Fresh problems that every finished run is judged on."""

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
    tests: tuple[Exam, ...] = ()
    data: str | None = None

    def tests_of(self, run: PlannedRun) -> tuple[Exam, ...]:
        """The tests that a run takes."""
        return tuple(test for test in self.tests if test.task in (None, run.task))

    def described(self) -> dict[str, Any]:
        """Everything, as JSON holds it."""
        return asdict(self)

    @classmethod
    def of(cls, told: Mapping[str, Any]) -> Plan:
        """The plan that `described` told of."""
        return cls(
            told["name"],
            tuple(PlannedRun(**run) for run in told["runs"]),
            tuple(Exam(**test) for test in told["tests"]),
            told["data"],
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
        told = tomllib.loads(read_bytes(path, _LARGEST_FILE).decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        cause = str(error) or "it is nested too deeply"
        raise UsageError(f"{shown(path)} is not a TOML file: {cause}") from error
    told.setdefault("name", re.sub(r"[^\w.-]+", "-", path.stem).strip("-.") or "sweep")
    if seeds is not None:
        told["seeds"] = seeds
    known = ("name", "task", "recipe", "seeds", "fields", "grid", "list", "tests", "data")
    for word in told:
        if word not in known:
            raise UsageError(f"{shown(path)}: {names.unknown('setting', word, known)}")
    try:
        name = told.pop("name")
        return planned(name, entries=told.pop("list", ()), **told)
    except IterantError as error:
        raise UsageError(f"{shown(path)}: {error}") from error


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
    made = {word: names.task(word, **({"data": data} if data else {})) for word in words}
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
    return Plan(name, tuple(runs), tuple(Exam(**test) for test in tests_told(tests, made)), data)
