"""The paper's network beside the paper, after as many iterations as the paper needed.

    >>> headline(read_records("results/runs").whole, read_counts("results"))[0]
    "| DT-Recall, trained by the paper's recipe | iterations | paper | here | peak here | … |"

The README has this table word for word; a test compares it with what ``results/`` gives.
"""

from __future__ import annotations

from iterant.experiments.checks import Evidence, SolvedAfter
from iterant.experiments.counts import Counts
from iterant.experiments.measures import Peaks
from iterant.experiments.models import MODELS
from iterant.experiments.paper_numbers import PEAKS
from iterant.experiments.records import Record, Records
from iterant.experiments.statistics import Summary, Value, summary
from iterant.experiments.tables import precisions
from iterant.formatting import markdown_table

HEAD = ("DT-Recall, trained by the paper's recipe", "iterations", "paper", "here", "peak here",
        "seeds", "precision")  # fmt: skip

ROWS = (
    ("prefix sums, 48 bits", "48", "sums-recall-a1"),
    ("prefix sums, 512 bits", "512", "sums-recall-a1"),
    ("mazes, 13×13", "13", "mazes-recall-a0.01"),
    ("mazes, 59×59", "59", "mazes-recall-a0.01"),
    ("mazes, 201×201", "201", "mazes-recall-a0.01"),
    ("chess puzzles 600K–700K", "600000:700000", "chess-recall-a0.5"),
)
"""What it is called, the size and the model: that with the progressive loss."""


def headline(records: Records, counts: Counts) -> list[str]:
    """The lines of the table."""
    rows = list[list[str]]()
    for name, size, model in ROWS:
        paper, alpha = PEAKS[size][model], MODELS[model].alpha
        steps = paper.step or 0
        ours = _after(records, size, model, steps)
        if ours is None:
            ours = SolvedAfter(size, steps).of(Evidence(records, counts), model)
        cells = [f"{name}, α = {alpha:g}", f"{steps:,}", Value(paper.mean, paper.error).told]
        if ours is None:
            cells += ["not run", "", "", ""]
        else:
            highest = Peaks(size).of(records.of(model))
            top = highest.every and Value(highest.every.mean, highest.every.error, highest.step)
            cells += [Value(ours.mean, ours.error).told, top.told if top else "", str(ours.seeds)]
            cells.append(precisions(one.precision for one in records.of(model)))
        rows.append(cells)
    return markdown_table(HEAD, rows)


def _after(records: Records, size: str, model: str, steps: int) -> Summary | None:
    """The mean over seeds after that many iterations; a run that broke down solves nothing."""

    def share(record: Record) -> float | None:
        if record.failed:
            return 0.0
        curve = next(iter(Peaks(size).curves([record])), [])
        return curve[steps - 1] if len(curve) >= steps else None

    shares = [found for one in records.of(model) if (found := share(one)) is not None]
    return summary(shares)
