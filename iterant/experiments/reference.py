"""The authors' own maze run, epoch by epoch, with ours beside it.

>>> reference = Reference.read("results")
>>> reference.section(records)

Theirs comes from files that they published, kept in ``results/reference-maze-run.json``; ours from
records, and from the first run, which was made before records were kept.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from iterant.draw.lines import Line, Plot, Trace
from iterant.experiments.damage import as_written
from iterant.experiments.drawing import save_panels
from iterant.experiments.records import Records
from iterant.runs import read_result
from iterant.runs.files import PathLike

NAME = "reference-maze-run"
MODEL = "mazes-recall-a0.01"
_THEIRS = 6
"""The authors' colour: black"""
_SIGNS = ("o", "s", "^", "D", "v")
"""Of our seeds, which have a stroke each, too: print has no colours"""
_FIRST = "train-mazes-paper-h200-s0-by-epoch"
"""Our first run, seed 0, epoch by epoch"""
_FIRST_PRECISION = "fp16"

_SERIES = ("loss", "validation accuracy (%)")
"""What the authors' logs have of every epoch"""

_LARGER, _SIZE = "33x33 by iteration (%)", "33"
"""The one test of larger mazes in the authors' files, and what records call its size"""

History = list[dict[str, Any]]
"""An epoch a row: its training loss and, where there was one, its validation"""


@dataclass(frozen=True)
class Reference:
    """What the authors' files say, and our first run."""

    theirs: dict[str, Any]
    first: History

    @classmethod
    def read(cls, folder: PathLike) -> Reference | None:
        """From a folder of results; None where the authors' run is not there."""
        theirs, ours = (Path(folder) / f"{name}.json" for name in (NAME, _FIRST))
        if not theirs.exists():
            return None
        with as_written(ours, "scripts/train-and-test"):
            first = read_result(ours)["figures"]["history"] if ours.exists() else []
            _pairs(first, "validation", 100.0)
        with as_written(theirs, "files of the authors' run"):
            read = read_result(theirs)["figures"]
            for name in _SERIES:
                math.fsum(read["by epoch"][name])
            math.fsum(value for _, value in _by_iteration(read))
        return cls(read, first)

    def ours(self, records: Records) -> dict[str, History]:
        """Every run of ours by its name."""
        found = {
            f"ours, seed {record.seed}": record.figures["training"].get("history", [])
            for record in records.of(MODEL)
        }
        if self.first and "ours, seed 0" not in found:
            found = {"ours, seed 0, in two legs": self.first, **found}
        return found

    def larger(self, records: Records) -> dict[str, list[tuple[int, float]]]:
        """Per cent of 33×33 solved by ours after every iteration, run by run."""
        return {
            f"ours, seed {record.seed}": [
                (step, 100 * count / test["problems"])
                for step, count in enumerate(test["solved"], start=1)
            ]
            for record in records.of(MODEL)
            if (test := record.tests.get(_SIZE))
        }

    def section(self, records: Records, figures: str) -> str:
        """As Markdown; ``figures``: where the picture is."""
        held, picture = self.theirs["by epoch"]["validation accuracy (%)"], f"{figures}/{NAME}"
        about = (
            "One run of DT-Recall, α = 0.01, whose logs they published; ours beside it. Validated "
            "after every epoch; the table has every tenth and the one whose weights are tested, "
            "the first of the best. At 33×33 they looked after 30 to 40 iterations only; of ours, "
            "which went on, the peak is last."
        )
        theirs, larger = _by_iteration(self.theirs), self.larger(records)
        trained_in = {f"ours, seed {one.seed}": one.precision for one in records.of(MODEL)}
        looked = (theirs[0][0], theirs[-1][0])
        lines = [
            "## The authors' own maze run", "", about, "",
            f"[![Loss, validation and 33×33]({picture}.png)]({picture}.svg)", "",
            "| run | precision | validated at epoch: % | 33×33 after iterations: % |",
            "| --- | --- | --- | --- |",
            _line("theirs | fp32", _excerpt([(float(e), value) for e, value in enumerate(held, 1)]),
                  [theirs[0], theirs[-1]]),
        ]  # fmt: skip
        for name, history in self.ours(records).items():
            curve = larger.get(name, [])
            peak = [max(curve, key=lambda point: point[1])] if curve else []
            points = [point for point in curve if point[0] in looked] + peak
            label = f"{name} | {trained_in.get(name, _FIRST_PRECISION)}"
            lines.append(_line(label, _excerpt(_pairs(history, "validation", 100.0)), points))
        return "\n".join([*lines, ""])

    def save(self, records: Records, folder: PathLike) -> list[Path]:
        """Draw it as PNG and SVG: the loss and the validation of every epoch."""
        return save_panels(self.panels(records), NAME, folder, regime=None)

    def panels(self, records: Records) -> list[tuple[Plot, list[Line]]]:
        """What its picture shows."""
        theirs = self.theirs["by epoch"]
        epochs = [float(epoch) for epoch in range(1, len(theirs["loss"]) + 1)]
        panels = []
        for key, plot, scale in (
            ("loss", Plot("loss in training", "epoch", "loss", log=True, regime_axis=""), 1.0),
            ("validation", Plot("9×9 mazes held out, by epoch", "epoch", "problems solved (%)",
                                share=True, regime_axis=""), 100.0),
        ):  # fmt: skip
            known = theirs["loss" if key == "loss" else "validation accuracy (%)"]
            lines = [Line(Trace(epochs, known), "the authors' run", colour=_THEIRS)]
            for place, (name, history) in enumerate(self.ours(records).items()):
                trace = _trace(_pairs(history, key, scale))
                sign = _SIGNS[place % len(_SIGNS)] if key == "validation" else ""
                lines.append(Line(trace, name, colour=place, stroke=place + 1, marker=sign))
            panels.append((plot, lines))
        return [*panels, self._larger_panel(records)]

    def _larger_panel(self, records: Records) -> tuple[Plot, list[Line]]:
        """33×33 after the iterations that the authors looked at."""
        theirs, larger = _by_iteration(self.theirs), self.larger(records)
        steps = {step for step, _ in theirs}
        lines = [Line(_trace(theirs), "the authors' run", colour=_THEIRS)]
        for place, name in enumerate(self.ours(records)):
            if points := [point for point in larger.get(name, []) if point[0] in steps]:
                lines.append(Line(_trace(points), name, colour=place, stroke=place + 1))
        plot = Plot("33×33, by iteration", "iterations", "problems solved (%)", regime_axis="")
        return plot, lines


def _by_iteration(theirs: dict[str, Any]) -> list[tuple[int, float]]:
    """Iterations and per cent of 33×33 in the authors' files."""
    return sorted((int(step), value) for step, value in theirs[_LARGER].items())


def _excerpt(validated: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Every tenth epoch, and the first of the best, whose weights are tested."""
    best = max(validated, key=lambda point: point[1], default=None)
    return [point for point in validated if point[0] % 10 == 0 or point == best]


def _trace(pairs: Sequence[tuple[float, float]]) -> Trace:
    return Trace([x for x, _ in pairs], [y for _, y in pairs])


def _line(name: str, *cells: Sequence[tuple[float, float]]) -> str:
    """A row of the table."""
    told = [", ".join(f"{x:.0f}: {y:.2f}" for x, y in cell) for cell in cells]
    return f"| {' | '.join([name, *told])} |"


def _pairs(history: History, key: str, scale: float) -> list[tuple[float, float]]:
    """Epochs and values, where there are any."""
    return [(float(row["epoch"]), scale * row[key]) for row in history if row.get(key) is not None]
