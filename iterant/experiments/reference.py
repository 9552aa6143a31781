"""The authors' own maze run, epoch by epoch, with ours beside it.

>>> reference = Reference.read("results")
>>> reference.section(records)

Theirs comes from files that they published, kept in ``results/reference-maze-run.json``; ours from
records, and from the first run, which was made before records were kept.
"""

from __future__ import annotations

import math
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

_SERIES = ("loss", "validation accuracy (%)")
"""What the authors' logs have of every epoch"""

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
            _points(first, "validation", 100.0)
        with as_written(theirs, "files of the authors' run"):
            read = read_result(theirs)["figures"]
            for name in _SERIES:
                math.fsum(read["by epoch"][name])
            dict(read["33x33 by iteration (%)"])
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

    def section(self, records: Records, figures: str) -> str:
        """As Markdown; ``figures``: where the picture is."""
        held = self.theirs["by epoch"]["validation accuracy (%)"]
        at = self.theirs["33x33 by iteration (%)"]
        picture = f"{figures}/{NAME}"
        about = (
            "One run of DT-Recall, α = 0.01, whose logs they published (33×33: "
            f"{at['30']} % after 30 iterations, {at['40']} % after 40); ours beside it."
        )
        lines = [
            "## The authors' own maze run", "", about, "",
            f"[![Validation by epoch]({picture}.png)]({picture}.svg)", "",
            "| run | validated at epoch: % |", "| --- | --- |",
            "| theirs | " + ", ".join(f"{e}: {held[e - 1]:.2f}" for e in (10, 20, 30, 40, 50))
            + " |",
        ]  # fmt: skip
        for name, history in self.ours(records).items():
            xs, ys = _points(history, "validation", 100.0)
            told = ", ".join(
                f"{epoch:.0f}: {value:.2f}" for epoch, value in zip(xs, ys, strict=True)
            )
            lines.append(f"| {name} | {told} |")
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
                trace = Trace(*_points(history, key, scale))
                sign = _SIGNS[place % len(_SIGNS)] if key == "validation" else ""
                lines.append(Line(trace, name, colour=place, stroke=place + 1, marker=sign))
            panels.append((plot, lines))
        return panels


def _points(history: History, key: str, scale: float) -> tuple[list[float], list[float]]:
    """Epochs and values, where there are any."""
    rows = [(float(row["epoch"]), scale * row[key]) for row in history if row.get(key) is not None]
    return [epoch for epoch, _ in rows], [value for _, value in rows]
