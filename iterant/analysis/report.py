"""What the studies found, as tables, files, pictures and a page.

>>> report.table()                                # a row a model, a column an intervention
>>> report.of("swap", "m0").recovered
>>> report.save("analysis")
PosixPath('analysis/index.html')
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from iterant.analysis.errors_by_kind import NearMisses
from iterant.analysis.recovery import Recovery
from iterant.analysis.studies import STUDIES, Finding, Subject, shared_regime
from iterant.draw.figure import save_png
from iterant.draw.html import Picture, Section, fragment, write_page
from iterant.draw.plots import Line, Plot, lines_figure, png
from iterant.errors import UsageError
from iterant.formatting import counted
from iterant.io import write_atomic, write_result
from iterant.io.files import PathLike, make_folder
from iterant.tasks.protocol import Size


@dataclass(frozen=True)
class Found:
    """What one study found on one network."""

    subject: Subject
    what: str
    findings: tuple[Finding, ...]


@dataclass(frozen=True)
class Skipped:
    """A study that a network could not take part in."""

    label: str
    what: str
    why: str


@dataclass(frozen=True)
class Report:
    """Everything that one call of `analyze` found.

    >>> report = iterant.analyze(["runs/m0"], what=["noise", "swap"])
    >>> report.table()
    >>> report.of("noise").peak
    >>> report.save("analysis")
    """

    subjects: tuple[Subject, ...]
    found: tuple[Found, ...]
    skipped: tuple[Skipped, ...]
    task: str
    size: Size
    count: int
    seed: int

    def __repr__(self) -> str:
        """What was studied, in one line."""
        studied = ", ".join(self.studies)
        who = ", ".join(subject.label for subject in self.subjects)
        many = counted(self.count, "problem")
        return f"Report({studied} of {who}: {many} of {self.task}, size {self.size})"

    def __str__(self) -> str:
        """The tables, as `print` shows them."""
        tables = [self.table(), *(part for what in self.studies for part in self._beside(what))]
        return "\n\n".join(_lines(table) for table in tables if table)

    def _beside(self, what: str) -> list[list[list[str]]]:
        """The tables of a study that is not in `table` already."""
        return [] if isinstance(self.of(what), Recovery) else self.headlines(what)

    @property
    def studies(self) -> tuple[str, ...]:
        """The studies that were made, in order."""
        return tuple(dict.fromkeys(one.what for one in self.found))

    def of(self, what: str, label: str | None = None) -> Any:
        """The finding of a study on a network (None: the first): the first of several."""
        for one in self.found:
            if one.what == what and label in (None, one.subject.label):
                return one.findings[0]
        on = "" if label is None else f" on {label!r}"
        raise UsageError(f"this report has no {what!r}{on}; it has: {', '.join(self.studies)}")

    def table(self) -> list[list[str]]:
        """Mean iterations to solution and peak accuracy: a row a network, the head first.

        [["model", "clean", "noise"], ["m0", "23.5 (100.0 %)", "– (0.0 %)"]]
        """
        words = [word for word in self.studies if isinstance(self.of(word), Recovery)]
        rows = [["model", *words]]
        for subject in self.subjects:
            cells = {
                one.what: _cell(one.findings[0])
                for one in self.found
                if one.subject is subject and isinstance(one.findings[0], Recovery)
            }
            rows.append([subject.label, *(cells.get(word, "skipped") for word in words)])
        return rows if words else []

    def headlines(self, what: str) -> list[list[list[str]]]:
        """Tables of one study, one for each kind of finding: a row a network, the head first."""
        tables: dict[tuple[str, ...], list[list[str]]] = {}
        for one in self.found:
            for finding in one.findings if one.what == what else ():
                said = finding.headline()
                head = ["model", *said]
                rows = tables.setdefault(tuple(head), [head])
                rows.append([one.subject.label, *said.values()])
        return list(tables.values())

    def figures(self, what: str) -> dict[str, Any]:
        """Everything that a study found, as JSON holds it."""
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
                    "findings": [finding.figures() for finding in one.findings],
                }
                for one in self.found
                if one.what == what
            },
            "skipped": {s.label: s.why for s in self.skipped if s.what == what},
        }

    def pictures(self, what: str) -> list[Picture]:
        """The pictures of a study, each with a line a network."""
        gathered: dict[Plot, list[Line]] = {}
        models = list(dict.fromkeys(s.model or s.label for s in self.subjects))
        alphas = list(dict.fromkeys(s.alpha for s in self.subjects))
        for one in self.found:
            subject = one.subject
            for finding in one.findings if one.what == what else ():
                for plot, trace in finding.plots():
                    line = Line(
                        trace,
                        subject.legend,
                        colour=models.index(subject.model or subject.label),
                        stroke=alphas.index(subject.alpha),
                    )
                    gathered.setdefault(plot, []).append(line)
        regime = shared_regime(self.subjects)
        return [
            Picture(
                name=_file_name(plot.name),
                png=png(lines_figure(plot, lines, regime=regime)),
                text=f"{plot.name}: {plot.y_label} by {plot.x_label}",
            )
            for plot, lines in gathered.items()
        ]

    def sections(self) -> list[Section]:
        """The report as a page has it: the paper's table, then every study with its pictures."""
        made = []
        if table := self.table():
            text = "Mean iterations to solution, counted from the intervention, of the problems "
            text += "that recovered; in brackets the highest accuracy over all iterations."
            made.append(Section("interventions", text, table))
        for what in self.studies:
            tables = self.headlines(what)
            made.append(Section(what, STUDIES[what].about, tables[0], self.pictures(what)))
            made += [Section(f"{what}, continued", "", more) for more in tables[1:]]
        if self.skipped:
            rows = [[one.label, one.what, one.why] for one in self.skipped]
            made.append(Section("skipped", "", [["model", "study", "why"], *rows]))
        return made

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return fragment(self.sections())

    def save(self, folder: PathLike) -> Path:
        """Write a JSON file a study, its pictures, and ``index.html``, whose path is returned."""
        target = make_folder(folder)
        for what in self.studies:
            write_result(what, self.figures(what), seed=self.seed, folder=target)
        sections = self.sections()
        for section in sections:
            for picture in section.pictures:
                write_atomic(target / f"{picture.name}.png", picture.png)
        many = counted(self.count, "problem")
        notes = [f"{self.task}, size {self.size}, {many}, seed {self.seed}"]
        return write_page(target / "index.html", "iterant analyze", sections, notes=notes)

    def save_failures(self, folder: PathLike) -> list[Path]:
        """Draw the failures that near misses kept, a picture each; needs that study."""
        kept = [
            (one.subject.label, finding.failures)
            for one in self.found
            for finding in one.findings
            if isinstance(finding, NearMisses)
        ]
        if not kept:
            raise UsageError(
                "failures are drawn by the study near-misses, which did not run; ask for it too, "
                f"or see answers: iterant solve {self.task} --count 20 --save answers.png"
            )
        target = make_folder(folder)
        return [
            save_png(failure, target / f"{_file_name(label)}-{number:03}.png")
            for label, failures in kept
            for number, failure in enumerate(failures)
        ]


def _lines(table: list[list[str]]) -> str:
    """Columns below their heads."""
    wide = [max(len(row[column]) for row in table) for column in range(len(table[0]))]
    padded = (
        "  ".join(word.ljust(width) for word, width in zip(row, wide, strict=True)) for row in table
    )
    return "\n".join(line.rstrip() for line in padded)


def _cell(finding: Recovery) -> str:
    steps = finding.mean_to_solution
    return f"{'–' if steps != steps else f'{steps:.2f}'} ({100 * finding.peak[1]:.1f} %)"


def _file_name(words: str | Sequence[str]) -> str:
    return re.sub(r"[^\w.-]+", "-", str(words)).strip("-.") or "unnamed"
