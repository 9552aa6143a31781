"""What is trained for the paper's tables and figures, as data: a row a model.

    >>> MODELS["sums-recall-a1"].recipe().alpha
    1.0
    >>> Unit("sums-recall-a1", seed=0).name
    'sums-recall-a1-s0'

A model is a network, a recipe and what is tested on it afterwards; with a seed it is a unit, which
is trained and tested in one go and leaves one record. Grids of width and depth, which the paper
gives only as pictures, are of our choice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from iterant import registry
from iterant.tasks.protocol import Size
from iterant.training.recipe import Recipe


@dataclass(frozen=True)
class Trial:
    """A test set: problems of one size, and how long they are thought about."""

    size: Size
    count: int
    steps: int

    @property
    def name(self) -> str:
        """What records call it: ``512``, or ``600000:700000``."""
        return ":".join(map(str, self.size)) if isinstance(self.size, tuple) else str(self.size)

    def thinned(self, share: float) -> Trial:
        """A share of the problems, at least one."""
        return replace(self, count=max(1, round(share * self.count)))


@dataclass(frozen=True)
class Look:
    """A study of `iterant.analysis`; ``after`` moves its intervention from its usual moment."""

    study: str
    after: int | None = None
    seeds: int | None = None
    """Only the first so many seeds are studied; None: all of them"""

    @property
    def name(self) -> str:
        """What records call it: ``zeros``, ``zeros after 50``."""
        return self.study if self.after is None else f"{self.study} after {self.after}"

    def covers(self, seed: int) -> bool:
        """Whether this seed is studied."""
        return self.seeds is None or seed < self.seeds


@dataclass(frozen=True)
class Model:
    """A row of a table: what is trained, and what is tested on it."""

    key: str
    task: str
    net: str
    """"": the recipe's own"""
    label: str
    """What tables call it"""
    alpha: float | None = None
    changes: Mapping[str, Any] = field(default_factory=dict)
    """Fields of the recipe that differ from it"""
    word: str = "paper"
    """The recipe"""
    tests: tuple[Trial, ...] = ()
    looks: tuple[Look, ...] = ()
    look_size: Size | None = None
    seeds: int = 5
    """How many seeds are wanted"""
    confident: bool = False
    """Shown with the rule of the most confident iteration too, as the paper shows plain DT"""
    pace: float = 5.0
    """Milliseconds an update on an H200, from results/training-update-h200.json"""
    early: bool = True
    """Whether strings usually validate perfectly long before the last epoch"""
    half: bool = True
    """Whether it is trained in half precision where a campaign is; our recipes have their own"""

    def recipe(self, **changes: Any) -> Recipe:
        """The whole recipe; ``changes`` come last."""
        made = registry.recipe(self.word, self.task, self.net or None)
        own = {} if self.alpha is None else {"alpha": self.alpha}
        return made.changed(**{**own, **self.changes, **changes})


@dataclass(frozen=True)
class Unit:
    """One training run: a model and a seed."""

    model: str
    seed: int

    @property
    def name(self) -> str:
        """Of its record and its run folder."""
        return f"{self.model}-s{self.seed}"


_STRINGS = (Trial(24, 1000, 100), Trial(32, 1000, 100), Trial(48, 1000, 300), Trial(512, 200, 500))
_LONG = _STRINGS[-1:]
_SUMS_LOOKS = (
    Look("clean"), Look("noise"), Look("zeros"), Look("swap"), Look("convergence"),
    Look("bit-flip", seeds=3),
)  # fmt: skip
_IMAGES = (Trial(9, 1000, 100), Trial(13, 1000, 300), Trial(33, 100, 600), Trial(59, 100, 1000))
_MAZE_LOOKS = (
    Look("clean"), Look("noise"), Look("zeros"), Look("zeros", after=50), Look("swap"),
    Look("move-end"), Look("convergence"), Look("near-misses"),
)  # fmt: skip
_RANGES = ((600_000, 700_000), (700_000, 800_000), (1_000_000, 1_100_000))
_PUZZLES = tuple(Trial(size, 10_000, 100) for size in _RANGES)
_PATIENT = (*_IMAGES[:-1], Trial(59, 100, 1500))
"""For a rule that looks one square far: an iteration a square of the longest way. Larger ones are
judged without curves, by ``scripts/every-seed``."""


OURS = "best"
"""The recipe of our own."""

_PERFECT = 10
"""Epochs by which most runs on prefix sums have validated perfectly."""


