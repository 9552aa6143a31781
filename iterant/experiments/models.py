"""The networks of the paper's tables and figures, as data.

    >>> MODELS["sums-recall-a1"].recipe.alpha
    1.0

A model is a network, a recipe and its tests; a model and a seed are a run, with one record. The
paper gives the grids of width and depth only as pictures; their values are our choice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from iterant.formatting import size_text
from iterant.tasks.protocol import Size
from iterant.training.recipe import Recipe
from iterant.training.recipe import recipe as named_recipe


@dataclass(frozen=True)
class SizeTest:
    """A test set: problems of one size, and the number of iterations."""

    size: Size
    count: int
    steps: int

    @property
    def name(self) -> str:
        """The key in records: ``512``, or ``600000:700000``."""
        return size_text(self.size)


@dataclass(frozen=True)
class StudySpec:
    """A study of `iterant.analysis`."""

    study: str
    after: int | None = None
    """The iteration to intervene after; None: the study's default"""
    seeds: int = 1000
    """The number of seeds that are studied, from seed 0"""

    @property
    def name(self) -> str:
        """The key in records: ``zeros``, ``zeros after 50``."""
        return self.study if self.after is None else f"{self.study} after {self.after}"

    @property
    def iteration(self) -> int | None:
        """The iteration after which it intervenes; None: it does not."""
        from iterant.analysis import STUDIES  # needs rich, which `shifts` must do without

        return STUDIES[self.study].after if self.after is None else self.after


@dataclass(frozen=True)
class Model:
    """A row of a table: what is trained, and its tests."""

    key: str
    task: str
    net: str
    """The architecture; "": the recipe's default"""
    label: str
    """Its name in tables"""
    alpha: float | None = None
    changes: Mapping[str, Any] = field(default_factory=dict)
    """Fields that differ from the named recipe"""
    recipe_name: str = "paper"
    tests: tuple[SizeTest, ...] = ()
    studies: tuple[StudySpec, ...] = ()
    study_size: Size | None = None
    seeds: int = 5
    """Planned seeds: 0, 1, …"""
    confident: bool = False
    """Also evaluate with the most confident iteration as the exit rule, as the paper does for DT"""
    shortened: str = ""
    """How its schedule is shorter than the paper's, shown with its name: ``12 of 120 epochs``; such
    a model is compared with other models, not with the paper's numbers"""
    seconds: float = 15.0
    """About how long a run and its tests take on an H200; most runs on prefix sums end after a few
    epochs, when validation is perfect"""

    @property
    def title(self) -> str:
        """``DT-Recall α = 1``; without α where the label says enough."""
        plain = self.alpha is None or self.label not in ("DT", "DT-Recall")
        return self.label if plain else f"{self.label} α = {self.alpha:g}"

    @property
    def ours(self) -> str:
        """The title of what we trained: ``DT α = 0, 12 of 120 epochs``."""
        return f"{self.title}, {self.shortened}" if self.shortened else self.title

    @property
    def fields(self) -> dict[str, Any]:
        """All fields that differ from the named recipe."""
        fields = {"net": self.net or None, "alpha": self.alpha}
        known = {name: value for name, value in fields.items() if value is not None}
        return {**known, **self.changes}

    @property
    def recipe(self) -> Recipe:
        """The model's recipe."""
        recipe = named_recipe(self.recipe_name, self.task, self.net or None)
        return recipe.changed(**self.fields)


_SUMS_TESTS = (
    SizeTest(24, 1000, 100),
    SizeTest(32, 1000, 100),
    SizeTest(48, 1000, 300),
    SizeTest(512, 200, 500),
)
_SUMS_STUDIES = (
    *map(StudySpec, ("clean", "noise", "zeros", "swap", "convergence")),
    StudySpec("bit-flip", seeds=3),
)  # fmt: skip
_MAZE_TESTS = (
    SizeTest(9, 1000, 100),
    SizeTest(13, 1000, 300),
    SizeTest(33, 100, 600),
    SizeTest(59, 100, 1000),
)
_MAZE_STUDIES = (
    *map(StudySpec, ("clean", "noise", "zeros")), StudySpec("zeros", after=50),
    *map(StudySpec, ("swap", "move-end", "convergence", "near-misses")),
)  # fmt: skip
_RANGES = ((600_000, 700_000), (700_000, 800_000), (1_000_000, 1_100_000))
_CHESS_TESTS = tuple(SizeTest(size, 10_000, 100) for size in _RANGES)


OURS = "best"
"""The name of our own recipe."""


def _paper_nets(
    group: str, task: str, alpha: float, times: tuple[float, float], **about: Any
) -> Iterator[Model]:
    """DT and DT-Recall, with α = 0 and with ``alpha``; ``times``: `Model.seconds` for the two."""
    for net, label in (("dt", "DT"), ("dt-recall", "DT-Recall")):
        for weight, seconds in zip((0.0, alpha), times, strict=True):
            key = f"{group}-{net.removeprefix('dt-')}-a{weight:g}"
            yield Model(key, task, net, label, weight, seconds=seconds,
                        confident=(net, weight) == ("dt", 0.0), **about)  # fmt: skip


