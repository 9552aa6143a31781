"""What a table or a figure consists of: rows, panels, and where its numbers come from.

>>> Row("sums-recall-a1", Peaks("512"), Value(97.12, 1.88, 237))
>>> Counted("mazes-ours", "201", seeds=8)
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from iterant.experiments.measures import Measure
from iterant.experiments.models import MODELS, Model
from iterant.experiments.statistics import Value


@dataclass(frozen=True)
class Row:
    """One line of a table."""

    model: str
    measure: Measure
    paper: Value | None = None
    said: str = ""
    """What the paper has before its number: mean iterations to solution"""
    name: str = ""
    """What it is called instead of the model's label: "m = 30" in a grid of m"""


@dataclass(frozen=True)
class Counted:
    """A line of a table from results without curves (see counts.py), one a test."""

    model: str
    size: str
    seeds: int = 0
    """How many are wanted; 0: shown where there are any, beside what records say"""
    problems: int = 0
    """Of a test, where one is wanted"""
    iterations: int = 0
    """Until its first look"""
    takes: float = 0.0
    """Seconds of such a test: on an H200, of local rules on a CPU"""
    paper: Value | None = None
    said: str = ""
    """What the paper has where it has no number"""


@dataclass(frozen=True)
class Panel:
    """One panel of a figure."""

    title: str
    measure: Measure
    models: tuple[str, ...]
    grid: str = ""
    """Against this field of the recipe instead of iterations"""
    names: tuple[str, ...] = ()
    """What its lines are called, and coloured in turn, where they are one model made differently"""


@dataclass(frozen=True)
class Experiment:
    """A table or a figure."""

    name: str
    title: str
    place: str
    """In the paper"""
    rows: tuple[Row, ...] = ()
    panels: tuple[Panel, ...] = ()
    note: str = ""
    counted: tuple[Counted, ...] = ()
    see: tuple[str, ...] = ()
    """Results of single runs that bear on it"""

    @property
    def anchor(self) -> str:
        """Of its heading in RESULTS.md."""
        return re.sub(r"[^\w\- ]", "", self.title.lower()).replace(" ", "-")

    @property
    def models(self) -> tuple[Model, ...]:
        """What must be trained and recorded for it."""
        keys = [row.model for row in self.rows] + [m for p in self.panels for m in p.models]
        return tuple(MODELS[key] for key in dict.fromkeys(keys))

    @property
    def tasks(self) -> tuple[str, ...]:
        """What its models do, those of other results among them."""
        counted = [MODELS[row.model].task for row in self.counted]
        return tuple(dict.fromkeys([*(model.task for model in self.models), *counted]))
