"""The authors' own maze run, epoch by epoch, with ours beside it.

>>> reference = Reference.read("results")
>>> reference.section(records)

Theirs comes from files that they published, kept in ``results/reference-maze-run.json``; ours from
records, and from the first run, which was made before records were kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from iterant.draw.lines import Line, Plot, Trace, panels_figure, png, svg
from iterant.experiments.records import Records
from iterant.runs import read_result, write_atomic
from iterant.runs.files import PathLike, make_folder

NAME = "reference-maze-run"
MODEL = "mazes-recall-a0.01"
_FIRST, _RESUMED = "train-mazes-paper-h200-s0", "train-mazes-paper-h200-s0-resumed"
"""Our first run in its two legs, seed 0."""


@dataclass(frozen=True)
class Reference:
    """What the authors' files say, and our first run."""

    theirs: dict[str, Any]
    first: dict[int, float]
    """Per cent of validation mazes by epoch of our first run"""

    @classmethod
    def read(cls, folder: PathLike) -> Reference | None:
        """From a folder of results; None where the authors' run is not there."""
        place = Path(folder)
        if not (place / f"{NAME}.json").exists():
            return None
        first: dict[int, float] = {}
        if (place / f"{_FIRST}.json").exists():
            figures = read_result(place / f"{_FIRST}.json")["figures"]
            looks = next(value for name, value in figures.items() if name.startswith("looks"))
            first = {
                round(look["epoch"]): 100 * look["validation"]
                for look in looks
                if look["kind"] == "validation"
            }
        if (place / f"{_RESUMED}.json").exists():
            best = read_result(place / f"{_RESUMED}.json")["figures"]["best"]
            first[best["epoch"]] = 100 * best["validation"]
        return cls(read_result(place / f"{NAME}.json")["figures"], first)

    def ours(self, records: Records) -> dict[str, dict[int, float]]:
        """Validation by epoch of every run of ours, by its name."""
        found = {"ours, seed 0, in two legs": self.first} if self.first else {}
        for record in records.of(MODEL):
            history = record.figures["training"].get("history", [])
            found[f"ours, seed {record.seed}"] = {
                row["epoch"]: 100 * row["validation"] for row in history if "validation" in row
            }
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
        for name, points in self.ours(records).items():
            told = ", ".join(f"{epoch}: {value:.2f}" for epoch, value in sorted(points.items()))
            lines.append(f"| {name} | {told} |")
        return "\n".join([*lines, ""])

    def save(self, records: Records, folder: PathLike) -> list[Path]:
        """Draw it as PNG and SVG."""
        held = self.theirs["by epoch"]["validation accuracy (%)"]
        epochs = [float(epoch) for epoch in range(1, len(held) + 1)]
        lines = [Line(Trace(epochs, held), "the authors' run", colour=6)]
        for place, (name, points) in enumerate(self.ours(records).items()):
            there = sorted(points)
            trace = Trace([float(epoch) for epoch in there], [points[epoch] for epoch in there])
            lines.append(Line(trace, name, colour=place, marker="o"))
        plot = Plot("9×9 mazes held out, by epoch of training", "epoch", "problems solved (%)",
                    share=True, regime_axis="")  # fmt: skip
        figure, target, made = panels_figure([(plot, lines)]), make_folder(folder), []
        for ending, content in ((".png", png(figure)), (".svg", svg(figure))):
            write_atomic(target / f"{NAME}{ending}", content)
            made.append(target / f"{NAME}{ending}")
        return made
