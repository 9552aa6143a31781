"""The results of `analyze` as tables, files, pictures and a page."""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

from iterant.draw.figure import figure_png, save_png
from iterant.draw.plots import Line, Plot, Trace, panels_figure
from iterant.errors import UsageError
from iterant.formatting import counted
from iterant.io import write_atomic, write_result
from iterant.io.files import PathLike, make_folder
from iterant.nets.protocol import Net
from iterant.solving import check_fits
from iterant.tasks.protocol import Description, Size, Task

Table = list[list[str]]
"""Rows of cells, the header first."""

_PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>iterant analyze</title>
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; }}
table {{ border-collapse: collapse; margin: 1rem 0; }}
th, td {{ text-align: left; padding: 0.25rem 0.7rem; border-bottom: 1px solid #8886; }}
img {{ max-width: 100%; }}
</style>
<h1>iterant analyze</h1>
<p>{note}</p>
{body}
"""


@dataclass(frozen=True)
class Subject:
    """A network with its task and its name in tables and pictures."""

    net: Net
    task: Task
    label: str
    """Its name in tables: that of the run"""
    model: str = ""
    """The architecture, if it is known"""
    alpha: float | None = None
    """The weight of the progressive loss in training"""
    regime: int | None = None
    """Iterations in training, which are shaded"""

    def __post_init__(self) -> None:
        check_fits(self.net, self.task)


@dataclass(frozen=True)
class Result:
    """The result of one measurement of a network."""

    figures: dict[str, Any]
    """All numbers, as JSON"""
    plots: Sequence[tuple[Plot, Trace]]
    """Axes, and the line of this network on them"""
    failures: Sequence[Description] = ()
    """The first wrong answers, of the study near-misses"""


class Skipped(NamedTuple):
    """A study that is not possible on a network."""

    label: str
    what: str
    why: str


@dataclass(frozen=True)
class Report:
    """The results of one call of `analyze`.

    >>> report.table()                            # one row per model, one column per intervention
    >>> report.of("swap", "m0").figures["recovered"]
    >>> report.save("analysis")                   # JSON, plots and a page
    """

    subjects: tuple[Subject, ...]
    results: Mapping[str, Mapping[str, tuple[Result, ...]]]
    """By the name of the study and the label of the network"""
    about: Mapping[str, str]
    """What is done, by the name of the study"""
    skipped: tuple[Skipped, ...]
    task: str
    size: Size
    count: int
    seed: int

    def __repr__(self) -> str:
        studies = ", ".join(self.studies)
        labels = ", ".join(subject.label for subject in self.subjects)
        problems = counted(self.count, "problem")
        return f"Report({studies} of {labels}: {problems} of {self.task}, size {self.size})"

    @property
    def studies(self) -> tuple[str, ...]:
        """The names of the studies, in order."""
        return tuple(self.results)

    def of(self, what: str, label: str | None = None) -> Result:
        """The first result of a study on a network (None: the first network)."""
        results = self.results.get(what, {})
        if label is None:
            label = next(iter(results), "")
        if label not in results:
            on = f" on {label!r}" if label else ""
            raise UsageError(f"this report has no {what!r}{on}; it has: {', '.join(self.studies)}")
        return results[label][0]

    def table(self) -> Table:
        """Mean iterations to solution and peak accuracy, one row per network; [] without any.

        [["model", "clean", "noise"], ["m0", "23.5 (100.0 %)", "– (0.0 %)"]]
        """
        head = [what for what in self.studies if "recovered" in self.of(what).figures]

        def cell(what: str, label: str) -> str:
            if label not in self.results[what]:
                return "skipped"
            figures = self.of(what, label).figures
            mean, peak = figures["mean iterations to solution"], figures["peak"]["accuracy"]
            return f"{'–' if math.isnan(mean) else f'{mean:.2f}'} ({100 * peak:.1f} %)"

        rows = [[s.label, *(cell(what, s.label) for what in head)] for s in self.subjects]
        return [["model", *head], *rows] if head else []

    def headlines(self, what: str) -> list[Table]:
        """Tables of one study, one for each measurement, with one column per network."""
        tables = []
        for results in zip(*self.results[what].values(), strict=True):
            columns = [_scalars(result.figures) for result in results]
            names = dict.fromkeys(name for column in columns for name in column)
            rows = [[name, *(column.get(name, "") for column in columns)] for name in names]
            tables.append([["", *self.results[what]], *rows])
        return tables

    def figures(self, what: str) -> dict[str, Any]:
        """All numbers of a study, as JSON."""
        return {
            "study": what,
            "about": self.about[what],
            "task": self.task,
            "size": self.size,
            "count": self.count,
            "models": {
                subject.label: {
                    "model": subject.model,
                    "alpha": subject.alpha,
                    "training regime": subject.regime,
                    "findings": [result.figures for result in self.results[what][subject.label]],
                }
                for subject in self.subjects
                if subject.label in self.results[what]
            },
            "skipped": {one.label: one.why for one in self.skipped if one.what == what},
        }

    def pictures(self, what: str) -> dict[str, bytes]:
        """The plots of a study as PNG files by name, each with one line per network."""
        lines: dict[Plot, list[Line]] = {}
        for number, subject in enumerate(self.subjects):
            for result in self.results[what].get(subject.label, ()):
                for plot, trace in result.plots:
                    lines.setdefault(plot, []).append(Line(trace, subject.label, number))
        regime = shared_regime(self.subjects)
        return {
            plot.name: figure_png(panels_figure([(plot, group)], regime=regime))
            for plot, group in lines.items()
        }

    def _repr_html_(self) -> str:
        """The page, for notebooks."""
        return self._html({what: self.pictures(what) for what in self.studies})

    def _html(self, pictures: Mapping[str, Mapping[str, bytes]]) -> str:
        """The paper's table, then every study with its pictures."""
        sections = []
        if table := self.table():
            about = "Mean iterations to solution, counted from the intervention, of the problems "
            about += "that recovered; in brackets the highest accuracy over all iterations."
            sections.append(_section("interventions", about, [table], {}))
        for what, about in self.about.items():
            sections.append(_section(what, about, self.headlines(what), pictures[what]))
        if self.skipped:
            table = [["model", "study", "why"], *map(list, self.skipped)]
            sections.append(_section("skipped", "", [table], {}))
        return "\n".join(sections)

    def save(self, folder: PathLike) -> Path:
        """Write one JSON file per study, the plots and ``index.html``; return its path."""
        target = make_folder(folder)
        pictures = {what: self.pictures(what) for what in self.studies}
        for what in self.studies:
            write_result(what, self.figures(what), seed=self.seed, folder=target)
            for name, png in pictures[what].items():
                write_atomic(target / f"{_file_name(name)}.png", png)
        problems = counted(self.count, "problem")
        note = escape(f"{self.task}, size {self.size}, {problems}, seed {self.seed}")
        index = target / "index.html"
        write_atomic(index, _PAGE.format(note=note, body=self._html(pictures)).encode())
        return index

    def save_failures(self, folder: PathLike) -> list[Path]:
        """Draw the failures that the study near-misses has kept, one picture each."""
        self.of("near-misses")  # refused before a folder is made
        target = make_folder(folder)
        return [
            save_png(failure, target / f"{_file_name(label)}-{number:03}.png")
            for label, (result, *_) in self.results["near-misses"].items()
            for number, failure in enumerate(result.failures)
        ]


def _section(title: str, about: str, tables: Sequence[Table], pictures: Mapping[str, bytes]) -> str:
    """HTML with all text escaped: names of runs come from users."""
    parts = [f"<h2>{escape(title)}</h2>", f"<p>{escape(about)}</p>"]
    for table in tables:
        rows = ["".join(f"<td>{escape(cell)}</td>" for cell in cells) for cells in table]
        rows[0] = rows[0].replace("td>", "th>")
        parts += ["<table>", *(f"<tr>{row}</tr>" for row in rows), "</table>"]
    for name, png in pictures.items():
        data = base64.b64encode(png).decode("ascii")
        parts.append(f'<img alt="{escape(name)}" src="data:image/png;base64,{data}">')
    return "\n".join(parts)


def shared_regime(subjects: Iterable[Subject]) -> int | None:
    """The training regime of all subjects whose regime is known; None if they differ."""
    known = {subject.regime for subject in subjects} - {None}
    return known.pop() if len(known) == 1 else None


def _file_name(name: str) -> str:
    return re.sub(r"[^\w.-]+", "-", name).strip("-.") or "unnamed"


def _scalars(figures: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """The numbers and words among the figures as text, by name; lists are left out."""
    cells: dict[str, str] = {}
    for key, value in figures.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping) and all(isinstance(each, int) for each in value.values()):
            cells[name] = ", ".join(f"{each}: {count}" for each, count in value.items())
        elif isinstance(value, Mapping):
            cells |= _scalars(value, f"{name}, ")
        elif isinstance(value, float):
            cells[name] = "–" if math.isnan(value) else f"{value:.4g}"
        elif isinstance(value, int | str):
            cells[name] = str(value)
    return cells