def _sums() -> Iterator[Model]:
    rows = [("dt", "DT", 0.0, 7.3), ("dt", "DT", 1.0, 4.0), ("dt-recall", "DT-Recall", 0.0, 7.3),
            ("dt-recall", "DT-Recall", 1.0, 4.0)]  # fmt: skip
    for net, label, alpha, pace in rows:
        short = net.removeprefix("dt-")
        # Plain DT with alpha 1 trains at 1e-4 in the authors' code; with alpha 0 as the others.
        own = {"rate": 1e-3} if (net, alpha) == ("dt", 0.0) else {}
        yield Model(f"sums-{short}-a{alpha:g}", "prefix-sums", net, label, alpha, own,
                    tests=_STRINGS, looks=_SUMS_LOOKS, look_size=48,
                    confident=(net, alpha) == ("dt", 0.0), pace=pace)  # fmt: skip
    # Its validation is never perfect: the whole schedule, in 450 s of a card shared by seven.
    yield Model("sums-ff", "prefix-sums", "ff", "FF", 0.0, tests=_STRINGS, pace=6.0, early=False)
    for width in (50, 100, 200, 300):
        yield Model(f"sums-recall-a1-w{width}", "prefix-sums", "dt-recall", f"width {width}", 1.0,
                    {"width": width}, tests=_LONG, seeds=3, pace=3.0)  # fmt: skip
    for depth in (10, 20, 40):
        yield Model(f"sums-recall-a1-m{depth}", "prefix-sums", "dt-recall", f"m = {depth}", 1.0,
                    {"iterations": depth}, tests=_LONG, seeds=3, pace=0.14 * depth)  # fmt: skip
    for alpha in (0.25, 0.5, 0.75):
        yield Model(f"sums-recall-a{alpha:g}", "prefix-sums", "dt-recall", "DT-Recall", alpha,
                    tests=_LONG, seeds=3, pace=9.5)  # fmt: skip
    # A loss after every iteration leaves alpha nothing to weigh.
    for key, label, objective, weight, pace in [
        ("n0", "n = 0", "progressive-n0", 1.0, 4.4),
        ("run-time", "run-time-weighted", "run-time-weighted", None, 8),
    ]:
        yield Model(f"sums-{key}", "prefix-sums", "dt-recall", f"DT-Recall, {label}", weight,
                    {"objective": objective}, tests=_LONG, seeds=3, pace=pace)  # fmt: skip


def _mazes() -> Iterator[Model]:
    rows = [("dt", 0.0, 10.0), ("dt", 0.01, 13.1), ("dt-recall", 0.0, 10.0),
            ("dt-recall", 0.01, 13.1)]  # fmt: skip
    for net, alpha, pace in rows:
        label = {"dt": "DT", "dt-recall": "DT-Recall"}[net]
        short = net.removeprefix("dt-")
        yield Model(f"mazes-{short}-a{alpha:g}", "mazes", net, label, alpha, tests=_IMAGES,
                    looks=_MAZE_LOOKS, look_size=13, confident=(net, alpha) == ("dt", 0.0), seeds=3,
                    pace=pace)  # fmt: skip
    yield Model("mazes-ff", "mazes", "ff", "FF", 0.0, tests=_IMAGES, seeds=1, pace=9.4)
    for alpha in (0.1, 0.5, 1.0):
        yield Model(f"mazes-recall-a{alpha:g}", "mazes", "dt-recall", "DT-Recall", alpha,
                    tests=_IMAGES[2:], seeds=1, pace=13.1)  # fmt: skip
    yield Model("mazes-run-time", "mazes", "dt-recall", "DT-Recall, run-time-weighted", None,
                {"objective": "run-time-weighted"}, tests=_IMAGES[2:], seeds=1,
                pace=12.0)  # fmt: skip


def _chess() -> Iterator[Model]:
    rows = [("dt", "DT", 0.0), ("dt", "DT", 0.5), ("dt-recall", "DT-Recall", 0.0),
            ("dt-recall", "DT-Recall", 0.5)]  # fmt: skip
    for net, label, alpha in rows:
        short = net.removeprefix("dt-")
        yield Model(f"chess-{short}-a{alpha:g}", "chess", net, label, alpha, tests=_PUZZLES,
                    confident=(net, alpha) == ("dt", 0.0), seeds=1, pace=90.0)  # fmt: skip
    yield Model("chess-ff", "chess", "ff", "FF", 0.0, tests=_PUZZLES, seeds=1, pace=80.0)


def _ours() -> Iterator[Model]:
    # A rule that looks one position far needs an iteration a position, and some more.
    strings = (*_STRINGS[:-1], Trial(512, 200, 700))
    yield Model("sums-ours", "prefix-sums", "", "ours", word=OURS, half=False, tests=strings,
                looks=(*_SUMS_LOOKS[:-1], Look("bit-flip", seeds=1)), look_size=48,
                pace=4.0)  # fmt: skip
    yield Model("mazes-ours", "mazes", "", "ours", word=OURS, half=False, tests=_PATIENT,
                looks=_MAZE_LOOKS, look_size=13, seeds=3, pace=4.0)  # fmt: skip
    yield Model("chess-ours", "chess", "", "ours", word=OURS, half=False, tests=_PUZZLES, seeds=1,
                pace=6.0)  # fmt: skip


MODELS: dict[str, Model] = {
    model.key: model for group in (_sums, _mazes, _chess, _ours) for model in group()
}
"""All of them, by key."""


def units(models: Iterator[str] | list[str] | tuple[str, ...], seeds: range) -> list[Unit]:
    """Units in the order in which they are worth most: a seed of every model, then the next."""
    keys = list(models)
    return [Unit(key, seed) for seed in seeds for key in keys]


def usual_seconds(model: Model) -> float:
    """About how long a seed takes on an H200, tests included, if it fits as such models do.

    Prefix sums usually validate perfectly after a few epochs, which ends their run; the whole
    schedule is the upper end, and what feed-forward networks take.
    """
    made = model.recipe()
    task = registry.task(model.task)
    held = made.validation * (made.count or task.spec.train_count)
    per_epoch = ((made.count or task.spec.train_count) - held) / made.batch
    early = task.spec.dims == 1 and model.early
    epochs = min(made.epochs, _PERFECT) if early else made.epochs
    return per_epoch * epochs * model.pace / 1000 + (10 if task.spec.dims == 1 else 40)
