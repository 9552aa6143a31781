"""The results of `analyze` as tables, files, pictures and a page.

>>> report.table()                                # one row per model, one column per intervention
>>> report.of("swap", "m0").recovered
>>> report.save("analysis")
PosixPath('analysis/index.html')
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from iterant.analysis.errors_by_kind import NearMisses
from iterant.analysis.recovery import Recovery
from iterant.analysis.studies import STUDIES, Result, Subject, shared_regime
from iterant.draw.figure import figure_png, save_png
from iterant.draw.html import Picture, Section, fragment, page
from iterant.draw.plots import Line, Plot, panels_figure
from iterant.errors import UsageError
from iterant.formatting import counted
from iterant.io import write_atomic, write_result
from iterant.io.files import PathLike, make_folder
from iterant.tasks.protocol import Size


@dataclass(frozen=True)
class Outcome:
    """The results of one study on one network."""

    subject: Subject
    what: str
    results: tuple[Result, ...]


@dataclass(frozen=True)
class Skipped:
    """A study that is not possible on a network."""

    label: str
    what: str
    why: str


@dataclass(frozen=True)
class Report:
    """The results of one call of `analyze`.

    >>> report = iterant.analyze(["runs/m0"], what=["noise", "swap"])
    >>> report.table()
    >>> report.of("noise").peak
    >>> report.save("analysis")
    """

    subjects: tuple[Subject, ...]
    outcomes: tuple[Outcome, ...]
    skipped: tuple[Skipped, ...]
    task: str
    size: Size
    count: int
    seed: int

    def __repr__(self) -> str:
        """Studies, networks and problems in one line."""
        studies = ", ".join(self.studies)
        labels = ", ".join(subject.label for subject in self.subjects)
        problems = counted(self.count, "problem")
        return f"Report({studies} of {labels}: {problems} of {self.task}, size {self.size})"

    def __str__(self) -> str:
        """The table of interventions, then the tables of the other studies."""
        tables = [self.table()]
        for what in self.studies:
            tables += [] if isinstance(self.of(what), Recovery) else self.headlines(what)
        return "\n\n".join(_lines(table) for table in tables if table)

    @property
    def studies(self) -> tuple[str, ...]:
        """The names of the studies, in order."""
        return tuple(dict.fromkeys(one.what for one in self.outcomes))

    def of(self, what: str, label: str | None = None) -> Any:
        """The first result of a study on a network (None: the first network)."""
        for one in self.outcomes:
            if one.what == what and label in (None, one.subject.label):
                return one.results[0]
        on = "" if label is None else f" on {label!r}"
        raise UsageError(f"this report has no {what!r}{on}; it has: {', '.join(self.studies)}")

    def table(self) -> list[list[str]]:
        """Mean iterations to solution and peak accuracy: the head, then one row per network.

        [["model", "clean", "noise"], ["m0", "23.5 (100.0 %)", "– (0.0 %)"]]
        """
        names = [name for name in self.studies if isinstance(self.of(name), Recovery)]
        rows = [["model", *names]]
        for subject in self.subjects:
            cells = {}
            for one in self.outcomes:
                result = one.results[0]
                if one.subject is subject and isinstance(result, Recovery):
                    steps = result.mean_to_solution
                    text = "–" if steps != steps else f"{steps:.2f}"
                    cells[one.what] = f"{text} ({100 * result.peak[1]:.1f} %)"
            rows.append([subject.label, *(cells.get(name, "skipped") for name in names)])
        return rows if names else []

    def headlines(self, what: str) -> list[list[list[str]]]:
        """Tables of one study, one for each type of result: the head, then one row per network."""
        tables: dict[tuple[str, ...], list[list[str]]] = {}
        for one in self.outcomes:
            for result in one.results if one.what == what else ():
                cells = result.headline()
                head = ["model", *cells]
                rows = tables.setdefault(tuple(head), [head])
                rows.append([one.subject.label, *cells.values()])
        return list(tables.values())

    def figures(self, what: str) -> dict[str, Any]:
        """All numbers of a study, as JSON."""
        return {
            "study": what,
            "about": STUDIES[what].about,
            "task": self.task,
            "size": self.size,
            "count": self.count,
            "models": {
                one.subject.label: {
                    "model": one.subject.model,
                    "alpha": one.subject.alpha,
                    "training regime": one.subject.regime,
                    "findings": [result.figures() for result in one.results],
                }
                for one in self.outcomes
                if one.what == what
            },
            "skipped": {s.label: s.why for s in self.skipped if s.what == what},
        }

    def pictures(self, what: str) -> list[Picture]:
        """The plots of a study, each with one line per network."""
        lines: dict[Plot, list[Line]] = {}
        models = list(dict.fromkeys(s.model or s.label for s in self.subjects))
        alphas = list(dict.fromkeys(s.alpha for s in self.subjects))
        for one in self.outcomes:
            subject = one.subject
            for result in one.results if one.what == what else ():
                for plot, trace in result.plots():
                    line = Line(
                        trace,
                        subject.legend,
                        colour=models.index(subject.model or subject.label),
                        stroke=alphas.index(subject.alpha),
                    )
                    lines.setdefault(plot, []).append(line)
        regime = shared_regime(self.subjects)
        return [
            Picture(
                name=_file_name(plot.name),
                png=figure_png(panels_figure([(plot, group)], regime=regime)),
                text=f"{plot.name}: {plot.y_label} by {plot.x_label}",
            )
            for plot, group in lines.items()
        ]

    def sections(self) -> list[Section]:
        """The page: the paper's table, then every study with its plots."""
        sections = []
        if table := self.table():
            text = "Mean iterations to solution, counted from the intervention, of the problems "
            text += "that recovered; in brackets the highest accuracy over all iterations."
            sections.append(Section("interventions", text, table))
        for what in self.studies:
            tables = self.headlines(what)
            sections.append(Section(what, STUDIES[what].about, tables[0], self.pictures(what)))
            sections += [Section(f"{what}, continued", "", more) for more in tables[1:]]
        if self.skipped:
            rows = [[one.label, one.what, one.why] for one in self.skipped]
            sections.append(Section("skipped", "", [["model", "study", "why"], *rows]))
        return sections

    def _repr_html_(self) -> str:
        """The page, for notebooks."""
        return fragment(self.sections())

    def save(self, folder: PathLike) -> Path:
        """Write one JSON file per study, the plots and ``index.html``; return its path."""
        target = make_folder(folder)
        for what in self.studies:
            write_result(what, self.figures(what), seed=self.seed, folder=target)
        sections = self.sections()
        for section in sections:
            for picture in section.pictures:
                write_atomic(target / f"{picture.name}.png", picture.png)
        problems = counted(self.count, "problem")
        note = f"{self.task}, size {self.size}, {problems}, seed {self.seed}"
        index = target / "index.html"
        write_atomic(index, page("iterant analyze", sections, note=note).encode())
        return index

    def save_failures(self, folder: PathLike) -> list[Path]:
        """Draw the failures that the study near-misses has kept, one picture each."""
        failed = [
            (one.subject.label, result.failures)
            for one in self.outcomes
            for result in one.results
            if isinstance(result, NearMisses)
        ]
        if not failed:
            raise UsageError(
                "failures are drawn by the study near-misses, which did not run; ask for it too, "
                f"or see answers: iterant solve {self.task} --count 20 --save answers.png"
            )
        target = make_folder(folder)
        return [
            save_png(failure, target / f"{_file_name(label)}-{number:03}.png")
            for label, failures in failed
            for number, failure in enumerate(failures)
        ]


def _lines(table: list[list[str]]) -> str:
    """A table as text with aligned columns."""
    widths = [max(len(row[column]) for row in table) for column in range(len(table[0]))]
    padded = (
        "  ".join(word.ljust(width) for word, width in zip(row, widths, strict=True))
        for row in table
    )
    return "\n".join(line.rstrip() for line in padded)


def _file_name(text: str) -> str:
    return re.sub(r"[^\w.-]+", "-", text).strip("-.") or "unnamed"