def _sums() -> Iterator[Model]:
    for model in _paper_nets("sums", "prefix-sums", 1.0, (15.0, 15.0), tests=_SUMS_TESTS,
                             studies=_SUMS_STUDIES, study_size=48):  # fmt: skip
        # Plain DT with alpha 1 trains at 1e-4 in the authors' code; with alpha 0 as the others.
        yield replace(model, changes={"lr": 1e-3}) if model.key == "sums-dt-a0" else model
    # Validation is never perfect, so it takes the whole schedule.
    yield Model("sums-ff", "prefix-sums", "ff", "FF", 0.0, tests=_SUMS_TESTS, seconds=80.0)
    grid: dict[str, Any] = {"tests": _SUMS_TESTS[-1:], "seeds": 3}
    for width in (50, 100, 200, 300):
        yield Model(f"sums-recall-a1-w{width}", "prefix-sums", "dt-recall", f"width {width}", 1.0,
                    {"width": width}, **grid)  # fmt: skip
    for depth in (10, 20, 40):
        yield Model(f"sums-recall-a1-m{depth}", "prefix-sums", "dt-recall", f"m = {depth}", 1.0,
                    {"iterations": depth}, **grid)  # fmt: skip
    for alpha in (0.25, 0.5, 0.75):
        yield Model(f"sums-recall-a{alpha:g}", "prefix-sums", "dt-recall", "DT-Recall", alpha,
                    **grid)  # fmt: skip
    yield Model("sums-n0", "prefix-sums", "dt-recall", "DT-Recall, n = 0", 1.0,
                {"objective": "progressive-n0"}, **grid)  # fmt: skip
    # The loss already covers every iteration, so alpha does not apply.
    yield Model("sums-run-time", "prefix-sums", "dt-recall", "DT-Recall, run-time-weighted", None,
                {"objective": "run-time-weighted"}, **grid)  # fmt: skip


def _mazes() -> Iterator[Model]:
    yield from _paper_nets("mazes", "mazes", 0.01, (460.0, 600.0), tests=_MAZE_TESTS, seeds=3,
                           studies=_MAZE_STUDIES, study_size=13)  # fmt: skip
    yield Model("mazes-ff", "mazes", "ff", "FF", 0.0, tests=_MAZE_TESTS, seeds=1, seconds=1430.0)
    grid: dict[str, Any] = {"tests": _MAZE_TESTS[2:], "seeds": 1, "seconds": 600.0}
    for alpha in (0.1, 0.5, 1.0):
        yield Model(f"mazes-recall-a{alpha:g}", "mazes", "dt-recall", "DT-Recall", alpha, **grid)
    yield Model("mazes-run-time", "mazes", "dt-recall", "DT-Recall, run-time-weighted", None,
                {"objective": "run-time-weighted"}, **grid)  # fmt: skip


def _chess() -> Iterator[Model]:
    # The paper's 120 epochs, which take five hours per seed on an H200, and its milestones, by ten.
    rest: dict[str, Any] = {
        "tests": _CHESS_TESTS, "seeds": 1, "shortened": "12 of 120 epochs",
        "changes": {"epochs": 12, "milestones": (10, 11)},
    }  # fmt: skip
    yield from _paper_nets("chess", "chess", 0.5, (1730.0, 1730.0), **rest)
    yield Model("chess-ff", "chess", "ff", "FF", 0.0, seconds=1540.0, **rest)


def _ours() -> Iterator[Model]:
    # A local rule needs one iteration per position or per cell of the longest path, and a few more.
    sums_tests = (*_SUMS_TESTS[:-1], SizeTest(512, 200, 700))
    maze_tests = (*_MAZE_TESTS[:-1], SizeTest(59, 100, 1500))
    sums_studies = (*_SUMS_STUDIES[:-1], StudySpec("bit-flip", seeds=1))
    yield Model("sums-ours", "prefix-sums", "", "ours", recipe_name=OURS, tests=sums_tests,
                studies=sums_studies, study_size=48)  # fmt: skip
    yield Model("mazes-ours", "mazes", "", "ours", recipe_name=OURS, tests=maze_tests,
                studies=_MAZE_STUDIES, study_size=13, seeds=3, seconds=55.0)  # fmt: skip
    yield Model("chess-ours", "chess", "", "ours", recipe_name=OURS, tests=_CHESS_TESTS, seeds=1,
                seconds=3600.0)  # fmt: skip


MODELS: dict[str, Model] = {
    model.key: model for group in (_sums, _mazes, _chess, _ours) for model in group()
}
"""All models by key."""
